//! A client's request and its proof.

use super::bundle;
use crate::auth::{Authenticator, Keyring, Tag, TreeSignature};
use crate::cluster::{Cluster, Limits};
use crate::digest::{Digest, Domain};
use crate::ids::{ClientId, IdentityId, InstanceId, Principal, Timestamp};
use crate::joining::{CONTROL_SESSION, Credential, Join};
use crate::machine::Destination;
use crate::wire::{FRAME_BYTES_MAX, Reader, Sink, Wire, WireError, encode_shared};
use crate::wire_struct;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// Requests up to this size are copied out of the receive buffer, as one piece.
const REQUEST_COPY_BYTES_MAX: usize = 1024;

/// The kind byte under which clients sign the roots of trees of requests; no [`crate::auth::Signable::KIND`] equals it.
pub const REQUESTS_ROOT_KIND: u8 = 20;

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
    /// A signature, perhaps shared with other requests of the same client, or none.
    pub signature: Option<TreeSignature>,
}

wire_struct!(Authentication { tags, signature });

/// How a client wants its operation carried out, or each operation of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Ordered, and executed.
    #[default]
    Ordered,
    /// Answered at once, without an order.
    Query,
    /// Ordered, and answered as a query: it is executed only if it only reads.
    OrderedQuery,
}

/// How to read the bytes of an operation, and what to do with it: one byte on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) manner: Manner,
    /// Whether it is a [`bundle`].
    pub(crate) is_bundle: bool,
}

impl Form {
    const BUNDLE: u8 = 4;

    const fn byte(self) -> u8 {
        self.manner as u8 | if self.is_bundle { Self::BUNDLE } else { 0 }
    }
}

impl Wire for Form {
    fn encode(&self, out: &mut impl Sink) {
        out.push(self.byte());
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let byte = reader.tag()?;
        let manner = match byte & !Self::BUNDLE {
            0 => Manner::Ordered,
            1 => Manner::Query,
            2 => Manner::OrderedQuery,
            _ => return Err(WireError::NotCanonical),
        };
        Ok(Self { manner, is_bundle: byte & Self::BUNDLE != 0 })
    }
}

/// REQUEST: a client's operation.
#[derive(Clone, Debug)]
pub struct Request {
    /// The instance that is asked (abs-D1): a request for one instance means nothing to another.
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
    is_bundle: bool,
    /// What to execute: an operation, or a [`bundle`] of them.
    pub operation: Bytes,
    /// The client's proof.
    pub authentication: Authentication,
    /// Computed once, on arrival; not on the wire.
    digest: Digest,
    /// What this replica has checked; not on the wire.
    pub vouched: Vouched,
}

/// Whether no client has two of them.
pub(crate) fn are_of_distinct_clients<'a>(requests: impl Iterator<Item = &'a Request>) -> bool {
    let mut clients: Vec<ClientId> = requests.map(|request| request.client).collect();
    clients.sort_unstable();
    clients.windows(2).all(|pair| pair[0] != pair[1])
}

const fn form(read_only: bool) -> Form {
    Form { manner: if read_only { Manner::Query } else { Manner::Ordered }, is_bundle: false }
}

impl Request {
    /// Whether a request of this kind may be ordered in an instance, whoever's it is.
    pub(crate) fn may_be_ordered(&self, limits: &Limits, instance: InstanceId) -> bool {
        let is_sized = self.operation.len() <= limits.operation_bytes_max || self.is_system();
        self.instance == instance && !self.read_only && is_sized
    }

    /// A request without proof yet.
    pub fn new(
        instance: InstanceId,
        client: ClientId,
        timestamp: Timestamp,
        read_only: bool,
        operation: Bytes,
    ) -> Self {
        Self::in_form(instance, client, None, timestamp, form(read_only), operation)
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
        Self::in_form(instance, client, Some(credential), timestamp, form(read_only), operation)
    }

