//! Catching up: who asks for what it lacks before its timer, and how often it is answered.
//!
//! A process lets in the few rounds next to its own (ritas-F9), so each answer leads it only so far; the others go on
//! meanwhile. Who waited for the channel's timer each time would stay behind for as long as there is load. So whoever
//! hears from f + 1 that they are ahead says what it lacks at once, and again in each round that it comes to: once in
//! each, however many say that they are ahead. An answer may be long: there are so many in an interval
//! ([`ANSWERS_MAX`]), with so many bytes ([`ANSWER_BYTES_MAX`]).

use super::atomic_broadcast::ROUNDS_AHEAD;
use super::message::Said;
use super::path::Layer;
use crate::ids::ReplicaId;
use crate::replicas::{ReplicaSet, Replicas};
use alloc::collections::BTreeMap;

/// How many summaries of a process are answered in an interval of the channel.
const ANSWERS_MAX: u32 = 32;

/// And bytes of values in these answers, but for the last of them. What is left the next interval's answers say.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct CatchingUp {
    /// Who has spoken about a round that is far ahead of this process's, since it last asked because of that.
    ahead: ReplicaSet,
    /// The round in which it asked.
    asked_in: Option<u64>,
    /// How many summaries of each were answered in this interval, and with how many bytes.
    answers: BTreeMap<ReplicaId, (u32, usize)>,
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

    /// With how many bytes a summary may be answered; none if it is not.
    pub(super) fn room(&mut self, from: ReplicaId) -> Option<usize> {
        let (answers, bytes) = self.answers.entry(from).or_default();
        if *answers >= ANSWERS_MAX {
            return None;
        }
        *answers += 1;
        Some(ANSWER_BYTES_MAX.saturating_sub(*bytes))
    }

    /// It was, with so many.
    pub(super) fn answered(&mut self, to: ReplicaId, bytes: usize) {
        self.answers.entry(to).or_default().1 += bytes;
    }

    /// An interval is over.
    pub(super) fn interval(&mut self) {
        self.answers.clear();
    }
}
