//! The normal case: PBFT 1 to 6 of the [module](super).

use super::check::{is_near, is_valid};
use super::message::{PbftMessage, Position, PrePrepare, Vote};
use super::replica::{Ctx, Pbft, Phase, ViewTimer};
use super::slot::{Proposed, Slot};
use super::{PbftRecord, PbftTimer};
use crate::batch::{Batch, Entry, Ordered, Reference};
use crate::digest::Digest;
use crate::ids::{ClientId, ReplicaId, Sequence};
use crate::message::{Request, Vouched};
use crate::protocols::pool::is_for_primaries;
use crate::protocols::total_order::{Delivery, OrderEffect, TotalOrder};
use crate::rejection::Rejection;
use crate::service::Proposal;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

impl Pbft {
    /// PBFT 1. A request arrives. Once its client has reason to complain, this replica watches that it is executed.
    pub(super) fn on_request(&mut self, context: &mut Ctx<'_>, request: Request, from: Option<ReplicaId>) {
        context.step("PBFT 1");
        let direct = from.is_none();
        let (client, digest, is_init) = (request.client, request.digest(), request.is_system());
        // Small ones go to the primary only, unless it is watched (Aardvark 1).
        let to_all = self.watch.is_some() || request.operation.len() > context.cluster.limits.inline_bytes_max;
        let (leads, timestamp) = (self.replicas.primary(self.view) == context.me, request.timestamp);
        let contradicts = |old: &mut Request| old.timestamp >= timestamp && old.digest() != digest;
        if direct && self.pool.get_mut(client).is_some_and(contradicts) {
            // What is here, as new or newer, may be nobody's: only its link vouched for it.
            self.verify_waiting(context, client);
        }
        let crowded = self.pool.is_crowded(client, &context.cluster.limits);
        match self.pool.add(request, from, &context.cluster.limits) {
            // Clients send small requests to the primary and big ones to everybody; they send them again, and small
            // ones to the backups, when they wait too long. A JOIN that took another's place may have been here before,
            // and lost its own in the same way: were none of them watched, they could go on so for ever. An INIT has no
            // client that would send it again: a Backup begins although nobody asks for anything.
            Ok(new) if direct && (crowded || is_init || !(new && (to_all || leads))) => self.watch(context, client),
            Ok(_) => {}
            Err(reason) => return context.reject(context.me, reason),
        }
        if self.wanted_bodies.remove(&digest).is_some() {
            self.go_on_with(context, digest);
        }
    }

    /// A client waits: pass its request on to the primary and see that it is ordered. Only a request that a correct
    /// primary must accept may cost the primary its view, so the signature is checked first (pbft-F20). The
    /// primary watches as well: if it cannot gather 2f+1 any more, it must leave its view like everybody else.
    pub(super) fn watch(&mut self, context: &mut Ctx<'_>, client: ClientId) {
        if !self.verify_waiting(context, client) {
            return;
        }
        let (primary, limits) = (self.replicas.primary(self.view), &context.cluster.limits);
        let is_new = self.pool.watch(client);
        let Some(request) = self.pool.get_mut(client) else { return };
        // The second time would be a reminder, which is for the one that has waited longest.
        if is_new && self.phase == Phase::Normal && primary != context.me && is_for_primaries(request, limits) {
            context.push(OrderEffect::Forward(primary, request.clone()));
        }
    }

    /// PBFT 2. The primary proposes what is waiting, as one batch, while fewer than the congestion window are in
    /// flight: under load, batches grow by themselves; without load, a request is proposed at once.
    pub(super) fn propose(&mut self, context: &mut Ctx<'_>) {
        while self.leads(context)
            && self.pool.has_unproposed()
            && self.in_window(context.cluster, self.next)
            && self.has_place(context, self.next)
            && self.may_overlap(context)
        {
            let signed = self.demands_signatures(context);
            let (cluster, keyring) = (context.cluster, context.keyring);
            let requests = self.pool.next_batch(&context.cluster.limits, |batch| {
                if signed {
                    // A request that only its MAC for us vouches for could be refused by a backup: order none
                    // whose signature does not hold (pbft-F20).
                    Request::vouch_signatures(batch.iter_mut(), cluster, keyring);
                    for request in batch.iter_mut().filter(|request| request.vouched != Vouched::Signature) {
                        request.vouched = Vouched::No;
                    }
                }
            });
            if requests.is_empty() {
                continue;
            }
            self.propose_batch(context, requests);
        }
    }

