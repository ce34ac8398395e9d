//! Runs a replica of any service from its folder, with all that belongs to it: log and snapshots, links, the admin port
//! with status and metrics, evidence of divergences, log lines.
//!
//! [`host`](crate::host()) is all that an author needs. What is below it is for programs that do more, as
//! `bezant replica` does, which can be told to lie: [`Home`] is a folder that has been read, [`Recovered`] what the
//! machine is made from.
//!
//! Log lines are `tracing` events: a program that sets no subscriber shows none.

mod evidence;
mod notices;
mod signals;
mod watch;

pub use evidence::{Describe, describe_pages};
pub use signals::on_request_to_end;

use crate::admin::{self, AdminServer, Board, Info};
use crate::coin::Bls;
use crate::config::reference::SERVICE;
use crate::config::{Address, ClusterConfig, Durability, NodeConfig, PeerEntry, Places, ReplicaEntry, resolve};
use crate::divergence::Archive;
use crate::log::{self, OpenError};
use crate::net::ServiceBuild;
use crate::replica::{self, Hosted, MemoryLog, ReplicaHandle, ReplicaOptions, Status};
use crate::{Error, backup, keys};
use bezant_core::auth::{Ed25519, Keyring};
use bezant_core::checkpoint::ClaimedSnapshot;
use bezant_core::cluster::Coin;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::registry::LogRecord;
use bezant_core::replica::{Replica, ReplicaConfig};
use bezant_core::service::Service;
use evidence::Recorder;
use notices::NoticeLog;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use watch::Watch;

/// How often is looked whether the replica has ended by itself, and whether there is something to tell.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
/// How long a process that has been killed may take to let go of its directory.
const IN_USE_MAX: Duration = Duration::from_secs(2);

/// Runs the replica whose `node.toml` is in `directory`, until [`Running::stop`] or the end of the process. `name` is
/// what its `service` must say. Replicas with another `version` are refused: raise it with every change after which the
/// same operations could give another result or other pages.
///
/// ```no_run
/// # fn main() -> Result<(), bezant_node::Error> {
/// use bezant_core::services::Counter;
/// let replica = bezant_node::host("net/replica-0".as_ref(), "counter", 1, Counter::default())?;
/// replica.until_asked_to_end()
/// # }
/// ```
///
/// # Errors
/// [`Error`] if a file is wrong or names another service, the log cannot be used, or the system refuses a port or a
/// thread. Once this has returned the replica runs; it says by itself when it ends.
pub fn host(
    directory: &Path,
    name: &str,
    version: u32,
    service: impl Service + Send + 'static,
) -> Result<Running, Error> {
    let home = Home::load(directory)?;
    let build = home.serving(name, version)?;
    home.run(build, describe_pages, |recovered| recovered.into_replica(Box::new(service)))
}

/// A replica's folder, and what its files say.
#[derive(Clone, Debug)]
pub struct Home {
    /// The replica's own settings.
    pub node: NodeConfig,
    /// The cluster's.
    pub cluster: ClusterConfig,
    /// Whether what is left of the log is to be set aside.
    pub lost_log: bool,
    file: PathBuf,
}

/// What a replica's machine is made from: its keys, and what was on the disk.
#[derive(Debug)]
pub struct Recovered {
    config: ReplicaConfig,
    snapshot: Option<ClaimedSnapshot>,
    records: Vec<LogRecord>,
}

impl Recovered {
    /// The replica. One type for all services, so that it is compiled once and not for each of them.
    ///
    /// # Errors
    /// In words, if the service takes no state that it has saved, or the log is not of this replica.
    pub fn into_replica(self, service: Box<dyn Service>) -> Result<Replica<Box<dyn Service>>, String> {
        Replica::recover(self.config, service, self.snapshot, self.records).map_err(|error| error.to_string())
    }
}

/// What was on the disk.
struct Found {
    snapshot: Option<ClaimedSnapshot>,
    records: Vec<LogRecord>,
    lost_log: bool,
    log: Box<dyn replica::Durability>,
}

impl Home {
    /// Reads `node.toml` in a replica's folder, and the cluster's file that it names.
    ///
    /// # Errors
    /// [`Error::Config`], or [`Error::WholeCluster`].
    pub fn load(directory: &Path) -> Result<Self, Error> {
        let file = directory.join("node.toml");
        if !file.exists() && directory.join("cluster.toml").exists() {
            return Err(Error::WholeCluster(directory.to_owned()));
        }
        let node = NodeConfig::load(&file)?;
        let cluster = ClusterConfig::load(&node.cluster)?;
        node.check_peers(&file, cluster.replicas.len())?;
        Ok(Self { node, cluster, lost_log: false, file })
    }

