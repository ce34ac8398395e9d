//! Everything that travels between principals, and how it is authenticated.
//!
//! A frame is `encode(message)` followed, for all but requests, by a 16-byte MAC of the sender for the receiver over
//! the message's *statement*: the encoded message itself, except for PRE-PREPARE, where it is the header and the
//! digest of the batch, so that the bytes of the requests are hashed once and not once per receiver. A request
//! carries the authentication of its client and may be passed on by anyone. `docs/wire.md` has the bytes.

mod display;
mod request;
mod system;

pub use request::{Authentication, REQUEST_SIGNATURE_KIND, Request, Vouched};
pub use system::SYSTEM;
pub(crate) use system::ruling_after;

use crate::auth::{Keyring, Signable, Signed, Tag, Verified};
use crate::checkpoint::{Checkpoint, TransferMessage};
use crate::cluster::Cluster;
use crate::digest::{Digest, Domain};
use crate::dissent::Testimony;
use crate::ids::{ClientId, InstanceId, Principal, Sequence, Timestamp, View};
use crate::members::CookieMessage;
use crate::protocols::chain::{ChainMessage, ChainReply};
use crate::protocols::pbft::PbftMessage;
use crate::protocols::ring_fast::{Body, Delay, PaceMessage, RingMessage, RingPace, RingReply};
use crate::protocols::ring_resilient::Resilient;
use crate::protocols::speculative::Response;
use crate::protocols::zlight::Order;
use crate::rejection::Rejection;
use crate::switching::{Switch, SwitchMessage};
use crate::wire::{Reader, Rope, Sink, Wire, WireError, encode_shared};
use crate::{wire_enum, wire_struct};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;

/// The largest frame, without its length prefix. A connection that announces more is closed.
pub const FRAME_BYTES_MAX: usize = 8 << 20;

/// Results up to this size are sent in full by every replica: a digest would not be shorter.
pub const RESULT_BYTES_FULL_MAX: usize = 32;

/// First byte of a PRE-PREPARE's statement.
const PRE_PREPARE: u8 = 0xa1;
/// First byte of the statement of a large message that goes to several.
const LARGE: u8 = 0xa4;
/// Bytes from which such a message is hashed once.
const HASHED_ONCE: usize = 256;

/// Why a request is not executed: a deterministic answer, the same from every correct replica with this history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Not newer than this session's last executed request, or than what its identity was made to forget. It must not
    /// be executed any more, whether or not it was before.
    StaleTimestamp,
    /// Longer than `operation_bytes_max`.
    TooLarge,
    /// Asked as a query, but it could change the state: ask again as an ordinary request.
    NotReadOnly,
    /// Its client has no session: it never joined, has left, or its place was given to another ([`crate::members`]).
    NoSession,
    /// Its session ended because somebody with the same key joined.
    TakenOver,
    /// A JOIN, while all places are taken by clients that use them.
    Full,
    /// A JOIN, too soon after the last one of the same key.
    TooSoon,
    /// A JOIN or a CLOSE that the service does not agree to.
    Unauthorized,
    /// A JOIN with old cookies. What it may have led to long ago is forgotten.
    Expired,
    /// The replicas executed it otherwise, each in its own way: it has no effect ([`crate::dissent`]).
    Disputed,
    /// It was executed after a disputed request, and undone with it: ask again, with a new request.
    Undone,
    /// The cluster was closed before it: nothing is written here any more ([`crate::estate`]).
    Closed,
}

impl Refusal {
    /// Whether it says that a session is over. Then the request may have been executed before that.
    pub const fn ends_session(self) -> bool {
        matches!(self, Self::NoSession | Self::TakenOver)
    }

    /// Whether it says only that the request must not be executed from now on: it may have been before.
    pub const fn is_about_the_future(self) -> bool {
        self.ends_session() || matches!(self, Self::StaleTimestamp | Self::Expired)
    }
}

