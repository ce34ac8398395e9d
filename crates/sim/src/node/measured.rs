//! When a replica is looked at for all that it holds. To look takes as long as some ten steps, and the longer the more
//! it holds. While it grows it is looked at soon again, else ever more seldom; and once at the end of the run.

use crate::checks::Holdings;
use crate::store::Store;
use bezant_core::replica::Replica;

/// Steps after which a replica that grows is measured again, at least.
const MEASURED_AFTER: u64 = 400;
/// Bytes that are read in about a twentieth of the time that a step takes.
const BYTES_PER_STEP: u64 = 16;

/// When a replica is measured next, in steps, and the most bytes that it was seen to hold.
#[derive(Debug)]
pub(super) struct Measured {
    next: u64,
    interval: u64,
    most: u64,
}

impl Default for Measured {
    fn default() -> Self {
        Self { next: MEASURED_AFTER, interval: MEASURED_AFTER, most: 0 }
    }
}

impl Measured {
    /// All that it holds after so many steps, if it is time to look.
    pub(super) fn measure(&mut self, steps: u64, machine: &Replica<Store>) -> Option<Holdings> {
        if steps < self.next {
            return None;
        }
        let holdings = Holdings::of(machine);
        let grew = holdings.bytes() > self.most + self.most / 8;
        self.interval = if grew { MEASURED_AFTER } else { (2 * self.interval).min(16 * MEASURED_AFTER) };
        self.interval = self.interval.max(holdings.bytes() / BYTES_PER_STEP);
        self.most = holdings.bytes().max(self.most);
        self.next = steps + self.interval;
        Some(holdings)
    }
}