    /// What the replicas of this service and version tell each other.
    ///
    /// # Errors
    /// [`Error::OtherService`] if the replica is for another service, [`Error::ServiceName`].
    pub fn serving(&self, name: &str, version: u32) -> Result<ServiceBuild, Error> {
        if !SERVICE.accepts(name) {
            return Err(Error::ServiceName(name.to_owned()));
        }
        if self.node.service != name {
            return Err(self.other_service(&format!("{name:?}")));
        }
        Ok(ServiceBuild::new(&format!("{name} {version}")))
    }

    /// The program serves this, and the replica is for something else.
    pub fn other_service(&self, served: &str) -> Error {
        Error::OtherService { file: self.file.clone(), asked: self.node.service.clone(), served: served.to_owned() }
    }

    /// Starts the replica. `make` gives its machine, on the replica's own thread; `describe` says in the service's
    /// words where a state was wrong.
    ///
    /// # Errors
    /// As [`host`](crate::host()).
    pub fn run<R: Hosted>(
        &self,
        service: ServiceBuild,
        describe: Describe,
        make: impl FnOnce(Recovered) -> Result<R, String> + Send + 'static,
    ) -> Result<Running, Error> {
        let keyring = self.keyring()?;
        let entry = self.cluster.replica(self.node.replica).ok_or_else(|| self.stranger(&self.node.key))?;
        // The directory's lock comes first: it has the better explanation for a replica that runs already.
        let Found { snapshot, records, lost_log, log } = self.open_log()?;
        let bind = |listen: Option<SocketAddr>, address| {
            let listen = match listen {
                Some(listen) => listen,
                None => resolve(std::iter::once(address))?[0],
            };
            replica::bind(listen).map_err(Error::Listen)
        };
        let replica_listener = bind(self.node.listen_peers, &entry.peer_address)?;
        let own = |peer: &PeerEntry| Some((peer.replica, replica::bind(peer.listen?).map_err(Error::Listen)));
        let own = self.node.peers.iter().filter_map(own).map(|(id, bound)| Ok((id, bound?)));
        let peer_listeners = own.collect::<Result<_, Error>>()?;
        let client_listener = bind(self.node.listen_clients, &entry.client_address)?;
        let admin_listener = bind(self.node.listen_admin, &entry.admin_address)?;
        let archive = Arc::new(Archive::open(&self.node.directory));
        let recorder = Recorder::start(self.node.replica, Arc::clone(&archive), describe);
        let cannot_start = |error| Error::System("cannot start", error);
        let mut notices = NoticeLog::new(recorder.map_err(cannot_start)?);
        let options = ReplicaOptions {
            keyring: keyring.clone(),
            service,
            channel: self.cluster.channel.into(),
            levels_clients: self.cluster.protocol.has_aardvark(),
            replicas: Places::find(self.cluster.replicas.iter().map(|replica| self.dialled_at(replica))),
            replica_listener,
            peer_listeners,
            client_listener,
            log,
            on_notice: Box::new(move |notice| notices.on_notice(notice)),
        };
        let genesis = match snapshot {
            // Everything is in there.
            Some(_) => None,
            None => backup::read_genesis(&self.node.directory, &self.cluster)?,
        };
        let config = ReplicaConfig { cluster: self.cluster.to_cluster(), keyring, lost_log, genesis };
        let handle =
            replica::run(options, move || make(Recovered { config, snapshot, records })).map_err(cannot_start)?;
        let shelf = self.node.serve_state.then(|| handle.shelf());
        let info = self.info(&entry.admin_address.host, service);
        let board = Arc::new(Board::of_status(info, handle.shared_status()).with(shelf, archive));
        match admin::serve(admin_listener, board) {
            Ok(admin) => Ok(Running { handle, _admin: admin, replica: self.node.replica }),
            Err(error) => {
                // It would run on with nobody to end it; and what it says about that is less than the error here.
                drop(handle.kill());
                Err(Error::System("cannot serve the admin port", error))
            }
        }
    }

    /// Where a replica is dialled.
    fn dialled_at<'a>(&'a self, replica: &'a ReplicaEntry) -> &'a Address {
        let own = self.node.peers.iter().find(|peer| peer.replica == replica.id);
        own.and_then(|peer| peer.dial.as_ref()).unwrap_or(&replica.peer_address)
    }

