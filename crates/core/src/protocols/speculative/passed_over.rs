//! Replicas that a client does not ask for something, because the last ones that it asked them for came late: it has a
//! choice whom to ask, by the timestamps of its requests.
//!
//! Somebody who was late is passed over for 8 requests the first time, then for twice as many each time, up to 1,024,
//! until it is in time once. If more than 2f are late it is not about this client, and none is passed over.

use crate::cluster::Cluster;
use crate::ids::ReplicaId;
use crate::replicas::Replicas;
use alloc::collections::BTreeMap;

/// Requests, the first time, and how often that doubles.
const PASS_OVER: u64 = 8;
const DOUBLINGS_MAX: u32 = 7;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct PassedOver {
    /// How many requests so far.
    requests: u64,
    /// How often in a row a replica was late, and up to which request it is passed over.
    late: BTreeMap<ReplicaId, (u32, u64)>,
}

impl PassedOver {
    /// Another request. How many there were so far, with this one.
    pub(crate) const fn begin(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    /// A replica has done what it was asked for, or will not any more, and whether in time.
    pub(crate) fn end(&mut self, replicas: Replicas, asked: ReplicaId, in_time: bool) {
        if in_time {
            self.late.remove(&asked);
            return;
        }
        let (times, until) = self.late.entry(asked).or_default();
        *until = self.requests + (PASS_OVER << *times);
        *times = (*times + 1).min(DOUBLINGS_MAX);
        let passed_over = self.late.values().filter(|(_, until)| self.requests < *until).count();
        // Liars are counted here, not those who said something.
        if passed_over > 2 * replicas.faults() {
            self.late.clear();
        }
    }

    /// Whether this replica is not to be asked.
    pub(crate) fn contains(&self, replica: ReplicaId) -> bool {
        self.late.get(&replica).is_some_and(|(_, until)| self.requests < *until)
    }

    /// What is true between steps.
    pub(crate) fn check_invariants(&self, cluster: &Cluster) {
        assert!(self.late.keys().all(|id| cluster.replicas.contains(*id)), "replicas are late");
        let times = self.late.values().map(|(times, _)| *times);
        assert!(times.max().unwrap_or(0) <= DOUBLINGS_MAX, "a replica is passed over for a bounded time");
        let passed_over = self.late.keys().filter(|id| self.contains(**id)).count();
        assert!(passed_over <= 2 * cluster.replicas.faults(), "of 2f+1 replicas one serves this client");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many requests pass a replica over.
    fn passed_over(by: &mut PassedOver, replica: ReplicaId) -> usize {
        let mut count = 0;
        while by.contains(replica) {
            by.begin();
            count += 1;
        }
        count
    }

    #[test]
    fn who_is_late_is_passed_over_for_longer_each_time() {
        let (replicas, late) = (Replicas::of(4).unwrap(), ReplicaId(2));
        let mut by = PassedOver::default();
        for expected in [8, 16, 32, 64, 128, 256, 512, 1_024, 1_024] {
            by.end(replicas, late, false);
            assert_eq!(passed_over(&mut by, late), expected);
        }
        by.end(replicas, late, true);
        assert!(!by.contains(late));
        by.end(replicas, late, false);
        assert_eq!(passed_over(&mut by, late), 8, "all is forgiven");
    }

    #[test]
    fn where_all_are_late_none_is_passed_over() {
        let replicas = Replicas::of(4).unwrap();
        let mut by = PassedOver::default();
        (0..2).for_each(|late| by.end(replicas, ReplicaId(late), false));
        assert!(by.contains(ReplicaId(0)) && by.contains(ReplicaId(1)));
        by.end(replicas, ReplicaId(2), false);
        assert!(replicas.iter().all(|late| !by.contains(late)));
    }
}
