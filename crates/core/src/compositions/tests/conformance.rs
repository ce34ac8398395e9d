//! One suite for every protocol that may abort, and for compositions of them as if they were one: the composition
//! theorem as a test. [`super::run`] says what is checked in every run.

use super::run::{K, Run};
use super::script::panic;
use crate::digest::Digest;
use crate::history::Boundary;
use crate::ids::{InstanceId, Principal};
use crate::notice::Notice;
use crate::registry::Message;
use crate::replicas::ReplicaSet;
use crate::schedule::{Order, Part, Protocol, Schedule};
use crate::switching::{AbortReport, Certificates, Switch, SwitchMessage};
use crate::testing::net::{c, kind, r};
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

/// Every part alone (with a Backup behind it, as none can go on without), and compositions.
pub(super) fn protocols() -> Vec<Protocol> {
    let schedule = |parts: &[Part]| Protocol::Schedule(Schedule::new(parts).unwrap());
    vec![
        Protocol::Quorum,
        Protocol::ZLight,
        Protocol::Chain,
        ring_fast(),
        schedule(&[Part::Sample, Part::Backup(Order::Pbft)]),
        schedule(&[Part::Chain, Part::Sample, Part::Backup(Order::Pbft)]),
        schedule(&[Part::Backup(Order::Pbft)]),
        schedule(&[Part::Backup(Order::Aardvark)]),
        schedule(&[Part::Quorum, Part::Chain, Part::Backup(Order::Aardvark)]),
        schedule(&[Part::RingFast, Part::Backup(Order::Aardvark)]),
        schedule(&[Part::Quorum, Part::Backup(Order::Ritas)]),
        Protocol::Azyzzyva,
        Protocol::Aliph,
        Protocol::Ring,
        schedule(&[Part::Quorum, Part::ZLight, Part::Chain, Part::Backup(Order::Pbft)]),
        schedule(&[Part::Quorum, Part::RingFast, Part::Backup(Order::Pbft)]),
        schedule(&[Part::Chain, Part::Chain, Part::Backup(Order::Pbft), Part::Backup(Order::Pbft)]),
        schedule(&[Part::RingResilient]),
        schedule(&[Part::Quorum, Part::RingResilient]),
        schedule(&[Part::Chain, Part::RingResilient]),
        schedule(&[Part::RingResilient, Part::Chain, Part::Backup(Order::Pbft)]),
    ]
}

/// Those without RITAS, which takes a thousand messages where others take ten.
pub(super) fn protocols_but_ritas() -> impl Iterator<Item = Protocol> {
    let has_ritas = |protocol: &Protocol| protocol.schedule().parts().contains(&Part::Backup(Order::Ritas));
    protocols().into_iter().filter(move |protocol| !has_ritas(protocol))
}

/// Ring, and Backup where it aborts.
pub(super) fn ring_fast() -> Protocol {
    Protocol::Schedule(Schedule::new(&[Part::RingFast, Part::Backup(Order::Pbft)]).unwrap())
}

/// Progress and Termination: without a fault everything is served without a timer, whatever overtakes what (abs-L8),
/// across lightweight checkpoints that no two replicas take at once (abs-L9). In Quorum clients take turns: contention
/// is a fault there.
#[test]
fn without_faults_nobody_panics() {
    for protocol in protocols() {
        for (n, seed) in [(4, 1), (4, 2), (7, 3), (10, 4)] {
            let mut run = Run::new(protocol, n, 4, seed);
            run.scrambled = true;
            let first = run.net.cluster.part(InstanceId(1));
            let takes_turns = first == Part::Quorum;
            let is_resilient = first.is_resilient();
            for _ in 0..10 {
                for session in 0..4 {
                    run.invoke(session);
                    if takes_turns {
                        run.settle();
                    }
                }
                run.settle();
                if is_resilient {
                    // A request that reaches only the primary of a Backup that is over has to be sent again.
                    run.finish();
                }
                assert!(run.is_idle(), "{protocol:?}, n = {n}");
            }
            assert_eq!(run.commits.len(), 40);
            assert!(!run.anybody_said("PANIC"), "{protocol:?}");
            assert!(is_resilient || run.instances().iter().all(|i| *i == 1), "{protocol:?}");
            run.check();
            let journals = run.journals();
            assert!(journals.iter().all(|journal| journal.len() <= 40));
            assert!(is_resilient || run.net.noticed(0, |n| matches!(n, Notice::Anchored { .. })));
        }
    }
}

