//! Two correct replicas begin an instance from different valid proofs, and what one of them needs is gone: see
//! [`crate::switching::opening`], and `compositions/jump.rs` for what 2f+1 have signed meanwhile.

use super::two_modes;
use crate::cluster::{Cluster, Limits};
use crate::compositions::tests::run::Run;
use crate::compositions::tests::script::{Report, client, init, proof, report_in};
use crate::digest::Digest;
use crate::history::Boundary;
use crate::ids::{InstanceId, ReplicaId, Timestamp};
use crate::message::Request;
use crate::notice::Notice;
use crate::protocols::ring_fast::Path;
use crate::protocols::ring_resilient::{Resilient, ResilientMessage, Status};
use crate::protocols::speculative::Certain;
use crate::registry::{InstanceRecord, LogRecord, Message};
use crate::schedule::{Part, Protocol, Quota, Schedule};
use crate::switching::{AbortReport, Bodies, HistoryRecord, Switch, SwitchMessage};
use crate::testing::net::{Event, Frame, c, kind, r};
use alloc::vec;
use alloc::vec::Vec;

/// No Backup, and a quota that nothing here comes to.
fn long(protocol: Protocol) -> Run {
    let mut run = Run::of(Cluster { quota: Quota::Fixed(100), ..Run::cluster(protocol, 4) }, 2, 1);
    run.settle();
    run
}

/// Whether a frame carries a proof from r0, which shows everybody else's to r3.
fn is_of_r0_to_r3(frame: &Frame) -> bool {
    frame.from == r(0) && frame.to == r(3) && kind(&frame.message) == "INIT"
}

/// Quorum, and then a resilient ring. r0 and r1 have logged [a], r2 has logged as many others as told, and r3, unless
/// it is to lack bodies, a and then those. The liar, r1, reports what r2 does as well. All begin with X = [a], but r3
/// with Y, the others'. The digest of X.
fn parted(run: &mut Run, others: u32, lacks_bodies: bool) -> Digest {
    run.liar = Some(1);
    run.invoke(0);
    run.round_of(|frame| frame.to != r(2));
    for session in 11..11 + others {
        let operation = run.reserve();
        let request = run.net.request(InstanceId(1), session, 1, &operation);
        run.ask(&request, if lacks_bodies { vec![2] } else { vec![2, 3] });
    }
    run.round();
    run.net.in_flight.clear();
    let reports = run.stop(InstanceId(1));
    let lie = run.signed(1, &reports[&2]);
    let (x, y) = ([&reports[&0], &reports[&1], &reports[&2]], [&lie, &reports[&2], &reports[&3]]);
    let history = run.proved(x).history();
    assert_ne!(run.proved(y).history(), history);
    run.net.lose(move |frame| {
        let what = kind(&frame.message);
        let unanswered = !lacks_bodies && what == "RESP" && frame.from != r(3);
        what == "ABORT" || is_of_r0_to_r3(frame) || unanswered || (lacks_bodies && what == "BODIES" && frame.to == r(3))
    });
    run.begin([x, x, x, y]);
    run.settle();
    history
}

fn quorum_and_ring() -> Run {
    long(Protocol::Schedule(Schedule::new(&[Part::Quorum, Part::RingResilient]).unwrap()))
}

/// r3 never gets what it lacks of its history. That of the others is certified by then, and shorter: r3 has signed
/// nothing, and goes on from there. It is needed, because the liar falls silent.
#[test]
fn who_opens_what_nobody_has_goes_on_from_what_is_certified() {
    let mut run = quorum_and_ring();
    let _ = parted(&mut run, 2, true);
    // Nor is it shown what they began with.
    run.net
        .lose(|frame| frame.from == r(1) || frame.to == r(1) || (frame.to == r(3) && kind(&frame.message) == "INIT"));
    run.pass(1_000);
    run.invoke(1);
    run.finish();
    assert_eq!(run.journals(), vec![vec![1, 4]; 3]);
    run.check();
}

