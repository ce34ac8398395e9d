//! What `bezant sim` takes, as clap reads it.

use crate::byzantine::Choice;
use crate::feature::Feature;
use crate::group::GroupOptions;
use crate::options::ScenarioOptions;
use crate::runs::RangeOptions;
use crate::size::Size;
use crate::store::ServiceKind;
use bezant_core::cluster::Coin;
use bezant_core::schedule::{Protocol, UnknownProtocol};
use clap::Args;
use std::ops::Range;

/// What `bezant sim` takes. Exit code 0 if nothing was violated, 1 if something was or an adversary that was named did
/// nothing, 130 if it was interrupted before.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// What runs: the name of a composition, or a list of parts such as "chain, backup(pbft)"
    #[arg(long, default_value = "pbft", value_parser = parse_protocol)]
    pub(crate) protocol: Protocol,
    /// The layers of RITAS alone: groups of processes that broadcast and agree, without a service
    #[arg(long, conflicts_with_all = ["protocol", "service", "size", "saved", "without", "requests", "trace", "diagram",
        "check_determinism"])]
    pub(crate) layers: bool,
    /// What is replicated
    #[arg(long, value_enum, default_value_t)]
    pub(crate) service: ServiceKind,
    /// Faults tolerated
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=5))]
    pub(crate) f: u8,
    /// Replicas, at least 3f + 1 [default: 3f + 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) replicas: Option<u8>,
    /// Who lies: the name of a behaviour, all (drawn from the seed), each (one after the other), or none
    #[arg(long, default_value = "all")]
    pub(crate) adversary: String,
    /// Seeds to run, A..B without B
    #[arg(long, value_parser = parse_seeds, conflicts_with = "seed", default_value = "0..1000")]
    pub(crate) seeds: Range<u64>,
    /// The one seed to run
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How big runs are; if not said, the seed decides
    #[arg(long, value_enum)]
    pub(crate) size: Option<Size>,
    /// Run the saved seeds
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    pub(crate) saved: bool,
    /// What ritas tosses, local or common; if not said, the seed decides
    #[arg(long, value_name = "COIN", value_parser = parse_coin)]
    pub(crate) coin: Option<Coin>,
    /// Features to do without, e.g. loss,crashes
    #[arg(long, value_delimiter = ',')]
    pub(crate) without: Vec<Feature>,
    /// Most requests of each client in each phase
    #[arg(long)]
    pub(crate) requests: Option<u64>,
    /// With --seed: print what happened, line by line
    #[arg(long, requires = "seed")]
    pub(crate) trace: bool,
    /// With --seed: print a Mermaid sequence diagram
    #[arg(long, requires = "seed")]
    pub(crate) diagram: bool,
    /// Print one JSON object per adversary
    #[arg(long)]
    pub(crate) json: bool,
    /// Run every seed twice and compare
    #[arg(long)]
    pub(crate) check_determinism: bool,
    /// Threads, each with runs of its own
    #[arg(long, default_value_t = RangeOptions::default().threads)]
    pub(crate) threads: usize,
    /// Stop after so many failing seeds
    #[arg(long, default_value_t = RangeOptions::default().failures_max)]
    pub(crate) failures_max: usize,
    /// Do not look for a smaller run that fails in the same way
    #[arg(long)]
    pub(crate) no_shrink: bool,
}

fn parse_protocol(name: &str) -> Result<Protocol, String> {
    name.parse().map_err(|error: UnknownProtocol| error.to_string())
}

fn parse_coin(name: &str) -> Result<Coin, String> {
    Coin::ALL.iter().copied().find(|coin| coin.label() == name).ok_or_else(|| "a coin is local or common".to_owned())
}

fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let parse = || {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    };
    parse()
        .filter(|range: &Range<u64>| !range.is_empty())
        .ok_or_else(|| format!("{text:?} is not a range like 0..1000"))
}

impl Arguments {
    /// The one run that `--seed` names, if it does and if the adversary is one.
    pub fn scenario(&self) -> Option<ScenarioOptions> {
        Some(self.options(self.adversary.parse().ok()?, self.seed?))
    }

    /// The one run of layers alone that `--layers` and `--seed` name.
    pub(crate) fn group(&self) -> Option<GroupOptions> {
        let (n, f) = self.options(Choice::Nobody, 0).replicas();
        let (adversary, seed) = (self.adversary.parse().ok()?, self.seed?);
        self.layers.then_some(GroupOptions { n, f, adversary, coin: self.coin, seed })
    }

    /// The same about somebody else's service.
    ///
    /// # Errors
    /// The option that is about another one, or about none.
    pub(crate) fn serving(self, service: ServiceKind) -> Result<Self, &'static str> {
        match (self.saved, self.layers, self.service == ServiceKind::default()) {
            (true, ..) => Err("--saved: the saved seeds are about the services that ship"),
            (_, true, _) => Err("--layers: layers alone have no service"),
            (.., false) => Err("--service: this is about one of your own"),
            (false, false, true) => Ok(Self { service, ..self }),
        }
    }

    /// A run with these arguments, but for its adversary and its seed.
    pub(crate) fn options(&self, adversary: Choice, seed: u64) -> ScenarioOptions {
        ScenarioOptions {
            // Layers alone are those of RITAS, so that it decides what fits.
            protocol: if self.layers { Protocol::Ritas } else { self.protocol },
            service: self.service,
            f: usize::from(self.f),
            replicas: self.replicas.map(usize::from),
            adversary,
            seed,
            size: self.size,
            coin: self.coin,
            without: self.without.iter().copied().collect(),
            requests: self.requests,
        }
    }
}
