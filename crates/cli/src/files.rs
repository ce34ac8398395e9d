//! What the cluster's files say, in the form in which the runtime wants it.

use crate::commands::status::Member;
use crate::failure::{Failure, Result};
use bezant_core::auth::{Ed25519, SecretKey, Suite};
use bezant_core::cluster::IdentityId;
use bezant_node::client::ClientOptions;
use bezant_node::config::{self, Address, ClusterConfig};
use bezant_node::{keys, net};
use std::net::SocketAddr;
use std::path::Path;

/// The addresses that names stand for.
pub(crate) fn resolve<'a>(addresses: impl Iterator<Item = &'a Address>) -> Result<Vec<SocketAddr>> {
    let resolve = |address: &Address| {
        address.resolve().map_err(|error| Failure::failed(format!("{address} cannot be found: {error}.")))
    };
    addresses.map(resolve).collect()
}

/// Every replica, and where to ask how it is.
pub(crate) fn members(config: &ClusterConfig) -> Result<Vec<Member>> {
    let admin = resolve(config.replicas.iter().map(|replica| &replica.admin_address))?;
    Ok(config.replicas.iter().zip(admin).map(|(replica, admin)| Member { replica: replica.id.0, admin }).collect())
}

/// What links run over.
pub(crate) const fn channel(config: &ClusterConfig) -> net::Channel {
    match config.channel {
        config::Channel::Plain => net::Channel::Plain,
        config::Channel::Tls => net::Channel::Tls,
    }
}

/// How a client with the key in this file reaches the cluster over so many connections, with so many requests under way
/// on each.
pub(crate) fn client_options(
    config: &ClusterConfig,
    key: &Path,
    connections: usize,
    sessions_per_connection: usize,
) -> Result<ClientOptions> {
    let (secret, identity) = client_key(config, key)?;
    Ok(ClientOptions {
        cluster: config.to_cluster(),
        replicas: resolve(config.replicas.iter().map(|replica| &replica.client_address))?,
        keys: config.public_keys(),
        identity,
        identification: bytes::Bytes::new(),
        secret,
        channel: channel(config),
        connections,
        sessions_per_connection,
        first_session: None,
    })
}

/// A client's secret key, and whose it is, if the cluster's file says so. Where clients may join it need not.
fn client_key(config: &ClusterConfig, path: &Path) -> Result<(SecretKey, Option<IdentityId>)> {
    let secret = keys::load(path).map_err(|error| Failure::usage(format!("{error}.")))?;
    match config.identity_of(&Ed25519.public(&secret)) {
        Some(identity) => Ok((secret, Some(identity.id))),
        None if config.dynamic_clients => Ok((secret, None)),
        None => Err(Failure::usage(format!(
            "{} is not the key of any identity in the cluster's file, which lets nobody else join. \
             Name another with --key.",
            path.display()
        ))),
    }
}
