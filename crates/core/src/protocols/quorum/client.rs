//! The client's part of Quorum: Quorum 1 and 3 of the [module](super).

use crate::ids::{ReplicaId, Timestamp};
use crate::machine::{Destination, Step};
use crate::protocols::speculative::{Asking, ClientHalf, Complaint, Response, Verdict, all_equal};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// See the [module](self).
pub(crate) struct QuorumClient;

impl ClientHalf for QuorumClient {
    fn receivers(&self, at: &Asking, _timestamp: Timestamp) -> Vec<ReplicaId> {
        at.replicas.iter().collect()
    }

    fn first(&self, _at: &Asking, _timestamp: Timestamp, _everybody: bool) -> Destination {
        Destination::Replicas
    }

    fn counts(&self, _at: &Asking, _from: ReplicaId) -> bool {
        true
    }

    fn weigh(&self, at: &Asking, responses: &BTreeMap<ReplicaId, Response>) -> Verdict {
        all_equal(responses, at.replicas.all())
    }

    fn believes_certain(&self) -> bool {
        false
    }

    fn asks(&self) -> Option<Step> {
        Some("Quorum 1")
    }

    fn accepts(&self) -> Option<Step> {
        Some("Quorum 3")
    }

    fn ends(&self) -> Step {
        "Client 6"
    }

    fn complaint(&self) -> Complaint {
        Complaint::Panic
    }
}
