//! The log thread: appends, syncs in groups, begins new segments.

use super::disk::{Disk, DiskFile, is_full};
use super::files;
use super::format::{Chain, Header, Identity, OpenFrames};
use super::shared::{Closing, Job, Rotation, Shared, Work, Writes};
use crate::replica::Stall;
use bezant_core::wire::Rope;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a full disk is left alone before the next try.
const FULL_PAUSE: Duration = Duration::from_millis(200);

/// Segments that are written in one call, at most.
const SEGMENTS_AT_ONCE: usize = 64;

/// Where a log lives and how it is written.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) directory: PathBuf,
    pub(crate) identity: Identity,
    /// New segments grow by this many bytes at a time.
    pub(crate) allocation: u32,
}

/// Why the log thread ends before its time.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It was told to.
    Closed,
    /// A write or an fsync failed.
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Repeats `attempt` for as long as the disk is full, and reports that meanwhile. When the log is closed in that
/// state it gives up the reserve and tries once more.
pub(crate) fn patiently<T>(
    shared: &Shared,
    place: &Place,
    who: Writes,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> Result<T, Stop> {
    let mut last_try = false;
    loop {
        match attempt() {
            Ok(value) => {
                shared.report(who, None);
                return Ok(value);
            }
            Err(error) if is_full(&error) && !last_try => {
                let full = format!("{}: {error}", place.directory.display());
                shared.report(who, Some(Stall::Full(full)));
                match shared.pause(FULL_PAUSE) {
                    None => {}
                    Some(Closing::Abandon) => return Err(Stop::Closed),
                    Some(Closing::Flush) => {
                        last_try = true;
                        let _ = place.disk.remove(&place.directory.join(files::RESERVE));
                    }
                }
            }
            Err(error) if is_full(&error) => return Err(Stop::Closed),
            Err(error) => return Err(Stop::Failed(error)),
        }
    }
}

/// The segment that is being written.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) header: Header,
    pub(crate) chain: Chain,
    /// Where the next byte goes.
    pub(crate) offset: u64,
    /// Up to where space is reserved.
    pub(crate) allocated: u64,
    /// Bytes that are to be written at `offset`, but for the first `written` ones, which are there.
    pub(crate) pending: Rope,
    pub(crate) written: usize,
    /// Whether something was written since the last sync.
    pub(crate) dirty: bool,
    /// Whether something became durable that no mark tells of yet.
    pub(crate) mark_due: bool,
}

impl Active {
    /// Creates a segment with its first records, durable when this returns. It gets its name last: a segment that
    /// has its name is whole.
    pub(crate) fn create(place: &Place, header: Header, live: &mut OpenFrames) -> io::Result<Self> {
        let path = files::segment(&place.directory, header.segment);
        let temporary = files::temporary(&path);
        let (bytes, crc) = header.encode();
        let mut chain = Chain { next: header.first, crc };
        let mut pending = Rope::from(bytes.to_vec());
        pending.append(chain.close(live));
        let file = place.disk.create(&temporary)?;
        let mut active =
            Self { file, header, chain, offset: 0, allocated: 0, pending, written: 0, dirty: false, mark_due: false };
        active.write()?;
        active.sync()?;
        place.disk.rename(&temporary, &path)?;
        place.disk.sync_directory(&place.directory)?;
        Ok(active)
    }

