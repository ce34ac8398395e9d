//! What the one who orders, or a place of a chain, may do to what passes through it.

use crate::auth::Tag;
use crate::client::Completion;
use crate::compositions::tests::explore::forged;
use crate::compositions::tests::run::Run;
use crate::compositions::tests::script::Report;
use crate::digest::{Digest, Domain};
use crate::history::LogEntry;
use crate::ids::{InstanceId, ReplicaId};
use crate::message::{Outcome, Refusal, Request};
use crate::notice::Notice;
use crate::protocols::chain::{ChainMessage, ChainReply, Topology};
use crate::protocols::speculative::Response;
use crate::protocols::zlight::Order;
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::Protocol;
use crate::service::{Proposal, Service};
use crate::services::Counter;
use crate::testing::net::{Net, c, kind, r};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// Whether a replica has stopped in the first instances.
fn is_stopped(run: &Run, id: usize) -> bool {
    run.net.noticed(id, |notice| matches!(notice, Notice::Stopped { .. }))
}

/// Two clients race in Quorum, and replicas log 1, 2, 2, nothing. Their reports.
fn raced(run: &mut Run) -> [Report; 4] {
    run.invoke(0);
    run.invoke(1);
    run.round_of(|frame| (frame.from == c(0)) == (frame.to == r(0)) && frame.to != r(3));
    let reports = run.stop(InstanceId(1));
    assert_eq!([0, 1, 2, 3].map(|id| reports[&id].claims().digests.len()), [1, 1, 1, 0]);
    [0, 1, 2, 3].map(|id| reports[&id].clone())
}

/// Rounds until nothing is in flight, in which replica 1 hands on whatever comes along the chain as if it followed the
/// history of the next place.
fn settle_forging(run: &mut Run) {
    while !run.net.in_flight.is_empty() {
        for frame in core::mem::take(&mut run.net.in_flight) {
            match forged(run, 1, &frame) {
                Some(message) => run.net.forge(frame.from, frame.to, message),
                None => run.net.in_flight.push(frame),
            }
        }
        run.round();
    }
}

/// abs-K5, abs-S1: the liar supports one history with replica 0 and another with replica 2, and hands on what the head
/// orders as if it followed the other one. The head's MAC for replica 2 covers the history (abs-D10), so that the chain
/// breaks.
#[test]
fn k05_s1_the_init_history_is_not_substituted() {
    let mut run = Run::new(Protocol::Aliph, 4, 4, 1);
    run.liar = Some(1);
    let [r0, r1, r2, r3] = raced(&mut run);
    let like_r0 = run.signed(1, &r0);
    let [one, two] = [[&r0, &like_r0, &r3], [&r1, &r2, &r3]];
    run.begin([one, one, two, two]);
    settle_forging(&mut run);
    assert_eq!([0, 2, 3].map(|id| run.init_of(id, InstanceId(2)).unwrap()), [&[1], &[2], &[2]]);
    run.redirect(2, InstanceId(2));
    run.invoke(2);
    settle_forging(&mut run);
    let reports = run.stop(InstanceId(2));
    let denies = run.signed(1, &reports[&1]);
    run.proved([&reports[&0], &denies, &reports[&2]]);
    run.finish();
    assert!(run.commits.iter().all(|commit| commit.instance.0 >= 3), "nothing commits in such a chain");
    run.check();
}

/// abs-S1 without a liar: two sets of honest reports prove two histories. What a place has inherited it does not answer
/// on its own word: the client of 2 would take it for committed, and the reports of 0, 1 and 2 would lose it.
#[test]
fn k05_s1_what_only_the_last_places_inherited_is_not_committed() {
    let mut run = Run::new(Protocol::Aliph, 4, 4, 1);
    run.invoke(0);
    run.invoke(1);
    run.round_of(|frame| (frame.from == c(0)) == (frame.to <= r(1)));
    assert_eq!(run.journals(), [[1], [1], [2], [2]]);
    let reports = run.stop(InstanceId(1));
    let [r0, r1, r2, r3] = [0, 1, 2, 3].map(|id| &reports[&id]);
    let [one, two] = [[r0, r1, r2], [r1, r2, r3]];
    run.begin([one, one, two, two]);
    // The head's init history does not come along the chain in time.
    run.net.in_flight.clear();
    run.redirect(1, InstanceId(2));
    run.settle();
    run.finish();
    assert!(run.commits.iter().all(|commit| commit.instance.0 >= 3), "nothing commits in such a chain");
    run.check();
}

