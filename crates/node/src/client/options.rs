//! What a client has to know before it can connect.

use crate::config::Places;
use crate::net::Channel;
use bezant_core::auth::{Ed25519, Keyring, PublicKeys, SecretKey, Suite};
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, IdentityId, Principal};
use bezant_core::joining::MEMBER_SESSIONS_MAX;
use bytes::Bytes;
use std::io;

/// Whom to connect to, and as whom.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The cluster's parameters.
    pub cluster: Cluster,
    /// Where each replica listens for clients, by number.
    pub replicas: Places,
    /// The keys that the cluster admits.
    pub keys: PublicKeys,
    /// Whose sessions these are. `None`: somebody's whom the cluster file does not name; they join by themselves.
    pub identity: Option<IdentityId>,
    /// The secret key.
    pub secret: SecretKey,
    /// For those who join: what they say about themselves, for the service. All replicas read it.
    pub identification: Bytes,
    /// What connections run over; as at the replicas.
    pub channel: Channel,
    /// Connections to each replica; sessions are spread over them evenly. Those who join have one.
    pub connections: usize,
    /// Sessions on each connection: so many operations may be under way on it. Those who join have at most
    /// [`MEMBER_SESSIONS_MAX`].
    pub sessions_per_connection: usize,
    /// Operations that leave together as one request, at most: 1 to
    /// [`BUNDLE_OPERATIONS_MAX`](bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX).
    pub bundle_operations_max: usize,
    /// The number of the first session; `None` chooses at random, so that two processes of one identity do not
    /// meet.
    pub first_session: Option<u32>,
}

impl ClientOptions {
    pub(super) const fn connections(&self) -> usize {
        if self.identity.is_some() { self.connections } else { 1 }
    }

    pub(super) fn sessions_per_connection(&self) -> usize {
        let most = if self.identity.is_some() { usize::MAX } else { MEMBER_SESSIONS_MAX };
        self.sessions_per_connection.min(most)
    }

    pub(super) fn sessions(&self) -> usize {
        self.connections() * self.sessions_per_connection()
    }

    /// Whom replicas know this process as.
    pub(super) fn me(&self) -> Principal {
        match self.identity {
            Some(identity) => Principal::Client(ClientId { identity, session: 0 }),
            None => Principal::Key(Ed25519.public(&self.secret)),
        }
    }

    /// The identity's keys.
    ///
    /// # Errors
    /// If the secret key is another's.
    pub fn keyring(&self) -> io::Result<Keyring> {
        if self.identity.is_none() && !self.cluster.dynamic_clients {
            return Err(io::Error::other("the cluster file does not name this key, and lets nobody join"));
        }
        Keyring::new(&Ed25519, &self.cluster, self.me(), self.secret.clone(), self.keys.clone())
            .ok_or_else(|| io::Error::other("the secret key is not that of the identity in the cluster file"))
    }

    /// The number of the first session, chosen at random where it is not given. No session has the last number: in
    /// that one the cluster is closed ([`bezant_core::joining::CONTROL_SESSION`]).
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn first_session(&self) -> io::Result<u32> {
        if self.identity.is_none() {
            return Ok(0);
        }
        let last = u32::MAX - self.sessions() as u32;
        if let Some(first) = self.first_session {
            return Ok(first.min(last));
        }
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(u32::from_le_bytes(random).min(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::cluster::{ClientAuth, Limits};
    use bezant_core::joining::CONTROL_SESSION;

    #[test]
    fn no_session_has_the_number_that_is_kept_for_closing() {
        let cluster = Cluster::new([7; 16], 1, 0, ClientAuth::Hybrid, Limits::default()).unwrap();
        for (connections, sessions_per_connection) in [(1, 1), (1, 256), (8, 100)] {
            let mut options = ClientOptions {
                cluster: cluster.clone(),
                replicas: Places::find([].into_iter()),
                keys: PublicKeys::default(),
                identity: Some(IdentityId(0)),
                secret: SecretKey([1; 32]),
                identification: Bytes::new(),
                channel: Channel::Plain,
                connections,
                sessions_per_connection,
                bundle_operations_max: 1,
                first_session: None,
            };
            let sessions = options.sessions() as u32;
            for first in [None, Some(0), Some(CONTROL_SESSION - sessions), Some(CONTROL_SESSION)] {
                options.first_session = first;
                let last = options.first_session().unwrap() + (sessions - 1);
                assert!(last < CONTROL_SESSION, "{first:?}");
            }
        }
    }
}
