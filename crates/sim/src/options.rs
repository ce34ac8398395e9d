//! Which run: all that a person chooses, the seed among it.

use crate::byzantine::Choice;
use crate::feature::Feature;
use crate::network::CLIENTS;
use crate::size::Size;
use crate::store::ServiceKind;
use bezant_core::cluster::{ClientAuth, Cluster, Coin, Limits};
use bezant_core::compositions::objection;
use bezant_core::replicas::ReplicasError;
use bezant_core::schedule::Protocol;
use std::collections::BTreeSet;
use std::fmt;

/// Which run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioOptions {
    /// What runs.
    pub protocol: Protocol,
    /// What is replicated.
    pub service: ServiceKind,
    /// Faults tolerated.
    pub f: usize,
    /// Replicas; `None`: 3f + 1.
    pub replicas: Option<usize>,
    /// Who lies.
    pub adversary: Choice,
    /// What decides the rest.
    pub seed: u64,
    /// How big the run is; `None`: the seed decides.
    pub size: Option<Size>,
    /// What RITAS tosses; `None`: the seed decides.
    pub coin: Option<Coin>,
    /// Features that the run must do without.
    pub without: BTreeSet<Feature>,
    /// The most requests of each client in each phase.
    pub requests: Option<u64>,
}

impl Default for ScenarioOptions {
    fn default() -> Self {
        Self {
            protocol: Protocol::Pbft,
            service: ServiceKind::Kv,
            f: 1,
            replicas: None,
            adversary: Choice::All,
            seed: 0,
            size: None,
            coin: None,
            without: BTreeSet::new(),
            requests: None,
        }
    }
}

/// Why there is no such run: shown to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is no such cluster.
    Cluster(ReplicasError),
    /// There is one, and this protocol does not run on it.
    Protocol {
        /// Which.
        protocol: Protocol,
        /// Replicas.
        n: usize,
        /// Faults tolerated.
        f: usize,
        /// Why, in words.
        objection: &'static str,
    },
    /// The simulator has no places for so many replicas, each of which that lies may have a twin.
    TooMany {
        /// Replicas and twins.
        processes: usize,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(error) => error.fmt(out),
            Self::Protocol { protocol, n, f, objection } => {
                write!(out, "{protocol} does not run with n = {n}, f = {f}: {objection}")
            }
            Self::TooMany { processes } => {
                write!(out, "n + f = {processes} are too many for the simulator: at most {CLIENTS}")
            }
        }
    }
}

impl std::error::Error for Unfit {}

impl ScenarioOptions {
    /// How many replicas there are, and how many of them may be faulty. One server alone tolerates nothing.
    pub fn replicas(&self) -> (usize, usize) {
        match self.protocol {
            Protocol::Unreplicated => (self.replicas.unwrap_or(1), 0),
            _ => (self.replicas.unwrap_or(3 * self.f + 1), self.f),
        }
    }

    /// Whether the protocol runs on so many replicas. The bounds of a run are so low that nothing speaks against them.
    ///
    /// # Errors
    /// [`Unfit`] if it does not.
    pub fn check(&self) -> Result<(), Unfit> {
        let ((n, f), protocol) = (self.replicas(), self.protocol);
        let limits = Limits {
            checkpoint_interval: 1,
            history_interval: 1,
            batch_requests_max: 1,
            batch_bytes_max: 1,
            ..Limits::default()
        };
        let cluster = Cluster::new([0; 16], n, f, ClientAuth::default(), limits).map_err(Unfit::Cluster)?;
        let cluster = Cluster { coin: self.coin.unwrap_or_default(), ..cluster.with_protocol(protocol) };
        if n + f > CLIENTS {
            return Err(Unfit::TooMany { processes: n + f });
        }
        let objection = objection(&cluster);
        objection.map_or(Ok(()), |objection| Err(Unfit::Protocol { protocol, n, f, objection }))
    }
}

impl fmt::Display for ScenarioOptions {
    /// The one command that replays the run.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, service, f, replicas, adversary, seed, size, coin, without, requests } = self;
        // A list has brackets, which a shell must not see.
        let protocol = match protocol {
            Protocol::Schedule(_) => format!("'{}'", protocol.to_string().replace(' ', "")),
            named => named.to_string(),
        };
        match service {
            ServiceKind::Own(author) => write!(out, "{} --protocol {protocol}", author.command)?,
            ServiceKind::Kv => write!(out, "bezant sim --protocol {protocol}")?,
            ServiceKind::Sql => write!(out, "bezant sim --protocol {protocol} --service sql")?,
        }
        write!(out, " --f {f}")?;
        if let Some(replicas) = replicas {
            write!(out, " --replicas {replicas}")?;
        }
        write!(out, " --adversary {adversary} --seed {seed}")?;
        if let Some(size) = size {
            write!(out, " --size {size}")?;
        }
        if let Some(coin) = coin {
            write!(out, " --coin {}", coin.label())?;
        }
        if !without.is_empty() {
            let without: Vec<_> = without.iter().map(|feature| feature.label()).collect();
            write!(out, " --without {}", without.join(","))?;
        }
        requests.map_or(Ok(()), |requests| write!(out, " --requests {requests}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(protocol: &str, f: usize, replicas: Option<usize>) -> ScenarioOptions {
        ScenarioOptions { protocol: protocol.parse().unwrap(), f, replicas, ..ScenarioOptions::default() }
    }

    #[test]
    fn there_are_as_many_replicas_as_are_asked_for() {
        assert_eq!(with("pbft", 2, None).replicas(), (7, 2));
        assert_eq!(with("pbft", 1, Some(6)).replicas(), (6, 1));
        assert_eq!(with("unreplicated", 1, None).replicas(), (1, 0));
        assert!(with("pbft", 1, Some(6)).to_string().contains(" --f 1 --replicas 6 "));
    }

    #[test]
    fn what_cannot_run_says_why() {
        let refused = |options: ScenarioOptions| options.check().map_err(|unfit| unfit.to_string());
        assert_eq!(refused(with("pbft", 1, Some(5))), Ok(()));
        let few = "4 replicas cannot tolerate 2 liars: at least 3·2+1 = 7 are needed";
        assert_eq!(refused(with("pbft", 2, Some(4))), Err(few.to_owned()));
        assert_eq!(refused(with("aliph", 1, Some(5))), Ok(()));
        let ring = "ring does not run with n = 3, f = 0: a ring has at least four replicas";
        assert_eq!(refused(with("ring", 0, Some(3))), Err(ring.to_owned()));
        let many = "n + f = 33 are too many for the simulator: at most 32";
        assert_eq!(refused(with("pbft", 1, Some(32))), Err(many.to_owned()));
        for protocol in Protocol::ALL {
            for f in 1..=5 {
                let options = ScenarioOptions { protocol: *protocol, f, ..ScenarioOptions::default() };
                assert_eq!(options.check(), Ok(()), "{options}");
            }
        }
    }
}
