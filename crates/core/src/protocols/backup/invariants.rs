//! What is true of a Backup between steps.

use super::state::{Backup, Init, VOTES_PER_CHECKPOINT_MAX, VOTES_PER_REPLICA_MAX};
use crate::cluster::Cluster;
use crate::ids::{ReplicaId, Sequence};
use crate::protocols::total_order::TotalOrder;
use crate::service::Service;
use crate::shares::Bounds;

impl<O: TotalOrder, S: Service> Backup<O, S> {
    /// See the [module](self).
    pub(super) fn check_state(&self, cluster: &Cluster, me: ReplicaId) {
        self.ledger.check_invariants(cluster);
        self.order.check_invariants(cluster, me);
        self.check_init(cluster);
        self.check_stable(cluster);
        self.check_votes(cluster, me);
        self.check_transfer(cluster);
        self.check_end(me);
        self.dissent.check_invariants(cluster, self.stable.checkpoint().sequence);
        self.unserved.check_invariants();
        let limits = &cluster.limits;
        let bounds = Bounds { number: limits.pending_reads_max, bytes: limits.pending_bytes_max };
        self.reads.check_invariants(bounds);
        if self.ledger.estate.is_tentative() {
            assert!(
                matches!(self.init, Init::Done) && self.report.is_none(),
                "tentative between init and end (abs-D12)"
            );
            assert!(self.order.promised() >= self.ledger.estate.executed(), "a tentative answer is a promise");
            assert!(self.tentative_view <= self.view(), "a batch is tentative in a view that was entered");
        }
    }

    /// How far it has come with the history that it begins with.
    fn check_init(&self, cluster: &Cluster) {
        let works = matches!(self.init, Init::Done);
        assert!(works || self.is_limited(), "an instance that is the only one begins with what it has");
        assert!(
            works || self.stable.checkpoint().sequence == Sequence(0),
            "nothing is stable before the init history is"
        );
        assert!(works || self.report.is_none(), "an instance ends after it has begun");
        assert!(!works || self.held.is_empty(), "what was held is executed");
        assert!(self.held.is_empty() || self.transfer.is_none(), "nothing is held below a state that is fetched");
        let most = 2 * cluster.window();
        assert!(self.held.len() as u64 <= most, "further ahead than two windows is a state to fetch (abs-L3)");
        let batches = self.held.iter().zip(self.held.iter().skip(1));
        let follow = batches.into_iter().all(|(one, next)| one.sequence.next() == next.sequence);
        assert!(follow, "no batch is missing among those that are held");
        if let Init::Opening(opening) = &self.init {
            opening.check_invariants(cluster);
        }
    }

    /// The last checkpoint that 2f+1 signed: what this replica goes back to, and gives to others.
    fn check_stable(&self, cluster: &Cluster) {
        let stable = *self.stable.checkpoint();
        assert_eq!(stable.instance, self.what.number, "checkpoints of other instances count for nothing (abs-S9)");
        if stable.sequence > Sequence(0) {
            self.stable.check_invariants(cluster, cluster.replicas.strong());
            assert!(stable.is_plausible(cluster), "there may be a checkpoint there");
        }
        assert!(stable.sequence <= self.executed_for_good(), "stable here means executed here");
        if let Some(tree) = self.version(stable.sequence).filter(|_| stable.sequence > Sequence(0)) {
            assert_eq!(tree.root(), stable.root, "the state here is the one that was signed");
        }
        let is_kept = self.unlogged || self.version(stable.sequence).is_some();
        assert!(is_kept || !matches!(self.init, Init::Done), "the stable state is kept, unless the state was repaired");
    }

    fn check_votes(&self, cluster: &Cluster, me: ReplicaId) {
        for (id, votes) in &self.votes {
            assert!(cluster.replicas.contains(*id), "replicas vote");
            assert!(votes.iter().all(|vote| vote.signer() == *id), "a vote is its signer's");
            assert!(
                votes.iter().all(|vote| vote.value().instance == self.what.number),
                "a vote is about this instance"
            );
            assert!(
                votes.is_sorted_by_key(|vote| vote.value().sequence),
                "the votes for the latest checkpoints are kept"
            );
            assert!(votes.len() <= VOTES_PER_REPLICA_MAX, "at most VOTES_PER_REPLICA_MAX");
            let same = votes.chunk_by(|one, next| one.value().sequence == next.value().sequence);
            let most = same.map(<[_]>::len).max().unwrap_or(0);
            assert!(most <= VOTES_PER_CHECKPOINT_MAX, "the first vote and the last");
        }
        let own = self.votes.get(&me).into_iter().flatten();
        let last = own.map(|vote| vote.value().sequence).max().unwrap_or_default();
        assert!(last <= self.executed_for_good(), "a replica signs what it has executed for good");
    }

    /// Backup 6 and 7: what this replica has not, or has otherwise.
    fn check_transfer(&self, cluster: &Cluster) {
        let stable = self.stable.checkpoint().sequence;
        if let Some(ahead) = &self.ahead {
            ahead.check_invariants(cluster, cluster.replicas.strong());
            assert_eq!(ahead.value().instance, self.what.number, "what is ahead is of this instance");
            assert!(ahead.value().sequence > stable, "what is stable is not ahead");
        }
        if let Some(transfer) = &self.transfer {
            transfer.check_invariants(cluster);
            let target = transfer.target();
            assert!(target.checkpoint().sequence > stable, "what is stable is not fetched");
            assert_eq!(target.checkpoint().instance, self.what.number, "what is fetched is of this instance");
            target.check_invariants(cluster, cluster.replicas.blocking());
        }
        assert!(self.wrong.as_ref().is_none_or(|(at, _)| *at > stable), "what is stable is right");
    }

    /// abs-L11: it has stopped if and only if it has come to its end.
    fn check_end(&self, me: ReplicaId) {
        let Some(report) = &self.report else { return };
        assert!(self.is_done(), "a Backup ends with the last request of its quota");
        assert!(self.said.is_none(), "what was said before a crash is said again, and nothing else");
        assert_eq!(report.signer(), me, "a replica reports what it has executed itself");
        assert_eq!(report.value().instance, self.what.number, "the report is about this instance");
        assert_eq!(report.value().anchor, self.ledger.log.anchor(), "the next instance begins where this one ended");
        assert_eq!(report.value().end(), self.ledger.estate.position(), "all that was executed is reported");
    }
}
