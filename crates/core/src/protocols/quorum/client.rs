//! The client's part of Quorum: steps Q1 and Q3 of the [module](super).

use crate::ids::{ReplicaId, Timestamp};
use crate::machine::Destination;
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

    fn complaint(&self) -> Complaint {
        Complaint::Panic
    }
}
