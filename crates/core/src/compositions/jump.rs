//! A replica that is behind in a resilient ring: it goes on from a checkpoint that 2f+1 others have signed.
//!
//! Others drop what is below such a checkpoint although not all replicas have it. So a replica may be too late for the
//! init history, or for a part of what followed; and perhaps it is the one that the others cannot do without, because
//! f are down. It fetches the state there, beside whatever runs, and takes part from there on.
//!
//! Those who signed may have crashed since, and be back at an earlier checkpoint: what was executed after their last
//! write they have lost. So a state that nobody sends is not waited for. The checkpoints that the others show are tried
//! in turns, and opening the instance at its init history goes on meanwhile.
//!
//! # Why it is safe
//! It has left the history with which it began, and begins with the one that they began with: where that ends is in
//! what they signed. From there it counts the quota, and to there it answers for what is inherited; or it would help a
//! liar to f+1 equal words about a history that nobody goes on from.
//!
//! It may have signed another history before, but not beyond the checkpoint. It signs nothing more up to there; and
//! exactly there no other history is ever certified, since f+1 correct replicas have executed this one. Say that
//! somebody holds a certificate for a position k below the checkpoint, and somebody one for the checkpoint or a
//! position above it. They have a correct signer in common. If that one has not jumped from below k in between, the
//! first history is a prefix of the second. If it has, then before that somebody held a certificate for a position at
//! or above the checkpoint to which it jumped, and the same is true of that certificate and the first one; and so on,
//! back to the earliest.

use crate::auth::Certificate;
use crate::cluster::Cluster;
use crate::ids::{InstanceId, ReplicaId};
use crate::registry::Speaker;
use crate::service::Service;
use crate::switching::certificate::Stable;
use crate::switching::{AbortHistory, Ledger, Opening, Surroundings};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What a replica that is behind fetches, beside whatever runs.
#[derive(Clone, Debug)]
pub(super) struct Jump {
    /// Where it goes on once the state there is here.
    pub(super) target: Certificate<Stable>,
    /// Who showed it.
    pub(super) from: ReplicaId,
    /// Fetches the state.
    pub(super) opening: Opening,
    /// The highest position that was tried.
    pub(super) highest: u64,
    /// What each replica showed last.
    pub(super) offers: BTreeMap<ReplicaId, Certificate<Stable>>,
}

impl Jump {
    pub(super) fn new<S: Service>(
        s: &mut Surroundings<'_, impl Speaker>,
        ledger: &Ledger<S>,
        from: ReplicaId,
        target: Certificate<Stable>,
    ) -> Self {
        let Stable { instance, boundary, .. } = *target.value();
        let mut opening = Opening::new(s, instance, AbortHistory::of_stable(&target), ledger);
        opening.ask(s);
        Self { target, from, opening, highest: boundary.position, offers: BTreeMap::new() }
    }

    /// What to try instead: something higher than ever, or, if nobody sends this, what the next replica has shown.
    pub(super) fn better(&self, cluster: &Cluster, newest: ReplicaId) -> Option<(ReplicaId, Certificate<Stable>)> {
        let is_higher = |offer: &Certificate<Stable>| offer.value().boundary.position > self.highest;
        let higher = self.offers.get_key_value(&newest).filter(|(_, offer)| is_higher(offer));
        let others = self.offers.iter().filter(|(_, offer)| offer.value() != self.target.value());
        let (before, after): (Vec<_>, Vec<_>) = others.partition(|(id, _)| **id <= self.from);
        let next = after.into_iter().chain(before).next().filter(|_| self.opening.is_stalled(cluster));
        let better = higher.or(next).map(|(id, offer)| (*id, offer.clone()));
        better.filter(|_| !self.opening.is_done())
    }

    pub(super) fn turn_to<S: Service>(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        ledger: &Ledger<S>,
        from: ReplicaId,
        target: Certificate<Stable>,
    ) {
        let Stable { instance, boundary, .. } = *target.value();
        let history = AbortHistory::of_stable(&target);
        if boundary.position > self.highest {
            self.highest = boundary.position;
            self.opening.retarget(history);
        } else {
            self.opening = Opening::new(s, instance, history, ledger);
        }
        self.opening.ask(s);
        (self.from, self.target) = (from, target);
    }

    /// What is true between steps, in this instance.
    pub(super) fn check_invariants(&self, cluster: &Cluster, instance: InstanceId) {
        self.target.check_invariants(cluster, cluster.replicas.strong());
        assert_eq!(self.target.value().instance, instance, "it stays in the instance that runs");
        assert!(self.target.value().boundary.position <= self.highest, "the highest that was tried is remembered");
        assert!(self.offers.keys().all(|id| cluster.replicas.contains(*id)), "replicas show checkpoints");
        let is_here = |offer: &Certificate<Stable>| offer.value().instance == instance;
        assert!(self.offers.values().all(is_here), "what is shown is of the instance that runs");
        assert_eq!(self.opening.history().anchor, self.target.value().boundary, "what is fetched is what was shown");
        self.opening.check_invariants(cluster);
    }
}
