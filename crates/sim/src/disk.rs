//! A replica's disk: what it was asked to write, what a sync has made durable, and what a crash leaves.
//!
//! Log records are synced in groups: one sync covers everything written before it began. A snapshot opens a new log
//! segment; the older segments go once snapshot and segment are both durable. A crash keeps a prefix, possibly empty,
//! of what was written and not yet synced: a torn tail is what the host's checksums cut off.

use crate::rng::Rng;
use bezant_core::checkpoint::Snapshot;
use bezant_core::replica::{LogRecord, Record, SnapshotRecord};
use std::collections::VecDeque;

/// What recovery reads.
#[derive(Debug, Default)]
pub struct Stored {
    /// The last snapshot that was complete.
    pub snapshot: Option<Snapshot>,
    /// All records of the segments that are left, oldest first.
    pub log: Vec<LogRecord>,
}

#[derive(Debug)]
enum Write {
    Record(LogRecord),
    /// A new segment begins.
    Segment(u64),
    /// A transferred snapshot: part of the sync, because the host must wait for it.
    Snapshot(u64, Snapshot),
}

/// A snapshot that is written beside the log, without anybody waiting for it.
#[derive(Debug)]
struct Background {
    segment: u64,
    /// The write after which its segment is complete.
    mark: u64,
    snapshot: Snapshot,
    written: bool,
}

/// See the [module](self). The default is an empty disk.
#[derive(Debug, Default)]
pub struct Disk {
    snapshot: Option<Snapshot>,
    /// Durable segments by ascending number.
    segments: Vec<(u64, Vec<LogRecord>)>,
    segment_last: u64,
    buffered: VecDeque<Write>,
    /// How many of `buffered` the running sync covers; 0 if none runs.
    syncing: usize,
    /// Writes so far, and how many of them are durable.
    written: u64,
    durable: u64,
    background: VecDeque<Background>,
}

impl Disk {
    /// Takes a record. Returns the mark that [`Disk::durable`] must reach before anything later leaves, if any.
    pub fn write(&mut self, record: Record) -> Option<u64> {
        match record {
            Record::Log(record) => Some(self.push(Write::Record(record))),
            Record::Snapshot(record) => self.write_snapshot(*record),
        }
    }

    fn push(&mut self, write: Write) -> u64 {
        self.buffered.push_back(write);
        self.written += 1;
        self.written
    }

    fn write_snapshot(&mut self, record: SnapshotRecord) -> Option<u64> {
        self.segment_last += 1;
        let segment = self.segment_last;
        let mut mark = self.push(Write::Segment(segment));
        for live in record.live {
            mark = self.push(Write::Record(live));
        }
        if record.transferred {
            return Some(self.push(Write::Snapshot(segment, record.snapshot)));
        }
        self.background.push_back(Background { segment, mark, snapshot: record.snapshot, written: false });
        None
    }

    /// Starts a sync of everything written so far. `false` if there is nothing to sync or one is running.
    pub fn start_sync(&mut self) -> bool {
        if self.syncing > 0 || self.buffered.is_empty() {
            return false;
        }
        self.syncing = self.buffered.len();
        true
    }

    /// The running sync is complete.
    pub fn sync_done(&mut self) {
        self.make_durable(self.syncing);
        self.syncing = 0;
        self.install_background();
    }

    fn make_durable(&mut self, count: usize) {
        for write in self.buffered.drain(..count) {
            self.durable += 1;
            match write {
                Write::Segment(segment) => self.segments.push((segment, Vec::new())),
                Write::Record(record) => {
                    if self.segments.is_empty() {
                        self.segments.push((0, Vec::new()));
                    }
                    let (_, records) = self.segments.last_mut().expect("a segment was pushed if there was none");
                    records.push(record);
                }
                Write::Snapshot(segment, snapshot) => {
                    self.snapshot = Some(snapshot);
                    self.segments.retain(|(number, _)| *number >= segment);
                }
            }
        }
    }

    /// Whether a snapshot is being written beside the log.
    pub fn writes_snapshot(&self) -> bool {
        self.background.iter().any(|background| !background.written)
    }

    /// The oldest background snapshot is on disk.
    pub fn snapshot_done(&mut self) {
        if let Some(background) = self.background.iter_mut().find(|background| !background.written) {
            background.written = true;
        }
        self.install_background();
    }

    /// Installs background snapshots whose segment is durable too, and drops the segments that they replace.
    fn install_background(&mut self) {
        while let Some(first) = self.background.front()
            && first.written
            && first.mark <= self.durable
            && let Some(ready) = self.background.pop_front()
        {
            // A transferred snapshot may have overtaken it.
            if self.snapshot.as_ref().is_none_or(|newest| newest.sequence() < ready.snapshot.sequence()) {
                self.snapshot = Some(ready.snapshot);
                self.segments.retain(|(number, _)| *number >= ready.segment);
            }
        }
    }

    /// Writes that are durable.
    pub const fn durable(&self) -> u64 {
        self.durable
    }

    /// Writes taken so far.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Power is gone: keeps a random prefix of what was not synced.
    pub fn crash(&mut self, rng: &mut Rng) {
        // Mostly nothing or everything: the two ends are where mistakes show.
        let kept = match rng.below(3) {
            0 => 0,
            1 => self.buffered.len(),
            _ => rng.below(self.buffered.len() as u64 + 1) as usize,
        };
        self.make_durable(kept);
        self.buffered.clear();
        self.background.clear();
        self.syncing = 0;
        self.written = self.durable;
    }

    /// What a restart finds.
    pub fn stored(&self) -> Stored {
        let log = self.segments.iter().flat_map(|(_, records)| records.iter().cloned()).collect();
        Stored { snapshot: self.snapshot.clone(), log }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::cluster::{InstanceId, Sequence, View};
    use bezant_core::protocols::pbft::PbftRecord;
    use bezant_core::replica::InstanceRecord;

    fn record(n: u64) -> Record {
        Record::Log(LogRecord {
            instance: InstanceId(1),
            record: InstanceRecord::Pbft(PbftRecord::Abstain((View(0), Sequence(n)))),
        })
    }

    #[test]
    fn a_sync_covers_what_was_written_before_it_began() {
        let mut disk = Disk::default();
        let first = disk.write(record(1)).unwrap();
        assert!(disk.start_sync());
        let second = disk.write(record(2)).unwrap();
        assert!(!disk.start_sync(), "one at a time");
        disk.sync_done();
        assert!(disk.durable() >= first && disk.durable() < second);
        assert_eq!(disk.stored().log.len(), 1);
    }

    #[test]
    fn a_crash_keeps_a_prefix() {
        for seed in 0..50 {
            let mut disk = Disk::default();
            disk.write(record(1));
            disk.start_sync();
            disk.sync_done();
            for n in 2..6 {
                disk.write(record(n));
            }
            disk.crash(&mut Rng::stream(seed, "crash"));
            let kept = disk.stored().log.len();
            assert!((1..=5).contains(&kept));
            assert_eq!(disk.durable(), disk.written());
        }
    }
}