    /// Whether what waits may be proposed here: the last places of the window are for rulings, which go first.
    fn has_place(&self, context: &Ctx<'_>, sequence: Sequence) -> bool {
        self.in_window_of_requests(context.cluster, sequence)
            || sequence == self.committed.next() && self.pool.has_ruling_to_propose(context.is_over)
    }

    /// Whether the congestion window lets one more batch follow those in flight. It must not be smaller than the one
    /// before it: else every batch but one would be small, and what a batch costs, however small, is most of the work.
    /// Nobody waits longer than for the batches in flight.
    fn may_overlap(&self, context: &Ctx<'_>) -> bool {
        match self.next.0.saturating_sub(self.delivered().next().0) {
            0 => true,
            in_flight => {
                in_flight < context.cluster.limits.batches_in_flight_max && self.pool.unproposed() >= self.last_proposed
            }
        }
    }

    fn propose_batch(&mut self, context: &mut Ctx<'_>, requests: Vec<Request>) {
        context.step("PBFT 2");
        let sequence = self.next;
        assert!(self.in_window(context.cluster, sequence), "h < n ≤ h + L");
        let is_free = |slot: &Slot| slot.proposed.as_ref().is_none_or(|proposed| proposed.view < self.view);
        assert!(self.slots.get(&sequence).is_none_or(is_free), "one proposal per (v, n)");
        assert!(!requests.is_empty(), "the null batch is a new view's");
        self.watch.iter_mut().for_each(|watch| watch.proposed(context.now));
        self.next = sequence.next();
        self.last_proposed = requests.len();
        let time = context.now.max(self.last_time + Duration(1));
        self.last_time = time;
        let mut position = [0; 16];
        position[..8].copy_from_slice(&self.view.0.to_le_bytes());
        position[8..].copy_from_slice(&sequence.0.to_le_bytes());
        let proposal = Proposal { time, seed: context.keyring.seed(&position) };
        let inline_max = context.cluster.limits.inline_bytes_max;
        let mut entries = Vec::with_capacity(requests.len());
        for request in requests {
            if request.operation.len() <= inline_max {
                entries.push(Entry::Inline(request));
                continue;
            }
            entries.push(Entry::Reference(Reference::to(&request)));
            self.keep_body(sequence, request);
        }
        let batch = Arc::new(Batch::new(proposal, entries));
        let pre_prepare = PrePrepare { view: self.view, sequence, batch: batch.clone() };
        self.slots.entry(sequence).or_default().proposed = Some(Proposed {
            view: self.view,
            digest: batch.digest(),
            batch: Some(batch.clone()),
            reproposed: false,
            acceptable: true,
            accepted: false,
        });
        self.keep(sequence, &batch);
        self.accept(context, sequence);
        context.push(OrderEffect::Broadcast(PbftMessage::PrePrepare(pre_prepare)));
        self.try_prepare(context, sequence);
    }

    /// PBFT 3. A backup receives the proposal.
    pub(super) fn on_pre_prepare(&mut self, context: &mut Ctx<'_>, from: ReplicaId, pre_prepare: PrePrepare) {
        let PrePrepare { view, sequence, batch } = pre_prepare;
        if from != self.replicas.primary(view) {
            return context.reject(from, Rejection::WrongSender);
        }
        if view != self.view || self.phase != Phase::Normal {
            return context.reject(from, Rejection::WrongView);
        }
        if !self.in_window(context.cluster, sequence) {
            return context.reject(from, Rejection::OutsideWindow);
        }
        if let Some(proposed) = self.slots.get(&sequence).and_then(|slot| slot.proposed.as_ref())
            && proposed.view == view
        {
            if proposed.digest != batch.digest() {
                context.reject(from, Rejection::Equivocation);
            } else if proposed.batch.is_none() {
                self.on_batch(context, from, batch);
            } else if !proposed.accepted {
                self.take_better_copy(context, sequence, batch);
            }
            return;
        }
        if let Err(reason) = self.check_batch(context, &batch) {
            return context.reject(from, reason);
        }
        context.step("PBFT 3");
        let batch = vouched(context, batch);
        let inline = batch.entries().iter().filter_map(Entry::inline);
        let acceptable = is_near(context, batch.proposal()) && is_valid(context, batch.proposal(), inline);
        if !acceptable {
            context.reject(from, Rejection::BadAgreedValue);
        }
        self.watch.iter_mut().filter(|_| acceptable).for_each(|watch| watch.proposed(context.now));
        for entry in batch.entries() {
            self.pool.proposed(entry.digest());
        }
        let slot = self.slots.entry(sequence).or_default();
        slot.proposed = Some(Proposed {
            view,
            digest: batch.digest(),
            batch: Some(batch.clone()),
            reproposed: false,
            acceptable,
            accepted: false,
        });
        self.keep(sequence, &batch);
        self.try_accept(context, sequence);
        self.advance(context);
    }

