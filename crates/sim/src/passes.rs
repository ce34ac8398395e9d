//! Requests that wait for the end of a pass of their clients, to be signed together.

use crate::network::ProcessId;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::message::Request;
use std::collections::BTreeMap;

/// A request that waits for its pass to end.
#[derive(Debug)]
pub struct Unsigned {
    /// Who sends it.
    pub process: ProcessId,
    /// To whom.
    pub to: Vec<ReplicaId>,
    /// Without its signature.
    pub request: Request,
}

/// What waits, by whose key signs it: of each client what it has sent in this pass.
pub type Passes = BTreeMap<Principal, Vec<Unsigned>>;
