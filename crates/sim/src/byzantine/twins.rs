//! Twins: two honest machines with one identity, each with a disk and a state of its own. The network decides who
//! hears which. Equivocation, double votes and amnesia come for free, without a line of attack code.

use crate::network::ProcessId;
use crate::rng::Rng;
use std::collections::BTreeMap;

/// Which twin of each pair a process talks with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    First,
    Second,
    Both,
}

/// The arrangement of the moment. Without twins everybody hears everybody.
#[derive(Debug, Default)]
pub struct Sides {
    /// The two processes of each pair.
    pairs: Vec<(ProcessId, ProcessId)>,
    /// For each pair and each other process.
    sides: BTreeMap<(usize, ProcessId), Side>,
    /// Arrangements so far.
    pub acts: u64,
}

impl Sides {
    /// These pairs; everybody talks with both until [`Sides::regroup`].
    pub const fn new(pairs: Vec<(ProcessId, ProcessId)>) -> Self {
        Self { pairs, sides: BTreeMap::new(), acts: 0 }
    }

    /// Whether there is anything to arrange.
    pub const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Draws another arrangement for all processes.
    pub fn regroup(&mut self, rng: &mut Rng, processes: &[ProcessId]) {
        self.acts += self.pairs.len() as u64;
        for pair in 0..self.pairs.len() {
            for process in processes {
                let side = match rng.below(9) {
                    0..4 => Side::First,
                    4..8 => Side::Second,
                    _ => Side::Both,
                };
                self.sides.insert((pair, *process), side);
            }
        }
    }

    fn talks(&self, pair: usize, twin: ProcessId, other: ProcessId) -> bool {
        let (first, second) = self.pairs[pair];
        match self.sides.get(&(pair, other)).copied().unwrap_or(Side::Both) {
            _ if other == first || other == second => false,
            Side::First => twin == first,
            Side::Second => twin == second,
            Side::Both => true,
        }
    }

    /// Whether what `from` sends reaches `to`.
    pub fn hears(&self, from: ProcessId, to: ProcessId) -> bool {
        self.pairs.iter().enumerate().all(|(pair, (first, second))| {
            let is_twin = |process| process == *first || process == *second;
            (!is_twin(from) || self.talks(pair, from, to)) && (!is_twin(to) || self.talks(pair, to, from))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_talks_with_its_side_in_both_directions() {
        let mut sides = Sides::new(vec![(0, 4)]);
        let mut rng = Rng::stream(1, "sides");
        for _ in 0..20 {
            sides.regroup(&mut rng, &[1, 2, 3, 9]);
            for other in [1, 2, 3, 9] {
                assert!(sides.hears(0, other) || sides.hears(4, other), "at least one twin");
                assert_eq!(sides.hears(0, other), sides.hears(other, 0));
            }
            assert!(sides.hears(1, 2) && !sides.hears(0, 4));
        }
    }
}