    /// The digest of a batch does not cover the clients' proofs: a copy with spoilt ones must not keep out a good one.
    /// Nor does it cover the instance that they name: where that is another one, proofs that hold make no better copy.
    fn take_better_copy(&mut self, context: &mut Ctx<'_>, sequence: Sequence, batch: Arc<Batch>) {
        if let Err(reason) = self.check_batch(context, &batch) {
            return context.reject(self.replicas.primary(self.view), reason);
        }
        let batch = vouched(context, batch);
        if !batch.is_vouched() {
            return;
        }
        self.keep(sequence, &batch);
        if let Some(proposed) = self.slots.get_mut(&sequence).and_then(|slot| slot.proposed.as_mut()) {
            proposed.batch = Some(batch);
        }
        self.try_accept(context, sequence);
        self.advance(context);
    }

    /// PBFT 4. A backup accepts the proposal and says PREPARE once it has every body (pbft-F22), every request is its
    /// client's (pbft-F20) and the agreed values are acceptable (prac-F27). For the last two, f+1 PREPAREs of others
    /// will do instead: one of them is correct and has checked.
    pub(super) fn try_accept(&mut self, context: &mut Ctx<'_>, sequence: Sequence) {
        if self.phase != Phase::Normal || !self.may_vote() {
            return;
        }
        let Some(slot) = self.slots.get(&sequence) else { return };
        let Some(proposed) = slot.proposed.clone() else { return };
        if proposed.accepted || proposed.view != self.view {
            return;
        }
        let others_vouch = slot.prepares.count(proposed.view, proposed.digest) >= self.replicas.weak();
        let Some(batch) = proposed.batch else { return self.want_batch(context, sequence, proposed.digest) };
        if !self.gather_bodies(context, sequence, &batch) {
            return;
        }
        let vouched = proposed.reproposed || others_vouch;
        if !(vouched || self.is_acceptable(context, sequence, &batch) && proposed.acceptable) {
            return;
        }
        context.step("PBFT 4");
        self.accept(context, sequence);
        let vote = Vote { view: self.view, sequence, digest: proposed.digest };
        if self.replicas.primary(self.view) != context.me {
            let slot = self.slots.entry(sequence).or_default();
            slot.prepares.add(context.me, &vote).expect("a replica prepares once per view and position");
            context.push(OrderEffect::Broadcast(PbftMessage::Prepare(vote)));
        }
        self.try_prepare(context, sequence);
    }

    /// Makes the proposal durable, bodies included, before anything is said about it.
    fn accept(&mut self, context: &mut Ctx<'_>, sequence: Sequence) {
        let view = self.view;
        let slot = self.slots.get_mut(&sequence).expect("accepted where something was proposed");
        let proposed = slot.proposed.as_mut().expect("accepted where something was proposed");
        assert_eq!(proposed.view, view, "a proposal of another view is void");
        assert!(!proposed.accepted, "a batch is accepted once per (v, n)");
        proposed.accepted = true;
        let digest = proposed.digest;
        let batch = proposed.batch.clone().expect("accepted with the batch in hand");
        slot.pre_prepare(digest, view);
        self.last_time = self.last_time.max(batch.proposal().time);
        slot.missing.clear();
        for reference in batch.references() {
            // Where others vouched for it, a better copy may still be wanted.
            if self.wanted_bodies.contains_key(&reference.digest)
                && !self.slots.values().any(|slot| slot.missing.contains(&reference.digest))
            {
                self.wanted_bodies.remove(&reference.digest);
            }
            if let Some((_, body)) = self.bodies.get(&reference.digest) {
                context.push(OrderEffect::Persist(PbftRecord::Body(Box::new(body.clone()))));
            }
        }
        context.push(OrderEffect::Persist(PbftRecord::Accepted(PrePrepare { view, sequence, batch })));
    }

