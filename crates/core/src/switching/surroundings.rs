//! What surrounds an instance during one step.

use crate::auth::Keyring;
use crate::cluster::{Cluster, ReplicaId};
use crate::machine::{Instant, Outbox, Principal};
use crate::rejection::{Rejection, RejectionCounts};
use crate::replica::Replica;
use crate::service::Service;
use alloc::collections::BTreeMap;

/// See the [module](self).
#[derive(Debug)]
pub struct Surroundings<'a, S: Service> {
    /// The time.
    pub now: Instant,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Our keys.
    pub keyring: &'a Keyring,
    /// Who we are.
    pub me: ReplicaId,
    /// What was not accepted, by sender.
    pub rejections: &'a mut BTreeMap<Principal, RejectionCounts>,
    /// What is to be done.
    pub out: &'a mut Outbox<Replica<S>>,
}

impl<S: Service> Surroundings<'_, S> {
    /// Counts something that was not accepted.
    pub fn reject(&mut self, from: Principal, reason: Rejection) {
        self.rejections.entry(from).or_default().add(reason);
    }
}
