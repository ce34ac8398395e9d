//! Sentences of *Practical Byzantine Fault Tolerance* (OSDI 1999) as tests, and golden scripts. The page on PBFT,
//! `docs/papers/pbft.md`, says where we deviate.

use super::tests::forging::{batch, commit, pre_prepare, prepare, request, view_change};
use crate::cluster::Limits;
use crate::digest::Digest;
use crate::notice::Notice;
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::services::Counter;
use crate::testing::net::{Net, c, done, kind, r};
use alloc::vec::Vec;

/// A client that asks everybody twice makes itself heard by all backups; this is how long that takes.
const RETRY: u64 = 600_000;

/// Section 4.2: a backup accepts a PRE-PREPARE if "it has not accepted a pre-prepare message for view v and sequence
/// number n containing a different digest".
#[test]
fn a_backup_accepts_one_proposal_per_view_and_position() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0]);
    let one = batch(net.now, alloc::vec![request(&net, 0, 1, b"")]);
    let two = batch(net.now, alloc::vec![request(&net, 0, 2, b"")]);
    net.forge(r(0), r(1), pre_prepare(0, 1, &one));
    net.forge(r(0), r(1), pre_prepare(0, 1, &two));
    net.round();
    assert_eq!(net.said(r(1), "PREPARE").len(), 3, "one PREPARE to each of the others");
    assert_eq!(net.rejected(1, r(0), Rejection::Equivocation), 1);
}

/// Section 4.2: a backup accepts a PRE-PREPARE if "the sequence number in the pre-prepare message is between a low
/// water mark, h, and a high water mark, H."
#[test]
fn positions_outside_the_window_are_refused() {
    let mut net = Net::new(4, Limits { checkpoint_interval: 4, ..Limits::default() });
    net.isolate(&[0]);
    let proposal = batch(net.now, alloc::vec![request(&net, 0, 1, b"")]);
    let high = net.cluster.window();
    for sequence in [0, high, high + 1, u64::MAX] {
        net.forge(r(0), r(1), pre_prepare(0, sequence, &proposal));
        net.forge(r(2), r(1), prepare(0, sequence, proposal.digest()));
        net.forge(r(2), r(1), commit(0, sequence, proposal.digest()));
    }
    net.round();
    assert_eq!(net.rejected(1, r(0), Rejection::OutsideWindow), 3, "H itself is inside");
    assert_eq!(net.rejected(1, r(2), Rejection::OutsideWindow), 4, "votes at or below h are merely late");
    assert_eq!(net.hosts[1].replica.report().slots, 1);
}

/// Section 4.2: prepared needs "2f prepares from different backups that match the pre-prepare."
#[test]
fn a_vote_counts_once_however_often_it_is_said() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0, 2, 3]);
    let proposal = batch(net.now, alloc::vec![request(&net, 0, 1, b"")]);
    net.forge(r(0), r(1), pre_prepare(0, 1, &proposal));
    net.forge(r(0), r(1), prepare(0, 1, proposal.digest()));
    net.forge(r(2), r(1), prepare(0, 1, Digest([9; 32])));
    net.forge(r(2), r(1), prepare(0, 1, proposal.digest()));
    net.forge(r(2), r(1), prepare(0, 1, Digest([9; 32])));
    net.round();
    assert_eq!(net.rejected(1, r(0), Rejection::WrongSender), 1, "the primary's PREPARE is its PRE-PREPARE");
    assert_eq!(net.rejected(1, r(2), Rejection::Equivocation), 1);
    assert_eq!(net.rejected(1, r(2), Rejection::Duplicate), 1);
    assert!(net.said(r(1), "COMMIT").is_empty(), "one's own vote and a contradictory one are not enough");
    net.forge(r(3), r(1), prepare(0, 1, proposal.digest()));
    net.round();
    assert_eq!(net.said(r(1), "COMMIT").len(), 3);
}

/// Section 4.2: committed-local needs "2f + 1 commits (possibly including its own) from different replicas that match
/// the pre-prepare".
#[test]
fn commits_of_different_replicas_decide() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0, 2, 3]);
    let proposal = batch(net.now, alloc::vec![request(&net, 0, 1, b"")]);
    net.forge(r(0), r(1), pre_prepare(0, 1, &proposal));
    for _ in 0..3 {
        net.forge(r(2), r(1), commit(0, 1, proposal.digest()));
    }
    net.forge(r(3), r(1), commit(0, 1, Digest([9; 32])));
    net.forge(r(0), r(1), commit(0, 1, proposal.digest()));
    net.round();
    assert_eq!(net.executed()[1], 0);
    assert_eq!(net.rejected(1, r(2), Rejection::Duplicate), 2);
    net.forge(r(2), r(1), prepare(0, 1, proposal.digest()));
    net.forge(r(3), r(1), prepare(0, 1, proposal.digest()));
    net.round();
    assert_eq!(net.executed()[1], 1, "its own COMMIT is the third");
}

