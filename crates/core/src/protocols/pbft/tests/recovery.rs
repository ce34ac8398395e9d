//! Crashes, restarts, and a disk that was lost.

use super::forging::view_change;
use crate::cluster::{ClientAuth, Limits};
use crate::digest::Digest;
use crate::ids::{Sequence, View};
use crate::notice::Notice;
use crate::protocols::pbft::{Here, Ordering, PbftMessage, PbftRecord, Status};
use crate::registry::{InstanceRecord, LogRecord, Message};
use crate::services::Counter;
use crate::testing::net::{Net, c, done, kind, ordering, r};
use alloc::collections::BTreeMap;

#[test]
fn a_restarted_cluster_has_every_acknowledged_request() {
    let mut net = Net::new(4, Limits::default());
    for value in 1..=5 {
        assert_eq!(net.add(1), done(value));
    }
    for id in 0..4 {
        net.restart(id, false);
    }
    net.settle();
    net.pass(3_000_000);
    assert_eq!(net.add(1), done(6));
    assert_eq!(net.executed(), [6; 4]);
}

/// What was executed for good is executed again without anybody's help: everybody may have crashed. Also what was
/// fetched, and with the bodies of big requests.
#[test]
fn a_replica_finds_everything_that_it_executed_in_its_own_log() {
    for left_out in [false, true] {
        let mut net = Net::new(4, Limits { inline_bytes_max: 4, ..Limits::default() });
        net.lose(move |frame| {
            let ordering = matches!(kind(&frame.message).as_str(), "PRE-PREPARE" | "PREPARE" | "COMMIT" | "REQUEST");
            left_out && frame.to == r(3) && ordering
        });
        for value in 1..=3 {
            assert_eq!(net.add(1), done(value));
        }
        net.pass(3_000_000);
        assert_eq!(net.executed(), [3; 4]);
        net.lose(|_| true);
        let history = net.hosts[0].replica.report().history;
        for id in 0..4 {
            net.restart(id, false);
            assert_eq!(net.hosts[id].replica.report().history, history, "replica {id}, left out: {left_out}");
        }
        assert_eq!(net.executed(), [3; 4]);
    }
}

/// A view that was entered stays entered.
#[test]
fn a_restart_does_not_leave_the_view() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0]);
    assert_eq!(net.add(1), None);
    net.pass(4_000_000);
    net.lose(|_| true);
    for id in 1..4 {
        net.restart(id, false);
        let report = net.hosts[id].replica.report();
        assert_eq!((report.view.0, report.changing_view), (1, false), "replica {id}");
    }
}

fn is_prepare_of_first_view(message: &Message) -> bool {
    let Message::Ordering(Ordering { message: PbftMessage::Prepare(vote), .. }) = message else { return false };
    vote.view == View(0)
}

fn is_of_second_batch(record: &LogRecord) -> bool {
    let InstanceRecord::Pbft(PbftRecord::Accepted(accepted)) = &record.record else { return false };
    accepted.sequence == Sequence(2)
}

/// A snapshot's records say again what older segments, which are still there, have said. What the first view only
/// proposed stays void: else the second one had no place for a batch there.
#[test]
fn what_a_log_says_twice_is_proposed_once() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, Limits::default());
    net.lose(move |frame| is_prepare_of_first_view(&frame.message));
    for client in 0..2 {
        net.submit(client, &Counter::add(1), false);
        net.settle();
    }
    let accepted = net.hosts[3].log.iter().find(|record| is_of_second_batch(record)).cloned().expect("two batches");
    net.lose(move |frame| [frame.from, frame.to].contains(&r(0)) || is_prepare_of_first_view(&frame.message));
    net.pass(4_000_000);
    assert_eq!(net.views()[1..], [1; 3]);
    assert_eq!(net.executed()[1..], [1; 3], "the second view orders both at once");
    net.hosts[3].log.push(accepted);
    net.restart(3, false);
    net.settle();
    net.completed.clear();
    assert_eq!(net.add_within(10, 0, 1), done(3));
}

/// Acknowledged means prepared at 2f+1, on their disks, even if nobody committed.
#[test]
fn what_only_tentative_replies_acknowledged_survives_a_crash_of_all() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "COMMIT");
    assert_eq!(net.add(1), done(1));
    for id in 0..4 {
        net.restart(id, false);
    }
    net.heal();
    net.settle();
    net.pass(3_000_000);
    assert_eq!(net.executed(), [1; 4]);
    assert_eq!(net.read(), done(1));
}

