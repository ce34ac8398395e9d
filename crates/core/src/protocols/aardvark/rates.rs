//! How much was executed, at which load.

/// Requests that wait on average, in thousandths: where fewer do, nobody asks most of the time.
pub(crate) const BUSY: u64 = 500;
/// A stretch counts for those in which as much waits, but for this part of it.
const LOAD_SLACK: u64 = 16;
/// Loads are told apart by the power of two: from nothing to two million requests.
const LOADS: usize = 32;

/// What was done in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rate {
    /// Requests executed in a thousand seconds.
    pub(crate) throughput: u64,
    /// Requests that waited on average, in thousandths.
    pub(crate) load: u64,
}

impl Rate {
    /// Whether so much waits that what was done says something.
    pub(crate) const fn is_busy(&self) -> bool {
        self.load >= BUSY
    }
}

/// The best stretch at each load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates([Rate; LOADS]);

impl Rates {
    pub(crate) fn note(&mut self, rate: Rate) {
        let best = &mut self.0[((u64::BITS - rate.load.leading_zeros()) as usize).min(LOADS - 1)];
        *best = rate.max(*best);
    }

    /// The most that ever waited in one.
    pub(crate) fn most_load(&self) -> u64 {
        self.0.iter().map(|rate| rate.load).max().unwrap_or_default()
    }

    /// What follows from any stretch for a load: as much, if no more waited in it, and in proportion if more did. Each
    /// request took as long as what waited divided by what was executed, and with less to do takes no longer.
    pub(crate) fn promise(&self, load: u64) -> u64 {
        let more = self.0.iter().filter(|rate| rate.load > load);
        // Less than the throughput, which fits.
        let in_proportion = |rate: &Rate| u128::from(rate.throughput) * u128::from(load) / u128::from(rate.load);
        let promised = more.map(in_proportion).max().unwrap_or_default();
        self.with_no_more_than(load).max(promised as u64)
    }

    /// The most that was executed in a stretch in which no more waited.
    pub(crate) fn with_no_more_than(&self, load: u64) -> u64 {
        let most = load.saturating_add(load / LOAD_SLACK);
        self.0.iter().filter(|rate| rate.load <= most).map(|rate| rate.throughput).max().unwrap_or_default()
    }
}