    /// A request without proof yet, of a client with this credential, if it needs one.
    ///
    /// # Panics
    /// If it is a bundle of a client that [may not](Request::may_be_bundle) have one.
    pub(crate) fn in_form(
        instance: InstanceId,
        client: ClientId,
        credential: Option<Credential>,
        timestamp: Timestamp,
        form: Form,
        operation: Bytes,
    ) -> Self {
        let digest = Self::digest_of(client, credential.as_ref(), timestamp, form, &operation);
        let Form { manner, is_bundle } = form;
        assert!(!is_bundle || Self::may_be_bundle(client), "{client} asks for one thing at a time");
        Self {
            instance,
            client,
            credential: credential.map(Box::new),
            timestamp,
            read_only: manner == Manner::Query,
            ordered_query: manner == Manner::OrderedQuery,
            is_bundle,
            operation,
            authentication: Authentication::default(),
            digest,
            vouched: Vouched::No,
        }
    }

    /// The same, of another instance, without proof yet. Manner and credential, which the digest covers, stay.
    #[must_use]
    pub fn asked_in(self, instance: InstanceId) -> Self {
        Self { instance, authentication: Authentication::default(), vouched: Vouched::No, ..self }
    }

    /// The same, without proof yet, to be ordered and executed only if the service says that it only reads.
    #[must_use]
    pub fn as_ordered_query(self) -> Self {
        let Self { instance, client, timestamp, is_bundle, operation, .. } = self;
        let credential = self.credential.map(|credential| *credential);
        let form = Form { manner: Manner::OrderedQuery, is_bundle };
        Self::in_form(instance, client, credential, timestamp, form, operation)
    }

    /// The same, without proof yet: its operation is a [`bundle`].
    ///
    /// # Panics
    /// If it is none, or the client is one that does not bundle: see [`Request::may_be_bundle`].
    #[must_use]
    pub fn as_bundle(self) -> Self {
        assert!(bundle::count(&self.operation).is_ok(), "a bundle has its form");
        let form = Form { is_bundle: true, ..self.form() };
        let Self { instance, client, timestamp, operation, .. } = self;
        let credential = self.credential.map(|credential| *credential);
        Self::in_form(instance, client, credential, timestamp, form, operation)
    }

    /// Whether requests of this client may be bundles: those of the system, and those with which somebody joins, leaves
    /// or closes the cluster, are one operation each.
    pub fn may_be_bundle(client: ClientId) -> bool {
        let is_control = client.session == CONTROL_SESSION;
        !is_control && !client.identity.is_joining() && client.identity != IdentityId::SYSTEM
    }

    /// Whether it is several operations in one.
    pub const fn is_bundle(&self) -> bool {
        self.is_bundle
    }

    /// How many operations it has.
    pub fn operation_count(&self) -> usize {
        if self.is_bundle { bundle::count(&self.operation).expect("a bundle was decoded as one") } else { 1 }
    }

    /// What it asks for, in order: one operation, or those of a bundle.
    pub fn operations(&self) -> Vec<Bytes> {
        if !self.is_bundle {
            return alloc::vec![self.operation.clone()];
        }
        bundle::unpack(&self.operation).expect("a bundle was decoded as one")
    }

    /// Whether it is executed only if the service says that it only reads.
    pub const fn is_ordered_query(&self) -> bool {
        self.ordered_query
    }

    pub(crate) const fn form(&self) -> Form {
        let manner = if self.ordered_query { Manner::OrderedQuery } else { form(self.read_only).manner };
        Form { manner, is_bundle: self.is_bundle }
    }

