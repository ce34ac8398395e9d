//! What a replica must find again after a crash: see the table in `docs/durability.md`.

use crate::checkpoint::Snapshot;
use crate::cluster::InstanceId;
use crate::protocols::pbft::PbftRecord;
use crate::wire_struct;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// One thing to make durable.
#[derive(Clone, Debug)]
pub enum Record {
    /// Append to the log.
    Log(LogRecord),
    /// Write a snapshot and start a new log segment with the records given.
    Snapshot(Box<SnapshotRecord>),
}

/// An entry of the log, with its wire encoding.
#[derive(Clone, Debug)]
pub struct LogRecord {
    /// The instance that wrote it.
    pub instance: InstanceId,
    /// What PBFT must not forget.
    pub record: PbftRecord,
}
wire_struct!(LogRecord { instance, record });

impl LogRecord {
    /// About how many bytes it takes in the log: exact for what is large, an allowance for the rest.
    pub fn encoded_length(&self) -> usize {
        /// Headers, votes, and a request's proof.
        const ALLOWANCE: usize = 256;
        match &self.record {
            PbftRecord::Accepted(pre_prepare) => {
                ALLOWANCE * (1 + pre_prepare.batch.entries.len()) + pre_prepare.batch.inline_bytes()
            }
            PbftRecord::Body(request) => ALLOWANCE + request.operation.len(),
            _ => ALLOWANCE,
        }
    }
}

/// A snapshot with everything above it that is still needed.
///
/// The host begins a new log segment with `live`, writes the snapshot, and deletes older segments once both are
/// durable. If it crashes in between, the older snapshot, the older segments and the new one tell the same story.
#[derive(Clone, Debug)]
pub struct SnapshotRecord {
    /// The state.
    pub snapshot: Snapshot,
    /// What recreates the replica above the snapshot; equal to what earlier segments say.
    pub live: Vec<LogRecord>,
    /// Whether the state came from others: then nothing may leave before it is durable. Otherwise the host writes it
    /// in the background.
    pub transferred: bool,
}
