//! Why the tables of a state cannot be read.

use std::fmt;

/// Why a state has no tables to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// It is the state of another service, such as keys and values only.
    NoTables,
    /// SQLite does not take the pages.
    Unreadable(String),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTables => out.write_str("there are no SQL tables in this state: the cluster runs another service"),
            Self::Unreadable(why) => write!(out, "SQLite cannot read the tables of this state: {why}"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<rusqlite::Error> for SnapshotError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}
