//! What an instance is worth beside a Backup: Robust 3 and 4 of the [module](super).

use crate::protocols::aardvark::rates::{Rate, Rates};
use crate::time::Instant;
use alloc::collections::VecDeque;

/// Over what an instance is judged.
#[derive(Clone, Copy, Debug)]
struct Horizon {
    /// How many looks at least.
    looks: u64,
    /// How many requests a Backup would have executed meanwhile, at least.
    requests: u64,
    /// How much of what a Backup does an instance has to do, in thousandths.
    share: u64,
}

/// The near one finds at once who is slow on purpose. The far one finds what is not worth while: who speculates has to
/// be better than a Backup.
const HORIZONS: [Horizon; 2] =
    [Horizon { looks: 2, requests: 32, share: 500 }, Horizon { looks: 20, requests: 512, share: 1_050 }];

/// What happens within a horizon.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    began: Instant,
    /// Requests that had been executed then.
    before: u64,
    /// Requests times the microseconds that they waited.
    waited: u64,
    looks: u64,
}

impl Span {
    /// `None`: it has no length.
    fn rate(&self, now: Instant, executed: u64) -> Option<Rate> {
        let per = |what: u64, unit: u64| {
            let rate = (u128::from(what) * u128::from(unit)).checked_div(u128::from((now - self.began).0))?;
            Some(u64::try_from(rate).unwrap_or(u64::MAX))
        };
        let throughput = per(executed.saturating_sub(self.before), 1_000_000_000)?;
        Some(Rate { throughput, load: per(self.waited, 1_000)? })
    }

