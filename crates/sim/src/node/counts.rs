//! What the replicas of a run went through.

/// How often things happened in the replicas: what never happens in many runs is not tested by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// View changes started.
    pub view_changes: u64,
    /// State transfers completed.
    pub transfers: u64,
    /// Tentative executions undone.
    pub rollbacks: u64,
    /// Restarts from a disk.
    pub recoveries: u64,
    /// Logs lost or refused, so that their replicas had to abstain.
    pub lost_logs: u64,
    /// Syncs that failed.
    pub failed_syncs: u64,
    /// Disks put back to an earlier copy.
    pub old_disks: u64,
    /// Stable checkpoints.
    pub checkpoints: u64,
    /// Batches executed for good.
    pub executed: u64,
    /// Alarms that a ring is slow.
    pub slow_rings: u64,
}

impl Counts {
    /// Adds those of another replica or run.
    pub const fn add(&mut self, other: &Self) {
        self.view_changes += other.view_changes;
        self.transfers += other.transfers;
        self.rollbacks += other.rollbacks;
        self.recoveries += other.recoveries;
        self.lost_logs += other.lost_logs;
        self.failed_syncs += other.failed_syncs;
        self.old_disks += other.old_disks;
        self.checkpoints += other.checkpoints;
        self.executed += other.executed;
        self.slow_rings += other.slow_rings;
    }
}
