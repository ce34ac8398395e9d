//! The files that operators write: `cluster.toml`, the same everywhere, and `node.toml`, one replica's own.
//!
//! A file is used only if every key is known and every value is in range; an error names file and line and says what
//! was probably meant. [`mod@reference`] is the one table that all of this, and `docs/configuration.md`, comes from.

mod address;
mod cluster;
mod document;
mod fresh;
mod node;
mod place;
pub mod reference;
mod successor;
mod testnet;
#[cfg(test)]
mod tests;

pub use address::{Address, UnknownHost, resolve};
pub use bezant_core::schedule::Protocol;
pub use cluster::{BACKUP_PATIENCE, Channel, ClusterConfig, IdentityEntry, ReplicaEntry};
pub use fresh::TestnetError;
pub use node::{Durability, LogFormat, NodeConfig, PeerEntry};
pub use place::{Place, Places};
pub use reference::LimitSetting;
pub use successor::{Successor, successor};
pub use testnet::{Testnet, testnet};

use std::fmt;
use std::path::Path;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1; `None` if the file as a whole is meant.
    pub line: Option<usize>,
    /// What is wrong and, where that is known, what is right.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for ConfigError {}

/// Reads a file as text.
fn read(path: &Path) -> Result<(String, String), ConfigError> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((file, text)),
        Err(error) => Err(ConfigError { file, line: None, message: format!("cannot be read: {error}") }),
    }
}
