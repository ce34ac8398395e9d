//! No ring stops without need (O12 of the note on Ring): while no replica fails and the network keeps its time, nothing
//! that clients do ends an instance of Ring. What a resilient ring stops for is its quota.
//!
//! Only [calm](crate::scenario::Scenario::is_calm) runs have such a time; all others this check lets pass. Nor does it
//! look at an instance that correct replicas began with different histories, each by a valid proof: nothing can be
//! agreed there, and stopping is how the next one comes.

use super::{Check, Event};
use bezant_core::cluster::{Cluster, InstanceId};
use bezant_core::compositions::Part;
use bezant_core::digest::Digest;
use bezant_core::replica::Notice;
use std::collections::{BTreeMap, BTreeSet};

/// Reasons that are none of these have to do with a fault. The last one follows from another replica's.
const NEEDED: [&str; 3] = ["its quota is done", "at most one client for two seconds", "f+1 replicas have stopped"];

/// See the [module](self).
#[derive(Debug)]
pub struct Needless {
    /// `None` if the run is not calm.
    cluster: Option<Cluster>,
    /// The histories with which each instance was begun.
    begun: BTreeMap<InstanceId, BTreeSet<Digest>>,
}

impl Needless {
    /// Looks at the rings of this cluster, if the run is calm.
    pub fn new(cluster: &Cluster, is_calm: bool) -> Self {
        Self { cluster: is_calm.then(|| cluster.clone()), begun: BTreeMap::new() }
    }
}

impl Check for Needless {
    fn name(&self) -> &'static str {
        "needless"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        let (Event::Noticed(replica, notice), Some(cluster)) = (event, &self.cluster) else { return Ok(()) };
        match notice {
            Notice::Begun { instance, history, .. } => {
                self.begun.entry(*instance).or_default().insert(*history);
                Ok(())
            }
            Notice::Stopped { instance, reason } => {
                let is_ring = matches!(cluster.part(*instance), Some(Part::RingFast | Part::RingResilient));
                let agree = self.begun.get(instance).is_none_or(|histories| histories.len() <= 1);
                if is_ring && agree && !NEEDED.contains(reason) {
                    return Err(format!("{replica} stopped the ring {instance} although nothing was wrong: {reason}"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
