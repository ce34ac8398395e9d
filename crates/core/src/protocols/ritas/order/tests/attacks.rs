//! What one liar can say, and what comes of it.

use super::super::super::atomic_broadcast::WINDOW;
use super::super::super::message::{Summary, Word};
use super::super::Progress;
use super::*;

/// Replica 3 says this to others, besides what its machine says.
fn say(net: &mut Net<Counter>, to: &[u8], message: &RitasMessage) {
    for to in to {
        let agreement = Agreement { instance: InstanceId(1), message: message.clone() };
        net.forge(r(3), r(*to), Message::Agreement(agreement));
    }
}

fn statement(path: Path, statement: Statement) -> RitasMessage {
    RitasMessage::Said(Statements(vec![Said { path, statement }]))
}

/// A group knows many roots; an order has one.
#[test]
fn there_is_nothing_but_the_order() {
    let mut net = net_of("ritas", 4, 1);
    let value = Value(Bytes::from_static(&[1]));
    let broadcasts = [Layer::Reliable, Layer::Echo].map(|layer| Path::root(layer, 0).by(ReplicaId(3)));
    let others = [Layer::Binary, Layer::Multi, Layer::Vector].map(|layer| Path::root(layer, 0));
    let another_order = Path::root(Layer::Atomic, 1).child(Layer::Message, 0).by(ReplicaId(3));
    for path in broadcasts.into_iter().chain(others).chain([another_order]) {
        say(&mut net, &[0, 1, 2], &statement(path, Statement::Initial(value.clone())));
        say(&mut net, &[0, 1, 2], &statement(path, Statement::Decide(value.clone())));
    }
    net.settle();
    assert_eq!(net.rejected(0, r(3), Rejection::Malformed), 12);
    ask(&mut net, &mut 0, 3);
}

/// A liar's payloads have what a client has asked long ago, as many as there may be.
#[test]
fn an_old_request_does_not_take_the_place_of_a_new_one() {
    let mut net = net_of("ritas", 4, 2);
    net.isolate(&[3]);
    let [old, new] = [1, 2].map(|timestamp| net.request(InstanceId(1), 0, timestamp, &Counter::add(1)));
    net.forge(c(0), r(0), Message::Request(old.clone()));
    net.settle();
    assert_eq!(history(&net, &[0, 1, 2]), [1; 3]);
    net.lose(|frame| is_about(frame, Layer::Proposal));
    for number in 0..WINDOW {
        let payload = Payload { time: net.now, seed: Digest::ZERO, requests: vec![old.clone()] };
        let path = Path::atomic_broadcast().child(Layer::Message, number).by(ReplicaId(3));
        say(&mut net, &[0, 1, 2], &statement(path, Statement::Initial(Value(payload.to_bytes().into()))));
    }
    net.forge(c(0), r(0), Message::Request(new));
    net.settle();
    let before = net.hosts[0].replica.report().executed.0;
    net.isolate(&[3]);
    net.pass(A_WHILE);
    assert_eq!(history(&net, &[0, 1, 2]), [2; 3]);
    let rounds = net.hosts[0].replica.report().executed.0 - before;
    assert!(rounds <= 2, "in the first round that has it, which is not the one that has begun: {rounds}");
}

/// What is named by its digest must not stand there as a whole, once for each that says it in each of its places.
#[test]
fn nobody_keeps_a_word_that_is_too_long() {
    let mut net = net_of("ritas", 4, 1);
    let word = Word::Whole(Value(vec![7; 33].into()));
    let path = |sender| Path::atomic_broadcast().child(Layer::Message, 0).by(ReplicaId(sender));
    for sender in 0..4 {
        say(&mut net, &[0], &statement(path(sender), Statement::Echo(word.clone())));
        say(&mut net, &[0], &statement(path(sender), Statement::Ready(word.clone())));
    }
    let binary = Path::atomic_broadcast().child(Layer::Round, 0).child(Layer::Multi, 0).child(Layer::Binary, 0);
    say(&mut net, &[0], &statement(binary, Statement::Decide(Value(vec![7; 33].into()))));
    net.settle();
    assert_eq!(net.rejected(0, r(3), Rejection::Malformed), 9);
}

/// Only payloads are long: a liar's values would be kept for each instance of each round that is let in.
#[test]
fn nobody_keeps_a_value_that_is_too_long() {
    let mut net = net_of("ritas", 4, 1);
    let round = Path::atomic_broadcast().child(Layer::Round, 0);
    let multi = round.child(Layer::Multi, 0);
    let step = multi.child(Layer::Binary, 0).child(Layer::Step, 0);
    let (list, vect) = (16 + 64 * 46, 4 + 5 * 38);
    let longest = [
        (round.child(Layer::Proposal, 0), list),
        (multi.child(Layer::Init, 0), list),
        (multi.child(Layer::Vect, 0), vect),
        (step, 1),
    ];
    for (at, longest) in longest {
        for bytes in [longest, longest + 1] {
            let value = Value(vec![1; bytes].into());
            say(&mut net, &[0], &statement(at.by(ReplicaId(3)), Statement::Initial(value)));
        }
    }
    for bytes in [list, list + 1] {
        say(&mut net, &[0], &statement(multi, Statement::Decide(Value(vec![1; bytes].into()))));
    }
    net.settle();
    assert_eq!(net.rejected(0, r(3), Rejection::Malformed), 5);
}

/// An answer to PROGRESS has all that its author claims not to have heard.
#[test]
fn who_asks_all_the_time_is_answered_now_and_then() {
    let mut net = net_of("ritas", 4, 1);
    ask(&mut net, &mut 0, 5);
    let from = net.sent.len();
    let summary = Summary { heard: Vec::new(), round: 0, messages: vec![0; 4] };
    let message = RitasMessage::Progress(Progress { summary, stable: Sequence(0) });
    (0..1_000).for_each(|_| say(&mut net, &[0], &message));
    net.settle();
    let answers = net.sent[from..].iter().filter(|frame| frame.from == r(0)).map(|frame| said(frame).len());
    let answers: usize = answers.sum();
    assert!(answers > 0);
    assert_eq!(net.rejected(0, r(3), Rejection::Overload), 1_000 - 32);
}

/// What clients that help a liar may sign is long. A single request of any length that is allowed has its place.
#[test]
fn a_payload_is_no_longer_than_a_batch() {
    let limits = Limits { checkpoint_interval: 8, batch_bytes_max: 200, ..Limits::default() };
    let cluster = Cluster { protocol: "ritas".parse().unwrap(), ..cluster(4, ClientAuth::Hybrid, limits) };
    let mut net = Net::of(cluster, 2, |_| Counter::default());
    let long: Vec<Request> = (0..2).map(|client| net.request(InstanceId(1), client, 1, &[0; 150])).collect();
    for (number, requests) in [(0, long.clone()), (1, long[..1].to_vec())] {
        let payload = Payload { time: net.now, seed: Digest::ZERO, requests };
        let path = Path::atomic_broadcast().child(Layer::Message, number).by(ReplicaId(3));
        say(&mut net, &[0, 1, 2], &statement(path, Statement::Initial(Value(payload.to_bytes().into()))));
    }
    net.settle();
    assert_eq!(net.rejected(0, r(3), Rejection::BadBatch), 1);
    assert_eq!(history(&net, &[0, 1, 2]), [1; 3]);
}
