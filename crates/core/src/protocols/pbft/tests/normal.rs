//! The normal case: PBFT 1 to 6.

use super::forging::{batch, pre_prepare, prepare, request};
use crate::cluster::{ClientAuth, Limits};
use crate::digest::Digest;
use crate::ids::{Sequence, View};
use crate::machine::Input;
use crate::message::Firmness;
use crate::notice::Notice;
use crate::protocols::backup::READ_BYTES_AT_ONCE;
use crate::protocols::pbft::{PbftMessage, Status};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Service};
use crate::services::Counter;
use crate::testing::net::{Frame, Net, c, cluster, done, kind, ordering, r};
use crate::time::Instant;
use alloc::vec::Vec;
use bytes::Bytes;

#[test]
fn the_normal_case_needs_no_timer() {
    let mut net = Net::new(4, Limits::default());
    assert_eq!(net.add(2), done(2));
    assert_eq!(net.add(3), done(5));
    assert_eq!(net.read(), done(5));
    assert_eq!(net.executed(), [2; 4]);
}

/// "Four message delays to a reply with tentative execution": request, pre-prepare, prepare, reply.
#[test]
fn a_reply_takes_four_message_delays() {
    let mut net = Net::new(4, Limits::default());
    net.submit(0, &Counter::add(1), false);
    let rounds = (1..9).find(|_| {
        net.round();
        !net.completed.is_empty()
    });
    assert_eq!(rounds, Some(4));
}

/// Whoever misses the PREPAREs executes when committed, one message delay later, and says so.
#[test]
fn a_final_reply_takes_five_message_delays() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| frame.to == r(3) && kind(&frame.message) == "PREPARE");
    net.submit(0, &Counter::add(1), false);
    for _ in 0..4 {
        net.round();
    }
    let firmness = |net: &Net, of| match net.said(r(of), "REPLY")[..] {
        [frame] => match &frame.message {
            Message::Reply(reply) => Some(reply.firmness),
            _ => None,
        },
        _ => None,
    };
    assert_eq!(firmness(&net, 2), Some(Firmness::Tentative));
    assert_eq!(firmness(&net, 3), Some(Firmness::Final), "sent in the fourth delay, it arrives in the fifth");
}

/// STATUS is answered with what comes after what it names: nothing comes after the largest number.
#[test]
fn who_says_that_it_has_everything_is_sent_nothing() {
    let mut net = Net::new(4, Limits::default());
    assert_eq!(net.add(2), done(2));
    let all = Sequence(u64::MAX);
    let (view, stable) = (View(0), Sequence(0));
    let way = Digest::ZERO;
    let status =
        Status { view, changing: false, stable, committed: all, begun: view, way, abstaining: false, failing: false };
    net.forge(r(3), r(0), ordering(PbftMessage::Status(status)));
    assert_eq!(net.add(3), done(5));
}

/// "A read-only request takes one round trip."
#[test]
fn a_read_takes_two_message_delays() {
    let mut net = Net::new(4, Limits::default());
    net.submit(0, Counter::READ, true);
    net.round();
    net.round();
    assert_eq!(net.completed.len(), 1);
    assert_eq!(net.executed(), [0; 4], "reads are not ordered");
}

#[test]
fn requests_that_wait_together_form_one_batch() {
    let mut net = Net::with(4, 8, ClientAuth::Hybrid, Limits::default());
    for session in 0..8 {
        net.submit(session, &Counter::add(1), false);
    }
    net.settle();
    assert_eq!(net.completed.len(), 8);
    assert!(net.noticed(0, |notice| matches!(notice, Notice::Executed { requests: 8, .. })));
}

/// While as many batches are in flight as may be, the next one grows.
#[test]
fn the_next_batch_grows_while_batches_are_in_flight() {
    let mut net = Net::with(4, 6, ClientAuth::Hybrid, Limits { batches_in_flight_max: 1, ..Limits::default() });
    for session in 0..6 {
        net.submit(session, &Counter::add(1), false);
        if session == 0 {
            net.round();
        }
    }
    net.settle();
    assert_eq!(batch_sizes(&net), [1, 5]);
}

/// Requests in each batch that the first replica executed.
fn batch_sizes(net: &Net) -> Vec<usize> {
    let size = |notice: &Notice| if let Notice::Executed { requests, .. } = notice { Some(*requests) } else { None };
    net.hosts[0].notices.iter().filter_map(|(_, notice)| size(notice)).collect()
}

