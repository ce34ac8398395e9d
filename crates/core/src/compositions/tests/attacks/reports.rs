//! What a liar reports when an instance stops, and what is made of it: nothing that committed is lost, and nothing is
//! pieced together that nobody logged.

use crate::cluster::{Cluster, Limits};
use crate::compositions::tests::run::Run;
use crate::compositions::tests::script::{Report, init};
use crate::digest::Digest;
use crate::history::Boundary;
use crate::ids::InstanceId;
use crate::notice::Notice;
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::{Order, Part, Protocol, Schedule};
use crate::switching::{AbortReport, Switch, SwitchMessage};
use crate::testing::net::{c, kind, r};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// A run of four replicas that take a checkpoint after so many positions.
pub(super) fn with_checkpoints(protocol: Protocol, clients: u32, history_interval: u64) -> Run {
    let cluster = Run::cluster(protocol, 4);
    let limits = Limits { history_interval, ..cluster.limits };
    Run::of(Cluster { limits, ..cluster }, clients, 1)
}

/// What a liar may say who denies everything.
fn denial(like: &Report) -> Report {
    let mut report = like.clone();
    let AbortReport { anchor, boundaries, digests, .. } = report.claims_mut();
    (*anchor, *boundaries, *digests) = (Boundary::default(), Vec::new(), Vec::new());
    report
}

/// abs-K6: one replica tells each client another history, and whatever 2f+1 reports are put together, the histories
/// that they prove have all that committed.
#[test]
fn k06_reports_that_differ_prove_no_loss() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    run.liar = Some(3);
    run.invoke(2);
    run.settle();
    assert_eq!(run.commits.len(), 1);
    run.invoke(0);
    run.invoke(1);
    // Each of the others logs another order, and the liar says that it has any of them.
    run.round_of(|frame| match frame.to {
        to if to == r(0) => frame.from == c(0),
        to if to == r(1) => frame.from == c(1),
        _ => true,
    });
    let reports = run.stop(InstanceId(1));
    let lies: Vec<Report> = (0..4).map(|id| run.signed(3, &reports[&id])).collect();
    let mut ends = BTreeSet::new();
    for lie in lies.iter().chain([&run.signed(3, &denial(&reports[&0]))]) {
        for left_out in 0..3 {
            let correct = (0..3).filter(|id| *id != left_out).map(|id| &reports[&id]);
            ends.insert(run.proved(correct.chain([lie])).history());
        }
    }
    run.proved([&reports[&0], &reports[&1], &reports[&2]]);
    assert!(ends.len() >= 3, "several histories can be proved: {}", ends.len());
    run.finish();
    run.check();
}

/// abs-K7, abs-S2: three replicas begin Chain with three histories that differ after what committed, two of them behind
/// a checkpoint that is not certain. What they report then still has what they share (abs-D6, abs-D7).
#[test]
fn k07_s2_a_tentative_checkpoint_hides_nothing() {
    let mut run = with_checkpoints(Protocol::Aliph, 3, 2);
    run.liar = Some(1);
    run.invoke(0);
    run.settle();
    assert_eq!(run.commits.len(), 1);
    run.invoke(1);
    run.invoke(2);
    run.round_of(|frame| (frame.from, frame.to) == (c(1), r(0)) || (frame.from, frame.to) == (c(2), r(2)));
    let reports = run.stop(InstanceId(1));
    let [r0, r1, r2, r3] = [0, 1, 2, 3].map(|id| &reports[&id]);
    assert_eq!([r0, r2].map(|report| report.claims().boundaries.len()), [1; 2], "each took a checkpoint of its own");
    let [like_r0, like_r2] = [r0, r2].map(|report| run.signed(1, report));
    let [one, two, three] = [[r0, &like_r0, r3], [&like_r2, r2, r3], [r0, r1, r3]];
    run.begin([one, three, two, three]);
    run.settle();
    assert_eq!([0, 2, 3].map(|id| run.init_of(id, InstanceId(2)).map(<[u32]>::len)), [Some(2), Some(2), Some(1)]);
    let reports = run.stop(InstanceId(2));
    for lie in [denial(&reports[&1]), run.signed(1, &reports[&0]), run.signed(1, &reports[&2])] {
        for pair in [[0, 2], [0, 3], [2, 3]] {
            assert!(run.proved(pair.map(|id| &reports[&id]).into_iter().chain([&lie])).position >= 1);
        }
    }
    run.finish();
    run.check();
}

/// abs-K7, abs-S3: one replica is two checkpoints ahead, because the others told only it. They list all that they have,
/// so that a liar who denies everything hides nothing.
#[test]
fn k07_s3_several_checkpoints_under_way_hide_nothing() {
    let mut run = Run::new(Protocol::Quorum, 4, 2, 1);
    run.liar = Some(1);
    run.net.lose(|frame| matches!(kind(&frame.message).as_str(), "LCS" | "ANCHOR") && frame.to != r(0));
    for _ in 0..10 {
        run.invoke(0);
        run.settle();
    }
    assert_eq!(run.commits.len(), 10);
    let reports = run.stop(InstanceId(1));
    assert_eq!([0, 2, 3].map(|id| reports[&id].claims().anchor.position), [8, 0, 0]);
    assert_eq!(reports[&2].claims().boundaries.len(), 2);
    let lie = denial(&reports[&1]);
    for pair in [[0, 2], [0, 3], [2, 3]] {
        assert_eq!(run.proved(pair.map(|id| &reports[&id]).into_iter().chain([&lie])).position, 10);
    }
    run.net.heal();
    run.finish();
    run.check();
}

