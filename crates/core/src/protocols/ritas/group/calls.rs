//! What an application asks of a process of a group, and what it learns.

use super::super::path::{Layer, Path};
use crate::ids::ReplicaId;
use crate::rejection::Rejection;
use alloc::vec::Vec;
use bytes::Bytes;

/// What the application wants done, with the number of the instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Broadcast this reliably.
    Reliable(u64, Bytes),
    /// Broadcast this by echo.
    Echo(u64, Bytes),
    /// Propose this to a binary consensus.
    Bit(u64, bool),
    /// Propose this to a multi-valued consensus.
    Value(u64, Bytes),
    /// Propose this to a vector consensus.
    Vector(u64, Bytes),
    /// Have this ordered.
    Order(Bytes),
}

/// What the host says for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Group 1.
    Call(Call),
    /// Group 2. It has this result.
    Taken(Taken),
    /// It has more messages of the atomic broadcast than it can take, or not any more: none is delivered meanwhile, and
    /// this process comes no further.
    Hold(bool),
}

/// Which result the application has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A reliable broadcast.
    Reliable(ReplicaId, u64),
    /// A broadcast by echo.
    Echo(ReplicaId, u64),
    /// A bit.
    Bit(u64),
    /// A value.
    Value(u64),
    /// A vector.
    Vector(u64),
}

/// What the application learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// A process has broadcast this reliably.
    Reliable(ReplicaId, u64, Bytes),
    /// A process has broadcast this by echo.
    Echo(ReplicaId, u64, Bytes),
    /// A binary consensus has decided.
    Bit(u64, bool),
    /// A multi-valued one has; or it has come to ⊥.
    Value(u64, Option<Bytes>),
    /// A vector consensus has: what each process proposed, where the vector has it.
    Vector(u64, Vec<Option<Bytes>>),
    /// A message of this process is next in the order.
    Ordered(ReplicaId, Bytes),
    /// The others have gone on without this process: it misses messages that nobody keeps.
    LeftBehind,
    /// Something that this process said was not accepted.
    Rejected(ReplicaId, Rejection),
}

/// What is counted for a call that waits besides its bytes: short ones take memory as well.
pub const CALL_ALLOWANCE: usize = 64;

impl Call {
    /// What is counted for it while it waits.
    pub const fn weight(&self) -> usize {
        self.bytes() + CALL_ALLOWANCE
    }

    /// Bytes of what is said: at most [`MESSAGE_BYTES_MAX`](super::MESSAGE_BYTES_MAX).
    pub const fn bytes(&self) -> usize {
        match self {
            Self::Bit(..) => 1,
            Self::Reliable(_, bytes)
            | Self::Echo(_, bytes)
            | Self::Value(_, bytes)
            | Self::Vector(_, bytes)
            | Self::Order(bytes) => bytes.len(),
        }
    }

    /// The instance; of the atomic broadcast there is one.
    pub(super) fn path(&self) -> Path {
        match self {
            Self::Reliable(number, _) => Path::root(Layer::Reliable, *number),
            Self::Echo(number, _) => Path::root(Layer::Echo, *number),
            Self::Bit(number, _) => Path::root(Layer::Binary, *number),
            Self::Value(number, _) => Path::root(Layer::Multi, *number),
            Self::Vector(number, _) => Path::root(Layer::Vector, *number),
            Self::Order(_) => Path::atomic_broadcast(),
        }
    }
}

impl Taken {
    /// The instance.
    pub(super) fn path(self) -> Path {
        match self {
            Self::Reliable(owner, number) => Path::root(Layer::Reliable, number).by(owner),
            Self::Echo(owner, number) => Path::root(Layer::Echo, number).by(owner),
            Self::Bit(number) => Path::root(Layer::Binary, number),
            Self::Value(number) => Path::root(Layer::Multi, number),
            Self::Vector(number) => Path::root(Layer::Vector, number),
        }
    }
}

impl GroupEvent {
    /// What the application has when it has this; a message of the atomic broadcast is nothing that anybody waits for.
    pub const fn taken(&self) -> Option<Taken> {
        match self {
            Self::Reliable(owner, number, _) => Some(Taken::Reliable(*owner, *number)),
            Self::Echo(owner, number, _) => Some(Taken::Echo(*owner, *number)),
            Self::Bit(number, _) => Some(Taken::Bit(*number)),
            Self::Value(number, _) => Some(Taken::Value(*number)),
            Self::Vector(number, _) => Some(Taken::Vector(*number)),
            Self::Ordered(..) | Self::LeftBehind | Self::Rejected(..) => None,
        }
    }
}
