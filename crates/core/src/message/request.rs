//! A client's request and its proof.

use super::FRAME_BYTES_MAX;
use crate::auth::{Authenticator, Keyring, Signature, Tag};
use crate::cluster::{ClientAuth, Cluster};
use crate::digest::{Digest, Domain};
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, Timestamp};
use crate::machine::Destination;
use crate::members::{CONTROL_SESSION, Credential, Join, MEMBER_SESSIONS_MAX};
use crate::protocols::chain::Topology;
use crate::protocols::ring_fast::Path;
use crate::rejection::Rejection;
use crate::schedule::Part;
use crate::wire::{Reader, Sink, Wire, WireError, encode_shared};
use crate::wire_struct;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;

/// Requests up to this size are copied out of the receive buffer, as one piece.
const REQUEST_COPY_BYTES_MAX: usize = 1024;

/// The kind byte under which clients sign requests; no [`crate::auth::Signable::KIND`] equals it.
pub const REQUEST_SIGNATURE_KIND: u8 = 1;

/// First byte of the statement in a client's authenticator: no frame's statement begins with it.
const AUTHENTICATOR: u8 = 0xa0;

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

/// How a client wants an operation carried out: one byte on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Manner {
    /// Ordered, and executed.
    #[default]
    Ordered,
    /// Answered at once, without an order.
    Query,
    /// Ordered, and answered as a query: it is executed only if it only reads.
    OrderedQuery,
}

impl Wire for Manner {
    fn encode(&self, out: &mut impl Sink) {
        out.push(*self as u8);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::Ordered),
            1 => Ok(Self::Query),
            2 => Ok(Self::OrderedQuery),
            _ => Err(WireError::NotCanonical),
        }
    }
}

/// REQUEST: a client's operation.
#[derive(Clone, Debug)]
pub struct Request {
    /// The instance that is asked (D1): a request for one instance means nothing to another.
    pub instance: InstanceId,
    /// Who asks.
    pub client: ClientId,
    /// See [`Request::credential`]. Boxed: hardly any request has one where clients do not join.
    credential: Option<Box<Credential>>,
    /// The client's own number for it.
    pub timestamp: Timestamp,
    /// Asked as a read-only query; never ordered.
    pub read_only: bool,
    /// Asked as a query where that is ordered.
    ordered_query: bool,
    /// What to execute.
    pub operation: Bytes,
    /// The client's proof.
    pub authentication: Authentication,
    /// Computed once, on arrival; not on the wire.
    digest: Digest,
    /// What this replica has checked; not on the wire.
    pub vouched: Vouched,
}

