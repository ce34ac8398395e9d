//! Bounded memory: what a replica reports never exceeds what `Limits` names.

use super::{Check, Event};
use bezant_core::cluster::Cluster;

/// See the [module](self).
#[derive(Debug)]
pub struct Memory {
    pending_max: usize,
    slots_max: usize,
}

impl Memory {
    /// The bounds of this cluster.
    pub const fn new(cluster: &Cluster) -> Self {
        Self { pending_max: cluster.limits.pending_requests_max, slots_max: cluster.window() as usize }
    }
}

impl Check for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        let Event::Reported(replica, report) = event else { return Ok(()) };
        if report.pending_requests > self.pending_max {
            return Err(format!(
                "{replica} keeps {} requests; {} is the most",
                report.pending_requests, self.pending_max
            ));
        }
        if report.slots > self.slots_max {
            return Err(format!("{replica} keeps {} batches; {} is the most", report.slots, self.slots_max));
        }
        Ok(())
    }
}
