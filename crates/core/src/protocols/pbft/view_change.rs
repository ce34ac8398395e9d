//! View change: PBFT 7 to 10 of the [module](super).

use super::decision::{Decision, Sound, decide};
use super::message::{Claim, NewView, PbftMessage, Status, ViewChange, positions};
use super::replica::{Ctx, Pbft, Phase, ViewTimer};
use super::slot::Proposed;
use super::{PbftRecord, PbftTimer};
use crate::auth::{Certificate, Claimed, Signed};
use crate::batch::Batch;
use crate::checkpoint::Checkpoint;
use crate::digest::Digest;
use crate::ids::{ReplicaId, Sequence, View};
use crate::notice::Notice;
use crate::protocols::total_order::{Delivery, OrderEffect, TotalOrder};
use crate::rejection::Rejection;
use crate::time::Duration;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

impl Pbft {
    /// The oldest request was not executed, or a batch not committed, or the new view did not begin in time.
    pub(super) fn on_view_timeout(&mut self, context: &mut Ctx<'_>) {
        let reason = match self.view_timer.take() {
            // It is over by now: then the next one is watched.
            Some(ViewTimer::Request(client, timestamp)) if !self.pool.waits(client, timestamp) => return,
            // It fetches a state that others have, and does not know what they have executed since. If the primary has
            // failed they leave, and it leaves with them.
            Some(ViewTimer::Request(..) | ViewTimer::Batch(_)) if self.is_fetching(context) => {
                return self.watch_requests(context);
            }
            Some(ViewTimer::Request(..)) if self.phase == Phase::Normal => "a request waits too long",
            Some(ViewTimer::Batch(_)) if self.phase == Phase::Normal => "a batch waits too long",
            Some(ViewTimer::NewView) if self.phase == Phase::Changing => {
                let primary = self.replicas.primary(self.view);
                self.watch.iter_mut().for_each(|watch| watch.missed(primary));
                "the new view does not begin"
            }
            _ => return,
        };
        let next = self.next_view(context);
        if !self.may_vote_in(next) {
            return;
        }
        self.be_careful(context);
        self.start_view_change(context, next, reason);
    }

    /// The next view with a primary that is not known to be missing.
    pub(super) fn next_view(&self, context: &Ctx<'_>) -> View {
        let is_missing = |view: View| context.missing.contains(self.replicas.primary(view));
        (0..context.missing.len()).fold(self.view.next(), |view, _| if is_missing(view) { view.next() } else { view })
    }

    /// Whether others have gone on to a state that this replica does not have yet.
    pub(super) fn is_fetching(&self, context: &Ctx<'_>) -> bool {
        context.is_fetching || self.committed < self.low_water_mark()
    }

    /// PBFT 7. Leave the view. Another primary gets longer; one that begins anew ([`Self::renew`]) has not failed.
    pub(super) fn start_view_change(&mut self, context: &mut Ctx<'_>, view: View, reason: &'static str) {
        self.attempts += u32::from(self.phase != Phase::Normal || view != self.renewed());
        self.change_view(context, view, reason);
    }

    /// Leave the view, and say what was prepared and accepted, with the stable checkpoint and its proof. The statement
    /// is durable before it leaves: it is never made differently.
    pub(super) fn change_view(&mut self, context: &mut Ctx<'_>, view: View, reason: &'static str) {
        assert!(view > self.view || self.phase == Phase::Changing && view == self.view, "views only grow");
        context.step("PBFT 7");
        self.view = view;
        self.phase = Phase::Changing;
        self.view_timer = None;
        self.view_changes_started += 1;
        context.push(OrderEffect::CancelTimer(PbftTimer::View));
        context.push(OrderEffect::Notify(Notice::ViewChangeStarted { view, reason }));
        let signed = context.keyring.sign(self.my_view_change());
        context.push(OrderEffect::Persist(PbftRecord::ViewChange(Box::new(signed.claim()))));
        context.push(OrderEffect::Broadcast(PbftMessage::ViewChange(Box::new(signed.claim()))));
        self.view_changes.insert(context.me, Sound { signed, stable: self.stable.certificate().cloned() });
        self.on_more_view_changes(context);
    }

