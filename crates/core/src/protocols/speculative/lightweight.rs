//! Which lightweight checkpoints are under way: Speculation 3 of the [module](super).

use crate::cluster::Cluster;
use crate::history::Boundary;
use crate::ids::ReplicaId;
use crate::protocols::speculative::{Speaker, SpeculativeTimer};
use crate::switching::Surroundings;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Positions ahead of or beside our own for which a replica's statements are kept.
pub(super) const STATEMENTS_PER_REPLICA_MAX: usize = 8;

/// Time-outs without all n agreeing after which a replica logs nothing more.
pub(super) const PATIENCE: u32 = 3;

/// Which checkpoints are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checkpoints {
    /// What the others said of this instance, the newest of each.
    pub(super) said: BTreeMap<ReplicaId, Vec<Boundary>>,
    /// Time-outs since the oldest checkpoint under way was taken.
    pub(super) waited: u32,
    pub(super) armed: bool,
}

impl Checkpoints {
    /// What is true between steps, where the anchor is there.
    pub(super) fn check_invariants(&self, cluster: &Cluster, me: ReplicaId, anchor: u64) {
        for (id, said) in &self.said {
            assert!(cluster.replicas.contains(*id) && *id != me, "other replicas say what they have");
            assert!(said.len() <= STATEMENTS_PER_REPLICA_MAX, "at most STATEMENTS_PER_REPLICA_MAX");
            assert!(said.is_sorted_by(|one, next| one.position < next.position), "one statement for each position");
            assert!(said.iter().all(|known| known.position > anchor), "what is certain needs no statement");
        }
    }

    /// Whether a checkpoint takes too long.
    pub(super) const fn is_suspended(&self) -> bool {
        self.waited >= PATIENCE
    }

    pub(super) fn cancel(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if self.armed {
            s.cancel_timer(SpeculativeTimer::Checkpoint);
            self.armed = false;
        }
    }

    pub(super) fn arm(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if !self.armed {
            self.armed = true;
            s.set_timer(SpeculativeTimer::Checkpoint, s.now + s.cluster.limits.status_interval);
        }
    }
}
