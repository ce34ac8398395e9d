//! `bezant testnet`: the files and keys of a new cluster.

use crate::failure::{Failure, Result};
use crate::{output, prompt};
use bezant_core::cluster::{ClientAuth, Coin, Limits};
use bezant_core::schedule::{Quota, Schedule};
use bezant_node::config::{
    BACKUP_PATIENCE, Channel, ClusterConfig, Durability, LimitSetting, Protocol, Testnet, TestnetError, testnet,
};
use clap::ValueEnum;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Write the files and keys of a new cluster
///
/// DIR/cluster.toml is for everybody, DIR/client.key for clients, and each folder DIR/replica-N for the host of that
/// replica alone: it holds the replica's secret key.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  bezant testnet --dir net --replicas 4 --base-port 12000\n  \
    bezant replica --dir net/replica-0    (and so on, one for each)\n  \
    bezant kv --cluster net/cluster.toml set color blue")]
pub(crate) struct Arguments {
    /// Where to write: a folder that is empty or not there yet
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    shape: Shape,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What a new cluster is like.
#[derive(clap::Args)]
pub(crate) struct Shape {
    /// How many replicas: n tolerate (n - 1) / 3 liars
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    replicas: u8,
    /// How many of them may lie or crash: 0 must be said [default: as many as possible]
    #[arg(long)]
    f: Option<u8>,
    /// Replica i listens on this port + 10 i for replicas, + 1 for clients, + 2 for administrators
    #[arg(long, default_value_t = 4100, value_parser = clap::value_parser!(u16).range(1..))]
    base_port: u16,
    /// The host of all replicas; edit cluster.toml to spread them
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// What to call the cluster
    #[arg(long, default_value = "bezant")]
    name: String,
    /// The replication protocol: pbft, aardvark, ritas, quorum, zlight, chain, azyzzyva, aliph, r-aliph, ring,
    /// unreplicated, or a list of parts such as "zlight, chain, backup(pbft)"
    #[arg(long, value_name = "NAME", default_value_t, value_parser = parse_protocol)]
    protocol: Protocol,
    /// How many requests a "backup(pbft)" answers before the next part has its turn
    #[arg(long, value_enum, default_value_t)]
    backup_quota: QuotaName,
    /// The fewest requests that it answers [default: 256, or 4096 with a "backup(aardvark)"]
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    backup_requests: Option<u64>,
    /// What ritas and backup(ritas) toss where replicas do not agree: each its own coin, or all a common one, whose
    /// keys are dealt here
    #[arg(long, value_enum, default_value_t)]
    coin: CoinName,
    /// How clients prove who they are
    #[arg(long, value_enum, default_value_t)]
    auth: AuthName,
    /// How links are protected; plain is for benchmarks
    #[arg(long, value_enum, default_value_t)]
    channel: ChannelName,
    /// Let clients join that cluster.toml does not name: whoever has a key and that file
    #[arg(long)]
    dynamic_clients: bool,
    /// What is on the disk before a replica speaks: all of it, or for benchmarks nothing
    #[arg(long, value_enum, default_value_t)]
    durability: DurabilityName,
    /// One of the limits in cluster.toml, such as checkpoint_interval=64; as often as you like. Most of them cannot be
    /// changed later
    #[arg(long = "limit", value_name = "NAME=VALUE")]
    limits: Vec<LimitSetting>,
}

impl Shape {
    /// Whether a cluster is meant that tolerates no fault at all, which few replicas make of themselves: `--f 0` says
    /// so. A person at a terminal is asked.
    ///
    /// # Errors
    /// It is not, or nobody is there to say so.
    pub(crate) fn confirm(&self) -> Result {
        let n = self.replicas;
        if self.f.is_some() || n > 3 || self.protocol == Protocol::Unreplicated {
            return Ok(());
        }
        let what = match n {
            1 => "one replica tolerates no fault (f = 0): it may not lie or crash".to_owned(),
            _ => format!("{n} replicas tolerate no fault (f = 0): none of them may lie or crash"),
        };
        if !prompt::has_person() {
            return Err(Failure::usage(format!("{what}. With 4, one may; --f 0 says that none is meant to.")));
        }
        output::line(format!("{what}. With 4, one may."))?;
        match prompt::agrees("Go on all the same? [y/N] ")? {
            true => Ok(()),
            false => Err(Failure::failed("nothing was written.")),
        }
    }

