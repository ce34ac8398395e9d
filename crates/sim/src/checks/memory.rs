//! Bounded memory: what a replica reports never exceeds what `Limits` names: one window above the stable checkpoint,
//! and at most one below it that the replica still has to execute.
//!
//! Batches: those of its own window and, until it has fetched that checkpoint, those above the one that a new view
//! begins with. After a restart it holds what its own log holds, which `log_bytes_per_snapshot` bounds and the window
//! does not: it  is excused until its next stable checkpoint.

use super::{Check, Event};
use bezant_core::cluster::{Cluster, ReplicaId};
use bezant_core::replica::Notice;
use std::collections::BTreeSet;

/// See the [module](self).
#[derive(Debug)]
pub struct Memory {
    pending_max: usize,
    slots_max: usize,
    restarted: BTreeSet<ReplicaId>,
}

impl Memory {
    /// The bounds of this cluster.
    pub const fn new(cluster: &Cluster) -> Self {
        let (pending_max, slots_max) = (cluster.limits.pending_requests_max, 2 * cluster.window() as usize);
        Self { pending_max, slots_max, restarted: BTreeSet::new() }
    }
}

impl Check for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        let (replica, report) = match event {
            Event::Reported(replica, report) => (replica, report),
            Event::Restarted(replica) => {
                self.restarted.insert(*replica);
                return Ok(());
            }
            Event::Noticed(replica, Notice::Stable { .. }) => {
                self.restarted.remove(replica);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if report.pending_requests > self.pending_max {
            return Err(format!(
                "{replica} keeps {} requests; {} is the most",
                report.pending_requests, self.pending_max
            ));
        }
        if report.slots > self.slots_max && !self.restarted.contains(replica) {
            return Err(format!("{replica} keeps {} batches; {} is the most", report.slots, self.slots_max));
        }
        Ok(())
    }
}
