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
