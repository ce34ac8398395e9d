//! A rest between two rounds.
//!
//! # What it is for
//! A round costs the same whatever it orders. One that begins as soon as the last one ends misses most of what there is
//! to order: the clients that were just answered have not asked again, and payloads are on their way, also those of
//! others, which only f + 1 can bring into the round together. Under load each round would order half of what waits for
//! it, and each request would take two rounds.
//!
//! # Steps
//! * Order 11. After a round that ordered something a replica asks all others whether they are there (PING), until
//!   n − f have answered (PONG), itself included; so often ([`LAPS`]), lap by lap. It rests until then, and until its
//!   own payloads are delivered reliably: it begins no round by itself, but joins one that f + 1 others have begun, as
//!   always (AB 3). What waits in its pool it sends (Order 2). On the channel's timer it asks those again who have not
//!   answered. There is no rest if the last two rounds ordered a request of one and the same client each, and nothing
//!   else: that client would wait for itself.
//!
//! # Why it is live
//! n − f replicas are correct, and answer at once, whatever else they wait for; and what a correct replica broadcasts
//! is delivered. (Unless it has lost its log, and somebody knows another payload under that number. Such a replica
//! rests for ever, and there are no more than f of them; the others begin the rounds.) No clock decides when a rest
//! ends, so that it is as long as messages take: a network that is ten times slower makes it ten times longer, like the
//! round. Liars can make it shorter, which is what it would be without them.
//!
//! # Cost
//! [`LAPS`] times two messages of a few bytes between each two replicas. A round has some thirty message delays, and
//! the rest adds twice [`LAPS`]; it orders twice as much.

use super::super::path::Path;
use super::message::{Lap, RitasMessage};
use super::replica::{Ctx, Rest, Ritas};
use crate::batch::Batch;
use crate::ids::ReplicaId;
use crate::protocols::total_order::OrderEffect;

/// How often all others are asked. In two laps a request comes from a client that was answered; in three messages its
/// payload is delivered reliably. Measured with 20 clients on one machine, fewer laps leave out more than they save,
/// and more of them take longer than what they bring in.
pub const LAPS: u8 = 6;

impl Ritas {
    /// Order 11, after a round that ordered this.
    pub(super) fn rest_after(&mut self, context: &mut Ctx<'_>, batch: &Batch) {
        let alone = match batch.entries() {
            [only] => only.inline().map(|request| request.client),
            _ => None,
        };
        let before = core::mem::replace(&mut self.alone, alone);
        let is_single = self.replicas.n() == 1;
        let lap = Lap { round: self.round(), number: if is_single { LAPS } else { 0 } };
        self.rest = (alone.is_none() || alone != before).then(|| Rest::in_lap(lap));
        self.ping(context);
        self.rest_or_wake(context);
    }

    /// Order 11. Asks those who have not answered.
    pub(super) fn ping(&self, context: &mut Ctx<'_>) {
        let Some(Rest { lap, answered }) = self.rest.filter(|rest| rest.lap.number < LAPS) else { return };
        context.step("Order 11");
        if answered.is_empty() {
            return context.push(OrderEffect::Broadcast(RitasMessage::Ping(lap)));
        }
        let me = context.me;
        for to in self.replicas.iter().filter(|id| *id != me && !answered.contains(*id)) {
            context.push(OrderEffect::Send(to, RitasMessage::Ping(lap)));
        }
    }

    /// Order 11.
    pub(super) fn on_ping(context: &mut Ctx<'_>, from: ReplicaId, lap: Lap) {
        context.step("Order 11");
        context.push(OrderEffect::Send(from, RitasMessage::Pong(lap)));
    }

    /// Order 11. Of a lap that is over there are always answers.
    pub(super) fn on_pong(&mut self, context: &mut Ctx<'_>, from: ReplicaId, lap: Lap) {
        let Some(rest) = self.rest.as_mut().filter(|rest| rest.lap == lap) else { return };
        context.step("Order 11");
        rest.answered.insert(from);
        if rest.answered.len() + 1 >= self.replicas.reachable() {
            *rest = Rest::in_lap(Lap { number: lap.number + 1, ..lap });
            self.ping(context);
        }
    }

    /// Order 11, at the end of a pass.
    pub(super) fn wake_if_rested(&mut self, context: &mut Ctx<'_>) {
        if self.chosen.is_empty() && self.rest.is_some_and(|rest| rest.lap.number >= LAPS) {
            self.rest = None;
            self.rest_or_wake(context);
        }
    }

    /// Whether rounds may begin here by themselves.
    fn rest_or_wake(&mut self, context: &mut Ctx<'_>) {
        let (rests, root) = (self.rest.is_some(), Path::atomic_broadcast());
        let outcomes = self.act(context.me, context.steps, |stack, scope| stack.rest(scope, root, rests));
        self.learn(context, outcomes);
    }
}
