//! What is said about instances, late, too early, or without proof.

use crate::auth::Signature;
use crate::compositions::tests::run::Run;
use crate::compositions::tests::script::{Report, client, init, panic};
use crate::ids::{InstanceId, Principal};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::{Order, Part, Protocol};
use crate::switching::{Switch, SwitchMessage};
use crate::testing::net::{Frame, c, kind, r};
use alloc::vec;
use alloc::vec::Vec;

/// Runs the composition on, with the first client, until every replica is in this instance.
fn go_to(run: &mut Run, instance: u64) {
    while run.instances().iter().any(|at| *at < instance) {
        let at = InstanceId(run.instances()[0]);
        let is_backup = run.net.cluster.part(at) == Part::Backup(Order::Pbft);
        for _ in 0..if is_backup { 1 } else { 4 } {
            run.invoke(0);
            run.finish();
        }
        if !is_backup {
            run.stop(at);
        }
        run.pass(1_000);
    }
    assert_eq!(run.instances(), [instance; 4]);
}

/// abs-K10, abs-L7: everything that was ever said in earlier instances is said again, to whom it was meant for. It
/// changes nothing: those who say it are told what is active, and that is all (abs-D1).
#[test]
fn k10_l7_what_was_said_in_earlier_instances_changes_nothing() {
    for protocol in [Protocol::Quorum, Protocol::Azyzzyva, Protocol::Aliph] {
        let mut run = Run::new(protocol, 4, 2, 1);
        let round = protocol.schedule().parts().len() as u64;
        let instance = InstanceId(2 * round + 1);
        go_to(&mut run, instance.0);
        let old: Vec<Frame> = run.net.sent.clone();
        let (journals, commits) = (run.journals(), run.commits.len());
        for what in ["ABORT", "LCS", "INIT", "RESP", "REPLY", "ACTIVE", "COMMIT"] {
            assert!(old.iter().any(|frame| kind(&frame.message) == what), "{protocol}: {what}");
        }
        let mut replayed = 0;
        for frame in old {
            if !matches!(frame.message, Message::Transfer(_)) && frame.message.instance().is_none_or(|of| of < instance)
            {
                run.net.in_flight.push(frame);
                replayed += 1;
            }
        }
        assert!(replayed > 100);
        for (old, id) in (1..instance.0).flat_map(|old| (0..4).map(move |id| (InstanceId(old), id))) {
            run.net.forge(c(1), r(id), panic(old, 1));
        }
        let before = run.net.sent.len();
        run.settle();
        assert_eq!((run.journals(), run.commits.len()), (journals, commits), "{protocol}");
        assert_eq!(run.instances(), [instance.0; 4], "{protocol}");
        let said = run.net.sent[before..].iter().map(|frame| kind(&frame.message));
        let known = |kind: alloc::string::String| matches!(kind.as_str(), "ACTIVE" | "INIT" | "BODIES" | "STATE");
        let odd: Vec<_> = said.filter(|kind| !known(kind.clone())).collect();
        assert!(odd.is_empty(), "{protocol}: {odd:?}");
        run.invoke(0);
        run.settle();
        assert!(run.is_idle() && run.instances() == [instance.0; 4], "{protocol}");
        run.check();
    }
}

/// abs-K13, abs-L1: three replicas have begun an instance and stopped in it, the fourth has never heard of it, and the
/// liar among the three says nothing from then on. The fourth is shown the proof by those whom it asks.
#[test]
fn k13_l1_a_replica_that_missed_an_instance_is_shown_the_proof() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    run.liar = Some(0);
    run.invoke(0);
    run.settle();
    run.net.isolate(&[3]);
    run.stop(InstanceId(1));
    run.pass(1_000);
    run.stop(InstanceId(2));
    assert_eq!(run.instances(), [2, 2, 2, 1]);
    run.net.isolate(&[0]);
    run.invoke(2);
    run.finish();
    run.check();
}

