//! What a replica must find again after a crash: see the table in `docs/durability.md`.

use super::certificate::Stable;
use super::report::{AbortReport, ClaimedProof, ENTRIES_MAX as REPORT_ENTRIES_MAX};
use crate::auth::{Certificate, Claimed, Signed};
use crate::checkpoint::Snapshot;
use crate::digest::Digest;
use crate::history::{Boundary, LogEntry};
use crate::ids::InstanceId;
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;

/// What the instances of a composition must not forget: [`HistoryRecord`], and what their protocols add.
pub trait Recorded: From<HistoryRecord> + Wire + Debug {
    /// About how many bytes it takes in the log: exact for what is large, an allowance for the rest.
    fn log_bytes(&self) -> usize;
}

/// Bytes of a record besides what is large in it: headers, votes, and a request's proof.
pub const RECORD_ALLOWANCE: usize = 256;

/// One thing to make durable.
#[derive(Clone, Debug)]
pub enum Record<R> {
    /// Append to the log.
    Log(LogRecord<R>),
    /// Write a snapshot and start a new log segment with the records given.
    Snapshot(Box<SnapshotRecord<R>>),
}

/// What an instance of any protocol must not forget of its history. What else its protocol must not forget is in that
/// protocol's folder.
#[derive(Clone, Debug)]
pub enum HistoryRecord {
    /// A speculative instance has logged these next; nobody was told before.
    Logged(Vec<LogEntry>),
    /// The instance was opened, with this proof. What of its init history was not logged here before is in the
    /// `Bodies` before this record, or, in a Backup, after it.
    Opened(Arc<ClaimedProof>),
    /// Entries that other records name by their digests, a proof among them. They mean nothing by themselves: a crash
    /// may come between them and the record that needs them.
    Bodies(Vec<LogEntry>),
    /// All n replicas have this checkpoint of a speculative instance.
    Anchored(Boundary),
    /// The instance stopped here, and this was said about it.
    Stopped(Arc<Claimed<Signed<AbortReport>>>),
    /// The log begins with a snapshot of the anchor of this speculative instance.
    Begun(Begun),
    /// This replica lost its log, and may have spoken in any instance up to this one of a composition.
    Abstain(InstanceId),
    /// 2f+1 replicas of a resilient ring have signed this checkpoint.
    Stable(Claimed<Certificate<Stable>>),
    /// `Logged`, of entries whose `Bodies` take more than one record.
    Named(Vec<Digest>),
}

/// Where a log begins in the middle of a speculative instance.
#[derive(Clone, Debug)]
pub struct Begun {
    /// What the instance was opened with, if it is not the first.
    pub proof: Option<Arc<ClaimedProof>>,
    /// Where it began, and the digest of the history there: at the end of what the proof proves, unless this replica
    /// has gone on from a checkpoint of others, who had another proof.
    pub init: (u64, Digest),
    /// What is logged above the anchor. Its `Bodies` come before.
    pub above: Vec<Digest>,
}

