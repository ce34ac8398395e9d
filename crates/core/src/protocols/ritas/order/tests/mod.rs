//! Whole replicas over RITAS.

mod attacks;
mod catching_up;
mod leaving;
mod rest;
mod turns;

use super::super::message::{Said, Statement, Value};
use super::super::path::{Layer, Path};
use super::payload::Payload;
use super::{Agreement, RitasMessage, RitasRecord, Whereabouts};
use crate::cluster::{ClientAuth, Cluster, Coin, Limits, Vects};
use crate::digest::{Digest, Domain};
use crate::ids::{InstanceId, Principal, ReplicaId, Sequence};
use crate::message::Request;
use crate::protocols::ritas::statements::Statements;
use crate::registry::{InstanceRecord, Message};
use crate::rejection::Rejection;
use crate::services::Counter;
use crate::testing::net::{Frame, Net, c, cluster, done, kind, r};
use crate::time::Duration;
use crate::wire::Wire;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// Microseconds in which whatever was lost is said again.
const A_WHILE: u64 = 3_000_000;

/// In which ways it may run: what is tossed, and how VECT is broadcast.
const WAYS: [(Coin, Vects); 3] =
    [(Coin::Local, Vects::Reliable), (Coin::Common, Vects::Reliable), (Coin::Local, Vects::Echo)];

fn net_of(protocol: &str, n: usize, clients: u32) -> Net<Counter> {
    net_with(WAYS[0], protocol, n, clients)
}

fn net_with((coin, vects): (Coin, Vects), protocol: &str, n: usize, clients: u32) -> Net<Counter> {
    let limits = Limits { checkpoint_interval: 8, ..Limits::default() };
    let protocol = protocol.parse().unwrap();
    let cluster = Cluster { protocol, coin, vects, ..cluster(n, ClientAuth::Hybrid, limits) };
    Net::of(cluster, clients, |_| Counter::default())
}

/// So many requests are answered, one after another.
fn ask(net: &mut Net<Counter>, sum: &mut u64, count: u64) {
    for _ in 0..count {
        *sum += 1;
        assert_eq!(net.add_within(100, 0, 1), done(*sum));
    }
}

/// What the correct replicas have executed, which is the same.
fn history(net: &Net<Counter>, of: &[usize]) -> Vec<u64> {
    let histories: Vec<_> = of.iter().map(|id| net.hosts[*id].replica.estate().history()).collect();
    assert!(histories.iter().all(|history| *history == histories[0]), "one order");
    of.iter().map(|id| net.hosts[*id].replica.estate().position()).collect()
}

fn said(frame: &Frame) -> &[Said] {
    match &frame.message {
        Message::Agreement(Agreement { message: RitasMessage::Said(Statements(said)), .. }) => said,
        _ => &[],
    }
}

fn is_about(frame: &Frame, layer: Layer) -> bool {
    said(frame).iter().any(|said| said.path.number(layer).is_some())
}

#[test]
fn requests_of_many_are_executed_once_and_in_one_order() {
    for n in [4, 5, 6, 7] {
        let mut net = net_of("ritas", n, 5);
        (0..3).for_each(|_| {
            (0..5).for_each(|client| net.submit(client, &Counter::add(1), false));
            net.settle();
        });
        assert_eq!(net.completed.len(), 15, "nobody waits for a timer");
        assert_eq!(history(&net, &(0..n).collect::<Vec<_>>()), vec![15; n]);
    }
}

/// Order 1: there is no primary.
#[test]
fn clients_ask_one_replica_after_another() {
    let mut net = net_of("ritas", 4, 1);
    let mut sum = 0;
    for _ in 0..8 {
        // Requests are numbered by the clock.
        net.now.0 += 3;
        ask(&mut net, &mut sum, 1);
    }
    let asked: Vec<Principal> = net.said(c(0), "REQUEST").iter().map(|frame| frame.to).collect();
    assert_eq!(asked.len(), 8);
    (0..4).for_each(|id| assert_eq!(asked.iter().filter(|to| **to == r(id)).count(), 2));
}

#[test]
fn what_is_lost_is_said_again() {
    for every in [3, 5, 7] {
        let mut net = net_of("ritas", 4, 1);
        let count = core::cell::Cell::new(0);
        net.lose(move |frame| {
            count.set(count.get() + 1u64);
            let lot = Digest::of(Domain::Trace, &count.get().to_le_bytes()).0[0];
            frame.from != c(0) && frame.to != c(0) && lot.is_multiple_of(every)
        });
        // Where a third is lost, an answer takes some seconds, and now and then three times as many.
        (1..=10).for_each(|sum| assert_eq!(net.add_within(600, 0, 1), done(sum)));
        net.pass(A_WHILE);
        assert_eq!(history(&net, &[0, 1, 2, 3]), [10; 4]);
    }
}

