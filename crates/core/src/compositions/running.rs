//! What runs at a replica: an instance, or what it does until there is one.

use crate::cluster::Cluster;
use crate::ids::ReplicaId;
use crate::registry::Instance;
use crate::schedule::Specification;
use crate::service::Service;
use crate::switching::{Ledger, Opening};
use alloc::boxed::Box;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) enum Running<S: Service> {
    /// Something of the instance's init history is missing.
    Opening(Box<(Opening, Ledger<S>)>),
    /// An instance that speculates, at a replica that must not speak in it.
    Silent(Box<Ledger<S>>),
    /// It works.
    Open(Instance<S>),
}

impl<S: Service> Running<S> {
    /// An instance, over a ledger that holds the init history.
    pub(crate) fn at(cluster: &Cluster, me: ReplicaId, what: Specification, ledger: Ledger<S>, speaks: bool) -> Self {
        if speaks || what.part.is_backup() {
            return Self::Open(Instance::open(cluster, me, what, ledger, speaks));
        }
        Self::Silent(Box::new(ledger))
    }

    /// The instance, if it works.
    pub(crate) const fn open(&self) -> Option<&Instance<S>> {
        match self {
            Self::Open(instance) => Some(instance),
            Self::Opening(_) | Self::Silent(_) => None,
        }
    }

    /// The same.
    pub(crate) const fn open_mut(&mut self) -> Option<&mut Instance<S>> {
        match self {
            Self::Open(instance) => Some(instance),
            Self::Opening(_) | Self::Silent(_) => None,
        }
    }

    /// What is true between steps.
    pub(crate) fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        match self {
            Self::Opening(opening) => {
                opening.0.check_invariants(cluster);
                opening.1.check_invariants(cluster);
            }
            Self::Silent(ledger) => ledger.check_invariants(cluster),
            Self::Open(instance) => instance.check_invariants(cluster, me),
        }
    }

    /// State and history.
    pub(crate) fn ledger(&self) -> &Ledger<S> {
        match self {
            Self::Opening(opening) => &opening.1,
            Self::Silent(ledger) => ledger,
            Self::Open(instance) => instance.ledger(),
        }
    }

    /// Takes state and history; whatever it was is over.
    pub(crate) fn halt(self, cluster: &Cluster) -> Ledger<S> {
        match self {
            Self::Opening(opening) => opening.1,
            Self::Silent(ledger) => *ledger,
            Self::Open(instance) => instance.halt(cluster),
        }
    }
}
