//! View change: steps 7 to 10 of the [module](super).

use super::decision::{Decision, decide};
use super::message::{Claim, NewView, PbftMessage, ViewChange};
use super::replica::{Ctx, Pbft, Phase, ViewTimer};
use super::slot::Proposed;
use super::{PbftRecord, PbftTimer};
use crate::auth::Signed;
use crate::cluster::{ReplicaId, Sequence, View};
use crate::digest::Digest;
use crate::protocols::total_order::{Delivery, OrderEffect, TotalOrder};
use crate::rejection::Rejection;
use crate::replica::Notice;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

impl Pbft {
    /// The oldest request was not executed, or a batch not committed, or the new view did not begin in time.
    pub(super) fn on_view_timeout(&mut self, context: &mut Ctx<'_>) {
        let reason = match self.view_timer.take() {
            // It is over by now: then the next one is watched.
            Some(ViewTimer::Request(client, timestamp)) if !self.pool.waits(client, timestamp) => return,
            Some(ViewTimer::Request(..)) if self.phase == Phase::Normal => "a request waits too long",
            Some(ViewTimer::Batch(_)) if self.phase == Phase::Normal => "a batch waits too long",
            Some(ViewTimer::NewView) if self.phase == Phase::Changing => "the new view does not begin",
            _ => return,
        };
        if !self.may_vote_in(self.view.next()) {
            return;
        }
        self.start_view_change(context, self.view.next(), reason);
    }

    /// Step 7. Leave the view, and say what was prepared and accepted, with the stable checkpoint and its proof. The
    /// statement is durable before it leaves: it is never made differently.
    pub(super) fn start_view_change(&mut self, context: &mut Ctx<'_>, view: View, reason: &'static str) {
        assert!(view > self.view || self.phase == Phase::Changing && view == self.view, "views only grow");
        self.view = view;
        self.phase = Phase::Changing;
        self.attempts += 1;
        self.view_timer = None;
        self.view_changes_started += 1;
        context.push(OrderEffect::CancelTimer(PbftTimer::View));
        context.push(OrderEffect::Notify(Notice::ViewChangeStarted { view, reason }));
        let signed = context.keyring.sign(self.my_view_change());
        context.push(OrderEffect::Persist(PbftRecord::ViewChange(Box::new(signed.clone()))));
        context.push(OrderEffect::Broadcast(PbftMessage::ViewChange(Box::new(signed.clone()))));
        self.view_changes.insert(context.me, signed);
        self.on_more_view_changes(context);
    }

    /// P and Q above the stable checkpoint.
    fn my_view_change(&self) -> ViewChange {
        let mut prepared = Vec::new();
        let mut pre_prepared = Vec::new();
        for (&sequence, slot) in self.slots.range(self.low_water_mark().next()..) {
            if let Some((view, digest)) = slot.prepared {
                prepared.push(Claim { sequence, digest, view });
            }
            pre_prepared.extend(slot.pre_prepared.iter().map(|&(digest, view)| Claim { sequence, digest, view }));
        }
        pre_prepared.sort();
        ViewChange { view: self.view, stable: self.stable.clone(), prepared, pre_prepared }
    }

    /// Step 8. Somebody leaves its view.
    pub(super) fn on_view_change(&mut self, context: &mut Ctx<'_>, from: ReplicaId, signed: Signed<ViewChange>) {
        let wanted = signed.value.view;
        let known = self.view_changes.get(&signed.signer).map(|known| known.value.view);
        let begun = wanted < self.view || (wanted == self.view && self.phase == Phase::Normal);
        if begun || known.is_some_and(|known| known >= wanted) {
            return;
        }
        if signed.signer == context.me || !self.is_well_formed(context, &signed.value) {
            return context.reject(from, Rejection::BadViewChange);
        }
        if !context.keyring.check_signed(&signed) {
            return context.reject(from, Rejection::BadSignature);
        }
        self.view_changes.insert(signed.signer, signed);
        // The join rule: f+1 replicas want to leave, one of them is correct, so this one leaves too, for the smallest
        // view that they ask for.
        let mut views: Vec<View> =
            self.view_changes.values().map(|known| known.value.view).filter(|view| *view > self.view).collect();
        views.sort();
        if views.len() >= context.cluster.weak() && self.may_vote_in(views[0]) {
            self.start_view_change(context, views[0], "f+1 replicas ask for another view");
        } else {
            self.on_more_view_changes(context);
        }
    }