/// Submits so many requests at a time, each lot one message delay after the one before.
fn lots(net: &mut Net, lots: &[usize]) {
    let mut sessions = 0..;
    for lot in lots {
        for session in sessions.by_ref().take(*lot) {
            net.submit(session, &Counter::add(1), false);
        }
        net.round();
    }
}

/// A batch follows one in flight only if it is no smaller; otherwise it grows until that one is executed.
#[test]
fn a_batch_overlaps_none_that_is_larger() {
    let mut net = Net::with(4, 8, ClientAuth::Hybrid, Limits::default());
    lots(&mut net, &[3, 1, 4]);
    net.settle();
    assert_eq!(batch_sizes(&net), [3, 5]);
    let mut net = Net::with(4, 8, ClientAuth::Hybrid, Limits::default());
    lots(&mut net, &[1, 2]);
    assert_eq!(net.said(r(0), "PRE-PREPARE").len(), 6, "both to three others, before either is prepared");
}

#[test]
fn only_the_primary_of_the_view_proposes() {
    let mut net = Net::new(4, Limits::default());
    let proposal = batch(net.now, alloc::vec![request(&net, 0, 1, b"")]);
    net.forge(r(2), r(1), pre_prepare(0, 1, &proposal));
    net.forge(r(1), r(2), pre_prepare(1, 1, &proposal));
    net.round();
    assert_eq!(net.rejected(1, r(2), Rejection::WrongSender), 1);
    assert_eq!(net.rejected(2, r(1), Rejection::WrongView), 1, "view 1 has not begun");
    assert!(net.sent.is_empty());
}

/// pbft-F21: a read needs equal answers from the same position, else it is ordered.
#[test]
fn a_read_that_cannot_be_answered_at_one_position_is_ordered() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[3]);
    assert_eq!(net.add(0), done(0), "a write that does not change what is read");
    // Replica 3 is one batch behind and replica 2 does not answer: two positions, no three equal answers.
    net.lose(|frame| {
        frame.from == r(2) && kind(&frame.message) == "REPLY" && {
            matches!(&frame.message, Message::Reply(reply) if reply.firmness == Firmness::Read)
        }
    });
    assert_eq!(net.read(), None);
    net.pass(2_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(0));
    assert_eq!(net.said(c(0), "QUERY").len(), 4);
    assert!(!net.said(c(0), "REQUEST").is_empty(), "the read was ordered");
}

/// pbft-F21: nobody answers a read from a state that may be rolled back.
#[test]
fn a_read_waits_until_nothing_is_tentative() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| kind(&frame.message) == "COMMIT");
    assert_eq!(net.add(1), done(1), "tentative answers of 2f+1 are enough for the write");
    assert_eq!(net.read(), None);
    net.heal();
    net.pass(400_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
}

/// Many may have waited, and each may get much: not all of that is made at once.
#[test]
fn reads_that_have_waited_are_answered_by_and_by() {
    const READS: usize = 20;
    let mut net = Net::of(cluster(4, ClientAuth::Hybrid, Limits::default()), READS as u32 + 1, |_| Counter::default());
    net.lose(|frame| kind(&frame.message) == "COMMIT");
    assert_eq!(net.add(1), done(1));
    (1..=READS).for_each(|session| net.submit(session, Counter::READ, true));
    net.settle();
    let is_read = |frame: &Frame| matches!(&frame.message, Message::Reply(reply) if reply.firmness == Firmness::Read);
    let answered = |net: &Net| net.said(r(1), "REPLY").into_iter().filter(|frame| is_read(frame)).count();
    assert_eq!(answered(&net), 0);
    net.heal();
    let mut most = 0;
    while answered(&net) < READS {
        let before = answered(&net);
        if !net.in_flight.is_empty() {
            let frame = net.in_flight.remove(0);
            net.deliver(frame);
        } else if before > 0 {
            net.step(1, Input::PassEnd);
        } else {
            assert!(net.fire_before(Instant(net.now.0 + 1_000_000)), "COMMITs are said again");
        }
        most = most.max(answered(&net) - before);
    }
    assert_eq!(most, READ_BYTES_AT_ONCE / 8);
}

