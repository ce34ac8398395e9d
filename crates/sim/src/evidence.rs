//! What a run has met: evidence that the drawing leads where it should. What never happens in many runs is not tested
//! by them, whatever the limits say.

use crate::checks::Event;
use bezant_core::cluster::Cluster;
use bezant_core::ids::ReplicaId;
use bezant_core::machine::Machine;
use bezant_core::notice::Notice;
use bezant_core::registry::Message;
use bezant_core::replica::Replica;
use bezant_core::service::Service;
use bezant_core::switching::{Switch, SwitchMessage};
use serde::Serialize;
use std::collections::BTreeMap;

/// Instances that end without an entry of their own before this counts as many in a row.
const MANY: u64 = 4;

/// In how many runs something happened, and the most of it in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Runs in which nothing but clients could be wrong: the check `needless` looks.
    pub calm: u64,
    /// Runs with small limits.
    pub small_limits: u64,
    /// Runs with a spell without a network.
    pub blackouts: u64,
    /// Runs in which the cluster was closed.
    pub closed: u64,
    /// Runs in which an honest client's signature was over several requests.
    pub shared_signatures: u64,
    /// Runs in which an identity had all the sessions that it may have.
    pub full_sessions: u64,
    /// Runs in which a session was evicted and its identity's floor raised.
    pub evictions: u64,
    /// Runs in which nobody could join because all places were taken.
    pub full_members: u64,
    /// Runs in which as many requests waited at a replica as may.
    pub full_pools: u64,
    /// Runs in which an abort report was as long as may be.
    pub full_reports: u64,
    /// The longest abort report, as parts per hundred of its bound.
    pub longest_report: u64,
    /// Runs with four instances in a row that ended without an entry of their own.
    pub failures_in_a_row: u64,
    /// The most of them.
    pub most_failures_in_a_row: u64,
    /// Instances, over all runs.
    pub instances: u64,
    /// The most in one.
    pub most_instances: u64,
}

impl Evidence {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        let Self { calm, small_limits, blackouts, full_sessions, evictions, full_members, .. } = *other;
        self.calm += calm;
        self.small_limits += small_limits;
        self.blackouts += blackouts;
        self.full_sessions += full_sessions;
        self.evictions += evictions;
        self.full_members += full_members;
        self.closed += other.closed;
        self.shared_signatures += other.shared_signatures;
        self.full_pools += other.full_pools;
        self.full_reports += other.full_reports;
        self.longest_report = self.longest_report.max(other.longest_report);
        self.failures_in_a_row += other.failures_in_a_row;
        self.most_failures_in_a_row = self.most_failures_in_a_row.max(other.most_failures_in_a_row);
        self.instances += other.instances;
        self.most_instances = self.most_instances.max(other.most_instances);
    }
}

/// Watches a run.
#[derive(Debug)]
pub struct Watch {
    /// What it has seen.
    pub evidence: Evidence,
    pending_max: usize,
    report_max: u64,
    /// Instances since the last entry of each correct replica.
    empty: BTreeMap<ReplicaId, u64>,
}

impl Watch {
    /// A run of this cluster.
    pub fn new(cluster: &Cluster) -> Self {
        let (pending_max, report_max) = (cluster.limits.pending_requests_max, cluster.inherited_bound());
        Self { evidence: Evidence::default(), pending_max, report_max, empty: BTreeMap::new() }
    }

    /// Looks at what the checks see.
    pub fn see(&mut self, event: &Event<'_>) {
        let seen = &mut self.evidence;
        match event {
            Event::Said(_, Message::Switch(Switch { message: SwitchMessage::Abort(report), .. })) => {
                let length = report.claims().digests.len() as u64;
                seen.longest_report = seen.longest_report.max(100 * length / self.report_max.max(1));
                seen.full_reports |= u64::from(length >= self.report_max);
            }
            Event::Noticed(replica, Notice::Switched { instance, .. }) => {
                seen.instances = seen.instances.max(instance.0);
                seen.most_instances = seen.instances;
                let empty = self.empty.entry(*replica).or_default();
                *empty += 1;
                seen.most_failures_in_a_row = seen.most_failures_in_a_row.max(*empty);
                seen.failures_in_a_row |= u64::from(*empty >= MANY);
            }
            Event::Noticed(replica, Notice::Logged { .. } | Notice::Executed { .. }) => {
                self.empty.insert(*replica, 0);
            }
            Event::Reported(_, report) => {
                seen.full_pools |= u64::from(report.pending_requests >= self.pending_max);
            }
            _ => {}
        }
    }

    /// Looks at a replica's client table.
    pub fn inspect<S: Service>(&mut self, replica: &Replica<S>)
    where
        Replica<S>: Machine,
    {
        if self.evidence.full_sessions & self.evidence.evictions == 0 {
            let (is_full, has_evicted) = replica.estate().crowding();
            self.evidence.full_sessions |= u64::from(is_full);
            self.evidence.evictions |= u64::from(has_evicted);
        }
    }
}
