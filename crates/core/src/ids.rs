//! Who takes part, and the numbers of what they do: replicas, clients, keys, views, positions, instances.

use crate::wire::{Mark, Reader, Sink, Wire, WireError};
use core::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $show:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($show, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }

        impl Wire for $name {
            fn encode(&self, out: &mut impl Sink) {
                out.mark(Mark::Value(stringify!($name)));
                self.0.encode(out);
                out.mark(Mark::End);
            }
            fn decode(reader: &mut Reader) -> Result<Self, WireError> {
                Ok(Self(Wire::decode(reader)?))
            }
        }
    };
}

number!(
    /// A replica, 0 to n−1.
    ReplicaId(u8), "r"
);
number!(
    /// A view of PBFT: its primary is `view mod n`.
    View(u64), "v"
);
number!(
    /// A position in the agreed sequence of batches. The first batch has sequence number 1.
    Sequence(u64), "s"
);
number!(
    /// An instance of an abortable protocol within the composition. The first one is 1 ([`crate::compositions`]).
    InstanceId(u64), "i"
);
number!(
    /// A client's own request number. It grows; the library uses microseconds since the Unix epoch.
    Timestamp(u64), "t"
);
number!(
    /// An identity: the owner of a public key that the cluster admits. Numbers below [`IdentityId::PINNED_MAX`] are
    /// the cluster file's; those above stand for clients that join while the cluster runs ([`crate::members`]).
    IdentityId(u32), "c"
);

impl IdentityId {
    /// The cluster file's identities have numbers up to this one.
    pub const PINNED_MAX: Self = Self((1 << 31) - 1);
    /// The first number of the clients that have joined.
    pub const MEMBERS: Self = Self(1 << 31);
    /// The first number of those that ask to join.
    pub const JOINING: Self = Self(3 << 30);
    /// The identity in whose name the system itself asks. No client has it.
    pub const SYSTEM: Self = Self(u32::MAX);

    /// Whether it stands for a client that has joined.
    pub const fn is_member(self) -> bool {
        self.0 >= Self::MEMBERS.0 && self.0 < Self::JOINING.0
    }

    /// Whether it stands for a client that asks to join.
    pub const fn is_joining(self) -> bool {
        self.0 >= Self::JOINING.0 && self.0 < Self::SYSTEM.0
    }

    /// Whether it stands for a client that the cluster file does not name.
    pub const fn is_dynamic(self) -> bool {
        self.is_member() || self.is_joining()
    }
}

impl Sequence {
    /// The position after this one. Peers say any number: there is none after the last.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl View {
    /// The view after this one; none after the last.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A logical client: one session of an identity, with one request outstanding at a time.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    /// Whose key speaks for it.
    pub identity: IdentityId,
    /// Which of the identity's sessions.
    pub session: u32,
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.identity, self.session)
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Wire for ClientId {
    fn encode(&self, out: &mut impl Sink) {
        out.mark(Mark::Value("ClientId"));
        self.identity.encode(out);
        self.session.encode(out);
        out.mark(Mark::End);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { identity: Wire::decode(reader)?, session: Wire::decode(reader)? })
    }
}

/// A public identity key, pinned in the cluster file or in the replicated state.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key:{:02x}{:02x}{:02x}{:02x}", self.0[0], self.0[1], self.0[2], self.0[3])
    }
}

impl Wire for PublicKey {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.array()?))
    }
}

/// Somebody who can send and receive: a replica or a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Principal {
    /// One of the n replicas.
    Replica(ReplicaId),
    /// A logical client, that is one session of an identity that the cluster file names.
    Client(ClientId),
    /// A client that the cluster file does not name, by its key: all that is certain of it ([`crate::members`]).
    Key(PublicKey),
}

impl Principal {
    /// Whether it is no replica.
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client(_) | Self::Key(_))
    }

    /// The replica, if it is one.
    pub const fn replica(self) -> Option<ReplicaId> {
        match self {
            Self::Replica(id) => Some(id),
            Self::Client(_) | Self::Key(_) => None,
        }
    }
}