impl Wire for Refusal {
    fn encode(&self, out: &mut impl Sink) {
        out.push(match self {
            Self::StaleTimestamp => 0,
            Self::TooLarge => 1,
            Self::NotReadOnly => 2,
            Self::NoSession => 3,
            Self::TakenOver => 4,
            Self::Full => 5,
            Self::TooSoon => 6,
            Self::Unauthorized => 7,
            Self::Expired => 8,
            Self::Disputed => 9,
            Self::Undone => 10,
            Self::Closed => 11,
        });
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::StaleTimestamp),
            1 => Ok(Self::TooLarge),
            2 => Ok(Self::NotReadOnly),
            3 => Ok(Self::NoSession),
            4 => Ok(Self::TakenOver),
            5 => Ok(Self::Full),
            6 => Ok(Self::TooSoon),
            7 => Ok(Self::Unauthorized),
            8 => Ok(Self::Expired),
            9 => Ok(Self::Disputed),
            10 => Ok(Self::Undone),
            11 => Ok(Self::Closed),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was executed.
    Done {
        /// The result.
        result: Bytes,
        /// What all requests have answered and written until then, chained
        /// ([`crate::service::Service::take_written`]): equal answers mean equal states.
        effects: Digest,
    },
    /// It was executed: the digest of the result and the effects, which another replica sends in full.
    DoneDigest(Digest),
    /// It is not executed, and why. Whether it was before: [`Refusal::is_about_the_future`].
    Refused(Refusal),
}

impl Outcome {
    /// A result of a state without effects.
    pub const fn read(result: Bytes) -> Self {
        Self::Done { result, effects: Digest::ZERO }
    }

    /// What must be equal between replies: the same for a result and for its digest, and for nothing else. Whoever
    /// passes an outcome on under the MACs of others can say nothing else that they have vouched for.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Done { result, effects } => Digest::of_parts(Domain::Result, &[result, &effects.0]),
            Self::DoneDigest(digest) => *digest,
            Self::Refused(refusal) => Digest::of(Domain::Refusal, &refusal.to_bytes()),
        }
    }

    /// Whether it says what came of the request, and not only the digest of that: whoever takes a digest for an answer
    /// has none, and asks nobody else.
    pub const fn is_whole(&self) -> bool {
        !matches!(self, Self::DoneDigest(_))
    }
}

