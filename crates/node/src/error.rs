//! Why a replica cannot be hosted, or a cluster not be reached, as its operator reads it.

use crate::backup::BackupError;
use crate::config::{ConfigError, UnknownHost};
use crate::keys::KeyError;
use crate::log::OpenError;
use crate::replica::ReplicaError;
use std::path::PathBuf;
use std::{fmt, io};

/// What [`host`](crate::host()) and [`client`](crate::client()) say when they cannot do it.
#[derive(Debug)]
pub enum Error {
    /// A file is not there, or is wrong.
    Config(ConfigError),
    /// The folder is that of a whole cluster, and not of one replica.
    WholeCluster(PathBuf),
    /// A key cannot be read.
    Key(KeyError),
    /// Nor can a replica's key for common coins.
    CoinKey(KeyError),
    /// A replica's key is not the one that the cluster file has for it.
    StrangeReplica {
        /// The key's file.
        key: PathBuf,
        /// Which replica its folder says that it is.
        replica: u8,
        /// The cluster's file.
        cluster: PathBuf,
    },
    /// A client's key is none that the cluster file has, and nobody else may join.
    StrangeClient(PathBuf),
    /// The program serves another service than the one that the replica is for.
    OtherService {
        /// The replica's `node.toml`.
        file: PathBuf,
        /// What it says.
        asked: String,
        /// What the program serves.
        served: String,
    },
    /// The program calls its service by what is no name.
    ServiceName(String),
    /// A host has no address.
    Address(UnknownHost),
    /// A port cannot be had.
    Listen(io::Error),
    /// The log cannot be opened.
    Log(OpenError),
    /// The state to begin with cannot be read.
    Genesis(BackupError),
    /// The system refuses something: what, and why.
    System(&'static str, io::Error),
    /// The replica ended by itself.
    Replica(ReplicaError),
}

impl Error {
    /// Whether a file or an argument is wrong, so that trying again is in vain.
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Config(_) | Self::WholeCluster(_) | Self::Key(_) | Self::CoinKey(_) | Self::StrangeReplica { .. } => {
                true
            }
            Self::StrangeClient(_) | Self::OtherService { .. } | Self::ServiceName(_) => true,
            Self::Address(_) | Self::Listen(_) | Self::Log(_) | Self::Genesis(_) => false,
            Self::System(..) | Self::Replica(_) => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::WholeCluster(folder) => {
                let folder = folder.display();
                write!(f, "{folder} is the folder of a whole cluster: give that of one replica, as {folder}/replica-0")
            }
            Self::CoinKey(KeyError::Missing(path)) => {
                write!(
                    f,
                    "there is no key for common coins at {}: bring the one that was dealt with ",
                    path.display()
                )?;
                f.write_str("those of the other replicas, by `bezant testnet --coin common`; alone it cannot be made")
            }
            Self::Key(error) | Self::CoinKey(error) => error.fmt(f),
            Self::StrangeReplica { key, replica, cluster } => {
                let (key, cluster) = (key.display(), cluster.display());
                write!(f, "{key} is not the key of replica {replica} in {cluster}: ")?;
                f.write_str("this folder belongs to another cluster or another replica")
            }
            Self::StrangeClient(key) => {
                let key = key.display();
                write!(f, "{key} is not the key of any identity in the cluster's file, which lets nobody else join")
            }
            Self::OtherService { file, asked, served } => {
                let file = file.display();
                write!(f, "{file} says `service = \"{asked}\"`, and this program serves {served}: start the replica ")?;
                f.write_str("with the program for its service; only of a new cluster may the file be changed")
            }
            Self::ServiceName(name) => {
                write!(f, "{name:?} is no name for a service: it must be {}", crate::config::reference::SERVICE)
            }
            Self::Address(error) => error.fmt(f),
            Self::Listen(error) => {
                write!(f, "cannot listen on {error}. Is this replica running already, or another program there?")
            }
            Self::Log(error) => error.fmt(f),
            Self::Genesis(error) => error.fmt(f),
            Self::System(what, error) => write!(f, "{what}: {error}"),
            Self::Replica(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<UnknownHost> for Error {
    fn from(error: UnknownHost) -> Self {
        Self::Address(error)
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Self::Key(error)
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Self::Log(error)
    }
}

impl From<BackupError> for Error {
    fn from(error: BackupError) -> Self {
        Self::Genesis(error)
    }
}

impl From<ReplicaError> for Error {
    fn from(error: ReplicaError) -> Self {
        Self::Replica(error)
    }
}
