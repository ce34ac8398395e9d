//! Rows that a client is bringing.

use crate::copy::Layout;
use crate::execute::Destination;

/// What a client is bringing.
pub(super) struct Incoming {
    pub(super) into: Destination,
    pub(super) layout: Layout,
    pub(super) data: Vec<u8>,
    /// Of the simple protocol: what comes behind the COPY.
    pub(super) rest: Option<Vec<String>>,
}