    /// Writes what is not written yet. After an error it can be called again and goes on where it was.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        let end = self.offset + (self.pending.len() - self.written) as u64;
        if end > self.allocated {
            let size = self.header.size_for(end);
            self.file.allocate(self.allocated, size - self.allocated)?;
            self.allocated = size;
        }
        while self.written < self.pending.len() {
            let segments = self.pending.segments_from(self.written).take(SEGMENTS_AT_ONCE);
            let segments: Vec<IoSlice<'_>> = segments.map(IoSlice::new).collect();
            match self.file.write_vectored_at(&segments, self.offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.dirty = true;
                    self.offset += count as u64;
                    self.written += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.pending.clear();
        self.written = 0;
        Ok(())
    }

    /// Makes what was written durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if self.dirty {
            // Whatever the error: what the kernel still holds is unknown, so that "full" is no reason to try again.
            self.file.sync().map_err(|error| io::Error::other(format!("fsync: {error}")))?;
            self.dirty = false;
            self.mark_due = true;
        }
        Ok(())
    }

    /// Says in a mark that all so far is durable. The next sync takes the mark along; should it be lost before, then
    /// a damaged last group would pass for a torn one.
    pub(crate) fn mark(&mut self) {
        if self.mark_due {
            self.mark_due = false;
            self.chain.push_mark(&self.header.salt, &mut self.pending);
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) place: Place,
    pub(crate) shared: Arc<Shared>,
    pub(crate) active: Active,
}

impl Writer {
    /// Works until the log is closed or the disk fails.
    pub(crate) fn run(mut self) {
        let _end = End(Arc::clone(&self.shared));
        if let Err(Stop::Failed(error)) = self.work() {
            self.shared.report(Writes::Records, Some(Stall::Broken(error.to_string())));
        }
    }

    fn work(&mut self) -> Result<(), Stop> {
        self.mark()?;
        while let Some((work, position)) = self.shared.next_group() {
            for item in work {
                match item {
                    Work::Frames(frames) => self.append(frames),
                    Work::Rotate(rotation) => self.rotate(*rotation)?,
                }
            }
            self.commit()?;
            self.shared.publish_synced(position);
            self.mark()?;
        }
        Ok(())
    }

    fn append(&mut self, mut frames: OpenFrames) {
        self.shared.bytes.fetch_add(frames.len() as u64, Ordering::Relaxed);
        let closed = self.active.chain.close(&mut frames);
        if self.active.pending.is_empty() {
            std::mem::swap(&mut self.active.pending, closed);
        } else {
            self.active.pending.append(closed);
        }
        self.shared.return_spare(frames);
    }

    fn write(&mut self) -> Result<(), Stop> {
        let Self { place, shared, active } = self;
        patiently(shared, place, Writes::Records, || active.write())
    }

    fn mark(&mut self) -> Result<(), Stop> {
        self.active.mark();
        self.write()
    }

    /// Writes and syncs.
    fn commit(&mut self) -> Result<(), Stop> {
        self.write()?;
        if self.active.dirty {
            self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        }
        Ok(self.active.sync()?)
    }

    /// Ends this segment and begins the next one.
    fn rotate(&mut self, mut rotation: Rotation) -> Result<(), Stop> {
        // No mark follows: that there is a next segment says the same.
        self.commit()?;
        let old = &self.active;
        let header = Header {
            identity: self.place.identity,
            lost: old.header.lost && !rotation.abstains,
            segment: old.header.segment + 1,
            first: old.chain.next,
            salt: random_salt()?,
            allocation: self.place.allocation,
        };
        let Self { place, shared, .. } = self;
        self.active = patiently(shared, place, Writes::Records, || Active::create(place, header, &mut rotation.live))?;
        self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        self.shared.bytes.fetch_add(rotation.live.len() as u64, Ordering::Relaxed);
        let job = Job { snapshot: rotation.snapshot, segment: header.segment };
        self.shared.publish_job(job, rotation.holds);
        Ok(())
    }
}

/// Says that a thread has ended, and that the log is broken if it ended by a panic: otherwise the replica would wait
/// for ever, and not know for what.
#[derive(Debug)]
pub(crate) struct End(pub(crate) Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.report(Writes::Records, Some(Stall::Broken("a thread of the log panicked".to_owned())));
        }
        self.0.end_log();
    }
}

/// A fresh salt for a segment.
pub(crate) fn random_salt() -> io::Result<[u8; 16]> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(salt)
}
