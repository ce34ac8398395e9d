//! Messages of one process come in the order in which it sent them.
//!
//! Atomic broadcast does not say so: a bundle may be ordered before an earlier one of the same process, in the same
//! round or because the earlier one was delivered late. Such a bundle waits for its turn. All processes come to the
//! same order still, since it follows from what atomic broadcast has ordered. A liar that leaves a number out holds up
//! what it sent itself, and that is less than a [window](super::WINDOW) of bundles: no later ones are ordered.

use super::super::path::Id;
use super::message::Bundle;
use crate::replicas::Replicas;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// Whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// The number of each process's next bundle.
    next: Vec<u64>,
    /// Bundles that were ordered before their turn.
    early: BTreeMap<Id, Bundle>,
}

impl Turns {
    pub(super) fn new(replicas: &Replicas) -> Self {
        Self { next: vec![0; replicas.n()], early: BTreeMap::new() }
    }

    /// This bundle is ordered. The bundles of the same process whose turn it is now.
    pub(super) fn take(&mut self, id: Id, bundle: Bundle) -> Vec<Bundle> {
        self.early.insert(id, bundle);
        let next = &mut self.next[usize::from(id.sender.0)];
        let mut turns = Vec::new();
        while let Some(bundle) = self.early.remove(&Id { sender: id.sender, number: *next }) {
            *next += 1;
            turns.push(bundle);
        }
        turns
    }
}