    /// The operation comes first, so that its chunks lie where the hash works on many side by side; the identity in the
    /// trailer says whether a credential stands before it.
    fn digest_of(
        client: ClientId,
        credential: Option<&Credential>,
        timestamp: Timestamp,
        form: Form,
        operation: &[u8],
    ) -> Digest {
        const TRAILER: usize = 17;
        let mut trailer = [0; TRAILER];
        trailer[..4].copy_from_slice(&client.identity.0.to_le_bytes());
        trailer[4..8].copy_from_slice(&client.session.to_le_bytes());
        trailer[8..16].copy_from_slice(&timestamp.0.to_le_bytes());
        trailer[16] = form.byte();
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

    /// D(req): over client, credential, timestamp and operation, not over instance and proof, so histories of
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
        self.form().encode(out);
        encode_shared(&self.operation, out);
    }

    /// What [`Request::encode_covered`] encoded, asked in this instance.
    pub(crate) fn decode_covered(reader: &mut Reader, instance: InstanceId) -> Result<Self, WireError> {
        reader.detach(REQUEST_COPY_BYTES_MAX);
        let client = ClientId::decode(reader)?;
        let credential = if client.identity.is_dynamic() { Some(Wire::decode(reader)?) } else { None };
        let timestamp = Wire::decode(reader)?;
        let form = Form::decode(reader)?;
        let operation = reader.payload(FRAME_BYTES_MAX)?;
        if form.is_bundle {
            let count = bundle::count(&operation)?;
            if form.manner == Manner::Query && count > bundle::QUERIES_MAX {
                return Err(WireError::TooLong);
            }
            if !Self::may_be_bundle(client) {
                return Err(WireError::NotCanonical);
            }
        }
        Ok(Self::in_form(instance, client, credential, timestamp, form, operation))
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

    /// What a client's MACs cover, and the leaf under its signature: instance and digest.
    pub(crate) fn statement(&self) -> [u8; 41] {
        let mut statement = [0; 41];
        statement[0] = AUTHENTICATOR;
        statement[1..9].copy_from_slice(&self.instance.0.to_le_bytes());
        statement[9..].copy_from_slice(&self.digest.0);
        statement
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
            cluster.replicas.iter().map(|id| keyring.tag(Principal::Replica(id), &statement)).collect();
        self
    }

    /// Adds a signature, whatever the mode: for a request that everybody has to judge in the same way.
    #[must_use]
    pub fn sign(mut self, keyring: &Keyring) -> Self {
        Self::sign_all(core::iter::once(&mut self), keyring);
        self
    }

    /// The same for several, with as few signatures as may be ([`TreeSignature`]): each is as good alone.
    pub fn sign_all<'a>(requests: impl Iterator<Item = &'a mut Self>, keyring: &Keyring) {
        let requests: Vec<&mut Self> = requests.collect();
        let leaves: Vec<Digest> = requests.iter().map(|request| request.leaf()).collect();
        let signatures = TreeSignature::sign(keyring, REQUESTS_ROOT_KIND, &leaves);
        for (request, signature) in requests.into_iter().zip(signatures) {
            request.authentication.signature = Some(signature);
        }
    }

    /// The leaf in the tree whose root its client signs.
    pub(crate) fn leaf(&self) -> Digest {
        TreeSignature::leaf(&self.statement())
    }

    /// JOIN as a request says it, if it does.
    pub fn join(&self) -> Option<Join> {
        if self.client.identity.is_joining() { Join::from_bytes(self.operation.clone()).ok() } else { None }
    }

    /// Whether it is an operation of the system itself, and not a client's.
    pub fn is_system(&self) -> bool {
        self.client.identity == IdentityId::SYSTEM
    }

    /// Whether a member leaves with it.
    pub const fn is_leave(&self) -> bool {
        self.client.identity.is_member() && self.client.session == CONTROL_SESSION
    }

