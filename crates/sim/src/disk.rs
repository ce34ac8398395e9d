//! A replica's disk: what it was asked to write, what a sync has made durable, and what a crash leaves.
//!
//! Log records are synced in groups: one sync covers everything written before it began. A snapshot opens a new log
//! segment; the older segments go once snapshot and segment are both durable. A crash keeps a prefix, possibly empty,
//! of what was written and not yet synced: a torn tail is what the host's checksums cut off.
//!
//! Worse can happen. A durable record may rot: the host's checksums find it when the log is read, and its marks tell it
//! from a torn tail, so that the log is refused as a whole. A lost or refused log is replaced by an empty one, which
//! remembers why it is new until the replica has written down from where on it may vote. A sync may fail, which the
//! host takes for a crash. And a disk may be put back to an earlier copy of itself, which no replica can see.

use crate::rng::Rng;
use bezant_core::checkpoint::Snapshot;
use bezant_core::registry::{LogRecord, Record, SnapshotRecord};
use std::collections::VecDeque;

/// How long the disk takes, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskProfile {
    /// Shortest sync.
    pub sync_min: u64,
    /// Longest sync.
    pub sync_max: u64,
    /// A snapshot written in the background.
    pub snapshot: u64,
}

/// What recovery reads.
#[derive(Debug, Default)]
pub struct Stored {
    /// The last snapshot that was complete.
    pub snapshot: Option<Snapshot>,
    /// All records of the segments that are left, oldest first.
    pub log: Vec<LogRecord>,
    /// An earlier log was lost, and the replica has not written down yet from where on it may vote.
    pub lost_log: bool,
}

/// A record that was durable cannot be read any more: there is no telling what this replica has promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

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

#[derive(Clone, Debug, Default)]
struct Segment {
    number: u64,
    records: Vec<LogRecord>,
    /// One of its records cannot be read any more.
    rotten: bool,
}

/// What is durable.
#[derive(Clone, Debug, Default)]
struct Content {
    snapshot: Option<Snapshot>,
    /// By ascending number.
    segments: Vec<Segment>,
    /// See [`Stored::lost_log`].
    lost_log: bool,
}

/// See the [module](self). The default is an empty disk.
#[derive(Debug, Default)]
pub struct Disk {
    content: Content,
    /// The content as it was some time ago.
    copy: Content,
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
    /// Takes a record. When [`Disk::durable`] has reached what [`Disk::written`] then says, it is durable; a snapshot
    /// of the replica's own state may still be on its way.
    pub fn write(&mut self, record: Record) {
        match record {
            Record::Log(record) => self.push(Write::Record(record)),
            Record::Snapshot(record) => self.write_snapshot(*record),
        }
    }

    fn push(&mut self, write: Write) {
        self.buffered.push_back(write);
        self.written += 1;
    }

