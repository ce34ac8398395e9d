//! After a crash: the log is replayed into the state, and what was promised is said again, never anything else
//! (rule R of `docs/durability.md`).

use super::PbftRecord;
use super::decision::{Sound, decide};
use super::message::{NewView, PbftMessage, Position, PrePrepare, Vote};
use super::replica::{Abstention, Ctx, Pbft, Phase};
use super::slot::Proposed;
use crate::batch::Batch;
use crate::checkpoint::Evidence;
use crate::cluster::Cluster;
use crate::ids::{ReplicaId, Sequence, View};
use crate::protocols::total_order::{Delivery, OrderEffect};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A body whose batch has not come yet, while the log is replayed.
pub(super) const UNASSIGNED: Sequence = Sequence(u64::MAX);

impl Pbft {
    /// The state was restored from a snapshot: nothing at or below it is needed.
    pub(super) fn resume_after(&mut self, evidence: Evidence) {
        self.committed = evidence.checkpoint().sequence;
        self.next = self.committed.next();
        self.stable = evidence;
    }

    /// The log is a new one.
    pub(super) fn abstain(&mut self) {
        self.abstention.get_or_insert_default();
    }

    /// Replays one record, oldest first. Nothing is executed meanwhile: `committed` stays at the snapshot.
    pub(super) fn replay_record(&mut self, cluster: &Cluster, me: ReplicaId, record: PbftRecord) {
        match record {
            PbftRecord::Accepted(pre_prepare) => self.replay_accepted(me, pre_prepare),
            PbftRecord::Prepared(vote) => self.replay_prepared(me, vote),
            PbftRecord::ViewChange(signed) if signed.claims().view > self.view => {
                self.view = signed.claims().view;
                self.phase = Phase::Changing;
                self.view_changes.insert(me, Sound::recalled(*signed));
            }
            PbftRecord::NewView(signed) if !self.begun.knows(signed.claims()) => {
                let signed = Arc::unwrap_or_clone(signed).recalled();
                let NewView { view, view_changes, chosen } = signed.value();
                let sound: Vec<Sound> = view_changes.iter().cloned().map(Sound::recalled).collect();
                let mut decision = decide(self.replicas, cluster.window(), sound.iter())
                    .expect("a new view was checked before it was logged");
                decision.chosen.clone_from(chosen);
                if *view < self.view || *view == self.begun.view() {
                    self.learn_view(signed, &decision);
                } else {
                    self.install_view(signed, &decision);
                }
            }
            // A snapshot's records say again what older segments, if they are still there, have said.
            PbftRecord::ViewChange(_) | PbftRecord::NewView(_) => {}
            PbftRecord::Committed(position) if position.sequence > self.committed => {
                let slot = self.slots.entry(position.sequence).or_default();
                slot.committed = Some(position.digest);
                slot.logged = Some(position.digest);
            }
            PbftRecord::Committed(_) => {}
            PbftRecord::Fetched((sequence, batch)) => self.replay_batch(sequence, &batch),
            PbftRecord::Stable(certificate) => self.logged_stable = Some(certificate.recalled()),
            PbftRecord::Body(request) => {
                self.bodies.entry(request.digest()).or_insert((UNASSIGNED, *request));
            }
            PbftRecord::Abstain(marks) => {
                self.abstention = Some(Abstention { marks, ..Abstention::default() });
            }
        }
    }

    /// A batch and the bodies that were logged before it.
    fn replay_batch(&mut self, sequence: Sequence, batch: &Arc<Batch>) {
        if sequence <= self.committed {
            return;
        }
        self.last_time = self.last_time.max(batch.proposal().time);
        for entry in batch.entries() {
            if let Some((last, _)) = self.bodies.get_mut(&entry.digest())
                && *last == UNASSIGNED
            {
                *last = sequence;
            }
        }
        self.keep(sequence, batch);
    }

    fn replay_accepted(&mut self, me: ReplicaId, pre_prepare: PrePrepare) {
        let PrePrepare { view, sequence, batch } = pre_prepare;
        if sequence <= self.committed {
            return;
        }
        let digest = batch.digest();
        self.replay_batch(sequence, &batch);
        let slot = self.slots.entry(sequence).or_default();
        slot.pre_prepare(digest, view);
        // A snapshot's records say again what older segments have said: what an earlier view proposed is void by then.
        if view < self.view || slot.proposed.as_ref().is_some_and(|proposed| proposed.view > view) {
            return;
        }
        slot.proposed = Some(Proposed {
            view,
            digest,
            batch: Some(batch),
            reproposed: self.begun.ways().iter().any(|known| known.value().chosen.contains(&digest)),
            acceptable: true,
            accepted: true,
        });
        if self.replicas.primary(view) != me {
            let known = slot.prepares.add(me, &Vote { view, sequence, digest });
            debug_assert!(known != Err(crate::rejection::Rejection::Equivocation), "the log never contradicts itself");
        }
        self.next = self.next.max(sequence.next());
    }