/// Rule R: whatever a replica says after a restart, it never contradicts what it said before.
#[test]
fn a_restarted_replica_never_votes_differently() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "COMMIT" || (kind(&frame.message) == "PREPARE" && frame.to != r(3)));
    for _ in 0..2 {
        net.submit(0, b"", false);
        net.settle();
        for id in 0..4 {
            net.restart(id, false);
        }
        net.settle();
        net.pass(1_000_000);
        net.heal();
        net.pass(10_000_000);
    }
    let mut votes: BTreeMap<_, Digest> = BTreeMap::new();
    for frame in &net.sent {
        let Message::Ordering(Ordering { message, .. }) = &frame.message else { continue };
        let (kind, view, sequence, digest) = match message {
            PbftMessage::PrePrepare(p) => (0, p.view, p.sequence, p.digest()),
            PbftMessage::Prepare(vote) => (1, vote.view, vote.sequence, vote.digest),
            PbftMessage::Commit(vote) => (2, vote.view, vote.sequence, vote.digest),
            _ => continue,
        };
        let before = votes.insert((frame.from, kind, view, sequence), digest);
        assert!(before.is_none_or(|before| before == digest), "{:?} contradicts itself", frame.from);
    }
    assert!(!votes.is_empty());
}

/// A read must contain every write that was acknowledged before, also right after a restart.
#[test]
fn a_restarted_replica_answers_no_read_before_it_has_executed_what_it_acknowledged() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "COMMIT");
    assert_eq!(net.add(1), done(1));
    for id in 0..4 {
        net.restart(id, false);
    }
    net.lose(|frame| !matches!(kind(&frame.message).as_str(), "QUERY" | "REPLY"));
    assert_eq!(net.read(), None, "nobody may say 0");
    net.heal();
    net.pass(3_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
}

/// The same when its log ends in the middle of a view change: then it has nothing tentative that would tell it.
#[test]
fn nor_does_one_that_has_left_its_view() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| matches!(kind(&frame.message).as_str(), "COMMIT" | "NEW-VIEW"));
    assert_eq!(net.add(1), done(1));
    for (from, to) in [(2, 0), (2, 1), (3, 0), (3, 1), (0, 2), (1, 2), (0, 3), (1, 3)] {
        let message = view_change(&net, from, 2);
        net.forge(r(from), r(to), message);
    }
    net.settle();
    for id in 0..4 {
        net.restart(id, false);
        assert_eq!(net.views()[id], 2);
        assert!(!net.hosts[id].replica.estate().is_tentative());
    }
    net.lose(|frame| !matches!(kind(&frame.message).as_str(), "QUERY" | "REPLY"));
    assert_eq!(net.read(), None, "nobody may say 0");
}

/// What a client was told stays told when the batch is undone. Replica 3 alone prepares one, answers, and learns that a
/// new view did not choose it: it does not know whether anybody else answered as well.
#[test]
fn a_replica_answers_no_read_from_below_what_it_answered_and_undid() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, Limits::default());
    assert_eq!(net.add(5), done(5));
    net.lose(|frame| kind(&frame.message) == "PREPARE" && frame.to != r(3));
    assert_eq!(net.add(1), None);
    assert_eq!(net.hosts[3].replica.estate().executed().0, 2, "executed tentatively, and answered");
    net.lose(|frame| match &frame.message {
        Message::Ordering(Ordering { message: PbftMessage::Prepare(vote), .. }) if vote.view.0 == 0 => true,
        message => frame.from == r(3) || frame.to == r(3) && kind(message) != "NEW-VIEW",
    });
    net.pass(4_000_000);
    assert!(net.noticed(3, |notice| matches!(notice, Notice::RolledBack { to } if to.0 == 1)));
    net.sent.clear();
    net.lose(|frame| frame.to == r(3) && kind(&frame.message) != "QUERY");
    net.submit(1, Counter::READ, true);
    net.settle();
    assert!(net.said(r(3), "REPLY").is_empty(), "it has said 6, and must not say 5");
    net.heal();
    net.pass(3_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(6));
    assert!(net.said(r(3), "REPLY").iter().any(|frame| frame.to == c(1)), "after it has executed that again");
}

