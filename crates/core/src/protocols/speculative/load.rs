//! Whether load is so low that Quorum would serve it better: for Chain and Ring.

use super::Speculation;
use crate::cluster::ClientId;
use crate::machine::Duration;
use crate::replica::ReplicaTimer;
use crate::service::Service;
use crate::switching::Surroundings;
use alloc::collections::BTreeSet;

/// How long at most one client must have been active for load to be low.
pub(crate) const LOW_LOAD: Duration = Duration::from_millis(2_000);

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Whether it is watched, for a composition that has something better for low load.
    is_watched: bool,
    /// Clients seen since it was last looked at.
    active: BTreeSet<ClientId>,
}

impl Load {
    pub(crate) const fn new(is_watched: bool) -> Self {
        Self { is_watched, active: BTreeSet::new() }
    }

    /// The first input of an instance.
    pub(crate) fn start<S: Service>(&self, s: &mut Surroundings<'_, S>, is_stopped: bool) {
        if self.is_watched && !is_stopped {
            s.out.set_timer(ReplicaTimer::LowLoad, s.now + LOW_LOAD);
        }
    }

    /// Requests of these clients come by.
    pub(crate) fn note(&mut self, clients: impl Iterator<Item = ClientId>) {
        self.active.extend(clients);
    }

    /// The time is over: stops the instance if there was one client only.
    pub(crate) fn look<S: Service>(&mut self, s: &mut Surroundings<'_, S>, base: &mut Speculation<S>) {
        if base.is_stopped() {
            return;
        }
        if core::mem::take(&mut self.active).len() == 1 {
            return base.stop(s, "at most one client for two seconds", true);
        }
        s.out.set_timer(ReplicaTimer::LowLoad, s.now + LOW_LOAD);
    }
}
