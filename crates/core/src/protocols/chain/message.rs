//! What travels along the chain and back to the client.

use super::topology::Topology;
use crate::auth::{Keyring, Tag};
use crate::cluster::Cluster;
use crate::digest::{Digest, Domain};
use crate::ids::{ClientId, InstanceId, Principal, Timestamp};
use crate::message::{Outcome, Request};
use crate::protocols::speculative::{self, BATCH_MAX};
use crate::rejection::Rejection;
use crate::replicas::REPLICAS_MAX;
use crate::service::Proposal;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::wire_struct;
use alloc::vec::Vec;
use core::fmt;

/// First byte of the statement of a replica's MAC for another.
const CHAIN: u8 = 0xa2;
/// First byte of the statement of a replica's MAC for a client.
const CHAIN_REPLY: u8 = 0xa3;

/// MACs between replicas on one link: (f+1)(f+2)/2 for the largest cluster.
const TAGS_MAX: usize = REPLICAS_MAX * REPLICAS_MAX;

/// A machine that an instance of this protocol may be a part of.
pub(crate) trait Speaker: speculative::Speaker<Outgoing: From<ChainMessage> + From<ChainReply>> {}

impl<M: speculative::Speaker<Outgoing: From<ChainMessage> + From<ChainReply>>> Speaker for M {}

/// CHAIN: a batch on its way from one place to the next. It has no frame MAC: what authenticates it is inside.
#[derive(Clone, Debug)]
pub struct ChainMessage {
    /// The instance.
    pub instance: InstanceId,
    /// The position of the first request.
    pub first: u64,
    /// Agreed time and seed.
    pub proposal: Proposal,
    /// The requests, each with its client's MACs for the places still to come.
    pub requests: Vec<Request>,
    /// The history's digest after the batch (abs-D10).
    pub history: Digest,
    /// The digest of all results, once a place that executes has been passed; zero before.
    pub results: Digest,
    /// MACs between replicas, in the order of [`Topology::carried`].
    pub tags: Vec<Tag>,
    /// For each request the MACs of the places 2f and later for its client, all of the first request first.
    pub reply_tags: Vec<Tag>,
}

impl Wire for ChainMessage {
    fn encode(&self, out: &mut impl Sink) {
        self.instance.encode(out);
        self.first.encode(out);
        self.proposal.encode(out);
        encode_list(&self.requests, out);
        self.history.encode(out);
        self.results.encode(out);
        encode_list(&self.tags, out);
        encode_list(&self.reply_tags, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self {
            instance: Wire::decode(reader)?,
            first: Wire::decode(reader)?,
            proposal: Wire::decode(reader)?,
            requests: reader.list(BATCH_MAX)?,
            history: Wire::decode(reader)?,
            results: Wire::decode(reader)?,
            tags: reader.list(TAGS_MAX)?,
            reply_tags: reader.list(BATCH_MAX * REPLICAS_MAX)?,
        })
    }
}

impl ChainMessage {
    /// What the MAC of a replica at `place` for another covers: instance, positions, batch, and the history with it;
    /// the results as well if that replica executed them.
    pub fn statement(&self, topology: &Topology, place: usize) -> Vec<u8> {
        let results = if topology.executes(place) { self.results } else { Digest::ZERO };
        let mut statement = Vec::with_capacity(113);
        statement.push(CHAIN);
        self.instance.encode(&mut statement);
        self.first.encode(&mut statement);
        (self.requests.len() as u32).encode(&mut statement);
        self.proposal.encode(&mut statement);
        // The history's digest covers every request and the agreed values; see `LogEntry::digest`.
        self.history.encode(&mut statement);
        results.encode(&mut statement);
        statement
    }

    /// Whether the numbers of MACs are those that the link leaving `place` carries.
    pub(super) fn has_shape(&self, topology: &Topology, place: usize) -> bool {
        self.tags.len() == topology.carried(place).count()
            && self.reply_tags.len() == self.requests.len() * topology.reply_tags(place)
            && self
                .requests
                .iter()
                .all(|request| request.authentication.tags.iter().len() == topology.client_tags(place))
    }
}

