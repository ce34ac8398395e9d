//! Which lightweight checkpoints are under way: Speculation 3 of the [module](super).

use crate::history::Boundary;
use crate::ids::ReplicaId;
use crate::protocols::speculative::{Speaker, SpeculativeTimer};
use crate::switching::Surroundings;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

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