    fn write_snapshot(&mut self, record: SnapshotRecord) {
        self.segment_last += 1;
        let segment = self.segment_last;
        self.push(Write::Segment(segment));
        record.live.into_iter().for_each(|live| self.push(Write::Record(live)));
        if record.transferred {
            return self.push(Write::Snapshot(segment, record.snapshot));
        }
        let mark = self.written;
        self.background.push_back(Background { segment, mark, snapshot: record.snapshot, written: false });
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
                Write::Segment(number) => self.content.segments.push(Segment { number, ..Segment::default() }),
                Write::Record(record) => self.content.append(record),
                Write::Snapshot(segment, snapshot) => self.content.install(segment, snapshot),
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
            if self.content.first() < ready.segment {
                self.content.install(ready.segment, ready.snapshot);
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

    /// All is gone, or was moved away because it could not be read.
    pub fn lose(&mut self) {
        self.content = Content { lost_log: true, ..Content::default() };
    }

    /// A durable record, any, becomes unreadable. Nobody notices before the log is read. `false` if there is none.
    pub fn rot(&mut self, rng: &mut Rng) -> bool {
        let mut filled: Vec<&mut Segment> =
            self.content.segments.iter_mut().filter(|segment| !segment.records.is_empty()).collect();
        if filled.is_empty() {
            return false;
        }
        let chosen = rng.below(filled.len() as u64) as usize;
        filled[chosen].rotten = true;
        true
    }

    /// Keeps a copy of what is durable now, as a backup of the whole disk does.
    pub fn copy(&mut self) {
        self.copy = self.content.clone();
    }

    /// The disk is as it was when it was copied.
    pub fn put_back(&mut self) {
        self.content = self.copy.clone();
    }

    /// What a restart finds.
    ///
    /// # Errors
    /// [`Unreadable`]: the log is not whole.
    pub fn stored(&self) -> Result<Stored, Unreadable> {
        let Content { snapshot, segments, lost_log } = &self.content;
        if segments.iter().any(|segment| segment.rotten) {
            return Err(Unreadable);
        }
        let log = segments.iter().flat_map(|segment| segment.records.iter().cloned()).collect();
        Ok(Stored { snapshot: snapshot.clone(), log, lost_log: *lost_log })
    }
}

impl Content {
    fn append(&mut self, record: LogRecord) {
        // From now on the log itself says why its replica may not vote everywhere.
        self.lost_log &= !record.record.abstains();
        if self.segments.is_empty() {
            self.segments.push(Segment::default());
        }
        let last = self.segments.last_mut().expect("a segment was pushed if there was none");
        last.records.push(record);
    }

    /// The number of the oldest segment that is kept.
    fn first(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.number)
    }

    /// A snapshot, with the segments from this number on, replaces everything older.
    fn install(&mut self, segment: u64, snapshot: Snapshot) {
        self.snapshot = Some(snapshot);
        self.segments.retain(|kept| kept.number >= segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::ids::{InstanceId, Sequence, View};
    use bezant_core::protocols::pbft::PbftRecord;
    use bezant_core::registry::InstanceRecord;

    fn record(n: u64) -> Record {
        Record::Log(LogRecord {
            instance: InstanceId(1),
            record: InstanceRecord::Pbft(PbftRecord::Abstain(Some((View(0), Sequence(n))))),
        })
    }

    #[test]
    fn a_sync_covers_what_was_written_before_it_began() {
        let mut disk = Disk::default();
        disk.write(record(1));
        let first = disk.written();
        assert!(disk.start_sync());
        disk.write(record(2));
        let second = disk.written();
        assert!(!disk.start_sync(), "one at a time");
        disk.sync_done();
        assert!(disk.durable() >= first && disk.durable() < second);
        assert_eq!(disk.stored().unwrap().log.len(), 1);
    }

    fn synced(records: std::ops::Range<u64>, disk: &mut Disk) {
        for n in records {
            disk.write(record(n));
        }
        disk.start_sync();
        disk.sync_done();
    }

    #[test]
    fn rot_is_found_when_the_log_is_read() {
        let mut disk = Disk::default();
        let rng = &mut Rng::stream(1, "rot");
        assert!(!disk.rot(rng), "there is nothing yet");
        synced(1..3, &mut disk);
        assert!(disk.rot(rng));
        synced(3..4, &mut disk);
        assert_eq!(disk.stored().unwrap_err(), Unreadable);
        disk.lose();
        let stored = disk.stored().unwrap();
        assert!(stored.lost_log && stored.log.is_empty());
    }

    #[test]
    fn a_new_log_remembers_the_lost_one_until_the_replica_knows_where_to_vote() {
        let mut disk = Disk::default();
        disk.lose();
        disk.write(record(1));
        disk.start_sync();
        assert!(disk.stored().unwrap().lost_log);
        disk.sync_done();
        let stored = disk.stored().unwrap();
        assert!(!stored.lost_log && stored.log.len() == 1);
    }

    #[test]
    fn a_disk_that_is_put_back_forgets_what_came_after_the_copy() {
        let mut disk = Disk::default();
        synced(1..3, &mut disk);
        disk.copy();
        synced(3..6, &mut disk);
        assert_eq!(disk.stored().unwrap().log.len(), 5);
        disk.put_back();
        assert_eq!(disk.stored().unwrap().log.len(), 2);
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
            let kept = disk.stored().unwrap().log.len();
            assert!((1..=5).contains(&kept));
            assert_eq!(disk.durable(), disk.written());
        }
    }
}
