//! What is true of a resilient ring's replica between steps.

use super::checkpoints::PASSED_ON_MAX;
use super::state::{EARLY_MAX, RingResilient};
use crate::cluster::Cluster;
use crate::ids::ReplicaId;
use crate::service::Service;
use crate::switching::report::BOUNDARIES_MAX;

impl<S: Service> RingResilient<S> {
    /// See the [module](self).
    pub(super) fn check_state(&self, cluster: &Cluster, me: ReplicaId) {
        self.base.check_invariants(cluster, me);
        self.pool.check_invariants(cluster);
        self.check_progress();
        self.check_opening();
        self.check_certificates(cluster, me);
        self.check_slots(cluster);
        self.check_orders(cluster);
        self.check_waiting(cluster);
        let log = &self.base.ledger.log;
        for (id, peer) in &self.peers {
            assert!(cluster.replicas.contains(*id) && *id != me, "other replicas speak");
            peer.check_invariants(*id, log.length());
        }
    }

    /// executed = committed ≤ prepared ≤ logged ≤ the quota's end.
    fn check_progress(&self) {
        let (executed, length) = (self.base.ledger.estate.executed().0, self.base.ledger.log.length());
        let begin = self.base.init().0;
        assert!(self.committed.is_none_or(|committed| committed <= length), "committed is what is logged");
        let committed = self.committed.unwrap_or(begin);
        assert!(executed <= committed, "nothing is executed before it is committed (Resilient 5)");
        assert!(executed >= committed, "what is committed is executed at once (Resilient 5)");
        assert!(length <= self.last(), "nothing is ordered after the quota's last request (Resilient 7)");
        let done = executed.saturating_sub(begin);
        assert!(self.requests_executed <= done, "an entry is executed once");
        assert!(self.repeated_at <= length, "the log only grows (Resilient 3)");
        assert!(self.was_behind.is_none_or(|before| before <= length), "the log only grows (Resilient 3)");
    }

    /// Resilient 2: before the first ORDER this replica has signed nothing.
    fn check_opening(&self) {
        let opened = self.opened;
        assert!(opened || self.committed.is_none(), "the init history commits when all go on from it");
        assert!(opened || self.votes.is_empty(), "no state is signed before the first ORDER");
        assert!(opened || self.prepared.is_none(), "nothing is certified before the first ORDER");
        assert!(opened || self.slots.is_empty(), "no batch is logged before the first ORDER");
        let length = self.base.ledger.log.length();
        assert!(opened || length == self.base.init().0, "nothing is logged before the first ORDER");
    }

    /// Resilient 4 and 6.
    fn check_certificates(&self, cluster: &Cluster, me: ReplicaId) {
        let log = &self.base.ledger.log;
        let anchor = log.anchor();
        if let Some(prepared) = &self.prepared {
            prepared.check_invariants(cluster, cluster.replicas.strong());
            assert!(prepared.value().position <= log.length(), "what is certified is logged here");
            let here = log.history_at(prepared.value().position);
            assert!(here.is_none_or(|here| here == prepared.value().history), "one history is certified");
        }
        if let Some(stable) = &self.stable {
            stable.check_invariants(cluster, cluster.replicas.strong());
            assert_eq!(stable.value().boundary, anchor, "what proves the anchor is kept");
            assert_eq!(stable.value().instance, self.base.what.number, "it was reached in this instance");
        }
        assert!(self.votes.iter().all(|vote| vote.signer() == me), "a replica signs its own checkpoints");
        let positions = || self.votes.iter().map(|vote| vote.value().boundary.position);
        assert!(positions().all(|position| position > anchor.position), "what is certain needs no vote");
        let executed = self.base.ledger.estate.executed().0;
        assert!(positions().all(|position| position <= executed), "a replica signs what it has executed");
        assert!(self.votes.len() <= BOUNDARIES_MAX, "at most BOUNDARIES_MAX");
        assert!(self.doubt.is_none_or(|doubt| doubt.position > anchor.position), "what is certain is not in doubt");
    }

    /// Resilient 3: the batches that are logged, and who has signed them.
    fn check_slots(&self, cluster: &Cluster) {
        let log = &self.base.ledger.log;
        for (end, slot) in &self.slots {
            assert!(*end <= log.length(), "what is signed is logged");
            let here = log.history_at(*end);
            assert!(here.is_none_or(|here| here == slot.history), "what is signed is the history with the batch");
            assert!(slot.prepares.keys().all(|id| cluster.replicas.contains(*id)), "replicas sign");
            assert!(slot.requests.len() as u64 <= *end, "each request has a position");
        }
    }

    /// Resilient 2 and 3: ORDERs ahead of the log.
    fn check_orders(&self, cluster: &Cluster) {
        assert!(self.early.len() <= EARLY_MAX, "at most EARLY_MAX");
        for (end, order) in &self.early {
            assert_eq!(order.prepare.value().position, *end, "an ORDER is found by its last position");
            assert_eq!(order.prepare.signer(), self.base.what.head, "the sequencer orders");
            let count = order.batch.entries().len() as u64;
            assert_eq!(order.first + count, *end + 1, "each request has a position");
        }
        let kept: usize = self.bodies.values().flatten().map(|body| body.operation.len()).sum();
        assert!(kept <= cluster.limits.pending_bytes_max, "at most pending_bytes_max");
        let is_it = self.bodies.iter().all(|(digest, body)| body.iter().all(|body| body.digest() == *digest));
        assert!(is_it, "a body has its digest");
        assert!(cluster.replicas.contains(self.base.what.head), "a replica orders");
        assert!(self.repeats || !self.hurries, "who hurries says again how far it is (Resilient 8)");
    }

    /// Resilient 1: who waits for what.
    fn check_waiting(&self, cluster: &Cluster) {
        let (executed, length) = (self.base.ledger.estate.executed().0, self.base.ledger.log.length());
        assert!(self.ordered.len() as u64 <= length - executed, "what a client has ordered is logged and not executed");
        assert!(self.inherited.len() <= cluster.limits.pending_requests_max, "at most pending_requests_max");
        assert!(self.inherited.is_empty() || self.committed.is_none(), "what is certain is answered");
        assert!(self.passed_on.1.len() <= PASSED_ON_MAX, "at most PASSED_ON_MAX");
    }
}
