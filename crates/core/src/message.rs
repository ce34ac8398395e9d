//! Everything that travels between principals, and how it is authenticated.
//!
//! A frame is `encode(message)` followed, for all but requests, by a 16-byte MAC of the sender for the receiver over
//! the message's *statement*: the encoded message itself, except for PRE-PREPARE, where it is the header and the
//! digest of the batch, so that the bytes of the requests are hashed once and not once per receiver. A request
//! carries the authentication of its client and may be passed on by anyone. `docs/wire.md` has the bytes.

mod display;

use crate::auth::{Authenticator, Keyring, Signable, Signature, Signed, Tag, Verified};
use crate::checkpoint::{Checkpoint, TransferMessage};
use crate::cluster::{ClientAuth, ClientId, Cluster, IdentityId, InstanceId, ReplicaId, Sequence, Timestamp, View};
use crate::compositions::Part;
use crate::digest::{Digest, Domain};
use crate::machine::Principal;
use crate::protocols::chain::{ChainMessage, ChainReply, Topology};
use crate::protocols::pbft::PbftMessage;
use crate::protocols::speculative::Response;
use crate::protocols::zlight::Order;
use crate::rejection::Rejection;
use crate::switching::{Proof, Switch, SwitchMessage};
use crate::wire::{Reader, Wire, WireError, encode_payload};
use crate::{wire_enum, wire_struct};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;

/// The largest frame, without its length prefix. A connection that announces more is closed.
pub const FRAME_BYTES_MAX: usize = 8 << 20;

/// Results up to this size are sent in full by every replica: a digest would not be shorter.
pub const RESULT_BYTES_FULL_MAX: usize = 32;

/// Requests up to this size are copied out of the receive buffer, as one piece.
const REQUEST_COPY_BYTES_MAX: usize = 1024;

/// The kind byte under which clients sign requests; no [`Signable::KIND`] equals it.
pub const REQUEST_SIGNATURE_KIND: u8 = 1;

/// First byte of the statement in a client's authenticator: no frame's statement begins with it.
const AUTHENTICATOR: u8 = 0xa0;
/// First byte of a PRE-PREPARE's statement.
const PRE_PREPARE: u8 = 0xa1;
/// First byte of the statement of a large message that goes to several.
const LARGE: u8 = 0xa4;
/// Bytes from which such a message is hashed once.
const HASHED_ONCE: usize = 256;

/// The identity in whose name the system itself asks. No client has it.
pub const SYSTEM: IdentityId = IdentityId(u32::MAX);

/// How this replica came to believe that a request is its client's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vouched {
    /// Not checked, or checked and not convincing.
    #[default]
    No,
    /// By its MAC, or by the client's own link: enough to execute what others agreed to, not enough for a hybrid
    /// primary to order it.
    Mac,
    /// By its signature.
    Signature,
}

/// The client's proof, one part per way of checking it.
#[derive(Clone, Debug, Default)]
pub struct Authentication {
    /// An authenticator: one MAC per replica, or none.
    pub tags: Authenticator,
    /// A signature, or none.
    pub signature: Option<Signature>,
}

wire_struct!(Authentication { tags, signature });

/// REQUEST: a client's operation.
#[derive(Clone, Debug)]
pub struct Request {
    /// The instance that is asked (D1): a request for one instance means nothing to another.
    pub instance: InstanceId,
    /// Who asks.
    pub client: ClientId,
    /// The client's own number for it.
    pub timestamp: Timestamp,
    /// Asked as a read-only query; never ordered.
    pub read_only: bool,
    /// What to execute.
    pub operation: Bytes,
    /// The client's proof.
    pub authentication: Authentication,
    /// Computed once, on arrival; not on the wire.
    digest: Digest,
    /// What this replica has checked; not on the wire.
    pub vouched: Vouched,
}

impl Request {
    /// A request without proof yet.
    pub fn new(
        instance: InstanceId,
        client: ClientId,
        timestamp: Timestamp,
        read_only: bool,
        operation: Bytes,
    ) -> Self {
        let digest = Self::digest_of(client, timestamp, read_only, &operation);
        let authentication = Authentication::default();
        Self { instance, client, timestamp, read_only, operation, authentication, digest, vouched: Vouched::No }
    }

