//! What a client says to join: cookies, JOIN, and the credential of everything it signs.

use crate::auth::{Keyring, Signable, Signature};
use crate::cluster::Cluster;
use crate::digest::{Digest, Domain};
use crate::ids::{ClientId, IdentityId, InstanceId, Principal, PublicKey, ReplicaId};
use crate::rejection::Rejection;
use crate::replicas::REPLICAS_MAX;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::time::Instant;
use crate::wire::{Reader, Sink, Wire, WireError, encode_list, encode_payload};
use crate::{wire_enum, wire_struct};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// The session number in which a member leaves, and in which a client that the cluster file names closes the cluster
/// ([`crate::estate`]). All other sessions have lower numbers.
pub const CONTROL_SESSION: u32 = u32::MAX;

/// Sessions of one member in the client table.
pub const MEMBER_SESSIONS_MAX: usize = 64;

/// Bytes of replies that the sessions of one member keep together.
pub const MEMBER_REPLY_BYTES_MAX: u64 = 1 << 20;

/// JOINs that may wait to be ordered at a replica.
pub const JOINS_PENDING_MAX: usize = 256;

/// The longest text that a client may bring along for [`crate::service::Service::authorize`].
pub const IDENTIFICATION_BYTES_MAX: usize = 512;

/// What makes an attempt to join different from every other one of its key. The client's own choice.
pub type Nonce = [u8; 16];

/// The name of a session. No two sessions ever have the same.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub [u8; 16]);

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session:{:02x}{:02x}{:02x}{:02x}", self.0[0], self.0[1], self.0[2], self.0[3])
    }
}

impl Wire for SessionId {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.array()?))
    }
}

/// Who a client is that the cluster file does not name. Part of its request and covered by its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Credential {
    /// Its key.
    pub key: PublicKey,
    /// Its session; in a JOIN, the nonce.
    pub session: SessionId,
}
wire_struct!(Credential { key, session });

impl Credential {
    /// In whose name a JOIN waits to be ordered: 62 bits of a hash, so that nobody can take another's place.
    pub fn joining(&self) -> ClientId {
        let name = Digest::of_parts(Domain::Session, &[b"join", &self.key.0, &self.session.0]).0;
        let [a, b, c, d, e, f, g, h, ..] = name;
        let identity = IdentityId::JOINING.0 | (u32::from_le_bytes([a, b, c, d]) >> 2);
        // The system's own number is no client's.
        let identity = IdentityId(identity.min(IdentityId::SYSTEM.0 - 1));
        ClientId { identity, session: u32::from_le_bytes([e, f, g, h]) }
    }
}

/// COOKIE: what a replica signs for whoever holds a key at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Whose key.
    pub key: PublicKey,
    /// For which attempt to join.
    pub nonce: Nonce,
    /// The replica's clock.
    pub time: Instant,
}
wire_struct!(Cookie { key, nonce, time });

impl Signable for Cookie {
    const KIND: u8 = 6;
}

/// As many bytes more than it needs does a question have, so no answer is longer (prac-F23).
const PADDING: usize = 72;

/// ASK: a client wants a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// For which attempt to join.
    pub nonce: Nonce,
}

impl Wire for Ask {
    fn encode(&self, out: &mut impl Sink) {
        self.nonce.encode(out);
        out.extend_from_slice(&[0; PADDING]);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let nonce = reader.array()?;
        if reader.array()? != [0; PADDING] {
            return Err(WireError::NotCanonical);
        }
        Ok(Self { nonce })
    }
}

/// GIVEN: the cookie, for a client that knows its key and who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// For which attempt to join.
    pub nonce: Nonce,
    /// The replica's clock.
    pub time: Instant,
    /// Of the [`Cookie`].
    pub signature: Signature,
}
wire_struct!(Given { nonce, time, signature });

/// Members 1 of [`crate::members`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CookieMessage {
    /// Client to replica.
    Ask(Ask),
    /// Replica to client.
    Given(Given),
}
wire_enum!(CookieMessage { 1 => Ask, 2 => Given });

/// One cookie in a JOIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Who signed it.
    pub replica: ReplicaId,
    /// When, by its clock.
    pub time: Instant,
    /// Of the [`Cookie`].
    pub signature: Signature,
}
wire_struct!(Stamp { replica, time, signature });

/// JOIN: the operation of a request to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// What the client says about itself, for the service. Every replica reads it.
    pub identification: Bytes,
    /// The cookies, in ascending order of their replicas.
    pub stamps: Vec<Stamp>,
}

impl Wire for Join {
    fn encode(&self, out: &mut impl Sink) {
        encode_payload(&self.identification, out);
        encode_list(&self.stamps, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let identification = reader.payload(IDENTIFICATION_BYTES_MAX)?;
        Ok(Self { identification, stamps: reader.list(REPLICAS_MAX)? })
    }
}

impl Join {
    /// Members 2 of [`crate::members`], checked by everybody: cookies of f+1 different replicas, no more, for this key
    /// and nonce. Says nothing
    /// about how old they are.
    pub fn is_backed(&self, cluster: &Cluster, keyring: &Keyring, credential: &Credential) -> bool {
        let ascending = self.stamps.windows(2).all(|pair| pair[0].replica < pair[1].replica);
        ascending
            && self.stamps.len() == cluster.replicas.weak()
            && self.stamps.iter().all(|stamp| stamp.holds(keyring, credential))
    }

    /// When the client was met, at the latest: one of the cookies is from a correct replica, and none is older than
    /// the oldest.
    pub fn time(&self) -> Instant {
        self.stamps.iter().map(|stamp| stamp.time).min().unwrap_or_default()
    }
}

impl Stamp {
    /// Whether its replica signed the cookie.
    pub fn holds(&self, keyring: &Keyring, credential: &Credential) -> bool {
        let Credential { key, session } = *credential;
        let cookie = Cookie { key, nonce: session.0, time: self.time };
        keyring.check_bytes(Cookie::KIND, Principal::Replica(self.replica), &cookie.to_bytes(), &self.signature)
    }
}

impl fmt::Display for CookieMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask(_) => "ASK",
            Self::Given(_) => "GIVEN",
        })
    }
}

impl Spoken for CookieMessage {
    fn instance(&self) -> Option<InstanceId> {
        None
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    fn cover(&self) -> Cover {
        Cover::Whole
    }

    fn may_overtake(&self) -> bool {
        false
    }

    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        match (self, from) {
            (Self::Ask(_), Principal::Key(_)) => Ok(()),
            (Self::Ask(_) | Self::Given(_), from) => from_replica(from),
        }
    }
}
