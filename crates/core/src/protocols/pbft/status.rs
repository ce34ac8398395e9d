//! Retransmission: a replica that makes no progress says what it has, the others send what it lacks.
//!
//! The paper retransmits over datagrams in several ways; one STATUS message replaces them. It also carries the repair
//! of pbft-F21: who knows batches to be decided says so, and f+1 such statements let a replica catch up that the
//! primary leaves out of its quorums.

use super::PbftTimer;
use super::message::{PbftMessage, Position, PrePrepare, Status, Vote};
use super::replica::{Ctx, Pbft, Phase, ViewTimer};
use crate::ids::ReplicaId;
use crate::protocols::total_order::{OrderEffect, TotalOrder};
use alloc::boxed::Box;
use core::ops::Bound;

/// How many status intervals without any need to speak pass before a replica says what it has all the same: somebody
/// who missed the last batch before an idle time learns of it.
const HEARTBEAT_INTERVALS: u32 = 5;

/// While nothing helps, a replica says what it has after 1, 2, 4, then every 8 intervals: on a slow link, answers that
/// come faster than they travel would only queue up.
const BACKOFF_INTERVALS_MAX: u32 = 8;

/// Whole batches sent in answer to one STATUS; more are fetched by digest.
const BATCHES_PER_STATUS: usize = 4;

impl Pbft {
    fn status(&self) -> Status {
        Status {
            view: self.view,
            changing: self.phase == Phase::Changing,
            stable: self.low_water_mark(),
            committed: self.committed,
            begun: self.begun.view(),
            way: self.begun.digest(),
            abstaining: !self.may_vote(),
            failing: self.phase == Phase::Normal && self.watch.as_ref().is_some_and(|watch| watch.failed().is_some()),
        }
    }

    pub(super) fn send_status(&mut self, context: &mut Ctx<'_>) {
        context.push(OrderEffect::Broadcast(PbftMessage::Status(self.status())));
    }

    pub(super) fn on_status_timeout(&mut self, context: &mut Ctx<'_>) {
        let interval = context.cluster.limits.status_interval;
        context.push(OrderEffect::SetTimer(PbftTimer::Status, context.now + interval));
        let now = (self.view, self.phase == Phase::Changing, self.committed);
        let unfinished = self.phase == Phase::Changing
            || self.pool.len() > 0
            || self.slots.keys().next_back().is_some_and(|last| *last > self.committed)
            || !self.wanted_batches.is_empty()
            || self.abstention.is_some();
        let stuck = unfinished && self.status.last == Some(now);
        self.status.last = Some(now);
        self.status.stuck_intervals = if stuck { self.status.stuck_intervals + 1 } else { 0 };
        if stuck {
            self.watch_batch(context);
        }
        let stuck = stuck && is_due(self.status.stuck_intervals);
        self.status.idle_intervals += 1;
        if stuck || (!unfinished && self.status.idle_intervals >= HEARTBEAT_INTERVALS) {
            self.status.idle_intervals = 0;
            self.send_status(context);
        }
        self.leave_with_others(context);
        if stuck {
            self.ask_again(context);
            self.ask_what_is_forgotten(context);
        }
        self.remind_primary(context);
    }

    /// Passes the watched request that has waited longest on again. The primary may have had no room for it, or given
    /// its place to others; or the message got lost. For one request of each other replica a correct primary has room,
    /// so that by its silence it shows that it is none. It reminds itself in the same way: it would leave its own view
    /// for a request that the reminders of others keep behind them.
    fn remind_primary(&mut self, context: &mut Ctx<'_>) {
        let oldest = self.pool.oldest_watched();
        let waits = oldest.is_some() && oldest == self.status.oldest_watched;
        self.status.oldest_watched = oldest;
        let primary = self.replicas.primary(self.view);
        let Some((client, _)) = oldest.filter(|_| waits && self.phase == Phase::Normal) else { return };
        if primary == context.me {
            self.pool.remind(primary, client);
        } else if let Some(request) = self.pool.to_pass_on(&context.cluster.limits).next() {
            context.push(OrderEffect::Forward(primary, request.clone()));
        }
    }

    /// Watches the first batch that is not committed here, without progress for a whole interval, if the primary owes
    /// it to everybody: f+1 replicas say that it prepared in this view, or NEW-VIEW chose it. A correct primary's
    /// batch would commit then: f+1 PREPAREs of correct replicas let all others accept it, and its bodies are there.
    /// No client's request may remind anybody of it: 2f+1 tentative replies have answered it already.
    ///
    /// So what one correct replica commits, all will, whether clients ask or not. Take the first position where some
    /// did and some did not. If f+1 did, their DECIDEDs are enough. Else f+1 or more did not, and f+1 correct replicas
    /// say that it prepared, those included that have left the view since ([`Self::help_with_votes`]); or a later view
    /// chose it. So those who have not committed it leave the view, if they have not left already, and pull the others
    /// along.
    fn watch_batch(&mut self, context: &mut Ctx<'_>) {
        let sequence = self.committed.next();
        let Some(slot) = self.slots.get(&sequence).filter(|slot| slot.committed.is_none()) else { return };
        let chosen = slot.proposed.as_ref().is_some_and(|proposed| proposed.reproposed);
        let owed = chosen || slot.commits.winner(self.view, self.replicas.weak()).is_some();
        if owed && self.phase == Phase::Normal && self.view_timer.is_none() {
            self.view_timer = Some(ViewTimer::Batch(sequence));
            context.push(OrderEffect::SetTimer(PbftTimer::View, self.view_deadline(context)));
        }
    }

