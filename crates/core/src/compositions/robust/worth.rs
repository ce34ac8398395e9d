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
    /// How often in a row it has to fail to.
    times: u32,
    /// Whether as much less is expected with less to do. What machines say lags behind what there is by up to three
    /// looks, so that after a burst less seems to be done than was: that happens once, and not three times in a row.
    in_proportion: bool,
}

/// The near one finds soon who is slow on purpose. The far one finds what is not worth while: who speculates has to
/// be better than a Backup.
const HORIZONS: [Horizon; 2] = [
    Horizon { looks: 2, requests: 32, share: 500, times: 3, in_proportion: true },
    Horizon { looks: 20, requests: 512, share: 1_050, times: 1, in_proportion: false },
];

/// How often in a row an instance has to fail over the near horizon after one that did. Not at once: requests have to
/// come from clients that are just told of it.
const SUSPECTED_TIMES: u32 = 2;

/// How often in a row the far horizon passes with so many times as much to do as in any Backup that was measured,
/// before one is.
const UNMEASURED_MAX: u32 = 3;
const MORE_TO_DO: u64 = 4;

/// What was done between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// Requests.
    pub(super) served: u64,
    /// What waited, in thousandths of a request times microseconds.
    pub(super) waited: u64,
}

/// What an instance is found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::compositions) enum Found {
    /// Worth less than a Backup.
    Slow,
    /// With more to do than a Backup ever had.
    Unmeasured,
}

/// What the running instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// One to measure by.
    Yardstick,
    /// One that is measured.
    Measured,
}

/// What happens within a horizon.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    began: Instant,
    done: Done,
    looks: u64,
}

impl Span {
    /// `None`: it has no length.
    fn rate(&self, now: Instant) -> Option<Rate> {
        let per = |what: u64, unit: u64| {
            let rate = (u128::from(what) * u128::from(unit)).checked_div(u128::from((now - self.began).0))?;
            Some(u64::try_from(rate).unwrap_or(u64::MAX))
        };
        Some(Rate { throughput: per(self.done.served, 1_000_000_000)?, load: per(self.done.waited, 1)? })
    }

    /// How many requests that is at this throughput.
    fn requests(&self, now: Instant, throughput: u64) -> u64 {
        let requests = u128::from(throughput) * u128::from((now - self.began).0) / 1_000_000_000;
        u64::try_from(requests).unwrap_or(u64::MAX)
    }
}

/// What is known over one horizon.
#[derive(Clone, Debug, Default)]
struct Known {
    /// What the last n Backups did of which anything was measured, the newest last.
    backups: VecDeque<Rates>,
    /// Whether the running Backup is one of them.
    has_this: bool,
    /// What it did in its last span, until it is known what waits in the next: of what a span executes at its end the
    /// answers are still under way, and what waits is said later.
    last: Option<Rate>,
    span: Span,
    /// How often in a row the instance has failed.
    failed: u32,
}

impl Known {
    /// A span of a Backup ends.
    fn note(&mut self, rate: Rate, n: usize) {
        if let Some(last) = self.last.replace(rate) {
            self.keep(Rate { load: last.load.max(rate.load), ..last }, n);
        }
    }

    /// Nothing follows the last span.
    fn end_span(&mut self, n: usize) {
        if let Some(last) = self.last.take() {
            self.keep(last, n);
        }
    }

