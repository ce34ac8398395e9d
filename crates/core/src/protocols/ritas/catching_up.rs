//! Catching up: who asks for what it lacks before its timer, and how often it is answered.
//!
//! A process lets in the few rounds next to its own (ritas-F9), so each answer leads it only so far; the others go on
//! meanwhile. Who waited for the channel's timer each time would stay behind for as long as there is load. So whoever
//! hears from f + 1 that they are ahead says what it lacks at once, and again in each round that it comes to: once in
//! each, however many say that they are ahead. An answer may be long, and is given so often in an interval
//! ([`ANSWERS_MAX`]).

use super::atomic_broadcast::ROUNDS_AHEAD;
use super::message::Said;
use super::path::Layer;
use crate::ids::ReplicaId;
use crate::replicas::{ReplicaSet, Replicas};
use alloc::collections::BTreeMap;

/// How many summaries of a process are answered in an interval of the channel.
const ANSWERS_MAX: u32 = 32;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct CatchingUp {
    /// Who has spoken about a round that is far ahead of this process's, since it last asked because of that.
    ahead: ReplicaSet,
    /// The round in which it asked.
    asked_in: Option<u64>,
    /// How many summaries of each were answered in this interval.
    answers: BTreeMap<ReplicaId, u32>,
}

impl CatchingUp {
    /// Somebody speaks; perhaps about a round that this process, which is in that one, does not let in for a long time.
    pub(super) fn note(&mut self, from: ReplicaId, said: &Said, here: u64) {
        if said.path.number(Layer::Round).is_some_and(|round| round > here.saturating_add(ROUNDS_AHEAD)) {
            self.ahead.insert(from);
        }
    }

    /// Whether this process, which is in that round, asks now.
    pub(super) fn asks(&mut self, replicas: &Replicas, here: u64) -> bool {
        let asks = self.ahead.len() >= replicas.weak() && self.asked_in != Some(here);
        if asks {
            self.asked_in = Some(here);
            self.ahead = ReplicaSet::default();
        }
        asks
    }

    /// Whether a summary is answered.
    pub(super) fn answers(&mut self, from: ReplicaId) -> bool {
        let answers = self.answers.entry(from).or_default();
        let is_answered = *answers < ANSWERS_MAX;
        *answers += u32::from(is_answered);
        is_answered
    }

    /// An interval is over.
    pub(super) fn interval(&mut self) {
        self.answers.clear();
    }
}
