//! What a view is expected to execute: Aardvark 5 of the [module](super).

use super::rates::{Rate, Rates};
use crate::ids::IdentityId;
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, VecDeque};

/// Halves of a view time-out for which a view is not judged: it has just begun.
const BEGINS_HALVES: u64 = 1;
/// Halves of a view time-out after which more is expected of it with each turn.
const GRACE_HALVES: u64 = 5;
/// A view is expected to do nine tenths of what others did.
const EXPECTED_OF_TEN: u64 = 9;
/// Looks in a row with less than half of what is expected that end a view which has just begun.
const SLOW_LOOKS: u32 = 2;
/// Requests in a look, according to what is expected, in which half as many say something.
const LOOK_REQUESTS: u128 = 32;
/// What is expected grows by a hundredth with each turn: in millionths.
const RAISE: u64 = 1_010_000;
const MILLION: u64 = 1_000_000;
/// What is expected is at most so many times what was ever done, in millionths: then a busy view has failed.
const RAISED_MAX: u64 = 4 * MILLION;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    /// The last views, at most n.
    views: VecDeque<Rates>,
    n: usize,
    /// This one.
    view: Rates,
    /// Requests of its longest batch, and of that of the last view that executed any.
    batch: u64,
    batch_before: u64,
    /// When it began.
    since: Instant,
    /// By how much what is expected has grown since the grace, in millionths.
    raised: u64,
    turn: Turn,
    /// Since somebody last [asked](Self::take_measure), and how many requests of each identity that the cluster file
    /// names were executed.
    measure: Turn,
    executed_of: BTreeMap<IdentityId, u64>,
    /// Since the last look; how many were slow in a row; and whether the last view may not be ended by them, nor this.
    look: Turn,
    slow_looks: u32,
    is_patient: bool,
    ended_by_looks: bool,
}

/// What was done in some stretch of time.
#[derive(Debug)]
pub(crate) struct Measure {
    /// Requests that waited here and were executed.
    pub(crate) executed: u64,
    /// Microseconds for which requests have waited, together.
    pub(crate) waited: u64,
    /// How many requests of each identity that the cluster file names were executed.
    pub(crate) executed_of: BTreeMap<IdentityId, u64>,
}

/// What happens in a turn.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    began: Instant,
    /// How many waited then.
    before: u64,
    executed: u64,
    /// Requests of the longest batch.
    batch: u64,
    /// Requests times the microseconds that they waited.
    waited: u64,
    /// How many wait, and since when that is so.
    waiting: u64,
    at: Instant,
}

impl Turn {
    /// The next one begins as this one ends.
    fn next(self, now: Instant) -> Self {
        Self { began: now, before: self.waiting, waiting: self.waiting, at: now, ..Self::default() }
    }

    fn waiting(&mut self, now: Instant, requests: u64) {
        self.waited = self.waited.saturating_add((now - self.at).0.saturating_mul(self.waiting));
        (self.waiting, self.at) = (requests, now.max(self.at));
    }

    /// What was done in it: of what came in it, and at best, had a batch of what waits been executed before its end.
    /// `None`: it had no length.
    fn ended(mut self, now: Instant) -> Option<(Rate, u64)> {
        self.waiting(now, self.waiting);
        let per =
            |what: u64, unit: u64| (u128::from(what) * u128::from(unit)).checked_div(u128::from((now - self.began).0));
        let of = |what, unit| per(what, unit).map(|rate| u64::try_from(rate).unwrap_or(u64::MAX));
        let throughput = of(self.executed.saturating_sub(self.before), 1_000 * MILLION)?;
        let load = of(self.waited, 1_000)?;
        let a_batch = load.min(self.batch.max(1).saturating_mul(1_000));
        let at_best = of(self.executed, 1_000 * MILLION)?.saturating_add(of(a_batch, MILLION)?);
        Some((Rate { throughput, load }, at_best))
    }
}

impl Expectation {
    pub(super) fn new(n: usize) -> Self {
        let (views, view, turn) = (VecDeque::with_capacity(n), Rates::default(), Turn::default());
        Self {
            views,
            n,
            view,
            batch: 0,
            batch_before: 0,
            since: Instant(0),
            raised: MILLION,
            turn,
            measure: turn,
            executed_of: BTreeMap::new(),
            look: turn,
            slow_looks: 0,
            is_patient: false,
            ended_by_looks: false,
        }
    }

