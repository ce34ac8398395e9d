//! How replicas come to the history with which an instance begins: what was executed beyond it is taken back, what lies
//! in it is executed once and answered, and what is missing can be had.

use super::reports::with_checkpoints;
use crate::compositions::tests::run::Run;
use crate::compositions::tests::script::init;
use crate::ids::InstanceId;
use crate::notice::Notice;
use crate::schedule::Protocol;
use crate::testing::net::{c, kind, r};
use alloc::vec;

/// abs-K8, abs-S4: two clients race in Quorum. Both orders exist; one is taken back where it was executed, each
/// operation is executed once, and both are answered from what Chain inherited, without a timer.
#[test]
fn k08_s4_what_a_race_executed_is_answered_once() {
    let mut run = Run::new(Protocol::Aliph, 4, 2, 1);
    run.invoke(0);
    run.invoke(1);
    // The second client's request overtakes the first one's at replicas 2 and 3.
    run.net.in_flight.sort_by_key(|frame| (frame.to, (frame.from == c(0)) == (frame.to >= r(2))));
    run.round();
    assert_eq!(run.journals(), [[1, 2], [1, 2], [2, 1], [2, 1]]);
    run.settle();
    assert!(run.is_idle(), "both are answered from what Chain inherited, without a timer: {:?}", run.instances());
    assert!(run.commits.iter().all(|commit| commit.instance == InstanceId(2)));
    let journals = run.journals();
    assert!(journals.iter().all(|journal| *journal == journals[0]), "{journals:?}");
    assert_eq!(journals[0].len(), 2);
    run.check();
}

/// abs-S4: what only one replica had executed is not in the init history, and the client table forgets it with the rest
/// of the state: asked again it is logged like anything new, by everybody.
#[test]
fn k08_s4_what_was_taken_back_can_be_asked_again() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    run.invoke(0);
    run.settle();
    run.invoke(1);
    run.round_of(|frame| frame.to == r(2));
    assert_eq!(run.journals()[2], [1, 2]);
    let reports = run.stop(InstanceId(1));
    run.begin([[&reports[&0], &reports[&1], &reports[&3]]; 4]);
    run.settle();
    run.redirect(1, InstanceId(2));
    run.settle();
    assert!(run.is_idle(), "answered in Chain, without a timer");
    assert_eq!(run.commits.last().map(|commit| commit.instance), Some(InstanceId(2)));
    assert_eq!(run.journals(), vec![vec![1, 2]; 4]);
    run.check();
}

/// abs-K9, abs-S5: a correct replica had executed more than the init history has. Then it is one of the two that vouch
/// to the client for a read, and the other one, a liar, copies what it says.
#[test]
fn k09_s5_a_dropped_tail_is_not_read() {
    for liar in [None, Some(3)] {
        let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
        run.liar = liar;
        run.invoke(0);
        run.settle();
        run.invoke(1);
        // With the liar, whose machine stands for the copying.
        run.round_of(|frame| frame.to == r(2) || liar.is_some() && frame.to == r(3));
        assert_eq!(run.journals()[2], [1, 2]);
        let reports = run.stop(InstanceId(1));
        let short = run.signed(3, &reports[&0]);
        // Its client does not ask again.
        run.net.lose(|frame| frame.from == c(1));
        run.begin([[&reports[&0], &reports[&1], &short]; 4]);
        run.settle();
        run.redirect(0, InstanceId(2));
        run.invoke(0);
        run.settle();
        let commit = run.commits.last().unwrap();
        assert_eq!((commit.instance, &commit.history[..]), (InstanceId(2), &[1, 3][..]));
        run.net.heal();
        run.finish();
        run.check();
    }
}

