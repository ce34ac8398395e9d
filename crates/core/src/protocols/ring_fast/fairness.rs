//! Does a ring serve this client as it serves others? Section 5.3.3 of the thesis.
//!
//! A replica that is an entry may let a client's requests lie, and as an exit its answers, and be quick with everybody
//! else's: the ring is as fast as ever, and this client waits. It cannot tell from what it sees of its own requests.
//!
//! # Steps
//! * Fairness 1. Now and then the client asks all replicas how long the requests take whose entry they are.
//! * Fairness 2. Of the last answers it takes the (2f+1)-th smallest: no larger than the largest right one, and no
//!   smaller than the (f+1)-th smallest right one. Four times that is T_c, when it asks everybody instead of waiting
//!   longer; within the bounds that clients' patience has anyway.
//! * Fairness 3. An entry whose request was not answered in time is passed over: by choosing the timestamps of its
//!   requests a client chooses their entries. For 8 requests the first time, then twice as many each time, up to 1,024,
//!   until it serves one in time. f liars are f entries and f exits; if more than 2f entries are slow it is not about
//!   this client, and none is passed over.
//!
//! # Deviations from the thesis
//! The request that is asked again is the same, whoever is its entry (ring-F10, ring-F18). Fairness 3 is ours: without
//! it each liar costs T_c in every n-th request (ring-F19).

use crate::cluster::Cluster;
use crate::ids::ReplicaId;
use crate::protocols::speculative::PassedOver;
use crate::replicas::Replicas;
use crate::time::Duration;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Fairness 1: requests between two questions, and before the first.
const ASK_EVERY: u64 = 64;
const ASK_AFTER: u64 = 4;

/// Fairness 2: 1 + ε. In a busy ring every hundredth request takes more than twice the average.
const ALLOWANCE: u64 = 4;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Fairness {
    /// Fairness 1: of each replica's requests.
    delays: BTreeMap<ReplicaId, Duration>,
    /// Fairness 3: entries that were slow.
    slow: PassedOver,
}

impl Fairness {
    /// Fairness 1: another request. Whether it is time to ask.
    pub(crate) const fn begin(&mut self) -> bool {
        self.slow.begin() % ASK_EVERY == ASK_AFTER
    }

    /// Fairness 1: an answer.
    pub(crate) fn note_delay(&mut self, from: ReplicaId, delay: Duration) {
        self.delays.insert(from, delay);
    }

    /// Fairness 2: T_c, if enough have answered.
    pub(crate) fn patience(&self, replicas: Replicas) -> Option<Duration> {
        let mut delays: Vec<u64> = self.delays.values().map(|delay| delay.0).collect();
        delays.sort_unstable();
        let delay = *delays.get(replicas.strong() - 1)?;
        Some(Duration(delay.saturating_mul(ALLOWANCE)))
    }

    /// Fairness 3: a request is done, and whether in time. One that others were asked for before its time was over says
    /// nothing about its entry.
    pub(crate) fn end(&mut self, replicas: Replicas, entry: ReplicaId, in_time: bool) {
        self.slow.end(replicas, entry, in_time);
    }

    /// What is true between steps.
    pub(crate) fn check_invariants(&self, cluster: &Cluster) {
        assert!(self.delays.keys().all(|id| cluster.replicas.contains(*id)), "replicas are entries");
        self.slow.check_invariants(cluster);
    }

    /// Fairness 3.
    pub(crate) fn passes_over(&self, entry: ReplicaId) -> bool {
        self.slow.contains(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicas(f: usize) -> Replicas {
        Replicas::of(3 * f + 1).unwrap()
    }

    /// f liars say what they like: T_c stays between what a correct replica's delays make of it.
    #[test]
    fn f_replicas_cannot_move_the_patience() {
        for f in [1, 2, 3] {
            let replicas = replicas(f);
            for lie in [0, 1, u64::MAX] {
                let mut fairness = Fairness::default();
                for id in replicas.iter().skip(f + 1) {
                    fairness.note_delay(id, Duration(1_000));
                }
                assert_eq!(fairness.patience(replicas), None, "2f answers are too few");
                fairness.note_delay(ReplicaId(f as u8), Duration(1_200));
                (0..f as u8).for_each(|liar| fairness.note_delay(ReplicaId(liar), Duration(lie)));
                let expected = if lie > 1_000 { 1_200 } else { 1_000 };
                assert_eq!(fairness.patience(replicas), Some(Duration(4 * expected)), "f = {f}, lie {lie}");
            }
        }
    }
}