    /// PBFT 5. Votes for the proposal.
    pub(super) fn on_prepare(&mut self, context: &mut Ctx<'_>, from: ReplicaId, vote: Vote) {
        if from == self.replicas.primary(vote.view) {
            return context.reject(from, Rejection::WrongSender);
        }
        if !self.admits(context, from, &vote) {
            return;
        }
        let slot = self.slots.entry(vote.sequence).or_default();
        match slot.prepares.add(from, &vote) {
            Ok(()) => {
                self.try_accept(context, vote.sequence);
                self.try_prepare(context, vote.sequence);
                self.advance(context);
            }
            Err(reason) => context.reject(from, reason),
        }
    }

    /// PBFT 6. Votes for the certificate.
    pub(super) fn on_commit(&mut self, context: &mut Ctx<'_>, from: ReplicaId, vote: Vote) {
        if !self.admits(context, from, &vote) {
            return;
        }
        let slot = self.slots.entry(vote.sequence).or_default();
        match slot.commits.add(from, &vote) {
            Ok(()) => {
                self.try_commit(vote.sequence);
                self.advance(context);
            }
            Err(reason) => context.reject(from, reason),
        }
    }

    /// Votes of past views and outside the window are of no use; those for a view to come are kept, one per replica.
    fn admits(&self, context: &mut Ctx<'_>, from: ReplicaId, vote: &Vote) -> bool {
        if !self.in_window(context.cluster, vote.sequence) {
            if vote.sequence > self.low_water_mark() {
                context.reject(from, Rejection::OutsideWindow);
            }
            return false;
        }
        if vote.view < self.view {
            context.reject(from, Rejection::WrongView);
            return false;
        }
        true
    }

    /// Prepared: the proposal and 2f equal PREPAREs of backups. Then COMMIT, once that is durable.
    pub(super) fn try_prepare(&mut self, context: &mut Ctx<'_>, sequence: Sequence) {
        let view = self.view;
        if self.phase != Phase::Normal {
            return;
        }
        let Some(slot) = self.slots.get_mut(&sequence) else { return };
        let Some(digest) = slot.accepted(view).map(|proposed| proposed.digest) else { return };
        if slot.is_prepared(view) || slot.prepares.count(view, digest) + 1 < self.replicas.strong() {
            return;
        }
        context.step("PBFT 5");
        let is_earlier = slot.prepared.is_none_or(|(earlier, _)| earlier < view);
        assert!(is_earlier, "one batch prepares per (v, n)");
        slot.prepared = Some((view, digest));
        let vote = Vote { view, sequence, digest };
        context.push(OrderEffect::Persist(PbftRecord::Prepared(vote)));
        slot.commits.add(context.me, &vote).expect("a replica commits once per view and position");
        context.push(OrderEffect::Broadcast(PbftMessage::Commit(vote)));
        self.try_commit(sequence);
        self.advance(context);
    }

    /// Committed: 2f+1 equal COMMITs. At least f+1 correct replicas prepared it, so no later view decides otherwise.
    fn try_commit(&mut self, sequence: Sequence) {
        let view = self.view;
        let Some(slot) = self.slots.get_mut(&sequence) else { return };
        if slot.committed.is_none() {
            slot.committed = slot.commits.winner(view, self.replicas.strong());
        }
    }

    /// Delivers, in sequence, everything that is decided, and the next batch tentatively if it is prepared.
    pub(super) fn advance(&mut self, context: &mut Ctx<'_>) {
        loop {
            let sequence = self.committed.next();
            let Some(digest) = self.slots.get(&sequence).and_then(|slot| slot.committed) else { break };
            if self.tentative.is_some_and(|tentative| tentative != digest) {
                self.tentative = None;
                context.push(OrderEffect::Deliver(Delivery::Undo));
            }
            let Some(ordered) = self.ordered(context, sequence, digest) else { return };
            self.log_committed(context, &ordered);
            if let Some(slot) = self.slots.get_mut(&sequence) {
                slot.logged = Some(digest);
            }
            self.committed = sequence;
            self.tentative = None;
            // Progress in this view: the next suspicion waits the normal time again.
            if self.phase == Phase::Normal && !ordered.batch.is_null() {
                self.attempts = 0;
            }
            self.watch.iter_mut().for_each(|watch| watch.batch(ordered.batch.entries().len()));
            context.step("PBFT 6");
            context.push(OrderEffect::Deliver(Delivery::Final(ordered)));
        }
        let (sequence, view) = (self.committed.next(), self.view);
        if self.tentative.is_some() || self.phase != Phase::Normal || !self.may_vote() {
            return;
        }
        let Some(slot) = self.slots.get(&sequence) else { return };
        let Some((_, digest)) = slot.prepared.filter(|(prepared, _)| *prepared == view) else { return };
        if let Some(ordered) = self.ordered(context, sequence, digest) {
            assert_eq!(self.delivered(), self.committed, "one batch is tentative at a time");
            self.tentative = Some(digest);
            self.promised = self.promised.max(sequence);
            context.push(OrderEffect::Deliver(Delivery::Tentative(ordered)));
        }
    }

