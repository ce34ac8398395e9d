//! The one source of chance: SplitMix64, so that a seed means the same run on every machine and for ever.
//!
//! Every part of a run draws from a stream of its own ([`Rng::stream`]). Switching one fault off then leaves the other
//! parts' draws as they were, which is what makes shrinking work.

/// A small deterministic generator.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

/// The finaliser of SplitMix64: a bijection that spreads every input bit over the word.
pub const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Rng {
    /// The stream called `name` of a seed.
    pub fn stream(seed: u64, name: &str) -> Self {
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| mix(hash ^ u64::from(byte)));
        Self { state: mix(seed) ^ name }
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `bound`, which must not be 0. The bias is below 2⁻³² for the bounds used here.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True `parts` times in a thousand.
    pub const fn per_mille(&mut self, parts: u64) -> bool {
        parts > 0 && self.below(1000) < parts
    }

    /// A fair coin.
    pub const fn coin(&mut self) -> bool {
        self.next() & 1 == 0
    }

    /// One of the items, which must not be none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Puts the items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |name| Rng::stream(7, name).next();
        assert_eq!(draw("network"), draw("network"));
        assert_ne!(draw("network"), draw("disk"));
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut rng = Rng::stream(1, "bounds");
        assert!((0..1000).all(|_| (3..=5).contains(&rng.between(3, 5))));
        assert!((0..100).all(|_| !rng.per_mille(0) && rng.per_mille(1000)));
    }
}