/// Rule A, the other mark: a new view alone does not end the abstention.
#[test]
fn a_replica_that_lost_its_log_abstains_in_a_new_view_too() {
    let mut net = Net::new(4, Limits { checkpoint_interval: 4, ..Limits::default() });
    for value in 1..=6 {
        assert_eq!(net.add(1), done(value));
    }
    net.restart(3, true);
    net.settle();
    net.pass(2_000_000);
    net.lose(|frame| kind(&frame.message) == "PRE-PREPARE" && frame.from == r(0));
    assert_eq!(net.add(1), None);
    net.pass(5_000_000);
    net.heal();
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(7));
    assert_eq!(net.views()[..3], [1; 3]);
    net.sent.clear();
    net.restart(3, false);
    assert!(net.hosts[3].replica.report().abstaining, "a crash does not end it either");
    net.settle();
    let mut value = 7;
    while net.hosts[3].replica.report().stable.0 < 7 + net.cluster.window() {
        assert!(net.said(r(3), "VIEW-CHANGE").is_empty(), "below the mark of its stable checkpoint");
        value += 1;
        assert_eq!(net.add(1), done(value));
        assert!(value < 30);
    }
    assert_eq!(net.add(1), done(value + 1));
    assert!(net.said(r(3), "PREPARE").is_empty());
    assert_eq!(net.views()[3], 5, "it may have left with the primary of view 1");
    net.pass(9_000_000);
    assert!(!net.hosts[3].replica.report().changing_view);
    assert_eq!(net.add(1), done(value + 2));
    assert!(!net.said(r(3), "PREPARE").is_empty(), "past both marks");
}

const PROMISES: [&str; 6] = ["PRE-PREPARE", "PREPARE", "COMMIT", "VIEW-CHANGE", "NEW-VIEW", "CHECKPOINT"];

fn is_silent(net: &Net, id: u8) -> bool {
    PROMISES.iter().all(|promise| net.said(r(id), promise).is_empty())
}

/// Rule A: a replica that lost its log may have promised anything. It learns, and is silent until its view and its
/// stable checkpoint are past all of that. In a cluster that is well that comes by itself.
#[test]
fn a_replica_that_lost_its_log_abstains_until_past_its_marks() {
    let mut net = Net::new(4, Limits { checkpoint_interval: 4, ..Limits::default() });
    for value in 1..=6 {
        assert_eq!(net.add(1), done(value));
    }
    net.restart(3, true);
    net.sent.clear();
    net.settle();
    let mut value = 6;
    while net.hosts[3].replica.report().stable.0 < 6 + net.cluster.window() {
        assert!(net.hosts[3].replica.report().abstaining);
        assert!(is_silent(&net, 3), "below the mark of its stable checkpoint");
        net.sent.clear();
        assert_eq!(net.read(), done(value));
        assert!(net.said(r(3), "REPLY").is_empty(), "it may have forgotten a write that it acknowledged");
        value += 1;
        assert_eq!(net.add(1), done(value));
        assert!(value < 30);
    }
    assert!(net.said(r(3), "PREPARE").is_empty(), "the view is still the one in which it may have voted");
    assert_eq!(net.said(r(3), "VIEW-CHANGE").len(), 3, "so it asks for another");
    net.pass(9_000_000);
    assert_eq!(net.views(), [4; 4], "and the primary begins anew");
    assert!(!net.hosts[3].replica.report().abstaining);
    net.isolate(&[0]);
    assert_eq!(net.add(1), None);
    net.pass(4_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(value + 1), "it is one of the three");
}

/// The same if nobody asks for anything: then no checkpoint would ever be stable.
#[test]
fn an_abstention_ends_although_nothing_is_ordered() {
    let mut net = Net::new(4, Limits { checkpoint_interval: 4, ..Limits::default() });
    for value in 1..=6 {
        assert_eq!(net.add(1), done(value));
    }
    net.restart(3, true);
    net.pass(40_000_000);
    assert!(!net.hosts[3].replica.report().abstaining);
    net.isolate(&[1]);
    assert_eq!(net.add(1), done(7), "it votes");
    assert_eq!(net.views()[0] % 4, 0, "the primary is the one that it was");
}

/// Rule A: only what was said since the loss counts, however often anything else is said again.
#[test]
fn old_answers_do_not_end_an_abstention() {
    let mut net = Net::new(4, Limits { checkpoint_interval: 4, ..Limits::default() });
    for value in 1..=6 {
        assert_eq!(net.add(1), done(value));
    }
    let question = net.now;
    net.now.0 += 1;
    net.restart(3, true);
    net.sent.clear();
    for id in 0..3 {
        let here = Here { question, view: View(0), committed: Sequence(0) };
        net.forge(r(id), r(3), ordering(PbftMessage::Here(here)));
        let (stable, committed, begun) = (Sequence(0), Sequence(0), View(0));
        let way = Digest::ZERO;
        let status =
            Status { view: View(0), changing: false, stable, committed, begun, way, abstaining: false, failing: false };
        net.forge(r(id), r(3), ordering(PbftMessage::Status(status)));
    }
    net.settle();
    assert_eq!(net.cluster.window(), 14);
    for value in 7..=17 {
        assert_eq!(net.add(1), done(value));
    }
    assert_eq!(net.hosts[3].replica.report().stable.0, 16);
    assert!(is_silent(&net, 3), "by the old answers 14 would be enough, by the new ones it takes 20");
}