/// The digest of all results of a batch, and of the state's effects with it: these are all that an empty one has.
pub(super) fn results_digest(outcomes: &[Digest], effects: Digest) -> Digest {
    let mut bytes = Vec::with_capacity(32 * (outcomes.len() + 1));
    for digest in outcomes.iter().chain([&effects]) {
        bytes.extend_from_slice(&digest.0);
    }
    Digest::of(Domain::Result, &bytes)
}

/// The tail's answer to a client, with the MACs of the last f+1 places. It has no frame MAC.
#[derive(Clone, Debug)]
pub struct ChainReply {
    /// The instance.
    pub instance: InstanceId,
    /// Whose request.
    pub client: ClientId,
    /// Which request.
    pub timestamp: Timestamp,
    /// Its position.
    pub position: u64,
    /// The history's digest there.
    pub history: Digest,
    /// What came of it, in full.
    pub outcome: Outcome,
    /// The MACs of the places 2f to 3f over the [`ReplyStatement`].
    pub tags: Vec<Tag>,
}

impl Wire for ChainReply {
    fn encode(&self, out: &mut impl Sink) {
        self.instance.encode(out);
        self.client.encode(out);
        self.timestamp.encode(out);
        self.position.encode(out);
        self.history.encode(out);
        self.outcome.encode(out);
        encode_list(&self.tags, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self {
            instance: Wire::decode(reader)?,
            client: Wire::decode(reader)?,
            timestamp: Wire::decode(reader)?,
            position: Wire::decode(reader)?,
            history: Wire::decode(reader)?,
            outcome: Wire::decode(reader)?,
            tags: reader.list(REPLICAS_MAX)?,
        })
    }
}

/// What a client is told about its request, under one MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyStatement {
    /// The instance.
    pub instance: InstanceId,
    /// Whose request.
    pub client: ClientId,
    /// Which request.
    pub timestamp: Timestamp,
    /// Its position.
    pub position: u64,
    /// The history's digest there.
    pub history: Digest,
    /// The digest of the outcome.
    pub outcome: Digest,
}
wire_struct!(ReplyStatement { instance, client, timestamp, position, history, outcome });

impl ReplyStatement {
    /// The bytes under the MAC.
    pub fn bytes(&self) -> Vec<u8> {
        let mut statement = Vec::with_capacity(97);
        statement.push(CHAIN_REPLY);
        self.encode(&mut statement);
        statement
    }
}

impl ChainReply {
    /// What the MACs cover.
    pub fn statement(&self) -> ReplyStatement {
        let Self { instance, client, timestamp, position, history, .. } = *self;
        ReplyStatement { instance, client, timestamp, position, history, outcome: self.outcome.digest() }
    }
}

impl fmt::Display for ChainMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, first, history, requests, .. } = self;
        write!(f, "CHAIN {instance} p{first} {history:?} with {} requests", requests.len())
    }
}

impl Spoken for ChainMessage {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    /// MACs of the places before, for those to come.
    fn cover(&self) -> Cover {
        Cover::Inside
    }

    fn may_overtake(&self) -> bool {
        false
    }

    /// The requests inside are checked by the first f + 1 places, when it is their turn.
    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)
    }
}

impl fmt::Display for ChainReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, client, timestamp, position, history, outcome, .. } = self;
        write!(f, "CHAIN-REPLY {instance} p{position} {history:?} {client} {timestamp} {outcome}")
    }
}

impl Spoken for ChainReply {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        Some(self.client)
    }

    /// MACs of the last f + 1 places for the client.
    fn cover(&self) -> Cover {
        Cover::Inside
    }

    fn may_overtake(&self) -> bool {
        false
    }

    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)
    }
}
