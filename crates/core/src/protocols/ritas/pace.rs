//! How often a process says what it has heard.

/// While a process comes to nothing new it says what it lacks in each of so many intervals, because frames may be
/// lost; after that more and more seldom, until it is every [`SELDOM`]th, because on a slow link answers that come
/// faster than they travel would only queue up. It does so also if it lacks nothing: somebody who missed the last
/// statements before an idle time learns of it.
const OFTEN: u32 = 4;
const SELDOM: u32 = 64;

/// Whether it is time, interval by interval.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    has_moved: bool,
    still_intervals: u32,
}

impl Pace {
    /// The process has said something new.
    pub(super) const fn moved(&mut self) {
        self.has_moved = true;
    }

    /// An interval is over. Whether it is time to say what was heard.
    pub(super) fn interval(&mut self) -> bool {
        self.still_intervals = if core::mem::take(&mut self.has_moved) { 0 } else { self.still_intervals + 1 };
        let still = self.still_intervals;
        (1..=OFTEN).contains(&still) || still > OFTEN && (still.is_power_of_two() || still.is_multiple_of(SELDOM))
    }
}