    /// Asks the next replica for what the last one did not send.
    fn ask_again(&mut self, context: &mut Ctx<'_>) {
        let mut batches = core::mem::take(&mut self.wanted_batches);
        for (&digest, (sequence, asked)) in &mut batches {
            *asked = self.someone(context, self.replicas.next(*asked));
            let position = Position { sequence: *sequence, digest };
            context.push(OrderEffect::Send(*asked, PbftMessage::FetchBatch(position)));
        }
        self.wanted_batches = batches;
        let mut bodies = core::mem::take(&mut self.wanted_bodies);
        for (&digest, (_, _, asked)) in &mut bodies {
            *asked = self.someone(context, self.replicas.next(*asked));
            context.push(OrderEffect::Send(*asked, PbftMessage::FetchRequest(digest)));
        }
        self.wanted_bodies = bodies;
    }

    /// Somebody says what it has.
    pub(super) fn on_status(&mut self, context: &mut Ctx<'_>, from: ReplicaId, theirs: Status) {
        if theirs.failing && !theirs.changing && theirs.view == self.view {
            self.on_complaint(context, from);
        }
        let pause = context.cluster.limits.status_interval.0 / 2;
        let before = self.status.answered.get(&from).copied();
        if before.is_some_and(|(at, _)| (context.now - at).0 < pause) {
            return;
        }
        let times = before.map_or(0, |(_, times)| times.wrapping_add(1));
        self.status.answered.insert(from, (context.now, times));
        if theirs.stable < self.low_water_mark() {
            context.push(OrderEffect::Send(from, PbftMessage::Stable(Box::new(self.stable.claim()))));
        }
        context.push(OrderEffect::VoteAgain(from, theirs.stable.max(self.low_water_mark())));
        self.help_with_view(context, from, &theirs, times);
        self.help_with_decided(context, from, &theirs);
        if !theirs.changing && self.may_vote() {
            self.help_with_votes(context, from, &theirs);
        }
        self.renew(context, &theirs);
    }

    /// The view that they missed, also if everybody has left it since: the choice of a later one is certain only among
    /// replicas that know the same view to have begun, and how (`decision.rs`). If it began in several ways, one each
    /// time.
    fn help_with_view(&self, context: &mut Ctx<'_>, from: ReplicaId, theirs: &Status, times: usize) {
        let (begun, ways) = (self.begun.view(), self.begun.ways());
        let lacks = theirs.begun < begun || (theirs.begun == begun && theirs.way != self.begun.digest());
        if let Some(turn) = times.checked_rem(ways.len()).filter(|_| lacks) {
            context.push(OrderEffect::Send(from, PbftMessage::NewView(alloc::sync::Arc::new(ways[turn].claim()))));
        }
        let behind = theirs.view < self.view || (theirs.view == self.view && theirs.changing);
        if let Some(mine) = self.view_changes.get(&context.me).filter(|_| behind && self.phase == Phase::Changing) {
            context.push(OrderEffect::Send(from, PbftMessage::ViewChange(Box::new(mine.signed.claim()))));
        }
    }

    /// Decided values: what pbft-F21 asks to be pushed.
    fn help_with_decided(&self, context: &mut Ctx<'_>, from: ReplicaId, theirs: &Status) {
        // Whoever claims the largest number gets nothing.
        for (&sequence, slot) in self.slots.range((Bound::Excluded(theirs.committed), Bound::Unbounded)) {
            if sequence > self.committed {
                break;
            }
            if let Some(digest) = slot.committed {
                let position = Position { sequence, digest };
                context.push(OrderEffect::Send(from, PbftMessage::Decided(position)));
            }
        }
    }

    /// The proposals and votes of their view that they may have missed. Whoever has left that view does not vote in it
    /// any more, but says again that a batch prepared there, as its VIEW-CHANGE does. What is stable needs no votes.
    fn help_with_votes(&self, context: &mut Ctx<'_>, from: ReplicaId, theirs: &Status) {
        let same_view = self.phase == Phase::Normal && theirs.view == self.view;
        let mut batches = 0;
        let known = theirs.committed.max(self.low_water_mark());
        for (&sequence, slot) in self.slots.range((Bound::Excluded(known), Bound::Unbounded)) {
            if let Some(proposed) = slot.accepted(self.view).filter(|_| same_view) {
                if self.leads(context) && !proposed.reproposed && batches < BATCHES_PER_STATUS {
                    batches += 1;
                    if let Some(batch) = proposed.batch.clone() {
                        let pre_prepare = PrePrepare { view: self.view, sequence, batch };
                        context.push(OrderEffect::Send(from, PbftMessage::PrePrepare(pre_prepare)));
                    }
                }
                if slot.prepares.of(context.me) == Some((self.view, proposed.digest)) {
                    let vote = Vote { view: self.view, sequence, digest: proposed.digest };
                    context.push(OrderEffect::Send(from, PbftMessage::Prepare(vote)));
                }
            }
            if let Some((view, digest)) = slot.prepared.filter(|(view, _)| *view == theirs.view) {
                context.push(OrderEffect::Send(from, PbftMessage::Commit(Vote { view, sequence, digest })));
            }
        }
    }
}

/// Whether to speak after so many intervals without progress.
const fn is_due(stuck_intervals: u32) -> bool {
    stuck_intervals.is_power_of_two() || stuck_intervals.is_multiple_of(BACKOFF_INTERVALS_MAX)
}