    fn keep(&mut self, rate: Rate, n: usize) {
        if !core::mem::replace(&mut self.has_this, true) {
            if self.backups.len() == n {
                self.backups.pop_front();
            }
            self.backups.push_back(Rates::default());
        }
        self.backups.back_mut().expect("it is one of them").note(rate);
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Worth {
    known: [Known; HORIZONS.len()],
    n: usize,
    role: Role,
    /// Far horizons that have passed in a row with more to do than any Backup had.
    unmeasured: u32,
    /// In how many more instances a failure over the near horizon need not come so often in a row: in the next n after
    /// one that has failed so, unless one holds over the far one.
    suspected: usize,
}

impl Worth {
    pub(super) fn new(n: usize) -> Self {
        Self { known: Default::default(), n, role: Role::Measured, unmeasured: 0, suspected: 0 }
    }

    /// An instance begins.
    pub(super) fn begin(&mut self, now: Instant, role: Role) {
        (self.role, self.unmeasured) = (role, 0);
        self.pause(now);
        self.known.iter_mut().for_each(|known| known.has_this = false);
    }

    /// What was measured so far is void.
    pub(super) fn pause(&mut self, now: Instant) {
        for known in &mut self.known {
            known.end_span(self.n);
            (known.span, known.failed) = (Span { began: now, ..Span::default() }, 0);
        }
    }

    /// What the last Backups did within a horizon, or within a nearer one if none of them lasted so long.
    fn known(&self, horizon: usize) -> &VecDeque<Rates> {
        let mut nearer = self.known[..=horizon].iter().rev().map(|known| &known.backups);
        nearer.find(|backups| !backups.is_empty()).unwrap_or(&self.known[horizon].backups)
    }

    /// Whether a Backup, however short, had a quarter as much to do.
    fn has_seen(&self, load: u64) -> bool {
        let mut backups = self.known.iter().flat_map(|known| &known.backups);
        backups.any(|backup| backup.most_load() >= load / MORE_TO_DO)
    }

    /// Another look, since the last of which this was done.
    pub(super) fn look(&mut self, now: Instant, done: Done) -> Option<Found> {
        let mut found = None;
        for (at, horizon) in HORIZONS.iter().enumerate() {
            let span = &mut self.known[at].span;
            span.looks += 1;
            span.done.served = span.done.served.saturating_add(done.served);
            span.done.waited = span.done.waited.saturating_add(done.waited);
            let span = *span;
            let Some(rate) = span.rate(now).filter(|_| span.looks >= horizon.looks) else { continue };
            match self.role {
                _ if !rate.is_busy() => self.known[at].failed = 0,
                Role::Yardstick if span.done.served < horizon.requests => continue,
                Role::Yardstick => self.known[at].note(rate, self.n),
                Role::Measured => {
                    let backups = self.known(at);
                    let most = |promise: fn(&Rates, u64) -> u64| {
                        backups.iter().map(|backup| promise(backup, rate.load)).max().unwrap_or_default()
                    };
                    let with_as_much = most(Rates::with_no_more_than);
                    let yardstick = if horizon.in_proportion { most(Rates::promise) } else { with_as_much };
                    if yardstick > 0 && span.requests(now, yardstick) < horizon.requests {
                        continue;
                    }
                    let share = u128::from(horizon.share);
                    let falls_short = |of: u64| u128::from(rate.throughput) * 1_000 < u128::from(of) * share;
                    let (has_failed, with_as_much) = (falls_short(yardstick), falls_short(with_as_much));
                    let failed = &mut self.known[at].failed;
                    *failed = if has_failed { *failed + 1 } else { 0 };
                    // The end of a burst lasts for two times.
                    let is_suspected = self.suspected > 0 && with_as_much;
                    let times = if is_suspected { horizon.times.min(SUSPECTED_TIMES) } else { horizon.times };
                    if *failed >= times {
                        found = Some(Found::Slow);
                    }
                    self.suspected = match (at, found) {
                        (0, Some(_)) => self.suspected.checked_sub(1).unwrap_or(self.n),
                        (1, None) => 0,
                        _ => self.suspected,
                    };
                    if at == HORIZONS.len() - 1 {
                        self.unmeasured = if self.has_seen(rate.load) { 0 } else { self.unmeasured + 1 };
                    }
                }
            }
            self.known[at].span = Span { began: now, ..Span::default() };
        }
        found.or((self.unmeasured >= UNMEASURED_MAX).then_some(Found::Unmeasured))
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self) {
        for known in &self.known {
            assert!(known.backups.len() <= self.n, "the last n Backups count");
            assert!(!known.has_this || !known.backups.is_empty(), "the one that runs is one of them");
        }
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
        waiting: u64,
    }

    impl Watched {
        fn new(waiting: u64) -> Self {
            Self { worth: Worth::new(4), now: Instant(7), waiting }
        }

        fn begin(&mut self, role: Role) {
            self.worth.begin(self.now, role);
        }

        /// In how many looks, each of which sees so many requests served, something is found.
        fn looks(&mut self, most: usize, served: u64) -> Option<(usize, Found)> {
            let found = (1..=most).find_map(|look| {
                self.now.0 += LOOK;
                let done = Done { served, waited: 1_000 * self.waiting * LOOK };
                Some((look, self.worth.look(self.now, done)?))
            });
            self.worth.check_invariants();
            found
        }

        /// A Backup that serves so many between two looks, and then an instance.
        fn backup(&mut self, looks: usize, served: u64) {
            self.begin(Role::Yardstick);
            assert_eq!(self.looks(looks, served), None, "no Backup is slower than itself");
            self.begin(Role::Measured);
        }
    }

    #[test]
    fn half_of_what_a_backup_did_is_missed_soon() {
        let mut watched = Watched::new(100);
        watched.backup(20, 1_000);
        assert_eq!(watched.looks(19, 500), None);
        watched.begin(Role::Measured);
        assert_eq!(watched.looks(99, 490), Some((6, Found::Slow)));
    }

    /// Who is slow on purpose is slow in the next instance as well.
    #[test]
    fn after_one_that_was_slow_the_next_ones_are_found_sooner() {
        let mut watched = Watched::new(100);
        watched.backup(20, 1_000);
        let mut next = |served| {
            watched.begin(Role::Measured);
            watched.looks(99, served).map(|(looks, _)| looks)
        };
        assert_eq!((next(490), next(490)), (Some(6), Some(4)));
        assert_eq!((next(1_050), next(490)), (None, Some(6)), "one was worth while");
        assert_eq!([(); 6].map(|()| next(490)), [4, 4, 4, 4, 6, 4].map(Some), "nobody is suspected for ever");
    }

    #[test]
    fn a_backup_that_was_short_is_better_than_none() {
        let mut watched = Watched::new(100);
        watched.backup(3, 1_000);
        assert_eq!(watched.looks(99, 1_040), Some((20, Found::Slow)));
        watched.begin(Role::Measured);
        assert_eq!(watched.looks(999, 1_050), None);
        watched.backup(20, 900);
        assert_eq!(watched.looks(99, 940), Some((20, Found::Slow)));
        watched.begin(Role::Measured);
        assert_eq!(watched.looks(999, 950), None, "that lasted longer, and counts");
    }

    #[test]
    fn a_pause_of_a_fifth_of_a_second_is_none() {
        let mut watched = Watched::new(100);
        watched.backup(20, 1_000);
        for _ in 0..10 {
            assert_eq!(watched.looks(4, 0), None);
            assert_eq!(watched.looks(16, 2_000), None);
        }
    }

    #[test]
    fn what_is_no_better_than_a_backup_is_found_in_a_while() {
        let mut watched = Watched::new(100);
        watched.backup(20, 1_000);
        assert_eq!(watched.looks(99, 1_040), Some((20, Found::Slow)));
        watched.begin(Role::Measured);
        assert_eq!(watched.looks(999, 1_050), None);
    }

    #[test]
    fn with_less_to_do_as_much_less_is_expected() {
        let mut watched = Watched::new(400);
        watched.backup(20, 1_000);
        watched.waiting = 0;
        assert_eq!(watched.looks(999, 0), None, "nobody asks");
        watched.waiting = 100;
        assert_eq!(watched.looks(999, 126), None, "a quarter of what there was to do");
        watched.begin(Role::Measured);
        assert_eq!(watched.looks(99, 124), Some((6, Found::Slow)));
        for (waiting, enough, found) in [(4, 6, 12), (800, 1_050, 6)] {
            watched.waiting = waiting;
            watched.begin(Role::Measured);
            assert_eq!(watched.looks(999, enough), None);
            watched.begin(Role::Measured);
            assert_eq!(watched.looks(99, enough * 2 / 5), Some((found, Found::Slow)), "with {waiting} waiting");
        }
    }

    /// What machines said last is counted for three looks more, whoever has been served by then.
    #[test]
    fn a_burst_that_is_over_is_not_taken_for_slowness() {
        let mut watched = Watched::new(400);
        watched.backup(20, 1_000);
        for _ in 0..50 {
            watched.waiting = 400;
            assert_eq!(watched.looks(4, 1_100), None);
            assert_eq!(watched.looks(3, 0), None);
            watched.waiting = 0;
            assert_eq!(watched.looks(20, 0), None);
        }
    }

    #[test]
    fn with_far_more_to_do_than_a_backup_had_one_is_measured() {
        let mut watched = Watched::new(100);
        watched.backup(1, 1_000);
        assert_eq!(watched.looks(99, 9_000), Some((60, Found::Unmeasured)), "it was over before it could be measured");
        watched.backup(20, 1_000);
        watched.waiting = 400;
        assert_eq!(watched.looks(999, 1_050), None);
        watched.waiting = 401;
        assert!(matches!(watched.looks(99, 9_000), Some((_, Found::Unmeasured))));
    }

    /// The same after one that was slow.
    #[test]
    fn nor_is_it_where_somebody_is_suspected() {
        let mut watched = Watched::new(400);
        watched.backup(20, 1_000);
        assert_eq!(watched.looks(99, 100), Some((6, Found::Slow)));
        watched.begin(Role::Measured);
        assert_eq!(watched.looks(4, 1_100), None);
        assert_eq!(watched.looks(3, 0), None);
        watched.waiting = 0;
        assert_eq!(watched.looks(20, 0), None);
    }

    /// Clients come at once and go.
    #[test]
    fn what_was_unmeasured_now_and_then_is_not_left_for_it() {
        let mut watched = Watched::new(100);
        watched.backup(20, 1_000);
        for _ in 0..9 {
            watched.waiting = 401;
            assert_eq!(watched.looks(40, 9_000), None);
            watched.waiting = 400;
            assert_eq!(watched.looks(20, 9_000), None);
        }
    }

    #[test]
    fn a_backup_with_much_to_do_counts_however_soon_it_was_over() {
        let mut watched = Watched::new(3);
        watched.backup(20, 1_000);
        watched.waiting = 400;
        watched.backup(2, 1_000);
        assert_eq!(watched.looks(999, 9_000), None);
    }

    /// Clients that are far away ask at once: their requests are executed in the last look of a span, and wait for
    /// their answers in the next one.
    #[test]
    fn what_is_executed_at_the_end_of_a_span_counts_at_the_load_of_the_next() {
        let mut watched = Watched::new(0);
        watched.begin(Role::Yardstick);
        assert_eq!(watched.looks(1, 0), None);
        watched.waiting = 160;
        assert_eq!(watched.looks(1, 400), None);
        watched.waiting = 400;
        assert_eq!(watched.looks(18, 130), None);
        watched.begin(Role::Measured);
        watched.waiting = 100;
        assert_eq!(watched.looks(20, 33), None, "each request takes as long as in the Backup");
    }

    /// Looks come while a Backup hands on, too.
    #[test]
    fn what_a_backup_did_last_is_known_when_it_has_ended() {
        let mut watched = Watched::new(100);
        watched.begin(Role::Yardstick);
        assert_eq!(watched.looks(3, 1_000), None);
        watched.worth.pause(watched.now);
        watched.begin(Role::Measured);
        assert_eq!(watched.looks(99, 490), Some((6, Found::Slow)));
    }

    #[test]
    fn what_is_rare_is_looked_at_for_longer() {
        let mut watched = Watched::new(1);
        watched.backup(600, 1);
        assert_eq!(watched.looks(999, 0), Some((96, Found::Slow)), "so long a Backup takes for three times the fewest");
    }

    #[test]
    fn what_none_of_the_last_backups_did_is_forgotten() {
        let mut watched = Watched::new(100);
        watched.backup(20, 1_000);
        (0..9).for_each(|_| watched.backup(1, 1));
        (0..3).for_each(|_| watched.backup(20, 100));
        assert_eq!(watched.looks(99, 300), Some((6, Found::Slow)), "those that nobody could measure do not count");
        watched.backup(20, 100);
        assert_eq!(watched.looks(999, 300), None);
    }

    #[test]
    fn nothing_overflows() {
        let mut worth = Worth::new(4);
        for role in [Role::Yardstick, Role::Measured, Role::Yardstick, Role::Yardstick, Role::Measured] {
            worth.begin(Instant(u64::MAX), role);
            for now in [0, 1, 2, u64::MAX / 2, u64::MAX] {
                worth.look(Instant(now), Done { served: u64::MAX, waited: u64::MAX });
            }
            worth.check_invariants();
        }
    }
}
