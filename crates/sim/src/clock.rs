//! Clocks that are off and that drift. Machines see their own clock only; the simulator keeps the true time.

use crate::rng::Rng;
use bezant_core::time::Instant;

/// True time at which every run begins, in microseconds since the Unix epoch: far from 0, so that a clock may be slow.
pub const EPOCH: u64 = 1_700_000_000_000_000;

/// One process's clock: monotonic from its start, as the host contract promises.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// Microseconds ahead of true time when the run began.
    pub offset: i64,
    /// Microseconds gained in each true second.
    pub drift: i64,
}

impl Clock {
    /// A clock within `offset_max` microseconds and `drift_max` parts per million of the truth.
    pub const fn draw(rng: &mut Rng, offset_max: u64, drift_max: u64) -> Self {
        Self {
            offset: rng.between(0, 2 * offset_max) as i64 - offset_max as i64,
            drift: rng.between(0, 2 * drift_max) as i64 - drift_max as i64,
        }
    }

    /// What the clock shows `elapsed` microseconds of true time after the run began.
    pub const fn read(&self, elapsed: u64) -> Instant {
        let gained = elapsed as i64 / 1_000 * self.drift / 1_000;
        Instant((EPOCH as i64 + self.offset + elapsed as i64 + gained) as u64)
    }

    /// The first true time after `elapsed` at which the clock shows at least `at`.
    pub const fn when(&self, at: Instant, elapsed: u64) -> u64 {
        let shown = self.read(elapsed).0;
        if at.0 <= shown {
            return elapsed;
        }
        let mut guess = elapsed + (at.0 - shown);
        // The drift over the remaining span moves the answer a little; two corrections are exact for sane drifts.
        let mut round = 0;
        while round < 2 {
            guess = (guess as i64 + at.0 as i64 - self.read(guess).0 as i64) as u64;
            round += 1;
        }
        while self.read(guess).0 < at.0 {
            guess += 1;
        }
        guess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_is_the_inverse_of_read() {
        let mut rng = Rng::stream(3, "clock");
        for _ in 0..1_000 {
            let clock = Clock::draw(&mut rng, 50_000, 500);
            let now = rng.below(10_000_000);
            let at = Instant(clock.read(now).0 + rng.below(5_000_000));
            let when = clock.when(at, now);
            assert!(when >= now && clock.read(when) >= at);
            assert!(clock.read(when).0 - at.0 <= 2, "at most a tick late");
        }
    }

    #[test]
    fn a_clock_never_goes_back() {
        let clock = Clock { offset: -7, drift: -900 };
        assert!((0..100_000).all(|t| clock.read(t) <= clock.read(t + 1)));
    }
}
