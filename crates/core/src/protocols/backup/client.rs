//! The client's part of a Backup: it asks those whom its order wants to be asked, and takes replies alone for answers.

use crate::ids::{ReplicaId, Timestamp, View};
use crate::machine::{Destination, Step};
use crate::protocols::speculative::{Asking, ClientHalf, Complaint, Response, Verdict};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Whom a client asks first; in a retry it asks all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// The primary.
    Primary,
    /// Every replica, because each has to know what waits (Aardvark 1).
    All,
    /// One after another, by the number of the request: there is no primary.
    Turn,
}

/// Who is asked first where there is no primary.
pub(crate) fn turn(at: &Asking, timestamp: Timestamp) -> ReplicaId {
    at.replicas.primary(View(timestamp.0))
}

/// See the [module](self).
pub(crate) struct BackupClient {
    /// Whom it asks first.
    pub(crate) first: First,
}

impl ClientHalf for BackupClient {
    fn receivers(&self, at: &Asking, _timestamp: Timestamp) -> Vec<ReplicaId> {
        at.replicas.iter().collect()
    }

    fn first(&self, at: &Asking, timestamp: Timestamp, everybody: bool) -> Destination {
        match self.first {
            _ if everybody => Destination::Replicas,
            First::All => Destination::Replicas,
            First::Primary => Destination::Replica(at.replicas.primary(at.view)),
            First::Turn => Destination::Replica(turn(at, timestamp)),
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
