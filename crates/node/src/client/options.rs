//! What a client has to know before it can connect.

use crate::net::Channel;
use bezant_core::auth::{Ed25519, Keyring, PublicKeys, SecretKey};
use bezant_core::cluster::{ClientId, Cluster, IdentityId};
use bezant_core::machine::Principal;
use std::io;
use std::net::SocketAddr;

/// Whom to connect to, and as whom.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The cluster's parameters.
    pub cluster: Cluster,
    /// Where each replica listens for clients, by number.
    pub replicas: Vec<SocketAddr>,
    /// The keys that the cluster admits.
    pub keys: PublicKeys,
    /// Whose sessions these are.
    pub identity: IdentityId,
    /// The identity's secret key.
    pub secret: SecretKey,
    /// What connections run over; as at the replicas.
    pub channel: Channel,
    /// Connections to each replica; sessions are spread over them evenly.
    pub connections: usize,
    /// Sessions on each connection: so many requests may be under way on it.
    pub sessions_per_connection: usize,
    /// The number of the first session; `None` chooses at random, so that two processes of one identity do not
    /// meet.
    pub first_session: Option<u32>,
}

impl ClientOptions {
    pub(super) const fn sessions(&self) -> usize {
        self.connections * self.sessions_per_connection
    }

    /// The identity's keys.
    ///
    /// # Errors
    /// If the secret key is another's.
    pub fn keyring(&self) -> io::Result<Keyring> {
        let me = Principal::Client(ClientId { identity: self.identity, session: 0 });
        Keyring::new(&Ed25519, &self.cluster, me, self.secret.clone(), self.keys.clone())
            .ok_or_else(|| io::Error::other("the secret key is not that of the identity in the cluster file"))
    }

    /// The number of the first session, chosen at random where it is not given.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn first_session(&self) -> io::Result<u32> {
        let last = u32::MAX - self.sessions() as u32;
        if let Some(first) = self.first_session {
            return Ok(first.min(last));
        }
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(u32::from_le_bytes(random).min(last))
    }
}