impl Wire for Outcome {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Done { result, effects } => {
                out.push(0);
                encode_shared(result, out);
                effects.encode(out);
            }
            Self::DoneDigest(digest) => {
                out.push(1);
                digest.encode(out);
            }
            Self::Refused(refusal) => {
                out.push(2);
                refusal.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => {
                let length = reader.length(FRAME_BYTES_MAX, 1)?;
                // The client needs only one of the equal ones for long.
                Ok(Self::Done { result: reader.slice(length)?, effects: Wire::decode(reader)? })
            }
            1 => Ok(Self::DoneDigest(Wire::decode(reader)?)),
            2 => Ok(Self::Refused(Wire::decode(reader)?)),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// How firm a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Firmness {
    /// Executed when prepared: 2f+1 equal ones of one view make it final.
    Tentative,
    /// Executed when committed.
    Final,
    /// The answer to a read-only query on a state with nothing tentative in it.
    Read,
}

impl Wire for Firmness {
    fn encode(&self, out: &mut impl Sink) {
        out.push(match self {
            Self::Tentative => 0,
            Self::Final => 1,
            Self::Read => 2,
        });
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::Tentative),
            1 => Ok(Self::Final),
            2 => Ok(Self::Read),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// REPLY: the answer of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The instance that answers.
    pub instance: InstanceId,
    /// The view in which it was executed; tentative replies of different views do not add up.
    pub view: View,
    /// The batch in which it was executed; for reads, the last batch that the state contains; 0 if it is refused by a
    /// state, and not in a batch.
    pub sequence: Sequence,
    /// Whose request.
    pub client: ClientId,
    /// Which request.
    pub timestamp: Timestamp,
    /// How firm.
    pub firmness: Firmness,
    /// What came of it.
    pub outcome: Outcome,
}
wire_struct!(Reply { instance, view, sequence, client, timestamp, firmness, outcome });

impl Reply {
    /// TOO LATE: the sender's state, and no position in it, shows that a request must not be executed any more. See
    /// [`crate::client`], step 10.
    pub const fn too_late(view: View, request: &Request) -> Self {
        let Request { instance, client, timestamp, .. } = *request;
        let outcome = Outcome::Refused(Refusal::StaleTimestamp);
        Self { instance, view, sequence: Sequence(0), client, timestamp, firmness: Firmness::Final, outcome }
    }
}

/// A message of the total order PBFT within an instance.
#[derive(Clone, Debug)]
pub struct Ordering {
    /// The instance that it belongs to (D1).
    pub instance: InstanceId,
    /// What PBFT says.
    pub message: PbftMessage,
}
wire_struct!(Ordering { instance, message });

/// Everything that travels.
#[derive(Clone, Debug)]
pub enum Message {
    /// A client's operation, from the client or passed on.
    Request(Request),
    /// An answer to a client.
    Reply(Reply),
    /// PBFT between replicas.
    Ordering(Ordering),
    /// A signed checkpoint vote between replicas.
    Checkpoint(Box<Signed<Checkpoint>>),
    /// What a replica's requests did, between replicas.
    Testimony(Box<Signed<Testimony>>),
    /// State transfer between replicas.
    Transfer(TransferMessage),
    /// About instances, between replicas and clients.
    Switch(Switch),
    /// A speculative answer of Quorum or ZLight, or a repeated one of Chain.
    Response(Response),
    /// ZLight's primary to the other replicas.
    Order(Order),
    /// Along the chain.
    Chain(ChainMessage),
    /// The chain's tail to a client.
    ChainReply(ChainReply),
    /// Between a client that wants to join and a replica.
    Cookie(CookieMessage),
    /// Around the ring.
    Ring(RingMessage),
    /// The ring's exit to a client.
    RingReply(RingReply),
    /// A replica of the ring to a client that panicked: every correct replica has executed the request.
    RingCertain(Response),
    /// The resilient ring between replicas.
    Resilient(Resilient),
    /// How fast the ring is, between replicas.
    RingPace(RingPace),
}
wire_enum!(Message {
    1 => Request,
    2 => Reply,
    3 => Ordering,
    4 => Checkpoint,
    5 => Transfer,
    6 => Switch,
    7 => Response,
    8 => Order,
    9 => Chain,
    10 => ChainReply,
    11 => Cookie,
    12 => Ring,
    13 => RingReply,
    14 => RingCertain,
    15 => Resilient,
    16 => RingPace,
    17 => Testimony,
});

impl Signable for Checkpoint {
    const KIND: u8 = 2;
}

/// A message with the principal whose link it came over.
#[derive(Debug)]
pub struct Incoming {
    /// Who sent it to us. For a request that was passed on, not its client.
    pub from: Principal,
    /// What was said; a MAC convinced us.
    pub message: Verified<Message>,
}

impl Message {
    /// The instance that it is about; state transfer and cookies are about none.
    pub const fn instance(&self) -> Option<InstanceId> {
        match self {
            Self::Request(request) => Some(request.instance),
            Self::Reply(reply) => Some(reply.instance),
            Self::Ordering(ordering) => Some(ordering.instance),
            Self::Switch(switch) => Some(switch.instance),
            Self::Response(response) => Some(response.instance),
            Self::Order(order) => Some(order.instance),
            Self::Chain(chain) => Some(chain.instance),
            Self::ChainReply(reply) => Some(reply.instance),
            Self::Ring(ring) => Some(ring.instance),
            Self::RingReply(reply) => Some(reply.instance),
            Self::RingCertain(response) => Some(response.instance),
            Self::Resilient(resilient) => Some(resilient.instance),
            Self::RingPace(pace) => Some(pace.instance),
            Self::Testimony(signed) => Some(signed.value.scope.base.instance),
            Self::Checkpoint(_) | Self::Transfer(_) | Self::Cookie(_) => None,
        }
    }

    /// The client that it answers, if it answers one.
    pub const fn addressee(&self) -> Option<ClientId> {
        match self {
            Self::Reply(reply) => Some(reply.client),
            Self::Response(response) => Some(response.client),
            Self::ChainReply(reply) => Some(reply.client),
            Self::RingReply(reply) => Some(reply.client),
            Self::RingCertain(response) => Some(response.client),
            Self::RingPace(RingPace { message: PaceMessage::Delay(Delay { client, .. }), .. }) => Some(*client),
            Self::Switch(Switch { message: SwitchMessage::Active(client), .. }) => Some(*client),
            _ => None,
        }
    }

    /// Whether its frame ends with a MAC for its receiver. Requests and what travels along the chain or around the ring
    /// have their authentication inside.
    const fn has_tag(&self) -> bool {
        !matches!(self, Self::Request(_) | Self::Chain(_) | Self::ChainReply(_) | Self::Ring(_) | Self::RingReply(_))
    }

    /// The statement that the sender's MAC covers, given the encoding if it [covers that](Self::is_covered_whole).
    fn statement<'a>(&self, encoded: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if let Self::Order(_) | Self::Switch(_) | Self::Resilient(_) = self
            && encoded.len() > HASHED_ONCE
        {
            // All of it, clients' MACs included (P3), but hashed once and not for each receiver.
            scratch.clear();
            scratch.push(LARGE);
            scratch.extend_from_slice(&Digest::of(Domain::Frame, encoded).0);
            return scratch;
        }
        let Self::Ordering(Ordering { instance, message: PbftMessage::PrePrepare(pre_prepare) }) = self else {
            return encoded;
        };
        scratch.clear();
        scratch.push(PRE_PREPARE);
        instance.encode(scratch);
        pre_prepare.view.encode(scratch);
        pre_prepare.sequence.encode(scratch);
        pre_prepare.digest().encode(scratch);
        scratch
    }

