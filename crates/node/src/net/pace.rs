//! Frames that come packet by packet.
//!
//! Over a link with a rate every packet of a long frame would wake the thread that reads, for some 20 µs of processor,
//! and nothing can be done before the last one is there. So a link that was emptied twice within a frame, at a pace at
//! which the rest of it takes two milliseconds or more, *rests*: nobody is woken for it for half of that time, at most
//! [`REST_MS_MAX`]. If the rest comes sooner, the frame is late by what is left of that. What comes over loopback or a
//! fast network keeps a pace that lets no link rest. What it saves, and costs, is in `docs/benchmarks.md`.

use super::REST_MS_MAX;
use std::time::{Duration, Instant};

/// What is known about one link.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the socket was last emptied, if that was within a frame.
    emptied: Option<Instant>,
    /// Bytes that have come since.
    came: usize,
}

impl Pace {
    /// `count` bytes came, and the socket is empty or not; `missing` are still to come of the frame that has begun, or
    /// none. For how long the link may rest, in whole milliseconds: the hub waits for no less.
    pub(super) fn rest(&mut self, now: Instant, count: usize, is_empty: bool, missing: usize) -> Option<Duration> {
        self.came += count;
        if !is_empty {
            return None;
        }
        let came = std::mem::take(&mut self.came);
        let emptied = if missing > 0 { self.emptied.replace(now) } else { self.emptied.take() };
        if missing == 0 || came == 0 {
            return None;
        }
        let needed = (now - emptied?).as_micros() * missing as u128 / came as u128;
        let rest = u64::try_from(needed / 2 / 1000).unwrap_or(u64::MAX).min(REST_MS_MAX);
        (rest > 0).then_some(Duration::from_millis(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_rests_as_long_as_the_rest_of_a_frame_takes_at_its_pace() {
        let begin = Instant::now();
        let at = |us| begin + Duration::from_micros(us);
        let mut all = Pace::default();
        let mut rest = |now, count, missing| all.rest(now, count, true, missing);
        assert_eq!(rest(at(0), 1448, 14_000), None, "no pace is known yet");
        assert_eq!(rest(at(230), 1448, 12_552), None, "it takes 1,993 µs");
        assert_eq!(rest(at(470), 1448, 11_104), None);
        assert_eq!(rest(at(3_000), 1448, 9_656), Some(Duration::from_millis(REST_MS_MAX)));
        assert_eq!(rest(at(5_000), 6_000, 6_656), Some(Duration::from_millis(1)), "half of 2,218 µs");
        assert_eq!(rest(at(6_100), 6_656, 0), None, "the frame is there");
        assert_eq!(rest(at(9_000_000), 100, 90_000), None, "how long nothing came says nothing");
        assert_eq!(rest(at(9_000_030), 64_000, 26_000), None, "that is fast");
    }

    /// The last of several reads alone would make a fast link a slow one.
    #[test]
    fn all_that_came_since_the_link_was_emptied_counts() {
        let begin = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.rest(begin, 1_000, true, 900_000), None);
        let later = begin + Duration::from_micros(500);
        assert_eq!(pace.rest(later, 500_000, false, 400_000), None);
        assert_eq!(pace.rest(later, 100, true, 399_900), None);
        assert_eq!(pace.rest(later + Duration::from_millis(1), 100, true, 399_800), Some(Duration::from_millis(2)));
    }
}