/// Contention, lost messages, a replica that comes and goes: everything is served in the end, and all orders hold.
#[test]
fn whatever_gets_lost_the_orders_hold() {
    for protocol in protocols() {
        for seed in 0..6 {
            let mut run = Run::new(protocol, 4, 3, seed);
            trouble(&mut run, 60, |_| ());
            run.finish();
            run.check();
            assert!(run.commits.len() >= 3);
        }
    }
}

/// ring-A14: one message is lost, each in turn. Everything is served nevertheless.
#[test]
fn whichever_one_message_is_lost_everything_is_served() {
    /// Two clients, twice; the first `kept` messages arrive, the next one does not. How many there were.
    fn play(protocol: Protocol, kept: usize) -> usize {
        let mut run = Run::new(protocol, 4, 2, 1);
        let seen = Rc::new(Cell::new(0));
        let counter = seen.clone();
        run.net.lose(move |_| counter.replace(counter.get() + 1) == kept);
        for _ in 0..2 {
            run.invoke(0);
            run.invoke(1);
            run.finish();
        }
        let messages = seen.get();
        run.net.heal();
        run.check();
        assert_eq!(run.commits.len(), 4, "{protocol}: without message {kept}");
        messages
    }
    for protocol in protocols_but_ritas() {
        let messages = play(protocol, usize::MAX);
        (0..messages).for_each(|kept| _ = play(protocol, kept));
    }
}

/// Contention, lost messages, and two replicas of seven that come and go.
#[test]
fn whatever_gets_lost_the_orders_hold_among_seven() {
    for protocol in protocols_but_ritas() {
        let mut run = Run::new(protocol, 7, 3, 77);
        trouble(&mut run, 40, |_| ());
        run.finish();
        run.check();
    }
}

/// One replica lies about what it logged, to each other one differently (abs-K6, abs-K20); a client panics at will
/// (abs-K14); what was said once is said again (abs-K10).
#[test]
fn whatever_a_liar_reports_the_orders_hold() {
    for protocol in protocols() {
        for seed in 0..6 {
            let mut run = Run::new(protocol, 4, 3, 1_000 + seed);
            run.liar = Some(3);
            trouble(&mut run, 60, lie);
            run.finish();
            run.check();
        }
    }
}

/// So many rounds in which messages get lost, one replica now and then hears and says nothing, and `act` acts.
pub(super) fn trouble(run: &mut Run, rounds: usize, mut act: impl FnMut(&mut Run)) {
    let (isolated, random) = (Rc::new(Cell::new(None)), Rc::new(RefCell::new(run.random.clone())));
    let victim = isolated.clone();
    run.net.lose(move |frame| {
        let is_victim = |party| matches!(party, Principal::Replica(id) if victim.get() == Some(id.0));
        is_victim(frame.from) || is_victim(frame.to) || random.borrow_mut().once_in(25)
    });
    run.scrambled = true;
    for _ in 0..rounds {
        for session in 0..run.net.clients.len() {
            if run.random.once_in(3) {
                run.invoke(session);
            }
        }
        if run.random.once_in(12) {
            isolated.set(Some(run.random.below(run.net.cluster.replicas.n()) as u8));
        } else if run.random.once_in(6) {
            isolated.set(None);
        }
        act(run);
        run.round();
        if run.random.once_in(3) {
            let span = 1 + run.random.below(200) as u64;
            run.pass(span);
        }
    }
    run.net.heal();
}