/// abs-K13, abs-L1: two replicas stop in an instance while the fourth is still fetching the body of an entry with which
/// it begins, and the third is down. No client says PANIC any more where it could hear it: the two reports that it has
/// had must be enough when it has opened the instance.
#[test]
fn k13_l1_who_is_late_stops_with_those_who_stopped_before() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    let operation = run.reserve();
    let request = run.net.request(InstanceId(1), 0, 1, &operation);
    run.ask(&request, [0, 1, 2]);
    run.settle();
    run.stop(InstanceId(1));
    let is_body = |frame: &Frame| kind(&frame.message) == "BODIES";
    let is_of_r2 = |frame: &Frame| frame.from == r(2) || frame.to == r(2);
    run.net.lose(is_body);
    run.pass(1_000);
    assert_eq!(run.instances(), [2; 4]);
    assert_eq!(run.init_of(3, InstanceId(2)), None, "it lacks a body");
    run.net.lose(move |frame| is_body(frame) || is_of_r2(frame));
    for id in [0, 1] {
        run.net.forge(c(2), r(id), panic(InstanceId(2), 2));
    }
    run.pass(1_000);
    assert_eq!(run.instances(), [2; 4]);
    run.net.lose(is_of_r2);
    run.pass(1_000);
    assert_eq!(run.instances(), [3, 3, 2, 3]);
    run.invoke(1);
    run.finish();
    run.check();
}

/// abs-L6: a client that slept through many instances is told which one is active, and goes there at once; what a
/// replica keeps of the earlier ones does not grow.
#[test]
fn l6_who_slept_does_not_walk_through_all_instances() {
    let mut run = Run::new(Protocol::ZLight, 4, 3, 1);
    go_to(&mut run, 11);
    let before = run.net.sent.len();
    run.invoke(1);
    run.finish();
    let asked = |frame: &&Frame| frame.from == c(1) && kind(&frame.message) == "REQUEST";
    let instances = run.net.sent[before..].iter().filter(asked).filter_map(|frame| frame.message.instance());
    let mut instances: Vec<u64> = instances.map(|instance| instance.0).collect();
    instances.dedup();
    assert_eq!(instances, [1, 11]);
    run.check();
}

/// abs-K21: proofs that are none, or not for this: a report with a bad signature, one that was changed, too few, too
/// many, and a good proof of another instance. All are refused by replicas that are still in the first instance.
#[test]
fn k21_a_bogus_proof_begins_nothing() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    run.liar = Some(3);
    run.invoke(0);
    run.settle();
    let reports = run.clone().stop(InstanceId(1));
    let [r0, r1, r2, r3] = [0, 1, 2, 3].map(|id| &reports[&id]);
    let unsigned = Report::signed(r2.claims().clone(), r2.signer(), Signature([1; 64]));
    let mut changed = r2.clone();
    changed.claims_mut().low_load = true;
    let elsewhere = |instance: u64| {
        let mut message = init([r0, r1, r2]);
        let Message::Switch(switch) = &mut message else { unreachable!() };
        switch.instance = InstanceId(instance);
        message
    };
    let (few, many) = (init([r0, r1]), init([r0, r1, r2, r3]));
    let bogus = [init([r0, r1, &unsigned]), init([r0, r1, &changed]), few, many, elsewhere(3), elsewhere(4)];
    let count = bogus.len() as u64;
    for message in bogus {
        for id in 0..3 {
            run.net.forge(r(3), r(id), message.clone());
        }
    }
    run.settle();
    assert!((0..3).all(|id| run.net.rejected(id, r(3), Rejection::BadCertificate) == count));
    assert_eq!(run.instances(), [1; 4]);
    run.invoke(0);
    run.settle();
    assert!(run.is_idle());
    run.check();
}

