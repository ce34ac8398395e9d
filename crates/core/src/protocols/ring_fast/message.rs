//! What goes around the ring and back to the client.

use super::path::Path;
use crate::auth::{Keyring, Tag};
use crate::cluster::Cluster;
use crate::digest::{Digest, Domain};
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, Timestamp};
use crate::message::{Outcome, Request};
use crate::protocols::ring_fast::{PaceMessage, RingPace};
use crate::protocols::speculative::{self, BATCH_MAX, Certain, SpeculativeTimer, weight};
use crate::rejection::Rejection;
use crate::replicas::REPLICAS_MAX;
use crate::service::Proposal;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::wire_struct;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;

/// First byte of the statement of a replica's MAC for another.
const RING: u8 = 0xa5;
/// First byte of the statement of a replica's MAC for a client.
const RING_REPLY: u8 = 0xa6;

/// MACs between replicas on one link: at most (f+1)(f+2)/2 for the largest cluster.
const TAGS_MAX: usize = REPLICAS_MAX * REPLICAS_MAX;

/// A machine that an instance of this protocol may be a part of.
pub trait Speaker:
    speculative::Speaker<
        Outgoing: From<RingMessage> + From<RingReply> + From<RingPace> + From<Certain>,
        Timer: From<RingTimer>,
    >
{
}

impl<
    M: speculative::Speaker<
            Outgoing: From<RingMessage> + From<RingReply> + From<RingPace> + From<Certain>,
            Timer: From<RingTimer>,
        >,
> Speaker for M
{
}

/// What the ring says between replicas, and what a client asks of it besides requests.
#[derive(Debug)]
pub enum RingHeard {
    /// Around the ring.
    Ring(RingMessage),
    /// About how fast it is.
    Pace(PaceMessage),
}

/// The timers of the fast ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RingTimer {
    /// As in every instance that speculates.
    Speculative(SpeculativeTimer),
    /// Ring stops for a client that panicked.
    Panic,
    /// Ring measures how fast it is.
    Pace,
}

/// What the message is about: in the RING pass the requests themselves, in the ACK pass the digest of all of them.
#[derive(Clone, Debug)]
pub enum Body {
    /// RING.
    Requests(Vec<Request>),
    /// ACK. Every replica has the requests by then.
    Digest(Digest),
    /// ACK, where it comes to the same replicas for the second time: the end of a longer path.
    DigestAgain(Digest),
    /// A probe: no requests.
    Probe(Probe),
}

/// A question of the entry, how far everybody has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The entry's own number for it.
    pub number: u64,
    /// As in [`Path::pass`].
    pub pass: u8,
}
wire_struct!(Probe { number, pass });

impl Body {
    /// Which pass it is of, as in [`Path::pass`].
    pub const fn pass(&self) -> u8 {
        match self {
            Self::Requests(_) => 0,
            Self::Digest(_) => 1,
            Self::DigestAgain(_) => 2,
            Self::Probe(probe) => probe.pass,
        }
    }

    /// The digest of the vector of the requests' digests: what all MACs cover.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Digest(digest) | Self::DigestAgain(digest) => *digest,
            Self::Probe(probe) => Digest::of_parts(Domain::Batch, &[b"probe", &probe.number.to_le_bytes()]),
            Self::Requests(requests) => {
                let mut bytes = Vec::with_capacity(32 * requests.len());
                requests.iter().for_each(|request| bytes.extend_from_slice(&request.digest().0));
                Digest::of(Domain::Batch, &bytes)
            }
        }
    }
}

impl Wire for Body {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Requests(requests) => {
                out.push(0);
                encode_list(requests, out);
            }
            Self::Digest(digest) => {
                out.push(1);
                digest.encode(out);
            }
            Self::DigestAgain(digest) => {
                out.push(3);
                digest.encode(out);
            }
            Self::Probe(probe) => {
                out.push(2);
                probe.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::Requests(reader.list(BATCH_MAX)?)),
            1 => Ok(Self::Digest(Wire::decode(reader)?)),
            2 => Ok(Self::Probe(Wire::decode(reader)?)),
            3 => Ok(Self::DigestAgain(Wire::decode(reader)?)),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// A request that a replica on the way has taken out of the batch: its client's MAC is bad there, or the sequencer may
/// not give it a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Strike {
    /// The position that struck it.
    pub position: u8,
    /// The request, by its place in the batch.
    pub request: u32,
}
wire_struct!(Strike { position, request });