    pub(super) fn entered(&mut self, now: Instant) {
        if self.views.len() == self.n {
            self.views.pop_front();
        }
        // Also where it did nothing: what is expected must come down where the network has become worse.
        self.views.push_back(core::mem::take(&mut self.view));
        if self.batch > 0 {
            self.batch_before = core::mem::take(&mut self.batch);
        }
        self.since = now;
        self.raised = MILLION;
        self.is_patient = core::mem::take(&mut self.ended_by_looks);
        self.pause(now);
    }

    /// Turn and look are void.
    pub(super) fn pause(&mut self, now: Instant) {
        self.turn = self.turn.next(now);
        self.look = self.look.next(now);
        self.measure = self.measure.next(now);
        self.executed_of.clear();
        self.slow_looks = 0;
    }

    /// Goes on with what is expected, where nothing waits yet.
    pub(super) fn resumed(self) -> Self {
        let nothing = Turn::default();
        Self { turn: nothing, look: nothing, measure: nothing, executed_of: BTreeMap::new(), slow_looks: 0, ..self }
    }

    /// What was done since the last time.
    pub(super) fn take_measure(&mut self, now: Instant) -> Measure {
        let mut measure = self.measure;
        measure.waiting(now, measure.waiting);
        self.measure = measure.next(now);
        Measure {
            executed: measure.executed,
            waited: measure.waited,
            executed_of: core::mem::take(&mut self.executed_of),
        }
    }

    /// A request of this identity.
    pub(super) fn executed(&mut self, of: IdentityId) {
        for stretch in [&mut self.turn, &mut self.look, &mut self.measure] {
            stretch.executed = stretch.executed.saturating_add(1);
        }
        // Where others may join nobody asks whose they were.
        if !of.is_dynamic() {
            *self.executed_of.entry(of).or_default() += 1;
        }
    }

    pub(super) fn batch(&mut self, requests: usize) {
        for stretch in [&mut self.turn, &mut self.look] {
            stretch.batch = stretch.batch.max(requests as u64);
        }
        self.batch = self.batch.max(requests as u64);
    }

    /// In this view, or before it: a view may begin with a short one.
    fn longest_batch(&self) -> u64 {
        self.batch.max(self.batch_before)
    }

    pub(super) fn waiting(&mut self, now: Instant, requests: usize) {
        for stretch in [&mut self.turn, &mut self.look, &mut self.measure] {
            stretch.waiting(now, requests as u64);
        }
    }

    fn lasts(&self, now: Instant, view_timeout: Duration, halves: u64) -> bool {
        now - self.since >= Duration(view_timeout.0.saturating_mul(halves) / 2)
    }

    /// A look ends. Whether the view, which has just begun, has failed. Where batches are so long, or so slow, that one
    /// of them may take as long as the look, a look without any says nothing yet, and goes on.
    pub(super) fn look(&mut self, now: Instant, view_timeout: Duration) -> bool {
        let is_empty = self.look.batch == 0;
        let excused = Turn { batch: if is_empty { self.longest_batch() } else { self.look.batch }, ..self.look };
        let is_void = self.is_patient || self.lasts(now, view_timeout, BEGINS_HALVES);
        let ended = excused.ended(now).filter(|(rate, _)| !is_void && rate.is_busy());
        let Some((rate, at_best)) = ended else {
            self.look = self.look.next(now);
            return false;
        };
        let known = self.views.iter().map(|view| view.with_no_more_than(rate.load));
        let yardstick = u128::from(known.max().unwrap_or_default());
        let took = u128::from((now - self.look.began).0);
        let says_something = yardstick * took / u128::from(1_000 * MILLION) >= LOOK_REQUESTS;
        let is_slow = says_something && u128::from(at_best) * 2 < yardstick;
        if is_empty && says_something && !is_slow {
            return false;
        }
        self.look = self.look.next(now);
        self.slow_looks = if is_slow { self.slow_looks + 1 } else { 0 };
        let has_failed = self.slow_looks == SLOW_LOOKS;
        self.ended_by_looks |= has_failed;
        has_failed
    }

    /// The view ends because others found in their looks that it had failed, if it is no older than that.
    pub(super) fn ended_by_others(&mut self, now: Instant, view_timeout: Duration) {
        self.ended_by_looks |= !self.lasts(now, view_timeout, BEGINS_HALVES);
    }