/// The same where nobody lies. r0 and r1 have logged [a, b] in a ring, r2 [a], r3 nothing. The others begin with [a],
/// r3 with [a, b], and does not get b. Then r1 crashes.
#[test]
fn who_opens_more_than_the_others_of_a_ring_does_without_it() {
    let mut run = long(two_modes());
    for (session, hops) in [(0, 6), (1, 5)] {
        let now = run.net.now.0;
        let enters_at_r1 = |wait: &u64| {
            Path::entry_for(run.net.cluster.replicas, client(session), Timestamp(now + wait + 10), 0) == ReplicaId(1)
        };
        run.net.now.0 += (0..99).find(enters_at_r1).unwrap();
        run.invoke(session as usize);
        (0..hops).for_each(|_| _ = run.round());
        run.net.in_flight.clear();
    }
    run.net.lose(|frame| {
        matches!(frame.message, Message::Ring(_)) || ["ABORT", "INIT"].contains(&kind(&frame.message).as_str())
    });
    run.pass(5_000);
    let reports = said_reports(&run, InstanceId(1));
    assert_eq!(reports.each_ref().map(|report| report.claims().digests.len()), [2, 2, 1, 0]);
    let [zero, one, two, three] = &reports;
    let (x, y) = ([zero, two, three], [zero, one, two]);
    assert_eq!((run.proved(x).position, run.proved(y).position), (1, 2));
    run.net.in_flight.clear();
    run.net.lose(|frame| {
        let what = kind(&frame.message);
        what == "ABORT" || is_of_r0_to_r3(frame) || (what == "BODIES" && frame.to == r(3))
    });
    run.begin([x, x, x, y]);
    run.settle();
    run.net.isolate(&[1]);
    run.pass(1_000);
    run.invoke(0);
    run.finish();
    run.check();
}

fn said_reports(run: &Run, instance: InstanceId) -> [Report; 4] {
    [0, 1, 2, 3].map(|id| {
        let mut said = run.net.sent.iter().filter(|frame| frame.from == r(id));
        said.find_map(|frame| report_in(frame, instance)).expect("everybody has stopped")
    })
}

/// Nobody lies. Only r1 has learnt that a checkpoint of a resilient ring is certain. r0 and r2 begin the next instance
/// with its report, and forget what is below; r3 begins without it. Then r1 crashes.
fn one_certifies(run: &mut Run) {
    run.net.isolate(&[3]);
    run.invoke(0);
    run.finish();
    assert_eq!(run.instances()[..3], [2; 3]);
    let resilient = |frame: &Frame| matches!(frame.message, Message::Resilient(_));
    run.net.lose(move |frame| {
        let certifies = ["RING-CHECKPOINT", "RING-STABLE"].contains(&kind(&frame.message).as_str());
        resilient(frame) && (frame.from == r(3) || frame.to == r(3) || certifies && frame.to != r(1))
    });
    run.pass(2_000);
    for _ in 0..9 {
        run.invoke(0);
        run.settle();
    }
    assert!(run.is_idle());
    assert_eq!(run.instances(), [2; 4]);
    run.net.lose(move |frame| resilient(frame) || ["ABORT", "INIT"].contains(&kind(&frame.message).as_str()));
    run.invoke(0);
    run.pass(60_000);
    let [zero, one, two, three] = &said_reports(run, InstanceId(2));
    let (x, y) = ([zero, one, two], [zero, two, three]);
    let (certain, other) = (run.proved(x), run.proved(y));
    assert!(certain.certificate.is_some() && other.anchor.position < certain.anchor.position);
    run.begin([x, x, x, y]);
    run.settle();
    run.net.isolate(&[1]);
}

#[test]
fn who_opens_what_nobody_has_goes_over_to_what_others_began_with() {
    let mut run = long(two_modes());
    one_certifies(&mut run);
    run.finish();
    run.check();
}

/// The same over links on which an answer takes longer than two status intervals: others have been asked by then.
#[test]
fn who_goes_over_does_so_however_long_an_answer_takes() {
    let mut run = long(two_modes());
    one_certifies(&mut run);
    let is_late = |frame: &Frame| frame.to == r(3) && kind(&frame.message) == "INIT" && frame.from != r(1);
    run.net.lose(move |frame| frame.from == r(1) || frame.to == r(1) || is_late(frame));
    let mut late = Vec::new();
    for step in 0..100 {
        let before = run.net.sent.len();
        run.pass(100);
        let said = run.net.sent[before..].iter().filter(|frame| is_late(frame));
        late.extend(said.map(|frame| (step + 4, frame.clone())));
        let due = late.extract_if(.., |(at, _)| *at <= step).collect::<Vec<_>>();
        due.into_iter().for_each(|(_, frame)| run.net.forge(frame.from, frame.to, frame.message));
        run.settle();
    }
    assert!(run.is_idle(), "{:?}", run.instances());
    run.check();
}

