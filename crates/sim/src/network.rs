//! The network between processes: delay, loss, duplication, reordering, bandwidth, cuts.

use crate::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// The longest queue of a link, in microseconds of its rate; what exceeds it is lost.
const BACKLOG_MAX: u64 = 20_000;

/// A machine in the simulated world. Twins are two processes with one identity.
pub type ProcessId = usize;

/// Processes from here on are clients; below are replicas, then twins.
pub const CLIENTS: ProcessId = 32;

/// Processes of a run have numbers below this: replicas, twins, clients.
pub const PROCESSES_MAX: usize = 64;

/// How links behave. Times in microseconds of true time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Least delay of a frame.
    pub delay_min: u64,
    /// Most delay added to it, evenly drawn.
    pub jitter: u64,
    /// Frames lost, per mille.
    pub loss: u64,
    /// Frames delivered a second time, per mille.
    pub duplication: u64,
    /// Whether a frame may overtake an earlier one of the same link.
    pub reordering: bool,
    /// Bytes that a link carries in a millisecond; 0 is unlimited.
    pub rate: u64,
}

impl Profile {
    /// The same delays, and nothing goes wrong.
    #[must_use]
    pub fn healed(&self) -> Self {
        Self { loss: 0, duplication: 0, reordering: false, rate: 0, ..self.clone() }
    }
}

/// A shape of partition, drawn by the schedule and applied by [`Network::cut`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Two sides that do not hear one another.
    Split(BTreeSet<ProcessId>),
    /// One direction only: these are not heard by the others, but hear them.
    Mute(BTreeSet<ProcessId>),
    /// One direction only: these hear nobody of the others, but are heard.
    Deaf(BTreeSet<ProcessId>),
    /// One link in one direction.
    Link(ProcessId, ProcessId),
    /// The same of many links, each by itself, with what is under way there: no two processes hear the same.
    Links(BTreeSet<(ProcessId, ProcessId)>),
    /// Every link.
    All,
    /// Every link between replicas; what is under way there is lost.
    Replicas,
}

impl Cut {
    fn blocks(&self, from: ProcessId, to: ProcessId) -> bool {
        match self {
            Self::Split(side) => side.contains(&from) != side.contains(&to),
            Self::Mute(side) => side.contains(&from) && !side.contains(&to),
            Self::Deaf(side) => side.contains(&to) && !side.contains(&from),
            Self::Link(a, b) => (*a, *b) == (from, to),
            Self::Links(links) => links.contains(&(from, to)),
            Self::All => true,
            Self::Replicas => from < CLIENTS && to < CLIENTS,
        }
    }
}

/// The state of all links.
#[derive(Debug)]
pub struct Network {
    profile: Profile,
    rng: Rng,
    cuts: BTreeMap<u32, Cut>,
    /// From each process to each.
    links: Vec<Link>,
}

/// From one process to another.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// When its last frame arrives, so that frames stay in order where they must.
    last_arrival: u64,
    /// When it has carried what it was given.
    busy_until: u64,
}

impl Network {
    /// Links that behave as the profile says.
    pub fn new(profile: Profile, rng: Rng) -> Self {
        Self { profile, rng, cuts: BTreeMap::new(), links: vec![Link::default(); PROCESSES_MAX * PROCESSES_MAX] }
    }

    /// Cuts links until [`Network::mend`] is called with the same name.
    pub fn cut(&mut self, name: u32, cut: Cut) {
        self.cuts.insert(name, cut);
    }

    /// Ends one cut.
    pub fn mend(&mut self, name: u32) {
        self.cuts.remove(&name);
    }

    /// Whether what is under way is lost.
    pub fn loses(&self, from: ProcessId, to: ProcessId) -> bool {
        self.cuts.values().any(|cut| matches!(cut, Cut::Replicas | Cut::Links(_)) && cut.blocks(from, to))
    }

    /// Ends every cut and makes links reliable from now on.
    pub fn heal(&mut self) {
        self.cuts.clear();
        self.profile = self.profile.healed();
    }

    /// When a frame of `bytes` bytes sent now arrives: never, once or twice.
    pub fn route(&mut self, now: u64, from: ProcessId, to: ProcessId, bytes: usize) -> [Option<u64>; 2] {
        if self.cuts.values().any(|cut| cut.blocks(from, to)) || self.rng.per_mille(self.profile.loss) {
            return [None, None];
        }
        let link = &mut self.links[from * PROCESSES_MAX + to];
        let mut leaves = now;
        if let Some(transmission) = (bytes as u64 * 1_000).checked_div(self.profile.rate) {
            if link.busy_until > now + BACKLOG_MAX {
                return [None, None];
            }
            leaves = leaves.max(link.busy_until) + transmission;
            link.busy_until = leaves;
        }
        let mut arrives = leaves + self.profile.delay_min + self.rng.below(self.profile.jitter + 1);
        if !self.profile.reordering {
            arrives = arrives.max(link.last_arrival);
            link.last_arrival = arrives;
        }
        let again = self
            .rng
            .per_mille(self.profile.duplication)
            .then(|| arrives + self.rng.below(20 * (self.profile.jitter + 1)));
        [Some(arrives), again]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(loss: u64, reordering: bool) -> Network {
        let profile = Profile { delay_min: 100, jitter: 1_000, loss, duplication: 0, reordering, rate: 100 };
        Network::new(profile, Rng::stream(1, "network"))
    }

    #[test]
    fn without_reordering_frames_stay_in_order_and_the_rate_is_kept() {
        let mut network = network(0, false);
        let arrivals: Vec<u64> = (0..20).map(|_| network.route(0, 0, 1, 100)[0].unwrap()).collect();
        assert!(arrivals.is_sorted());
        assert!(arrivals[19] >= 20_000, "20 frames of 100 bytes at 100 bytes a millisecond");
        assert!((0..9).any(|_| network.route(0, 0, 1, 100) == [None, None]), "the queue is bounded");
    }

    #[test]
    fn cuts_have_directions_and_end() {
        let mut network = network(0, true);
        network.cut(1, Cut::Mute(BTreeSet::from([0])));
        assert_eq!(network.route(0, 0, 1, 1), [None, None]);
        assert!(network.route(0, 1, 0, 1)[0].is_some());
        network.mend(1);
        assert!(network.route(0, 0, 1, 1)[0].is_some());
    }

    #[test]
    fn a_healed_network_loses_nothing() {
        let mut network = network(1_000, true);
        assert_eq!(network.route(0, 0, 1, 1), [None, None]);
        network.heal();
        assert!(network.route(0, 0, 1, 1)[0].is_some());
    }
}
