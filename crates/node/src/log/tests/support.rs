//! What the tests share: throw-away directories, records that can be told apart, a disk that fails on demand.

use super::super::disk::{Disk, DiskFile, RealDisk};
use super::super::*;
use bezant_core::checkpoint::{Checkpoint, Evidence, Snapshot, Tree};
use bezant_core::digest::Digest;
use bezant_core::ids::{ClientId, InstanceId, ReplicaId, Sequence, Timestamp, View};
use bezant_core::message::Request;
use bezant_core::protocols::pbft::{PbftRecord, Vote};
use bezant_core::registry::InstanceRecord;
use bytes::Bytes;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn identity() -> Identity {
    Identity { cluster: Digest([7; 32]), replica: ReplicaId(2) }
}

/// A directory of its own, deleted at the end.
#[derive(Debug)]
pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) fn empty() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("bezant-log-test-{}-{number}", std::process::id())))
    }

    pub(super) fn initialised() -> Self {
        let directory = Self::empty();
        initialise(&directory.0, &identity(), &directory.options()).unwrap();
        directory
    }

    /// A copy as it is now; `files` replace those of the same name.
    pub(super) fn copy(&self, files: &[(&str, Vec<u8>)]) -> Self {
        let copy = Self::empty();
        copy_directory(&self.0, &copy.0);
        for (name, content) in files {
            copy.write(name, content);
        }
        copy
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Small segments, so that files are quick to copy.
    pub(super) fn options(&self) -> Options {
        Options { allocation_bytes: 256, reserve_bytes: 4096, ..Options::default() }
    }

    pub(super) fn open(&self) -> Result<Recovered, OpenError> {
        open(&self.0, &identity(), &self.options())
    }

    pub(super) fn open_with(&self, disk: Arc<dyn Disk>) -> Result<Recovered, OpenError> {
        open(&self.0, &identity(), &Options { disk, ..self.options() })
    }

    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    pub(super) fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.0.join(name), content).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copy = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_directory(&path, &copy);
        } else {
            std::fs::copy(&path, copy).unwrap();
        }
    }
}

pub(super) fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// Numbers that look random and are the same every time (xorshift).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn log_record(record: PbftRecord) -> LogRecord {
    LogRecord { instance: InstanceId(1), record: InstanceRecord::Pbft(record) }
}

pub(super) fn record(number: u64) -> LogRecord {
    log_record(PbftRecord::Prepared(Vote { view: View(1), sequence: Sequence(number), digest: Digest([3; 32]) }))
}

pub(super) fn big_record(bytes: usize) -> LogRecord {
    let operation: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
    let request = Request::new(InstanceId(1), ClientId::default(), Timestamp(4), false, Bytes::from(operation));
    log_record(PbftRecord::Body(Box::new(request)))
}

pub(super) fn abstain_record() -> LogRecord {
    log_record(PbftRecord::Abstain(Some((View(3), Sequence(9)))))
}

pub(super) fn numbers(records: &[LogRecord]) -> Vec<u64> {
    let number = |record: &LogRecord| match &record.record {
        InstanceRecord::Pbft(PbftRecord::Prepared(vote)) => Some(vote.sequence.0),
        _ => None,
    };
    records.iter().filter_map(number).collect()
}

/// Appends records with these numbers as one group.
pub(super) fn append(log: &mut Log, range: RangeInclusive<u64>) {
    for number in range {
        log.append(&Record::Log(record(number)));
    }
    log.start_sync();
}

/// The state after batch `sequence`: a few pages that tell it apart from others.
pub(super) fn tree(sequence: u64) -> Tree {
    let mut tree = Tree::new();
    let page = |number: u32| Bytes::from(format!("page {number} of {sequence}").repeat(20));
    tree.load_pages([1, 2, 70, 5000].map(|number| (number, page(number))));
    tree.seal();
    tree
}

pub(super) fn snapshot_record(sequence: u64, live: RangeInclusive<u64>, transferred: bool) -> Record {
    let tree = tree(sequence);
    let value =
        Checkpoint { instance: InstanceId(1), sequence: Sequence(sequence), ruled: Sequence(0), root: tree.root() };
    let snapshot = Snapshot { evidence: Evidence::Own(value), tree };
    Record::Snapshot(Box::new(SnapshotRecord { snapshot, live: live.map(record).collect(), transferred }))
}

