//! What is true of a ring's replica between steps.

use super::replica::EARLY_MAX;
use super::state::RingFast;
use crate::cluster::Cluster;
use crate::ids::ReplicaId;
use crate::service::Service;
use crate::shares::Bounds;
use crate::switching::Ledger;

impl<S: Service> RingFast<S> {
    /// See the [module](self).
    pub(super) fn check_state(&self, cluster: &Cluster, me: ReplicaId) {
        self.base.check_speculation(cluster, me);
        self.queue.check_invariants(Bounds::of_waiting(&cluster.limits));
        self.batches.check_invariants(cluster);
        self.panics.check_invariants(cluster, self.base.ledger.log.length());
        self.watch.check_invariants(cluster);
        let Ledger { estate, log, .. } = &self.base.ledger;
        assert_eq!(estate.executed().0, log.length(), "whatever is logged is executed at once (Ring 4)");
        self.check_messages(cluster, me);
    }

    /// What waits until the log has come to it.
    fn check_messages(&self, cluster: &Cluster, me: ReplicaId) {
        let most = EARLY_MAX * cluster.replicas.n();
        self.early.check_invariants(most);
        assert!(cluster.replicas.contains(self.base.what.head), "a replica gives the numbers");
        assert!(self.unstamped.len() <= most, "at most EARLY_MAX for each replica wait for a number");
        assert!(self.unstamped.is_empty() || me == self.base.what.head, "only the sequencer gives numbers (Ring 4)");
        for accepted in &self.unstamped {
            assert_eq!(accepted.position, accepted.path.stamp(), "a number is given at one position of the way");
            assert!(accepted.message.stamp.is_none(), "what waits for a number has none");
        }
        assert!(me != self.base.what.head || self.early.is_empty(), "nobody tells the sequencer numbers");
        for (entry, probe) in &self.probes {
            assert!(cluster.replicas.contains(*entry), "a replica has sent it");
            assert_eq!(probe.path.at(0), *entry, "the last probe of each entry is kept");
            assert!(probe.message.stamp.is_some(), "a probe waits for what the sequencer has (Ring 7)");
            assert!(probe.path.executes(probe.position), "a probe waits where this replica executes (Ring 7)");
        }
    }
}
