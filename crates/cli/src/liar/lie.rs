//! The ways to misbehave, by name: an intruder, and what every lying replica of the simulator does
//! ([`bezant_sim::byzantine`]): the same file tells its lies to real replicas.

use bezant_sim::byzantine::Adversary;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::sync::LazyLock;

/// How a replica misbehaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Somebody has taken over its machine.
    #[default]
    Intruder,
    /// It does what this replica of the simulator does.
    Simulated(Adversary),
}

/// All of them. Twins are two replicas with one key, and no way for one replica to lie.
static LIES: LazyLock<Vec<Lie>> = LazyLock::new(|| {
    let replicas = Adversary::ALL.iter().filter(|it| it.corrupts_replicas() && **it != Adversary::Twins);
    [Lie::Intruder].into_iter().chain(replicas.map(|it| Lie::Simulated(*it))).collect()
});

impl Lie {
    /// Its name, on the command line and as an order.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Intruder => "intruder",
            Self::Simulated(adversary) => adversary.label(),
        }
    }

    /// What it is, in a sentence.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Intruder => "Wrong answers to clients, wrong votes for checkpoints, and a value altered in its state",
            Self::Simulated(adversary) => adversary.about(),
        }
    }
}

impl ValueEnum for Lie {
    fn value_variants<'a>() -> &'a [Self] {
        &LIES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.about()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever adds a replica that lies to the simulator has added a lie.
    #[test]
    fn every_replica_of_the_simulator_that_lies_is_a_lie_under_its_own_name() {
        for adversary in Adversary::ALL {
            let lies = adversary.corrupts_replicas() && *adversary != Adversary::Twins;
            assert_eq!(Lie::from_str(adversary.label(), false).is_ok(), lies, "{adversary}");
        }
    }
}
