//! The attacks by name: some are made here, and every client of the simulator that lies is one
//! ([`bezant_sim::byzantine`]): the same file tells its lies to real replicas.

use bezant_sim::byzantine::Adversary;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::sync::LazyLock;

/// What an attacker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Requests whose MACs some replicas accept and others do not, and panics.
    PartialMacs,
    /// Signed requests with good MACs, and a panic with each.
    Panics,
    /// Connections without a key that are closed at once, as fast as they can be made.
    ConnectFlood,
    /// What this client of the simulator does.
    Simulated(Adversary),
}

/// All of them.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let own = [Kind::PartialMacs, Kind::Panics, Kind::ConnectFlood];
    let named = |adversary: &&Adversary| own.iter().any(|kind| kind.name() == adversary.label());
    let clients = Adversary::ALL.iter().filter(|adversary| adversary.corrupts_clients());
    own.into_iter().chain(clients.filter(|it| !named(it)).map(|it| Kind::Simulated(*it))).collect()
});

impl Kind {
    /// Whether it comes from somebody who joins, and has no key that the cluster's file names.
    pub(crate) fn joins(self) -> bool {
        matches!(self, Self::Simulated(adversary) if adversary.needs_strangers())
    }

    const fn name(self) -> &'static str {
        match self {
            Self::PartialMacs => "partial-macs",
            Self::Panics => "panics",
            Self::ConnectFlood => "connect-flood",
            Self::Simulated(adversary) => adversary.label(),
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::PartialMacs => "Requests whose MACs some replicas accept and others do not, and panics",
            Self::Panics => "Signed requests with good MACs, and a panic with each",
            Self::ConnectFlood => "Connections without a key that are closed at once, as fast as they can be made",
            Self::Simulated(adversary) => adversary.about(),
        }
    }
}

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        &KINDS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.help()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::liar::Lie;

    /// What a robust cluster has to stand has one name wherever it can be had.
    #[test]
    fn the_attacks_on_robust_clusters_are_in_the_simulator_and_real() {
        let clients = ["client-flood", "partial-macs", "malformed", "panic-storm", "join-flood", "feedback-lies"];
        let replicas = [
            "processing-delay",
            "slow-by-epsilon",
            "replica-flood",
            "equivocate",
            "censor",
            "lying-snapshot",
            "withhold-body",
            "low-load-forgery",
        ];
        let is_simulated = |name: &str| Adversary::ALL.iter().any(|adversary| adversary.label() == name);
        let is_attack = |name| Kind::from_str(name, false).is_ok() && is_simulated(name);
        let is_lie = |name| Lie::from_str(name, false).is_ok() && is_simulated(name);
        assert_eq!((clients.map(is_attack), replicas.map(is_lie)), ([true; 6], [true; 8]));
    }

    /// Whoever adds a client that lies to the simulator has added an attack.
    #[test]
    fn every_client_of_the_simulator_that_lies_is_an_attack_under_its_own_name() {
        for adversary in Adversary::ALL.iter().filter(|adversary| adversary.corrupts_clients()) {
            assert!(Kind::from_str(adversary.label(), false).is_ok(), "{adversary}");
        }
        let names: std::collections::BTreeSet<_> = KINDS.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), KINDS.len(), "no name stands for two");
    }
}