/// What certifies an anchor is in later reports as well: of those who have it from the ring, and of those who took it
/// over with a proof, also when they come back from a log that began again.
#[test]
fn a_certificate_stays_with_its_anchor() {
    for log_bytes in [1 << 20, 1] {
        let mut run = Run::with_short_logs(two_modes(), 4, 1, 1, log_bytes);
        run.settle();
        one_certified_end(&mut run);
        for id in 0..4 {
            run.net.restart(id, false);
        }
        run.net.lose(|frame| matches!(frame.message, Message::Ring(_)));
        run.pass(200);
        run.invoke(0);
        run.pass(5_000);
        for report in said_reports(&run, InstanceId(3)) {
            let stable = report.claims().certificates.stable.as_ref().expect("its anchor was certified");
            assert_eq!((stable.claims().instance, stable.claims().boundary), (InstanceId(2), report.claims().anchor));
        }
        run.net.heal();
        run.finish();
        run.check();
    }
}

/// Up to the third instance of a ring, in which everybody begins where the second one, a resilient ring, ended.
fn one_certified_end(run: &mut Run) {
    run.net.isolate(&[3]);
    run.invoke(0);
    run.finish();
    run.net.heal();
    for _ in 0..20 {
        if run.instances() == [3; 4] {
            return;
        }
        run.invoke(0);
        run.pass(500);
    }
    panic!("the second instance ends with its quota: {:?}", run.instances());
}

/// r3 lacks what its own history needs. The others show it the checkpoint at the end of theirs, which is exactly what
/// r3 had logged and executed: it has no version of its state there yet.
#[test]
fn who_is_shown_the_checkpoint_where_it_is_goes_on_from_there() {
    let mut run = quorum_and_ring();
    let history = parted(&mut run, 1, true);
    run.pass(3_000);
    let estate = run.net.hosts[3].replica.estate();
    assert_eq!((run.instances()[3], estate.position(), estate.history()), (2, 1, history));
    run.net.heal();
    run.finish();
    run.check();
}

/// r3 began with Y, and has gone on from a checkpoint of those who began with X. To a client whose request is in X it
/// answers with the history of X, from its log as well, and says that it is certain: with a liar's word that is enough
/// for the client.
#[test]
fn who_has_gone_on_from_a_checkpoint_answers_with_the_history_there() {
    for restarts in [false, true] {
        let mut run = quorum_and_ring();
        let history = parted(&mut run, 1, false);
        let mute = |frame: &Frame| {
            [r(0), r(1), r(2)].contains(&frame.from) && ["RESP", "CERTAIN"].contains(&&*kind(&frame.message))
        };
        run.net.lose(move |frame| kind(&frame.message) == "ABORT" || is_of_r0_to_r3(frame) || mute(frame));
        run.pass(3_000);
        if restarts {
            run.net.restart(3, false);
        }
        run.redirect(0, InstanceId(2));
        run.pass(2_000);
        let said: Vec<_> = run.net.sent.iter().filter(|frame| frame.from == r(3) && frame.to == c(0)).collect();
        let said = said.into_iter().filter_map(|frame| match &frame.message {
            Message::RingCertain(Certain(response)) if response.instance == InstanceId(2) => Some(response.clone()),
            _ => None,
        });
        let said = said.last().expect("r3 answers");
        assert_eq!((said.position, said.history), (1, history));
        run.net.forge(r(1), c(0), Message::RingCertain(Certain(said)));
        run.settle();
        assert!(run.is_idle());
        run.net.heal();
        run.check();
    }
}

/// The same replica signs what it has logged, and not what it had once begun with, whatever it is asked.
#[test]
fn who_has_gone_on_from_a_checkpoint_signs_the_history_there() {
    for restarts in [false, true] {
        let mut run = quorum_and_ring();
        let history = parted(&mut run, 1, false);
        run.pass(3_000);
        if restarts {
            run.net.restart(3, false);
        }
        let status = Status { opened: true, logged: 1, prepared: None, committed: None, anchor: 0 };
        let message = ResilientMessage::Status(status);
        run.net.forge(r(1), r(3), Message::Resilient(Resilient { instance: InstanceId(2), message }));
        run.settle();
        let mut signed = run.net.said(r(3), "PREP").into_iter().map(|frame| match &frame.message {
            Message::Resilient(Resilient { message: ResilientMessage::Prepare(signed), .. }) => *signed.claims(),
            _ => unreachable!(),
        });
        assert!(signed.all(|value| (value.position, value.history) == (1, history)));
    }
}

