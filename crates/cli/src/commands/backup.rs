//! `bezant backup`: a certified checkpoint as a file, checked without the cluster, and made a new cluster of.

use crate::checkpoint::Reading;
use crate::commands::testnet;
use crate::failure::{Failure, Result};
use crate::output;
use crate::served::Served;
use bezant_core::auth::Certificate;
use bezant_core::checkpoint::{Snapshot, Tree};
use bezant_core::cluster::{Cluster, Coin};
use bezant_core::estate::{Summary, genesis_of, successor_of};
use bezant_core::ids::ReplicaId;
use bezant_core::service::Service;
use bezant_core::services::kv::Kv;
use bezant_node::backup::{self, BackupError};
use bezant_node::config::{ClusterConfig, LimitSetting, Protocol, Successor, Testnet};
use bezant_node::divergence::utc;
use bezant_node::keys::to_hex;
use bezant_sql::{Database, SnapshotError};
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Back a cluster up, check a backup, make a new cluster of one
///
/// A backup is a checkpoint that at least f+1 replicas signed, one of which is correct: it can be read from any replica
/// and checked by anybody who has the cluster's file. docs/backup.md says what is in it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a backup with everything in it that was acknowledged before
    #[command(after_help = "Example:\n  bezant backup create --cluster net/cluster.toml --to monday.backup")]
    Create {
        #[command(flatten)]
        reading: Reading,
        /// The new file
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Check a backup, or a replica's snapshot, and say what is in it. Needs no replica
    #[command(after_help = "Example:\n  bezant backup verify monday.backup --cluster net/cluster.toml")]
    Verify {
        /// The backup
        file: PathBuf,
        /// The file of the cluster that it is of
        #[arg(long, value_name = "FILE")]
        cluster: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write the files of a new cluster that begins with the tables and keys of a backup
    ///
    /// The new cluster has keys and an id of its own, and knows nothing of the old one's clients. No request that was
    /// signed for the old one means anything to it.
    #[command(after_help = "Example:\n  bezant backup restore monday.backup --cluster net/cluster.toml --dir new\n  \
        bezant replica --dir new/replica-0    (and so on, one for each)")]
    Restore {
        /// The backup
        file: PathBuf,
        /// The file of the cluster that it is of
        #[arg(long, value_name = "FILE")]
        cluster: PathBuf,
        /// Where to write: a folder that is empty or not there yet
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        #[command(flatten)]
        shape: testnet::Shape,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write the files of a closed cluster's successor: same replicas, clients and keys, other limits
    ///
    /// The backup must be one of a cluster that was closed (`bezant close`), so that nothing stays behind. Each
    /// replica's `key` and `node.toml` are then copied to its new folder. docs/operations.md has the whole procedure.
    #[command(after_help = "Example:\n  bezant backup renew last.backup --cluster net/cluster.toml --dir next \
        --limit checkpoint_interval=64\n  \
        cp -p net/replica-0/key net/replica-0/node.toml next/replica-0/    (and so on, one for each)")]
    Renew {
        /// The backup
        file: PathBuf,
        /// The file of the closed cluster
        #[arg(long, value_name = "FILE")]
        cluster: PathBuf,
        /// Where to write: a folder that is empty or not there yet
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// One of the limits in cluster.toml, such as checkpoint_interval=64; as often as you like [default: as before]
        #[arg(long = "limit", value_name = "NAME=VALUE")]
        limits: Vec<LimitSetting>,
        /// The replication protocol, as `bezant testnet` takes it [default: as before]
        #[arg(long, value_name = "NAME", value_parser = testnet::parse_protocol)]
        protocol: Option<Protocol>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    match &arguments.command {
        Command::Create { reading, to, json } => create(reading, to, *json),
        Command::Verify { file, cluster, json } => {
            let config = ClusterConfig::load(cluster).map_err(Failure::usage)?;
            let snapshot = read(file, &config)?;
            describe(file, &config, &snapshot, *json)
        }
        Command::Restore { file, cluster, dir, shape, json } => {
            let config = ClusterConfig::load(cluster).map_err(Failure::usage)?;
            shape.confirm()?;
            restore(&read(file, &config)?.tree, dir, shape.options(), *json)
        }
        Command::Renew { file, cluster, dir, limits, protocol, json } => {
            let config = ClusterConfig::load(cluster).map_err(Failure::usage)?;
            let old = read(file, &config)?.tree;
            let mut next = Successor::of(&config, successor_state(&config, &old, file, cluster)?);
            limits.iter().for_each(|setting| setting.apply(&mut next.limits));
            next.protocol = protocol.unwrap_or(next.protocol);
            renew(&config, dir, &next, *json)
        }
    }
}

/// Writes the files of a new cluster.
fn restore(old: &Tree, dir: &Path, options: Testnet, json: bool) -> Result {
    let (service, genesis) = genesis(old, &options)?;
    let options = Testnet { genesis: Some(genesis), service: service.name().to_owned(), ..options };
    let config = bezant_node::config::testnet(dir, &options).map_err(|error| testnet::refusal(&error))?;
    testnet::written(&config, dir, json)
}

/// The state with which the successor begins, if the cluster was closed before the backup.
fn successor_state(config: &ClusterConfig, old: &Tree, file: &Path, cluster: &Path) -> Result<Tree> {
    if Summary::of(old).is_none() {
        return Err(Failure::failed(format!("{}: this version cannot read the state.", file.display())));
    }
    successor_of(&config.to_cluster(), old).ok_or_else(|| {
        Failure::usage(format!(
            "{}: the cluster was not closed before this backup, and what is written after it would stay behind. Close \
             it first (`bezant close --cluster {}`), and make another backup.",
            file.display(),
            cluster.display()
        ))
    })
}

/// Writes the files of a successor, and says what they lack.
fn renew(old: &ClusterConfig, dir: &Path, next: &Successor, json: bool) -> Result {
    let config = bezant_node::config::successor(dir, old, next).map_err(|error| testnet::refusal(&error))?;
    let dir = dir.display();
    if json {
        return output::line(json!({ "dir": dir.to_string(), "n": config.replicas.len(), "f": config.f,
            "cluster": format!("{dir}/cluster.toml"), "genesis_root": to_hex(&next.genesis.root().0) }));
    }
    let (few, coin_key) = match config.coin {
        Coin::Local => ("two", ""),
        Coin::Common => ("three", " OLD/replica-N/coin.key"),
    };
    output::line(format!(
        "The successor of {} is in {dir}, but for {few} files of each replica: stop the old ones, and on each machine\n\
         copy them:  cp -p OLD/replica-N/key{coin_key} OLD/replica-N/node.toml {dir}/replica-N/\n\
         start it:   bezant replica --dir {dir}/replica-N\n\
         Clients keep their keys, and need {dir}/cluster.toml.",
        old.name
    ))
}

/// The state to begin with, and the service that it is of.
fn genesis(old: &Tree, options: &Testnet) -> Result<(Served, Tree)> {
    let foreign = |_| Failure::failed("the state in the backup is of a service that this version cannot restore.");
    let f = options.f.unwrap_or(options.replicas.saturating_sub(1) / 3);
    let limits = options.limits.clone();
    let cluster = Cluster::new([0; 16], options.replicas, f, options.client_auth, limits).map_err(Failure::usage)?;
    let (kind, service): (_, Box<dyn Service>) = match bezant_sql::Snapshot::open(old) {
        Ok(_) => (Served::Sql, Box::new(Database::new())),
        Err(_) => (Served::Kv, Box::new(Kv::new())),
    };
    Ok((kind, genesis_of(&cluster, service, old).map_err(foreign)?))
}

fn create(reading: &Reading, to: &Path, json: bool) -> Result {
    if to.symlink_metadata().is_ok() {
        return Err(refusal(&BackupError::Exists(to.to_owned())));
    }
    let read = reading.read()?;
    let from = ReplicaId(reading.replica.unwrap_or(0));
    backup::write(to, &read.config, from, &read.snapshot).map_err(|error| refusal(&error))?;
    // What is on the disk now is what counts.
    let written = self::read(to, &read.config)?;
    describe(to, &read.config, &written, json)
}

/// Reads a backup and checks all of it.
pub(crate) fn read(file: &Path, config: &ClusterConfig) -> Result<Snapshot> {
    backup::read(file, config).map_err(|error| refusal(&error))
}

pub(crate) fn refusal(error: &BackupError) -> Failure {
    match error {
        BackupError::Exists(_) | BackupError::Foreign(_) => Failure::usage(format!("{error}.")),
        _ => Failure::failed(format!("{error}.")),
    }
}

/// Says what is in a backup.
fn describe(file: &Path, config: &ClusterConfig, snapshot: &Snapshot, as_json: bool) -> Result {
    let fields = fields(file, config, snapshot)?;
    if as_json {
        return output::line(fields);
    }
    let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    let mut rows = vec![
        vec!["cluster".to_owned(), format!("{}, f = {}", config.name, config.f)],
        vec!["state".to_owned(), format!("after {} requests, root {}", fields["requests"], text("root"))],
        vec!["writes".to_owned(), writes(&fields["closed"])],
        vec!["checkpoint".to_owned(), format!("{} of instance {}", fields["sequence"], fields["instance"])],
        vec!["agreed time".to_owned(), text("agreed_time")],
        vec!["signed by".to_owned(), format!("replicas {}", signers(snapshot))],
        vec!["content".to_owned(), format!("{} pages, {} bytes", fields["pages"], fields["bytes"])],
    ];
    for table in fields["tables"].as_array().into_iter().flatten() {
        let name = table["name"].as_str().unwrap_or_default();
        rows.push(vec![format!("table {name}"), format!("{} rows", table["rows"])]);
    }
    rows.push(vec!["keys".to_owned(), fields["keys"].to_string()]);
    output::line(format!("{} is whole and signed.\n{}", file.display(), output::table(&rows).trim_end()))
}

fn writes(closed: &Value) -> String {
    closed.as_u64().map_or_else(|| "open".to_owned(), |position| format!("closed since request {position}"))
}

fn signers(snapshot: &Snapshot) -> String {
    let signers = snapshot.evidence.certificate().into_iter().flat_map(Certificate::signers);
    signers.map(|signer| signer.0.to_string()).collect::<Vec<_>>().join(", ")
}

fn fields(file: &Path, config: &ClusterConfig, snapshot: &Snapshot) -> Result<Value> {
    let Snapshot { evidence, tree } = snapshot;
    let checkpoint = evidence.checkpoint();
    let signers = evidence.certificate().into_iter().flat_map(Certificate::signers);
    let unreadable = || Failure::failed(format!("{}: this version cannot read the state.", file.display()));
    let summary = Summary::of(tree).ok_or_else(unreadable)?;
    let tables = match bezant_sql::Snapshot::open(tree) {
        Ok(opened) => opened.tables().map_err(|error| Failure::failed(format!("{error}.")))?,
        Err(SnapshotError::NoTables) => Vec::new(),
        Err(error) => return Err(Failure::failed(format!("{error}."))),
    };
    let tables: Vec<_> = tables.into_iter().map(|(name, rows)| json!({ "name": name, "rows": rows })).collect();
    Ok(json!({
        "file": file.display().to_string(),
        "cluster": config.name,
        "cluster_digest": to_hex(&config.to_cluster().digest().0),
        "instance": checkpoint.instance.0,
        "sequence": checkpoint.sequence.0,
        "requests": summary.position,
        "closed": summary.closed,
        "agreed_time": utc(summary.time.0),
        "agreed_time_us": summary.time.0,
        "root": to_hex(&checkpoint.root.0),
        "signers": signers.map(|signer| signer.0).collect::<Vec<_>>(),
        "pages": tree.page_count(),
        "bytes": tree.bytes(),
        "tables": tables,
        "keys": bezant_sql::key_count(tree),
    }))
}
