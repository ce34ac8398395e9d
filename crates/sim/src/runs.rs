//! Runs scenarios: one, or a range of seeds on all cores, and adds up what came of them.

use crate::byzantine::{Acts, add_acts};
use crate::evidence::Evidence;
use crate::node::Counts;
use crate::options::ScenarioOptions;
use crate::panics;
use crate::scenario::Scenario;
use crate::trace::Trace;
use crate::world::{Verdict, World};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runs one scenario.
pub fn run(options: &ScenarioOptions) -> Verdict {
    panics::judge(|| World::new(Scenario::draw(options), false).run().0, |verdict| verdict)
}

/// Runs one scenario and keeps a readable trace; of a run that panics the trace up to there is lost with it.
pub fn run_traced(options: &ScenarioOptions) -> (Verdict, Trace) {
    let world = || World::new(Scenario::draw(options), true).run();
    panics::judge(world, |verdict| (verdict, Trace::new(false)))
}

/// What came of many runs.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Runs.
    pub scenarios: u64,
    /// The runs that violated something, by seed.
    pub failures: Vec<(ScenarioOptions, Verdict)>,
    /// Things that happened, calls that ended, and what the replicas went through.
    pub events: u64,
    /// Calls of clients that ended.
    pub answered: u64,
    /// Over all runs.
    pub counts: Counts,
    /// What the liars did, over all runs.
    pub acts: Acts,
    /// What the runs met.
    pub evidence: Evidence,
    /// What the runs took on their cores together.
    pub cpu: Duration,
    /// Things that happened in each run, in no order.
    pub lengths: Vec<u64>,
    /// Runs whose second run had another trace.
    pub diverged: Vec<u64>,
    /// The first seed that was not begun; the end of the range unless the hunt stopped before.
    pub next: u64,
    /// Whether somebody stopped it before that.
    pub interrupted: bool,
}

/// How to run many seeds.
#[derive(Clone, Debug)]
pub struct RangeOptions {
    /// Threads; each runs whole scenarios.
    pub threads: usize,
    /// Whether each seed runs twice and its trace hashes are compared.
    pub check_determinism: bool,
    /// Stop after so many failures.
    pub failures_max: usize,
    /// Stop as soon as this is set; runs that have begun come to their end.
    pub stop: Arc<AtomicBool>,
}

impl Default for RangeOptions {
    /// All cores, each seed once, until five have failed.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { threads, check_determinism: false, failures_max: 5, stop: Arc::default() }
    }
}

/// Runs a range of seeds of otherwise equal options. `progress` is called now and then with the runs done so far.
pub fn run_range(
    options: &ScenarioOptions,
    seeds: Range<u64>,
    range: &RangeOptions,
    progress: &(dyn Fn(u64) + Sync),
) -> Summary {
    let judge = |seed| {
        let options = ScenarioOptions { seed, ..options.clone() };
        let verdict = run(&options);
        let same = !range.check_determinism || run(&options).trace_hash == verdict.trace_hash;
        (options, verdict, same)
    };
    let add = |summary: &mut Summary, (options, verdict, same)| {
        summary.add(options, verdict, same);
        if summary.scenarios.is_multiple_of(1_000) {
            progress(summary.scenarios);
        }
        summary.failures.len()
    };
    let (mut summary, Hunt { next, interrupted, cpu }) = hunt(seeds, range, judge, add);
    summary.failures.sort_by_key(|(options, _)| options.seed);
    Summary { next, interrupted, cpu, ..summary }
}

/// How far a hunt came, and what it took.
pub(crate) struct Hunt {
    /// The first seed that was not begun.
    pub(crate) next: u64,
    /// Whether somebody stopped it.
    pub(crate) interrupted: bool,
    /// What it took on all cores together.
    pub(crate) cpu: Duration,
}

/// Runs a range of seeds on all threads. `add` adds up what came of each, and says how many have failed so far.
pub(crate) fn hunt<T: Default + Send, V>(
    seeds: Range<u64>,
    range: &RangeOptions,
    run: impl Fn(u64) -> V + Sync,
    add: impl Fn(&mut T, V) -> usize + Sync,
) -> (T, Hunt) {
    let next = AtomicU64::new(seeds.start);
    let enough = AtomicBool::new(false);
    let sum = Mutex::new((T::default(), Duration::ZERO));
    // A poisoned lock means that another thread has panicked: its panic is what will be seen.
    let lock = || sum.lock().unwrap_or_else(PoisonError::into_inner);
    let run_all = || loop {
        if enough.load(Ordering::Relaxed) || range.stop.load(Ordering::Relaxed) {
            return;
        }
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seeds.end {
            return;
        }
        let result = run(seed);
        if add(&mut lock().0, result) >= range.failures_max {
            enough.store(true, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..range.threads.max(1) {
            scope.spawn(|| {
                run_all();
                lock().1 += cpu_time();
            });
        }
    });
    let (sum, cpu) = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    let next = next.into_inner().min(seeds.end);
    (sum, Hunt { next, interrupted: range.stop.load(Ordering::Relaxed) && next < seeds.end, cpu })
}

/// What this thread has computed so far: by the clock on the wall, a busy machine would seem a slow simulator. Zero
/// where the system does not say.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or(0))
}

impl Summary {
    /// Which part of all that happened was in the longest tenth of the runs.
    pub fn longest_tenth(&self) -> f64 {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        let tenth = lengths.len() - lengths.len().div_ceil(10);
        lengths[tenth..].iter().sum::<u64>() as f64 / self.events.max(1) as f64
    }

    fn add(&mut self, options: ScenarioOptions, verdict: Verdict, same: bool) {
        self.scenarios += 1;
        self.events += verdict.events;
        self.lengths.push(verdict.events);
        self.answered += verdict.answered;
        self.counts.add(&verdict.counts);
        add_acts(&mut self.acts, &verdict.acts);
        self.evidence.add(&verdict.evidence);
        if !same {
            self.diverged.push(options.seed);
        }
        if !verdict.violations.is_empty() {
            self.failures.push((options, verdict));
        }
    }
}