/// abs-K11, abs-S8: a second proof that this instance may begin, with a shorter history, comes when everything that was
/// logged is certain and the log is empty. Whether an instance has begun is a question of its own (abs-D2).
#[test]
fn k11_s8_an_instance_begins_once() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    run.liar = Some(1);
    run.invoke(0);
    run.round_of(|frame| frame.to == r(0));
    let reports = run.stop(InstanceId(1));
    let like_r0 = run.signed(1, &reports[&0]);
    run.begin([[&reports[&0], &like_r0, &reports[&3]]; 4]);
    run.settle();
    run.redirect(0, InstanceId(2));
    run.settle();
    for _ in 0..3 {
        run.invoke(0);
        run.settle();
    }
    assert_eq!(run.commits.len(), 4);
    let anchored = |id| run.net.noticed(id, |notice| matches!(notice, Notice::Anchored { position: 4, .. }));
    assert!((0..4).all(anchored), "the log is empty");
    let late = init([&reports[&1], &reports[&2], &reports[&3]]);
    for id in 0..4 {
        run.net.forge(r(u8::from(id == 0)), r(id), late.clone());
    }
    run.settle();
    run.invoke(0);
    run.settle();
    assert!(run.is_idle(), "it goes on as if nothing had come");
    assert!(!run.begun.iter().any(|(_, _, history)| history.is_empty()));
    run.check();
}

/// abs-K12, abs-L2: a client gave its request to one replica only, which took it back when it began with another
/// history. Two others are to begin with it, and the liar who vouched for it says nothing (abs-D9).
#[test]
fn k12_l2_what_was_vouched_for_can_be_had() {
    let mut run = Run::new(Protocol::Aliph, 4, 3, 1);
    run.liar = Some(1);
    run.invoke(0);
    run.round_of(|frame| frame.to == r(0));
    let reports = run.stop(InstanceId(1));
    let like_r0 = run.signed(1, &reports[&0]);
    run.net.lose(|frame| frame.from == r(1));
    let with = [&reports[&0], &like_r0, &reports[&3]];
    let without = [&reports[&0], &reports[&2], &reports[&3]];
    run.begin([without, without, with, with]);
    run.settle();
    assert_eq!(run.init_of(0, InstanceId(2)).map(<[u32]>::len), Some(0));
    assert_eq!(
        [2, 3].map(|id| run.init_of(id, InstanceId(2)).map(<[u32]>::len)),
        [Some(1); 2],
        "fetched from replica 0"
    );
    run.invoke(2);
    run.finish();
    run.check();
}

/// abs-L4: the log is full of what is not certain when Quorum aborts. All replicas begin Chain, not only those that the
/// head's next message reaches, and make it certain at once, so that there is room.
#[test]
fn l4_a_full_init_history_leaves_room() {
    let mut run = Run::new(Protocol::Aliph, 4, 2, 1);
    run.net.lose(|frame| matches!(kind(&frame.message).as_str(), "LCS" | "ANCHOR"));
    let bound = run.net.cluster.history_bound();
    for _ in 0..bound {
        run.invoke(0);
        run.settle();
    }
    assert_eq!(run.commits.len() as u64, bound);
    run.net.heal();
    let reports = run.stop(InstanceId(1));
    assert_eq!(reports[&0].claims().digests.len() as u64, bound);
    run.begin([[&reports[&0], &reports[&1], &reports[&2]]; 4]);
    run.settle();
    run.redirect(0, InstanceId(2));
    for _ in 0..3 {
        run.invoke(0);
        run.settle();
    }
    assert_eq!(run.commits.last().map(|commit| commit.instance), Some(InstanceId(2)), "Chain works");
    assert_eq!(run.commits.len() as u64, bound + 3);
    run.check();
}

/// abs-L9: one replica forgets what is certain before the others do. The digest of the history says the same
/// everywhere, so that nobody panics (abs-D3).
#[test]
fn l9_digests_do_not_depend_on_what_is_forgotten() {
    for protocol in [Protocol::Quorum, Protocol::ZLight, Protocol::Chain] {
        let mut run = with_checkpoints(protocol, 1, 2);
        run.net.lose(|frame| matches!(kind(&frame.message).as_str(), "LCS" | "ANCHOR") && frame.to != r(2));
        for _ in 0..6 {
            run.invoke(0);
            run.settle();
        }
        assert!(run.net.noticed(2, |notice| matches!(notice, Notice::Anchored { position: 6, .. })), "{protocol}");
        assert!(!run.net.noticed(0, |notice| matches!(notice, Notice::Anchored { .. })));
        assert_eq!(run.commits.len(), 6);
        assert!(!run.anybody_said("PANIC"), "{protocol}");
        run.check();
    }
}
