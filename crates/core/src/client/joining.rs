//! What a client knows while it joins: see [`super::door`].

use crate::ids::ReplicaId;
use crate::joining::{Nonce, Stamp};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use bytes::Bytes;

/// An attempt that is under way.
#[derive(Clone, Debug)]
pub(super) struct Joining {
    pub(super) nonce: Nonce,
    pub(super) identification: Bytes,
    pub(super) stamps: BTreeMap<ReplicaId, Stamp>,
    pub(super) begun: Instant,
    pub(super) deadline: Instant,
}
