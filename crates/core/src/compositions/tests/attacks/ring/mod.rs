//! Flaws (F) of Ring as the thesis has it, and attacks (A) on it: the numbers are those of `docs/papers/ring.md`.

mod batches;
mod clients;
mod entries;

use crate::auth::Tag;
use crate::cluster::{Cluster, Limits};
use crate::compositions::tests::conformance::ring_fast;
use crate::compositions::tests::run::Run;
use crate::compositions::tests::script::panic;
use crate::digest::{Digest, Domain};
use crate::history::LogEntry;
use crate::ids::{ClientId, IdentityId, InstanceId, Principal, ReplicaId, Timestamp};
use crate::message::{Outcome, Request};
use crate::notice::Notice;
use crate::protocols::ring_fast::{
    Body, PER_ENTRY_MAX, PaceMessage, Path, Probe, RingMessage, RingPace, RingReply, Stamp, Strike, WINDOW,
};
use crate::registry::Message;
use crate::rejection::Rejection;
use crate::schedule::Protocol;
use crate::service::Proposal;
use crate::switching::Switch;
use crate::testing::net::{c, kind, r};
use alloc::vec::Vec;
use alloc::{format, vec};
use bytes::Bytes;

/// The sequencer of the first instance.
const SEQUENCER: ReplicaId = ReplicaId(0);

fn path(run: &Run, entry: u8) -> Path {
    Path::new(run.net.cluster.replicas, SEQUENCER, ReplicaId(entry))
}

/// A client begins a call at this entry: the time decides which one it asks.
fn invoke_at(run: &mut Run, session: usize, entry: u8) {
    let Principal::Client(client) = c(session as u32) else { unreachable!() };
    let asks = |wait: &u64| {
        let at = Timestamp(run.net.now.0 + wait + 10);
        Path::entry_for(run.net.cluster.replicas, client, at, 0) == ReplicaId(entry)
    };
    run.net.now.0 += (0..99).find(asks).unwrap();
    run.invoke(session);
}

/// A request for this entry which no machine makes, with its client's MACs.
fn request_at(run: &mut Run, session: u32, entry: u8, least: u64) -> Request {
    let Principal::Client(client) = c(session) else { unreachable!() };
    let asks = |at: &u64| Path::entry_for(run.net.cluster.replicas, client, Timestamp(*at), 0) == ReplicaId(entry);
    let timestamp = (least..least + 99).find(asks).unwrap();
    let operation = run.reserve();
    run.net.request(InstanceId(1), session, timestamp, &operation)
}

/// Whether a replica has stopped, and why.
fn reason(run: &Run, id: usize) -> Option<&'static str> {
    let mut notices = run.net.hosts[id].notices.iter();
    notices.find_map(|(_, notice)| match notice {
        Notice::Stopped { reason, .. } => Some(reason.words()),
        _ => None,
    })
}

/// So many message delays.
fn rounds(run: &mut Run, count: usize) {
    for _ in 0..count {
        run.round();
    }
}

/// Takes the one message around the ring that is in flight.
fn intercepted(run: &mut Run) -> (Principal, Principal, RingMessage) {
    let at = run.net.in_flight.iter().position(|frame| matches!(frame.message, Message::Ring(_))).unwrap();
    let frame = run.net.in_flight.remove(at);
    let Message::Ring(message) = frame.message else { unreachable!() };
    (frame.from, frame.to, message)
}

/// Somebody asks this entry of a ring of n. The message that is under way after so many delays, from whom and to whom.
fn under_way(n: usize, entry: u8, delays: usize) -> (Run, Principal, Principal, RingMessage) {
    let mut run = Run::new(ring_fast(), n, 1, 1);
    invoke_at(&mut run, 0, entry);
    rounds(&mut run, delays);
    let (from, to, message) = intercepted(&mut run);
    (run, from, to, message)
}

/// The maker's MACs anew, for these receivers, over what `over` says.
fn resign(run: &Run, message: &mut RingMessage, maker: usize, receivers: &[usize], over: &RingMessage) {
    let path = path(run, message.entry.0);
    let statement = over.statement(&path, over.body.digest(), maker);
    let keyring = run.net.keyring(Principal::Replica(path.at(maker)));
    for (index, pair) in path.carried(maker).enumerate() {
        if pair.0 == maker && receivers.contains(&pair.1) {
            message.tags[index] = keyring.tag(Principal::Replica(path.at(pair.1)), &statement);
        }
    }
}

/// The batch of one request that an entry sends on.
fn of_entry(run: &Run, entry: u8, request: &Request) -> RingMessage {
    let mut request = request.clone();
    request.authentication.tags = request.authentication.tags.clone().iter().skip(1).collect();
    let body = Body::Requests(vec![request]);
    let (instance, entry) = (InstanceId(1), ReplicaId(entry));
    let tags = vec![Tag::from_bytes([0; 16]); path(run, entry.0).carried(0).count()];
    RingMessage { instance, entry, body, strikes: vec![], stamp: None, tags, reply_tags: vec![] }
}