    fn info(&self, host: &str, service: ServiceBuild) -> Info {
        let cluster = self.cluster.to_cluster();
        Info {
            cluster_name: self.cluster.name.clone(),
            cluster: cluster.digest(),
            replica: self.node.replica,
            service,
            n: cluster.replicas.n(),
            f: cluster.replicas.faults(),
            checkpoint_interval: cluster.limits.checkpoint_interval,
            host: host.to_owned(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    fn keyring(&self) -> Result<Keyring, Error> {
        let secret = keys::load(&self.node.key)?;
        let me = Principal::Replica(self.node.replica);
        let keys = self.cluster.public_keys();
        let keyring = Keyring::new(&Ed25519, &self.cluster.to_cluster(), me, secret, keys);
        let keyring = keyring.ok_or_else(|| self.stranger(&self.node.key))?;
        if self.cluster.coin == Coin::Local {
            return Ok(keyring);
        }
        let secret = keys::load(&self.node.coin_key).map_err(Error::CoinKey)?;
        let keyring = keyring.with_coin(&Bls, secret, self.cluster.coin_keys());
        keyring.ok_or_else(|| self.stranger(&self.node.coin_key))
    }

    fn stranger(&self, key: &Path) -> Error {
        let NodeConfig { replica, cluster, .. } = self.node.clone();
        Error::StrangeReplica { key: key.to_owned(), replica: replica.0, cluster }
    }

    fn open_log(&self) -> Result<Found, Error> {
        if self.node.durability == Durability::Memory {
            let log = Box::new(MemoryLog::default());
            return Ok(Found { snapshot: None, records: Vec::new(), lost_log: self.lost_log, log });
        }
        let identity = log::Identity { cluster: self.cluster.to_cluster().digest(), replica: self.node.replica };
        // Without the `.` that stands for the file's own folder: it would look odd in messages.
        let directory: PathBuf = self.node.directory.components().collect();
        let options = log::Options::default();
        if self.lost_log {
            patiently(|| log::replace_lost(&directory, &identity, &options))?;
        }
        let found = patiently(|| log::open(&directory, &identity, &options))?;
        for note in &found.notes {
            tracing::info!(event = "log-opened", "{note}");
        }
        let log = Box::new(found.log);
        Ok(Found { snapshot: found.snapshot, records: found.records, lost_log: found.lost_log, log })
    }
}

/// A replica that runs. Dropped, it runs on without its admin port: keep it.
#[derive(Debug)]
#[must_use = "without it the replica can neither be asked nor ended"]
pub struct Running {
    handle: ReplicaHandle,
    _admin: AdminServer,
    replica: ReplicaId,
}

impl Running {
    /// What it last published, at most 100 ms old while something happens.
    pub fn status(&self) -> Status {
        self.handle.status()
    }

    /// Writes out what is under way (for at most a second), closes log and sockets, and waits for the end.
    ///
    /// # Errors
    /// [`Error::Replica`] if it had ended by itself, or if its log could not be closed.
    pub fn stop(self) -> Result<(), Error> {
        Ok(self.handle.stop()?)
    }

    /// Ends at once, as if the process had been killed: nothing more is written or sent.
    ///
    /// # Errors
    /// [`Error::Replica`] if it had ended by itself.
    pub fn kill(self) -> Result<(), Error> {
        Ok(self.handle.kill()?)
    }

    /// Waits for SIGINT, SIGTERM or SIGHUP, and then stops in order.
    ///
    /// # Errors
    /// [`Error::Replica`] if it ends by itself before that, [`Error::System`] if there are no signals to be had.
    pub fn until_asked_to_end(self) -> Result<(), Error> {
        let (leave, left) = mpsc::channel();
        on_request_to_end(move || _ = leave.send(()))?;
        self.until(&left)
    }

    /// Waits until something is sent, or all senders are gone, and then stops in order. Meanwhile the log is told who
    /// refuses this replica and why.
    ///
    /// # Errors
    /// [`Error::Replica`] if it ends by itself before that.
    pub fn until(self, left: &Receiver<()>) -> Result<(), Error> {
        let replica = self.replica.0;
        tracing::info!(event = "replica-started", replica, "running");
        let mut watch = Watch::default();
        loop {
            match left.recv_timeout(WATCH_INTERVAL) {
                Err(RecvTimeoutError::Timeout) if self.handle.is_finished() => return Ok(self.handle.join()?),
                Err(RecvTimeoutError::Timeout) => watch.observe(&self.handle.status()),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.stop()?;
        tracing::info!(event = "replica-stopped", replica, "ended in order");
        Ok(())
    }
}

/// Tries again for a while if the directory is in use: the replica that was killed a moment ago may still hold it.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, OpenError>) -> Result<T, OpenError> {
    let deadline = Instant::now() + IN_USE_MAX;
    loop {
        match attempt() {
            Err(OpenError::InUse { .. }) if Instant::now() < deadline => thread::sleep(WATCH_INTERVAL),
            outcome => return outcome,
        }
    }
}
