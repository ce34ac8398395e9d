//! Aardvark 3: how long a primary may take to begin its view.
//!
//! A turn is ten times as long as a correct primary takes where the network is fast. All of it passes without an answer
//! whenever somebody is to lead whom nobody hears, as it floods them. So a primary is held to what others took.

use crate::time::Duration;
use alloc::collections::VecDeque;

/// So many times as long as others took a primary may take.
const FACTOR: u64 = 4;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Beginnings {
    /// How long the last views took, at most n, since 2f + 1 had left for them.
    took: VecDeque<Duration>,
    n: usize,
}

impl Beginnings {
    pub(super) fn new(n: usize) -> Self {
        Self { took: VecDeque::with_capacity(n), n }
    }

    pub(super) fn note(&mut self, took: Duration) {
        if self.took.len() == self.n {
            self.took.pop_front();
        }
        self.took.push_back(took);
    }

    /// As much as is allowed at most where nothing is known.
    pub(super) fn expected(&self, least: Duration, most: Duration) -> Duration {
        let slowest = self.took.iter().max();
        slowest.map_or(most, |took| Duration(took.0.saturating_mul(FACTOR)).max(least).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_has_four_times_as_long_as_the_slowest_of_the_last_n() {
        let (least, most) = (Duration(100), Duration(500));
        let mut beginnings = Beginnings::new(2);
        assert_eq!(beginnings.expected(least, most), most, "nothing is known");
        for (took, expected) in [(1, 100), (50, 200), (3, 200), (1, 100), (200, 500), (u64::MAX, 500), (0, 500)] {
            beginnings.note(Duration(took));
            assert_eq!(beginnings.expected(least, most), Duration(expected), "after {took}");
        }
    }
}
