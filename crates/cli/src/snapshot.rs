//! Reads at the level `snapshot`: from the last certified checkpoint, which is fetched from whoever has it and proved
//! by its signatures. No replica executes anything for them, and between two checkpoints none is asked for a page.

use bezant_core::checkpoint::{Checkpoint, Tree};
use bezant_core::service::NotReadOnly;
use bezant_node::config::ClusterConfig;
use bezant_node::fetch::{self, FetchError, Source};
use bezant_sql::{Request, Response, Snapshot, SnapshotError};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The request is not one for a checkpoint: it writes, or asks for the time or for something random.
    NotReadOnly,
    /// There is no checkpoint, or nobody gives it.
    Fetch(FetchError),
    /// It has no tables.
    Tables(SnapshotError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReadOnly => f.write_str("not a read of the state alone"),
            Self::Fetch(error) => error.fmt(f),
            Self::Tables(error) => error.fmt(f),
        }
    }
}

/// What was read last.
#[derive(Debug)]
struct Held {
    checkpoint: Checkpoint,
    tree: Tree,
    tables: Snapshot,
}

/// The newest checkpoint, kept until there is a newer one.
#[derive(Debug)]
pub(crate) struct Snapshots {
    config: ClusterConfig,
    sources: Vec<Source>,
    held: Mutex<Option<Held>>,
}

impl Snapshots {
    pub(crate) const fn new(config: ClusterConfig, sources: Vec<Source>) -> Self {
        Self { config, sources, held: Mutex::new(None) }
    }

    /// Answers a request from the newest checkpoint that the replicas show.
    pub(crate) fn query(&self, request: &Request) -> Result<Response, ReadError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let here = held.as_ref().map(|held| (&held.checkpoint, &held.tree));
        if let Some(read) = fetch::fetch_newer(&self.config, &self.sources, here).map_err(ReadError::Fetch)? {
            let tables = Snapshot::open(&read.tree).map_err(ReadError::Tables)?;
            *held = Some(Held { checkpoint: *read.evidence.checkpoint(), tree: read.tree, tables });
        }
        let held = held.as_ref().expect("there is one now");
        held.tables.query(request).map_err(|NotReadOnly| ReadError::NotReadOnly)
    }
}