    pub(crate) fn options(&self) -> Testnet {
        let mut limits = Limits::default();
        self.limits.iter().for_each(|setting| setting.apply(&mut limits));
        Testnet {
            limits,
            replicas: usize::from(self.replicas),
            f: self.f.map(usize::from),
            base_port: self.base_port,
            host: self.host.clone(),
            name: self.name.clone(),
            protocol: self.protocol,
            quota: Some(self.backup_quota.quota(self.protocol, self.backup_requests)),
            coin: self.coin.into(),
            client_auth: self.auth.into(),
            channel: self.channel.into(),
            dynamic_clients: self.dynamic_clients,
            durability: self.durability.into(),
            ..Testnet::default()
        }
    }
}

/// A composition: its name, or a list of parts with commas between them.
pub(crate) fn parse_protocol(text: &str) -> std::result::Result<Protocol, String> {
    if text.contains([',', '(']) {
        return text.parse::<Schedule>().map(Protocol::Schedule).map_err(|error| error.to_string());
    }
    text.parse::<Protocol>().map_err(|error| error.to_string())
}

/// What replicas toss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoinName {
    /// Each its own coin
    #[default]
    Local,
    /// All the same one
    Common,
}

impl From<CoinName> for Coin {
    fn from(name: CoinName) -> Self {
        match name {
            CoinName::Local => Self::Local,
            CoinName::Common => Self::Common,
        }
    }
}

/// How the number of requests that a Backup answers grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum QuotaName {
    /// Twice as many each time, and again few after some time
    #[default]
    Exponential,
    /// Always the same
    Fixed,
    /// As exponential, but the first three do not double
    Flattened,
}

impl QuotaName {
    fn quota(self, protocol: Protocol, minimum: Option<u64>) -> Quota {
        let minimum = minimum.unwrap_or_else(|| protocol.quota().minimum());
        match self {
            Self::Exponential => Quota::Exponential { minimum },
            Self::Fixed => Quota::Fixed(minimum),
            Self::Flattened => Quota::Flattened { minimum, patience: BACKUP_PATIENCE },
        }
    }
}

/// How clients prove who they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthName {
    Mac,
    #[default]
    Hybrid,
    Signature,
}

impl From<AuthName> for ClientAuth {
    fn from(name: AuthName) -> Self {
        match name {
            AuthName::Mac => Self::Mac,
            AuthName::Hybrid => Self::Hybrid,
            AuthName::Signature => Self::Signature,
        }
    }
}

/// How links are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChannelName {
    #[default]
    Tls,
    Plain,
}

impl From<ChannelName> for Channel {
    fn from(name: ChannelName) -> Self {
        match name {
            ChannelName::Tls => Self::Tls,
            ChannelName::Plain => Self::Plain,
        }
    }
}

/// What is on the disk before a replica speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityName {
    #[default]
    Sync,
    Memory,
}

impl From<DurabilityName> for Durability {
    fn from(name: DurabilityName) -> Self {
        match name {
            DurabilityName::Sync => Self::Sync,
            DurabilityName::Memory => Self::Memory,
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    arguments.shape.confirm()?;
    let config = testnet(&arguments.dir, &arguments.shape.options()).map_err(|error| refusal(&error))?;
    written(&config, &arguments.dir, arguments.json)
}

/// Says what to do with a new cluster.
pub(crate) fn written(config: &ClusterConfig, dir: &Path, json: bool) -> Result {
    let dir = dir.display();
    if json {
        return output::line(json!({ "dir": dir.to_string(), "n": config.replicas.len(), "f": config.f,
            "cluster": format!("{dir}/cluster.toml"), "client_key": format!("{dir}/client.key") }));
    }
    let (n, f) = (config.replicas.len(), config.f);
    let promise = match f {
        0 => "no replica may lie or crash".to_owned(),
        _ => format!("the answers stay right while at most {f} lie or crash"),
    };
    output::line(format!(
        "n = {n}, f = {f}: {promise}.\n\
         Start each of them:  bezant replica --dir {dir}/replica-0\n\
         Then try:            bezant kv --cluster {dir}/cluster.toml set color blue"
    ))
}

/// What the user can do something about is an error of usage.
pub(crate) fn refusal(error: &TestnetError) -> Failure {
    match error {
        TestnetError::Io(..) | TestnetError::Key(_) | TestnetError::Log(_) | TestnetError::Genesis(_) => {
            Failure::failed(format!("{error}."))
        }
        _ => Failure::usage(format!("{error}.")),
    }
}
