//! Whether load is so low that Quorum would serve it better: for Chain and Ring.

use super::speculation::Speculation;
use crate::ids::ClientId;
use crate::protocols::speculative::{Speaker, SpeculativeTimer};
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::Surroundings;
use crate::time::Duration;

/// How long at most one client must have been active for load to be low.
pub(crate) const LOW_LOAD: Duration = Duration::from_millis(2_000);

/// Clients seen since it was last looked at: all that decides is whether there was one and no other, and who asks
/// chooses how many sessions it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Active {
    #[default]
    Nobody,
    One(ClientId),
    Several,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Whether it is watched, for a composition that has something better for low load.
    is_watched: bool,
    active: Active,
}

impl Load {
    pub(crate) const fn new(is_watched: bool) -> Self {
        Self { is_watched, active: Active::Nobody }
    }

    /// The first input of an instance.
    pub(crate) fn start(&self, s: &mut Surroundings<'_, impl Speaker>, is_stopped: bool) {
        if self.is_watched && !is_stopped {
            s.set_timer(SpeculativeTimer::LowLoad, s.now + LOW_LOAD);
        }
    }

    /// Requests of these clients come by.
    pub(crate) fn note(&mut self, clients: impl Iterator<Item = ClientId>) {
        for client in clients {
            self.active = match self.active {
                Active::Nobody => Active::One(client),
                Active::One(known) if known == client => Active::One(client),
                Active::One(_) | Active::Several => Active::Several,
            };
        }
    }

    /// The time is over: stops the instance if there was one client only.
    pub(crate) fn judge<S: Service>(&mut self, s: &mut Surroundings<'_, impl Speaker>, base: &mut Speculation<S>) {
        if base.is_stopped() {
            return;
        }
        if matches!(core::mem::take(&mut self.active), Active::One(_)) {
            return base.stop(s, StopReason::LowLoad, true);
        }
        s.set_timer(SpeculativeTimer::LowLoad, s.now + LOW_LOAD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::IdentityId;

    #[test]
    fn one_client_and_no_other_is_low_load_however_often_it_asks() {
        let client = |session| ClientId { identity: IdentityId(1), session };
        let active = |sessions: &[u32]| {
            let mut load = Load::new(true);
            load.note(sessions.iter().map(|session| client(*session)));
            load.active
        };
        assert_eq!(active(&[]), Active::Nobody);
        assert_eq!(active(&[5, 5, 5]), Active::One(client(5)));
        assert_eq!(active(&[5, 6, 5]), Active::Several);
    }
}