/// abs-K17: the primary of ZLight tells two orders, and leaves a gap. Nothing that conflicts commits, and Backup goes
/// on.
#[test]
fn k17_two_orders_of_a_primary_do_not_both_commit() {
    let mut run = Run::new(Protocol::ZLight, 4, 2, 1);
    run.liar = Some(0);
    run.invoke(0);
    run.invoke(1);
    let requests = core::mem::take(&mut run.net.in_flight);
    let order = |run: &Run, from: usize, first: u64| {
        let Message::Request(request) = requests[from].message.clone() else { panic!("{:?}", requests[from]) };
        let proposal = Proposal { time: run.net.now, seed: Digest::ZERO };
        Message::Order(Order { instance: InstanceId(1), first, proposal, requests: vec![request] })
    };
    let [one, other, late] = [order(&run, 0, 1), order(&run, 1, 1), order(&run, 1, 3)];
    for (to, order) in [(1, &one), (2, &other), (3, &other), (1, &late), (2, &late), (3, &late)] {
        run.net.forge(r(0), r(to), order.clone());
    }
    run.settle();
    assert_eq!(run.journals(), [[1], [2], [2]], "what comes after a gap waits");
    assert!(run.commits.is_empty());
    run.finish();
    assert!(run.commits.iter().all(|commit| commit.instance.0 >= 2));
    run.check();
}

/// The CHAIN message that one replica has sent on to another, taken out of the network.
fn intercepted(run: &mut Run, from: u8, to: u8) -> ChainMessage {
    let frame = run.net.in_flight.pop().expect("it was sent on");
    assert_eq!((frame.from, frame.to), (r(from), r(to)));
    let Message::Chain(message) = frame.message else { panic!("{}", frame.message) };
    message
}

/// abs-K17 in Chain: the head makes the MACs for the next two places for different batches.
#[test]
fn k17_two_batches_of_a_head_break_the_chain() {
    let mut run = Run::new(Protocol::Chain, 4, 2, 1);
    run.liar = Some(0);
    run.invoke(0);
    run.round();
    let mut message = intercepted(&mut run, 0, 1);
    let other = ChainMessage { history: Digest::of(Domain::Entry, b"another"), ..message.clone() };
    resign(&run, &mut message, 0, 2, &other);
    run.net.forge(r(0), r(1), Message::Chain(message));
    run.settle();
    assert!(is_stopped(&run, 2), "its MAC is for something else");
    assert!(run.commits.is_empty());
    run.finish();
    run.check();
}

/// Puts the MAC that `maker` makes for `receiver` over another message into this one, which leaves `maker`.
fn resign(run: &Run, message: &mut ChainMessage, maker: usize, receiver: usize, over: &ChainMessage) {
    let topology = Topology::new(run.net.cluster.replicas, ReplicaId(0));
    let at = topology.carried(maker).position(|pair| pair == (maker, receiver)).unwrap();
    let statement = over.statement(&topology, maker);
    message.tags[at] = run.net.keyring(r(maker as u8)).tag(r(receiver as u8), &statement);
}