/// Three logged [a, b, c] in Quorum. r3 has nothing, and the proof that it is shown knows no state to begin with: two
/// anchors above the beginning, about which no two say the same. (That takes two liars.) It waits, and goes over to
/// what another replica began with.
#[test]
fn a_history_without_a_state_is_waited_with() {
    let mut run = Run::new(Protocol::Aliph, 4, 4, 1);
    let reports = three_logged(&mut run);
    let [low, high] = [1, 2].map(|position| anchored_at(&run, &reports[usize::from(position == 1)], position));
    let bad = [&high, &low, &reports[2]];
    let what = run.net.cluster.specification(InstanceId(1));
    assert_eq!(proof(bad).recalled().abort_history(&what).unwrap().boundaries, []);
    let good = [&reports[0], &reports[1], &reports[2]];
    run.begin([good, good, good, bad]);
    run.settle();
    assert_eq!(run.journals()[3], []);
    run.pass(5_000);
    assert_eq!(run.journals(), vec![vec![1, 2, 3]; 4]);
}

/// The same, and two attest the state before the first request, which is below the anchor. What lies in between is in
/// no list: it is no place to begin.
#[test]
fn a_boundary_below_the_anchor_is_no_place_to_begin() {
    let mut run = Run::new(Protocol::Aliph, 4, 4, 1);
    let reports = three_logged(&mut run);
    let [mut low, high] = [1, 2].map(|position| anchored_at(&run, &reports[usize::from(position == 1)], position));
    low.claims_mut().boundaries = vec![reports[2].claims().anchor];
    let low = run.signed(1, &low);
    let reports = [&high, &low, &reports[2]];
    let what = run.net.cluster.specification(InstanceId(1));
    let history = proof(reports).recalled().abort_history(&what).unwrap();
    assert_eq!((history.anchor.position, &history.boundaries[..]), (1, &[][..]));
    run.net.lose(|frame| kind(&frame.message) == "ABORT");
    run.net.forge(r(1), r(2), init(reports));
    run.net.forge(r(1), r(3), init(reports));
    run.net.settle();
    run.net.pass(2_000_000);
    assert_eq!(run.net.hosts[3].replica.service().entries, []);
}

/// r0, r1 and r2 have logged three requests in Quorum. Their reports.
fn three_logged(run: &mut Run) -> [Report; 3] {
    for session in 0..3 {
        run.invoke(session);
        run.round_of(|frame| [r(0), r(1), r(2)].contains(&frame.to));
        run.net.in_flight.clear();
    }
    let reports = run.stop(InstanceId(1));
    [0, 1, 2].map(|id| reports[&id].clone())
}

/// The report that its signer would make with an anchor so high, and a state of its own there.
fn anchored_at(run: &Run, report: &Report, position: u64) -> Report {
    let mut value = report.claims().clone();
    let digests = value.digests.split_off(position as usize);
    let history = value.digests.iter().fold(value.anchor.history, |history, digest| history.chain(*digest));
    value.anchor = Boundary { position, history, root: Digest([position as u8; 32]) };
    (value.digests, value.boundaries) = (digests, Vec::new());
    run.net.keyring(crate::ids::Principal::Replica(report.signer())).sign(value).into()
}

