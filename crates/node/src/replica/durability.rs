//! What the replica's loop needs of a log: write before you speak, without ever waiting for a disk.

use bezant_core::registry::Record;
use std::fmt;
use std::sync::Arc;

/// Why records do not become durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stall {
    /// The disk is full. The log tries again by itself.
    Full(String),
    /// A write or an fsync failed. That is final: what is on the disk is unknown until the next start reads it.
    Broken(String),
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(what) | Self::Broken(what) => f.write_str(what),
        }
    }
}

/// Where a replica's records go.
///
/// The loop appends records as its machine makes them, asks once per pass for a sync, and holds back whatever may not
/// leave before `durable()` reaches the `position()` of that moment. All calls but [`Durability::close`] return at
/// once; writing and fsync happen elsewhere.
pub trait Durability: Send {
    /// Sets what is to be called, on any thread, whenever `durable` or `stall` has changed.
    fn set_wake(&mut self, wake: Arc<dyn Fn() + Send + Sync>);

    /// Takes a record. A snapshot that was made here (`transferred == false`) does not count in
    /// [`Durability::position`]: nobody waits for it.
    fn append(&mut self, record: &Record);

    /// Asks that everything appended so far becomes durable. While one sync runs the next group gathers.
    fn start_sync(&mut self);

    /// Records appended so far that somebody waits for.
    fn position(&self) -> u64;

    /// How many of them are durable.
    fn durable(&self) -> u64;

    /// What keeps `durable` from going on, if something does.
    fn stall(&self) -> Option<Stall>;

    /// Calls of fsync so far.
    fn syncs(&self) -> u64;

    /// Bytes of records written so far.
    fn bytes(&self) -> u64;

    /// Writes what was appended and ends.
    ///
    /// # Errors
    /// [`Stall`] if something could not be made durable.
    fn close(self: Box<Self>) -> Result<(), Stall>;
}

/// Durability `memory`: everything counts as durable at once and is gone with the process. For benchmarks.
#[derive(Debug, Default)]
pub struct MemoryLog {
    records: u64,
}

impl Durability for MemoryLog {
    fn set_wake(&mut self, _wake: Arc<dyn Fn() + Send + Sync>) {}

    fn append(&mut self, record: &Record) {
        self.records += u64::from(match record {
            Record::Log(_) => true,
            Record::Snapshot(snapshot) => snapshot.transferred,
        });
    }

    fn start_sync(&mut self) {}

    fn position(&self) -> u64 {
        self.records
    }

    fn durable(&self) -> u64 {
        self.records
    }

    fn stall(&self) -> Option<Stall> {
        None
    }

    fn syncs(&self) -> u64 {
        0
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn close(self: Box<Self>) -> Result<(), Stall> {
        Ok(())
    }
}