/// What replica 3 and the last client do besides what they should.
fn lie(run: &mut Run) {
    let liar = r(3);
    let instances = run.instances();
    let instance = InstanceId(instances[run.random.below(3)]);
    for receiver in 0..3 {
        if run.random.once_in(4) {
            let report = false_report(run, instance);
            let signed = Arc::new(run.net.keyring(liar).sign(report).into());
            let message = SwitchMessage::Abort(signed);
            run.net.forge(liar, r(receiver), Message::Switch(Switch { instance, message }));
        }
    }
    if run.random.once_in(10) {
        let receiver = run.random.below(4) as u8;
        run.net.forge(c(2), r(receiver), panic(instance, 2));
    }
    if run.random.once_in(2) && !run.net.sent.is_empty() {
        let again = run.net.sent[run.random.below(run.net.sent.len())].clone();
        run.net.in_flight.push(again);
    }
}

/// Somebody's report with something wrong about it, or one that is made up.
fn false_report(run: &mut Run, instance: InstanceId) -> AbortReport {
    let known = run.net.sent.iter().rev().find_map(|frame| match &frame.message {
        Message::Switch(Switch { message: SwitchMessage::Abort(report), .. }) => Some(report.claims().clone()),
        _ => None,
    });
    let anchor = Boundary::default();
    let certificates = Certificates::default();
    let (boundaries, digests) = (Vec::new(), Vec::new());
    let empty =
        AbortReport { instance, anchor, boundaries, digests, low_load: true, silent: ReplicaSet::NOBODY, certificates };
    let mut report = known.unwrap_or(empty);
    report.instance = instance;
    match run.random.below(5) {
        0 => report.digests.truncate(report.digests.len() / 2),
        1 => report.digests.push(Digest([run.random.below(3) as u8; 32])),
        2 => report.anchor.position = u64::MAX - run.random.below(3) as u64,
        3 => report.digests.clear(),
        _ => report.anchor = Boundary::default(),
    }
    report
}

/// PANIC again and again makes one report and one switch; one that comes too late stops nothing (abs-L7).
#[test]
fn panics_are_idempotent() {
    for protocol in [Protocol::Quorum, Protocol::ZLight, Protocol::Chain] {
        let mut run = Run::new(protocol, 4, 2, 1);
        run.invoke(0);
        run.settle();
        let panic = panic(InstanceId(1), 1);
        for _ in 0..5 {
            for id in 0..4 {
                run.net.forge(c(1), r(id), panic.clone());
            }
            run.settle();
        }
        assert_eq!(run.instances(), [2; 4]);
        let reports = |id| run.net.said(r(id), "ABORT").len();
        assert_eq!([0, 1, 2, 3].map(reports), [3; 4], "once to each other replica");
        let told = |client| run.net.said(r(0), "ACTIVE").iter().filter(|frame| frame.to == client).count();
        assert_eq!((told(c(1)), told(c(0))), (5, 1), "the client is told each time, whoever else was here once");
        // It asks again in the Backup, whose k requests bring the next instance; old panics do not end it.
        for _ in 0..K {
            run.invoke(0);
            run.finish();
        }
        assert_eq!(run.instances(), [3; 4]);
        for id in 0..4 {
            run.net.forge(c(1), r(id), panic.clone());
        }
        run.settle();
        assert_eq!(run.instances(), [3; 4]);
        run.check();
    }
}

/// A checkpoint of a speculative instance needs all 3f+1, and without one the log stops at its bound.
#[test]
fn checkpoints_need_everybody() {
    for protocol in [Protocol::Quorum, Protocol::ZLight, Protocol::Chain, ring_fast()] {
        let mut run = Run::new(protocol, 4, 1, 1);
        run.net.lose(|frame| frame.from == r(3) && matches!(kind(&frame.message).as_str(), "LCS" | "ANCHOR"));
        let bound = run.net.cluster.history_bound();
        let mut logged = 0;
        while logged <= bound {
            run.invoke(0);
            run.settle();
            if !run.is_idle() {
                break;
            }
            logged += 1;
        }
        assert_eq!(logged, bound, "{protocol:?}");
        assert!((0..3).all(|id| !run.net.noticed(id, |notice| matches!(notice, Notice::Anchored { .. }))));
        // Who hears of all four is certain; and once the others do, everything goes on.
        run.net.heal();
        run.finish();
        run.check();
    }
}
