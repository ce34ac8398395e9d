//! What all requests have answered and written, position by position: the trace that rulings go back along.

use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::Sequence;
use alloc::collections::VecDeque;

/// The effects after each request from some position on.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// How many are kept of those from before the oldest version: others may have to begin there.
    pub(super) kept: u64,
    /// Requests executed before the first of them.
    pub(super) first: u64,
    /// There, and after each request since.
    pub(super) effects: VecDeque<Digest>,
}

impl Trace {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self { kept: cluster.inherited_bound(), ..Self::default() }
    }

    pub(super) fn at(&self, position: u64) -> Option<Digest> {
        self.effects.get(usize::try_from(position.checked_sub(self.first)?).ok()?).copied()
    }

    /// The state is that of a position again, or another one than any before.
    pub(super) fn return_to(&mut self, position: u64, effects: Digest) {
        if self.at(position) == Some(effects) {
            self.effects.truncate((position - self.first) as usize + 1);
        } else {
            (self.first, self.effects) = (position, VecDeque::from([effects]));
        }
    }

    pub(super) fn forget_before(&mut self, position: u64) {
        let old = position.saturating_sub(self.first + self.kept).min(self.effects.len().saturating_sub(1) as u64);
        self.effects.drain(..old as usize);
        self.first += old;
        assert!(!self.effects.is_empty(), "the trace holds the state that it has come to");
    }
}

/// A request is disputed: neither it nor what follows it up to a batch is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruled {
    /// Its position.
    pub position: u64,
    /// The batch with the ruling.
    pub until: Sequence,
}