/// A local read is the word of one replica, and needs no more than one.
#[test]
fn a_local_read_is_answered_by_one_replica_even_if_all_others_are_gone() {
    let mut net = Net::new(4, Limits::default());
    assert_eq!(net.add(1), done(1));
    assert_eq!(net.read_local(), done(1));
    assert_eq!(net.said(c(0), "QUERY").len(), 1, "one replica is asked");
    net.isolate(&[0, 1, 2]);
    for _ in 0..4 {
        net.now.0 += 1;
        assert_eq!(net.read_local(), done(1), "whoever is asked first, replica 3 answers in the end");
    }
    assert_eq!(net.said(c(0), "REQUEST").len(), 1, "nothing but the write was ordered");
}

/// prac-F27: a fresh proposal's time must be near the backup's own clock.
#[test]
fn a_proposal_far_from_the_clock_is_not_accepted() {
    let mut net = Net::new(4, Limits::default());
    net.now = Instant(1_000_000_000);
    net.isolate(&[0, 2, 3]);
    let skew = net.cluster.limits.clock_skew_max.0;
    let at = |net: &Net, time| batch(Instant(time), alloc::vec![request(net, 0, 1, b"")]);
    for (sequence, time) in [(1, net.now.0 + skew + 1), (2, net.now.0 - skew - 1), (3, u64::MAX), (4, 0)] {
        let proposal = at(&net, time);
        net.forge(r(0), r(1), pre_prepare(0, sequence, &proposal));
    }
    net.round();
    assert_eq!(net.rejected(1, r(0), Rejection::BadAgreedValue), 4);
    assert!(net.said(r(1), "PREPARE").is_empty());
    for (sequence, time) in [(5, net.now.0 + skew), (6, net.now.0 - skew)] {
        let proposal = at(&net, time);
        net.forge(r(0), r(1), pre_prepare(0, sequence, &proposal));
    }
    net.round();
    assert_eq!(net.said(r(1), "PREPARE").len(), 2 * 3);
}

/// prac-F27: f+1 PREPAREs of others, one of them a correct replica's, stand in for one's own check.
#[test]
fn a_backup_with_a_wrong_clock_follows_the_others() {
    let mut net = Net::new(4, Limits::default());
    net.isolate(&[0, 2, 3]);
    let time = Instant(net.now.0 + net.cluster.limits.clock_skew_max.0 + 1);
    let proposal = batch(time, alloc::vec![request(&net, 0, 1, b"")]);
    net.forge(r(0), r(1), pre_prepare(0, 1, &proposal));
    net.forge(r(2), r(1), prepare(0, 1, proposal.digest()));
    net.round();
    assert!(net.said(r(1), "PREPARE").is_empty(), "one of them may be a liar");
    net.forge(r(3), r(1), prepare(0, 1, proposal.digest()));
    net.round();
    assert_eq!(net.said(r(1), "PREPARE").len(), 3);
}

/// Answers every operation with the agreed time.
#[derive(Debug)]
struct Clock;

impl Service for Clock {
    fn execute(&mut self, _operation: &[u8], agreed: &Agreed) -> Bytes {
        Bytes::copy_from_slice(&agreed.time.0.to_le_bytes())
    }
    fn query(&self, _operation: &[u8], _asker: &Asker) -> Result<Bytes, NotReadOnly> {
        Err(NotReadOnly)
    }
    fn save(&mut self, _write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {}
    fn load(&mut self, _pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        Ok(())
    }
}

/// prac-F27: the agreed time grows with every batch and by no more than a bound, whatever the primary proposes.
#[test]
fn agreed_time_grows_and_is_bounded_whatever_the_primary_proposes() {
    let limits = Limits { agreed_time_step_max: crate::time::Duration(50), ..Limits::default() };
    let mut net = Net::serving(4, 1, ClientAuth::Hybrid, limits, |_| Clock);
    net.now = Instant(1_000_000_000);
    net.isolate(&[0]);
    let now = net.now.0;
    for (sequence, time) in (1..).zip([now, now + 10, now - 900, now + 9_000_000, now]) {
        let proposal = batch(Instant(time), alloc::vec![request(&net, 0, sequence, b"")]);
        for to in 1..4 {
            net.forge(r(0), r(to), pre_prepare(0, sequence, &proposal));
        }
        net.settle();
    }
    let times: Vec<u64> = net
        .said(r(1), "REPLY")
        .iter()
        .filter_map(|frame| match &frame.message {
            Message::Reply(reply) => match &reply.outcome {
                crate::message::Outcome::Done { result: time, .. } => {
                    Some(u64::from_le_bytes(time.as_ref().try_into().unwrap()))
                }
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(times, [now, now + 10, now + 11, now + 61, now + 62]);
}
