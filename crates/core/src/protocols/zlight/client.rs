//! The client's part of ZLight: ZLight 1 and 4 of the [module](super).

use crate::ids::{ReplicaId, Timestamp};
use crate::machine::{Destination, Step};
use crate::protocols::speculative::{Asking, ClientHalf, Complaint, Response, Verdict, all_equal};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// See the [module](self).
pub(crate) struct ZLightClient;

impl ClientHalf for ZLightClient {
    fn receivers(&self, at: &Asking<'_>, _timestamp: Timestamp) -> Vec<ReplicaId> {
        at.cluster.replicas().collect()
    }

    fn first(&self, at: &Asking<'_>, _timestamp: Timestamp, _everybody: bool) -> Destination {
        Destination::Replica(at.head)
    }

    fn counts(&self, _at: &Asking<'_>, _from: ReplicaId) -> bool {
        true
    }

    fn weigh(&self, at: &Asking<'_>, responses: &BTreeMap<ReplicaId, Response>) -> Verdict {
        all_equal(responses, at.cluster.all())
    }

    fn believes_certain(&self) -> bool {
        false
    }

    fn asks(&self) -> Option<Step> {
        Some("ZLight 1")
    }

    fn accepts(&self) -> Option<Step> {
        Some("ZLight 4")
    }

    fn complaint(&self) -> Complaint {
        Complaint::Panic
    }
}