/// Section 4.3: a replica with a stable checkpoint "discards all pre-prepare, prepare, and commit messages with
/// sequence number less than or equal to n from its log".
#[test]
fn the_log_is_cut_at_the_stable_checkpoint() {
    let mut net = Net::new(4, Limits { checkpoint_interval: 4, ..Limits::default() });
    for value in 1..=6 {
        assert_eq!(net.add(1), done(value));
    }
    for host in &net.hosts {
        let report = host.replica.report();
        assert_eq!((report.stable.0, report.slots), (4, 2));
    }
}

/// Section 4.1: "Otherwise, if the replica is not the primary, it relays the request to the primary."
#[test]
fn a_backup_passes_on_what_a_client_had_to_ask_it() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| frame.from == c(0) && frame.to == r(0));
    assert_eq!(net.add(1), None);
    net.pass(RETRY);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
    assert_eq!(net.views(), [0; 4]);
    assert!((1..4).all(|id| net.said(r(id), "REQUEST").len() == 1));
}

/// Section 4.1: "If the request has already been processed, the replicas simply re-send the reply".
#[test]
fn a_request_takes_effect_once_however_often_it_is_sent() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "REPLY");
    assert_eq!(net.add(1), None);
    net.pass(5_000_000);
    net.heal();
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
    assert_eq!(net.executed(), [1; 4]);
    assert_eq!(net.add(1), done(2));
}

/// Section 4.5.2: "if a replica receives a set of f + 1 valid view-change messages from other replicas for views
/// greater than its current view, it sends a view-change message for the smallest view in the set, even if its timer
/// has not expired".
#[test]
fn f_plus_1_view_changes_pull_a_replica_along_to_the_smallest_view() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0, 2, 3]);
    let first = view_change(&net, 2, 5);
    net.forge(r(2), r(1), first.clone());
    net.forge(r(2), r(1), first);
    net.round();
    assert_eq!(net.views()[1], 0, "one replica alone, however often it asks, moves nobody");
    let second = view_change(&net, 3, 3);
    net.forge(r(3), r(1), second);
    net.round();
    assert_eq!(net.views()[1], 3);
    assert_eq!(net.said(r(1), "VIEW-CHANGE").len(), 3);
}

/// When a replica left for which view.
fn starts(net: &Net, id: usize) -> Vec<(u64, u64)> {
    let notices = net.hosts[id].notices.iter();
    notices
        .filter_map(|(at, notice)| match notice {
            Notice::ViewChangeStarted { view, .. } => Some((at.0, view.0)),
            _ => None,
        })
        .collect()
}

/// Section 4.5.2: "it starts the view change for view v + 2 but this time it will wait 2T before starting a view change
/// for view v + 3." And T falls back when there is progress.
#[test]
fn the_time_out_doubles_until_there_is_progress() {
    let limits = Limits::default();
    let (timeout, most) = (limits.view_timeout.0, limits.view_timeout_max.0);
    let mut net = Net::new(4, limits);
    net.lose(|frame| matches!(kind(&frame.message).as_str(), "PRE-PREPARE" | "NEW-VIEW"));
    assert_eq!(net.add(1), None);
    net.pass(150_000_000);
    let times = starts(&net, 3);
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert_eq!(waits[..6], [2 * timeout, 4 * timeout, 8 * timeout, most, most, most]);
    assert!(times.iter().map(|(_, view)| *view).eq(1..=times.len() as u64), "one view after the other: {times:?}");
    net.heal();
    net.pass(60_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
    assert_eq!(net.add(1), done(2));
    // Progress was made: the next suspicion waits the normal time again.
    net.lose(|frame| kind(&frame.message) == "PRE-PREPARE");
    let (before, count) = (net.now.0, starts(&net, 3).len());
    assert_eq!(net.add(1), None);
    net.pass(10_000_000);
    let retry = net.cluster.limits.client_retry.0;
    assert_eq!(starts(&net, 3)[count].0, before + 10 + retry + timeout);
}

/// Section 4.5.2: "a replica that multicasts a view-change message for view v + 1 waits for 2f + 1 view-change messages
/// for view v + 1 and then starts its timer".
#[test]
fn nobody_runs_ahead_alone() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[3]);
    net.submit(0, &Counter::add(1), false);
    net.settle();
    net.isolate(&[0, 1, 2, 3]);
    // Replica 3 hears a client but no replica: it leaves view 0, once.
    let waiting = request(&net, 0, net.now.0 + 1, &Counter::add(1));
    net.forge(c(0), r(3), Message::Request(waiting));
    net.pass(100_000_000);
    assert_eq!(starts(&net, 3).len(), 1);
    assert_eq!(net.views()[3], 1);
}

#[test]
fn every_script_goes_as_written() {
    crate::testing::stage::play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocols/pbft/scripts"), 6);
}
