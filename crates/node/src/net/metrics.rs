//! What the network costs and what it refused, for the admin port and for benchmarks.

use super::{CloseReason, LinkRefusal, Refusals};
use std::collections::BTreeMap;

/// One class of peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes read from sockets.
    pub bytes_in: u64,
    /// Bytes written to sockets.
    pub bytes_out: u64,
    /// Frames handed to the owner.
    pub frames_in: u64,
    /// Frames queued to be written.
    pub frames_out: u64,
    /// Frames dropped: no connection, or its queue was full.
    pub frames_dropped: u64,
    /// Authenticated connections now.
    pub connections: u64,
    /// Those in quarantine now: replicas; clients, all of them together counted as one more.
    pub quarantined: u64,
    /// Quarantines that have begun.
    pub quarantines: u64,
}

/// Everything counted by one hub since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetMetrics {
    /// With replicas.
    pub replicas: Traffic,
    /// With clients.
    pub clients: Traffic,
    /// Bytes a second that are read of a client at most while there is no processor time to spare, with something for
    /// each frame; 0: as many as it sends.
    pub client_level: u64,
    /// Calls to wait for readiness.
    pub polls: u64,
    /// Calls to read.
    pub reads: u64,
    /// Calls to write.
    pub writes: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Of those, the ones for which no handshake was begun: they had been closed already, or too many handshakes had
    /// failed.
    pub turned_away: u64,
    /// Handshakes refused by us, by reason.
    pub refused: BTreeMap<LinkRefusal, u64>,
    /// Those of connections that came to us, by address.
    pub refused_from: Refusals,
    /// Connections closed, by reason.
    pub closed: BTreeMap<CloseReason, u64>,
}