/// abs-K18: somebody speaks in the name of a place before, and line noise spoils what comes from it. That is not the
/// predecessor's word: it is dropped, and the chain goes on.
#[test]
fn k18_who_is_not_the_predecessor_stops_nothing() {
    let mut run = Run::new(Protocol::Chain, 4, 1, 1);
    run.liar = Some(3);
    run.invoke(0);
    run.round();
    run.round();
    let frame = run.net.in_flight.pop().unwrap();
    let Message::Chain(message) = &frame.message else { panic!("{}", frame.message) };
    assert_eq!((frame.from, frame.to), (r(1), r(2)));
    run.net.forge(r(3), r(2), Message::Chain(message.clone()));
    let mut noisy = message.clone();
    noisy.tags.iter_mut().for_each(|tag| *tag = Tag::from_bytes([0; 16]));
    run.net.forge(r(1), r(2), Message::Chain(noisy));
    run.round();
    assert_eq!(run.net.rejected(2, r(3), Rejection::WrongSender), 1);
    assert_eq!(run.net.rejected(2, r(1), Rejection::BadMac), 1);
    run.net.in_flight.push(frame);
    run.settle();
    assert!(run.is_idle() && run.instances() == [1; 4] && !run.anybody_said("PANIC"));
    run.check();
}

/// abs-K18: the second place hands on a request that nobody made. Clients' MACs end there, so that the next place has
/// to look at those of all its predecessors.
#[test]
fn k18_a_place_makes_up_no_request() {
    let mut run = Run::new(Protocol::Chain, 4, 2, 1);
    run.liar = Some(1);
    run.invoke(0);
    run.round();
    run.round();
    let mut message = intercepted(&mut run, 1, 2);
    let mut made_up = run.net.request(InstanceId(1), 1, 1, b"none");
    made_up.authentication = message.requests[0].authentication.clone();
    let entry = LogEntry::new(message.proposal.clone(), made_up.clone());
    (message.requests, message.history) = (vec![made_up], Digest::ZERO.chain(entry.digest()));
    let over = message.clone();
    resign(&run, &mut message, 1, 2, &over);
    resign(&run, &mut message, 1, 3, &over);
    run.net.forge(r(1), r(2), Message::Chain(message));
    run.settle();
    assert!(is_stopped(&run, 2));
    run.finish();
    run.check();
}

/// abs-K18: a place spoils a MAC that it only carries. Its own is good, so that the next place can blame the chain, and
/// stops.
#[test]
fn k18_a_spoilt_mac_of_another_stops_the_chain() {
    let mut run = Run::new(Protocol::Chain, 4, 1, 1);
    run.liar = Some(1);
    run.invoke(0);
    run.round();
    run.round();
    let mut message = intercepted(&mut run, 1, 2);
    let topology = Topology::new(run.net.cluster.replicas, ReplicaId(0));
    let carried = topology.carried(1).position(|pair| pair == (0, 2)).unwrap();
    message.tags[carried] = Tag::from_bytes([0; 16]);
    run.net.forge(r(1), r(2), Message::Chain(message));
    run.settle();
    assert!(is_stopped(&run, 2));
    assert!(run.commits.is_empty());
    run.finish();
    run.check();
}

/// abs-K19: the tail answers something else, and says what another place is supposed to have vouched for.
#[test]
fn k19_a_tail_does_not_decide_alone() {
    let mut run = Run::new(Protocol::Chain, 4, 1, 1);
    run.liar = Some(3);
    run.net.lose(|frame| kind(&frame.message) == "CHAIN-REPLY");
    run.invoke(0);
    run.settle();
    let Some(reply) = run.net.sent.iter().find_map(|frame| match &frame.message {
        Message::ChainReply(reply) => Some(reply.clone()),
        _ => None,
    }) else {
        panic!("the tail has answered")
    };
    let wrong = ChainReply { outcome: Outcome::read(Bytes::from_static(&[9, 0, 0, 0])), ..reply };
    let own = run.net.keyring(r(3)).tag(c(0), &wrong.statement().bytes());
    for tags in [wrong.tags.clone(), vec![wrong.tags[0], own], vec![own, own], vec![own], Vec::new()] {
        run.net.forge(r(3), c(0), Message::ChainReply(ChainReply { tags, ..wrong.clone() }));
    }
    let ChainReply { instance, client, timestamp, position, history, outcome, .. } = wrong;
    let response = Response { instance, client, timestamp, position, history, outcome };
    run.net.forge(r(3), c(0), Message::Response(response));
    run.settle();
    assert!(run.commits.is_empty());
    run.net.heal();
    run.finish();
    assert_eq!(run.commits[0].history, [1]);
    run.check();
}

