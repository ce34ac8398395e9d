//! What the cluster's files say, in the form in which the sub-commands want it.

use crate::failure::{Failure, Result};
use crate::member::Member;
use bezant_node::Error;
use bezant_node::client::ClientOptions;
use bezant_node::config::{ClusterConfig, Place, Places, ReplicaEntry};
use std::path::Path;

/// Every replica, and where to ask how it is.
pub(crate) fn members(config: &ClusterConfig) -> Vec<Member> {
    let places = Places::find(config.replicas.iter().map(|replica| &replica.admin_address));
    let member = |(replica, place): (&ReplicaEntry, &Place)| Member { replica: replica.id.0, admin: place.get() };
    config.replicas.iter().zip(&places).map(member).collect()
}

/// How a client with the key in this file reaches the cluster over so many connections, with so many requests under way
/// on each.
pub(crate) fn client_options(
    config: &ClusterConfig,
    key: &Path,
    connections: usize,
    sessions_per_connection: usize,
) -> Result<ClientOptions> {
    ClientOptions::of(config, key, connections, sessions_per_connection).map_err(|error| match error {
        Error::StrangeClient(_) => Failure::usage(format!("{error}. Name another with --key.")),
        other => other.into(),
    })
}