    /// P and Q above the stable checkpoint. Q says also what the last view chose that has begun: in that view nothing
    /// else could be accepted, and whoever knows how it began vouches for that as if it had accepted it.
    fn my_view_change(&self) -> ViewChange {
        let low = self.low_water_mark();
        let mut prepared = Vec::new();
        let mut accepted: BTreeMap<Sequence, (View, Digest)> = BTreeMap::new();
        for (&sequence, slot) in self.slots.range(low.next()..) {
            if let Some((view, digest)) = slot.prepared {
                prepared.push(Claim { sequence, digest, view });
            }
            accepted.extend(slot.pre_prepared.map(|known| (sequence, known)));
        }
        let begun = self.begun.view();
        accepted.extend(self.begun.chosen_above(low).map(|(sequence, digest)| (sequence, (begun, digest))));
        let claim = |(sequence, (view, digest))| Claim { sequence, digest, view };
        let pre_prepared = accepted.into_iter().map(claim).collect();
        ViewChange { view: self.view, stable: self.stable.claim(), prepared, pre_prepared }
    }

    /// PBFT 8. Somebody leaves its view.
    pub(super) fn on_view_change(
        &mut self,
        context: &mut Ctx<'_>,
        from: ReplicaId,
        signed: Claimed<Signed<ViewChange>>,
    ) {
        let wanted = signed.claims().view;
        let known = self.view_changes.get(&signed.signer()).map(|known| known.value().view);
        let begun = wanted < self.view || (wanted == self.view && self.phase == Phase::Normal);
        if begun || known.is_some_and(|known| known >= wanted) {
            return;
        }
        if signed.signer() == context.me {
            // Said before this replica lost what it knew. Who passes it on means well.
            return context.reject(from, Rejection::Duplicate);
        }
        let Some(stable) = self.prove(context, signed.claims()) else {
            return context.reject(from, Rejection::BadViewChange);
        };
        let Some(signed) = context.keyring.verify(signed) else {
            return context.reject(from, Rejection::BadSignature);
        };
        context.step("PBFT 8");
        self.view_changes.insert(signed.signer(), Sound { signed, stable });
        self.leave_with_others(context);
        self.on_more_view_changes(context);
    }

    /// The join rule: f+1 replicas want to leave, one of them is correct, so this one leaves too, for the smallest
    /// view that they ask for. And it leaves with its primary.
    pub(super) fn leave_with_others(&mut self, context: &mut Ctx<'_>) {
        let mut views: Vec<View> =
            self.view_changes.values().map(|known| known.value().view).filter(|view| *view > self.view).collect();
        views.sort();
        if let Some((view, reason)) = self.left_by_primary(context).filter(|(view, _)| self.may_vote_in(*view)) {
            // Others may not have heard it, and must not be left behind.
            let primary = &self.view_changes[&self.replicas.primary(self.view)];
            context.push(OrderEffect::Broadcast(PbftMessage::ViewChange(Box::new(primary.signed.claim()))));
            self.be_careful_if_somebody_waits(context);
            self.leave_patiently(context, view, reason);
        } else if views.len() >= self.replicas.weak() && self.may_vote_in(views[0]) {
            self.be_careful_if_somebody_waits(context);
            self.leave_patiently(context, views[0], "f+1 replicas ask for another view");
        }
    }

    /// Without its primary no view goes on: if that leaves, all do; for the next view, or to begin the present one
    /// anew ([`Self::renew`]). That it may not do so often that it never has to order anything: a time-out that it puts
    /// off once is over before it can do so again.
    fn left_by_primary(&self, context: &Ctx<'_>) -> Option<(View, &'static str)> {
        let wanted = self.view_changes.get(&self.replicas.primary(self.view))?.value().view;
        if self.phase != Phase::Normal || wanted <= self.view {
            None
        } else if wanted != self.renewed() {
            Some((self.next_view(context), "the primary leaves"))
        } else {
            self.is_older_than(context, 2).then_some((wanted, "the primary begins anew"))
        }
    }

    /// The next view with the same primary.
    const fn renewed(&self) -> View {
        View(self.view.0.saturating_add(self.replicas.n() as u64))
    }

    /// Whether the view has gone on for so many time-outs.
    fn is_older_than(&self, context: &Ctx<'_>, timeouts: u64) -> bool {
        context.now - self.since > Duration(self.view_timeout(context).0.saturating_mul(timeouts))
    }

