//! Sentences of the thesis on Ring about its resilient mode, as tests, and a golden script. As printed the mode is
//! unsafe and makes no progress, so most tests check what `docs/papers/ring.md` says instead.

use super::{Order, Resilient, ResilientMessage};
use crate::auth::Claimed;
use crate::batch::{Batch, Entry};
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::digest::Digest;
use crate::history::LogEntry;
use crate::ids::{InstanceId, ReplicaId};
use crate::message::Request;
use crate::notice::Notice;
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::Quota;
use crate::service::Proposal;
use crate::services::Counter;
use crate::stop::StopReason;
use crate::switching::certificate::Prepared;
use crate::testing::net::{INSTANCE, Net, c, cluster, done, kind, r};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::ToString;
use alloc::vec::Vec;

fn net_with(schedule: &str, quota: Quota, history_interval: u64) -> Net {
    let limits = Limits { history_interval, ..Limits::default() };
    let protocol = schedule.parse().unwrap();
    let cluster = Cluster { protocol, quota, ..cluster(4, ClientAuth::Hybrid, limits) };
    let mut net = Net::of(cluster, 1, |_| Counter::default());
    net.settle();
    net
}

fn net() -> Net {
    net_with("ring-resilient", Quota::Fixed(99), 64)
}

fn positions(net: &Net) -> Vec<u64> {
    net.hosts.iter().map(|host| host.replica.report().position).collect()
}

/// Section 4.4: "Ring breaks off the linear (circular) structure, and replies only when the request has been processed
/// by at least 2f + 1 replicas."
#[test]
fn what_2f_1_replicas_have_processed_is_answered() {
    let mut net = net();
    net.isolate(&[3]);
    assert_eq!(net.add(1), done(1), "by 2f + 1 of 3f + 1");
    net.isolate(&[2, 3]);
    assert_eq!(net.add(1), None);
    net.pass(400_000);
    assert_eq!(positions(&net), [1, 1, 1, 0], "2f are not enough");
    net.isolate(&[3]);
    net.pass(1_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(2));
}

/// Section 4.4: "Ring uses digital signatures as a method of discovering the identities of the replicas which have
/// processed the request." A signature counts for its signer, whoever passes it on, and once.
#[test]
fn signatures_tell_who_has_processed_a_request() {
    let mut net = net();
    net.lose(|frame| frame.to == r(1) && kind(&frame.message) == "PREP" || frame.from == r(1));
    net.submit(0, &Counter::add(1), false);
    net.settle();
    let prepare = |net: &Net, from: u8| {
        let said = net.said(r(from), "PREP").into_iter().rev();
        said.map(|frame| frame.message.clone()).next().expect("it has signed")
    };
    let (of_r2, of_r3) = (prepare(&net, 2), prepare(&net, 3));
    let before = net.said(r(1), "COMM").len();
    // r1 has its own signature and the sequencer's.
    let Message::Resilient(Resilient { message: ResilientMessage::Prepare(signed), .. }) = &of_r2 else { panic!() };
    let stolen = Claimed::signed(*signed.claims(), ReplicaId(3), signed.signature());
    let say = |message| Message::Resilient(Resilient { instance: INSTANCE, message });
    net.forge(r(3), r(1), say(ResilientMessage::Prepare(stolen)));
    net.settle();
    assert_eq!(net.said(r(1), "COMM").len(), before, "r3 did not sign that");
    assert_eq!(net.rejected(1, r(3), Rejection::BadSignature), 1);
    net.forge(r(3), r(1), of_r3);
    net.settle();
    assert_eq!(net.said(r(1), "COMM").len(), before + 3, "the third");
}

/// Section 4.4: "replicas use connections to their f + 1 successors". Here each has a link to every other one, and
/// nothing is passed on: a signature needs no relay.
#[test]
fn everybody_tells_everybody() {
    let mut net = net();
    net.sent.clear();
    assert_eq!(net.add(1), done(1));
    let receivers = |id: u8, what| net.said(r(id), what).iter().map(|frame| frame.to).collect::<Vec<_>>();
    for id in 0..4 {
        let others: Vec<_> = (0..4).filter(|other| *other != id).map(r).collect();
        assert_eq!(receivers(id, "COMM"), others);
        let signed = receivers(id, if id == 0 { "RING-ORDER" } else { "PREP" });
        assert!(others.iter().all(|other| signed.contains(other) || *other == r(0) && id != 0), "{id}: {signed:?}");
    }
}

