//! What a replica's loop needs.

use super::Durability;
use crate::config::Places;
use crate::net::{Channel, ServiceBuild};
use bezant_core::auth::Keyring;
use bezant_core::ids::ReplicaId;
use bezant_core::notice::Notice;
use std::fmt;
use std::net::TcpListener;

/// What a replica's loop needs besides its machine.
pub struct ReplicaOptions {
    /// The replica's keys; they say which replica it is.
    pub keyring: Keyring,
    /// What links run over.
    pub channel: Channel,
    /// The service and its build. Replicas that run another one are refused.
    pub service: ServiceBuild,
    /// Whether no client is read at more than a level while there is no processor time to spare: what Aardvark's
    /// fairness needs.
    pub levels_clients: bool,
    /// Where every replica listens for replicas, by number.
    pub replicas: Places,
    /// This replica's port for replicas, bound. See [`bind`](super::bind).
    pub replica_listener: TcpListener,
    /// Its ports for one replica each, which then comes by no other, bound. None: all come by the one above.
    pub peer_listeners: Vec<(ReplicaId, TcpListener)>,
    /// This replica's port for clients, bound.
    pub client_listener: TcpListener,
    /// Where records go.
    pub log: Box<dyn Durability>,
    /// Called on the replica's thread with everything that its machine tells; must not block.
    pub on_notice: Box<dyn FnMut(&Notice) + Send>,
}

impl fmt::Debug for ReplicaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaOptions").field("replicas", &self.replicas).finish_non_exhaustive()
    }
}