    /// What is executed for good can be executed again after a crash, without help: everybody may have crashed.
    fn log_committed(&self, context: &mut Ctx<'_>, ordered: &Ordered) {
        let (sequence, digest) = (ordered.sequence, ordered.batch.digest());
        let slot = self.slots.get(&sequence);
        if slot.is_some_and(|slot| slot.logged == Some(digest)) {
            return;
        }
        let accepted = slot.and_then(|slot| slot.pre_prepared).is_some_and(|(_, known)| known == digest);
        if !accepted && !ordered.batch.is_null() {
            let bodies = ordered.bodies.iter().cloned();
            context.out.extend(bodies.map(|body| OrderEffect::Persist(PbftRecord::Body(Box::new(body)))));
            context.push(OrderEffect::Persist(PbftRecord::Fetched((sequence, ordered.batch.clone()))));
        }
        let record = PbftRecord::Committed(Position { sequence, digest });
        // Who prepared the batch remembers it, and answers no read without it. A vote for the state needs this record.
        let prepared = slot.and_then(|slot| slot.prepared).is_some_and(|(_, prepared)| prepared == digest);
        let makes_checkpoint = |request: &Request| request.is_ruling() || request.is_end_of_stay();
        let may_vote_for_it = context.cluster.is_checkpoint(sequence) || ordered.requests().any(makes_checkpoint);
        context.push(if prepared && !may_vote_for_it {
            OrderEffect::Append(record)
        } else {
            OrderEffect::Persist(record)
        });
    }

    /// The batch with everything needed to execute it, or a request for what is missing.
    fn ordered(&mut self, context: &mut Ctx<'_>, sequence: Sequence, digest: Digest) -> Option<Ordered> {
        let Some(batch) = self.batch(digest) else {
            self.want_batch(context, sequence, digest);
            return None;
        };
        if !self.gather_bodies(context, sequence, &batch) {
            return None;
        }
        let bodies = batch.references().map(|reference| self.bodies[&reference.digest].1.clone()).collect();
        Some(Ordered { sequence, view: self.view, batch, bodies, standing: None })
    }

    /// Keeps the view timer on the watched request that has waited longest.
    pub(super) fn watch_requests(&mut self, context: &mut Ctx<'_>) {
        if self.phase != Phase::Normal {
            return;
        }
        let still_waits = match self.view_timer {
            Some(ViewTimer::Request(client, timestamp)) => self.pool.waits(client, timestamp),
            Some(ViewTimer::Batch(sequence)) => sequence > self.committed,
            Some(ViewTimer::NewView) | None => false,
        };
        if still_waits {
            return;
        }
        match self.pool.oldest_watched() {
            Some((client, timestamp)) => {
                self.view_timer = Some(ViewTimer::Request(client, timestamp));
                let patience = if self.awaits_init { self.time_to_open(context) } else { self.view_timeout(context) };
                context.push(OrderEffect::SetTimer(PbftTimer::View, context.now + patience));
            }
            None if self.view_timer.is_some() => {
                self.view_timer = None;
                context.push(OrderEffect::CancelTimer(PbftTimer::View));
            }
            None => {}
        }
    }

    /// The time-out doubles with each view change without progress, up to a bound.
    pub(super) fn view_timeout(&self, context: &Ctx<'_>) -> Duration {
        let limits = &context.cluster.limits;
        limits.view_timeout.doubled(self.attempts, limits.view_timeout_max)
    }

    pub(super) fn view_deadline(&self, context: &Ctx<'_>) -> Instant {
        context.now + self.view_timeout(context)
    }
}

/// A proposal with its clients' proofs checked, which is the most of the work. So it is done for what may be accepted,
/// once all else is known to be right: what anybody else sends, or the primary at any other time, costs a MAC.
fn vouched(context: &Ctx<'_>, mut batch: Arc<Batch>) -> Arc<Batch> {
    Arc::make_mut(&mut batch).vouch(context.cluster, context.keyring);
    batch
}
