//! Which instance serves which load: from Quorum to Chain when clients come, and back when they are gone.

use super::run::Run;
use crate::ids::InstanceId;
use crate::notice::Notice;
use crate::protocols::quorum::crowd::{FEW, WINDOW, WINDOWS};
use crate::protocols::speculative::LOW_LOAD;
use crate::schedule::{Order, Part, Protocol, Schedule};
use crate::stop::StopReason;
use core::cell::RefCell;

/// These clients ask in each of so many windows, one after the other, so that they never contend.
fn ask(run: &mut Run, clients: usize, windows: u32) {
    for _ in 0..windows {
        for client in 0..clients {
            run.invoke(client);
            run.settle();
        }
        run.pass(WINDOW.0 / 1_000);
    }
}

fn part(run: &Run) -> Part {
    let instances = run.instances();
    assert!(instances.iter().all(|instance| *instance == instances[0]), "{instances:?}");
    run.net.cluster.part(InstanceId(instances[0]))
}

#[test]
fn many_clients_leave_quorum_without_a_panic_and_one_alone_returns() {
    let mut run = Run::new(Protocol::Aliph, 4, 1 + FEW as u32, 1);
    ask(&mut run, 1 + FEW, WINDOWS);
    assert_eq!(part(&run), Part::Quorum);
    ask(&mut run, 1 + FEW, 1);
    assert!(run.is_idle(), "nobody's patience came to an end");
    assert_eq!(part(&run), Part::Chain);
    ask(&mut run, 1 + FEW, 200);
    assert_eq!(run.instances(), [2; 4], "and Chain stays as long as they ask");
    let windows_of_low_load = 2 * (LOW_LOAD.0 / WINDOW.0) as u32;
    ask(&mut run, 1, 2 * windows_of_low_load);
    assert_eq!(run.instances(), [4; 4]);
    assert_eq!(part(&run), Part::Quorum);
    assert!(run.is_idle() && !run.anybody_said("PANIC"));
    run.check();
}

#[test]
fn few_clients_stay_in_quorum_however_long() {
    let mut run = Run::new(Protocol::Aliph, 4, FEW as u32, 2);
    ask(&mut run, FEW, 10 * WINDOWS);
    assert_eq!(run.instances(), [1; 4]);
    run.check();
}

#[test]
fn many_clients_stay_in_quorum_where_nothing_better_comes_next() {
    let twice = Schedule::new(&[Part::Quorum, Part::Quorum, Part::Backup(Order::Pbft)]).unwrap();
    for protocol in [Protocol::Quorum, Protocol::Schedule(twice)] {
        let mut run = Run::new(protocol, 4, 1 + FEW as u32, 3);
        ask(&mut run, 1 + FEW, 3 * WINDOWS);
        assert_eq!(run.instances(), [1; 4], "{protocol}");
        run.check();
    }
}

#[test]
fn whatever_a_crowd_loses_on_its_way_the_orders_hold() {
    let mut left = 0;
    for seed in 0..12 {
        let mut run = Run::new(Protocol::Aliph, 4, 2 + FEW as u32, seed);
        let random = RefCell::new(run.random.clone());
        run.net.lose(move |_| random.borrow_mut().once_in(300));
        ask(&mut run, 2 + FEW, 10 * WINDOWS);
        run.net.heal();
        run.finish();
        run.check();
        let stopped = |notice: &Notice| matches!(notice, Notice::Stopped { reason: StopReason::Crowded, .. });
        left += u32::from(run.net.noticed(0, stopped));
    }
    assert!(left > 0, "in no run was the crowd the reason to leave");
}