    fn replay_prepared(&mut self, me: ReplicaId, vote: Vote) {
        if vote.sequence <= self.committed {
            return;
        }
        let slot = self.slots.entry(vote.sequence).or_default();
        if slot.prepared.is_some_and(|(view, _)| view > vote.view) {
            return;
        }
        slot.prepared = Some((vote.view, vote.digest));
        let known = slot.commits.add(me, &vote);
        debug_assert!(known != Err(crate::rejection::Rejection::Equivocation), "the log never contradicts itself");
    }

    /// Says again what a view change in progress had said.
    pub(super) fn resume(&mut self, context: &mut Ctx<'_>) {
        let marks = self.abstention.as_ref().and_then(|abstention| abstention.marks);
        let forgotten = marks.map(|(_, sequence)| sequence).unwrap_or_default();
        self.promised = self.highest_prepared().max(self.low_water_mark()).max(forgotten);
        if self.phase == Phase::Changing
            && let Some(mine) = self.view_changes.get(&context.me)
        {
            let again = PbftMessage::ViewChange(Box::new(mine.signed.claim()));
            context.push(OrderEffect::Broadcast(again));
        }
        self.bodies.retain(|_, (sequence, _)| *sequence != UNASSIGNED);
        let positions: Vec<Sequence> = self.slots.keys().copied().collect();
        for sequence in positions {
            self.try_accept(context, sequence);
        }
        self.advance(context);
        // What the log proves to be stable: to be taken up if it is executed again, to be fetched if it is not.
        let proofs: Vec<_> = self.logged_stable.take().into_iter().chain(self.stable.certificate().cloned()).collect();
        for certificate in proofs {
            context.push(OrderEffect::Deliver(Delivery::Proved(certificate)));
        }
    }

    /// The last position that this replica may have helped to acknowledge before it crashed.
    fn highest_prepared(&self) -> Sequence {
        let prepared = self.slots.iter().filter(|(_, slot)| slot.prepared.is_some() || slot.committed.is_some());
        prepared.map(|(sequence, _)| *sequence).next_back().unwrap_or_default()
    }

    /// What recreates this state above the stable checkpoint.
    pub(super) fn records_above_stable(&self, me: ReplicaId) -> Vec<PbftRecord> {
        let mut records = Vec::new();
        records.extend(self.abstention.as_ref().map(|abstention| PbftRecord::Abstain(abstention.marks)));
        records.extend(self.bodies.values().map(|(_, body)| PbftRecord::Body(Box::new(body.clone()))));
        // Q and P of earlier views first, then the current view, then what was accepted and prepared in it: replayed
        // in this order they give the same slots.
        let mut accepted: Vec<(View, Sequence, PrePrepare)> = Vec::new();
        for (&sequence, slot) in &self.slots {
            if let Some((view, digest)) = slot.pre_prepared
                && let Some(batch) = self.batch(digest)
            {
                accepted.push((view, sequence, PrePrepare { view, sequence, batch }));
            }
        }
        accepted.sort_by_key(|(view, sequence, _)| (*view, *sequence));
        let current = self.begun.view();
        let (before, since): (Vec<_>, Vec<_>) = accepted.into_iter().partition(|(view, ..)| *view < current);
        let prepared = |earlier: bool| {
            self.slots.iter().filter_map(move |(&sequence, slot)| {
                let (view, digest) = slot.prepared?;
                ((view < current) == earlier).then_some(PbftRecord::Prepared(Vote { view, sequence, digest }))
            })
        };
        records.extend(before.into_iter().map(|(.., pre_prepare)| PbftRecord::Accepted(pre_prepare)));
        records.extend(prepared(true));
        records.extend(self.begun.ways().iter().map(|way| PbftRecord::NewView(Arc::new(way.claim()))));
        records.extend(since.into_iter().map(|(.., pre_prepare)| PbftRecord::Accepted(pre_prepare)));
        records.extend(prepared(false));
        for (&sequence, slot) in &self.slots {
            let Some(digest) = slot.logged else { continue };
            let accepted = slot.pre_prepared.is_some_and(|(_, known)| known == digest);
            if let (false, Some((_, batch))) = (accepted, self.batches.get(&digest)) {
                records.push(PbftRecord::Fetched((sequence, batch.clone())));
            }
            records.push(PbftRecord::Committed(Position { sequence, digest }));
        }
        if self.phase == Phase::Changing {
            let mine = self.view_changes.get(&me);
            records.extend(mine.map(|mine| PbftRecord::ViewChange(Box::new(mine.signed.claim()))));
        }
        records
    }
}
