//! `bezant replica`: one replica, until it is asked to end.

use crate::evidence::Recorder;
use crate::failure::{Failure, Result};
use crate::files;
use crate::intruder::{Alterable, Intruded};
use crate::liar::Liar;
use crate::logging;
use crate::notices::NoticeLog;
use crate::quit;
use crate::watch::Watch;
use bezant_core::auth::{Ed25519, Keyring};
use bezant_core::checkpoint::Snapshot;
use bezant_core::machine::Principal;
use bezant_core::replica::{LogRecord, Replica, ReplicaConfig};
use bezant_core::service::Service;
use bezant_core::services::{Counter, Null, kv::Kv};
use bezant_node::admin::{self, AdminServer, Board, Info};
use bezant_node::backup;
use bezant_node::config::{ClusterConfig, Durability, NodeConfig, ServiceKind};
use bezant_node::divergence::Archive;
use bezant_node::keys;
use bezant_node::log::{self, OpenError};
use bezant_node::net::ServiceBuild;
use bezant_node::replica::{self, MemoryLog, ReplicaHandle, ReplicaOptions};
use bezant_sql::Database;
use clap::ValueEnum;
use std::io::BufRead;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often is looked whether the replica has ended by itself, and whether there is something to tell.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
/// How long a process that has been killed may take to let go of its directory.
const IN_USE_MAX: Duration = Duration::from_secs(2);

/// Run one replica of a cluster
///
/// Runs the replica whose node.toml is in DIR, until SIGTERM or Ctrl-C, and then ends in order. Log lines go to
/// standard error; BEZANT_LOG=debug shows more of them.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  bezant replica --dir net/replica-0")]
pub(crate) struct Arguments {
    /// The replica's folder, as `bezant testnet` writes it
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The form of log lines on standard error [default: as node.toml says]
    #[arg(long, value_enum)]
    log_format: Option<logging::Format>,
    /// The log is lost or damaged: set aside what is left, learn the state from the others, and vote again later
    #[arg(long)]
    recover_lost_log: bool,
    /// Misbehave, for tests and demonstrations
    #[arg(long, value_enum, value_name = "HOW")]
    lie: Option<Lie>,
    /// End with standard input, and obey the lines `lie` and `honest` from it
    #[arg(long, hide = true)]
    obey_input: bool,
}

/// Ways to misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lie {
    /// Answer clients wrongly and vote for wrong checkpoints
    WrongReply,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let node = NodeConfig::load(&arguments.dir.join("node.toml")).map_err(Failure::usage)?;
    let cluster = ClusterConfig::load(&node.cluster).map_err(Failure::usage)?;
    logging::start(arguments.log_format.unwrap_or(node.log_format.into()), &node.log_level);
    let orders = Orders { lying: Arc::new(arguments.lie.is_some().into()), alter: Arc::default() };
    let (leave, left) = mpsc::channel();
    if arguments.obey_input {
        let (leave, orders) = (leave.clone(), orders.clone());
        thread::spawn(move || obey(&orders, &leave));
    }
    quit::on_request(move || _ = leave.send(()))?;

    let can_lie = arguments.obey_input || arguments.lie.is_some();
    let start = Start { node: &node, config: &cluster, lost_log: arguments.recover_lost_log };
    let (handle, _admin) = match node.service {
        ServiceKind::Sql => start.run(Database::new(), can_lie.then_some(orders))?,
        ServiceKind::Kv => start.run(Kv::new(), can_lie.then_some(orders))?,
        ServiceKind::Null => start.run(Null::default(), can_lie.then_some(orders))?,
        ServiceKind::Counter => start.run(Counter::default(), can_lie.then_some(orders))?,
    };
    let replica = node.replica.0;
    tracing::info!(event = "replica-started", replica, "running");
    let mut watch = Watch::default();
    loop {
        match left.recv_timeout(WATCH_INTERVAL) {
            Err(RecvTimeoutError::Timeout) if !handle.is_finished() => watch.look(&handle.status()),
            Err(RecvTimeoutError::Timeout) => {
                return handle.join().map_err(|error| Failure::failed(format!("{error}.")));
            }
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    handle.stop().map_err(|error| Failure::failed(format!("{error}.")))?;
    tracing::info!(event = "replica-stopped", replica, "ended in order");
    Ok(())
}

/// What a replica that misbehaves is told.
#[derive(Clone)]
struct Orders {
    /// To lie from now on, or not.
    lying: Arc<AtomicBool>,
    /// To alter the state once.
    alter: Arc<AtomicBool>,
}

/// Lines of standard input, until its end.
fn obey(orders: &Orders, leave: &mpsc::Sender<()>) {
    for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
        match line.trim() {
            "lie" => {
                orders.alter.store(true, Ordering::Relaxed);
                orders.lying.store(true, Ordering::Relaxed);
            }
            "honest" => orders.lying.store(false, Ordering::Relaxed),
            other => tracing::warn!(event = "unknown-order", order = other, "ignored"),
        }
        // The order is obeyed from here on.
        if crate::output::line(line).is_err() {
            break;
        }
    }
    // Nobody to tell means that the end has begun already.
    let _ = leave.send(());
}