    /// How many requests that is at this throughput.
    fn requests(&self, now: Instant, throughput: u64) -> u64 {
        let requests = u128::from(throughput) * u128::from((now - self.began).0) / 1_000_000_000;
        u64::try_from(requests).unwrap_or(u64::MAX)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Worth {
    /// What the last Backups did within each horizon, the newest last. At most n.
    backups: VecDeque<[Rates; HORIZONS.len()]>,
    n: usize,
    /// Whether a Backup runs.
    is_backup: bool,
    spans: [Span; HORIZONS.len()],
}

impl Worth {
    pub(super) fn new(n: usize) -> Self {
        Self { backups: VecDeque::with_capacity(n), n, is_backup: false, spans: Default::default() }
    }

    /// An instance begins.
    pub(super) fn begin(&mut self, now: Instant, executed: u64, is_backup: bool) {
        self.is_backup = is_backup;
        if is_backup {
            if self.backups.len() == self.n {
                self.backups.pop_front();
            }
            self.backups.push_back(Default::default());
        }
        self.pause(now, executed);
    }

    /// What was measured so far is void.
    pub(super) fn pause(&mut self, now: Instant, executed: u64) {
        self.spans = [Span { began: now, before: executed, ..Span::default() }; HORIZONS.len()];
    }

    /// Another look, since the last of which requests have waited for so many microseconds together. Whether the
    /// instance is worth less than a Backup.
    pub(super) fn look(&mut self, now: Instant, executed: u64, waited: u64) -> bool {
        let mut is_slow = false;
        for (at, horizon) in HORIZONS.iter().enumerate() {
            let span = &mut self.spans[at];
            span.looks += 1;
            span.waited = span.waited.saturating_add(waited);
            let Some(rate) = span.rate(now, executed).filter(|_| span.looks >= horizon.looks) else { continue };
            if self.is_backup && rate.is_busy() {
                if executed.saturating_sub(span.before) < horizon.requests {
                    continue;
                }
                self.backups.back_mut().expect("a Backup runs")[at].note(rate);
            } else if rate.is_busy() {
                let known = self.backups.iter().map(|backup| backup[at].with_no_more_than(rate.load));
                let of_a_backup = known.max().unwrap_or_default();
                if of_a_backup > 0 && span.requests(now, of_a_backup) < horizon.requests {
                    continue;
                }
                is_slow |= u128::from(rate.throughput) * 1_000 < u128::from(of_a_backup) * u128::from(horizon.share);
            }
            *span = Span { began: now, before: executed, ..Span::default() };
        }
        is_slow
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self) {
        assert!(self.backups.len() <= self.n, "the last n Backups count");
        assert!(!self.is_backup || !self.backups.is_empty(), "the one that runs is one of them");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: u64 = 50_000;

    /// A replica at which so many requests wait all the time.
    struct Watched {
        worth: Worth,
        now: Instant,
        executed: u64,
        waiting: u64,
    }

    impl Watched {
        fn new(waiting: u64) -> Self {
            Self { worth: Worth::new(4), now: Instant(7), executed: 0, waiting }
        }

        fn begin(&mut self, is_backup: bool) {
            self.worth.begin(self.now, self.executed, is_backup);
        }

        /// In how many looks, each of which sees so many requests executed, the instance is found slow.
        fn looks(&mut self, most: usize, executed: u64) -> Option<usize> {
            (1..=most).find(|_| {
                self.now.0 += LOOK;
                self.executed += executed;
                self.worth.look(self.now, self.executed, self.waiting * LOOK)
            })
        }

        /// A Backup that executes so many between two looks.
        fn backup(&mut self, looks: usize, executed: u64) {
            self.begin(true);
            assert_eq!(self.looks(looks, executed), None, "no Backup is slower than itself");
            self.begin(false);
        }
    }

    #[test]
    fn half_of_what_a_backup_did_is_missed_at_once() {
        let mut watched = Watched::new(100);
        watched.backup(2, 1_000);
        assert_eq!(watched.looks(99, 500), None);
        assert_eq!(watched.looks(99, 490), Some(1), "a span had begun");
        watched.begin(false);
        assert_eq!(watched.looks(99, 490), Some(2));
    }

    #[test]
    fn what_is_no_better_than_a_backup_is_found_in_a_while() {
        let mut watched = Watched::new(100);
        watched.backup(20, 1_000);
        assert_eq!(watched.looks(99, 1_040), Some(20));
        watched.begin(false);
        assert_eq!(watched.looks(999, 1_050), None);
    }

    #[test]
    fn nothing_is_expected_that_no_backup_was_seen_to_do() {
        let mut watched = Watched::new(100);
        watched.begin(false);
        assert_eq!(watched.looks(99, 1), None, "none has run");
        watched.backup(1, 1_000);
        assert_eq!(watched.looks(99, 1), None, "it was over before it could be measured");
        watched.waiting = 400;
        watched.backup(20, 1_000);
        watched.waiting = 100;
        assert_eq!(watched.looks(99, 1), None, "with four times as much to do");
        watched.waiting = 0;
        assert_eq!(watched.looks(99, 0), None, "nobody asks");
        watched.waiting = 800;
        assert_eq!(watched.looks(99, 400), Some(2));
    }

    #[test]
    fn what_is_rare_is_looked_at_for_longer() {
        let mut watched = Watched::new(1);
        watched.backup(64, 1);
        assert_eq!(watched.looks(999, 0), Some(32), "so long a Backup takes for the fewest requests");
    }

    #[test]
    fn what_none_of_the_last_backups_did_is_forgotten() {
        let mut watched = Watched::new(100);
        watched.backup(20, 1_000);
        (0..3).for_each(|_| watched.backup(20, 100));
        assert_eq!(watched.looks(99, 300), Some(2));
        watched.backup(20, 100);
        assert_eq!(watched.looks(99, 300), None);
    }

    #[test]
    fn nothing_overflows() {
        let mut worth = Worth::new(4);
        for is_backup in [true, false, true, true, false, true, true] {
            worth.begin(Instant(u64::MAX), 0, is_backup);
            for now in [0, 1, 2, u64::MAX / 2, u64::MAX] {
                worth.look(Instant(now), u64::MAX, u64::MAX);
            }
            worth.check_invariants();
        }
    }
}
