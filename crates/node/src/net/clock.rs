//! Time for the machines: the wall clock once, then the monotonic clock.

use bezant_core::time::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since the Unix epoch as estimated at the start; never goes back, and a step of the system clock does
/// not move it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
    wall: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::start()
    }
}

impl Clock {
    /// Reads the wall clock, for the only time.
    pub fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { origin: std::time::Instant::now(), wall: since_epoch.as_micros() as u64 }
    }

    /// Now.
    pub fn now(&self) -> Instant {
        Instant(self.wall + self.origin.elapsed().as_micros() as u64)
    }
}

/// How long to sleep until `deadline`; zero if it has passed. Rounded up to a whole millisecond, the grain of the
/// readiness call, so that a timer never makes the loop spin.
pub fn until(deadline: Instant, now: Instant) -> std::time::Duration {
    std::time::Duration::from_millis((deadline - now).0.div_ceil(1000))
}
