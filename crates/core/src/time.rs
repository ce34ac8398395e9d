//! Points and spans of time. The host hands the time in: nothing here reads a clock.

use crate::wire::{Reader, Sink, Wire, WireError};
use core::ops::{Add, AddAssign, Sub};

/// A point in time, in microseconds since the Unix epoch.
///
/// The host estimates the wall clock once, when it starts, and from then on advances with a monotonic clock. So an
/// `Instant` never goes backwards within a run and a step of the system clock does not move it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// A span of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

impl Duration {
    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000)
    }

    /// `self · 2^exponent`, but never more than `max`.
    #[must_use]
    pub fn doubled(self, exponent: u32, max: Self) -> Self {
        let factor = 1u64.checked_shl(exponent).unwrap_or(u64::MAX);
        Self(self.0.saturating_mul(factor).min(max.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Wire for Instant {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(Wire::decode(reader)?))
    }
}