pub(super) fn wait_until(condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "waited for too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(super) fn wait_durable(log: &Log, position: u64) {
    wait_until(|| log.durable() >= position || matches!(log.stall(), Some(Stall::Broken(_))));
    assert!(log.durable() >= position, "{:?}", log.stall());
}

type Hook = Box<dyn Fn() + Send + Sync>;

/// The file system with faults that can be switched on, and a hook that sees every step.
#[derive(Default)]
pub(super) struct FaultyDisk {
    switches: Arc<Switches>,
}

#[derive(Default)]
pub(super) struct Switches {
    /// Reservations fail and writes are cut short, then fail, for want of space.
    pub(super) full: AtomicBool,
    /// Syncs fail, and lose nothing: the log must not look whether they did.
    pub(super) sync_fails: AtomicBool,
    /// Syncs do nothing: quick, where a copy of a directory stands for what a crash left.
    pub(super) syncs_skipped: AtomicBool,
    /// Writes fail.
    pub(super) write_fails: AtomicBool,
    /// The most that one write takes; 0: all.
    pub(super) write_bytes_max: AtomicUsize,
    /// Snapshots cannot be created: "no space".
    snapshots_blocked: AtomicBool,
    /// Bytes written to files.
    pub(super) written: AtomicUsize,
    /// Called before every change, by one thread at a time.
    pub(super) before: Mutex<Option<Hook>>,
}

impl FaultyDisk {
    pub(super) fn without_syncs() -> Arc<Self> {
        let disk = Self::default();
        disk.switches.syncs_skipped.store(true, Ordering::SeqCst);
        Arc::new(disk)
    }

    pub(super) fn switches(&self) -> &Switches {
        &self.switches
    }

    pub(super) fn block_snapshots(&self, blocked: bool) {
        self.switches.snapshots_blocked.store(blocked, Ordering::SeqCst);
    }
}

impl Switches {
    fn step(&self) {
        if let Some(hook) = &*self.before.lock().unwrap() {
            hook();
        }
    }

    fn is(&self, switch: &AtomicBool, kind: io::ErrorKind) -> io::Result<()> {
        if switch.load(Ordering::SeqCst) { Err(kind.into()) } else { Ok(()) }
    }
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyDisk")
    }
}

struct FaultyFile(Box<dyn DiskFile>, Arc<Switches>);

impl fmt::Debug for FaultyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyFile")
    }
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.switches.step();
        if path.file_name().unwrap().to_str().unwrap().starts_with("snapshot-") {
            self.switches.is(&self.switches.snapshots_blocked, io::ErrorKind::StorageFull)?;
        }
        Ok(Box::new(FaultyFile(RealDisk.create(path)?, Arc::clone(&self.switches))))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(FaultyFile(RealDisk.open(path)?, Arc::clone(&self.switches))))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.switches.step();
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.switches.step();
        if path.ends_with("reserve") {
            self.switches.full.store(false, Ordering::SeqCst);
        }
        RealDisk.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.switches.step();
        if self.switches.syncs_skipped.load(Ordering::SeqCst) { Ok(()) } else { RealDisk.sync_directory(path) }
    }
}

impl DiskFile for FaultyFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let switches = &self.1;
        switches.step();
        switches.is(&switches.write_fails, io::ErrorKind::Other)?;
        let max = switches.write_bytes_max.load(Ordering::SeqCst);
        let max = if max == 0 { bytes.len() } else { bytes.len().min(max) };
        if switches.full.load(Ordering::SeqCst) {
            // A disk that fills up takes a part first.
            return if offset.is_multiple_of(2) { self.0.write_at(&bytes[..1], offset) } else { Err(full()) };
        }
        switches.written.fetch_add(max, Ordering::SeqCst);
        self.0.write_at(&bytes[..max], offset)
    }

    fn allocate(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.1.step();
        self.1.is(&self.1.full, io::ErrorKind::StorageFull)?;
        self.0.allocate(offset, bytes)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.0.truncate(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.step();
        self.1.is(&self.1.sync_fails, io::ErrorKind::Other)?;
        if self.1.syncs_skipped.load(Ordering::SeqCst) { Ok(()) } else { self.0.sync() }
    }
}

fn full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}
