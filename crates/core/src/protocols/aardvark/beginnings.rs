//! Aardvark 3: how long a primary may take to begin its view.
//!
//! A turn is ten times as long as a correct primary takes where the network is fast. All of it passes without an answer
//! whenever somebody is to lead whom nobody hears, as it floods them. So a primary is held to what others took, and to
//! half as much if its last view did not begin here.

use crate::ids::ReplicaId;
use crate::time::Duration;
use alloc::collections::VecDeque;

/// So many times as long as others took a primary may take.
const FACTOR: u64 = 4;
/// And so many looks at least: a VIEW-CHANGE may come to it later than to us, and its NEW-VIEW has a way to go.
const LOOKS_AT_LEAST: u64 = 2;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Beginnings {
    /// How long the last views took, at most n, since 2f + 1 had left for them.
    took: VecDeque<Duration>,
    n: usize,
    /// Whose last view did not begin here: bit i stands for replica i.
    late: u64,
}

impl Beginnings {
    pub(super) fn new(n: usize) -> Self {
        Self { took: VecDeque::with_capacity(n), n, late: 0 }
    }

    pub(super) fn note(&mut self, took: Duration) {
        if self.took.len() == self.n {
            self.took.pop_front();
        }
        self.took.push_back(took);
    }

    /// The view of this primary has begun here.
    pub(super) const fn begun(&mut self, primary: ReplicaId) {
        self.late &= !(1 << primary.0);
    }

    /// It has not, in time.
    pub(super) const fn missed(&mut self, primary: ReplicaId) {
        self.late |= 1 << primary.0;
    }

    /// As much as is allowed at most where nothing is known.
    pub(super) fn expected(&self, primary: ReplicaId, look: Duration, most: Duration) -> Duration {
        let half = self.late >> primary.0 & 1;
        let times = |what: &Duration, factor: u64| Duration(what.0.saturating_mul(factor) >> half);
        let slowest = self.took.iter().max();
        slowest.map_or(most, |took| times(took, FACTOR).max(times(&look, LOOKS_AT_LEAST)).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_has_four_times_as_long_as_the_slowest_of_the_last_n() {
        let (look, most) = (Duration(50), Duration(500));
        let mut beginnings = Beginnings::new(2);
        assert_eq!(beginnings.expected(ReplicaId(3), look, most), most, "nothing is known");
        for (took, expected) in [(1, 100), (50, 200), (3, 200), (1, 100), (200, 500), (u64::MAX, 500), (0, 500)] {
            beginnings.note(Duration(took));
            assert_eq!(beginnings.expected(ReplicaId(3), look, most), Duration(expected), "after {took}");
        }
    }

    #[test]
    fn who_did_not_begin_its_last_view_has_half_as_long() {
        let (look, most) = (Duration(50), Duration(500));
        let mut beginnings = Beginnings::new(4);
        beginnings.missed(ReplicaId(3));
        let expected = |it: &Beginnings| [2, 3].map(|id| it.expected(ReplicaId(id), look, most).0);
        assert_eq!(expected(&beginnings), [500, 500], "nothing is known");
        for (took, both) in [(1, [100, 50]), (60, [240, 120]), (240, [500, 480]), (u64::MAX, [500, 500])] {
            beginnings.note(Duration(took));
            assert_eq!(expected(&beginnings), both, "after {took}");
        }
        beginnings.took.clear();
        beginnings.note(Duration(1));
        beginnings.begun(ReplicaId(3));
        assert_eq!(expected(&beginnings), [100, 100], "it has begun one since");
    }
}
