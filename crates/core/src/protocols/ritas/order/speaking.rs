//! What is written down, what is said, what is said again, and what is found after a crash: Order 7.

use super::super::path::Path;
use super::super::scope::Effect;
use super::super::stack::Stack;
use super::super::statements::packed;
use super::message::{Progress, RitasMessage};
use super::record::{Over, RitasRecord, RitasTimer};
use super::replica::{Ctx, Ritas};
use crate::auth::{Certificate, Claimed};
use crate::checkpoint::Checkpoint;
use crate::cluster::Cluster;
use crate::ids::{ReplicaId, Sequence};
use crate::machine::StepsTaken;
use crate::protocols::total_order::{Delivery, OrderEffect};
use crate::rejection::Rejection;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Ritas {
    /// Writes down what binds, and puts what is to be said aside until the end of the pass.
    pub(super) fn persist(&mut self, context: &mut Ctx<'_>) {
        for effect in core::mem::take(&mut self.effects) {
            match effect {
                Effect::Say(said) => {
                    if said.statement.binds() {
                        self.pace.moved();
                        context.push(OrderEffect::Persist(RitasRecord::Said(Box::new(said.clone()))));
                    }
                    self.said.push(said);
                }
                Effect::Keep(said) => context.push(OrderEffect::Persist(RitasRecord::Said(Box::new(said)))),
                Effect::Tell(to, said) => self.told.entry(to).or_default().push(said),
                Effect::Reject(from, reason) => context.reject(from, reason),
            }
        }
    }

    /// Says what this pass has come to, in as few messages as it fits into.
    pub(super) fn speak(&mut self, context: &mut Ctx<'_>) {
        for statements in packed(core::mem::take(&mut self.said)) {
            context.push(OrderEffect::Broadcast(RitasMessage::Said(statements)));
        }
        for (to, said) in core::mem::take(&mut self.told) {
            for statements in packed(said) {
                context.push(OrderEffect::Send(to, RitasMessage::Said(statements)));
            }
        }
    }

    /// Order 7.
    pub(super) fn on_channel_timeout(&mut self, context: &mut Ctx<'_>) {
        context.push(OrderEffect::SetTimer(RitasTimer::Channel, context.now + context.cluster.limits.status_interval));
        self.catching_up.interval();
        self.pool.forget(context.is_over);
        self.vouch_for_arrived(context);
        self.ask_what_is_forgotten(context);
        self.ping(context);
        let stands = (self.round(), self.stack.len());
        if self.pace.interval(stands) {
            self.say_what_is_lacking(context);
        }
    }

    fn say_what_is_lacking(&mut self, context: &mut Ctx<'_>) {
        let summaries = self.act(context.me, context.steps, |stack, scope| stack.tick(scope, true));
        self.persist(context);
        context.step("Order 7");
        for (to, summary) in summaries {
            let progress = Progress { summary, stable: self.low_water_mark() };
            context.push(OrderEffect::Send(to, RitasMessage::Progress(progress)));
        }
    }

    /// Order 7.
    pub(super) fn catch_up(&mut self, context: &mut Ctx<'_>) {
        let here = self.round();
        if self.catching_up.asks(&self.replicas, here) {
            self.say_what_is_lacking(context);
        }
    }

    /// Order 6 and 7. Another replica says what it has come to.
    pub(super) fn on_progress(&mut self, context: &mut Ctx<'_>, from: ReplicaId, progress: &Progress) {
        if progress.stable < self.low_water_mark() {
            context.push(OrderEffect::Send(from, RitasMessage::Stable(Box::new(self.stable.claim()))));
        }
        context.push(OrderEffect::VoteAgain(from, progress.stable.max(self.low_water_mark())));
        let Some(room) = self.catching_up.room(from) else {
            return context.reject(from, Rejection::Overload);
        };
        let summary = &progress.summary;
        let said = self.act(context.me, context.steps, |stack, scope| stack.on_summary(scope, from, summary, room));
        self.catching_up.answered(from, said);
        self.persist(context);
    }

    /// Order 6. Somebody proves that a checkpoint is stable.
    pub(super) fn on_stable(&self, context: &mut Ctx<'_>, from: ReplicaId, shown: Claimed<Certificate<Checkpoint>>) {
        context.prove(from, shown, self.low_water_mark(), self.replicas.strong());
    }

    /// Makes the stack, where the state says that it stands.
    pub(super) fn prepare(&mut self, cluster: &Cluster, me: ReplicaId) {
        if self.is_prepared {
            return;
        }
        self.is_prepared = true;
        self.stack.set_variant(Self::variant(cluster));
        if let Some(standing) = self.begins_at.take() {
            let steps = &mut StepsTaken::default();
            let outcomes =
                self.act(me, steps, |stack, scope| stack.resume_at(scope, Path::atomic_broadcast(), standing));
            assert!(outcomes.is_empty() && self.effects.is_empty(), "nothing was said before the log is replayed");
        }
    }

    /// Replays one record, oldest first. Nothing is executed meanwhile: the state stays where it was restored.
    pub(super) fn replay_record(&mut self, me: ReplicaId, record: RitasRecord) {
        let steps = &mut StepsTaken::default();
        match record {
            RitasRecord::Said(said) => {
                self.act(me, steps, |stack, scope| stack.replay(scope, *said));
            }
            RitasRecord::Over(over) => {
                let Over { path, value } = *over;
                self.act(me, steps, |stack, scope| stack.replay_over(scope, path, value));
            }
            RitasRecord::Delivered(delivered) => {
                // A snapshot's records say again what older segments, if they are still there, have said.
                if delivered.sequence == self.last_logged().next() {
                    let standing = delivered.standing.clone();
                    self.batches.insert(delivered.sequence, delivered);
                    let outcomes =
                        self.act(me, steps, |stack, scope| stack.resume_at(scope, Path::atomic_broadcast(), standing));
                    assert!(outcomes.is_empty(), "what was decided is found when all is replayed");
                }
            }
            RitasRecord::Stable(certificate) => self.logged_stable = Some(certificate.recalled()),
            RitasRecord::Abstain(silence) => self.abstain(silence),
        }
        assert!(self.effects.is_empty(), "nothing is said while the log is replayed");
    }

    /// The last batch that the log has.
    fn last_logged(&self) -> Sequence {
        self.batches.keys().next_back().copied().unwrap_or(self.delivered)
    }

    /// What the log has is delivered again, and what follows from it is found.
    pub(super) fn resume(&mut self, context: &mut Ctx<'_>) {
        let restored = self.delivered;
        self.delivered = self.last_logged();
        self.deliver_again(context, restored);
        let outcomes = self.act(context.me, context.steps, Stack::resume);
        self.learn(context, outcomes);
        // What the log proves to be stable: to be taken up if it is executed again, to be fetched if it is not.
        let proofs: Vec<_> = self.logged_stable.take().into_iter().chain(self.stable.certificate().cloned()).collect();
        for certificate in proofs {
            context.push(OrderEffect::Deliver(Delivery::Proved(certificate)));
        }
    }

    /// What recreates this state above the stable checkpoint.
    pub(super) fn records_above_stable(&self, me: ReplicaId) -> Vec<RitasRecord> {
        let abstain = self.silence.is_some().then(|| RitasRecord::Abstain(self.silence_if_known()));
        let over = self.stack.own_decisions(me).into_iter();
        let over = over.map(|(path, value)| RitasRecord::Over(Box::new(Over { path, value })));
        let said = self.stack.own_statements(me).into_iter().map(|said| RitasRecord::Said(Box::new(said)));
        let delivered = self.batches.values().cloned().map(RitasRecord::Delivered);
        abstain.into_iter().chain(said).chain(over).chain(delivered).collect()
    }
}