    /// Whether a view change could have been made by a correct replica, its signature apart.
    fn is_well_formed(&self, context: &Ctx<'_>, view_change: &ViewChange) -> bool {
        let low = view_change.stable.value.sequence;
        let in_window = |claim: &Claim| {
            claim.sequence > low
                && claim.sequence.0 <= low.0 + context.cluster.window()
                && claim.view < view_change.view
        };
        let proved = if low == Sequence(0) {
            view_change.stable.signatures.is_empty()
        } else {
            view_change.stable == self.stable
                || context.keyring.check_certificate(&view_change.stable, context.cluster.strong())
        };
        view_change.stable.value.instance == context.instance
            && proved
            && view_change.prepared.iter().all(in_window)
            && view_change.pre_prepared.iter().all(in_window)
    }

    /// When 2f+1 have left for this view or a later one, the new primary has to begin it in time; until then nobody
    /// runs ahead.
    fn on_more_view_changes(&mut self, context: &mut Ctx<'_>) {
        if self.phase != Phase::Changing {
            return;
        }
        let left = self.view_changes.values().filter(|known| known.value.view >= self.view).count();
        if left >= context.cluster.strong() && self.view_timer.is_none() {
            self.view_timer = Some(ViewTimer::NewView);
            let at = self.view_deadline(context);
            context.push(OrderEffect::SetTimer(PbftTimer::View, at));
        }
        self.try_new_view(context);
    }

    /// Step 9. The new primary begins the view as soon as the view changes decide every position and every batch is at
    /// hand with its bodies: a NEW-VIEW is the primary's word for each batch in it, so it must be able to accept them
    /// at once. Otherwise others may prepare what the primary's next VIEW-CHANGE does not list, and A2 is never met
    /// again.
    pub(super) fn try_new_view(&mut self, context: &mut Ctx<'_>) {
        if self.phase != Phase::Changing || context.cluster.primary(self.view) != context.me || !self.may_vote() {
            return;
        }
        let view_changes: Vec<Signed<ViewChange>> =
            self.view_changes.values().filter(|known| known.value.view == self.view).cloned().collect();
        let values: Vec<&ViewChange> = view_changes.iter().map(|signed| &signed.value).collect();
        let Some(decision) = decide(context.cluster, &values) else { return };
        let mut complete = true;
        let mut sequence = decision.stable.value.sequence;
        for digest in &decision.chosen {
            sequence = sequence.next();
            match self.batch(*digest) {
                Some(batch) => complete &= self.gather_bodies(context, sequence, &batch),
                None if sequence > self.committed => {
                    complete = false;
                    self.want_batch(context, sequence, *digest);
                }
                None => {}
            }
        }
        if !complete {
            return;
        }
        let new_view = NewView { view: self.view, view_changes, chosen: decision.chosen.clone() };
        let signed = Arc::new(context.keyring.sign(new_view));
        context.push(OrderEffect::Persist(PbftRecord::NewView(signed.clone())));
        context.push(OrderEffect::Broadcast(PbftMessage::NewView(signed.clone())));
        self.enter_view(context, signed, &decision);
    }

    /// Step 10. A backup checks the new view and enters it.
    pub(super) fn on_new_view(&mut self, context: &mut Ctx<'_>, from: ReplicaId, signed: Arc<Signed<NewView>>) {
        let view = signed.value.view;
        if view < self.view || (view == self.view && self.phase == Phase::Normal) {
            return;
        }
        match self.check_new_view(context, &signed) {
            Ok(decision) => {
                context.push(OrderEffect::Persist(PbftRecord::NewView(signed.clone())));
                self.enter_view(context, signed, &decision);
            }
            Err(reason) => context.reject(from, reason),
        }
    }