    fn digest_of(client: ClientId, timestamp: Timestamp, read_only: bool, operation: &[u8]) -> Digest {
        const HEADER: usize = 17;
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&client.identity.0.to_le_bytes());
        header[4..8].copy_from_slice(&client.session.to_le_bytes());
        header[8..16].copy_from_slice(&timestamp.0.to_le_bytes());
        header[16] = u8::from(read_only);
        if operation.len() <= 64 - HEADER {
            let mut block = [0; 64];
            block[..HEADER].copy_from_slice(&header);
            block[HEADER..HEADER + operation.len()].copy_from_slice(operation);
            return Digest::of(Domain::Request, &block[..HEADER + operation.len()]);
        }
        Digest::of_parts(Domain::Request, &[&header, operation])
    }

    /// D(req): over client, timestamp and operation, not over instance and proof, so that histories of different
    /// instances compare.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// What a client's MACs and signature cover: instance and digest.
    fn statement(&self) -> [u8; 41] {
        let mut statement = [0; 41];
        statement[0] = AUTHENTICATOR;
        statement[1..9].copy_from_slice(&self.instance.0.to_le_bytes());
        statement[9..].copy_from_slice(&self.digest.0);
        statement
    }

    /// INIT as a request: the proof, which the caller has checked, with which a Backup begins, in replica `from`'s
    /// name. It authenticates itself.
    pub fn init(instance: InstanceId, from: ReplicaId, proof: &Proof) -> Self {
        let client = ClientId { identity: SYSTEM, session: from.0.into() };
        let mut request = Self::new(instance, client, Timestamp(1), false, Bytes::from(proof.to_bytes()));
        request.vouched = Vouched::Signature;
        request
    }

    /// Whether it is an operation of the system itself, and not a client's.
    pub fn is_system(&self) -> bool {
        self.client.identity == SYSTEM
    }

    /// The proof in an INIT, if it proves that this instance may begin.
    pub fn proof(&self, cluster: &Cluster, keyring: &Keyring, instance: InstanceId) -> Option<Proof> {
        let before = InstanceId(instance.0.checked_sub(1)?);
        let proof = Proof::from_bytes(self.operation.clone()).ok()?;
        let part = cluster.part(before)?;
        (self.is_system() && proof.instance() == before && proof.check(cluster, keyring, part)).then_some(proof)
    }

    /// The replicas that a client's MACs are for, in their order: in Chain the first f+1 places, otherwise all.
    fn receivers(cluster: &Cluster, instance: InstanceId) -> Vec<ReplicaId> {
        if let (Some(schedule), Some(Part::Chain)) = (cluster.protocol.schedule(), cluster.part(instance)) {
            let topology = Topology::new(cluster, schedule.head(cluster, instance));
            return topology.client_receivers().map(|place| topology.at(place)).collect();
        }
        cluster.replicas().collect()
    }

    /// Whether this MAC is its client's for us.
    pub fn is_from_client(&self, keyring: &Keyring, tag: &Tag) -> bool {
        keyring.check(Principal::Client(self.client), &self.statement(), tag)
    }

    /// Adds MACs for all replicas, whatever the instance: for a request that is sent to all of them.
    #[must_use]
    pub fn authenticate_for_all(mut self, cluster: &Cluster, keyring: &Keyring) -> Self {
        let statement = self.statement();
        self.authentication.tags =
            cluster.replicas().map(|id| keyring.tag(Principal::Replica(id), &statement)).collect();
        self
    }

    /// Adds the client's proof as the cluster's mode and the instance ask for it. Instances that may abort at any
    /// time never have to convince a third party: MACs are all that they need.
    #[must_use]
    pub fn authenticate(mut self, cluster: &Cluster, keyring: &Keyring) -> Self {
        let statement = self.statement();
        if cluster.part(self.instance).is_some_and(|part| part != Part::Backup) {
            let receivers = Self::receivers(cluster, self.instance).into_iter();
            self.authentication.tags = receivers.map(|id| keyring.tag(Principal::Replica(id), &statement)).collect();
            return self;
        }
        if cluster.client_auth != ClientAuth::Signature {
            self.authentication.tags =
                cluster.replicas().map(|id| keyring.tag(Principal::Replica(id), &statement)).collect();
        }
        // Read-only requests are never ordered: nobody needs to convince a third party of them.
        if cluster.client_auth == ClientAuth::Signature
            || (cluster.client_auth == ClientAuth::Hybrid && !self.read_only)
        {
            self.authentication.signature = Some(keyring.sign_bytes(REQUEST_SIGNATURE_KIND, &statement));
        }
        self
    }

    /// Checks this replica's own MAC entry, in the modes that have one. Whether the request is vouched for now.
    pub fn vouch_by_mac(&mut self, cluster: &Cluster, keyring: &Keyring) -> bool {
        if self.vouched == Vouched::No && self.is_system() {
            if self.proof(cluster, keyring, self.instance).is_some() {
                self.vouched = Vouched::Signature;
            }
        } else if self.vouched == Vouched::No
            && let Principal::Replica(me) = keyring.me()
            && let Some(tag) = self.tag_for(cluster, me)
            && self.is_from_client(keyring, &tag)
        {
            self.vouched = Vouched::Mac;
        }
        self.vouched != Vouched::No
    }

    fn tag_for(&self, cluster: &Cluster, me: ReplicaId) -> Option<Tag> {
        let tags = &self.authentication.tags;
        let length = tags.iter().len();
        let speculative = cluster.part(self.instance).is_some_and(|part| part != Part::Backup);
        if length == cluster.n || !speculative {
            let used = speculative || cluster.client_auth != ClientAuth::Signature;
            return tags.get(me.0 as usize).filter(|_| used);
        }
        let place = Self::receivers(cluster, self.instance).iter().position(|id| *id == me)?;
        tags.get(place)
    }

    /// Finds out whether the request is its client's, by the cheapest way that mode and instance allow: the MAC entry,
    /// or (where there is one) the signature. The outcome is in [`Request::vouched`].
    pub fn vouch(&mut self, cluster: &Cluster, keyring: &Keyring) {
        let signed = cluster.client_auth != ClientAuth::Mac && self.authentication.signature.is_some();
        if !self.vouch_by_mac(cluster, keyring) && signed && !self.is_system() {
            Self::vouch_signatures(core::iter::once(self), keyring);
        }
    }

    /// Checks the signatures of many requests at once, for those that are not vouched for by signature yet.
    pub fn vouch_signatures<'a>(requests: impl Iterator<Item = &'a mut Self>, keyring: &Keyring) {
        let mut open: Vec<&mut Self> = requests.filter(|request| request.vouched != Vouched::Signature).collect();
        let statements: Vec<[u8; 41]> = open.iter().map(|request| request.statement()).collect();
        let items: Vec<_> = open
            .iter()
            .zip(&statements)
            .map(|(request, statement)| {
                let missing = Signature([0; 64]);
                let signature = request.authentication.signature.unwrap_or(missing);
                (Principal::Client(request.client), statement.as_slice(), signature)
            })
            .collect();
        let valid = keyring.check_batch(REQUEST_SIGNATURE_KIND, &items);
        for (request, valid) in open.iter_mut().zip(valid) {
            if valid {
                request.vouched = Vouched::Signature;
            }
        }
    }
}

