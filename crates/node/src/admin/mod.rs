//! The admin port: metrics, health and status over HTTP, for people and for tools. Read only, and no keys; but the
//! last three rows show the state to whoever asks, unless `serve_state = false`.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | Prometheus text; `docs/metrics.md` lists the names |
//! | `/livez` | 200 while the replica's loop runs and its disk works; 503: restart the process |
//! | `/readyz` | 200 while the replica takes full part; 503 with the reasons. `?verbose` names every check |
//! | `/status` | the replica's report as JSON |
//! | `/checkpoint` | the checkpoints that it has, with their signatures, as JSON |
//! | `/state/<requests>` | nodes and pages of one of them, in the encoding of state transfer |
//! | `/divergences` | when its state was not that of the others, as JSON |
//!
//! Who asks for it under a name that is not its own, as a page does that rebinds its name, is refused: see `host`.
//!
//! The event loop publishes its status ten times a second, and the server reads only that: a flood of requests here
//! costs the replica no more than a lock now and then.

mod ask;
mod health;
mod host;
mod http;
mod metrics;
pub(crate) mod pieces;
mod server;
mod status;
#[cfg(test)]
mod tests;

pub use ask::{NOT_RUNNING, ask, get};
pub use health::{Check, live_checks, ready_checks};
pub use metrics::{METRICS, Metric, MetricKind};
pub use server::{AdminServer, serve};

use crate::divergence::Archive;
use crate::net::{CloseReason, Quarantine, ServiceBuild};
use crate::replica::{PeerStatus, Shelf, Stall, Status};
use bezant_core::digest::Digest;
use bezant_core::ids::ReplicaId;
use bezant_core::notice::Report;
use serde_json::Value;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What does not change while a replica runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// What people call the cluster.
    pub cluster_name: String,
    /// The digest of its parameters.
    pub cluster: Digest,
    /// Which replica this is.
    pub replica: ReplicaId,
    /// What it serves, in which version.
    pub service: ServiceBuild,
    /// Replicas.
    pub n: usize,
    /// Replicas that may be faulty.
    pub f: usize,
    /// Batches between two checkpoints.
    pub checkpoint_interval: u64,
    /// The host of its admin address: the name, besides addresses and `localhost`, under which it answers.
    pub host: String,
    /// Of this program.
    pub version: &'static str,
}

/// What the runtime counts. All but the connections count since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuntimeMetrics {
    /// Bytes received from replicas.
    pub peer_bytes_in: u64,
    /// Bytes sent to replicas.
    pub peer_bytes_out: u64,
    /// Bytes received from clients.
    pub client_bytes_in: u64,
    /// Bytes sent to clients.
    pub client_bytes_out: u64,
    /// Messages received from replicas.
    pub peer_frames_in: u64,
    /// Messages sent to replicas.
    pub peer_frames_out: u64,
    /// Messages received from clients.
    pub client_frames_in: u64,
    /// Messages sent to clients.
    pub client_frames_out: u64,
    /// Messages that were not sent, because a queue was full or nobody was connected.
    pub frames_dropped: u64,
    /// Calls of read on sockets.
    pub reads: u64,
    /// Calls of write on sockets.
    pub writes: u64,
    /// Links with replicas, now.
    pub connections_peers: u64,
    /// Connections of clients, now.
    pub connections_clients: u64,
    /// Connections that were refused.
    pub connections_refused: u64,
    /// Connections for which no handshake was begun: closed already, or from where too many handshakes had failed.
    pub connections_turned_away: u64,
    /// Replicas in quarantine, now.
    pub quarantined_peers: u64,
    /// Clients in quarantine, now; one more while all are whom nobody knows.
    pub quarantined_clients: u64,
    /// Quarantines of replicas that have begun.
    pub quarantines_peers: u64,
    /// Quarantines of clients that have begun.
    pub quarantines_clients: u64,
    /// Bytes a second that are read of a client at most while there is no processor time to spare; 0: as they come.
    pub client_level: u64,
    /// Calls of fdatasync on the log.
    pub fsyncs: u64,
    /// Bytes of records written to the log.
    pub log_bytes: u64,
    /// MACs computed to send.
    pub macs_made: u64,
    /// MACs computed to check.
    pub macs_checked: u64,
    /// Signatures made.
    pub signatures_made: u64,
    /// Signatures checked.
    pub signatures_checked: u64,
    /// Processor time of the process, in microseconds.
    pub cpu_us: u64,
}

/// What a replica shows of itself.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// What its machine says.
    pub report: Report,
    /// What its runtime counts.
    pub runtime: RuntimeMetrics,
    /// What keeps its log from going on.
    pub log: Option<Stall>,
    /// The replicas that it has a link with.
    pub connected: Vec<ReplicaId>,
    /// Those with which it has none because one side refused the other, and why.
    pub refused: Vec<(ReplicaId, CloseReason)>,
    /// Whom it holds in quarantine.
    pub quarantined: Vec<Quarantine>,
    /// When this was published; `None`: the replica has not started yet.
    pub updated: Option<Instant>,
}