/// What the sequencer adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The position in the history of the first request that is not struck; of a probe, the one after all that there
    /// are.
    pub first: u64,
    /// Agreed time and seed.
    pub proposal: Proposal,
    /// The history's digest after the batch.
    pub history: Digest,
    /// What the state came to with it.
    pub effects: Digest,
}
wire_struct!(Stamp { first, proposal, history, effects });

/// RING or ACK: a batch on its way from one position to the next. It has no frame MAC: what authenticates it is inside.
#[derive(Clone, Debug)]
pub struct RingMessage {
    /// The instance.
    pub instance: InstanceId,
    /// Where its path began.
    pub entry: ReplicaId,
    /// RING or ACK.
    pub body: Body,
    /// What has been struck so far, in ascending order.
    pub strikes: Vec<Strike>,
    /// Once the sequencer has been passed, for those that do not have it yet.
    pub stamp: Option<Stamp>,
    /// MACs between replicas, in the order of [`Path::carried`].
    pub tags: Vec<Tag>,
    /// For each request that is not struck the MACs of the last positions for its client, all of the first one first.
    pub reply_tags: Vec<Tag>,
}

impl Wire for RingMessage {
    fn encode(&self, out: &mut impl Sink) {
        self.instance.encode(out);
        self.entry.encode(out);
        self.body.encode(out);
        encode_list(&self.strikes, out);
        self.stamp.encode(out);
        encode_list(&self.tags, out);
        encode_list(&self.reply_tags, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self {
            instance: Wire::decode(reader)?,
            entry: Wire::decode(reader)?,
            body: Wire::decode(reader)?,
            strikes: reader.list(BATCH_MAX)?,
            stamp: Wire::decode(reader)?,
            tags: reader.list(TAGS_MAX)?,
            reply_tags: reader.list(BATCH_MAX * REPLICAS_MAX)?,
        })
    }
}

impl RingMessage {
    /// What the MAC of a replica at `maker` for another covers: instance and path, kind, batch, what had been struck up
    /// to there and, from the sequencer on, the number, the agreed values and the history. Kind and number follow from
    /// the maker's position and not from what the message says of itself (ring-F1).
    pub fn statement(&self, path: &Path, batch: Digest, maker: usize) -> Vec<u8> {
        let mut statement = Vec::with_capacity(160);
        statement.push(RING);
        self.instance.encode(&mut statement);
        self.entry.encode(&mut statement);
        statement.push(path.pass(maker));
        batch.encode(&mut statement);
        let struck = self.strikes.partition_point(|strike| usize::from(strike.position) <= maker);
        encode_list(&self.strikes[..struck], &mut statement);
        self.stamp.as_ref().filter(|_| maker >= path.stamp()).cloned().encode(&mut statement);
        statement
    }

    /// Whether what arrives at a position has the parts that it should have there. `requests`: how many are in the
    /// batch, struck ones included.
    pub(super) fn has_shape(&self, path: &Path, position: usize, requests: usize) -> bool {
        let previous = position - 1;
        let ascending = self.strikes.windows(2).all(|pair| pair[0] < pair[1]);
        let mut struck: Vec<u32> = self.strikes.iter().map(|strike| strike.request).collect();
        struck.sort_unstable();
        let allowed = self.strikes.iter().all(|strike| {
            let by = usize::from(strike.position);
            by <= previous && path.may_strike(by) && (strike.request as usize) < requests
        });
        ascending
            && allowed
            && struck.windows(2).all(|pair| pair[0] < pair[1])
            && struck.len() < requests.max(1)
            && self.stamp.is_some() == path.is_told(position)
            && self.tags.len() == path.carried(previous).count()
            && matches!(self.body, Body::Probe(_)) == (requests == 0)
            && self.reply_tags.len() == (requests - struck.len()) * path.reply_tags(previous)
    }

    /// Whether each request carries as many of its client's MACs as it should on the link to a position.
    pub(super) fn has_client_tags(&self, path: &Path, position: usize) -> bool {
        let Body::Requests(requests) = &self.body else { return true };
        let expected = path.client_tags(position - 1);
        requests.iter().all(|request| request.authentication.tags.iter().len() == expected)
    }

    /// The places in the batch of the requests that are not struck.
    pub(super) fn live(&self, requests: usize) -> impl Iterator<Item = usize> + use<> {
        let struck: BTreeSet<usize> = self.strikes.iter().map(|strike| strike.request as usize).collect();
        (0..requests).filter(move |at| !struck.contains(at))
    }
}

