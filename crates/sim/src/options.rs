//! Which run: all that a person chooses, the seed among it.

use crate::byzantine::Choice;
use crate::feature::Feature;
use crate::size::Size;
use crate::store::ServiceKind;
use bezant_core::compositions::Protocol;
use std::collections::BTreeSet;
use std::fmt;

/// Which run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioOptions {
    /// What runs.
    pub protocol: Protocol,
    /// What is replicated.
    pub service: ServiceKind,
    /// Faults tolerated: 1 to 3; n is 3f + 1.
    pub f: usize,
    /// Who lies.
    pub adversary: Choice,
    /// What decides the rest.
    pub seed: u64,
    /// How big the run is; `None`: the seed decides.
    pub size: Option<Size>,
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
            adversary: Choice::All,
            seed: 0,
            size: None,
            without: BTreeSet::new(),
            requests: None,
        }
    }
}

impl fmt::Display for ScenarioOptions {
    /// The one command that replays the run.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, service, f, adversary, seed, size, without, requests } = self;
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
        write!(out, " --f {f} --adversary {adversary} --seed {seed}")?;
        if let Some(size) = size {
            write!(out, " --size {size}")?;
        }
        if !without.is_empty() {
            let without: Vec<_> = without.iter().map(|feature| feature.label()).collect();
            write!(out, " --without {}", without.join(","))?;
        }
        requests.map_or(Ok(()), |requests| write!(out, " --requests {requests}"))
    }
}
