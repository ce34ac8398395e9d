//! Requests whose clients or primaries play foul: bodies withheld (pbft-F22), MACs that convince only some (pbft-F20).

use super::forging::{batch, pre_prepare, request};
use crate::auth::{Authenticator, Signature, Tag, TreeSignature};
use crate::batch::{Batch, Entry, Reference};
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::ids::{InstanceId, Principal, Sequence, Timestamp, View};
use crate::message::Request;
use crate::protocols::pbft::careful::CAREFUL_TIMEOUTS;
use crate::protocols::pbft::{PbftMessage, PrePrepare};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::Protocol;
use crate::service::Proposal;
use crate::services::Counter;
use crate::testing::net::{INSTANCE, Net, c, cluster, done, ordering, r};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

fn small_inline() -> Limits {
    Limits { inline_bytes_max: 4, ..Limits::default() }
}

/// pbft-F22: no PREPARE without the body; it is fetched by its digest, from whoever has it.
#[test]
fn a_backup_says_prepare_only_with_the_body_in_hand() {
    let mut net = Net::new(4, small_inline());
    net.lose(|frame| frame.from == c(0) && frame.to == r(3));
    net.submit(0, &Counter::add(1), false);
    net.round();
    net.round();
    assert!(!net.said(r(2), "PREPARE").is_empty());
    assert!(net.said(r(3), "PREPARE").is_empty(), "the proposal is there, the body is not");
    assert_eq!(net.said(r(3), "FETCH-REQUEST").len(), 1);
    net.round();
    assert!(net.said(r(3), "PREPARE").is_empty(), "f+1 PREPAREs vouch for the client, not for the body");
    net.round();
    assert_eq!(net.said(r(0), "BODY").len(), 1);
    assert_eq!(net.said(r(3), "PREPARE").len(), 3);
    net.settle();
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
    assert_eq!(net.executed(), [1; 4]);
}

/// pbft-F22: a digest whose body nobody has never commits; the next primary orders what clients do send.
#[test]
fn a_primary_that_orders_a_digest_without_a_body_loses_its_view() {
    let mut net = Net::new(4, small_inline());
    net.isolate(&[0]);
    let withheld = request(&net, 0, 1, &[7; 9]);
    let reference = Entry::Reference(Reference::to(&withheld));
    let proposal = Proposal { time: net.now, ..Proposal::default() };
    let proposal = Arc::new(Batch::new(proposal, alloc::vec![reference]));
    for to in 1..4 {
        net.forge(r(0), r(to), pre_prepare(0, 1, &proposal));
    }
    net.settle();
    assert!((1..4).all(|id| net.said(r(id), "PREPARE").is_empty()));
    assert_eq!(net.add(1), None);
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
    assert_eq!(net.views()[1..], [1; 3]);
}

/// A query, a request for another instance, a big one in full, two of one client, too many, none at all.
#[test]
fn batches_out_of_bounds_are_refused() {
    let mut net = Net::new(4, Limits { inline_bytes_max: 8, batch_requests_max: 2, ..Limits::default() });
    net.isolate(&[0, 2, 3]);
    let of = |net: &Net, session, size| request(net, session, 1, &[7; 16][..size]);
    let made = |instance, read_only| {
        let Principal::Client(client) = c(0) else { unreachable!() };
        Request::new(instance, client, Timestamp(1), read_only, Bytes::new())
            .authenticate(&net.cluster, &net.client_keys)
    };
    let batches = [
        alloc::vec![made(INSTANCE, true)],
        alloc::vec![made(InstanceId(2), false)],
        alloc::vec![of(&net, 0, 9)],
        alloc::vec![of(&net, 0, 8), of(&net, 0, 7)],
        (0..3).map(|session| of(&net, session, 8)).collect(),
        alloc::vec![],
    ];
    let count = batches.len() as u64;
    for requests in batches {
        let proposal = batch(net.now, requests);
        net.forge(r(0), r(1), pre_prepare(0, 1, &proposal));
    }
    net.round();
    assert_eq!(net.rejected(1, r(0), Rejection::BadBatch), count);
    assert!(net.sent.is_empty());
}

/// A request whose MACs hold for these replicas only.
fn partial(net: &Net, session: u32, valid_for: &[usize], signed: bool) -> Message {
    let mut request = request(net, session, net.now.0, &Counter::add(1));
    let spoilt = Tag::from_bytes([0xee; 16]);
    let tags = request.authentication.tags.iter().enumerate();
    request.authentication.tags = tags.map(|(id, tag)| if valid_for.contains(&id) { tag } else { spoilt }).collect();
    if !signed {
        request.authentication.signature = None;
    }
    Message::Request(request)
}

