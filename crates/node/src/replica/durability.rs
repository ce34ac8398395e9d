//! What the replica's loop needs of a log: write before you speak, without ever waiting for a disk.

use bezant_core::replica::{LogRecord, Record};
use std::sync::Arc;

/// How a log is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogHealth {
    /// Everything that was handed over will become durable.
    Working,
    /// The disk is full. Nothing more becomes durable until there is room; the log tries again by itself.
    Full(String),
    /// A write or an fsync failed. That is final: what is on the disk is unknown until the next start reads it.
    Failed(String),
}

/// Where a replica's records go.
///
/// The loop appends records as its machine makes them, asks once per pass for a sync, and holds back whatever may not
/// leave before `durable() >= position()` of that moment. All calls return at once; writing and fsync happen elsewhere.
pub trait Log: Send {
    /// Takes a record. A snapshot that was made here (`transferred == false`) does not count in
    /// [`Log::position`]: nobody waits for it.
    fn append(&mut self, record: &Record);

    /// Records appended so far that somebody waits for.
    fn position(&self) -> u64;

    /// How many of them are known to be durable.
    fn durable(&self) -> u64;

    /// Asks that everything appended so far becomes durable. While one sync runs the next group gathers.
    fn start_sync(&mut self);

    /// How the log is doing.
    fn health(&self) -> LogHealth {
        LogHealth::Working
    }

    /// Syncs done so far.
    fn syncs(&self) -> u64 {
        0
    }

    /// Called once before the first append: `wake` is to be called, from any thread, whenever `durable` or `health`
    /// has changed.
    fn set_wake(&mut self, _wake: Arc<dyn Fn() + Send + Sync>) {}
}

/// Durability `memory`: everything counts as durable at once and is gone with the process. For benchmarks.
#[derive(Debug, Default)]
pub struct MemoryLog {
    records: u64,
}

impl Log for MemoryLog {
    fn append(&mut self, record: &Record) {
        if holds_back(record) {
            self.records += 1;
        }
    }

    fn position(&self) -> u64 {
        self.records
    }

    fn durable(&self) -> u64 {
        self.records
    }

    fn start_sync(&mut self) {}
}

/// Whether nothing may leave before this record is durable.
pub fn holds_back(record: &Record) -> bool {
    match record {
        Record::Log(LogRecord { .. }) => true,
        Record::Snapshot(snapshot) => snapshot.transferred,
    }
}
