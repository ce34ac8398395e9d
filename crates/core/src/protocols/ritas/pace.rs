//! How often a process says what it has heard.

/// While a process comes to nothing new it says what it lacks in each of so many intervals, because frames may be
/// lost; after that more and more seldom, until it is every [`SELDOM`]th, because on a slow link answers that come
/// faster than they travel would only queue up. It does so also if it lacks nothing: somebody who missed the last
/// statements before an idle time learns of it.
const OFTEN: u32 = 4;
const SELDOM: u32 = 64;

/// While it does come to something new, it says what it lacks after so many intervals: rounds that order nothing may
/// follow one another for as long as what was lost of a message is not said again.
const BUSY: u32 = 8;

/// Whether it is time, interval by interval.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    has_moved: bool,
    still_intervals: u32,
    busy_intervals: u32,
    /// Where the process was at the end of the last interval: its round, and how many instances it kept.
    stood: Option<(u64, usize)>,
}

impl Pace {
    /// The process has said something new.
    pub(super) const fn moved(&mut self) {
        self.has_moved = true;
    }

    /// An interval is over, and this is where the process stands. Whether it is time to say what was heard.
    ///
    /// Who catches up by what others have decided says nothing new itself. It would ask more and more seldom, although
    /// each answer leads it on.
    pub(super) fn interval(&mut self, stands: (u64, usize)) -> bool {
        self.has_moved |= self.stood.replace(stands).is_some_and(|stood| stood != stands);
        let is_due = if core::mem::take(&mut self.has_moved) {
            self.still_intervals = 0;
            self.busy_intervals += 1;
            self.busy_intervals == BUSY
        } else {
            self.still_intervals += 1;
            let still = self.still_intervals;
            still <= OFTEN || still.is_power_of_two() || still.is_multiple_of(SELDOM)
        };
        if is_due {
            self.busy_intervals = 0;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn due(intervals: u32, moves: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut pace = Pace::default();
        let mut is_due = |at: &u32| {
            if moves(*at) {
                pace.moved();
            }
            pace.interval((1, 0))
        };
        (1..=intervals).filter(|at| is_due(at)).collect()
    }

    #[test]
    fn who_comes_to_nothing_new_says_so_more_and_more_seldom() {
        assert_eq!(due(192, |_| false), [1, 2, 3, 4, 8, 16, 32, 64, 128, 192]);
    }

    #[test]
    fn who_is_led_on_by_answers_asks_again_soon() {
        let mut pace = Pace::default();
        let mut due = |stands: &dyn Fn(u32) -> (u64, usize)| -> Vec<u32> {
            (1..=24).filter(|at| pace.interval(stands(*at))).collect()
        };
        assert_eq!(due(&|_| (1, 9)), [1, 2, 3, 4, 8, 16]);
        assert_eq!(due(&|at| (1 + u64::from(at > 2), 9)), [4, 5, 6, 7, 11, 19], "it has come to another round");
        assert_eq!(due(&|at| (2, if at > 2 { 5 } else { 9 }))[..2], [4, 5], "something in it is over");
    }

    #[test]
    fn who_always_comes_to_something_new_says_what_it_lacks_as_well() {
        assert_eq!(due(24, |_| true), [8, 16, 24]);
        assert_eq!(due(10, |at| at != 3), [3], "that counts from the last time");
    }
}