impl Wire for Begun {
    fn encode(&self, out: &mut impl Sink) {
        self.proof.encode(out);
        self.init.encode(out);
        encode_list(&self.above, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let (proof, init) = (Wire::decode(reader)?, Wire::decode(reader)?);
        Ok(Self { proof, init, above: reader.list(REPORT_ENTRIES_MAX)? })
    }
}

impl Wire for HistoryRecord {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Logged(entries) => {
                out.push(2);
                encode_list(entries, out);
            }
            Self::Opened(proof) => {
                out.push(3);
                proof.encode(out);
            }
            Self::Bodies(entries) => {
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
            Self::Begun(begun) => {
                out.push(7);
                begun.encode(out);
            }
            Self::Abstain(until) => {
                out.push(8);
                until.encode(out);
            }
            Self::Stable(certificate) => {
                out.push(12);
                certificate.encode(out);
            }
            Self::Named(digests) => {
                out.push(14);
                encode_list(digests, out);
            }
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let tag = reader.tag()?;
        Self::decode_tagged(tag, reader)
    }
}

impl HistoryRecord {
    /// The record behind a tag that was read. Tags that are not its own are those of protocols.
    pub(crate) fn decode_tagged(tag: u8, reader: &mut Reader) -> Result<Self, WireError> {
        match tag {
            2 => Ok(Self::Logged(reader.list(REPORT_ENTRIES_MAX)?)),
            3 => Ok(Self::Opened(Wire::decode(reader)?)),
            4 => Ok(Self::Bodies(reader.list(REPORT_ENTRIES_MAX)?)),
            5 => Ok(Self::Anchored(Wire::decode(reader)?)),
            6 => Ok(Self::Stopped(Wire::decode(reader)?)),
            7 => Ok(Self::Begun(Wire::decode(reader)?)),
            8 => Ok(Self::Abstain(Wire::decode(reader)?)),
            12 => Ok(Self::Stable(Wire::decode(reader)?)),
            14 => Ok(Self::Named(reader.list(REPORT_ENTRIES_MAX)?)),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// Bytes of operations in one record of [bodies](HistoryRecord::Bodies), unless a single one has more. What hosts can
/// read back is several times that. In the tests here it is so little that a history of some entries takes several.
pub const BODIES_BYTES_MAX: usize = if cfg!(test) { 8 } else { 8 << 20 };

impl HistoryRecord {
    /// Entries in as many records as they need: as many entries as a history may have, of as many bytes as an operation
    /// may have, are more than any record holds.
    pub fn bodies(entries: Vec<LogEntry>) -> Vec<Self> {
        let (mut records, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
        for entry in entries {
            let size = entry.request.operation.len();
            if bytes + size > BODIES_BYTES_MAX && !part.is_empty() {
                records.push(Self::Bodies(core::mem::take(&mut part)));
                bytes = 0;
            }
            bytes += size;
            part.push(entry);
        }
        records.extend(Some(part).filter(|part| !part.is_empty()).map(Self::Bodies));
        records
    }

    /// What says that these entries are logged next, the last record of all.
    pub fn logged(entries: Vec<LogEntry>) -> Vec<Self> {
        let digests = || entries.iter().map(LogEntry::digest).collect();
        if entries.iter().map(|entry| entry.request.operation.len()).sum::<usize>() <= BODIES_BYTES_MAX {
            return alloc::vec![Self::Logged(entries)];
        }
        let named = Self::Named(digests());
        let mut records = Self::bodies(entries);
        assert!(!records.is_empty(), "bodies are written before what names them");
        records.push(named);
        records
    }
}

impl HistoryRecord {
    /// See [`Recorded::log_bytes`].
    pub fn log_bytes(&self) -> usize {
        let of_proof = |proof: &ClaimedProof| -> usize {
            proof.reports.iter().map(|report| 32 * report.claims().digests.len()).sum()
        };
        match self {
            Self::Logged(entries) | Self::Bodies(entries) => {
                entries.iter().map(|entry| RECORD_ALLOWANCE + entry.request.operation.len()).sum()
            }
            Self::Opened(proof) => RECORD_ALLOWANCE + of_proof(proof),
            Self::Begun(Begun { proof, above, .. }) => {
                RECORD_ALLOWANCE + proof.as_ref().map_or(0, |proof| of_proof(proof)) + 32 * above.len()
            }
            Self::Named(digests) => RECORD_ALLOWANCE + 32 * digests.len(),
            Self::Stopped(report) => RECORD_ALLOWANCE + 32 * report.claims().digests.len(),
            Self::Stable(_) | Self::Anchored(_) | Self::Abstain(_) => RECORD_ALLOWANCE,
        }
    }
}

/// An entry of the log, with its wire encoding.
#[derive(Clone, Debug)]
pub struct LogRecord<R> {
    /// The instance that wrote it.
    pub instance: InstanceId,
    /// What must not be forgotten.
    pub record: R,
}

impl<R: Wire> Wire for LogRecord<R> {
    fn encode(&self, out: &mut impl Sink) {
        self.instance.encode(out);
        self.record.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { instance: Wire::decode(reader)?, record: Wire::decode(reader)? })
    }
}

/// A snapshot with everything above it that is still needed.
///
/// The host begins a new log segment with `live`, writes the snapshot, and deletes older segments once both are
/// durable. If it crashes in between, the older snapshot, the older segments and the new one tell the same story.
#[derive(Clone, Debug)]
pub struct SnapshotRecord<R> {
    /// The state.
    pub snapshot: Snapshot,
    /// What recreates the replica above the snapshot; equal to what earlier segments say.
    pub live: Vec<LogRecord<R>>,
    /// Whether the state came from others: then nothing may leave before it is durable. Otherwise the host writes it
    /// in the background.
    pub transferred: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ClientId, Timestamp};
    use crate::message::Request;
    use crate::service::Proposal;

    fn entries(sizes: &[usize]) -> Vec<LogEntry> {
        let request = |(number, size): (u64, &usize)| {
            let operation = bytes::Bytes::from(alloc::vec![7; *size]);
            Request::new(InstanceId(1), ClientId::default(), Timestamp(number), false, operation)
        };
        (1..).zip(sizes).map(request).map(|request| LogEntry::new(Proposal::default(), request)).collect()
    }

    fn digests(entries: &[LogEntry]) -> Vec<Digest> {
        entries.iter().map(LogEntry::digest).collect()
    }

    #[test]
    fn no_record_of_bodies_is_too_long_and_none_is_left_out() {
        let bytes = |entries: &[LogEntry]| -> usize { entries.iter().map(|entry| entry.request.operation.len()).sum() };
        for sizes in [&[3, 3, 3, 3, 3][..], &[9, 1, 1], &[8, 8], &[1, 20, 1], &[0, 0], &[]] {
            let all = entries(sizes);
            let mut found = Vec::new();
            for record in HistoryRecord::bodies(all.clone()) {
                let HistoryRecord::Bodies(part) = record else { panic!("bodies") };
                assert!(bytes(&part) <= BODIES_BYTES_MAX || part.len() == 1, "{sizes:?}");
                assert!(!part.is_empty());
                found.extend(digests(&part));
            }
            assert_eq!(found, digests(&all), "{sizes:?}");
        }
    }

    #[test]
    fn what_is_logged_takes_one_record_unless_it_is_too_long() {
        let [HistoryRecord::Logged(few)] = &HistoryRecord::logged(entries(&[4, 4]))[..] else { panic!("one record") };
        assert_eq!(few.len(), 2);
        let many = entries(&[4, 4, 4]);
        let records = HistoryRecord::logged(many.clone());
        let Some((HistoryRecord::Named(named), bodies)) = records.split_last() else { panic!("the last one counts") };
        assert_eq!((named, bodies.len()), (&digests(&many), 2));
    }
}