    /// Brings back a replica that the others have left alone. It waits in a view change that nobody else needs, in
    /// which it may not vote for what they order; or it lost its log, and nobody orders anything, so it never
    /// gets past what it may have said. The next crash would then cost a time-out, or everything.
    ///
    /// The primary begins anew: it leaves for the next view that it leads. All leave with it at once, the
    /// one that waits as well, and nobody has to wait for anything. That costs no more than some message delays, and
    /// not more often than each third time-out, whatever a liar says that it needs.
    pub(super) fn renew(&mut self, context: &mut Ctx<'_>, theirs: &Status) {
        let renewed = self.renewed();
        let alone = theirs.changing && theirs.view > self.view && theirs.view <= renewed;
        let idle = theirs.abstaining && self.pool.len() == 0 && may_be_filled(context);
        if (alone || idle) && self.leads(context) && self.is_older_than(context, 3) {
            self.fills = idle;
            self.start_view_change(context, renewed, "for a replica that cannot vote in this view");
        }
    }

    /// Whether a view change could have been made by a correct replica, its signature apart; and what proves the
    /// checkpoint from which it starts, if that is not the state before the first batch.
    fn prove(&self, context: &Ctx<'_>, view_change: &ViewChange) -> Option<Option<Certificate<Checkpoint>>> {
        let (stable, strong) = (&view_change.stable, self.replicas.strong());
        let low = stable.claims().sequence;
        let in_window = |claim: &Claim| {
            // Whatever it says that is stable: nothing is proved yet.
            let above = claim.sequence.0.checked_sub(low.0);
            above.is_some_and(|above| above > 0 && above <= context.cluster.window()) && claim.view < view_change.view
        };
        let proof = if low == Sequence(0) {
            stable.signatures().is_empty().then_some(None)
        } else {
            let known = self.stable.certificate().filter(|known| stable.says(known)).cloned();
            known.or_else(|| context.keyring.verify_certificate(stable.clone(), strong)).map(Some)
        };
        let is_sound = stable.claims().instance == context.instance
            && view_change.prepared.iter().all(in_window)
            && view_change.pre_prepared.iter().all(in_window);
        proof.filter(|_| is_sound)
    }

    /// When 2f+1 have left for this view or a later one, the new primary has to begin it in time; until then nobody
    /// runs ahead.
    fn on_more_view_changes(&mut self, context: &mut Ctx<'_>) {
        if self.phase != Phase::Changing {
            return;
        }
        let left = self.view_changes.values().filter(|known| known.value().view >= self.view).count();
        if left >= self.replicas.strong() && self.view_timer.is_none() {
            self.view_timer = Some(ViewTimer::NewView);
            let at = context.now + self.time_to_begin(context);
            context.push(OrderEffect::SetTimer(PbftTimer::View, at));
            let is_mine = self.replicas.primary(self.view) == context.me;
            self.watch.iter_mut().for_each(|watch| watch.awaits(context.now, is_mine));
        }
        self.try_new_view(context);
    }

    /// PBFT 9. The new primary begins the view as soon as the view changes decide every position and every batch is at
    /// hand with its bodies: a NEW-VIEW is the primary's word for each batch in it, so it must be able to accept them
    /// at once. Otherwise others may prepare what the primary's next VIEW-CHANGE does not list, and pbft-A2 is never
    /// met again.
    pub(super) fn try_new_view(&mut self, context: &mut Ctx<'_>) {
        if self.phase != Phase::Changing || self.replicas.primary(self.view) != context.me || !self.may_vote() {
            return;
        }
        let of_view = self.view_changes.values().filter(|known| known.value().view == self.view);
        let mut view_changes: Vec<Sound> = of_view.cloned().collect();
        let Some(mut decision) = decide(self.replicas, context.cluster.window(), view_changes.iter()) else {
            return;
        };
        let missing = self.missing(context, &decision);
        if !missing.is_empty() {
            // Nobody may have what a liar says to have prepared. A correct replica has it, so the rest decides
            // without any liar's word when all that the correct ones have is here.
            let lacks = |claim: &Claim| missing.contains(&(claim.sequence, claim.digest));
            view_changes.retain(|sound| !sound.value().prepared.iter().any(lacks));
            match decide(self.replicas, context.cluster.window(), view_changes.iter()) {
                Some(rest) if self.missing(context, &rest).is_empty() => decision = rest,
                _ => return,
            }
        }
        if core::mem::take(&mut self.fills) {
            let filled = decision.chosen.len().max(context.cluster.window_of_requests() as usize);
            decision.chosen.resize(filled, Batch::null().digest());
        }
        context.step("PBFT 9");
        let view_changes = view_changes.into_iter().map(|sound| sound.signed.into()).collect();
        let new_view = NewView { view: self.view, view_changes, chosen: decision.chosen.clone() };
        let signed = context.keyring.sign(new_view);
        let claim = Arc::new(signed.claim());
        context.push(OrderEffect::Persist(PbftRecord::NewView(claim.clone())));
        context.push(OrderEffect::Broadcast(PbftMessage::NewView(claim)));
        self.enter_view(context, signed, &decision);
    }

