//! What is true of PBFT's state between steps.

use super::message::{Claim, ViewChange};
use super::recovery::UNASSIGNED;
use super::replica::{Pbft, Phase, ViewTimer};
use super::slot::Slot;
use crate::batch::Batch;
use crate::cluster::Cluster;
use crate::ids::{ReplicaId, Sequence};
use crate::protocols::pbft::decision::Sound;

impl Pbft {
    /// See the [module](self).
    pub(super) fn check_state(&self, cluster: &Cluster, me: ReplicaId) {
        self.check_stable(cluster);
        self.check_view(cluster, me);
        self.check_view_changes(cluster, me);
        self.check_batches(cluster, me);
        for (sequence, slot) in &self.slots {
            assert!(*sequence > Sequence(0), "the first batch is number 1");
            slot.check_invariants(cluster, self.view);
            if self.phase == Phase::Normal {
                self.check_votes(cluster, me, slot);
            }
        }
        self.begun.check_invariants(cluster);
        self.pool.check_invariants(cluster);
        assert!(self.last_proposed <= cluster.limits.batch_requests_max.max(1), "a batch keeps to its bound");
        assert!(self.status.answered.keys().all(|id| cluster.replicas.contains(*id)), "replicas are answered");
        if let Some(abstention) = &self.abstention {
            assert!(abstention.reports.keys().all(|id| cluster.replicas.contains(*id)), "replicas answer (PBFT 11)");
            assert!(!abstention.reports.contains_key(&me), "who has forgotten does not ask itself (PBFT 11)");
        }
    }

    /// h, what is delivered, and what was promised.
    fn check_stable(&self, cluster: &Cluster) {
        if self.low_water_mark() > Sequence(0) {
            self.stable.check_invariants(cluster, cluster.replicas.strong());
        }
        assert!(self.next > Sequence(0), "the first batch is number 1");
        assert!(self.logged_stable.is_none(), "what the log proves is taken up at the start");
        let Some(tentative) = self.tentative else { return };
        assert!(self.promised >= self.delivered(), "a tentative answer is a promise (pbft-F21)");
        let prepared = self.slots.get(&self.delivered()).and_then(|slot| slot.prepared);
        let is_far_behind = self.committed.0 + cluster.window() < self.low_water_mark().0;
        let is_prepared = prepared.is_some_and(|(_, digest)| digest == tentative);
        assert!(is_prepared || is_far_behind, "what is executed tentatively has prepared here");
    }

    fn check_view(&self, cluster: &Cluster, me: ReplicaId) {
        let (view, begun, own) = (self.view, self.begun.view(), self.view_changes.get(&me));
        match self.phase {
            Phase::Normal => {
                assert_eq!(begun, view, "who works in a view knows how it began");
                assert!(own.is_none(), "who works in a view has left the ones before only");
                assert_ne!(self.view_timer, Some(ViewTimer::NewView), "no view is waited for");
                assert!(!self.fills, "the window was filled when the view began");
            }
            Phase::Changing => {
                assert!(begun < view, "the view has not begun");
                let is_own = |own: &Sound| own.value().view == view && own.signed.signer() == me;
                assert!(own.is_some_and(is_own), "who has left a view says so, again and again");
                let waits = self.view_timer.is_none_or(|timer| timer == ViewTimer::NewView);
                assert!(waits, "nothing but the new view is waited for");
            }
        }
        assert!(self.view_changes_started > 0 || !self.fills, "only who begins its view anew fills it");
        assert!(cluster.replicas.contains(cluster.replicas.primary(view)), "each view has a primary");
    }

    /// PBFT 8: what was collected for views to come.
    fn check_view_changes(&self, cluster: &Cluster, me: ReplicaId) {
        for (id, signed) in &self.view_changes {
            assert_eq!(signed.signed.signer(), *id, "one VIEW-CHANGE of each replica");
            assert!(cluster.replicas.contains(*id), "replicas leave views");
            let is_to_come = signed.value().view > self.view || self.phase == Phase::Changing;
            assert!(is_to_come, "what is said of views that have begun is forgotten");
        }
        let Some(ViewChange { view, stable, prepared, pre_prepared }) = self.view_changes.get(&me).map(Sound::value)
        else {
            return;
        };
        let (low, high) = (stable.claims().sequence, Sequence(stable.claims().sequence.0 + cluster.window()));
        let is_sound = |claim: &Claim| claim.view < *view && claim.sequence > low && claim.sequence <= high;
        assert!(prepared.iter().all(is_sound), "others accept what this replica says of P");
        assert!(pre_prepared.iter().all(is_sound), "others accept what this replica says of Q");
    }

    /// Batches and bodies, and what is asked for.
    fn check_batches(&self, cluster: &Cluster, me: ReplicaId) {
        let null = Batch::null().digest();
        let is_kept = |(sequence, slot): (&Sequence, &Slot)| {
            let kept = |digest| self.batches.get(&digest).is_some_and(|(last, _)| last >= sequence);
            slot.pre_prepared.is_none_or(|(_, digest)| digest == null || kept(digest))
        };
        assert!(self.slots.iter().all(is_kept), "what is in Q can be shown for as long as its position");
        assert!(self.batches.iter().all(|(digest, (_, batch))| batch.digest() == *digest), "a batch has its digest");
        assert!(self.bodies.iter().all(|(digest, (_, body))| body.digest() == *digest), "a body has its digest");
        let is_assigned = self.bodies.values().all(|(sequence, _)| *sequence != UNASSIGNED);
        assert!(is_assigned, "each body is of a batch");
        let is_here = |digest| self.batches.contains_key(digest);
        assert!(!self.wanted_batches.keys().any(is_here), "what is here is not asked for");
        let others = |id: &ReplicaId| cluster.replicas.n() == 1 || cluster.replicas.contains(*id) && *id != me;
        assert!(self.wanted_batches.values().all(|(_, asked)| others(asked)), "others are asked");
        assert!(self.wanted_bodies.values().all(|(.., asked)| others(asked)), "others are asked");
        let is_named = self.wanted_bodies.iter().all(|(digest, (_, reference, _))| reference.digest == *digest);
        assert!(is_named, "what is asked for is what the reference names");
    }

    /// What this replica has said about a position in the view that it works in.
    fn check_votes(&self, cluster: &Cluster, me: ReplicaId, slot: &Slot) {
        let is_of_batch = slot.proposed.is_some() || slot.committed.is_some();
        assert!(is_of_batch || slot.missing.is_empty(), "bodies are of a batch");
        let Some(proposed) = &slot.proposed else { return };
        let vote = Some((self.view, proposed.digest));
        assert_eq!(proposed.view, self.view, "what earlier views only proposed is void");
        if proposed.accepted {
            assert_eq!(slot.pre_prepared, vote, "what is accepted is in Q");
            let said = cluster.replicas.primary(self.view) == me || slot.prepares.of(me) == vote;
            assert!(said, "a backup says PREPARE for what it accepts");
        }
        if slot.is_prepared(self.view) {
            assert!(proposed.accepted, "what prepares here is accepted here");
            assert_eq!(slot.prepared, vote, "one batch prepares per (v, n)");
            assert_eq!(slot.commits.of(me), vote, "a replica says COMMIT for what prepared");
        }
    }
}