/// abs-K19: the tail sends what the others' MACs cover, the digest of the result, and not the result. That is no
/// answer: who took it for one would never panic, and never be served.
#[test]
fn k19_a_digest_is_no_answer() {
    let mut run = Run::new(Protocol::Chain, 4, 1, 1);
    run.liar = Some(3);
    run.net.lose(|frame| frame.from == r(3) && frame.to == c(0));
    run.invoke(0);
    run.settle();
    let reply = said_by_the_tail(&run.net);
    let outcome = Outcome::DoneDigest(reply.outcome.digest());
    run.net.forge(r(3), c(0), Message::ChainReply(ChainReply { outcome, ..reply }));
    run.finish();
    assert_eq!(run.commits[0].history, [1]);
    run.check();
}

/// abs-K19: what the places vouch for reads `refused`, and the number of a refusal. The tail makes a refusal of it.
#[test]
fn k19_a_result_is_not_passed_off_as_a_refusal() {
    let mut net = Net::of(Run::cluster(Protocol::Chain, 4), 1, |_| Counter::default());
    net.lose(|frame| frame.from == r(3) && frame.to == c(0));
    net.submit(0, &Counter::add(u64::from_le_bytes(*b"refused\x01")), false);
    net.settle();
    let reply = said_by_the_tail(&net);
    let Outcome::Done { result, .. } = reply.outcome.clone() else { panic!("it is executed") };
    assert_eq!(result, b"refused\x01"[..]);
    let outcome = Outcome::Refused(Refusal::TooLarge);
    net.forge(r(3), c(0), Message::ChainReply(ChainReply { outcome, ..reply }));
    net.settle();
    assert!(net.completed.is_empty(), "{:?}", net.completed);
    net.heal();
    net.pass(5_000_000);
    assert_eq!(net.completed[0].result, Completion::Done(result));
}

/// What the tail, as its machine has it, has answered.
fn said_by_the_tail<S: Service>(net: &Net<S>) -> ChainReply {
    let Some(Message::ChainReply(reply)) = net.said(r(3), "CHAIN-REPLY").first().map(|frame| &frame.message) else {
        panic!("the tail has answered")
    };
    reply.clone()
}

/// abs-K19: a place that executes vouches for other results than it should. The tail has its own, and stops.
#[test]
fn k19_wrong_results_do_not_pass_the_tail() {
    let mut run = Run::new(Protocol::Chain, 4, 1, 1);
    run.liar = Some(2);
    run.invoke(0);
    run.round();
    run.round();
    run.round();
    let mut message = intercepted(&mut run, 2, 3);
    message.results = Digest::of(Domain::Result, b"wrong");
    let over = message.clone();
    resign(&run, &mut message, 2, 3, &over);
    run.net.forge(r(2), r(3), Message::Chain(message));
    run.settle();
    assert!(is_stopped(&run, 3));
    run.finish();
    run.check();
}

/// abs-L8: ORDERs and CHAIN messages overtake one another, two at a time. Nobody panics in a run without a fault.
#[test]
fn l8_what_overtakes_is_put_in_order() {
    for protocol in [Protocol::ZLight, Protocol::Chain] {
        let mut run = Run::new(protocol, 4, 2, 1);
        let mut held = Vec::new();
        for session in 0..2 {
            run.invoke(session);
            run.round();
            held.splice(0..0, core::mem::take(&mut run.net.in_flight));
        }
        assert!(held.iter().any(|frame| matches!(kind(&frame.message).as_str(), "ORDER" | "CHAIN")));
        run.net.in_flight = held;
        run.settle();
        assert!(run.is_idle() && run.instances() == [1; 4], "{protocol}");
        assert!(!run.anybody_said("PANIC"), "{protocol}");
        assert_eq!(run.journals(), vec![vec![1, 2]; 4], "{protocol}");
        run.check();
    }
}

