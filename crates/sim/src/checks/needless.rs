//! No ring stops without need (ring-O12): while no replica fails and the network keeps its time, nothing that clients
//! do ends an instance of Ring. What a resilient ring stops for is its quota. Where PBFT is all that there is, nothing
//! that clients do makes a replica leave a view, an honest call last, or an honest client find no room. In Aardvark
//! views take turns; and a primary that fetches a state when its turn comes, or has just done so, does not get to
//! propose anything. Where Backups measure other instances, none is left because a request is left out (abs-E6). Nor,
//! where nobody at all lies, is Quorum left because it is slower than they were: it takes two message delays, and they
//! take four. Others take more, and here a message costs nothing but its delay: whether they are worth while depends on
//! the network.
//!
//! Only [calm](crate::scenario::Scenario::is_calm) runs have such a time; all others this check lets pass. Nor does it
//! look at an instance that correct replicas began with different histories, each by a valid proof: nothing can be
//! agreed there, and stopping is how the next one comes.

use super::{Check, Event};
use crate::workload::LIARS_IDENTITY;
use bezant_core::cluster::Cluster;
use bezant_core::digest::Digest;
use bezant_core::ids::{InstanceId, ReplicaId, View};
use bezant_core::notice::{Notice, Report};
use bezant_core::rejection::{Account, Rejection};
use bezant_core::schedule::{Part, Protocol};
use bezant_core::stop::StopReason;
use std::collections::{BTreeMap, BTreeSet};

/// Reasons that are none of these have to do with a fault. The last one follows from another replica's.
const NEEDED: [StopReason; 3] = [StopReason::QuotaDone, StopReason::LowLoad, StopReason::OthersStopped];

/// Why a robust composition leaves what is not worth while.
const NOT_WORTH_WHILE: [StopReason; 3] = [StopReason::SlowerThanABackup, StopReason::Unmeasured, StopReason::LeftAlone];

/// Time-outs of a view within which PBFT answers.
const PATIENCE: u64 = 4;

/// The same for RITAS, which has no views: a round takes some thirty message delays where a batch of PBFT takes three.
const PATIENCE_WITHOUT_VIEWS: u64 = 10 * PATIENCE;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Needless {
    /// `None` if the run is not calm.
    cluster: Option<Cluster>,
    /// Whether nobody lies, no client either.
    all_honest: bool,
    /// The histories with which each instance was begun.
    begun: BTreeMap<InstanceId, BTreeSet<Digest>>,
    /// Those that a replica has left as not worth while.
    left: BTreeSet<InstanceId>,
    /// Who fetches a state, or did, and until when that counts.
    fetching: BTreeMap<ReplicaId, u64>,
    /// When the calls began that have not ended yet, where there is nothing but PBFT.
    calls: BTreeMap<u64, u64>,
}

impl Needless {
    /// Looks at the instances or at the PBFT of this cluster, if the run is calm.
    pub fn new(cluster: &Cluster, is_calm: bool, all_honest: bool) -> Self {
        Self { cluster: is_calm.then(|| cluster.clone()), all_honest, ..Self::default() }
    }

    /// Whether a view ends because no view of Aardvark lasts for ever, and none whose primary is not there yet.
    fn is_turn(&self, at: u64, cluster: &Cluster, next: View, reason: &str) -> bool {
        const TURNS: [&str; 5] = [
            "the view is slower than those before it",
            "f+1 replicas ask for another view",
            "the primary leaves",
            "for a replica that cannot vote in this view",
            "the primary begins anew",
        ];
        let primary = next.0.checked_sub(1).map(|view| cluster.replicas.primary(View(view)));
        let until = primary.and_then(|primary| self.fetching.get(&primary));
        let is_fetching = until.is_some_and(|until| at <= *until);
        cluster.protocol == Protocol::Aardvark && (TURNS.contains(&reason) || is_fetching)
    }
}

impl Check for Needless {
    fn name(&self) -> &'static str {
        "needless"
    }

    fn see(&mut self, at: u64, event: &Event<'_>) -> Result<(), String> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let is_order = cluster.protocol.is_one_order();
        let (replica, notice) = match event {
            Event::Noticed(replica, notice) => (replica, notice),
            Event::Invoked { call, .. } if is_order => {
                self.calls.insert(*call, at);
                return Ok(());
            }
            Event::Reported(replica, report) if is_order => return has_room(*replica, report),
            Event::Answered(call, _) => {
                let took = self.calls.remove(call).map_or(0, |begun| at - begun);
                let has_views = cluster.protocol.orders_by_pbft();
                let patience = if has_views { PATIENCE } else { PATIENCE_WITHOUT_VIEWS };
                return match took > patience * cluster.limits.view_timeout.0 {
                    true => Err(format!("a call took {took} µs although nothing was wrong")),
                    false => Ok(()),
                };
            }
            _ => return Ok(()),
        };
        match notice {
            Notice::Transfer { done, .. } => {
                // It may lack batches yet that follow that state.
                let until = if *done { at + cluster.limits.view_timeout.0 } else { u64::MAX };
                self.fetching.insert(*replica, until);
                Ok(())
            }
            Notice::ViewChangeStarted { view, reason } if is_order && !self.is_turn(at, cluster, *view, reason) => {
                Err(format!("{replica} asks for {view} although nothing was wrong: {reason}"))
            }
            Notice::Begun { instance, history, .. } => {
                self.begun.entry(*instance).or_default().insert(*history);
                Ok(())
            }
            Notice::Stopped { instance, reason } => {
                let is_ring = matches!(cluster.part(*instance), Part::RingFast | Part::RingResilient);
                let is_quorum = cluster.part(*instance) == Part::Quorum;
                let is_slower = self.all_honest && is_quorum && *reason == StopReason::SlowerThanABackup;
                if *reason == StopReason::LeftOut || is_slower {
                    return Err(format!("{replica} stopped {instance} although nothing was wrong: {reason}"));
                }
                let agree = self.begun.get(instance).is_none_or(|histories| histories.len() <= 1);
                let is_left = cluster.protocol.is_robust() && NOT_WORTH_WHILE.contains(reason);
                if is_left {
                    self.left.insert(*instance);
                }
                // Without all n nobody is served: whoever panics then ends it at the others.
                let needs_all = cluster.part(*instance) == Part::RingFast;
                let is_alone = needs_all && *reason == StopReason::Unserved && self.left.contains(instance);
                let may_stop = NEEDED.contains(reason) || is_left || is_alone;
                if is_ring && agree && !may_stop {
                    return Err(format!("{replica} stopped the ring {instance} although nothing was wrong: {reason}"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// An honest client finds room, whatever the one that lies asks for: it has fewer sessions than there are places.
fn has_room(replica: ReplicaId, report: &Report) -> Result<(), String> {
    let refused = report.rejections.iter().filter(|(_, counts)| counts.of(Rejection::Overload) > 0);
    for (account, _) in refused {
        if let Account::Clients(identity) = account
            && *identity != LIARS_IDENTITY
        {
            return Err(format!("{replica} had no room for {identity:?} although nothing was wrong"));
        }
    }
    Ok(())
}
