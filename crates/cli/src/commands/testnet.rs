//! `bezant testnet`: the files and keys of a new cluster.

use crate::failure::{Failure, Result};
use crate::output;
use bezant_core::cluster::ClientAuth;
use bezant_node::config::{Channel, Durability, Protocol, Testnet, TestnetError, testnet};
use clap::ValueEnum;
use serde_json::json;
use std::path::PathBuf;

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
    /// How many replicas: n tolerate (n - 1) / 3 liars
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    replicas: u8,
    /// How many of them may lie or crash [default: as many as possible]
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
    /// The replication protocol
    #[arg(long, value_enum, default_value_t)]
    protocol: ProtocolName,
    /// How clients prove who they are
    #[arg(long, value_enum, default_value_t)]
    auth: AuthName,
    /// How links are protected; plain is for benchmarks
    #[arg(long, value_enum, default_value_t)]
    channel: ChannelName,
    /// What is on the disk before a replica speaks: all of it, or for benchmarks nothing
    #[arg(long, value_enum, default_value_t)]
    durability: DurabilityName,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The protocols by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolName {
    /// Tolerates liars: the default
    #[default]
    Pbft,
    /// Two delays without contention and faults, otherwise PBFT
    Quorum,
    /// Three delays without faults, otherwise PBFT
    Zlight,
    /// The most throughput without faults, otherwise PBFT
    Chain,
    /// The paper's name for zlight
    Azyzzyva,
    /// Quorum at low load, Chain at high load, PBFT under attack
    Aliph,
    /// One server, which tolerates nothing: the yardstick
    Unreplicated,
}

impl From<ProtocolName> for Protocol {
    fn from(name: ProtocolName) -> Self {
        match name {
            ProtocolName::Pbft => Self::Pbft,
            ProtocolName::Quorum => Self::Quorum,
            ProtocolName::Zlight => Self::ZLight,
            ProtocolName::Chain => Self::Chain,
            ProtocolName::Azyzzyva => Self::Azyzzyva,
            ProtocolName::Aliph => Self::Aliph,
            ProtocolName::Unreplicated => Self::Unreplicated,
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
    let options = Testnet {
        replicas: usize::from(arguments.replicas),
        f: arguments.f.map(usize::from),
        base_port: arguments.base_port,
        host: arguments.host.clone(),
        name: arguments.name.clone(),
        protocol: arguments.protocol.into(),
        client_auth: arguments.auth.into(),
        channel: arguments.channel.into(),
        durability: arguments.durability.into(),
        ..Testnet::default()
    };
    let config = testnet(&arguments.dir, &options).map_err(|error| refusal(&error))?;
    let dir = arguments.dir.display();
    if arguments.json {
        return output::line(json!({ "dir": dir.to_string(), "n": config.replicas.len(), "f": config.f,
            "cluster": format!("{dir}/cluster.toml"), "client_key": format!("{dir}/client.key") }));
    }
    let (n, f) = (config.replicas.len(), config.f);
    output::line(format!(
        "n = {n} replicas: the answers stay right while at most {f} lie or crash.\n\
         Start each of them:  bezant replica --dir {dir}/replica-0\n\
         Then try:            bezant kv --cluster {dir}/cluster.toml set color blue"
    ))
}

/// What the user can do something about is an error of usage.
pub(crate) fn refusal(error: &TestnetError) -> Failure {
    match error {
        TestnetError::Io(..) | TestnetError::Key(_) | TestnetError::Log(_) => Failure::failed(format!("{error}.")),
        _ => Failure::usage(format!("{error}.")),
    }
}
