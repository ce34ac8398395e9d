//! What a replica must find again after a crash: see the table in `docs/durability.md`.

use crate::auth::{Certificate, Signed};
use crate::checkpoint::Snapshot;
use crate::cluster::InstanceId;
use crate::history::{Boundary, LogEntry};
use crate::protocols::batch::Batch;
use crate::protocols::pbft::PbftRecord;
use crate::switching::certificate::{Prepared, Stable};
use crate::switching::report::ENTRIES_MAX as REPORT_ENTRIES_MAX;
use crate::switching::{AbortReport, Proof};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::wire_struct;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// One thing to make durable.
#[derive(Clone, Debug)]
pub enum Record {
    /// Append to the log.
    Log(LogRecord),
    /// Write a snapshot and start a new log segment with the records given.
    Snapshot(Box<SnapshotRecord>),
}

/// What an instance must not forget.
#[derive(Clone, Debug)]
pub enum InstanceRecord {
    /// Of PBFT.
    Pbft(PbftRecord),
    /// A speculative instance has logged these next; nobody was told before.
    Logged(Vec<LogEntry>),
    /// The instance was opened, with this proof; these entries of its init history were not logged here before.
    Opened((Arc<Proof>, Vec<LogEntry>)),
    /// A Backup has begun; these entries of its init history were not logged here before.
    Inherited(Vec<LogEntry>),
    /// All n replicas have this checkpoint of a speculative instance.
    Anchored(Boundary),
    /// The instance stopped here, and this was said about it.
    Stopped(Arc<Signed<AbortReport>>),
    /// The log begins with a snapshot of the anchor of this speculative instance, which was opened with this proof if
    /// it is not the first; these entries are above it.
    Begun((Option<Arc<Proof>>, Vec<LogEntry>)),
    /// This replica lost its log, and may have spoken in any instance up to this one of a composition.
    Abstain(InstanceId),
    /// A resilient ring holds this certificate for what it has logged.
    Prepared(Certificate<Prepared>),
    /// 2f+1 replicas of a resilient ring have signed this checkpoint.
    Stable(Certificate<Stable>),
    /// In a resilient ring everything up to this position is committed. Nothing waits for it.
    Committed(u64),
}

impl Wire for InstanceRecord {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Pbft(record) => {
                out.push(1);
                record.encode(out);
            }
            Self::Logged(entries) => {
                out.push(2);
                encode_list(entries, out);
            }
            Self::Opened((proof, entries)) => {
                out.push(3);
                proof.encode(out);
                encode_list(entries, out);
            }
            Self::Inherited(entries) => {
                out.push(4);
                encode_list(entries, out);
            }
            Self::Anchored(boundary) => {
                out.push(5);
                boundary.encode(out);
            }
            Self::Stopped(report) => {
                out.push(6);
                report.encode(out);
            }
            Self::Begun((proof, entries)) => {
                out.push(7);
                proof.encode(out);
                encode_list(entries, out);
            }
            Self::Abstain(until) => {
                out.push(8);
                until.encode(out);
            }
            Self::Prepared(certificate) => {
                out.push(11);
                certificate.encode(out);
            }
            Self::Stable(certificate) => {
                out.push(12);
                certificate.encode(out);
            }
            Self::Committed(position) => {
                out.push(13);
                position.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            1 => Ok(Self::Pbft(Wire::decode(reader)?)),
            2 => Ok(Self::Logged(reader.list(REPORT_ENTRIES_MAX)?)),
            3 => Ok(Self::Opened((Wire::decode(reader)?, reader.list(REPORT_ENTRIES_MAX)?))),
            4 => Ok(Self::Inherited(reader.list(REPORT_ENTRIES_MAX)?)),
            5 => Ok(Self::Anchored(Wire::decode(reader)?)),
            6 => Ok(Self::Stopped(Wire::decode(reader)?)),
            7 => Ok(Self::Begun((Wire::decode(reader)?, reader.list(REPORT_ENTRIES_MAX)?))),
            8 => Ok(Self::Abstain(Wire::decode(reader)?)),
            11 => Ok(Self::Prepared(Wire::decode(reader)?)),
            12 => Ok(Self::Stable(Wire::decode(reader)?)),
            13 => Ok(Self::Committed(Wire::decode(reader)?)),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// An entry of the log, with its wire encoding.
#[derive(Clone, Debug)]
pub struct LogRecord {
    /// The instance that wrote it.
    pub instance: InstanceId,
    /// What must not be forgotten.
    pub record: InstanceRecord,
}
wire_struct!(LogRecord { instance, record });

impl LogRecord {
    /// About how many bytes it takes in the log: exact for what is large, an allowance for the rest.
    pub fn encoded_length(&self) -> usize {
        /// Headers, votes, and a request's proof.
        const ALLOWANCE: usize = 256;
        let of_entries = |entries: &[LogEntry]| -> usize {
            entries.iter().map(|entry| ALLOWANCE + entry.request.operation.len()).sum()
        };
        let of_batch = |batch: &Batch| ALLOWANCE * (1 + batch.entries.len()) + batch.inline_bytes();
        let of_proof =
            |proof: &Proof| -> usize { proof.reports.iter().map(|report| 32 * report.value.digests.len()).sum() };
        match &self.record {
            InstanceRecord::Pbft(PbftRecord::Accepted(pre_prepare)) => of_batch(&pre_prepare.batch),
            InstanceRecord::Pbft(PbftRecord::Fetched((_, batch))) => of_batch(batch),
            InstanceRecord::Pbft(PbftRecord::Body(request)) => ALLOWANCE + request.operation.len(),
            InstanceRecord::Logged(entries) | InstanceRecord::Inherited(entries) => of_entries(entries),
            InstanceRecord::Opened((proof, entries)) => ALLOWANCE + of_proof(proof) + of_entries(entries),
            InstanceRecord::Begun((proof, entries)) => {
                ALLOWANCE + proof.as_ref().map_or(0, |proof| of_proof(proof)) + of_entries(entries)
            }
            InstanceRecord::Stopped(report) => ALLOWANCE + 32 * report.value.digests.len(),
            InstanceRecord::Prepared(_) | InstanceRecord::Stable(_) | InstanceRecord::Committed(_) => ALLOWANCE,
            InstanceRecord::Pbft(_) | InstanceRecord::Anchored(_) | InstanceRecord::Abstain(_) => ALLOWANCE,
        }
    }

    /// Whether it says that its replica lost an earlier log. From then on the log itself remembers that.
    pub const fn abstains(&self) -> bool {
        matches!(self.record, InstanceRecord::Pbft(PbftRecord::Abstain(_)) | InstanceRecord::Abstain(_))
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
