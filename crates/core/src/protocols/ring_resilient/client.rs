//! The client's part of the resilient ring: Resilient 1 and 5 of the [module](super).

use crate::ids::{ReplicaId, Timestamp};
use crate::machine::{Destination, Step};
use crate::protocols::speculative::{Asking, ClientHalf, Complaint, Response, Verdict, enough_equal};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// See the [module](self).
pub(crate) struct RingResilientClient;

impl ClientHalf for RingResilientClient {
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
        // f + 1 of those who answer are correct, and have executed what 2f + 1 hold certificates for.
        enough_equal(responses, at.replicas.strong())
    }

    fn believes_certain(&self) -> bool {
        true
    }

    fn asks(&self) -> Option<Step> {
        Some("Resilient 1")
    }

    fn accepts(&self) -> Option<Step> {
        Some("Resilient 5")
    }

    fn ends(&self) -> Step {
        "Client 8"
    }

    fn complaint(&self) -> Complaint {
        Complaint::Nothing
    }
}