/// r3, a liar, lets r2 never know that a checkpoint is certain, and resilient rings come to nothing. What r2 inherits
/// is all above its anchor; it goes no further than others accept its report.
#[test]
fn a_report_grows_no_longer_than_others_accept() {
    let cluster = Run::cluster(two_modes(), 4);
    let limits = Limits { view_timeout_max: cluster.limits.view_timeout, ..cluster.limits };
    let mut run = Run::of(Cluster { limits, ..cluster }, 8, 1);
    run.liar = Some(3);
    run.settle();
    run.net.lose(|frame| {
        let hides = frame.from == r(3) && frame.to == r(2);
        let is_checkpoint = ["LCS", "ANCHOR"].contains(&kind(&frame.message).as_str());
        hides && is_checkpoint || matches!(frame.message, Message::Resilient(_))
    });
    let (most, ahead) = [Cluster::inherited_bound, AbortReport::confirmed_max].map(|of| of(&run.net.cluster)).into();
    let (mut longest, mut confirmed) = (0, 0);
    for _ in 0..150 {
        (0..8).for_each(|session| run.invoke(session));
        run.pass(200);
        for frame in run.net.sent.drain(..).filter(|frame| frame.from == r(2)) {
            let Message::Switch(Switch { message, .. }) = frame.message else { continue };
            match message {
                SwitchMessage::Checkpoint(boundary) => confirmed = boundary.position.max(confirmed),
                SwitchMessage::Abort(report) => {
                    longest = longest.max(report.claims().digests.len() as u64);
                    assert!(longest <= most, "{longest} of {most}");
                    assert!(confirmed <= report.claims().anchor.position + ahead, "{confirmed} above its anchor");
                }
                _ => {}
            }
        }
    }
    assert_eq!((longest, confirmed), (most, ahead), "it goes as far as it may");
    run.net.isolate(&[3]);
    let before = run.commits.len();
    for _ in 0..100 {
        (0..8).for_each(|session| run.invoke(session));
        run.pass(1_000);
    }
    assert!(run.commits.len() > before + 50, "three of four serve their clients: {:?}", run.instances());
}

/// BODIES may bring what no digest covers: a proof of any length, and an instance. None of it is kept.
#[test]
fn of_a_body_only_what_its_digest_covers_is_kept() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    let reports = three_logged(&mut run);
    let logged = run.net.hosts[0].log.iter().filter_map(|record| match &record.record {
        InstanceRecord::History(HistoryRecord::Logged(entries)) => Some(entries.clone()),
        _ => None,
    });
    let mut bodies: Vec<_> = logged.flatten().collect();
    for body in &mut bodies {
        body.request.instance = InstanceId(77);
        body.request.authentication = run.net.request(InstanceId(1), 0, 1, b"else").authentication;
    }
    let all = [&reports[0], &reports[1], &reports[2]];
    run.net.lose(|frame| ["ABORT", "BODIES"].contains(&kind(&frame.message).as_str()));
    run.begin([all; 4]);
    run.settle();
    let message = SwitchMessage::Bodies(Bodies(bodies));
    run.net.forge(r(1), r(3), Message::Switch(Switch { instance: InstanceId(2), message }));
    run.settle();
    assert_eq!(run.journals()[3], [1, 2, 3]);
    let kept: Vec<_> = run.net.hosts[3]
        .log
        .iter()
        .filter_map(|record| match &record.record {
            InstanceRecord::History(HistoryRecord::Bodies(entries)) => Some(entries),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(kept.len(), 3);
    for entry in kept {
        let Request { instance, authentication, .. } = &entry.request;
        assert_eq!(*instance, InstanceId::default());
        assert!(authentication.signature.is_none() && authentication.tags.iter().len() == 0);
    }
}

/// A crash between the bodies of an init history and the record that needs them leaves bodies, and no more.
#[test]
fn bodies_without_their_record_are_nothing() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    let reports = three_logged(&mut run);
    let all = [&reports[0], &reports[1], &reports[2]];
    run.begin([all; 4]);
    run.settle();
    run.pass(500);
    let log = &mut run.net.hosts[3].log;
    let opened = log
        .iter()
        .position(|record| matches!(record.record, InstanceRecord::History(HistoryRecord::Opened(_))))
        .unwrap();
    let is_bodies = |record: &LogRecord| matches!(record.record, InstanceRecord::History(HistoryRecord::Bodies(_)));
    assert!(log[opened - 2..opened].iter().all(is_bodies), "they take two records");
    for kept in opened - 2..=opened + 1 {
        let mut copy = run.clone();
        copy.net.hosts[3].log.truncate(kept);
        copy.net.restart(3, false);
        copy.net.events.push(Event::Forgot(ReplicaId(3)));
        copy.finish();
        let begun = |notice: &Notice| matches!(notice, Notice::Begun { position: 3, .. });
        assert!(kept > opened || copy.net.noticed(3, begun), "it opens the instance again");
        copy.check();
    }
}
