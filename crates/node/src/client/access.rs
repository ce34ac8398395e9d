//! A client from the files of its cluster.

use super::{Client, ClientOptions, connect};
use crate::config::{self, ClusterConfig, Places};
use crate::{Error, keys};
use bezant_core::auth::{Ed25519, SecretKey, Suite};
use bezant_core::ids::IdentityId;
use bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;
use bytes::Bytes;
use std::path::{Path, PathBuf};

/// Requests that a client of [`open`] may have under way: more of them wait.
const SESSIONS: usize = 256;

/// Connects to the cluster of this file, with the key `client.key` beside it. Returns at once: calls wait for the
/// connections.
///
/// # Errors
/// [`Error`] if a file or the key is wrong, a host has no address, or the system gives no readiness queue or thread.
pub fn open(cluster: &Path) -> Result<Client, Error> {
    let options = ClientOptions::of(&ClusterConfig::load(cluster)?, &key_beside(cluster), 1, SESSIONS)?;
    connect(options).map_err(|error| Error::System("cannot connect", error))
}

/// The client's key of a cluster's file, if no other is named.
pub fn key_beside(cluster: &Path) -> PathBuf {
    cluster.with_file_name("client.key")
}

impl ClientOptions {
    /// How a client with the key in this file reaches the cluster over so many connections, with so many requests under
    /// way on each. Where clients may join the key need not be one that the cluster's file names.
    ///
    /// # Errors
    /// [`Error::Key`], [`Error::StrangeClient`].
    pub fn of(
        config: &ClusterConfig,
        key: &Path,
        connections: usize,
        sessions_per_connection: usize,
    ) -> Result<Self, Error> {
        let secret = keys::load(key)?;
        let identity = config.identity_of(&Ed25519.public(&secret)).map(|identity| identity.id);
        if identity.is_none() && !config.dynamic_clients {
            return Err(Error::StrangeClient(key.to_owned()));
        }
        Ok(Self::with(config, secret, identity, connections, sessions_per_connection))
    }

    /// The same with a key that somebody has just made, where clients may join.
    pub fn of_stranger(config: &ClusterConfig, secret: SecretKey) -> Self {
        Self::with(config, secret, None, 1, 1)
    }

    fn with(
        config: &ClusterConfig,
        secret: SecretKey,
        identity: Option<IdentityId>,
        connections: usize,
        sessions_per_connection: usize,
    ) -> Self {
        Self {
            cluster: config.to_cluster(),
            replicas: Places::find(config.replicas.iter().map(|replica| &replica.client_address)),
            keys: config.public_keys(),
            identity,
            identification: Bytes::new(),
            secret,
            channel: config.channel.into(),
            connections,
            sessions_per_connection,
            bundle_operations_max: BUNDLE_OPERATIONS_MAX,
            first_session: None,
        }
    }
}

/// What links run over.
impl From<config::Channel> for crate::net::Channel {
    fn from(channel: config::Channel) -> Self {
        match channel {
            config::Channel::Plain => Self::Plain,
            config::Channel::Tls => Self::Tls,
        }
    }
}