    /// The batches that the new view needs and that are not at hand, bodies included; asks for them.
    fn missing(&mut self, context: &mut Ctx<'_>, decision: &Decision) -> Vec<(Sequence, Digest)> {
        let mut missing = Vec::new();
        for (sequence, digest) in positions(decision.low(), &decision.chosen) {
            let complete = match self.batch(digest) {
                Some(batch) => self.gather_bodies(context, sequence, &batch),
                None => sequence <= self.committed,
            };
            if !complete {
                self.want_batch(context, sequence, digest);
                missing.push((sequence, digest));
            }
        }
        missing
    }

    /// PBFT 10. A backup checks the new view and enters it. If it has left that view already, it still learns what was
    /// decided there; and if it knows already that the view began, in which way it did so besides.
    pub(super) fn on_new_view(&mut self, context: &mut Ctx<'_>, from: ReplicaId, claim: Arc<Claimed<Signed<NewView>>>) {
        let view = claim.claims().view;
        if self.begun.knows(claim.claims()) {
            return;
        }
        let (signed, decision) = match self.check_new_view(context, &claim) {
            Ok(checked) => checked,
            Err(reason) => return context.reject(from, reason),
        };
        let is_last = view == self.begun.view();
        if is_last {
            context.reject(signed.signer(), Rejection::Equivocation);
        }
        if !self.begun.is_news(signed, &decision) {
            return;
        }
        context.step("PBFT 10");
        context.push(OrderEffect::Persist(PbftRecord::NewView(claim.clone())));
        let signed = signed.clone();
        if view >= self.view && !is_last {
            return self.enter_view(context, signed, &decision);
        }
        let proved = decision.stable.clone().filter(|_| decision.low() > self.low_water_mark());
        self.learn_view(signed, &decision);
        if !is_last {
            context.push(OrderEffect::Notify(Notice::ViewMissed { view }));
        }
        self.undo_what_is_void(context);
        if let Some(certificate) = proved {
            context.push(OrderEffect::Deliver(Delivery::Proved(certificate)));
        }
    }