/// A message that this replica has accepted, apart from what the log says of it.
#[derive(Clone, Debug)]
pub(super) struct Accepted {
    pub(super) path: Path,
    /// Where this replica is on its path.
    pub(super) position: usize,
    pub(super) batch: Digest,
    pub(super) message: RingMessage,
}

impl Accepted {
    /// What it takes in memory, about.
    pub(super) fn weight(&self) -> usize {
        if let Body::Requests(requests) = &self.message.body { weight(requests) } else { 0 }
    }
}

/// The answer to a client, with the MACs of the last f+1 positions. It has no frame MAC.
#[derive(Clone, Debug)]
pub struct RingReply {
    /// The instance.
    pub instance: InstanceId,
    /// Where the request's path began.
    pub entry: ReplicaId,
    /// Whose request.
    pub client: ClientId,
    /// Which request.
    pub timestamp: Timestamp,
    /// Its position in the history.
    pub position: u64,
    /// The history's digest there.
    pub history: Digest,
    /// What came of it, in full.
    pub outcome: Outcome,
    /// The MACs of [`Path::vouchers`] over the [`RingReplyStatement`].
    pub tags: Vec<Tag>,
}

impl Wire for RingReply {
    fn encode(&self, out: &mut impl Sink) {
        self.instance.encode(out);
        self.entry.encode(out);
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
            entry: Wire::decode(reader)?,
            client: Wire::decode(reader)?,
            timestamp: Wire::decode(reader)?,
            position: Wire::decode(reader)?,
            history: Wire::decode(reader)?,
            outcome: Wire::decode(reader)?,
            tags: reader.list(REPLICAS_MAX)?,
        })
    }
}

/// What a client is told about its request, under one MAC. The entry is in it: f+1 MACs are evidence only if they are
/// of the last positions of one and the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingReplyStatement {
    /// The instance.
    pub instance: InstanceId,
    /// Where the request's path began.
    pub entry: ReplicaId,
    /// Whose request.
    pub client: ClientId,
    /// Which request.
    pub timestamp: Timestamp,
    /// Its position in the history.
    pub position: u64,
    /// The history's digest there.
    pub history: Digest,
    /// The digest of the outcome.
    pub outcome: Digest,
}
wire_struct!(RingReplyStatement { instance, entry, client, timestamp, position, history, outcome });

impl RingReplyStatement {
    /// The bytes under the MAC.
    pub fn bytes(&self) -> Vec<u8> {
        let mut statement = Vec::with_capacity(98);
        statement.push(RING_REPLY);
        self.encode(&mut statement);
        statement
    }
}

impl RingReply {
    /// What the MACs cover.
    pub fn statement(&self) -> RingReplyStatement {
        let Self { instance, entry, client, timestamp, position, history, .. } = *self;
        RingReplyStatement { instance, entry, client, timestamp, position, history, outcome: self.outcome.digest() }
    }
}

impl fmt::Display for RingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, entry, body, strikes, stamp, .. } = self;
        match body {
            Body::Requests(requests) => write!(f, "RING {instance} of {entry} with {} requests", requests.len()),
            Body::Probe(Probe { number, pass }) => write!(f, "PROBE {instance} of {entry} n{number} pass {pass}"),
            Body::Digest(digest) | Body::DigestAgain(digest) => write!(f, "ACK {instance} of {entry} for {digest:?}"),
        }?;
        if let Some(Stamp { first, history, .. }) = stamp {
            write!(f, " p{first} {history:?}")?;
        }
        if strikes.is_empty() { Ok(()) } else { write!(f, " but for {}", strikes.len()) }
    }
}

impl Spoken for RingMessage {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    /// MACs of the positions before, for those to come.
    fn cover(&self) -> Cover {
        Cover::Inside
    }

    /// An ACK or a probe: behind the bodies that wait for a slow link, acknowledgements would take most of the time
    /// that a request takes.
    fn may_overtake(&self) -> bool {
        match self.body {
            Body::Digest(_) | Body::DigestAgain(_) | Body::Probe(_) => true,
            Body::Requests(_) => false,
        }
    }

    /// The requests inside are checked by the first f + 1 positions, when it is their turn.
    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)
    }
}

impl fmt::Display for RingReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, client, timestamp, position, history, outcome, .. } = self;
        write!(f, "RING-REPLY {instance} p{position} {history:?} {client} {timestamp} {outcome}")
    }
}

impl Spoken for RingReply {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        Some(self.client)
    }

    /// MACs of the last f + 1 positions for the client.
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
