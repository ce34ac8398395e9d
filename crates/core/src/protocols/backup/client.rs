//! The client's part of a Backup: it asks the primary, or all, and takes replies alone for answers.

use crate::ids::{ReplicaId, Timestamp};
use crate::machine::{Destination, Step};
use crate::protocols::speculative::{Asking, ClientHalf, Complaint, Response, Verdict};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// See the [module](self).
pub(crate) struct BackupClient {
    /// Whether every replica has to know what waits (Aardvark 1).
    pub(crate) asks_all: bool,
}

impl ClientHalf for BackupClient {
    fn receivers(&self, at: &Asking, _timestamp: Timestamp) -> Vec<ReplicaId> {
        at.replicas.iter().collect()
    }

    fn first(&self, at: &Asking, _timestamp: Timestamp, everybody: bool) -> Destination {
        if everybody || self.asks_all {
            Destination::Replicas
        } else {
            Destination::Replica(at.replicas.primary(at.view))
        }
    }

    fn counts(&self, _at: &Asking, _from: ReplicaId) -> bool {
        false
    }

    fn weigh(&self, _at: &Asking, _responses: &BTreeMap<ReplicaId, Response>) -> Verdict {
        Verdict::Open
    }

    fn believes_certain(&self) -> bool {
        false
    }

    fn asks(&self) -> Option<Step> {
        None
    }

    fn accepts(&self) -> Option<Step> {
        None
    }

    fn ends(&self) -> Step {
        "Client 7"
    }

    fn complaint(&self) -> Complaint {
        Complaint::Nothing
    }
}