    fn check_new_view<'a>(
        &self,
        context: &Ctx<'_>,
        claim: &'a Claimed<Signed<NewView>>,
    ) -> Result<(&'a Signed<NewView>, Decision), Rejection> {
        if claim.signer() != self.replicas.primary(claim.claims().view) {
            return Err(Rejection::WrongSender);
        }
        let signed = context.keyring.verify_in_place(claim).ok_or(Rejection::BadSignature)?;
        let new_view = signed.value();
        let check = |vc: &Claimed<Signed<ViewChange>>| {
            if vc.claims().view != new_view.view {
                return None;
            }
            let known = self.view_changes.get(&vc.signer()).filter(|known| vc.says(&known.signed)).cloned();
            known.or_else(|| {
                let stable = self.prove(context, vc.claims())?;
                Some(Sound { signed: context.keyring.verify_in_place(vc)?.clone(), stable })
            })
        };
        let sound: Option<Vec<Sound>> = new_view.view_changes.iter().map(check).collect();
        let sound = sound.ok_or(Rejection::BadViewChange)?;
        let decision = decide(self.replicas, context.cluster.window(), sound.iter()).ok_or(Rejection::BadViewChange)?;
        let Decision { stable, chosen } = decision;
        // Where nothing prepared the null batch is as good as none.
        let null = Batch::null().digest();
        let is_filled =
            new_view.chosen.len() == context.cluster.window_of_requests() as usize && may_be_filled(context);
        let follows = new_view
            .chosen
            .strip_prefix(&*chosen)
            .is_some_and(|more| more.is_empty() || is_filled && more.iter().all(|digest| *digest == null));
        let decision = Decision { stable, chosen: new_view.chosen.clone() };
        follows.then_some((signed, decision)).ok_or(Rejection::BadViewChange)
    }

    /// Both: the chosen batches are proposed again, everything else of earlier views that was only proposed is void.
    /// The  window moves to the stable checkpoint that was proved, whether or not its state is here yet.
    fn enter_view(&mut self, context: &mut Ctx<'_>, signed: Signed<NewView>, decision: &Decision) {
        let proved = decision.stable.clone().filter(|_| decision.low() > self.low_water_mark());
        self.install_view(signed, decision);
        self.since = context.now;
        let primary = self.replicas.primary(self.view);
        self.watch.iter_mut().for_each(|watch| watch.entered(context.now, primary));
        context.push(OrderEffect::CancelTimer(PbftTimer::View));
        context.push(OrderEffect::Notify(Notice::ViewEntered { view: self.view }));
        self.undo_what_is_void(context);
        if let Some(certificate) = proved {
            context.push(OrderEffect::Deliver(Delivery::Proved(certificate)));
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
        self.try_to_vote_again(context);
    }

    /// The tentative batch must be the one that the last view chose, or that prepared there. What this replica said of
    /// it stays said: no read is answered before its position is executed again ([`Pbft::promised`]).
    fn undo_what_is_void(&mut self, context: &mut Ctx<'_>) {
        let next = self.committed.next();
        let in_view =
            self.slots.get(&next).and_then(|slot| slot.prepared).filter(|(view, _)| *view == self.begun.view());
        let chosen = self.begun.chosen(next).or(in_view.map(|(_, digest)| digest));
        if self.tentative.is_some() && self.tentative != chosen {
            self.tentative = None;
            context.push(OrderEffect::Deliver(Delivery::Undo));
        }
    }

    /// What the beginning of a view tells, whether this replica enters it or not, or knows already how else it began:
    /// nothing but what it chose was committed before. Recovery replays it.
    pub(super) fn learn_view(&mut self, signed: Signed<NewView>, decision: &Decision) {
        assert!(signed.value().view <= self.view, "whoever knows how a view began is in it, or beyond");
        self.begun.learn(signed, decision);
        decision.stable.iter().for_each(|certificate| self.raise_low_water_mark(certificate));
        for (sequence, slot) in self.slots.range_mut(self.begun.low().next()..) {
            slot.refute(self.begun.view(), self.begun.chosen(*sequence));
        }
    }

    /// What entering a view changes in the state; recovery replays it.
    pub(super) fn install_view(&mut self, signed: Signed<NewView>, decision: &Decision) {
        let view = signed.value().view;
        let is_later = view > self.view || view == self.view && self.phase == Phase::Changing;
        assert!(is_later, "a view begins once");
        self.view = view;
        self.phase = Phase::Normal;
        self.view_timer = None;
        self.fills = false;
        self.view_changes.retain(|_, known| known.value().view > view);
        self.learn_view(signed, decision);
        for slot in self.slots.values_mut() {
            slot.proposed = None;
            slot.missing.clear();
        }
        self.wanted_bodies.clear();
        self.pool.forget_proposals();
        let low = decision.low();
        for (sequence, digest) in positions(low, &decision.chosen) {
            if sequence <= self.low_water_mark() {
                continue;
            }
            let batch = self.batch(digest);
            // It may be one that a liar has proposed at an earlier position, too.
            if let Some(batch) = batch.as_ref().filter(|batch| !batch.is_null()) {
                self.keep(sequence, batch);
            }
            // What is executed is not executed once more: a JOIN that was refused there may wait again.
            for entry in batch.iter().filter(|_| sequence > self.committed).flat_map(|batch| batch.entries()) {
                self.pool.proposed(entry.digest());
            }
            self.slots.entry(sequence).or_default().proposed =
                Some(Proposed { view, digest, batch, reproposed: true, acceptable: true, accepted: false });
        }
        let last = Sequence(low.0 + decision.chosen.len() as u64);
        self.next = last.max(self.committed).max(self.low_water_mark()).next();
        assert!(
            self.slots.values().flat_map(|slot| &slot.proposed).all(|of| of.reproposed),
            "only what is chosen stays"
        );
    }

    /// Keeps only batches that some slot still refers to, and their bodies.
    fn prune_batches(&mut self) {
        let mut live: BTreeSet<Digest> = BTreeSet::new();
        for slot in self.slots.values() {
            live.extend(slot.proposed.iter().map(|proposed| proposed.digest));
            live.extend(slot.pre_prepared.map(|(_, digest)| digest));
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
        let primary = self.replicas.primary(self.view);
        if primary == context.me {
            return;
        }
        for request in self.pool.to_pass_on(&context.cluster.limits) {
            context.out.push(OrderEffect::Forward(primary, request.clone()));
        }
    }
}

/// Whether a new view may go on with null batches to the end of the window. Where batches wait for an INIT that would
/// leave it no place.
fn may_be_filled(context: &Ctx<'_>) -> bool {
    !context.cluster.specification(context.instance).hands_on()
}
