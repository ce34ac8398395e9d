//! A replica that lost its log (rule A of `docs/durability.md`): it may have said anything that the protocol allows,
//! and must not say the opposite. It learns, and is silent about what it may have spoken about. Until then it counts as
//! one of the f faulty replicas.
//!
//! # Steps
//! * Order 8. It asks all others where they are (LOST), until 2f+1 have answered (ROUND). LOST carries the time of the
//!   question and ROUND repeats it: what was said before the loss, and comes late or again, does not count.
//! * Order 9. When it has come to the rounds that 2f+1 of them named, it writes down what it stays silent about: rounds
//!   up to a few after the last of these, and the one that it is in, of which its log has no beginning; of each other
//!   sender the messages that it hears of then; and all of its own messages. It speaks about all else, and votes for
//!   states again when it has come to such a round.
//! * Order 10. While nobody orders anything no round follows. So who hears LOST of somebody who has come as far as
//!   itself, and has nothing on its way, sends an empty payload; and it is asked until messages of n − 1 − f others
//!   have come to the end of that window. For one that is behind no round follows: on a slow link it would run after
//!   checkpoints that move on because of it. Nor for one that is ahead: it asks again when this replica is there, too,
//!   and a liar could name a round that is ahead of all that ever come.
//!
//! # Why it is safe
//! Let a be the replica, in whose place there may be up to f−1 other faulty ones. It spoke about rounds up to
//! [`ROUNDS_AHEAD`] after the one that it was in, r. A correct process had decided round r − 1 by its own binary
//! consensus, which n − f processes had come to: n − 2f − 1 correct others at least. As 2f+1 others answer, one of
//! these is among them (or r = 0), and names r − 1 or more. About messages it spoke within the windows that it had in
//! round r; windows only move on. Its own messages it does not number again.
//!
//! # Why it ends
//! A liar that names a late round keeps nobody silent: it counts when that is reached, and the other 2f+1 are correct.
//! What the silent one does not send, its clients send to all when they retry; it passes on what it is asked.
//!
//! # What a liar can do
//! It can ask for ever, and in every round. Then empty rounds follow one another, as they do if it sends payloads of
//! its own, which nobody can tell from those of a correct replica; with LOST the others send as many.
//!
//! [`ROUNDS_AHEAD`]: super::super::atomic_broadcast::ROUNDS_AHEAD

use super::super::atomic_broadcast::{HEARD, ROUNDS_AHEAD};
use super::super::path::Path;
use super::super::scope::Silence;
use super::message::{RitasMessage, Whereabouts};
use super::record::RitasRecord;
use super::replica::{Abstention, Ctx, Ritas};
use crate::ids::ReplicaId;
use crate::protocols::total_order::{OrderEffect, TotalOrder};

impl Ritas {
    /// The log is a new one, or says that it was: silent about this, or about everything.
    pub(super) fn abstain(&mut self, silence: Option<Silence>) {
        self.abstention = silence.is_none().then(Abstention::default);
        self.silence = Some(silence.unwrap_or_else(|| Silence::of_all(&self.replicas)));
    }

    /// What it is silent about, once it knows.
    pub(super) fn silence_if_known(&self) -> Option<Silence> {
        self.silence.clone().filter(|_| self.abstention.is_none())
    }

    /// Order 8, after a start.
    pub(super) fn begin_to_ask(&mut self, context: &mut Ctx<'_>) {
        if let Some(abstention) = &mut self.abstention {
            abstention.question = context.now;
            context.push(OrderEffect::Persist(RitasRecord::Abstain(None)));
        }
        self.ask_what_is_forgotten(context);
        self.try_to_speak_again(context);
    }

    /// Whether others may not go on with it as with any other: it is silent about the round that it is in, or about
    /// what comes next of more than f others.
    fn is_mute(&self) -> bool {
        let Some(silence) = &self.silence else { return false };
        let standing = self.stack.standing(Path::atomic_broadcast());
        let is_heard = |(sender, from): (ReplicaId, &u64)| standing.is_some_and(|at| at.first_of(sender) >= *from);
        let heard = self.replicas.iter().zip(&silence.messages_from).filter(|at| is_heard(*at)).count();
        !self.may_vote() || heard + self.replicas.faults() + 1 < self.replicas.n()
    }

    /// Order 8; and when it knows all that it asked for, Order 10, until it is not mute any more.
    pub(super) fn ask_what_is_forgotten(&self, context: &mut Ctx<'_>) {
        if self.is_mute() {
            context.step("Order 8");
            let question = self.abstention.as_ref().map_or(context.now, |abstention| abstention.question);
            let asked = Whereabouts { question, round: self.round() };
            context.push(OrderEffect::Broadcast(RitasMessage::Lost(asked)));
        }
    }

    /// Order 8 and 10: somebody lost its log.
    pub(super) fn on_lost(&mut self, context: &mut Ctx<'_>, from: ReplicaId, asked: Whereabouts) {
        context.step("Order 10");
        let here = Whereabouts { question: asked.question, round: self.round() };
        self.owes_round |= self.silence.is_none() && asked.round == here.round;
        context.push(OrderEffect::Send(from, RitasMessage::Round(here)));
    }

    /// Order 8: the answer.
    pub(super) fn on_round(&mut self, context: &mut Ctx<'_>, from: ReplicaId, here: Whereabouts) {
        if let Some(abstention) = self.abstention.as_mut().filter(|abstention| abstention.question == here.question) {
            abstention.rounds.entry(from).or_insert(here.round);
        }
        self.try_to_speak_again(context);
    }

    /// Order 9.
    pub(super) fn try_to_speak_again(&mut self, context: &mut Ctx<'_>) {
        let (round, strong) = (self.round(), self.replicas.strong());
        let Some(abstention) = &self.abstention else { return };
        let reached = || abstention.rounds.values().copied().filter(|named| *named <= round);
        let enough = strong.min(self.replicas.n() - 1).max(1);
        let Some(last) = reached().max().filter(|_| reached().count() >= enough) else { return };
        context.step("Order 9");
        let standing = self.stack.standing(Path::atomic_broadcast());
        let first = |sender| standing.map_or(0, |standing| standing.first_of(sender));
        let messages_from = self.replicas.iter().map(|sender| match sender == context.me {
            true => u64::MAX,
            false => first(sender) + HEARD,
        });
        let rounds_from = (last + 2 + ROUNDS_AHEAD).max(round + 1);
        let silence = Silence { rounds_from, messages_from: messages_from.collect() };
        context.push(OrderEffect::Persist(RitasRecord::Abstain(Some(silence.clone()))));
        self.abstain(Some(silence));
    }
}
