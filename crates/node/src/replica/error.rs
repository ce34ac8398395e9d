//! Why a replica ends.

use super::Stall;
use std::{fmt, io};

/// Why a replica ended by itself.
#[derive(Debug)]
pub enum ReplicaError {
    /// The machine could not be made.
    Start(String),
    /// The log cannot make anything durable any more.
    Log(Stall),
    /// The system's readiness queue or a listener failed.
    System(io::Error),
    /// The machine broke one of its own invariants, or the service panicked; the message is on standard error.
    Panicked,
}

impl fmt::Display for ReplicaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(what) => write!(f, "the replica cannot start: {what}"),
            Self::Log(stall) => write!(f, "the replica stopped speaking because its log failed: {stall}"),
            Self::System(error) => write!(f, "the replica stopped: {error}"),
            Self::Panicked => {
                f.write_str("the replica stopped: it found its own state inconsistent, or its service panicked")
            }
        }
    }
}

impl std::error::Error for ReplicaError {}
