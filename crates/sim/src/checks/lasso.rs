//! Lasso: in the second phase clients wait while the replicas walk through the same states again and again.
//!
//! Views only grow, so the state is taken relative to the lowest view and position among the correct replicas. Seeing
//! one such state many times while calls are open is a livelock, long before the time limit says so.

use super::{Check, Event};
use bezant_core::cluster::Cluster;
use bezant_core::ids::ReplicaId;
use bezant_core::notice::Report;
use std::collections::{BTreeMap, BTreeSet};

/// A state counts as a livelock when it was seen this often, and this many of the longest view time-outs went by.
const VISITS_MAX: u64 = 200;
const TIMEOUTS_MAX: u64 = 60;
/// Where frames take longer than any time-out: so many of the longest such delays as well.
const DELAYS_MAX: u64 = 100;

/// What a replica is doing: view (relative), executed (relative), whether it changes view, whether requests wait.
type Abstract = Vec<(ReplicaId, u64, u64, bool, bool)>;

/// What matters of a report.
#[derive(Clone, Copy, Debug)]
struct Latest {
    view: u64,
    executed: u64,
    /// Positions count requests over all instances, and batches where there is only one.
    progress: u64,
    changing_view: bool,
    waiting: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Lasso {
    patience: u64,
    correct: usize,
    healed: bool,
    /// Calls that clients wait for.
    open: BTreeSet<u64>,
    latest: BTreeMap<ReplicaId, Latest>,
    progress: (u64, u64),
    visits: BTreeMap<Abstract, u64>,
}

impl Lasso {
    /// For this many correct replicas.
    pub fn new(cluster: &Cluster, correct: usize) -> Self {
        let patience = TIMEOUTS_MAX * cluster.limits.view_timeout_max.0;
        let (latest, visits) = (BTreeMap::new(), BTreeMap::new());
        Self { patience, correct, healed: false, open: BTreeSet::new(), latest, progress: (0, 0), visits }
    }

    fn state(&self) -> Abstract {
        let view = self.latest.values().map(|latest| latest.view).min().unwrap_or(0);
        let executed = self.latest.values().map(|latest| latest.executed).min().unwrap_or(0);
        let relative = |(id, latest): (&ReplicaId, &Latest)| {
            (*id, latest.view - view, latest.executed - executed, latest.changing_view, latest.waiting)
        };
        self.latest.iter().map(relative).collect()
    }
}

impl Check for Lasso {
    fn name(&self) -> &'static str {
        "lasso"
    }

    fn see(&mut self, at: u64, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Invoked { call, .. } | Event::AskedAgain(call) => drop(self.open.insert(*call)),
            Event::Answered(call, _) => drop(self.open.remove(call)),
            Event::Healed { delay } => {
                self.healed = true;
                self.patience += DELAYS_MAX * delay;
                self.progress = (at, 0);
            }
            Event::Reported(replica, report) if self.healed => {
                let Report { view, executed, position, changing_view, .. } = **report;
                let progress = if report.part.is_empty() { executed.0 } else { position };
                let waiting = report.pending_requests > 0;
                let latest = Latest { view: view.0, executed: executed.0, progress, changing_view, waiting };
                self.latest.insert(*replica, latest);
                let executed = self.latest.values().map(|latest| latest.progress).sum();
                if executed != self.progress.1 || self.open.is_empty() || self.latest.len() < self.correct {
                    self.progress = (at, executed);
                    self.visits.clear();
                    return Ok(());
                }
                let state = self.state();
                let visits = self.visits.entry(state.clone()).or_default();
                *visits += 1;
                if *visits > VISITS_MAX && at - self.progress.0 > self.patience {
                    return Err(format!(
                        "clients wait, nothing is executed, and this state came {visits} times: {state:?}; \
                         {replica} has rejected {:?}",
                        report.rejections
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
