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
    /// Keeps what was answered from `begin` on, both in buckets, and up to `end`: as many buckets as these, also where
    /// nothing was answered, or else who falls silent and stays so would have been fast to the last.
    pub fn cut(&mut self, begin: usize, end: usize) {
        self.buckets.resize(end, 0);
        self.buckets.drain(..begin.min(end));
        self.total = self.total.saturating_sub(BUCKET * begin as u32);
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_answers_is_there_although_it_is_the_last() {
        let mut recorded = Recorded { buckets: vec![7, 8, 9], total: BUCKET * 3, ..Recorded::default() };
        recorded.cut(1, 5);
        assert_eq!(recorded, Recorded { buckets: vec![8, 9, 0, 0], total: BUCKET * 2, ..Recorded::default() });
        recorded.cut(0, 1);
        assert_eq!(recorded.buckets, [8]);
        let mut silent = Recorded::default();
        silent.cut(2, 4);
        assert_eq!(silent.buckets, [0, 0]);
    }
}
