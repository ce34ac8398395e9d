//! What tests of whole clusters share: a network that does what the test says, golden scripts played on it, and
//! services that remember everything or go wrong.

pub(crate) mod damaged;
pub(crate) mod journal;
pub(crate) mod net;
pub(crate) mod paper_coin;
pub(crate) mod stage;

/// A sequence of numbers that look random and are the same in every run.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`.
    pub(crate) const fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    /// True once in so many times.
    pub(crate) const fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
