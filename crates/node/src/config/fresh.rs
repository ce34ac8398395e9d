//! The files of a cluster that has not run yet: what a new one and a successor have in common.

use super::ClusterConfig;
use super::cluster::{objection_to, objection_to_macs};
use super::reference::{NAME, SERVICE};
use crate::backup::{self, BackupError};
use crate::coin;
use crate::keys::{self, KeyError};
use crate::log::{self, Identity, OpenError};
use bezant_core::auth::{CoinKey, Ed25519, SecretKey, Suite};
use bezant_core::checkpoint::Tree;
use bezant_core::cluster::{Cluster, Coin};
use bezant_core::compositions::objection;
use bezant_core::ids::{PublicKey, ReplicaId};
use bezant_core::replicas::ReplicasError;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// Why the files were not written. Nothing is left of them.
#[derive(Debug)]
pub enum TestnetError {
    /// There is something in the directory.
    NotEmpty(PathBuf),
    /// The numbers do not make a cluster.
    Cluster(ReplicasError),
    /// The protocol cannot run on so many replicas.
    Protocol(&'static str),
    /// The limits do not go together, with the reason.
    Limits(String),
    /// The ports do not fit below 65536, or the host is none that others could reach.
    Address(String),
    /// The name is too long, empty, or has control characters.
    Name,
    /// The name of the service is no such word.
    Service,
    /// A key could not be made.
    Key(KeyError),
    /// A log could not be made.
    Log(OpenError),
    /// The state to begin with could not be written.
    Genesis(BackupError),
    /// The file system says no.
    Io(PathBuf, io::Error),
}

impl fmt::Display for TestnetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEmpty(path) => write!(f, "{} is not empty: choose a new directory", path.display()),
            Self::Cluster(error) => error.fmt(f),
            Self::Protocol(why) => f.write_str(why),
            Self::Limits(why) | Self::Address(why) => f.write_str(why),
            Self::Name => write!(f, "the cluster's name must be {NAME}"),
            Self::Service => write!(f, "the service's name must be {SERVICE}"),
            Self::Key(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
            Self::Genesis(error) => error.fmt(f),
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for TestnetError {}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> TestnetError + '_ {
    move |error| TestnetError::Io(path.to_owned(), error)
}

/// An id that no other cluster has.
pub(super) fn new_id() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(id)
}

/// Whether replicas could run under these parameters.
pub(super) fn check(cluster: &Cluster) -> Result<(), TestnetError> {
    if let Some(objection) = objection(cluster) {
        return Err(TestnetError::Protocol(objection));
    }
    if let Some(objection) = objection_to_macs(cluster.protocol, cluster.client_auth) {
        return Err(TestnetError::Protocol(objection));
    }
    match objection_to(&cluster.limits, cluster.dynamic_clients) {
        Some((_, why)) => Err(TestnetError::Limits(why)),
        None => Ok(()),
    }
}

/// Writes files into a directory that is empty or not there yet. If that fails the directory is as before.
pub(super) fn write_all<T>(
    directory: &Path,
    write: impl FnOnce() -> Result<T, TestnetError>,
) -> Result<T, TestnetError> {
    let was_there = directory.exists();
    fs::create_dir_all(directory).map_err(io_at(directory))?;
    if fs::read_dir(directory).map_err(io_at(directory))?.next().is_some() {
        return Err(TestnetError::NotEmpty(directory.to_owned()));
    }
    write().inspect_err(|_| {
        // Why it failed is told; what cannot be taken away either is seen.
        _ = if was_there { clear(directory) } else { fs::remove_dir_all(directory) };
    })
}

/// Takes away what is in a directory.
fn clear(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }?;
    }
    Ok(())
}

/// The folder of a replica that has not run yet, with a log and the state to begin with, if there is one.
pub(super) fn write_home(
    directory: &Path,
    cluster: &Cluster,
    replica: ReplicaId,
    log: &log::Options,
    genesis: Option<&Tree>,
) -> Result<PathBuf, TestnetError> {
    let home = directory.join(format!("replica-{}", replica.0));
    let identity = Identity { cluster: cluster.digest(), replica };
    log::initialise(&home, &identity, log).map_err(TestnetError::Log)?;
    if let Some(tree) = genesis {
        backup::write_genesis(&home, &identity, tree).map_err(TestnetError::Genesis)?;
    }
    Ok(home)
}

/// Writes the file that all of them have in common.
pub(super) fn write_cluster(directory: &Path, config: &ClusterConfig) -> Result<(), TestnetError> {
    write(&directory.join("cluster.toml"), &config.to_toml())
}

/// A secret key in a file of its own, and its public half.
pub(super) fn new_key(path: &Path) -> Result<PublicKey, TestnetError> {
    let key = keys::generate().map_err(io_at(path))?;
    keys::save(path, &key).map_err(TestnetError::Key)?;
    Ok(Ed25519.public(&key))
}

/// New keys for common coins, by replica: the secret and the public one. None where there are no such coins.
pub(super) fn new_coin_keys(cluster: &Cluster) -> io::Result<impl Iterator<Item = (SecretKey, CoinKey)> + use<>> {
    let dealt = match cluster.coin {
        Coin::Local => Vec::new(),
        Coin::Common => coin::deal(&cluster.replicas)?,
    };
    Ok(dealt.into_iter())
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), TestnetError> {
    fs::write(path, text).map_err(io_at(path))
}
