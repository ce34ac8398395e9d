//! What a replica knows about what it forgot, if it lost its log: rule A of [`crate::compositions`], which asks others.

use super::HistoryRecord;
use crate::cluster::Cluster;
use crate::ids::{InstanceId, ReplicaId};
use crate::time::Instant;
use alloc::collections::BTreeMap;

/// The last instance in which a replica may have spoken that does not know yet.
const UNKNOWN: InstanceId = InstanceId(u64::MAX);

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Amnesia {
    /// The last instance in which it may have spoken.
    until: InstanceId,
    /// When it asked the others.
    question: Instant,
    /// What each said first.
    answers: BTreeMap<ReplicaId, InstanceId>,
}

impl Amnesia {
    /// The log is lost.
    pub(crate) const fn total() -> Self {
        Self::until(UNKNOWN)
    }

    /// The new log says up to where.
    pub(crate) const fn until(until: InstanceId) -> Self {
        Self { until, question: Instant(0), answers: BTreeMap::new() }
    }

    /// What the new log says, whenever it begins again.
    pub(crate) const fn record(&self) -> HistoryRecord {
        HistoryRecord::Abstain(self.until)
    }

    /// Amnesia 1: asks at this time.
    pub(crate) const fn ask(&mut self, now: Instant) {
        self.question = now;
    }

    /// Amnesia 1: when it asked, if it still has to know.
    pub(crate) fn question(&self) -> Option<Instant> {
        Some(self.question).filter(|_| self.until == UNKNOWN)
    }

    /// Amnesia 1: an answer to the question of that time.
    pub(crate) fn note_answer(&mut self, from: ReplicaId, instance: InstanceId, question: Instant) {
        if self.question == question {
            self.answers.entry(from).or_insert(instance);
        }
    }

    /// What is true between steps.
    pub(crate) fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        assert!(self.answers.keys().all(|id| cluster.replicas.contains(*id)), "replicas answer");
        assert!(!self.answers.contains_key(&me), "who has forgotten does not ask itself");
        assert!(self.until.0 > 0, "what it forgot it may have said in some instance");
    }

    /// Amnesia 3: an instance is opened. Whether the replica may speak in it.
    pub(crate) fn lets_speak(amnesia: &mut Option<Self>, instance: InstanceId) -> bool {
        amnesia.take_if(|amnesia| amnesia.until < instance);
        amnesia.is_none()
    }

    /// Amnesia 3, in an instance, when so many answers are enough. Whether they have become enough now.
    pub(crate) fn has_enough_answers(&mut self, here: InstanceId, enough: usize) -> bool {
        let reached = self.answers.values().copied().filter(|instance| *instance <= here);
        match reached.clone().max() {
            Some(latest) if self.until == UNKNOWN && reached.count() >= enough => {
                self.until = InstanceId(latest.0 + 1);
                true
            }
            _ => false,
        }
    }
}
