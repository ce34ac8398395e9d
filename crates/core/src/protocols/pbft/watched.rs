//! A view that is watched: what PBFT tells an [Aardvark](super::super::aardvark), and what it does when that finds that
//! the view has failed.

use super::PbftTimer;
use super::replica::{Ctx, Pbft, Phase};
use crate::ids::{ClientId, ReplicaId, View};
use crate::protocols::aardvark::{Measure, Watch};
use crate::protocols::total_order::OrderEffect;
use crate::time::{Duration, Instant};
use core::ops::Bound;

impl Pbft {
    /// What is expected of primaries: this instance is over.
    pub(crate) const fn take_watch(&mut self) -> Option<Watch> {
        self.watch.take()
    }

    /// Goes on expecting that, if it is watched. It has not begun yet. Returns what it has no use for.
    pub(crate) fn resume_watch(&mut self, watch: Watch) -> Option<Watch> {
        match &mut self.watch {
            Some(own) => *own = watch.resumed(),
            None => return Some(watch),
        }
        None
    }

    /// What was done since the last time, if it is watched: see [`Watch::take_measure`].
    pub(crate) fn take_measure(&mut self, now: Instant) -> Option<Measure> {
        self.watch.as_mut().map(|watch| watch.take_measure(now))
    }

    /// The first turn begins.
    pub(super) fn start_watch(&mut self, context: &mut Ctx<'_>) {
        if let Some(watch) = &mut self.watch {
            watch.entered(context.now, self.replicas.primary(self.view));
            let look = Watch::look_interval(context.cluster.limits.view_timeout);
            context.push(OrderEffect::SetTimer(PbftTimer::Watch, context.now + look));
        }
    }

    /// Time to look at the view; and perhaps its turn is over.
    pub(super) fn on_watch_timeout(&mut self, context: &mut Ctx<'_>) {
        let behind = self.is_behind(context);
        let waits_for_primary = self.waits_for_primary();
        let view_timeout = self.view_timeout(context);
        let Some(watch) = &mut self.watch else { return };
        let look = Watch::look_interval(context.cluster.limits.view_timeout);
        context.push(OrderEffect::SetTimer(PbftTimer::Watch, context.now + look));
        let is_blind = self.phase != Phase::Normal || behind;
        if is_blind {
            watch.pause(context.now);
        }
        let is_turn = watch.look(context.now, view_timeout);
        if is_blind {
            return;
        }
        if !is_turn {
            return self.complain(context);
        }
        let oldest = self.pool.oldest_unproposed().map(|(_, request)| request.digest());
        watch.judge(context.now, view_timeout, waits_for_primary, oldest);
        self.watch_oldest(context);
        self.complain(context);
    }

    /// Aardvark 6. Says that the view has failed, if it is time to.
    fn complain(&mut self, context: &mut Ctx<'_>) {
        let Some(failed) = self.watch.as_mut().and_then(Watch::complaint) else { return };
        context.step(failed.step());
        self.send_status(context);
        self.leave_failed(context);
    }

    /// Aardvark 6. Another replica says of this view that it has failed.
    pub(super) fn on_complaint(&mut self, context: &mut Ctx<'_>, from: ReplicaId) {
        if let Some(watch) = &mut self.watch {
            watch.complained(from);
            self.leave_failed(context);
        }
    }

    /// Aardvark 6. Leaves the view if this replica and f others find that it has failed.
    fn leave_failed(&mut self, context: &mut Ctx<'_>) {
        let Some(failed) = self.watch.as_ref().and_then(|watch| watch.leaves(self.replicas.weak())) else { return };
        let next = self.next_view(context);
        if self.phase != Phase::Normal || !self.may_vote_in(next) {
            return;
        }
        context.step("Aardvark 6");
        if failed.is_suspicion() {
            self.be_careful(context);
        }
        self.leave_patiently(context, next, failed.reason());
    }

    /// Leaves for a view, perhaps because others do. If this one got on and was slow, the next one has as long as it
    /// had.
    pub(super) fn leave_patiently(&mut self, context: &mut Ctx<'_>, view: View, reason: &'static str) {
        let (weak, view_timeout) = (self.replicas.weak(), self.view_timeout(context));
        let watch = self.watch.as_mut().filter(|_| self.phase == Phase::Normal);
        let was_slow = watch.is_some_and(|watch| {
            watch.left(context.now, view_timeout, weak);
            watch.leaves_patience(weak)
        });
        if was_slow {
            self.change_view(context, view, reason);
        } else {
            self.start_view_change(context, view, reason);
        }
    }

    /// How long a primary may take to begin its view, once 2f+1 have left for it (Aardvark 3, if it is watched). It
    /// doubles as the view time-out does, up to the same bound.
    pub(super) fn time_to_begin(&self, context: &Ctx<'_>) -> Duration {
        let (limits, primary) = (&context.cluster.limits, self.replicas.primary(self.view));
        let watched = self.watch.as_ref().map(|watch| watch.time_to_begin(primary, limits.view_timeout));
        let first = watched.unwrap_or(limits.view_timeout);
        first.doubled(self.attempts, limits.view_timeout_max)
    }

    /// How long it may take until that is ordered with which the instance begins (Aardvark 3, if it is watched). It
    /// doubles as well.
    pub(super) fn time_to_open(&self, context: &Ctx<'_>) -> Duration {
        let limits = &context.cluster.limits;
        let first = if self.watch.is_some() { Watch::heartbeat(limits.view_timeout) } else { limits.view_timeout };
        first.doubled(self.attempts, limits.view_timeout_max)
    }

    /// Aardvark 2. What has waited longest to be proposed, since before the turn that is over, is watched.
    fn watch_oldest(&mut self, context: &mut Ctx<'_>) {
        let Some(watch) = &mut self.watch else { return };
        let turn = watch.next_turn(self.pool.next_ticket());
        let waits = self.pool.oldest_unproposed().filter(|(ticket, _)| *ticket < turn);
        if let Some(client) = waits.map(|(_, request)| request.client) {
            context.step("Aardvark 2");
            self.watch(context, client);
            self.remind_of(context, client);
        }
    }

    /// The same, once it is watched: the second time makes it a reminder.
    fn remind_of(&mut self, context: &mut Ctx<'_>, client: ClientId) {
        let primary = self.replicas.primary(self.view);
        let Some(watch) = self.watch.as_mut().filter(|_| primary != context.me) else { return };
        if let Some(request) = self.pool.watched_to_pass_on(client, &context.cluster.limits) {
            context.push(OrderEffect::Forward(primary, request.clone()));
            watch.passed_on(request.digest());
        }
    }

    /// Whether something is watched that the primary has to propose, and nothing of what it proposed is under way.
    fn waits_for_primary(&self) -> bool {
        let mut after = self.slots.range((Bound::Excluded(self.committed), Bound::Unbounded));
        // A vote alone says nothing of the primary.
        let in_flight = after.any(|(_, slot)| slot.accepted(self.view).is_some());
        !in_flight && self.pool.has_watched_to_propose()
    }

    /// Whether others have gone on without this replica, or the history is not there yet that the instance begins with:
    /// what it executes says nothing of the view then.
    fn is_behind(&self, context: &Ctx<'_>) -> bool {
        self.awaits_init || self.is_fetching(context) || !self.wanted_batches.is_empty() || self.abstention.is_some()
    }
}
