//! How much memory a replica's process takes at most, beyond what it begins with: what its machine holds, and what its
//! host does.

use super::host::HELD_BYTES_MAX;
use crate::log::format::RECORD_BYTES_MAX;
use crate::net::handshake::HANDSHAKE_BYTES_MAX;
use crate::net::{
    CLIENT_BUFFERS_BYTES_MAX, CLIENT_CONNECTIONS_MAX, CLIENT_FAIR_BYTES, PASS_BYTES_MAX, REPLICA_QUEUE_BYTES_MAX,
    UNAUTHENTICATED_MAX,
};
use bezant_core::cluster::Cluster;
use bezant_core::replica;
use bezant_core::wire::FRAME_BYTES_MAX;

/// What a connection takes beside its buffers, in bytes: TLS holds a record of 16 KiB in each direction, and its keys.
const CONNECTION_BYTES: u64 = 48 << 10;

/// Bytes that a replica's process holds at most beside its code and the application's state, by what they are for.
/// `identities` are those of the cluster's file, `connections` those that clients have at a time, of
/// [`CLIENT_CONNECTIONS_MAX`] at most, and `result` the bytes of the longest result of the service.
pub fn memory_max(cluster: &Cluster, identities: u64, connections: u64, result: u64) -> Vec<(&'static str, u64)> {
    let others = cluster.replicas.n() as u64 - 1;
    let connections = connections.min(CLIENT_CONNECTIONS_MAX as u64);
    let frame = FRAME_BYTES_MAX as u64;
    // One is for clients, and the node's file may name one for each other replica.
    let ports = 1 + others.max(1);
    let handshake = HANDSHAKE_BYTES_MAX as u64 + CONNECTION_BYTES;
    let mut terms = replica::memory_max(cluster, identities, result).to_vec();
    terms.extend([
        // What goes over the bound, and what has come of a frame, whose buffer is twice that at most.
        ("queues to replicas: REPLICA_QUEUE_BYTES_MAX", others * (REPLICA_QUEUE_BYTES_MAX as u64 + 2 * frame)),
        ("buffers of clients: CLIENT_BUFFERS_BYTES_MAX", CLIENT_BUFFERS_BYTES_MAX as u64 + 2 * frame),
        ("connections of clients: CLIENT_FAIR_BYTES", connections * (CLIENT_FAIR_BYTES as u64 + CONNECTION_BYTES)),
        ("who is not known yet: UNAUTHENTICATED_MAX", ports * UNAUTHENTICATED_MAX as u64 * handshake),
        ("frames of a pass: PASS_BYTES_MAX", (others + 1) * PASS_BYTES_MAX as u64),
        ("messages that wait for the log: HELD_BYTES_MAX", HELD_BYTES_MAX as u64),
        ("the log: RECORD_BYTES_MAX", RECORD_BYTES_MAX as u64),
    ]);
    terms
}