/// Section 4.4: "In this mode, Ring handles RING, ACK, and PANIC messages in the same way as the fast mode does." Here
/// it knows none of them: a client asks everybody, again and again, and never panics (Resilient 1).
#[test]
fn clients_ask_everybody_and_never_panic() {
    let mut net = net();
    net.isolate(&[1, 2, 3]);
    assert_eq!(net.add(1), None);
    net.pass(10_000_000);
    assert_eq!(net.said(c(0), "PANIC").len(), 0);
    let asked = [0, 1, 2, 3].map(|id| net.said(c(0), "REQUEST").iter().filter(|frame| frame.to == r(id)).count());
    assert!(asked.iter().all(|count| *count > 1), "{asked:?}");
    assert!(!net.sent.iter().any(|frame| matches!(kind(&frame.message).as_str(), "RING" | "ACK")));
}

/// Section 4.4: "in that case, the replica will panic and stop the processing, triggering a switch to a new instance of
/// Ring, with a different configuration, and a new sequencer."
#[test]
fn who_waits_in_vain_stops_and_another_sequencer_serves() {
    let mut net = net();
    net.isolate(&[0]);
    assert_eq!(net.add(1), None);
    net.pass(30_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
    let why = |notice: &Notice| matches!(notice, Notice::Stopped { reason: StopReason::RequestWaited, .. });
    assert!((1..4).any(|id| net.noticed(id, why)));
    let head = |instance| net.cluster.specification(InstanceId(instance)).head;
    assert_ne!(head(1), head(2));
    assert!(!net.said(r(1), "RING-ORDER").is_empty(), "the next sequencer's");
}

/// Section 4.1.1: "Ring stays in the resilient mode until it has processed 2^k requests", where k counts these
/// instances.
#[test]
fn the_quota_doubles_and_ends_the_instance() {
    let mut net = net_with("ring-resilient,ring-fast", Quota::Exponential { minimum: 2 }, 64);
    let quota = |net: &Net, instance| net.cluster.specification(InstanceId(instance)).requests(false);
    assert_eq!([1, 3, 5].map(|instance| quota(&net, instance)), [2, 4, 8]);
    let instances = |net: &Net| net.hosts.iter().map(|host| host.replica.instance().0).collect::<Vec<_>>();
    assert_eq!(net.add(1), done(1));
    assert_eq!(instances(&net), [1; 4]);
    assert_eq!(net.add(1), done(2));
    net.settle();
    assert_eq!(instances(&net), [2; 4]);
}

/// Section 5.1.5: "When a replica receives the same checkpoint from all of the other replicas, it collapses its
/// history." Here 2f + 1 make one, so that a silent replica stops nobody (ring-F14).
#[test]
fn a_checkpoint_waits_for_2f_1_replicas() {
    let anchored = |net: &Net, id| net.noticed(id, |notice| matches!(notice, Notice::Anchored { position: 4, .. }));
    for (silent, expected) in [(&[3][..], true), (&[2, 3][..], false)] {
        let mut net = net_with("ring-resilient", Quota::Fixed(99), 4);
        net.lose(move |frame| {
            kind(&frame.message) == "RING-CHECKPOINT" && silent.iter().any(|id| frame.from == r(*id))
        });
        for value in 1..=4 {
            assert_eq!(net.add(1), done(value));
        }
        assert_eq!(anchored(&net, 0), expected);
    }
}

/// The sequencer's first batch, of this request alone.
fn order(net: &Net, request: &Request) -> Message {
    let proposal = Proposal { time: net.now, seed: Digest::ZERO };
    let history = Digest::ZERO.chain(LogEntry::new(proposal.clone(), request.clone()).digest());
    let prepare = net.keyring(r(0)).sign(Prepared { instance: INSTANCE, position: 1, history });
    let batch = Batch::new(proposal, alloc::vec![Entry::Inline(request.clone())]);
    let message = ResilientMessage::Order(Box::new(Order { first: 1, batch, prepare: prepare.into() }));
    Message::Resilient(Resilient { instance: INSTANCE, message })
}

/// Section 4.4.1, step R+4b.2: "If there were less than 2f + 1 valid signatures in the request, the replica adds its
/// own signature, and forwards the updated request". So it signs whatever a sequencer orders; here it signs one history
/// (ring-F4).
#[test]
fn nobody_signs_two_orders() {
    let mut net = net();
    net.isolate(&[0, 2, 3]);
    let [one, two] = [1, 2].map(|timestamp| net.request(INSTANCE, 0, timestamp, &Counter::add(1)));
    for request in [&one, &two] {
        let message = order(&net, request);
        net.forge(c(0), r(1), Message::Request(request.clone()));
        net.forge(r(0), r(1), message);
        net.settle();
    }
    let signed: BTreeSet<_> = net.said(r(1), "PREP").iter().map(|frame| frame.message.to_string()).collect();
    assert_eq!(signed.len(), 1, "{signed:?}");
    assert_eq!(positions(&net)[1], 0, "and executes nothing for one signature and its own");
    assert_eq!(net.rejected(1, r(0), Rejection::Equivocation), 1);
}

#[test]
fn every_script_goes_as_written() {
    crate::testing::stage::play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocols/ring_resilient/scripts"), 1);
}
