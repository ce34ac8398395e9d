//! What a replica knows about one sequence number.

use super::message::Vote;
use crate::batch::Batch;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ReplicaId, View};
use crate::rejection::Rejection;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

/// The proposal of the current view.
#[derive(Clone, Debug)]
pub(super) struct Proposed {
    pub(super) view: View,
    pub(super) digest: Digest,
    /// Missing when a NEW-VIEW named it and it has to be fetched.
    pub(super) batch: Option<Arc<Batch>>,
    /// Chosen by a NEW-VIEW: authenticity and agreed values were checked when it was fresh (the replay rule).
    pub(super) reproposed: bool,
    /// Whether its agreed values were acceptable to this replica (prac-F27).
    pub(super) acceptable: bool,
    /// Accepted and made durable; as a backup, this replica has said PREPARE.
    pub(super) accepted: bool,
}

/// Votes of one kind: the newest of each replica.
#[derive(Clone, Debug, Default)]
pub(super) struct Votes(BTreeMap<ReplicaId, (View, Digest)>);

impl Votes {
    /// Counts a vote.
    ///
    /// # Errors
    /// [`Rejection::Duplicate`], or [`Rejection::Equivocation`] for a second vote of one replica in one view.
    pub(super) fn add(&mut self, from: ReplicaId, vote: &Vote) -> Result<(), Rejection> {
        match self.0.get(&from) {
            Some((view, _)) if *view > vote.view => Err(Rejection::WrongView),
            Some((view, digest)) if *view == vote.view && *digest == vote.digest => Err(Rejection::Duplicate),
            Some((view, _)) if *view == vote.view => Err(Rejection::Equivocation),
            _ => {
                self.0.insert(from, (vote.view, vote.digest));
                Ok(())
            }
        }
    }

    /// How many replicas voted for exactly this digest in exactly this view.
    pub(super) fn count(&self, view: View, digest: Digest) -> usize {
        self.0.values().filter(|vote| **vote == (view, digest)).count()
    }

    /// What this replica voted for.
    pub(super) fn of(&self, replica: ReplicaId) -> Option<(View, Digest)> {
        self.0.get(&replica).copied()
    }

    /// A digest that at least `threshold` replicas voted for in `view`, proposal or not.
    pub(super) fn winner(&self, view: View, threshold: usize) -> Option<Digest> {
        self.0
            .values()
            .filter(|vote| vote.0 == view)
            .map(|vote| vote.1)
            .find(|digest| self.count(view, *digest) >= threshold)
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub(super) proposed: Option<Proposed>,
    pub(super) prepares: Votes,
    pub(super) commits: Votes,
    /// P: the latest view in which a batch prepared here, and the batch, unless a later view has refuted it.
    pub(super) prepared: Option<(View, Digest)>,
    /// Q: the same of what was accepted here.
    pub(super) pre_prepared: Option<(View, Digest)>,
    /// Who says that this digest was decided (pbft-F21).
    pub(super) decided: BTreeMap<ReplicaId, Digest>,
    /// Known to be committed.
    pub(super) committed: Option<Digest>,
    /// Big requests of the batch here that are not at hand, or not with a proof that convinces.
    pub(super) missing: BTreeSet<Digest>,
    /// Committed, and the log says so.
    pub(super) logged: Option<Digest>,
}

impl Slot {
    /// Enters a digest into Q. In a view, only one digest is accepted; and in a later one no other, unless the
    /// beginning of a view in between has refuted the first ([`Self::refute`]).
    pub(super) fn pre_prepare(&mut self, digest: Digest, view: View) {
        if self.pre_prepared.is_none_or(|(known, _)| known < view) {
            self.pre_prepared = Some((view, digest));
        }
    }

    /// This view has begun, and chose this digest here, or none: then nothing else was committed in an earlier one, and
    /// what P and Q say of anything else in those is of no use.
    pub(super) fn refute(&mut self, begun: View, chosen: Option<Digest>) {
        let is_void = |(view, digest): &mut (View, Digest)| *view < begun && chosen != Some(*digest);
        self.prepared.take_if(is_void);
        self.pre_prepared.take_if(is_void);
    }

    /// The proposal, if it is of this view and accepted.
    pub(super) fn accepted(&self, view: View) -> Option<&Proposed> {
        self.proposed.as_ref().filter(|proposed| proposed.accepted && proposed.view == view)
    }

    /// Whether a batch is prepared here in this view.
    pub(super) fn is_prepared(&self, view: View) -> bool {
        self.prepared.is_some_and(|(prepared, _)| prepared == view)
    }

    /// What is true between steps, in this view, of what is not about this replica alone.
    pub(super) fn check_invariants(&self, cluster: &Cluster, view: View) {
        assert!(self.logged.is_none() || self.logged == self.committed, "the log says what is committed");
        assert!(self.prepared.is_none_or(|(prepared, _)| prepared <= view), "P is about views that were entered");
        assert!(self.pre_prepared.is_none_or(|(accepted, _)| accepted <= view), "Q is about views that were entered");
        if let (Some((prepared, digest)), Some((accepted, known))) = (self.prepared, self.pre_prepared) {
            assert!(accepted >= prepared, "what prepared was accepted before");
            assert!(accepted > prepared || known == digest, "one batch is accepted per (v, n)");
        }
        if let Some(proposed) = &self.proposed {
            assert!(proposed.view <= view, "proposals of views to come are refused");
            let is_it = |batch: &Arc<Batch>| batch.digest() == proposed.digest;
            assert!(proposed.batch.as_ref().is_none_or(is_it), "the batch is the one that was proposed");
            assert!(!proposed.accepted || proposed.batch.is_some(), "nothing is accepted before it is here (pbft-F22)");
        }
        assert!(self.decided.keys().all(|id| cluster.replicas.contains(*id)), "replicas know what is decided");
        assert!(
            self.prepares.0.keys().chain(self.commits.0.keys()).all(|id| cluster.replicas.contains(*id)),
            "replicas vote"
        );
        let is_backups = |(id, (view, _)): (&ReplicaId, &(View, Digest))| *id != cluster.replicas.primary(*view);
        assert!(self.prepares.0.iter().all(is_backups), "a primary's PRE-PREPARE stands for its PREPARE");
    }
}