/// abs-K7, abs-K10, abs-S9: what was said about checkpoints in one instance arrives in the next one, where another
/// replica has the same history. It must not count there: the others may go elsewhere.
#[test]
fn k10_s9_a_checkpoint_counts_in_its_own_instance() {
    let schedule = Schedule::new(&[Part::Quorum, Part::Quorum, Part::Backup(Order::Pbft)]).unwrap();
    let mut run = Run::new(Protocol::Schedule(schedule), 4, 2, 1);
    run.liar = Some(1);
    for _ in 0..3 {
        run.invoke(0);
        run.settle();
    }
    run.invoke(1);
    run.round_of(|frame| frame.to != r(0));
    let mut late = run.net.in_flight.clone();
    late.retain(|frame| kind(&frame.message) == "LCS" && frame.to == r(0));
    assert_eq!(late.len(), 3);
    let reports = run.stop(InstanceId(1));
    let short = run.signed(1, &reports[&0]);
    run.begin([[&reports[&0], &short, &reports[&2]]; 4]);
    // Nobody hears of the checkpoint at the end of the init history, so that everything is listed.
    run.net.in_flight.clear();
    run.redirect(1, InstanceId(2));
    run.round_of(|frame| frame.to == r(0) && frame.from == c(1));
    assert_eq!(run.journals()[0].len(), 4, "replica 0 has logged it here");
    run.net.in_flight = late;
    run.round();
    assert!(!run.net.noticed(0, |notice| matches!(notice, Notice::Anchored { .. })), "nothing is certain");
    let before = reports;
    let reports = run.stop(InstanceId(2));
    assert_eq!(
        reports[&0].claims().boundaries.last(),
        before[&2].claims().boundaries.last(),
        "it is the same checkpoint"
    );
    let lie = denial(&reports[&1]);
    for pair in [[0, 2], [0, 3], [2, 3]] {
        assert_eq!(run.proved(pair.map(|id| &reports[&id]).into_iter().chain([&lie])).position, 3);
    }
    run.finish();
    run.check();
}

/// abs-K20: reports as long as a message allows, with anchors as high as numbers go: refused, or outvoted in no time.
#[test]
fn k20_a_huge_report_is_refused_or_outvoted() {
    for position in [5, 1 << 60, u64::MAX] {
        let mut run = Run::new(Protocol::Quorum, 4, 2, 1);
        run.liar = Some(3);
        run.invoke(0);
        run.settle();
        let reports = run.clone().stop(InstanceId(1));
        let mut inflated = reports[&3].clone();
        inflated.claims_mut().anchor.position = position;
        let mut long = reports[&3].clone();
        long.claims_mut().digests = vec![Digest([7; 32]); 2 * run.net.cluster.history_bound() as usize + 1];
        let [inflated, long] = [inflated, long].map(|report| run.signed(3, &report));
        run.proved([&reports[&0], &reports[&1], &inflated]);
        for id in 0..3 {
            for report in [&long, &inflated] {
                let (instance, message) = (InstanceId(1), SwitchMessage::Abort(Arc::new(report.clone())));
                run.net.forge(r(3), r(id), Message::Switch(Switch { instance, message }));
            }
            run.net.forge(r(3), r(id), init([&reports[&0], &reports[&1], &long]));
        }
        run.settle();
        assert!((0..3).all(|id| run.net.rejected(id, r(3), Rejection::BadCertificate) == 2));
        run.stop(InstanceId(1));
        run.invoke(0);
        run.finish();
        run.check();
    }
}

/// abs-S10: one replica logged a, b, another one c, b, a, and the liar vouches for an a after b. A vote for each
/// position would find a, b, a, which nobody has logged.
#[test]
fn s10_no_history_is_pieced_together() {
    let mut run = Run::new(Protocol::Quorum, 4, 4, 1);
    run.liar = Some(1);
    (0..3).for_each(|session| run.invoke(session));
    let (a, b, d) = (c(0), c(1), c(2));
    let requests = core::mem::take(&mut run.net.in_flight);
    for (to, log) in [(r(0), vec![a, b]), (r(1), vec![a, b]), (r(2), vec![d, b, a])] {
        for from in log {
            let request = requests.iter().find(|frame| (frame.from, frame.to) == (from, to));
            run.deliver(request.unwrap().clone());
        }
    }
    let reports = run.stop(InstanceId(1));
    let mut lie = reports[&1].clone();
    // In the words of the third replica, so that the votes would meet.
    lie.claims_mut().digests.push(reports[&2].claims().digests[2]);
    let lie = run.signed(1, &lie);
    assert_eq!(run.proved([&reports[&0], &lie, &reports[&2]]).position, 2);
    run.begin([[&reports[&0], &lie, &reports[&2]]; 4]);
    run.finish();
    assert!(run.commits.len() == 3 && run.instances().iter().all(|instance| *instance >= 2));
    run.check();
}

/// abs-S11: at a checkpoint one replica has logged another request than the others. All four have taken a checkpoint
/// there, but of different histories, so that none of them becomes certain.
#[test]
fn s11_a_checkpoint_is_certain_only_if_all_have_the_same_history() {
    let mut run = Run::new(Protocol::Quorum, 4, 3, 1);
    for _ in 0..3 {
        run.invoke(0);
        run.settle();
    }
    run.invoke(1);
    run.invoke(2);
    run.round_of(|frame| (frame.from == c(2)) == (frame.to == r(3)));
    assert!(run.journals().iter().all(|journal| journal.len() == 4));
    run.settle();
    assert!((0..4).all(|id| !run.net.noticed(id, |notice| matches!(notice, Notice::Anchored { .. }))));
    run.finish();
    run.check();
}
