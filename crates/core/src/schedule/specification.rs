//! What an instance is: everything about it that follows from the schedule and its number. It is fixed when the
//! instance opens, and handed on.

use super::{Part, Quota, Schedule};
use crate::ids::{InstanceId, ReplicaId, View};
use crate::replicas::Replicas;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Specification {
    /// Which instance.
    pub number: InstanceId,
    /// Who takes part in it.
    pub replicas: Replicas,
    /// What it runs.
    pub part: Part,
    /// Who leads it, where somebody does.
    pub head: ReplicaId,
    /// The view in which a Backup's order begins: with another primary in each (abs-P1).
    pub view: View,
    /// Whether another part of the schedule serves fewer clients better, or more: then the instance watches the load.
    pub watches_load: bool,
    /// Whether it needs all replicas, and a Backup that does not comes after it.
    pub yields: bool,
    /// How long instances of its part last; none if it is the only one, which lasts for ever.
    quota: Option<Quota>,
    /// How many of them came before.
    before: u64,
}

impl Specification {
    /// An instance of a schedule, among these replicas.
    pub fn new(schedule: &Schedule, quota: Option<Quota>, replicas: Replicas, number: InstanceId) -> Self {
        let part = schedule.part(number);
        let next = schedule.part(InstanceId(number.0.saturating_add(1)));
        let watches_load = match part {
            Part::Quorum => matches!(next, Part::ZLight | Part::Chain | Part::RingFast),
            Part::ZLight | Part::RingResilient | Part::Backup(_) | Part::Unreplicated => false,
            #[cfg(test)]
            Part::Sample => false,
            Part::Chain | Part::RingFast => schedule.parts().contains(&Part::Quorum),
        };
        Self {
            number,
            replicas,
            part,
            head: schedule.head(replicas, number),
            view: View(schedule.backups_before(number) % replicas.n() as u64),
            watches_load,
            yields: !part.is_backup() && schedule.parts().iter().any(|part| part.is_backup()),
            quota,
            before: schedule.same_before(number),
        }
    }

    /// Whether another instance may follow it.
    pub const fn hands_on(&self) -> bool {
        self.quota.is_some()
    }

    /// k: how many requests it commits before it hands on, if it is one that comes to an end by itself; the minimum if
    /// its init history says that load is low.
    pub fn requests(&self, low_load: bool) -> u64 {
        self.quota.map_or(u64::MAX, |quota| quota.requests(self.before, low_load))
    }
}