impl Wire for Request {
    fn encode(&self, out: &mut Vec<u8>) {
        self.instance.encode(out);
        self.client.encode(out);
        self.timestamp.encode(out);
        self.read_only.encode(out);
        encode_payload(&self.operation, out);
        self.authentication.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        reader.detach(REQUEST_COPY_BYTES_MAX);
        let instance = Wire::decode(reader)?;
        let client = Wire::decode(reader)?;
        let timestamp = Wire::decode(reader)?;
        let read_only = Wire::decode(reader)?;
        let operation = reader.payload(FRAME_BYTES_MAX)?;
        let mut request = Self::new(instance, client, timestamp, read_only, operation);
        request.authentication = Wire::decode(reader)?;
        Ok(request)
    }
}

/// Why an ordered request was not executed: a deterministic answer, the same from every correct replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Older than this session's last executed request; it was superseded or executed long ago.
    StaleTimestamp,
    /// Longer than `operation_bytes_max`.
    TooLarge,
    /// Asked as a query, but it could change the state: ask again as an ordinary request.
    NotReadOnly,
}

impl Wire for Refusal {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::StaleTimestamp => 0,
            Self::TooLarge => 1,
            Self::NotReadOnly => 2,
        });
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::StaleTimestamp),
            1 => Ok(Self::TooLarge),
            2 => Ok(Self::NotReadOnly),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was executed: the result.
    Done(Bytes),
    /// It was executed: the digest of the result, which another replica sends in full.
    DoneDigest(Digest),
    /// It was not executed and never will be.
    Refused(Refusal),
}