/// Two of them have logged what the first client asked for. Nothing comes along the chain that follows.
fn inherited_by_a_chain_that_is_silent() -> (Run, Request) {
    let mut run = Run::new(Protocol::Aliph, 4, 2, 1);
    run.invoke(0);
    run.round();
    run.net.in_flight.clear();
    let reports = run.stop(InstanceId(1));
    let all = [&reports[&0], &reports[&1], &reports[&2]];
    run.net.lose(|frame| ["ABORT", "CHAIN"].contains(&kind(&frame.message).as_str()));
    run.begin([all, all, all, all]);
    run.settle();
    assert_eq!(run.instances(), [2; 4]);
    let asked = run.net.sent.iter().find(|frame| frame.from == c(0)).map(|frame| frame.message.clone());
    let Some(Message::Request(asked)) = asked else { panic!("it has asked") };
    let again = Request::new(InstanceId(2), asked.client, asked.timestamp, false, asked.operation.clone());
    let again = again.authenticate_for_all(&run.net.cluster, &run.net.client_keys);
    (run, again)
}

/// A place that waits until something comes along the chain keeps who asks, once, and nothing of what it is sent.
#[test]
fn a_place_that_waits_for_the_chain_answers_each_client_once() {
    let (mut run, again) = inherited_by_a_chain_that_is_silent();
    for _ in 0..20 {
        run.ask(&again, [3]);
    }
    run.settle();
    run.net.heal();
    run.net.sent.clear();
    // What the head is asked makes the init history travel again.
    run.ask(&again, [0]);
    run.settle();
    assert_eq!(run.net.said(r(3), "RESP").len(), 1);
}

/// The same client's next request comes along the chain, while a last place owes it the answer to the one before: the
/// next one is executed in its turn, and the chain goes on.
#[test]
fn an_answer_that_is_owed_does_not_execute_what_comes_along() {
    let (mut run, again) = inherited_by_a_chain_that_is_silent();
    run.ask(&again, [2, 3]);
    run.settle();
    run.net.heal();
    let operation = run.reserve();
    let next = run.net.request(InstanceId(2), 0, again.timestamp.0 + 1, &operation);
    run.ask(&next, [0]);
    run.settle();
    assert!((0..4).all(|id| {
        !run.net.noticed(id, |notice| matches!(notice, Notice::Stopped { instance: InstanceId(2), .. }))
    }));
    assert_eq!(run.net.said(r(3), "CHAIN-REPLY").len(), 1);
    assert!(run.journals().iter().all(|journal| journal.len() == 2));
}

/// A client gives the head more or fewer MACs than there are places to check them: it is refused there, where it is
/// known whose fault that is.
#[test]
fn a_request_with_another_number_of_macs_than_a_chain_needs_is_refused() {
    for n in [4, 7] {
        let mut run = Run::new(Protocol::Chain, n, 1, 1);
        run.settle();
        let operation = run.reserve();
        let whole = run.net.request(InstanceId(1), 5, 1, &operation);
        let for_all = whole.clone().authenticate_for_all(&run.net.cluster, &run.net.client_keys);
        let needed = whole.authentication.tags.iter().len();
        for tags in (1..n).filter(|tags| *tags != needed) {
            let from = if tags < needed { &whole } else { &for_all };
            let mut request = from.clone();
            request.authentication.tags = from.authentication.tags.iter().take(tags).collect();
            run.ask(&request, [0]);
        }
        run.settle();
        assert_eq!(run.net.rejected(0, c(5), Rejection::UnauthenticRequest), n as u64 - 2, "n = {n}");
        run.invoke(0);
        run.settle();
        assert!(run.is_idle() && run.instances() == vec![1; n]);
    }
}
