//! What a replica of the ring knows.

use super::flow::Flow;
use super::held::Batches;
use super::message::Accepted;
use super::pace::Watch;
use super::path::Path;
use super::shelves::Panics;
use crate::ids::ReplicaId;
use crate::notice::Alarm;
use crate::protocols::speculative::{Ahead, Load, Queue, Speculation};
use crate::schedule::Specification;
use crate::service::Service;
use crate::switching::Ledger;
use alloc::collections::{BTreeMap, VecDeque};

/// See the [module](super).
#[derive(Clone, Debug)]
pub(crate) struct RingFast<S> {
    pub(crate) base: Speculation<S>,
    pub(super) queue: Queue,
    pub(super) flow: Flow,
    pub(super) batches: Batches,
    /// By the position of the first request: those whose turn it is not yet.
    pub(super) early: Ahead<Accepted>,
    /// At the sequencer: those that get a number as soon as there is room in the log.
    pub(super) unstamped: VecDeque<Accepted>,
    /// Probes that are ahead of the log, the last one of each entry.
    pub(super) probes: BTreeMap<ReplicaId, Accepted>,
    pub(super) panics: Panics,
    pub(super) watch: Watch,
    /// What it has come to.
    pub(super) alarm: Option<Alarm>,
    pub(super) load: Load,
}

impl<S: Service> RingFast<S> {
    /// An instance that begins with what the ledger holds.
    pub(crate) fn open(what: Specification, ledger: Ledger<S>) -> Self {
        Self {
            base: Speculation::open(what, ledger),
            queue: Queue::default(),
            flow: Flow::default(),
            batches: Batches::default(),
            early: Ahead::default(),
            unstamped: VecDeque::new(),
            probes: BTreeMap::new(),
            panics: Panics::default(),
            watch: Watch::new(what.number, what.replicas),
            alarm: None,
            load: Load::new(what.watches_load),
        }
    }

    pub(super) const fn path(&self, entry: ReplicaId) -> Path {
        Path::new(self.base.what.replicas, self.base.what.head, entry)
    }
}
