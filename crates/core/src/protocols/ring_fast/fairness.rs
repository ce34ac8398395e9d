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
use crate::replicas::Replicas;
use crate::time::Duration;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Fairness 1: requests between two questions, and before the first.
const ASK_EVERY: u64 = 64;
const ASK_AFTER: u64 = 4;

/// Fairness 2: 1 + ε. In a busy ring every hundredth request takes more than twice the average.
const ALLOWANCE: u64 = 4;

/// Fairness 3: requests, the first time, and how often that doubles.
const PASS_OVER: u64 = 8;
const DOUBLINGS_MAX: u32 = 7;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Fairness {
    /// How many so far.
    requests: u64,
    /// Fairness 1: of each replica's requests.
    delays: BTreeMap<ReplicaId, Duration>,
    /// Fairness 3: how often in a row an entry was slow, and up to which request it is passed over.
    slow: BTreeMap<ReplicaId, (u32, u64)>,
}

impl Fairness {
    /// Fairness 1: another request. Whether it is time to ask.
    pub(crate) const fn begin(&mut self) -> bool {
        self.requests += 1;
        self.requests % ASK_EVERY == ASK_AFTER
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
        if in_time {
            self.slow.remove(&entry);
            return;
        }
        let (times, until) = self.slow.entry(entry).or_default();
        *until = self.requests + (PASS_OVER << *times);
        *times = (*times + 1).min(DOUBLINGS_MAX);
        let passed_over = self.slow.values().filter(|(_, until)| self.requests < *until).count();
        // Liars are counted here, not those who said something.
        if passed_over > 2 * replicas.faults() {
            self.slow.clear();
        }
    }

    /// What is true between steps.
    pub(crate) fn check_invariants(&self, cluster: &Cluster) {
        let is_replica = |id: &ReplicaId| cluster.replicas.contains(*id);
        assert!(self.delays.keys().chain(self.slow.keys()).all(is_replica), "replicas are entries");
        let times = self.slow.values().map(|(times, _)| *times);
        assert!(times.max().unwrap_or(0) <= DOUBLINGS_MAX, "an entry is passed over for a bounded time (Fairness 3)");
        let passed_over = self.slow.keys().filter(|entry| self.passes_over(**entry)).count();
        assert!(passed_over <= 2 * cluster.replicas.faults(), "of 2f+1 entries one serves this client (Fairness 3)");
    }

    /// Fairness 3.
    pub(crate) fn passes_over(&self, entry: ReplicaId) -> bool {
        self.slow.get(&entry).is_some_and(|(_, until)| self.requests < *until)
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

    /// How many requests pass an entry over.
    fn passed_over(fairness: &mut Fairness, entry: ReplicaId) -> usize {
        let mut count = 0;
        while fairness.passes_over(entry) {
            fairness.begin();
            count += 1;
        }
        count
    }

    #[test]
    fn a_slow_entry_is_passed_over_for_longer_each_time() {
        let (replicas, entry) = (replicas(1), ReplicaId(2));
        let mut fairness = Fairness::default();
        for expected in [8, 16, 32, 64, 128, 256, 512, 1_024, 1_024] {
            fairness.end(replicas, entry, false);
            assert_eq!(passed_over(&mut fairness, entry), expected);
        }
        fairness.end(replicas, entry, true);
        assert!(!fairness.passes_over(entry));
        fairness.end(replicas, entry, false);
        assert_eq!(passed_over(&mut fairness, entry), 8, "all is forgiven");
    }

    #[test]
    fn where_all_are_slow_none_is_passed_over() {
        let replicas = replicas(1);
        let mut fairness = Fairness::default();
        (0..2).for_each(|entry| fairness.end(replicas, ReplicaId(entry), false));
        assert!(fairness.passes_over(ReplicaId(0)) && fairness.passes_over(ReplicaId(1)));
        fairness.end(replicas, ReplicaId(2), false);
        assert!(replicas.iter().all(|entry| !fairness.passes_over(entry)));
    }
}