/// On a link that is behind a runtime leaves them out ([`Message::repeats`]).
#[test]
fn what_goes_to_one_alone_was_said_to_all() {
    let mut net = net_of("ritas", 4, 1);
    net.isolate(&[3]);
    ask(&mut net, &mut 0, 5);
    net.heal();
    let from = net.sent.len();
    net.pass(A_WHILE);
    let again = |frame: &&Frame| frame.message.repeats() && frame.to == r(3);
    assert!(net.sent[from..].iter().filter(again).count() > 0, "it is told what it has missed");
    assert!(net.sent.iter().all(|frame| frame.message.repeats() == (kind(&frame.message) == "SAID")));
}

#[test]
fn who_has_missed_everything_learns_of_it() {
    let mut net = net_of("ritas", 4, 1);
    net.isolate(&[3]);
    ask(&mut net, &mut 0, 5);
    net.pass(A_WHILE);
    net.heal();
    net.pass(A_WHILE);
    assert_eq!(history(&net, &[0, 1, 2, 3]), [5; 4]);
}

/// Order 6: what it lacks is forgotten, and the state says where the atomic broadcast stands.
#[test]
fn who_is_far_behind_fetches_the_state_and_takes_part_again() {
    let mut net = net_of("ritas", 4, 1);
    let mut sum = 0;
    net.isolate(&[3]);
    ask(&mut net, &mut sum, 40);
    net.heal();
    net.pass(A_WHILE);
    assert_eq!(history(&net, &[0, 3]), [40; 2]);
    assert!(!net.said(r(3), "TRANSFER").is_empty() || net.hosts[3].replica.report().stable > Sequence(8));
    net.isolate(&[0]);
    ask(&mut net, &mut sum, 10);
    assert_eq!(history(&net, &[1, 2, 3]), [50; 3]);
}

#[test]
fn who_crashes_goes_on_where_it_was() {
    for way in WAYS {
        let mut net = net_with(way, "ritas", 4, 1);
        let mut sum = 0;
        for round in 0..12 {
            ask(&mut net, &mut sum, 3);
            net.submit(0, &Counter::add(1), false);
            (0..round).for_each(|_| _ = net.round());
            net.restart(round % 4, false);
            net.pass(A_WHILE);
            sum += 1;
            assert_eq!(net.completed.pop().map(|completed| completed.result), done(sum));
            net.completed.clear();
        }
        assert_eq!(history(&net, &[0, 1, 2, 3]), [sum; 4]);
    }
}

#[test]
fn all_crash_at_once_and_nothing_is_lost() {
    for way in WAYS {
        let mut net = net_with(way, "ritas", 4, 1);
        let mut sum = 0;
        for rounds in 0..10 {
            ask(&mut net, &mut sum, 1);
            net.submit(0, &Counter::add(1), false);
            (0..rounds).for_each(|_| _ = net.round());
            (0..4).for_each(|id| net.restart(id, false));
            net.pass(A_WHILE);
            sum += 1;
            assert_eq!(net.completed.pop().map(|completed| completed.result), done(sum), "{rounds}");
            net.completed.clear();
        }
        assert_eq!(history(&net, &[0, 1, 2, 3]), [sum; 4]);
    }
}

/// The statements in a message.
fn statements(message: &Message) -> &[Said] {
    match message {
        Message::Agreement(Agreement { message: RitasMessage::Said(Statements(said)), .. }) => said,
        _ => &[],
    }
}

#[test]
fn with_a_common_coin_nobody_votes_in_steps() {
    for (way, n) in WAYS.into_iter().flat_map(|way| [4, 5, 7].map(|n| (way, n))) {
        let mut net = net_with(way, "ritas", n, 1);
        ask(&mut net, &mut 0, 10);
        assert_eq!(history(&net, &(0..n).collect::<Vec<_>>()), vec![10; n]);
        let said: Vec<&Said> = net.sent.iter().flat_map(|frame| statements(&frame.message)).collect();
        let is_common = way.0 == Coin::Common;
        assert_eq!(said.iter().any(|said| matches!(said.statement, Statement::Est(true))), is_common);
        assert_eq!(said.iter().any(|said| said.path.number(Layer::Step).is_some()), !is_common);
    }
}

/// ritas-F5: the thesis' way, for measurements.
#[test]
fn vects_go_by_echo_broadcast_if_that_was_asked_for() {
    for way in WAYS {
        let mut net = net_with(way, "ritas", 4, 1);
        ask(&mut net, &mut 0, 3);
        let said = net.sent.iter().flat_map(|frame| statements(&frame.message));
        let mut of_vects = said.filter(|said| said.path.number(Layer::Vect).is_some());
        assert_eq!(of_vects.all(|said| !matches!(said.statement, Statement::Ready(_))), way.1 == Vects::Echo);
    }
}

