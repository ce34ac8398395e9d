//! What a replica publishes about itself, for the admin port, `status` and benchmarks.

use super::Stall;
use crate::net::{NetMetrics, Quarantine};
use bezant_core::auth::Counters;
use bezant_core::ids::ReplicaId;
use bezant_core::notice::Report;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// How many are shown that are in quarantine: clients may be any number.
pub const QUARANTINED_SHOWN_MAX: usize = 64;

/// Processor time used so far, user and system together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// By the replica's own thread.
    pub thread: Duration,
    /// By the whole process.
    pub process: Duration,
}

impl CpuTime {
    /// As of now, on the calling thread.
    pub fn now() -> Self {
        let read = |clock| {
            let time = clock_gettime(clock);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        Self { thread: read(ClockId::ThreadCPUTime), process: read(ClockId::ProcessCPUTime) }
    }
}

/// The link to another replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Who.
    pub replica: ReplicaId,
    /// Whether the link is up.
    pub connected: bool,
    /// Why the last link ended, if one has.
    pub last_end: Option<crate::net::CloseReason>,
}

/// See the [module](self). Counters count since the start of the process.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// What the machine says.
    pub report: Report,
    /// What its network layer counted.
    pub net: NetMetrics,
    /// Who is read last and little, the first [`QUARANTINED_SHOWN_MAX`]: replicas, and then clients.
    pub quarantined: Vec<Quarantine>,
    /// The links to the others.
    pub peers: Vec<PeerStatus>,
    /// Authentication operations of the protocol; those of handshakes are not in it.
    pub counters: Counters,
    /// Passes of the loop.
    pub passes: u64,
    /// Replies that had no connection to leave by.
    pub unroutable: u64,
    /// Messages and notices that wait for the log.
    pub held: usize,
    /// Records appended, and durable.
    pub log_position: u64,
    /// Records that are durable.
    pub log_durable: u64,
    /// Calls of fsync.
    pub syncs: u64,
    /// Bytes of records written to the log.
    pub log_bytes: u64,
    /// What keeps the log from going on.
    pub stall: Option<Stall>,
    /// Processor time.
    pub cpu: CpuTime,
    /// Publications so far: 0 means that the replica has not started yet.
    pub published: u64,
    /// When that was; `None`: never.
    pub updated: Option<Instant>,
}
