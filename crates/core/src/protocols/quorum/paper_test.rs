//! Sentences of *The Next 700 BFT Protocols* about Quorum, as tests, and a golden script. Where we deviate on purpose,
//! a test says so and checks what `docs/papers/abstract.md` says instead.

use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::ids::{ClientId, InstanceId, Timestamp};
use crate::notice::Notice;
use crate::protocols::speculative::Response;
use crate::registry::Message;
use crate::schedule::Protocol;
use crate::services::Counter;
use crate::switching::{Panic, Switch, SwitchMessage};
use crate::testing::net::{IDENTITY, INSTANCE, Net, c, cluster, done, kind, r};
use alloc::vec::Vec;

fn net(clients: u32) -> Net {
    let cluster = Cluster { protocol: Protocol::Quorum, ..cluster(4, ClientAuth::Mac, Limits::default()) };
    Net::of(cluster, clients, |_| Counter::default())
}

fn positions(net: &Net) -> Vec<u64> {
    net.hosts.iter().map(|host| host.replica.report().position).collect()
}

/// What all replicas have answered, in the order in which they did.
fn responses(net: &Net) -> Vec<&Response> {
    let said = net.sent.iter().map(|frame| &frame.message);
    said.filter_map(|message| if let Message::Response(response) = message { Some(response) } else { None }).collect()
}

/// Two clients ask, and half of the replicas hear the one first, half the other. What they answer is in flight.
fn race(net: &mut Net) {
    net.submit(0, &Counter::add(1), false);
    net.submit(1, &Counter::add(2), false);
    let heard_first = |from, to| (from == c(0)) == (to == r(0) || to == r(1));
    let requests = core::mem::take(&mut net.in_flight);
    let (first, second) = requests.into_iter().partition(|frame| heard_first(frame.from, frame.to));
    net.deliver_all(first);
    net.deliver_all(second);
}

/// Section 5.2.1: "the client sends the request to all replicas that speculatively execute it and send a reply to the
/// client."
#[test]
fn all_replicas_execute_and_answer_at_once() {
    let mut net = net(1);
    net.submit(0, &Counter::add(1), false);
    assert_eq!(net.said(c(0), "REQUEST").len(), 4);
    net.round();
    assert_eq!(positions(&net), [1; 4]);
    let said = net.sent.iter().filter(|frame| frame.from != c(0));
    assert!(said.clone().all(|frame| frame.to == c(0) && kind(&frame.message) == "RESP"), "and nothing else");
    assert_eq!(said.count(), 4);
}

/// Section 5.2.1: "replies sent by replicas contain a digest of their history."
#[test]
fn answers_tell_the_history() {
    let mut net = net(2);
    assert_eq!(net.add(1), done(1));
    let digests: Vec<_> = responses(&net).iter().map(|response| response.history).collect();
    assert_eq!(digests, [net.hosts[0].replica.report().history; 4]);
    race(&mut net);
    let second: Vec<_> = responses(&net)[8..].iter().map(|response| (response.position, response.history)).collect();
    assert!(second.iter().all(|(position, _)| *position == 3), "{second:?}");
    assert_eq!((second[0], second[2]), (second[1], second[3]));
    assert_ne!(second[0], second[2], "equal requests in another order are another history");
}

/// Section 5.2.1: "The client checks that the histories sent by the 3f + 1 replicas match."
#[test]
fn a_client_wants_equal_histories_of_everybody() {
    let mut net = net(2);
    net.lose(|frame| frame.from == r(3) && kind(&frame.message) == "RESP");
    assert_eq!(net.add(1), None, "3f are not enough");
    net.heal();
    net.pass(600_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1), "asked again, the fourth answers");
    race(&mut net);
    net.round();
    assert!(net.completed.is_empty(), "3f + 1 that do not match are not");
    assert_eq!((net.said(c(0), "PANIC").len(), net.said(c(1), "PANIC").len()), (4, 4));
}

/// Section 5.2.1: "concurrent requests can be executed in different orders by different replicas, inducing the current
/// Quorum instance to abort."
#[test]
fn contention_ends_the_instance() {
    let mut net = net(2);
    race(&mut net);
    net.settle();
    assert!(net.hosts.iter().all(|host| host.replica.instance() == InstanceId(2)));
    let mut results: Vec<_> = net.completed.iter().map(|completed| Some(completed.result.clone())).collect();
    results.sort_by_key(|result| *result != done(1) && *result != done(2));
    assert_eq!(results.len(), 2);
    assert!([done(1), done(2)].contains(&results[0]) && results[1] == done(3), "both are served there: {results:?}");
}

/// Section 5.2.2, step `Q2`: a replica executes a request "if `req.t_c` is higher than `t_j[c]`". What it says to one
/// that is equal the paper leaves open. Here it answers from the client table, at the request's own position (abs-D5).
#[test]
fn what_is_asked_again_is_answered_again_and_not_executed() {
    let mut net = net(2);
    net.submit(0, &Counter::add(1), false);
    let request = net.in_flight[0].message.clone();
    net.settle();
    net.submit(1, &Counter::add(2), false);
    net.settle();
    net.forge(c(0), r(0), request);
    net.settle();
    assert_eq!(positions(&net), [2; 4]);
    let of_r0: Vec<_> = responses(&net).into_iter().filter(|response| response.client.session == 0).collect();
    assert_eq!(of_r0.len(), 5);
    assert_eq!((of_r0[4].position, of_r0[4].history), (1, of_r0[0].history));
}

/// Section 5.2.1: "replicas stop executing requests on reception of a PANIC message".
#[test]
fn who_hears_a_panic_executes_nothing_more() {
    let mut net = net(2);
    let client = ClientId { identity: IDENTITY, session: 1 };
    let message = SwitchMessage::Panic(Panic { client, timestamp: Timestamp(1) });
    net.forge(c(1), r(2), Message::Switch(Switch { instance: INSTANCE, message }));
    net.round();
    net.lose(|frame| kind(&frame.message) == "ABORT");
    net.in_flight.clear();
    net.submit(0, &Counter::add(1), false);
    net.settle();
    assert_eq!(positions(&net), [1, 1, 0, 1]);
    assert!(net.said(r(2), "RESP").is_empty());
    assert!(net.noticed(2, |notice| matches!(notice, Notice::Stopped { .. })));
}

/// Section 5.2.1: "The client collects 2f + 1 signed messages containing replica histories and generates an abort
/// history." Here the replicas send these to one another and begin the next instance by themselves (abs-P11).
#[test]
fn replicas_generate_the_abort_history_of_2f_1_reports() {
    let mut net = net(2);
    assert_eq!(net.add(5), done(5));
    net.lose(|frame| frame.from == r(3) && kind(&frame.message) == "ABORT");
    race(&mut net);
    net.settle();
    let reports: Vec<_> = net.sent.iter().filter(|frame| kind(&frame.message) == "ABORT").collect();
    assert!(reports.iter().all(|frame| frame.to != c(0) && frame.to != c(1)), "no client carries one");
    let inits = net.sent.iter().filter_map(|frame| match &frame.message {
        Message::Switch(Switch { message: SwitchMessage::Init(proof), .. }) => Some(proof.reports.len()),
        _ => None,
    });
    let mut inits = inits.peekable();
    assert!(inits.peek().is_some() && inits.all(|reports| reports == 3));
    let begun = |notice: &Notice| matches!(notice, Notice::Begun { position, .. } if *position >= 1);
    assert!((0..4).all(|id| net.noticed(id, begun)), "what committed is in it");
}

#[test]
fn every_script_goes_as_written() {
    crate::testing::stage::play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocols/quorum/scripts"), 1);
}