    /// Whether it is short, others wait for it, and it may arrive before what was sent earlier on the same link: an ACK
    /// or a probe of Ring. Behind the bodies that wait for a slow link, acknowledgements would take most of the time
    /// that a request takes.
    pub const fn may_overtake(&self) -> bool {
        matches!(self, Self::Ring(RingMessage { body: Body::Digest(_) | Body::DigestAgain(_) | Body::Probe(_), .. }))
    }

    /// Whether the MAC behind it covers all of its encoding, and not a summary of it.
    const fn is_covered_whole(&self) -> bool {
        let is_summarised = matches!(self, Self::Ordering(Ordering { message: PbftMessage::PrePrepare(_), .. }));
        self.has_tag() && !is_summarised
    }

    /// Puts the frame (without length prefix) that all receivers have in common into `out`, in place of what is there:
    /// `emit(receiver, tag)` is called once per receiver. Requests have no tag.
    pub fn seal(
        &self,
        keyring: &Keyring,
        receivers: impl Iterator<Item = Principal>,
        out: &mut Rope,
        mut emit: impl FnMut(Principal, Option<Tag>),
    ) {
        out.clear();
        self.encode(out);
        let (mut flat, mut scratch) = (Vec::new(), Vec::new());
        // Hashing segments would take longer than to copy them first and hash all side by side.
        let encoded = if self.is_covered_whole() { out.whole(&mut flat) } else { &[] };
        let statement = self.statement(encoded, &mut scratch);
        for to in receivers {
            let tag = self.has_tag().then(|| keyring.tag(to, statement));
            emit(to, tag);
        }
    }

    /// The frame for one receiver.
    pub fn sealed(&self, keyring: &Keyring, to: Principal) -> Vec<u8> {
        let mut out = self.to_bytes_with(Tag::BYTES);
        if self.has_tag() {
            let tag = keyring.tag(to, self.statement(&out, &mut Vec::new()));
            tag.encode(&mut out);
        }
        out
    }

    /// Opens a frame that came over the link of `from`: decodes it, checks its MAC, and checks what can be checked
    /// from the message, the keys and the cluster alone.
    ///
    /// # Errors
    /// The [`Rejection`] to be counted against `from`.
    pub fn open(frame: Bytes, from: Principal, cluster: &Cluster, keyring: &Keyring) -> Result<Incoming, Rejection> {
        let mut reader = Reader::new(frame.clone());
        let mut message = Self::decode(&mut reader)?;
        if let Self::Request(request) = &mut message {
            reader.finish()?;
            request::verify_request(request, from, cluster, keyring)?;
        } else if !message.has_tag() {
            reader.finish()?;
        } else {
            let body = frame.len() - reader.remaining();
            let tag = Tag::decode(&mut reader)?;
            reader.finish()?;
            let mut scratch = Vec::new();
            let statement = message.statement(&frame[..body], &mut scratch);
            if !keyring.check(from, statement, &tag) {
                return Err(Rejection::BadMac);
            }
        }
        match (&mut message, from) {
            (Self::Request(_), _) => {}
            (Self::Switch(Switch { message: SwitchMessage::Panic(panic), .. }), Principal::Client(client))
                if panic.client.identity == client.identity => {}
            (Self::RingPace(RingPace { message: PaceMessage::Ask(asks), .. }), Principal::Client(client))
                if asks.identity == client.identity => {}
            (Self::Cookie(CookieMessage::Ask(_)), Principal::Key(_)) | (Self::Cookie(_), Principal::Replica(_)) => {}
            (_, Principal::Client(_) | Principal::Key(_)) => return Err(Rejection::WrongSender),
            (Self::Ordering(ordering), Principal::Replica(_)) => ordering.message.vouch(cluster, keyring),
            (Self::Order(order), Principal::Replica(_)) => {
                for request in &mut order.requests {
                    request.vouch_by_mac(cluster, keyring);
                }
            }
            (_, Principal::Replica(_)) => {}
        }
        Ok(Incoming { from, message: Verified::vouch(message) })
    }
}
