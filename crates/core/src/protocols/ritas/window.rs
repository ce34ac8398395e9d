//! Numbers that are finished in any order: all below some number, and a few above it.

use crate::wire::{Reader, Sink, Wire, WireError};
use alloc::collections::BTreeSet;

/// Which numbers are finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    below: u64,
    above: BTreeSet<u64>,
}

impl Window {
    /// The lowest number that is not finished.
    pub const fn first(&self) -> u64 {
        self.below
    }

    /// Whether this number is not finished, and less than `size` above the lowest that is not.
    pub fn admits(&self, number: u64, size: u64) -> bool {
        !self.is_finished(number) && number - self.below < size
    }

    /// The lowest number above all that are finished.
    pub fn end(&self) -> u64 {
        self.above.last().map_or(self.below, |last| last + 1)
    }

    /// Whether it is finished.
    pub fn is_finished(&self, number: u64) -> bool {
        number < self.below || self.above.contains(&number)
    }

    /// It is finished.
    pub fn finish(&mut self, number: u64) {
        if number >= self.below {
            self.above.insert(number);
        }
        while self.above.remove(&self.below) {
            self.below += 1;
        }
    }
}

/// A bit for each number from the lowest one on that is not finished: those of an atomic broadcast fit.
impl Wire for Window {
    fn encode(&self, out: &mut impl Sink) {
        self.below.encode(out);
        let bit = |number: &u64| 1u64.checked_shl((number - self.below) as u32).expect("it is in the window");
        self.above.iter().map(bit).sum::<u64>().encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let (below, bits): (u64, u64) = (Wire::decode(reader)?, Wire::decode(reader)?);
        if bits & 1 != 0 || below > u64::MAX - 64 {
            return Err(WireError::NotCanonical);
        }
        Ok(Self { below, above: (0..64).filter(|bit| bits >> bit & 1 != 0).map(|bit| below + bit).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_when_the_lowest_is_finished() {
        let mut window = Window::default();
        for number in [2, 0, 3, 0] {
            window.finish(number);
        }
        assert_eq!(window.first(), 1);
        assert!(window.is_finished(0) && window.is_finished(3) && !window.is_finished(1));
        assert!(window.admits(1, 1) && !window.admits(2, 9) && !window.admits(0, 9) && window.admits(4, 9));
        assert_eq!(window.end(), 4);
        assert_eq!(Window::from_bytes(window.to_bytes().into()), Ok(window.clone()));
        window.finish(1);
        assert_eq!(window, Window { below: 4, above: BTreeSet::new() });
    }
}
