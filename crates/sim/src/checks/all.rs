//! All checks of a run, and what they found.

use super::{
    Agreement, Check, Contradiction, Event, Inheritance, Lasso, Linearizability, Memory, Needless, Roots, Validity,
    Violation,
};
use crate::evidence::Watch;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{InstanceId, ReplicaId};
use bezant_core::notice::Notice;
use std::collections::BTreeMap;

/// See the [module](self).
pub struct Checks {
    checks: Vec<Box<dyn Check>>,
    /// What they found. Each check speaks once: what follows a first violation is noise.
    pub violations: Vec<Violation>,
    /// Counts what the run meets.
    pub watch: Watch,
    /// Whether correct replicas may execute a request otherwise.
    pub dissent: bool,
    /// Whether a client has asked to close the cluster.
    pub closing: bool,
    /// The position that it was answered with.
    pub closed: Option<u64>,
    /// The last instance of which each replica has the beginning; none of the first one, which needs none.
    pub begun: BTreeMap<ReplicaId, InstanceId>,
}

impl Checks {
    /// Every check there is, for so many identities of clients and correct replicas, and a run in which nothing but
    /// clients may be wrong if it is calm, and nobody lies if all are honest. With `dissent` correct replicas may
    /// execute a request otherwise; then those who lie may give an answer and testify against it, so that it is taken
    /// back (see [`bezant_core::dissent`]).
    pub fn new(
        cluster: &Cluster,
        identities: usize,
        correct: usize,
        (is_calm, all_honest): (bool, bool),
        dissent: bool,
        liars: bool,
    ) -> Self {
        let mut checks: Vec<Box<dyn Check>> = vec![
            Box::new(Agreement::default()),
            Box::new(Validity::new(cluster)),
            Box::new(Contradiction::new(dissent)),
            Box::new(Inheritance::default()),
            Box::new(Roots::new(dissent, liars)),
            Box::new(Memory::new(cluster, identities, dissent)),
            Box::new(Lasso::new(cluster, correct)),
            Box::new(Needless::new(cluster, is_calm, all_honest)),
        ];
        if !(dissent && liars) {
            checks.push(Box::new(Linearizability::default()));
        }
        let (violations, watch) = (Vec::new(), Watch::new(cluster));
        Self { checks, violations, watch, dissent, closing: false, closed: None, begun: BTreeMap::new() }
    }

    /// Shows an event to every check.
    pub fn see(&mut self, at: u64, event: &Event<'_>) {
        self.watch.see(event);
        if let Event::Noticed(replica, Notice::Begun { instance, .. }) = event {
            self.begun.insert(*replica, *instance);
        }
        for check in &mut self.checks {
            if let Err(what) = check.see(at, event) {
                report(&mut self.violations, check.name(), at, what);
            }
        }
    }

    /// Says that the run is over.
    pub fn finish(&mut self, at: u64) {
        for check in &mut self.checks {
            if let Err(what) = check.finish() {
                report(&mut self.violations, check.name(), at, what);
            }
        }
    }

    /// Adds something that the world itself found.
    pub fn fail(&mut self, check: &'static str, at: u64, what: String) {
        report(&mut self.violations, check, at, what);
    }
}

fn report(violations: &mut Vec<Violation>, check: &'static str, at: u64, what: String) {
    if !violations.iter().any(|violation| violation.check == check) {
        violations.push(Violation { check, at, what });
    }
}