/// pbft-F20 in hybrid mode: the primary orders nothing that only its own MAC vouches for.
#[test]
fn macs_for_the_primary_only_cost_no_view_in_hybrid_mode() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, Limits::default());
    let liar = partial(&net, 1, &[0], false);
    net.forge(c(1), r(0), liar);
    net.settle();
    assert!(net.said(r(0), "PRE-PREPARE").is_empty());
    assert_eq!(net.add(1), done(1));
    net.pass(10_000_000);
    assert_eq!(net.views(), [0; 4]);
    let signed = partial(&net, 1, &[0], true);
    net.forge(c(1), r(0), signed);
    net.settle();
    assert_eq!(net.executed(), [2; 4], "with a signature that holds, its MACs do not matter");
}

/// pbft-F20 in mac mode, as published: the same request stops the view, because no backup can check it.
#[test]
fn macs_for_the_primary_only_cost_a_view_in_mac_mode() {
    let mut net = Net::with(4, 2, ClientAuth::Mac, Limits::default());
    let liar = partial(&net, 1, &[0], false);
    net.forge(c(1), r(0), liar);
    net.settle();
    assert_eq!(net.said(r(0), "PRE-PREPARE").len(), 3);
    assert!((1..4).all(|id| net.said(r(id), "PREPARE").is_empty()));
    assert_eq!(net.add(1), None, "its batch waits for the one before");
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
    assert_eq!(net.views(), [1; 4]);
}

/// pbft-F20: after that everybody asks for signatures, and whoever had to ask again signs.
#[test]
fn a_client_with_partial_macs_costs_one_view_in_a_while() {
    let mut net = Net::with(4, 2, ClientAuth::Mac, Limits::default());
    let cost = |net: &mut Net, sum: u64| {
        let primary = net.views()[1] as usize % 4;
        for valid_for in [&[primary][..], &[(primary + 1) % 4, (primary + 2) % 4]] {
            let liar = partial(net, 1, valid_for, false);
            (0..4).for_each(|id| net.forge(c(1), r(id), liar.clone()));
            net.settle();
        }
        if net.add(1).is_none() {
            net.pass(10_000_000);
            assert_eq!(net.completed.pop().map(|completed| completed.result), done(sum));
        }
        net.views()[1]
    };
    assert_eq!(cost(&mut net, 1), 1);
    assert_eq!((2..10).map(|sum| cost(&mut net, sum)).collect::<Vec<_>>(), [1; 8]);
    net.pass(CAREFUL_TIMEOUTS * Limits::default().view_timeout.0);
    assert_eq!(cost(&mut net, 10), 2, "that is long ago");
}

/// The same where views are watched: they end before a request's time is over. Who had nothing that waited, and left
/// with the others, is brought back once when it has left alone.
#[test]
fn a_client_with_partial_macs_costs_one_watched_view_in_a_while() {
    let cluster = Cluster { protocol: Protocol::Aardvark, ..cluster(4, ClientAuth::Mac, Limits::default()) };
    let mut net = Net::of(cluster, 2, |_| Counter::default());
    let cost = |_| {
        let primary = net.views()[1] as usize % 4;
        let liar = partial(&net, 1, &[(primary + 1) % 4, (primary + 2) % 4], false);
        (0..4).for_each(|id| net.forge(c(1), r(id), liar.clone()));
        net.settle();
        net.pass(10_000_000);
        net.views()[1]
    };
    assert_eq!((0..6).map(cost).collect::<Vec<_>>(), [1, 5, 5, 5, 5, 5]);
}

/// pbft-F20: what f+1 backups vouch for by PREPARE, the others accept.
#[test]
fn a_backup_that_cannot_check_a_request_follows_f_plus_1_that_could() {
    let mut net = Net::with(4, 2, ClientAuth::Mac, Limits::default());
    let liar = partial(&net, 1, &[0, 1, 2], false);
    net.forge(c(1), r(0), liar);
    net.round();
    net.round();
    assert!(net.said(r(3), "PREPARE").is_empty());
    net.round();
    assert_eq!(net.said(r(3), "PREPARE").len(), 3);
    net.settle();
    assert_eq!(net.executed(), [1; 4]);
}

/// Only a request that a correct primary must order may cost it its view.
#[test]
fn an_unauthentic_request_starts_no_timer() {
    let mut net = Net::with(4, 2, ClientAuth::Hybrid, Limits::default());
    let liar = partial(&net, 1, &[0, 1, 2, 3], false);
    for id in 1..4 {
        net.forge(c(1), r(id), liar.clone());
    }
    net.settle();
    assert_eq!(net.rejected(1, r(1), Rejection::UnauthenticRequest), 1, "its signature is missing");
    net.pass(10_000_000);
    assert_eq!(net.views(), [0; 4]);
}

