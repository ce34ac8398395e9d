//! When operations were answered.

use crate::compare::course::BUCKET;
use std::time;

/// What was answered when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Operations that ended in each [`BUCKET`] since the first request was sent.
    pub buckets: Vec<u64>,
    /// When each burst ended.
    pub bursts: Vec<time::Duration>,
    /// When the last operation ended.
    pub total: time::Duration,
}

impl Recorded {
    pub(crate) fn on_answer(&mut self, at: time::Duration) {
        let bucket = at.div_duration_f64(BUCKET) as usize;
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.total = at;
    }

    /// What another thread recorded besides.
    pub(crate) fn add(&mut self, other: &Self) {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(ours, theirs)| *ours += theirs);
        self.bursts.extend(&other.bursts);
        self.bursts.sort_unstable();
        self.total = self.total.max(other.total);
    }
}
