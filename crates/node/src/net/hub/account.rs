//! An account of time: what is owed is paid off as time passes.

use std::time::{Duration, Instant};

/// When it will be paid off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account(Option<Instant>);

impl Account {
    /// Owes so much more.
    pub(super) fn charge(&mut self, price: Duration, now: Instant) {
        self.0 = Some(self.0.map_or(now, |until| until.max(now)) + price);
    }

    /// Owes so much more, but no more than `most` in all.
    pub(super) fn charge_up_to(&mut self, most: Duration, price: Duration, now: Instant) {
        self.charge(price.min(most), now);
        self.0 = self.0.min(Some(now + most));
    }

    /// Owes so much less; nothing is saved up.
    pub(super) fn pay(&mut self, sum: Duration) {
        self.0 = self.0.and_then(|until| until.checked_sub(sum));
    }

    /// What is owed.
    pub(super) fn owes(self, now: Instant) -> Duration {
        self.0.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}
