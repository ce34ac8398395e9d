//! What RITAS finds again after a crash, and what it waits for.

use super::super::atomic_broadcast::Standing;
use super::super::message::{Said, Value};
use super::super::path::Path;
use super::super::scope::Silence;
use crate::auth::{Certificate, Claimed};
use crate::batch::Batch;
use crate::checkpoint::Checkpoint;
use crate::ids::Sequence;
use crate::switching::RECORD_ALLOWANCE;
use crate::{wire_enum, wire_struct};
use alloc::boxed::Box;
use alloc::sync::Arc;

/// A batch that a round delivered.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// Its place.
    pub sequence: Sequence,
    /// The batch.
    pub batch: Arc<Batch>,
    /// Where the atomic broadcast stands after it.
    pub standing: Standing,
}
wire_struct!(Delivered { sequence, batch, standing });

/// The decision of an instance that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    /// The instance.
    pub path: Path,
    /// Its decision.
    pub value: Value,
}
wire_struct!(Over { path, value });

/// What RITAS must have on disk before it speaks (`docs/durability.md`).
#[derive(Clone, Debug)]
pub enum RitasRecord {
    /// Before it is said, or before a value is vouched for by its name.
    Said(Box<Said>),
    /// At the beginning of a log: what else was decided.
    Over(Box<Over>),
    /// Before a REPLY: the batch.
    Delivered(Delivered),
    /// A stable checkpoint that this replica had.
    Stable(Box<Claimed<Certificate<Checkpoint>>>),
    /// This replica lost its log: what it is silent about, if it knows; else about everything.
    Abstain(Option<Silence>),
}
wire_enum!(RitasRecord {
    1 => Said,
    2 => Over,
    3 => Delivered,
    4 => Stable,
    5 => Abstain,
});

impl RitasRecord {
    /// About how many bytes it takes in the log: see [`crate::switching::Recorded::log_bytes`].
    pub fn log_bytes(&self) -> usize {
        match self {
            Self::Said(said) => RECORD_ALLOWANCE + said.statement.value_bytes(),
            Self::Delivered(delivered) => {
                let batch = &delivered.batch;
                RECORD_ALLOWANCE * (1 + batch.entries().len()) + batch.inline_bytes()
            }
            Self::Over(_) | Self::Stable(_) | Self::Abstain(_) => RECORD_ALLOWANCE,
        }
    }
}

/// RITAS' timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RitasTimer {
    /// Time to say what this replica lacks.
    Channel,
}