/// What a backup passes on twice comes before all others: that is for what it has watched longest (abs-K30).
#[test]
fn k30_a_client_that_asks_again_gets_no_turn() {
    let mut net = Net::new(4, Limits::default());
    net.lose(|frame| frame.to == r(0));
    let asked = Message::Request(request(&net, 1, 5, &Counter::add(1)));
    for _ in 0..3 {
        net.forge(c(1), r(1), asked.clone());
        net.settle();
    }
    assert_eq!(net.said(r(1), "REQUEST").len(), 1);
}

/// One client cannot speak for another, and a replica can only pass on.
#[test]
fn a_request_is_its_clients_or_nobodys() {
    let mut net = Net::with(4, 2, ClientAuth::Mac, Limits::default());
    let mut stolen = request(&net, 0, 5, &Counter::add(1));
    stolen.authentication.tags = Authenticator::default();
    net.forge(r(2), r(0), Message::Request(stolen));
    net.settle();
    assert_eq!(net.rejected(0, r(2), Rejection::UnauthenticRequest), 1);
    let mine = request(&net, 0, 5, &Counter::add(1));
    net.forge(r(2), r(0), Message::Request(mine));
    net.settle();
    assert_eq!(net.executed(), [1; 4]);
}

/// In signature mode only its link vouches for a big request until it is watched or ordered: what somebody else slipped
/// in under the client's name and timestamp gives way to what the client signed.
#[test]
fn what_a_client_did_not_sign_does_not_keep_out_what_it_did() {
    let mut net = Net::with(4, 2, ClientAuth::Signature, small_inline());
    let mut stolen = request(&net, 1, 5, &Counter::add(9));
    stolen.authentication.signature = None;
    let signed = request(&net, 1, 5, &Counter::add(1));
    for request in [stolen, signed.clone(), signed] {
        net.forge(c(1), r(1), Message::Request(request));
        net.settle();
    }
    assert_eq!(net.executed(), [1; 4], "replica 1 passed it on");
    assert_eq!(net.add(1), done(2));
}

/// The same batch for two views is two proposals: a view that has not begun is nobody's.
#[test]
fn a_proposal_of_another_instance_means_nothing() {
    let mut net = Net::new(4, Limits::default());
    let proposal = batch(net.now, alloc::vec![request(&net, 0, 1, b"")]);
    let pre_prepare = PrePrepare { view: View(0), sequence: Sequence(1), batch: proposal };
    let Message::Ordering(mut foreign) = ordering(PbftMessage::PrePrepare(pre_prepare)) else { unreachable!() };
    foreign.instance.0 += 1;
    net.forge(r(0), r(1), Message::Ordering(foreign));
    net.settle();
    assert_eq!(net.rejected(1, Principal::Replica(crate::ids::ReplicaId(0)), Rejection::WrongInstance), 1);
    assert!(net.sent.is_empty());
}

/// MACs for more replicas than there are would make a batch longer than it may be.
#[test]
fn a_request_with_macs_for_nobody_is_refused() {
    let mut net = Net::new(4, Limits::default());
    let mut asked = request(&net, 0, 1, &Counter::add(1));
    let tags: Vec<Tag> = asked.authentication.tags.iter().collect();
    for (more, refused) in [(60, 1), (0, 1)] {
        let padded = tags.iter().copied().chain((0..more).map(|_| Tag::from_bytes([0; 16])));
        asked.authentication.tags = padded.collect::<Authenticator>();
        net.forge(c(0), r(0), Message::Request(asked.clone()));
        net.settle();
        assert_eq!(net.rejected(0, c(0), Rejection::UnauthenticRequest), refused);
    }
    assert_eq!(net.executed(), [1; 4]);
}

/// What a proposal costs to check is spent on what may be accepted: the primary's of this view, within its bounds.
#[test]
fn proofs_are_checked_in_what_may_be_accepted_only() {
    let mut net = Net::new(4, Limits { batch_requests_max: 4, ..Limits::default() });
    net.isolate(&[0, 2]);
    let checked = |net: &Net| net.hosts[1].replica.keyring().counters().signatures_checked.get();
    let before = checked(&net);
    let forged = |session| {
        let Principal::Client(client) = c(session) else { unreachable!() };
        let mut request = Request::new(INSTANCE, client, Timestamp(1), false, Bytes::new());
        let signature = Signature([1; 64]);
        request.authentication.signature = Some(TreeSignature { signature, sides: 0, path: Vec::new() });
        request
    };
    let [few, many] = [4, 5].map(|number| batch(net.now, (0..number).map(forged).collect()));
    for (from, view, proposal) in [(2, 0, &few), (2, 2, &few), (0, 0, &many), (0, 4, &few)] {
        net.forge(r(from), r(1), pre_prepare(view, 1, proposal));
        net.settle();
    }
    assert_eq!(checked(&net), before);
    net.forge(r(0), r(1), pre_prepare(0, 1, &few));
    net.settle();
    assert_eq!(checked(&net), before + 4);
}