/// Whether replica 3 has said, from that frame on, what it may have said differently.
fn spoke(net: &Net<Counter>, from: usize) -> bool {
    let mut its = net.sent[from..].iter().filter(|frame| frame.from == r(3));
    its.any(|frame| statements(&frame.message).iter().any(|said| said.statement.binds()))
}

/// Order 8 to 10.
#[test]
fn who_lost_its_log_is_silent_and_then_speaks_again() {
    for way in WAYS {
        let mut net = net_with(way, "ritas", 4, 1);
        let mut sum = 0;
        ask(&mut net, &mut sum, 5);
        net.submit(0, &Counter::add(1), false);
        (0..3).for_each(|_| _ = net.round());
        net.restart(3, true);
        let from = net.sent.len();
        net.settle();
        assert!(net.hosts[3].replica.report().abstaining);
        assert!(!spoke(&net, from), "it may have said something else");
        // Order 10: rounds follow although nobody asks for anything.
        net.pass(10 * A_WHILE);
        assert!(!net.hosts[3].replica.report().abstaining);
        assert!(spoke(&net, from));
        sum += 1;
        net.completed.clear();
        net.isolate(&[0]);
        ask(&mut net, &mut sum, 5);
        assert_eq!(history(&net, &[1, 2, 3]), [sum; 3]);
    }
}

/// Order 9. The last answer comes late, and names a round long past: what it says in the midst of the round that it is
/// in could not be said again after a crash, as nothing that came before is in its log.
#[test]
fn who_lost_its_log_says_nothing_about_the_round_that_it_is_in() {
    let mut net = net_of("ritas", 4, 1);
    let mut sum = 0;
    ask(&mut net, &mut sum, 5);
    net.restart(3, true);
    net.lose(|frame| kind(&frame.message) == "ROUND" && frame.from == r(2));
    ask(&mut net, &mut sum, 8);
    assert!(net.hosts[3].replica.report().abstaining);
    let say = |message| Message::Agreement(Agreement { instance: InstanceId(1), message });
    let asked = net.said(r(3), "LOST").into_iter().find_map(|frame| match &frame.message {
        Message::Agreement(Agreement { message: RitasMessage::Lost(asked), .. }) => Some(*asked),
        _ => None,
    });
    let question = asked.expect("it asks").question;
    net.forge(r(2), r(3), say(RitasMessage::Round(Whereabouts { question, round: 0 })));
    net.forge(r(1), r(3), say(RitasMessage::Lost(Whereabouts { question: net.now, round: 0 })));
    net.round();
    let here = net.said(r(3), "ROUND").into_iter().filter_map(|frame| match &frame.message {
        Message::Agreement(Agreement { message: RitasMessage::Round(here), .. }) => Some(here.round),
        _ => None,
    });
    let here = here.last().expect("it answers");
    let silent_until = net.hosts[3].log.iter().find_map(|record| match &record.record {
        InstanceRecord::Ritas(RitasRecord::Abstain(Some(silence))) => Some(silence.rounds_from),
        _ => None,
    });
    assert!(here > 9 && silent_until.is_some_and(|round| round > here), "{silent_until:?} in round {here}");
}

