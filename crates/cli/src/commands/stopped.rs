//! The state in the folder of a stopped replica: what it would have after a start, before it hears from others.
//!
//! Nothing proves it to anybody: whoever could write to the folder could have written anything.

use crate::failure::{Failure, Result};
use crate::served::Served;
use bezant_core::auth::{Ed25519, Keyring};
use bezant_core::checkpoint::Tree;
use bezant_core::ids::Principal;
use bezant_core::replica::{Replica, ReplicaConfig};
use bezant_core::service::Service;
use bezant_core::services::kv::Kv;
use bezant_node::config::{ClusterConfig, NodeConfig};
use bezant_node::host::Home;
use bezant_node::{backup, keys, log};
use bezant_sql::Database;
use std::path::Path;

/// Reads snapshot and log, changes nothing, and executes what the log has.
pub(crate) fn state(dir: &Path) -> Result<Tree> {
    let home = Home::load(dir)?;
    let (node, config) = (&home.node, &home.cluster);
    match Served::of(&home)? {
        Served::Sql => recover(node, config, Box::new(Database::new())),
        Served::Kv => recover(node, config, Box::new(Kv::new())),
        Served::Null | Served::Counter => Err(Failure::usage("this replica's service has no tables.")),
    }
}

fn recover(node: &NodeConfig, config: &ClusterConfig, service: Box<dyn Service>) -> Result<Tree> {
    let cluster = config.to_cluster();
    let secret = keys::load(&node.key).map_err(|error| Failure::usage(format!("{error}.")))?;
    let keyring = Keyring::new(&Ed25519, &cluster, Principal::Replica(node.replica), secret, config.public_keys());
    let keyring = keyring.ok_or_else(|| Failure::usage(format!("{} is not its key.", node.key.display())))?;
    let identity = log::Identity { cluster: cluster.digest(), replica: node.replica };
    let found = log::inspect(&node.directory, &identity).map_err(|error| Failure::failed(format!("{error}.")))?;
    let genesis = match found.snapshot {
        Some(_) => None,
        None => backup::read_genesis(&node.directory, config).map_err(|error| Failure::failed(format!("{error}.")))?,
    };
    let replica_config = ReplicaConfig { cluster, keyring, lost_log: false, genesis };
    let replica = Replica::recover(replica_config, service, found.snapshot, found.records);
    replica.map(Replica::into_state).map_err(|error| Failure::failed(format!("{error}.")))
}