type Source = Box<dyn Fn() -> Published + Send + Sync>;

/// Where the admin port finds what it shows.
pub struct Board {
    info: Info,
    started: Instant,
    source: Source,
    /// The checkpoints to show.
    shelf: Option<Arc<Shelf>>,
    /// The divergences to show.
    archive: Option<Arc<Archive>>,
    /// Requests for names that are not the replica's.
    foreign_hosts: AtomicU64,
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Board {
    /// A board that shows what `source` returns, as of the moment of a request.
    pub fn new(info: Info, source: impl Fn() -> Published + Send + Sync + 'static) -> Self {
        let (started, source) = (Instant::now(), Box::new(source));
        Self { info, started, source, shelf: None, archive: None, foreign_hosts: AtomicU64::new(0) }
    }

    /// The same with divergences counted, and shown with checkpoints if there is a shelf.
    #[must_use]
    pub fn with(self, shelf: Option<Arc<Shelf>>, archive: Arc<Archive>) -> Self {
        Self { shelf, archive: Some(archive), ..self }
    }

    /// Divergences that will be on record soon.
    fn announced(&self) -> usize {
        self.archive.as_ref().map_or(0, |archive| archive.announced())
    }

    /// What was recorded about states that were wrong, if states are shown.
    fn divergences(&self) -> Option<Value> {
        self.shelf.as_ref()?;
        Some(Value::Array(self.archive.as_ref()?.summaries()))
    }

    /// A board that shows a replica's status: see [`crate::replica::ReplicaHandle::shared_status`].
    pub fn of_status(info: Info, status: Arc<Mutex<Status>>) -> Self {
        Self::new(info, move || Published::from(&*status.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What is shown now, with how old it is.
    pub fn sample(&self) -> Sample {
        let published = (self.source)();
        let age = published.updated.map(|updated| updated.elapsed());
        let divergences = self.archive.as_ref().map_or(0, |archive| archive.count());
        let foreign_hosts = self.foreign_hosts.load(Ordering::Relaxed);
        Sample { info: self.info.clone(), published, age, uptime: self.started.elapsed(), divergences, foreign_hosts }
    }
}

impl From<&Status> for Published {
    fn from(status: &Status) -> Self {
        let (net, counters) = (&status.net, &status.counters);
        let runtime = RuntimeMetrics {
            peer_bytes_in: net.replicas.bytes_in,
            peer_bytes_out: net.replicas.bytes_out,
            client_bytes_in: net.clients.bytes_in,
            client_bytes_out: net.clients.bytes_out,
            peer_frames_in: net.replicas.frames_in,
            peer_frames_out: net.replicas.frames_out,
            client_frames_in: net.clients.frames_in,
            client_frames_out: net.clients.frames_out,
            frames_dropped: net.replicas.frames_dropped + net.clients.frames_dropped + status.unroutable,
            reads: net.reads,
            writes: net.writes,
            connections_peers: net.replicas.connections,
            connections_clients: net.clients.connections,
            connections_refused: net.refused.values().sum(),
            connections_turned_away: net.turned_away,
            quarantined_peers: net.replicas.quarantined,
            quarantined_clients: net.clients.quarantined,
            quarantines_peers: net.replicas.quarantines,
            quarantines_clients: net.clients.quarantines,
            client_level: net.client_level,
            fsyncs: status.syncs,
            log_bytes: status.log_bytes,
            macs_made: counters.macs_made.get(),
            macs_checked: counters.macs_checked.get(),
            signatures_made: counters.signatures_made.get(),
            signatures_checked: counters.signatures_checked.get(),
            cpu_us: status.cpu.process.as_micros() as u64,
        };
        let connected = status.peers.iter().filter(|peer| peer.connected).map(|peer| peer.replica).collect();
        let apart = status.peers.iter().filter(|peer| !peer.connected);
        let refusal = |peer: &PeerStatus| Some((peer.replica, peer.last_end.filter(CloseReason::is_refusal)?));
        let refused = apart.filter_map(refusal).collect();
        let (report, log) = (status.report.clone(), status.stall.clone());
        let quarantined = status.quarantined.clone();
        Self { report, runtime, log, connected, refused, quarantined, updated: status.updated }
    }
}

/// A [`Board`] at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What does not change.
    pub info: Info,
    /// What the replica published last.
    pub published: Published,
    /// How long ago that was; `None`: never.
    pub age: Option<Duration>,
    /// How long the process runs.
    pub uptime: Duration,
    /// Divergences on record.
    pub divergences: usize,
    /// Requests that the admin port refused because they were for another host.
    pub foreign_hosts: u64,
}