/// Order 3: a liar's clock.
#[test]
fn what_is_ahead_of_its_time_is_listed_later() {
    let mut net = net_of("ritas", 4, 1);
    let skew = Limits::default().clock_skew_max;
    net.submit(0, &Counter::add(1), false);
    let asked = net.in_flight.iter().find_map(|frame| match frame.to {
        Principal::Replica(id) => Some(usize::from(id.0)),
        _ => None,
    });
    net.skews[asked.unwrap()] = (skew.0 + 2_000_000) as i64;
    net.settle();
    assert!(net.completed.is_empty());
    net.pass(4_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
    let times = net.hosts[0].log.iter().filter_map(|record| match &record.record {
        InstanceRecord::Ritas(RitasRecord::Delivered(delivered)) => Some(delivered.batch.proposal().time),
        _ => None,
    });
    assert!(times.max().unwrap() <= net.now + skew, "a correct clock bounds the agreed time");
}

/// Replica 3, which is alone otherwise, has a message under this number, with this request.
fn send_from_3(net: &mut Net<Counter>, number: u64, request: Request) {
    let payload = Payload { time: net.now, seed: Digest::ZERO, requests: vec![request] };
    let statement = Statement::Initial(Value(payload.to_bytes().into()));
    let path = Path::atomic_broadcast().child(Layer::Message, number).by(ReplicaId(3));
    let message = RitasMessage::Said(Statements(vec![Said { path, statement }]));
    net.isolate(&[3]);
    for to in [0, 1, 2].map(r) {
        net.forge(r(3), to, Message::Agreement(Agreement { instance: InstanceId(1), message: message.clone() }));
    }
}

/// Order 3: a liar's payload, with a request whose operation is not what its client has signed.
#[test]
fn what_a_client_has_not_signed_is_never_ordered() {
    for is_forged in [false, true] {
        let mut net = net_of("ritas", 4, 1);
        let mut request = net.request(InstanceId(1), 0, 1, &Counter::add(1));
        if is_forged {
            request.operation = Bytes::copy_from_slice(&Counter::add(2));
        }
        send_from_3(&mut net, 0, request);
        net.pass(A_WHILE);
        assert_eq!(history(&net, &[0, 1, 2]), [u64::from(!is_forged); 3]);
        assert_eq!(net.rejected(0, r(3), Rejection::BadBatch), u64::from(is_forged));
    }
}

/// Order 10: one that lost its log and is behind. What it lacks comes from the others' state; empty rounds would only
/// take them further away from it. And one that says that it is ahead, which a liar could say in every round.
#[test]
fn no_round_follows_for_who_lost_its_log_and_is_somewhere_else() {
    for round in [0, 5, 6, u64::MAX] {
        let mut net = net_of("ritas", 4, 1);
        let mut sum = 0;
        ask(&mut net, &mut sum, 5);
        net.settle();
        let before = net.sent.len();
        let lost = RitasMessage::Lost(Whereabouts { question: net.now, round });
        net.forge(r(3), r(0), Message::Agreement(Agreement { instance: InstanceId(1), message: lost }));
        net.settle();
        let follows = net.sent[before..].iter().any(|frame| kind(&frame.message) == "SAID");
        assert_eq!(follows, round == 5, "{round}");
    }
}

/// ritas-F3 and the long values: who lacks a payload fetches it, also if all have crashed since.
#[test]
fn a_body_that_was_vouched_for_is_found_after_a_crash() {
    let is_payload = |said: &Said| matches!(&said.statement, Statement::Initial(value) if value.0.len() > 40);
    let has_payload = move |message: &Message| statements(message).iter().any(is_payload);
    for rounds in 1..10 {
        let mut net = net_of("ritas", 4, 1);
        // Replica 3 never gets a payload from its sender, replica 2.
        net.lose(move |frame| frame.to == r(3) && has_payload(&frame.message));
        net.submit(0, &Counter::add(1), false);
        (0..rounds).for_each(|_| _ = net.round());
        let senders = net.said(r(2), "SAID").into_iter().filter(|frame| has_payload(&frame.message)).count();
        assert!(senders > 0 || rounds == 1, "it is the one that the client asks first");
        (0..4).for_each(|id| net.restart(id, false));
        net.isolate(&[2]);
        net.pass(2 * A_WHILE);
        assert_eq!(history(&net, &[0, 1, 3]), [1; 3], "{rounds}");
    }
}

/// Order 3 and 4: the init history comes first.
#[test]
fn a_composition_falls_back_to_it_and_returns() {
    let ways = WAYS.map(|way| (way, "quorum, backup(ritas)"));
    for (way, protocol) in ways.into_iter().chain([(WAYS[0], "quorum, chain, backup(ritas)")]) {
        let mut net = net_with(way, protocol, 4, 1);
        let mut sum = 0;
        ask(&mut net, &mut sum, 3);
        net.isolate(&[2]);
        net.pass(1_000_000);
        ask(&mut net, &mut sum, 5);
        assert!(!net.said(r(0), "SAID").is_empty(), "RITAS runs");
        net.heal();
        net.pass(A_WHILE);
        ask(&mut net, &mut sum, 5);
        net.pass(A_WHILE);
        ask(&mut net, &mut sum, 5);
        assert_eq!(history(&net, &[0, 1, 2, 3]), [sum; 4]);
    }
}

/// Order 5: the window is a bound on what is kept, and ends nobody's service.
#[test]
fn what_is_kept_is_bounded() {
    let mut net = net_of("ritas", 4, 3);
    let mut most = 0;
    for _ in 0..60 {
        (0..3).for_each(|client| net.submit(client, &Counter::add(1), false));
        net.settle();
        assert_eq!(net.completed.len(), 3);
        net.completed.clear();
        most = most.max(net.hosts[0].replica.report().slots);
    }
    net.pass(Duration(A_WHILE).0);
    // A payload has n broadcasts at most, and a round a few dozen instances.
    assert!(most < 600, "{most} instances");
    assert!(net.hosts[0].replica.report().slots < 300);
    assert!(net.sent.iter().all(|frame| kind(&frame.message) != "VIEW-CHANGE"));
}
