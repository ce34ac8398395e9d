//! The admin port: metrics, health and status over HTTP, for people and for tools. Read only, no secrets.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | Prometheus text; `docs/metrics.md` lists the names |
//! | `/livez` | 200 while the replica's loop runs and its disk works; 503: restart the process |
//! | `/readyz` | 200 while the replica takes full part; 503 with the reasons. `?verbose` names every check |
//! | `/status` | the replica's report as JSON |
//!
//! The event loop publishes what is to be shown from time to time on a [`Board`]; the server reads only that. So a
//! flood of requests here costs the replica no more than one lock now and then.

mod health;
mod metrics;
mod server;
mod status;
#[cfg(test)]
mod tests;

pub use health::{Check, live_checks, ready_checks};
pub use metrics::{METRICS, Metric, MetricKind};
pub use server::{AdminServer, serve};

use crate::log::LogFailure;
use bezant_core::cluster::ReplicaId;
use bezant_core::digest::Digest;
use bezant_core::replica::Report;
use std::sync::{Mutex, PoisonError};
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
    /// Replicas.
    pub n: usize,
    /// Replicas that may be faulty.
    pub f: usize,
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
    /// Processor time in the program, in microseconds.
    pub cpu_us_user: u64,
    /// Processor time in the kernel, in microseconds.
    pub cpu_us_system: u64,
}

/// What a replica shows of itself.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// What its machine says.
    pub report: Report,
    /// What its runtime counts.
    pub runtime: RuntimeMetrics,
    /// What keeps its log from going on.
    pub log: Option<LogFailure>,
    /// The replicas that it has a link with.
    pub connected: Vec<ReplicaId>,
    /// When this was published; `None`: the replica has not started yet.
    pub updated: Option<Instant>,
}

/// Where the event loop leaves what the admin port shows.
#[derive(Debug)]
pub struct Board {
    info: Info,
    started: Instant,
    published: Mutex<Published>,
}

impl Board {
    /// An empty board.
    pub fn new(info: Info) -> Self {
        Self { info, started: Instant::now(), published: Mutex::default() }
    }

    /// Replaces what is shown. The host does this a few times a second and whenever it is idle for longer.
    pub fn publish(&self, published: Published) {
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) = published;
    }

    /// What is shown now, with how old it is.
    pub fn sample(&self) -> Sample {
        let published = self.published.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let age = published.updated.map(|updated| updated.elapsed());
        Sample { info: self.info.clone(), published, age, uptime: self.started.elapsed() }
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
}
