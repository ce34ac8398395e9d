//! The write-ahead log: what a replica must find again after a crash, before it says anything that depends on it.
//!
//! | file | holds |
//! |---|---|
//! | `log-<number>.bin` | segments of records; each begins where a snapshot ends |
//! | `snapshot-<number>.bin` | the state where segment `<number>` begins, see [`crate::snapshot`] |
//! | `lock` | held by the process that uses the directory |
//! | `reserve` | space given back at shutdown when the disk is full |
//! | `replacing` | there while what is left of a lost log is set aside: nothing here is a log |
//!
//! The event loop appends and never waits. A thread writes everything that has gathered with one write and one
//! `fdatasync`, while the next group gathers; another thread writes snapshots. `docs/durability.md` says what must be
//! durable before what, and why a restart is safe.
//!
//! Three rules about failures:
//! * An fsync that failed is final. The kernel may have dropped the data, and asked again it would claim success.
//! * A full disk is not final: records wait in memory until there is space again, and nothing leaves meanwhile.
//! * A log that cannot be shown whole is not used. A torn tail that nobody was promised is cleared; anything else is
//!   [`OpenError::Damaged`].

pub mod disk;
mod error;
mod files;
pub(crate) mod format;
mod recovery;
mod segment;
mod shared;
mod snapshots;
#[cfg(test)]
mod tests;
mod writer;

pub use error::OpenError;
pub use format::Identity;
pub use recovery::{initialise, inspect, open, replace_lost};

use crate::replica::{Durability, Stall};
use bezant_core::checkpoint::ClaimedSnapshot;
use bezant_core::registry::{LogRecord, Record, SnapshotRecord};
use disk::{Disk, RealDisk};
use format::OpenFrames;
use shared::{Closing, Rotation, Shared, Work};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use writer::{Active, Place, Writer};

/// How the log uses the disk.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it writes.
    pub disk: Arc<dyn Disk>,
    /// New segments grow by this many bytes at a time.
    pub allocation_bytes: u32,
    /// Space kept back for the shutdown. 0: none.
    pub reserve_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { disk: Arc::new(RealDisk), allocation_bytes: 1 << 20, reserve_bytes: 4 << 20 }
    }
}

/// What [`inspect`] found.
#[derive(Debug)]
pub struct Inspected {
    /// The newest usable snapshot; `None`: the state before the first batch.
    pub snapshot: Option<ClaimedSnapshot>,
    /// Every record since, oldest first.
    pub records: Vec<LogRecord>,
}

/// What [`open`] found.
#[derive(Debug)]
pub struct Recovered {
    /// The newest usable snapshot; `None`: the state before the first batch.
    pub snapshot: Option<ClaimedSnapshot>,
    /// Every record since, oldest first. Around a new snapshot some may be there twice.
    pub records: Vec<LogRecord>,
    /// The replica lost an earlier log and has not written down yet from where on it may vote.
    pub lost_log: bool,
    /// The log, ready for more.
    pub log: Log,
    /// What an operator may want to know.
    pub notes: Vec<String>,
}

/// An open log, as the event loop sees it. Nothing here waits for a disk, except [`Log::close`].
#[derive(Debug)]
pub struct Log {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Frames that were not handed over yet.
    frames: OpenFrames,
    /// Complete pieces of work that were not handed over yet.
    work: Vec<Work>,
    position: u64,
    /// Whether the replica may vote, or has written down from where on: see [`Recovered::lost_log`].
    abstains: bool,
    _lock: File,
}

impl Log {
    fn start(place: Place, active: Active, lock: File, abstains: bool) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let mut log = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            frames: OpenFrames::default(),
            work: Vec::new(),
            position: 0,
            abstains,
            _lock: lock,
        };
        let writer = Writer { place: place.clone(), shared: Arc::clone(&shared), active };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        log.threads.push(thread("log").spawn(move || writer.run())?);
        log.threads.push(thread("snapshots").spawn(move || snapshots::run(&place, &shared))?);
        Ok(log)
    }

    /// Sets what is called, on any thread, whenever [`Log::durable`] or [`Log::stall`] has changed. Only the first
    /// call counts.
    pub fn set_wake(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.shared.set_wake(wake);
    }

    /// Appends a record. It is on its way to the disk after [`Log::start_sync`].
    pub fn append(&mut self, record: &Record) {
        match record {
            Record::Log(record) => {
                self.position += 1;
                Self::encode(record, &mut self.abstains, &mut self.frames);
            }
            Record::Snapshot(snapshot) => self.append_snapshot(snapshot),
        }
    }

    fn append_snapshot(&mut self, record: &SnapshotRecord) {
        self.gather();
        self.position += u64::from(record.transferred);
        let holds = record.transferred.then_some(self.position);
        let mut live = OpenFrames::default();
        for record in &record.live {
            Self::encode(record, &mut self.abstains, &mut live);
        }
        let snapshot = record.snapshot.clone();
        self.work.push(Work::Rotate(Box::new(Rotation { snapshot, live, holds, abstains: self.abstains })));
    }

    fn encode(record: &LogRecord, abstains: &mut bool, out: &mut OpenFrames) {
        *abstains |= record.record.abstains();
        out.push(record);
    }

    /// Makes a piece of work of the frames.
    fn gather(&mut self) {
        if !self.frames.is_empty() {
            let empty = self.shared.take_spare();
            self.work.push(Work::Frames(std::mem::replace(&mut self.frames, empty)));
        }
    }

    /// Hands everything appended so far to the log thread. While one sync runs the next group gathers.
    pub fn start_sync(&mut self) {
        self.gather();
        if !self.work.is_empty() {
            self.shared.enqueue(self.work.drain(..), self.position);
        }
    }

    /// Records appended since the start that others wait for: all but snapshots of the replica's own state.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// How many of them are durable.
    pub fn durable(&self) -> u64 {
        self.shared.durable()
    }

    /// What keeps [`Log::durable`] from going on, if something does.
    pub fn stall(&self) -> Option<Stall> {
        self.shared.stall()
    }

    /// Calls of fdatasync on segments since the start.
    pub fn syncs(&self) -> u64 {
        self.shared.syncs.load(Ordering::Relaxed)
    }

    /// Bytes of records written since the start.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Writes what was appended and ends. If the disk is full the reserve is given up for it.
    ///
    /// # Errors
    /// [`Stall`] if something could not be made durable.
    pub fn close(mut self) -> Result<(), Stall> {
        self.start_sync();
        self.end(Closing::Flush);
        self.shared.stall().map_or(Ok(()), Err)
    }

    fn end(&mut self, closing: Closing) {
        self.shared.close(closing);
        for thread in self.threads.drain(..) {
            // A thread that panicked has already said so on standard error; nothing it had is durable.
            let _ = thread.join();
        }
    }
}

impl Durability for Log {
    fn set_wake(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        Self::set_wake(self, wake);
    }

    fn append(&mut self, record: &Record) {
        Self::append(self, record);
    }

    fn start_sync(&mut self) {
        Self::start_sync(self);
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn durable(&self) -> u64 {
        Self::durable(self)
    }

    fn stall(&self) -> Option<Stall> {
        Self::stall(self)
    }

    fn syncs(&self) -> u64 {
        Self::syncs(self)
    }

    fn bytes(&self) -> u64 {
        Self::bytes(self)
    }

    fn close(self: Box<Self>) -> Result<(), Stall> {
        Self::close(*self)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.end(Closing::Abandon);
    }
}
