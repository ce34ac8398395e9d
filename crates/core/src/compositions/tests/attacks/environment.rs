//! Machines that forget, clocks that lie, links that are slow.

use crate::compositions::tests::run::Run;
use crate::compositions::tests::script::Report;
use crate::ids::InstanceId;
use crate::schedule::Protocol;
use crate::testing::net::{Frame, r};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

const PROTOCOLS: [Protocol; 4] = [Protocol::Quorum, Protocol::ZLight, Protocol::Chain, Protocol::Aliph];

/// abs-S13: a replica crashes after it has answered, and comes back from its log. It reports what it answered, so that
/// a liar who denies it is one too few.
#[test]
fn k25_s13_who_restarts_remembers_what_it_answered() {
    for protocol in PROTOCOLS {
        let mut run = Run::new(protocol, 4, 2, 1);
        run.liar = Some(1);
        for _ in 0..6 {
            run.invoke(0);
            run.settle();
        }
        assert_eq!(run.commits.len(), 6);
        run.net.restart(2, false);
        let before = run.clone().stop(InstanceId(1));
        let short = run.signed(1, &denied(&before[&1]));
        for pair in [[0, 2], [2, 3]] {
            run.proved(pair.map(|id| &before[&id]).into_iter().chain([&short]));
        }
        run.invoke(0);
        run.finish();
        run.check();
    }
}

/// A report that denies all that was logged above its anchor.
fn denied(report: &Report) -> Report {
    let mut report = report.clone();
    report.claims_mut().boundaries.clear();
    report.claims_mut().digests.clear();
    report
}

/// abs-K25: a replica loses its disk. It is the one that may be faulty: whatever it says, the others keep what
/// committed, and behind the next Backup it has the same state as they.
#[test]
fn k25_s13_a_replica_without_memory_is_healed_by_a_backup() {
    for protocol in PROTOCOLS {
        let mut run = Run::new(protocol, 4, 2, 1);
        run.liar = Some(3);
        for _ in 0..6 {
            run.invoke(0);
            run.settle();
        }
        run.net.restart(3, true);
        for _ in 0..10 {
            run.invoke(0);
            run.invoke(1);
            run.finish();
        }
        run.pass(5_000);
        run.check();
        run.liar = None;
        let journals = run.journals();
        assert!(journals.iter().all(|journal| *journal == journals[0]), "{protocol}: {journals:?}");
    }
}

/// abs-K26: the clock of one replica, or all clocks, are off by as much as there is. Time decides when somebody gives
/// up, never what is true; with one clock off, everybody is served.
#[test]
fn k26_clocks_decide_nothing() {
    const EVER: i64 = 1 << 50;
    for protocol in PROTOCOLS {
        for skews in [[EVER, 0, 0, 0], [0, -EVER, 0, 0], [0, 0, 0, EVER], [EVER, -EVER, 0, EVER / 2]] {
            let mut run = Run::new(protocol, 4, 2, 1);
            run.net.skews = skews.to_vec();
            let serves = skews.iter().filter(|skew| **skew != 0).count() == 1;
            for _ in 0..6 {
                run.invoke(0);
                run.invoke(1);
                if serves {
                    run.finish();
                } else {
                    run.pass(3_000);
                }
            }
            run.check();
            assert!(run.commits.len() == 12 || !serves, "{protocol}");
        }
    }
}

/// abs-K27: one replica is slower than any client's patience, and everything overtakes everything else. Instances
/// abort, and that is all.
#[test]
fn k27_a_slow_replica_costs_instances_only() {
    for protocol in PROTOCOLS {
        let mut run = Run::new(protocol, 4, 2, 7);
        run.scrambled = true;
        let slow: Rc<RefCell<Vec<Frame>>> = Rc::default();
        let held = slow.clone();
        run.net.lose(move |frame| {
            let is_slow = frame.from == r(3);
            if is_slow {
                held.borrow_mut().push(frame.clone());
            }
            is_slow
        });
        for _ in 0..8 {
            run.invoke(0);
            run.invoke(1);
            run.pass(2_000);
            run.net.in_flight.append(&mut slow.borrow_mut());
            run.pass(100);
        }
        assert!(run.instances().iter().all(|instance| *instance > 1), "{protocol}");
        run.net.heal();
        run.net.in_flight.append(&mut slow.borrow_mut());
        run.finish();
        run.check();
    }
}