impl Outcome {
    /// What must be equal between replies: the same for a result and for its digest.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Done(result) => Digest::of(Domain::Result, result),
            Self::DoneDigest(digest) => *digest,
            Self::Refused(refusal) => Digest::of_parts(Domain::Result, &[b"refused", &refusal.to_bytes()]),
        }
    }
}

impl Wire for Outcome {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Done(result) => {
                out.push(0);
                encode_payload(result, out);
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
                Ok(Self::Done(reader.slice(length)?))
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
    fn encode(&self, out: &mut Vec<u8>) {
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
    /// The batch in which it was executed; for reads, the last batch that the state contains.
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
    /// The instance that it is about; state transfer is about none.
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
            Self::Checkpoint(_) | Self::Transfer(_) => None,
        }
    }

    /// The client that it answers, if it answers one.
    pub const fn addressee(&self) -> Option<ClientId> {
        match self {
            Self::Reply(reply) => Some(reply.client),
            Self::Response(response) => Some(response.client),
            Self::ChainReply(reply) => Some(reply.client),
            Self::Switch(Switch { message: SwitchMessage::Active(client), .. }) => Some(*client),
            _ => None,
        }
    }

    /// Whether its frame ends with a MAC for its receiver. Requests and what travels along the chain have their
    /// authentication inside.
    const fn has_tag(&self) -> bool {
        !matches!(self, Self::Request(_) | Self::Chain(_) | Self::ChainReply(_))
    }

    /// The statement that the sender's MAC covers, given the encoding.
    fn statement<'a>(&self, encoded: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if let Self::Order(_) | Self::Switch(_) = self
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

    /// Appends the frame (without length prefix) for each receiver: `emit(receiver, tag)` is called once per
    /// receiver after the common bytes were appended to `out`. Requests have no tag.
    pub fn seal(
        &self,
        keyring: &Keyring,
        receivers: impl Iterator<Item = Principal>,
        out: &mut Vec<u8>,
        mut emit: impl FnMut(Principal, Option<Tag>),
    ) {
        let start = out.len();
        self.encode(out);
        let mut scratch = Vec::new();
        let statement = self.statement(&out[start..], &mut scratch);
        for to in receivers {
            let tag = self.has_tag().then(|| keyring.tag(to, statement));
            emit(to, tag);
        }
    }

    /// The frame for one receiver.
    pub fn sealed(&self, keyring: &Keyring, to: Principal) -> Vec<u8> {
        let mut out = Vec::new();
        let mut found = None;
        self.seal(keyring, core::iter::once(to), &mut out, |_, tag| found = tag);
        if let Some(tag) = found {
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
            verify_request(request, from, cluster, keyring)?;
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
            (_, Principal::Client(_)) => return Err(Rejection::WrongSender),
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

/// A client may send its own requests only; a replica may pass on anybody's.
fn verify_request(
    request: &mut Request,
    from: Principal,
    cluster: &Cluster,
    keyring: &Keyring,
) -> Result<(), Rejection> {
    if let Principal::Client(client) = from
        && client.identity != request.client.identity
    {
        return Err(Rejection::WrongSender);
    }
    if request.is_system() {
        // Checked when it is ordered and when it is executed; a replica sends it once.
        return match from {
            Principal::Replica(_) if request.vouch_by_mac(cluster, keyring) => Ok(()),
            _ => Err(Rejection::UnauthenticRequest),
        };
    }
    if request.operation.len() > cluster.limits.operation_bytes_max {
        return Err(Rejection::BadBatch);
    }
    if !keyring.keys().identities.contains_key(&request.client.identity) {
        return Err(Rejection::UnknownIdentity);
    }
    let speculative = cluster.part(request.instance).is_some_and(|part| part != Part::Backup);
    if !speculative && cluster.client_auth == ClientAuth::Signature && matches!(from, Principal::Client(_)) {
        // The link is the client's own: enough to let it wait. The signature is checked before it is ordered, together
        // with those of the other requests in its batch.
        request.vouched = Vouched::Mac;
    }
    request.vouch(cluster, keyring);
    if request.vouched == Vouched::No {
        return Err(Rejection::UnauthenticRequest);
    }
    Ok(())
}
