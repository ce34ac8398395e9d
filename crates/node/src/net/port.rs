//! A replica has a door for replicas and one for clients; and others that are for one replica each.

use bezant_core::ids::ReplicaId;

/// Which door a connection came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Other replicas, those with higher numbers.
    Replicas,
    /// One replica alone, one with a higher number. It comes by no other.
    Peer(ReplicaId),
    /// Clients.
    Clients,
}
