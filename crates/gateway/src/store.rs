//! What a gateway needs of the replicated service.

use bezant_core::services::kv::{KvOperation, KvResult};
use std::fmt;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The operation was not executed and will not be. The text says why.
    Refused(String),
    /// The deadline passed: the operation may or may not be executed, now or later. The text names it.
    Unknown(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(out, "refused: {why}"),
            Self::Unknown(what) => write!(out, "outcome unknown: {what}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// A key-value service that many threads may call at the same time.
pub trait Store: Send + Sync + 'static {
    /// Carries out one operation and waits for its result, but no longer than the deadline that the store was made
    /// with. Read-only operations need not be ordered. An operation that is called after another one returned takes
    /// effect after it.
    ///
    /// # Errors
    /// [`StoreError`]: it was refused, or nobody knows.
    fn call(&self, operation: &KvOperation) -> Result<KvResult, StoreError>;
}