    /// A turn ends. Whether the view has failed in it.
    pub(super) fn turn(&mut self, now: Instant, view_timeout: Duration) -> bool {
        let Some((rate, at_best)) = self.turn.ended(now) else { return false };
        self.turn = self.turn.next(now);
        let views = self.views.iter().chain([&self.view]);
        let yardstick = views.map(|view| view.with_no_more_than(rate.load)).max().unwrap_or_default();
        self.view.note(rate);
        if !self.lasts(now, view_timeout, BEGINS_HALVES) || !rate.is_busy() {
            return false;
        }
        let expected = u128::from(yardstick) * u128::from(EXPECTED_OF_TEN * self.raised) / u128::from(10 * MILLION);
        if self.lasts(now, view_timeout, GRACE_HALVES) {
            self.raised = (self.raised * RAISE / MILLION).min(RAISED_MAX);
        }
        // Whoever was never faster than now has had its turn as well.
        u128::from(at_best) < expected || self.raised == RAISED_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration(2_000_000);
    const TURN: u64 = 500_000;

    /// A replica that watches views.
    struct Watched {
        expectation: Expectation,
        now: Instant,
    }

    impl Watched {
        fn new() -> Self {
            Self { expectation: Expectation::new(4), now: Instant(7) }
        }

        fn view(&mut self) {
            self.expectation.entered(self.now);
        }

        /// A turn in which so many wait all the time, and so many thousands are executed.
        fn turn(&mut self, waiting: usize, executed: usize) -> bool {
            self.expectation.waiting(self.now, waiting);
            self.now += Duration(TURN);
            self.expectation.turn.executed += 1_000 * executed as u64;
            self.expectation.batch(waiting);
            self.expectation.turn(self.now, TIMEOUT)
        }

        /// A look in which a hundred wait, and so many thousands are executed.
        fn look(&mut self, executed: u64) -> bool {
            self.expectation.waiting(self.now, 100);
            self.now += Duration(TURN / 5);
            self.expectation.look.executed += 1_000 * executed;
            self.expectation.batch(100);
            self.expectation.look(self.now, TIMEOUT)
        }

        /// So many turns, until the view fails.
        fn turns(&mut self, most: usize, waiting: usize, executed: usize) -> Option<usize> {
            (1..=most).find(|_| self.turn(waiting, executed))
        }
    }

    #[test]
    fn a_view_that_does_what_it_did_lasts_until_a_little_more_is_expected() {
        let mut watched = Watched::new();
        watched.view();
        // Ten turns of grace; 0.9 · 1.01^11 is more than one.
        assert_eq!(watched.turns(99, 100, 1_000), Some(10 + 11));
    }

    #[test]
    fn a_view_that_begins_with_less_than_half_fails_at_once_but_not_the_one_after_it() {
        let mut watched = Watched::new();
        watched.view();
        assert_eq!(watched.turns(5, 100, 1_000), None);
        // In a look as much as in a turn: five times as fast as before.
        for (executed, fails_in) in [(90, Some(2)), (90, None), (90, Some(2)), (110, None)] {
            watched.view();
            assert_eq!((1..=5).find(|_| watched.look(executed)), fails_in);
        }
    }

    /// Two looks without an answer would end a view whose batches take longer than a look.
    #[test]
    fn a_look_goes_on_while_the_batch_may_take_as_long() {
        let look = Duration(TURN / 5);
        // Requests in a batch, of 2,000 a second, all of which wait; and looks until the view fails.
        for (batch, fails_in) in [(50, 2), (99, 2), (100, 4), (200, 6), (300, 8), (500, usize::MAX)] {
            let mut watched = Watched::new();
            watched.view();
            watched.expectation.waiting(watched.now, batch);
            watched.expectation.batch(batch);
            (watched.expectation.turn.executed, watched.now) = (1_000, watched.now + Duration(TURN));
            assert!(!watched.expectation.turn(watched.now, TIMEOUT));
            watched.view();
            watched.view();
            let ends = |_: &usize| {
                watched.now += look;
                watched.expectation.look(watched.now, TIMEOUT)
            };
            assert_eq!((1..=20).find(ends).unwrap_or(usize::MAX), fails_in, "batches of {batch}");
        }
    }

    /// Else its looks could end one view and those of others the next, and so on.
    #[test]
    fn who_leaves_a_view_for_the_looks_of_others_is_as_patient_as_they_are() {
        let mut watched = Watched::new();
        watched.view();
        assert_eq!(watched.turns(5, 100, 1_000), None);
        for (after, fails_in) in [(TURN, None), (2 * TURN, Some(2))] {
            watched.view();
            watched.now += Duration(after);
            watched.expectation.ended_by_others(watched.now, TIMEOUT);
            watched.view();
            assert_eq!((1..=5).find(|_| watched.look(90)), fails_in, "after {after}");
        }
    }

    #[test]
    fn the_next_view_is_held_to_what_the_last_ones_did() {
        let mut watched = Watched::new();
        watched.view();
        assert_eq!(watched.turns(5, 100, 1_000), None);
        watched.view();
        assert_eq!(watched.turns(99, 100, 800), Some(2), "eight tenths are not enough");
        watched.view();
        assert_eq!(watched.turns(99, 100, 950), Some(10 + 6), "0.9 · 1.01^6 is more than 0.95");
    }

    #[test]
    fn what_none_of_the_last_views_did_is_forgotten() {
        let mut watched = Watched::new();
        watched.view();
        assert_eq!(watched.turns(3, 100, 1_000), None);
        for executed in [500, 0, 0, 0] {
            watched.view();
            assert_eq!(watched.turns(3, 100, executed), Some(2));
        }
        watched.view();
        assert_eq!(watched.turns(99, 100, 480), Some(10 + 7), "0.9 · 500 · 1.01^7 is more than 480");
    }

    #[test]
    fn a_view_with_less_to_do_does_not_fail() {
        let mut watched = Watched::new();
        watched.view();
        assert_eq!(watched.turns(5, 100, 1_000), None);
        assert_eq!(watched.turns(500, 0, 0), None, "nobody asks");
        assert_eq!(watched.turns(3, 40, 100), None, "that is the first turn with so little to do");
        assert_eq!(watched.turns(1, 40, 80), Some(1));
        assert_eq!(watched.turns(1, 93, 800), None, "it is busier than the former, and less busy than the first");
        assert_eq!(watched.turns(1, 95, 800), Some(1), "as good as equal to the first");
    }

    #[test]
    fn with_more_to_do_at_least_as_much_is_done() {
        let mut watched = Watched::new();
        watched.view();
        assert_eq!(watched.turns(5, 1, 100), None);
        assert_eq!(watched.turns(1, 1_000, 91), None);
        assert_eq!(watched.turns(1, 1_000, 80), Some(1));
    }

    #[test]
    fn a_batch_more_or_less_says_nothing() {
        let mut expectation = Expectation::new(4);
        expectation.entered(Instant(0));
        let mut turns = (1..).map(|turn| Instant(turn * TURN));
        let mut turn = |executed| {
            expectation.waiting(expectation.turn.began, 10);
            expectation.turn.executed += executed;
            expectation.batch(10);
            expectation.turn(turns.next().unwrap(), TIMEOUT)
        };
        assert!(!(turn(100) || turn(90) || turn(80)), "0.9 · 100 is no more than 80 and the 10 that wait");
        assert!(turn(79));
    }

    /// Otherwise a primary that is slow from the start would be held to nothing for ever.
    #[test]
    fn a_busy_view_fails_in_the_end_whatever_it_did() {
        let mut watched = Watched::new();
        watched.view();
        assert_eq!(watched.turns(999, 100, 0), Some(9 + 140), "1.01^140 is more than 4");
    }

    #[test]
    fn more_than_a_batch_that_waits_is_no_excuse() {
        let mut watched = Watched::new();
        watched.view();
        assert_eq!(watched.turns(5, 10_000, 1_000), None);
        watched.expectation.waiting(watched.now, 300_000);
        watched.now += Duration(TURN);
        (watched.expectation.turn.executed, watched.expectation.turn.batch) = (1_000_000 * 7 / 10, 100);
        assert!(watched.expectation.turn(watched.now, TIMEOUT));
    }

    #[test]
    fn a_turn_without_length_is_none() {
        let mut expectation = Expectation::new(4);
        expectation.entered(Instant(5));
        assert!(!expectation.turn(Instant(5), TIMEOUT));
    }

    #[test]
    fn nothing_overflows() {
        let mut expectation = Expectation::new(4);
        for now in [1, 2, u64::MAX / 2, u64::MAX] {
            expectation.waiting(Instant(now), usize::MAX);
            expectation.turn.executed = u64::MAX;
            expectation.executed(IdentityId(1));
            expectation.batch(usize::MAX);
            expectation.turn(Instant(now), Duration(u64::MAX));
            expectation.entered(Instant(now));
        }
        assert!(expectation.raised <= RAISED_MAX && expectation.views.len() <= 4);
    }
}