    /// Whether a client that the cluster file names closes the cluster with it ([`crate::estate`]).
    pub fn is_close(&self) -> bool {
        let is_query = self.read_only || self.ordered_query;
        let is_named = !self.client.identity.is_dynamic() && !self.is_system();
        is_named && self.client.session == CONTROL_SESSION && !is_query
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

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match () {
            () if self.client.identity.is_joining() => "JOIN",
            () if self.is_leave() => "LEAVE",
            () if self.is_close() => "CLOSE",
            () if self.read_only => "QUERY",
            () if self.is_ordered_query() => "ORDERED-QUERY",
            () => "REQUEST",
        };
        write!(f, "{kind} {} {} {} bytes", self.client, self.timestamp, self.operation.len())?;
        if self.is_bundle { write!(f, " in {} operations", self.operation_count()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::bundle::QUERIES_MAX;
    use crate::testing::net::INSTANCE;
    use alloc::string::ToString;
    use alloc::vec;

    fn request(identity: IdentityId, session: u32, operation: Bytes) -> Request {
        let client = ClientId { identity, session };
        Request::new(INSTANCE, client, Timestamp(1), false, operation)
    }

    fn two() -> Bytes {
        bundle::pack(&[Bytes::from_static(b"one"), Bytes::from_static(b"two")])
    }

    /// Whoever replaces one by the other has another request, which nobody asked for.
    #[test]
    fn a_bundle_is_not_the_operation_with_its_bytes() {
        let one = request(IdentityId(1), 0, two());
        let other = one.clone().as_bundle();
        assert_ne!(one.digest(), other.digest());
        assert_eq!((one.operation_count(), other.operation_count()), (1, 2));
        assert_eq!(other.operations(), [Bytes::from_static(b"one"), Bytes::from_static(b"two")]);
        let read = Request::from_bytes(other.to_bytes().into()).unwrap();
        assert!(read.is_bundle() && read.digest() == other.digest());
        assert!(read.clone().as_ordered_query().is_bundle() && read.clone().asked_in(InstanceId(9)).is_bundle());
        assert!(read.to_string().ends_with(" in 2 operations"));
    }

    /// Where the form byte of a request's encoding stands, and the length of its operation.
    fn form_of(bytes: &[u8]) -> usize {
        let form = 8 + 8 + 8;
        assert_eq!(bytes[form], 0, "an ordered operation");
        form
    }

    #[test]
    fn bytes_that_are_no_bundle_are_no_request() {
        let mut bytes = request(IdentityId(1), 0, Bytes::from_static(b"nonsense")).to_bytes();
        let form = form_of(&bytes);
        assert!(Request::from_bytes(bytes.clone().into()).is_ok());
        for wrong in [3, 7, 8] {
            bytes[form] = wrong;
            assert_eq!(Request::from_bytes(bytes.clone().into()).err(), Some(WireError::NotCanonical), "{wrong}");
        }
        for bundle in [4, 5, 6] {
            bytes[form] = bundle;
            assert!(Request::from_bytes(bytes.clone().into()).is_err(), "{bundle}");
        }
    }

    /// What a replica answers in one step.
    #[test]
    fn few_queries_make_a_bundle() {
        for (count, few) in [(QUERIES_MAX, true), (QUERIES_MAX + 1, false)] {
            let mut bytes = request(IdentityId(1), 0, bundle::pack(&vec![Bytes::new(); count])).to_bytes();
            let form = form_of(&bytes);
            for (manner, is_one) in [(4, true), (5, few), (6, true)] {
                bytes[form] = manner;
                assert_eq!(Request::from_bytes(bytes.clone().into()).is_ok(), is_one, "{count} {manner}");
            }
        }
    }

    #[test]
    fn who_closes_or_is_the_system_asks_for_one_thing() {
        for (identity, session) in [(IdentityId(1), CONTROL_SESSION), (IdentityId::SYSTEM, 0)] {
            let mut bytes = request(identity, session, two()).to_bytes();
            let form = form_of(&bytes);
            assert!(Request::from_bytes(bytes.clone().into()).is_ok());
            bytes[form] = 4;
            assert_eq!(Request::from_bytes(bytes.into()).err(), Some(WireError::NotCanonical), "{identity:?}");
        }
    }
}
