//! Sentences of *The Next 700 BFT Protocols* about Chain, as tests, and a golden script. Where we deviate on purpose, a
//! test says so and checks what `docs/papers/abstract.md` says instead.

use super::{ChainMessage, ChainReply};
use crate::auth::Tag;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::digest::Digest;
use crate::message::Request;
use crate::notice::Notice;
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::Protocol;
use crate::services::Counter;
use crate::stop::StopReason;
use crate::testing::net::{INSTANCE, Net, c, cluster, done, kind, r};
use alloc::vec::Vec;

fn net_of(n: usize) -> Net {
    let cluster = Cluster { protocol: Protocol::Chain, ..cluster(n, ClientAuth::Mac, Limits::default()) };
    Net::of(cluster, 2, |_| Counter::default())
}

fn net() -> Net {
    net_of(4)
}

fn positions(net: &Net) -> Vec<u64> {
    net.hosts.iter().map(|host| host.replica.report().position).collect()
}

fn stopped(net: &Net) -> Vec<Option<StopReason>> {
    let reason = |notice: &Notice| if let Notice::Stopped { reason, .. } = notice { Some(*reason) } else { None };
    net.hosts.iter().map(|host| host.notices.iter().find_map(|(_, notice)| reason(notice))).collect()
}

/// What goes along the chain, in the order in which it was sent.
fn batches(net: &Net) -> Vec<&ChainMessage> {
    let said = net.sent.iter().map(|frame| &frame.message);
    said.filter_map(|message| if let Message::Chain(batch) = message { Some(batch) } else { None }).collect()
}

/// A client's request, one of whose MACs is spoilt.
fn spoilt(net: &Net, at: usize) -> Request {
    let mut request = net.request(INSTANCE, 0, 1, &Counter::add(1));
    let tags = request.authentication.tags.iter().enumerate();
    request.authentication.tags =
        tags.map(|(place, tag)| if place == at { Tag::from_bytes([0xee; 16]) } else { tag }).collect();
    request
}

/// Section 5.3.1: "each replica r_i forwards the message to its successor", and "upon receiving the message, the tail
/// sends the reply to the client".
#[test]
fn a_request_goes_from_place_to_place_and_the_tail_answers() {
    let mut net = net();
    assert_eq!(net.add(1), done(1));
    let way: Vec<_> = net.sent.iter().map(|frame| (frame.from, frame.to)).collect();
    assert_eq!(way, [(c(0), r(0)), (r(0), r(1)), (r(1), r(2)), (r(2), r(3)), (r(3), c(0))]);
}

/// Section 5.3.1: "replica r_i in Chain accepts a message only if sent by its predecessor".
#[test]
fn a_place_listens_to_its_predecessor_alone() {
    let mut net = net();
    net.submit(0, &Counter::add(1), false);
    net.round();
    let batch = net.in_flight.pop().unwrap().message;
    net.forge(r(0), r(2), batch.clone());
    net.forge(r(3), r(2), batch);
    net.settle();
    assert_eq!((positions(&net), stopped(&net)), (alloc::vec![1, 0, 0, 0], alloc::vec![None; 4]));
    assert_eq!([r(0), r(3)].map(|from| net.rejected(2, from, Rejection::WrongSender)), [1; 2]);
}

/// Section 5.3.1: "The successor set of clients consists of the f+1 first replicas in the chain order."
#[test]
fn clients_make_macs_for_the_first_f_1_places() {
    for f in 1..4 {
        let mut net = net_of(3 * f + 1);
        net.submit(0, &Counter::add(1), false);
        let Message::Request(request) = &net.in_flight[0].message else { panic!("a request") };
        assert_eq!(request.authentication.tags.iter().count(), f + 1);
        net.settle();
        assert_eq!(net.completed.len(), 1, "f = {f}: they are enough");
    }
}

/// Section 5.3.1: "requiring processes to generate (at most) f+1 MACs (in contrast to 3f+1 in traditional
/// authenticators)".
#[test]
fn nobody_makes_more_than_f_1_macs() {
    for f in 1..4_usize {
        let mut net = net_of(3 * f + 1);
        let made = |net: &Net, party| net.keyring(party).counters().macs_made.get();
        let parties: Vec<_> = (0..3 * f as u8 + 1).map(r).chain([c(0)]).collect();
        let before: Vec<_> = parties.iter().map(|party| made(&net, *party)).collect();
        assert_eq!(net.add(1), done(1));
        let most = parties.iter().zip(before).map(|(party, before)| made(&net, *party) - before).max();
        assert_eq!(most, Some(f as u64 + 1));
    }
}

/// Section 5.3.2, step `C2`: "(otherwise the head discards m)".
#[test]
fn a_head_drops_what_it_cannot_check() {
    let mut net = net();
    let request = spoilt(&net, 0);
    net.forge(c(0), r(0), Message::Request(request));
    net.settle();
    assert_eq!((positions(&net), stopped(&net)), (alloc::vec![0; 4], alloc::vec![None; 4]));
    assert!(batches(&net).is_empty());
}

/// Section 5.3.2, step `C3`: "In case MAC verification mentioned above fails, replica stops executing Step `C3` in
/// instance i." Here it stops in every respect and says so, for its predecessor's own MAC holds (abs-P3).
#[test]
fn a_place_that_cannot_check_a_request_stops() {
    let mut net = net();
    net.lose(|frame| kind(&frame.message) == "ABORT");
    let request = spoilt(&net, 1);
    net.forge(c(0), r(0), Message::Request(request));
    net.settle();
    assert_eq!(positions(&net), [1, 0, 0, 0]);
    assert_eq!(stopped(&net), [None, Some(StopReason::Unauthentic), None, None]);
    net.submit(1, &Counter::add(1), false);
    net.settle();
    assert_eq!(positions(&net), [2, 0, 0, 0]);
}

/// Section 5.3.1: "only f + 1 last replicas execute requests and calculate the application level reply." Here all
/// places from f on execute at once, and vouch for the results to the next one (`chain/mod.rs`); the others come after.
#[test]
fn all_places_from_f_on_execute_at_once() {
    let mut net = net_of(7);
    net.submit(0, &Counter::add(1), false);
    net.settle();
    let results: Vec<_> = batches(&net).iter().map(|batch| batch.results == Digest::ZERO).collect();
    assert_eq!(results, [true, true, false, false, false, false], "of the first f nobody knows one");
    assert!(net.hosts.iter().all(|host| host.replica.estate().position() == 1), "in the end all have executed");
}

/// Section 5.3.2, step `C4`: a client takes a reply "with MACs from last f + 1 replicas".
#[test]
fn a_client_wants_the_macs_of_the_last_f_1_places() {
    let mut net = net();
    net.submit(0, &Counter::add(1), false);
    net.lose(|frame| frame.to == c(0));
    net.settle();
    let said = net.said(r(3), "CHAIN-REPLY");
    let Message::ChainReply(reply) = said[0].message.clone() else { panic!("a reply") };
    assert_eq!(reply.tags.len(), 2);
    for at in 0..2 {
        let mut tags = reply.tags.clone();
        tags[at] = Tag::from_bytes([0; 16]);
        net.forge(r(3), c(0), Message::ChainReply(ChainReply { tags, ..reply.clone() }));
        net.settle();
        assert!(net.completed.is_empty(), "without the MAC of r{}", at + 2);
    }
    net.forge(r(3), c(0), Message::ChainReply(reply));
    net.settle();
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
}

#[test]
fn every_script_goes_as_written() {
    crate::testing::stage::play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocols/chain/scripts"), 1);
}
