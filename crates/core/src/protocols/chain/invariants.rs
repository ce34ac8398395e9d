//! What is true of a chain's replica between steps.

use super::replica::Chain;
use crate::cluster::Cluster;
use crate::ids::ReplicaId;
use crate::protocols::speculative::AHEAD_MAX;
use crate::service::Service;
use crate::shares::Bounds;

impl<S: Service> Chain<S> {
    /// See the [module](self).
    pub(super) fn check_state(&self, cluster: &Cluster, me: ReplicaId) {
        self.base.check_speculation(cluster, me);
        self.queue.check_invariants(Bounds::of_waiting(&cluster.limits));
        self.early.check_invariants(AHEAD_MAX);
        assert_eq!(self.topology.at(self.place), me, "each replica has its place");
        let is_head = self.place == 0;
        assert!(is_head || self.queue.is_empty(), "requests wait at the head (Chain 2)");
        assert!(!is_head || self.early.is_empty(), "nobody sends along the chain to its head");
        assert!(self.inherited.len() <= cluster.limits.pending_requests_max, "at most pending_requests_max");
        let waits = !self.confirmed && self.topology.is_last(self.place);
        assert!(waits || self.inherited.is_empty(), "who vouches for the init history has answered (abs-S1)");
        let has_logged = self.base.requests_logged() > 0 && !self.base.is_stopped();
        assert!(self.confirmed || !has_logged, "what is logged has come along the chain, or begins here");
    }
}
