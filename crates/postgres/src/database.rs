//! What the gateway needs of the replicated database.

use crate::cancel::Cancel;
use bezant_sql::{Request, Response};
use std::fmt;
use std::sync::Arc;

/// An answer, and who vouched for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What enough replicas answered alike.
    pub response: Response,
    /// The position in the order at which the request was executed or read; 0 if it is not known.
    pub sequence: u64,
    /// The replicas that gave this answer before it was accepted.
    pub replicas: Vec<u8>,
    /// Whether the request was ordered among all others, because it writes, depends on the moment, or the protocol
    /// orders every request.
    pub ordered: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// It was not executed and will not be.
    Refused(String),
    /// The deadline passed: it may or may not be executed, now or later. The text names it.
    Unknown(String),
    /// The request or its answer is too large for this cluster.
    TooLarge(String),
    /// The cluster is closed: it writes nothing any more, and this was not executed.
    ReadOnly(String),
    /// The client wanted no answer any more, and nothing has changed or will.
    Cancelled,
}

impl fmt::Display for CallFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) | Self::TooLarge(why) | Self::ReadOnly(why) => write!(out, "refused: {why}"),
            Self::Cancelled => out.write_str("cancelled"),
            Self::Unknown(what) => write!(out, "outcome unknown: {what}"),
        }
    }
}

impl std::error::Error for CallFailure {}

/// The replicated database, for many threads at the same time.
pub trait Database: Send + Sync + 'static {
    /// Carries out a request and waits for its answer, but no longer than the deadline that the database was made
    /// with, or than the client wants. A request that is called after another one returned takes effect after it.
    ///
    /// # Errors
    /// [`CallFailure`]: it was refused, or nobody knows.
    fn call(&self, request: &Request, cancel: &Arc<Cancel>) -> Result<Answer, CallFailure>;

    /// The same for a request that goes on from a scratch state ([`Request::goes_on`]). These replicas have all vouched
    /// for what it goes on from: so many of them may be asked, and no others, that one of those who agree is correct.
    /// The position of such an answer is 0.
    ///
    /// # Errors
    /// As of [`Self::call`].
    fn go_on(&self, request: &Request, _holders: &[u8], cancel: &Arc<Cancel>) -> Result<Answer, CallFailure> {
        self.call(request, cancel)
    }

    /// Whether every request is ordered, reads as well.
    fn orders_reads(&self) -> bool;

    /// The most bytes of a request.
    fn request_bytes_max(&self) -> usize;
}