    fn check_new_view(&self, context: &Ctx<'_>, signed: &Signed<NewView>) -> Result<Decision, Rejection> {
        let new_view = &signed.value;
        if signed.signer != context.cluster.primary(new_view.view) {
            return Err(Rejection::WrongSender);
        }
        if !context.keyring.check_signed(signed) {
            return Err(Rejection::BadSignature);
        }
        let sound = new_view.view_changes.iter().all(|vc| {
            vc.value.view == new_view.view
                && (self.view_changes.get(&vc.signer) == Some(vc)
                    || self.is_well_formed(context, &vc.value) && context.keyring.check_signed(vc))
        });
        let values: Vec<&ViewChange> = new_view.view_changes.iter().map(|vc| &vc.value).collect();
        let decision = decide(context.cluster, &values).ok_or(Rejection::BadViewChange)?;
        if sound && decision.chosen == new_view.chosen { Ok(decision) } else { Err(Rejection::BadViewChange) }
    }

    /// Both: the chosen batches are proposed again, everything else of earlier views that was only proposed is void.
    /// The  window moves to the stable checkpoint that was proved, whether or not its state is here yet.
    fn enter_view(&mut self, context: &mut Ctx<'_>, signed: Arc<Signed<NewView>>, decision: &Decision) {
        let proved = decision.stable.value.sequence > self.low_water_mark();
        self.install_view(signed, decision);
        context.push(OrderEffect::CancelTimer(PbftTimer::View));
        context.push(OrderEffect::Notify(Notice::ViewEntered { view: self.view }));
        if let Some(tentative) = self.tentative
            && self.slots.get(&self.committed.next()).and_then(|slot| slot.proposed.as_ref()).map(|p| p.digest)
                != Some(tentative)
        {
            self.tentative = None;
            context.push(OrderEffect::Deliver(Delivery::Undo));
        }
        if proved {
            context.push(OrderEffect::Deliver(Delivery::Proved(decision.stable.clone())));
        }
        self.collect_garbage(context.cluster);
        self.prune_batches();
        let positions: Vec<Sequence> = self.slots.keys().copied().collect();
        for sequence in positions {
            self.try_accept(context, sequence);
        }
        self.pass_on_requests(context);
        self.advance(context);
        self.watch_requests(context);
    }

    /// What entering a view changes in the state; recovery replays it.
    pub(super) fn install_view(&mut self, signed: Arc<Signed<NewView>>, decision: &Decision) {
        let view = signed.value.view;
        self.view = view;
        self.phase = Phase::Normal;
        self.view_timer = None;
        self.view_changes.retain(|_, known| known.value.view > view);
        self.new_view = Some(signed);
        self.raise_low_water_mark(&decision.stable);
        for slot in self.slots.values_mut() {
            slot.proposed = None;
            slot.missing.clear();
        }
        self.wanted_bodies.clear();
        self.pool.forget_proposals();
        let mut sequence = decision.stable.value.sequence;
        for &digest in &decision.chosen {
            sequence = sequence.next();
            if sequence <= self.low_water_mark() {
                continue;
            }
            let batch = self.batch(digest);
            if let Some(batch) = &batch {
                for entry in &batch.entries {
                    self.pool.proposed(entry.digest());
                }
            }
            self.slots.entry(sequence).or_default().proposed =
                Some(Proposed { view, digest, batch, reproposed: true, acceptable: true, accepted: false });
        }
        self.next = sequence.max(self.committed).max(self.low_water_mark()).next();
    }

    /// Keeps only batches that some slot still refers to, and their bodies.
    fn prune_batches(&mut self) {
        let mut live: BTreeSet<Digest> = BTreeSet::new();
        for slot in self.slots.values() {
            live.extend(slot.proposed.iter().map(|proposed| proposed.digest));
            live.extend(slot.pre_prepared.iter().map(|(digest, _)| *digest));
            live.extend(slot.committed);
        }
        self.batches.retain(|digest, _| live.contains(digest));
        self.wanted_batches.retain(|digest, _| live.contains(digest));
        let bodies: BTreeSet<Digest> =
            self.batches.values().flat_map(|(_, batch)| batch.references()).map(|reference| reference.digest).collect();
        self.bodies.retain(|digest, _| bodies.contains(digest));
    }

    /// The new primary may not know what the clients of this replica wait for.
    fn pass_on_requests(&mut self, context: &mut Ctx<'_>) {
        let primary = context.cluster.primary(self.view);
        if primary == context.me {
            return;
        }
        for request in self.pool.iter_watched() {
            context.out.push(OrderEffect::Forward(primary, request.clone()));
        }
    }
}