const fn manner(read_only: bool) -> Manner {
    if read_only { Manner::Query } else { Manner::Ordered }
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
        Self::with_credential(instance, client, None, timestamp, manner(read_only), operation)
    }

    /// The same, of a client that the cluster file does not name.
    pub fn of_stranger(
        instance: InstanceId,
        client: ClientId,
        credential: Credential,
        timestamp: Timestamp,
        read_only: bool,
        operation: Bytes,
    ) -> Self {
        Self::with_credential(instance, client, Some(credential), timestamp, manner(read_only), operation)
    }

    fn with_credential(
        instance: InstanceId,
        client: ClientId,
        credential: Option<Credential>,
        timestamp: Timestamp,
        manner: Manner,
        operation: Bytes,
    ) -> Self {
        let digest = Self::digest_of(client, credential.as_ref(), timestamp, manner, &operation);
        Self {
            instance,
            client,
            credential: credential.map(Box::new),
            timestamp,
            read_only: manner == Manner::Query,
            ordered_query: manner == Manner::OrderedQuery,
            operation,
            authentication: Authentication::default(),
            digest,
            vouched: Vouched::No,
        }
    }

    /// The same, without proof yet, to be ordered and executed only if the service says that it only reads.
    #[must_use]
    pub fn as_ordered_query(self) -> Self {
        let Self { instance, client, timestamp, operation, .. } = self;
        let credential = self.credential.map(|credential| *credential);
        Self::with_credential(instance, client, credential, timestamp, Manner::OrderedQuery, operation)
    }

    /// Whether it is executed only if the service says that it only reads.
    pub const fn is_ordered_query(&self) -> bool {
        self.ordered_query
    }

    const fn manner(&self) -> Manner {
        if self.ordered_query { Manner::OrderedQuery } else { manner(self.read_only) }
    }

    /// The operation comes first, so that its chunks lie where the hash works on many side by side; the identity in the
    /// trailer says whether a credential stands before it.
    fn digest_of(
        client: ClientId,
        credential: Option<&Credential>,
        timestamp: Timestamp,
        manner: Manner,
        operation: &[u8],
    ) -> Digest {
        const TRAILER: usize = 17;
        let mut trailer = [0; TRAILER];
        trailer[..4].copy_from_slice(&client.identity.0.to_le_bytes());
        trailer[4..8].copy_from_slice(&client.session.to_le_bytes());
        trailer[8..16].copy_from_slice(&timestamp.0.to_le_bytes());
        trailer[16] = manner as u8;
        if let Some(Credential { key, session }) = credential {
            return Digest::of_parts(Domain::Request, &[operation, &key.0, &session.0, &trailer]);
        }
        let length = operation.len() + TRAILER;
        if length <= 64 {
            let mut block = [0; 64];
            block[..operation.len()].copy_from_slice(operation);
            block[operation.len()..length].copy_from_slice(&trailer);
            return Digest::of(Domain::Request, &block[..length]);
        }
        Digest::of_parts(Domain::Request, &[operation, &trailer])
    }

    /// D(req): over client, credential, timestamp and operation, not over instance and proof, so that histories of
    /// different instances compare.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Encodes what the digest covers, and no more.
    pub(crate) fn encode_covered(&self, out: &mut impl Sink) {
        self.client.encode(out);
        if let Some(credential) = &self.credential {
            credential.encode(out);
        }
        self.timestamp.encode(out);
        self.manner().encode(out);
        encode_shared(&self.operation, out);
    }

    /// What [`Request::encode_covered`] encoded, asked in this instance.
    pub(crate) fn decode_covered(reader: &mut Reader, instance: InstanceId) -> Result<Self, WireError> {
        reader.detach(REQUEST_COPY_BYTES_MAX);
        let client = ClientId::decode(reader)?;
        let credential = if client.identity.is_dynamic() { Some(Wire::decode(reader)?) } else { None };
        let timestamp = Wire::decode(reader)?;
        let manner = Wire::decode(reader)?;
        let operation = reader.payload(FRAME_BYTES_MAX)?;
        Ok(Self::with_credential(instance, client, credential, timestamp, manner, operation))
    }

    /// The client's key and session, if the cluster file does not name it; on the wire exactly then.
    pub fn credential(&self) -> Option<Credential> {
        self.credential.as_deref().copied()
    }

    /// Whose signature it bears.
    pub fn signer(&self) -> Principal {
        self.credential().map_or(Principal::Client(self.client), |credential| Principal::Key(credential.key))
    }

    /// Where its answer goes.
    pub fn asker(&self) -> Destination {
        self.credential().map_or(Destination::Client(self.client), |credential| Destination::Key(credential.key))
    }

    /// What a client's MACs and signature cover: instance and digest.
    fn statement(&self) -> [u8; 41] {
        let mut statement = [0; 41];
        statement[0] = AUTHENTICATOR;
        statement[1..9].copy_from_slice(&self.instance.0.to_le_bytes());
        statement[9..].copy_from_slice(&self.digest.0);
        statement
    }

    /// The replicas that a client's MACs are for, in their order: in Chain the first f+1 places, in Ring the first f+1
    /// positions from the entry, otherwise all.
    fn receivers(&self, cluster: &Cluster) -> Vec<ReplicaId> {
        let Some(schedule) = cluster.protocol.schedule() else { return cluster.replicas().collect() };
        let head = schedule.head(cluster.n, self.instance);
        match schedule.part(self.instance) {
            Part::Chain => {
                let topology = Topology::new(cluster, head);
                topology.client_receivers().map(|place| topology.at(place)).collect()
            }
            Part::RingFast => {
                let entry = Path::entry_for(cluster, self.client, self.timestamp, 0);
                let path = Path::new(cluster, head, entry);
                (0..=cluster.f).map(|position| path.at(position)).collect()
            }
            Part::Quorum | Part::ZLight | Part::RingResilient | Part::Backup => cluster.replicas().collect(),
        }
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

    /// Adds a signature, whatever the mode: for a request that everybody has to judge alike.
    #[must_use]
    pub fn sign(mut self, keyring: &Keyring) -> Self {
        self.authentication.signature = Some(keyring.sign_bytes(REQUEST_SIGNATURE_KIND, &self.statement()));
        self
    }

    /// Adds the client's proof as the cluster's mode and the instance ask for it. Instances that may abort at any
    /// time never have to convince a third party: MACs are all that they need.
    #[must_use]
    pub fn authenticate(mut self, cluster: &Cluster, keyring: &Keyring) -> Self {
        let statement = self.statement();
        if self.credential.is_some() {
            self.authentication.signature = Some(keyring.sign_bytes(REQUEST_SIGNATURE_KIND, &statement));
            return self;
        }
        if cluster.part(self.instance).is_some_and(|part| !part.is_resilient()) {
            let receivers = self.receivers(cluster).into_iter();
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
            let holds = match self.is_ruling() {
                true => self.verdict(cluster, keyring, self.instance).is_some(),
                false => self.proof(cluster, keyring, self.instance).is_some(),
            };
            if holds {
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
        let speculative = cluster.part(self.instance).is_some_and(|part| !part.is_resilient());
        if length == cluster.n || !speculative {
            let used = speculative || cluster.client_auth != ClientAuth::Signature;
            return tags.get(me.0 as usize).filter(|_| used);
        }
        let place = self.receivers(cluster).iter().position(|id| *id == me)?;
        tags.get(place)
    }

    /// Finds out whether the request is its client's, by the cheapest way that mode and instance allow: the MAC entry,
    /// or (where there is one) the signature. The outcome is in [`Request::vouched`].
    pub fn vouch(&mut self, cluster: &Cluster, keyring: &Keyring) {
        let is_ring = cluster.part(self.instance) == Some(Part::RingFast);
        let signed = (cluster.client_auth != ClientAuth::Mac || is_ring) && self.authentication.signature.is_some();
        if !self.vouch_by_mac(cluster, keyring) && signed && !self.is_system() {
            Self::vouch_signatures(core::iter::once(self), cluster, keyring);
        }
    }

    /// JOIN as a request says it, if it does.
    pub fn join(&self) -> Option<Join> {
        if self.client.identity.is_joining() { Join::from_bytes(self.operation.clone()).ok() } else { None }
    }

    /// Whether a request whose signature holds is all that it should be: a JOIN is backed by f+1 replicas (M2).
    fn is_backed(&self, cluster: &Cluster, keyring: &Keyring) -> bool {
        let Some(credential) = self.credential().filter(|_| self.client.identity.is_joining()) else { return true };
        credential.joining() == self.client
            && self.join().is_some_and(|join| join.is_backed(cluster, keyring, &credential))
    }

    /// Checks the signatures of many requests at once, for those that are not vouched for by signature yet.
    pub fn vouch_signatures<'a>(requests: impl Iterator<Item = &'a mut Self>, cluster: &Cluster, keyring: &Keyring) {
        let mut open: Vec<&mut Self> = requests.filter(|request| request.vouched != Vouched::Signature).collect();
        let statements: Vec<[u8; 41]> = open.iter().map(|request| request.statement()).collect();
        let items: Vec<_> = open
            .iter()
            .zip(&statements)
            .map(|(request, statement)| {
                let missing = Signature([0; 64]);
                let signature = request.authentication.signature.unwrap_or(missing);
                (request.signer(), statement.as_slice(), signature)
            })
            .collect();
        let valid = keyring.check_batch(REQUEST_SIGNATURE_KIND, &items);
        for (request, valid) in open.iter_mut().zip(valid) {
            if valid && request.is_backed(cluster, keyring) {
                request.vouched = Vouched::Signature;
            }
        }
    }
}

impl Wire for Request {
    fn encode(&self, out: &mut impl Sink) {
        self.instance.encode(out);
        self.encode_covered(out);
        self.authentication.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let instance = Wire::decode(reader)?;
        let mut request = Self::decode_covered(reader, instance)?;
        request.authentication = Wire::decode(reader)?;
        Ok(request)
    }
}

/// A client may send its own requests only; a replica may pass on anybody's.
pub(super) fn verify_request(
    request: &mut Request,
    from: Principal,
    cluster: &Cluster,
    keyring: &Keyring,
) -> Result<(), Rejection> {
    let own = match from {
        Principal::Client(client) => client.identity == request.client.identity,
        Principal::Key(key) => request.credential().is_some_and(|credential| credential.key == key),
        Principal::Replica(_) => true,
    };
    if !own {
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
        return Err(Rejection::TooLarge);
    }
    // A batch of such requests would be longer than it may be.
    if request.authentication.tags.iter().len() > cluster.n {
        return Err(Rejection::UnauthenticRequest);
    }
    if request.credential.is_some() {
        return verify_strangers(request, from, cluster, keyring);
    }
    if !keyring.keys().identities.contains_key(&request.client.identity) {
        return Err(Rejection::UnknownIdentity);
    }
    let speculative = cluster.part(request.instance).is_some_and(|part| !part.is_resilient());
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

/// A client that the cluster file does not name. A member's request that comes over its own link may wait: the look-up
/// of the key comes before the work for its signature, which is checked before the request is ordered. A JOIN must be
/// all right at once: one that never could be ordered would wait in the place of others.
fn verify_strangers(
    request: &mut Request,
    from: Principal,
    cluster: &Cluster,
    keyring: &Keyring,
) -> Result<(), Rejection> {
    if !cluster.dynamic_clients {
        return Err(Rejection::UnknownIdentity);
    }
    let (client, is_joining) = (request.client, request.client.identity.is_joining());
    if !is_joining && client.session != CONTROL_SESSION && client.session >= MEMBER_SESSIONS_MAX as u32 {
        return Err(Rejection::WrongSender);
    }
    if is_joining && request.credential().map(|credential| credential.joining()) != Some(request.client) {
        return Err(Rejection::WrongSender);
    }
    if from.is_client() && !request.read_only && !is_joining {
        request.vouched = Vouched::Mac;
        return Ok(());
    }
    request.vouch(cluster, keyring);
    if request.vouched == Vouched::No { Err(Rejection::UnauthenticRequest) } else { Ok(()) }
}
