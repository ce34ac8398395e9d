//! Writes the files of a cluster's successor: the same replicas and clients, with the same keys and addresses, under
//! other parameters, from a state of the old one on.
//!
//! Keys may stay. All that anybody signs or authenticates is bound to the digest of a cluster, which covers its id, its
//! parameters and the state with which it begins: what was said in one of the two means nothing in the other.

use super::fresh::{check, new_id, write_all, write_cluster, write_home};
use super::{ClusterConfig, Protocol, TestnetError};
use crate::log;
use bezant_core::checkpoint::Tree;
use bezant_core::cluster::{Coin, Limits, Vects};
use std::path::Path;

/// What is to be otherwise.
#[derive(Clone, Debug)]
pub struct Successor {
    /// Which protocol.
    pub protocol: Protocol,
    /// The bounds.
    pub limits: Limits,
    /// How the logs are created.
    pub log: log::Options,
    /// The state to begin with, sealed.
    pub genesis: Tree,
}

impl Successor {
    /// Of a cluster, with nothing changed, and this state to begin with.
    pub fn of(old: &ClusterConfig, genesis: Tree) -> Self {
        let limits = old.limits.clone();
        Self { protocol: old.protocol, limits, log: log::Options::default(), genesis }
    }
}

/// Writes `cluster.toml` and, for each replica, `replica-<i>/` with a log and the state to begin with. `key`,
/// `coin.key` and `node.toml`, as far as each replica has them, are to be copied there from its old folder.
///
/// # Errors
/// [`TestnetError`]. Nothing is written if the directory is not empty or the numbers make no cluster, and nothing is
/// left after another error.
pub fn successor(directory: &Path, old: &ClusterConfig, successor: &Successor) -> Result<ClusterConfig, TestnetError> {
    let Successor { protocol, limits, log, genesis } = successor;
    let cluster_id = new_id().map_err(|error| TestnetError::Io(directory.to_owned(), error))?;
    let (protocol, limits, genesis_root) = (*protocol, limits.clone(), Some(genesis.root()));
    let mut config = ClusterConfig { cluster_id, protocol, limits, genesis_root, ..old.clone() };
    // What only RITAS has goes with it. Where it stays the keys of its coin do, too: coins are bound to the cluster as
    // all else is.
    if !protocol.has_ritas() {
        config.coin = Coin::Local;
        config.vects = Vects::default();
        config.replicas.iter_mut().for_each(|replica| replica.coin_key = None);
    }
    let cluster = config.to_cluster();
    check(&cluster)?;
    write_all(directory, || {
        for id in cluster.replicas.iter() {
            write_home(directory, &cluster, id, log, Some(genesis))?;
        }
        write_cluster(directory, &config)
    })?;
    Ok(config)
}