/// abs-K21: a replica skips an instance that it has missed, and never goes back: what is said there later is answered
/// with the proof of the one that runs (abs-D13).
#[test]
fn k21_a_skipped_instance_stays_skipped() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    run.invoke(0);
    run.settle();
    run.net.isolate(&[3]);
    run.stop(InstanceId(1));
    run.pass(1_000);
    assert_eq!(run.instances(), [2, 2, 2, 1]);
    let reports = run.stop(InstanceId(2));
    run.net.heal();
    run.net.forge(r(0), r(3), init([&reports[&0], &reports[&1], &reports[&2]]));
    run.settle();
    assert_eq!(run.instances()[3], 3, "it goes on where the others will be");
    let operation = run.reserve();
    let request = run.net.request(InstanceId(2), 0, u64::MAX / 2, &operation);
    run.ask(&request, [3]);
    run.net.forge(c(2), r(3), panic(InstanceId(2), 2));
    run.settle();
    assert!(!run.net.sent.iter().any(|frame| is_of(frame, r(3), InstanceId(2))), "it says nothing in there");
    run.finish();
    assert!(run.instances().iter().all(|instance| *instance >= 3));
    run.check();
}

/// Whether this principal says something within an instance.
fn is_of(frame: &Frame, from: Principal, instance: InstanceId) -> bool {
    let within = ["RESP", "CHAIN", "CHAIN-REPLY", "ABORT", "LCS", "ORDER"];
    frame.from == from && frame.message.instance() == Some(instance) && within.contains(&kind(&frame.message).as_str())
}

/// abs-K21 without a proof: one replica says that a later instance is active. Its word is not enough (abs-S5 of
/// [`crate::switching`]), and the client is served where it is.
#[test]
fn k21_one_replica_moves_no_client() {
    let mut run = Run::new(Protocol::Aliph, 4, 2, 1);
    run.liar = Some(3);
    for instance in [2, 3, 99] {
        let message = SwitchMessage::Active(client(0));
        run.net.forge(r(3), c(0), Message::Switch(Switch { instance: InstanceId(instance), message }));
        run.settle();
        run.invoke(0);
        run.settle();
        assert!(run.is_idle(), "served in the first instance");
    }
    assert!(run.commits.iter().all(|commit| commit.instance == InstanceId(1)));
    run.check();
}

/// abs-M3: every message arrives twice. Nothing happens that would not have happened otherwise.
#[test]
fn m3_everything_said_twice_is_said_once() {
    for protocol in [Protocol::Quorum, Protocol::ZLight, Protocol::Chain, Protocol::Aliph] {
        let mut run = Run::new(protocol, 4, 2, 1);
        for _ in 0..8 {
            for session in 0..2 {
                run.invoke(session);
                while !run.net.in_flight.is_empty() {
                    let again = run.net.in_flight.clone();
                    run.net.in_flight.extend(again);
                    run.round();
                }
            }
        }
        assert_eq!((run.commits.len(), run.instances()), (16, vec![1; 4]), "{protocol}");
        assert!(!run.anybody_said("PANIC"), "{protocol}");
        let rejections = run.net.hosts.iter().flat_map(|host| host.replica.report().suspicions);
        assert_eq!(rejections.count(), 0, "nobody is blamed for it, in {protocol}");
        run.check();
    }
}

/// abs-A5: who has said with which history it stopped says nothing more in that instance, whoever asks.
#[test]
fn a5_who_has_reported_says_nothing_more() {
    for protocol in [Protocol::Quorum, Protocol::ZLight, Protocol::Chain] {
        let mut run = Run::new(protocol, 4, 2, 1);
        run.invoke(0);
        run.settle();
        run.stop(InstanceId(1));
        let known: Vec<Frame> = run.net.sent.clone();
        for frame in known.into_iter().filter(|frame| kind(&frame.message) != "ABORT") {
            run.net.in_flight.push(frame);
        }
        let operation = run.reserve();
        let request = run.net.request(InstanceId(1), 1, 1, &operation);
        run.ask(&request, 0..4);
        run.settle();
        assert_eq!(run.instances(), [1; 4], "{protocol}: nobody has heard of the others' reports");
        run.check();
    }
}