/// What a replica starts from.
struct Start<'a> {
    node: &'a NodeConfig,
    config: &'a ClusterConfig,
    lost_log: bool,
}

/// What was on the disk.
struct Found {
    snapshot: Option<Snapshot>,
    records: Vec<LogRecord>,
    lost_log: bool,
    log: Box<dyn replica::Durability>,
}

impl Start<'_> {
    fn run<S: Alterable + Send + 'static>(
        &self,
        service: S,
        orders: Option<Orders>,
    ) -> Result<(ReplicaHandle, AdminServer)> {
        let keyring = self.keyring()?;
        let entry = self.config.replica(self.node.replica).ok_or_else(|| self.stranger())?;
        // The directory's lock comes first: it has the better explanation for a replica that runs already.
        let Found { snapshot, records, lost_log, log } = self.open_log()?;
        let [peers, clients, status] = [
            (self.node.listen_peers, &entry.peer_address),
            (self.node.listen_clients, &entry.client_address),
            (self.node.listen_admin, &entry.admin_address),
        ]
        .map(|(listen, address)| {
            let known = files::resolve(std::iter::once(address))?;
            bind(listen.unwrap_or(known[0]))
        });
        let (peers, clients, status) = (peers?, clients?, status?);
        let archive = Arc::new(Archive::open(&self.node.directory));
        let recorder = Recorder::start(self.node.replica, Arc::clone(&archive));
        let recorder = recorder.map_err(|error| Failure::failed(format!("cannot start: {error}.")))?;
        let mut notices = NoticeLog::new(recorder);
        let options = ReplicaOptions {
            keyring: keyring.clone(),
            service: self.service_build(),
            channel: files::channel(self.config),
            replicas: files::resolve(self.config.replicas.iter().map(|replica| &replica.peer_address))?,
            replica_listener: peers,
            client_listener: clients,
            log,
            on_notice: Box::new(move |notice| notices.on_notice(notice)),
        };
        let genesis = match snapshot {
            // Everything is in there.
            Some(_) => None,
            None => {
                let genesis = backup::read_genesis(&self.node.directory, self.config);
                genesis.map_err(|error| Failure::failed(format!("{error}.")))?
            }
        };
        let config = ReplicaConfig { cluster: self.config.to_cluster(), keyring, lost_log, genesis };
        let started = match orders {
            Some(Orders { lying, alter }) => replica::run(options, move || {
                let honest = recover(config, Box::new(Intruded::new(service, alter)), snapshot, records)?;
                Ok(Liar::new(honest, lying))
            }),
            None => replica::run(options, move || recover(config, Box::new(service), snapshot, records)),
        };
        let handle = started.map_err(|error| Failure::failed(format!("cannot start: {error}.")))?;
        let board = Board::of_status(self.info(&entry.admin_address.host), handle.shared_status())
            .with(self.node.serve_state.then(|| handle.shelf()), archive);
        let board = Arc::new(board);
        let admin = admin::serve(status, board);
        Ok((handle, admin.map_err(|error| Failure::failed(format!("cannot serve the admin port: {error}.")))?))
    }

    /// What all replicas must run alike.
    fn service_build(&self) -> ServiceBuild {
        match self.node.service {
            ServiceKind::Sql => ServiceBuild::new(&bezant_sql::build()),
            ServiceKind::Kv => ServiceBuild::new("kv 1"),
            ServiceKind::Null => ServiceBuild::new("null 1"),
            ServiceKind::Counter => ServiceBuild::new("counter 1"),
        }
    }

    fn info(&self, host: &str) -> Info {
        let cluster = self.config.to_cluster();
        Info {
            cluster_name: self.config.name.clone(),
            cluster: cluster.digest(),
            replica: self.node.replica,
            n: cluster.n,
            f: cluster.f,
            checkpoint_interval: cluster.limits.checkpoint_interval,
            host: host.to_owned(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    fn keyring(&self) -> Result<Keyring> {
        let secret = keys::load(&self.node.key).map_err(|error| Failure::usage(format!("{error}.")))?;
        let me = Principal::Replica(self.node.replica);
        let keys = self.config.public_keys();
        Keyring::new(&Ed25519, &self.config.to_cluster(), me, secret, keys).ok_or_else(|| self.stranger())
    }

    fn stranger(&self) -> Failure {
        Failure::usage(format!(
            "{} is not the key of replica {} in {}: this folder belongs to another cluster or another replica.",
            self.node.key.display(),
            self.node.replica.0,
            self.node.cluster.display()
        ))
    }

    fn open_log(&self) -> Result<Found> {
        if self.node.durability == Durability::Memory {
            let log = Box::new(MemoryLog::default());
            return Ok(Found { snapshot: None, records: Vec::new(), lost_log: self.lost_log, log });
        }
        let identity = log::Identity { cluster: self.config.to_cluster().digest(), replica: self.node.replica };
        // Without the `.` that stands for the file's own folder: it would look odd in messages.
        let directory: PathBuf = self.node.directory.components().collect();
        let options = log::Options::default();
        let refused = |error: OpenError| Failure::failed(format!("{error}."));
        if self.lost_log {
            patiently(|| log::replace_lost(&directory, &identity, &options)).map_err(refused)?;
        }
        let found = patiently(|| log::open(&directory, &identity, &options)).map_err(refused)?;
        for note in &found.notes {
            tracing::info!(event = "log-opened", "{note}");
        }
        let log = Box::new(found.log);
        Ok(Found { snapshot: found.snapshot, records: found.records, lost_log: found.lost_log, log })
    }
}

/// One type for all services: the replica is compiled once.
fn recover(
    config: ReplicaConfig,
    service: Box<dyn Service>,
    snapshot: Option<Snapshot>,
    records: Vec<LogRecord>,
) -> std::result::Result<Replica<Box<dyn Service>>, String> {
    Replica::recover(config, service, snapshot, records).map_err(|error| error.to_string())
}

/// Tries again for a while if the directory is in use: the replica that was killed a moment ago may still hold it.
fn patiently<T>(mut attempt: impl FnMut() -> std::result::Result<T, OpenError>) -> std::result::Result<T, OpenError> {
    let deadline = Instant::now() + IN_USE_MAX;
    loop {
        match attempt() {
            Err(OpenError::InUse { .. }) if Instant::now() < deadline => thread::sleep(WATCH_INTERVAL),
            outcome => return outcome,
        }
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener> {
    replica::bind(address).map_err(|error| {
        Failure::failed(format!("cannot listen on {error}. Is this replica running already, or another program there?"))
    })
}
