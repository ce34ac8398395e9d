//! Numbers that are finished in any order: all below some number, and a few above it.

use alloc::collections::BTreeSet;

/// Which numbers are finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    below: u64,
    above: BTreeSet<u64>,
}

impl Window {
    /// The lowest number that is not finished.
    pub(super) const fn first(&self) -> u64 {
        self.below
    }

    /// Whether this number is less than `size` above the lowest that is not finished, and not below it.
    pub(super) const fn admits(&self, number: u64, size: u64) -> bool {
        number >= self.below && number - self.below < size
    }

    /// Whether it is finished.
    pub(super) fn is_finished(&self, number: u64) -> bool {
        number < self.below || self.above.contains(&number)
    }

    /// It is finished.
    pub(super) fn finish(&mut self, number: u64) {
        if number >= self.below {
            self.above.insert(number);
        }
        while self.above.remove(&self.below) {
            self.below += 1;
        }
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
        assert!(window.admits(1, 1) && !window.admits(2, 1) && !window.admits(0, 9));
        window.finish(1);
        assert_eq!(window, Window { below: 4, above: BTreeSet::new() });
    }
}
