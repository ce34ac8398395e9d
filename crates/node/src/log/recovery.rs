//! Creates a log, and finds again what one says.

use super::disk::{Disk, create_directory, is_full};
use super::files::{self, Listing};
use super::format::{Header, Identity, OpenFrames};
use super::segment::Segment;
use super::writer::{Active, Place, random_salt};
use super::{Inspected, Log, OpenError, Options, Recovered};
use crate::snapshot::{self, SnapshotError};
use bezant_core::checkpoint::ClaimedSnapshot;
use bezant_core::registry::LogRecord;
use bezant_core::wire::Rope;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The number of a log's first segment.
const FIRST_SEGMENT: u64 = 1;

/// Takes the directory for this process. The lock ends with the file that is returned.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(files::LOCK);
    let mut options = OpenOptions::new();
    let file = options
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| OpenError::io(&path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { directory: directory.to_owned() }),
        Err(TryLockError::Error(error)) => Err(OpenError::io(&path, error)),
    }
}

fn create_first_segment(directory: &Path, options: &Options, identity: &Identity, lost: bool) -> Result<(), OpenError> {
    let write = || {
        let salt = random_salt()?;
        let allocation = options.allocation_bytes;
        let header = Header { identity: *identity, lost, segment: FIRST_SEGMENT, first: 0, salt, allocation };
        Active::create(&place(directory, options, identity), header, &mut OpenFrames::default())
    };
    write().map_err(|error| OpenError::io(&files::segment(directory, FIRST_SEGMENT), error))?;
    Ok(())
}

fn place(directory: &Path, options: &Options, identity: &Identity) -> Place {
    Place {
        disk: options.disk.clone(),
        directory: directory.to_owned(),
        identity: *identity,
        allocation: options.allocation_bytes,
    }
}

/// Creates the log of a replica that has never run. From then on a directory without a log is a lost one.
///
/// # Errors
/// [`OpenError::Exists`] if there is a log already; [`OpenError::LogLost`] if there was one; [`OpenError::InUse`];
/// [`OpenError::Io`].
pub fn initialise(directory: &Path, identity: &Identity, options: &Options) -> Result<(), OpenError> {
    create_directory(directory).map_err(|error| OpenError::io(directory, error))?;
    let _lock = lock(directory)?;
    let listing = Listing::of(directory)?;
    if !listing.segments.is_empty() || !listing.snapshots.is_empty() {
        return Err(OpenError::Exists { directory: directory.to_owned() });
    }
    if listing.replacing || listing.set_aside {
        return Err(OpenError::LogLost { directory: directory.to_owned() });
    }
    create_first_segment(directory, options, identity, false)
}

/// Sets aside whatever is left of a lost or damaged log and begins one that remembers this: [`open`] will say
/// `lost_log` until the replica has written down from where on it may vote again. A log that is whole is kept as it is,
/// and the answer is `false`: an order that stays in a start script does no harm.
///
/// Some of the files without the others may look like a log that is whole and ends sooner. So a file says that what is
/// here is not to be read, from before the first one is set aside until the new log is durable; a crash in between
/// leaves a lost log, which is replaced again.
///
/// # Errors
/// [`OpenError::InUse`]; [`OpenError::Foreign`], [`OpenError::Version`]: there is a log, of somebody else;
/// [`OpenError::Io`].
pub fn replace_lost(directory: &Path, identity: &Identity, options: &Options) -> Result<bool, OpenError> {
    create_directory(directory).map_err(|error| OpenError::io(directory, error))?;
    let _lock = lock(directory)?;
    let listing = Listing::of(directory)?;
    match read(directory, &listing, identity, &mut Vec::new()) {
        Ok(_) => return Ok(false),
        Err(error) if error.is_recoverable_as_learner() => {}
        Err(error) => return Err(error),
    }
    let (disk, marker) = (&*options.disk, directory.join(files::REPLACING));
    let begin = || {
        disk.create(&marker)?.sync()?;
        disk.sync_directory(directory)
    };
    begin().map_err(|error| OpenError::io(&marker, error))?;
    set_aside(disk, directory, &listing)?;
    create_first_segment(directory, options, identity, true)?;
    let end = || {
        disk.remove(&marker)?;
        disk.sync_directory(directory)
    };
    end().map_err(|error| OpenError::io(&marker, error))?;
    Ok(true)
}

/// Moves segments and snapshots to a folder of their own, for good.
fn set_aside(disk: &dyn Disk, directory: &Path, listing: &Listing) -> Result<(), OpenError> {
    let remains: Vec<_> = listing.segments.values().chain(listing.snapshots.values()).collect();
    if remains.is_empty() {
        return Ok(());
    }
    let aside = files::set_aside(directory);
    create_directory(&aside).map_err(|error| OpenError::io(&aside, error))?;
    for path in remains {
        let name = path.file_name().expect("listed files have names");
        disk.rename(path, &aside.join(name)).map_err(|error| OpenError::io(path, error))?;
    }
    let synced = disk.sync_directory(&aside).and_then(|()| disk.sync_directory(directory));
    synced.map_err(|error| OpenError::io(&aside, error))
}

/// Reads the log of a replica and opens it for writing.
///
/// # Errors
/// [`OpenError`]: each says what to do.
pub fn open(directory: &Path, identity: &Identity, options: &Options) -> Result<Recovered, OpenError> {
    if !directory.is_dir() {
        return Err(OpenError::LogLost { directory: directory.to_owned() });
    }
    let lock = lock(directory)?;
    let listing = Listing::of(directory)?;
    let mut notes = Vec::new();
    let Contents { start, snapshot, segments } = read(directory, &listing, identity, &mut notes)?;
    let lost_log = is_lost(&segments);
    let place = place(directory, options, identity);
    let (records, last) = split_last(segments);
    let active = resume(&place, last, &mut notes)?;
    // Only now: before, the names of what replaces them may have been in the kernel's memory only.
    clean_up(&place, &listing, start, snapshot.as_ref(), &mut notes);
    reserve(&*options.disk, directory, options, &mut notes);
    let log = Log::start(place, active, lock, !lost_log).map_err(|error| OpenError::io(directory, error))?;
    Ok(Recovered { snapshot, records, lost_log, log, notes })
}

/// Reads the log of a replica that is stopped, and changes nothing.
///
/// # Errors
/// [`OpenError`]: each says what to do.
pub fn inspect(directory: &Path, identity: &Identity) -> Result<Inspected, OpenError> {
    if !directory.is_dir() {
        return Err(OpenError::LogLost { directory: directory.to_owned() });
    }
    let _lock = lock(directory)?;
    let Contents { snapshot, segments, .. } = read(directory, &Listing::of(directory)?, identity, &mut Vec::new())?;
    Ok(Inspected { snapshot, records: segments.into_iter().flat_map(|segment| segment.records).collect() })
}

/// What a log says.
struct Contents {
    /// The first segment that is needed.
    start: u64,
    snapshot: Option<ClaimedSnapshot>,
    segments: Vec<Segment>,
}

/// Reads everything and changes nothing.
fn read(
    directory: &Path,
    listing: &Listing,
    identity: &Identity,
    notes: &mut Vec<String>,
) -> Result<Contents, OpenError> {
    if listing.segments.is_empty() || listing.replacing {
        return Err(OpenError::LogLost { directory: directory.to_owned() });
    }
    let (start, snapshot) = choose_snapshot(listing, identity, notes)?;
    let segments = read_segments(directory, listing, start, identity)?;
    Ok(Contents { start, snapshot, segments })
}

/// The newest snapshot that is as it was written, and the first segment that is needed with it.
fn choose_snapshot(
    listing: &Listing,
    identity: &Identity,
    notes: &mut Vec<String>,
) -> Result<(u64, Option<ClaimedSnapshot>), OpenError> {
    let mut unusable = None;
    for path in listing.snapshots.values().rev() {
        match snapshot::read(path, identity) {
            Ok((descriptor, _)) if !listing.segments.contains_key(&descriptor.segment) => {
                let what = format!("the snapshot goes on in log-{}.bin, which is missing", descriptor.segment);
                unusable.get_or_insert(OpenError::damaged(path, 0, what));
            }
            Ok((descriptor, snapshot)) => return Ok((descriptor.segment, Some(snapshot))),
            Err(SnapshotError::Foreign(found)) => {
                return Err(OpenError::Foreign { file: path.clone(), found, expected: *identity });
            }
            Err(SnapshotError::Version(version)) => return Err(OpenError::Version { file: path.clone(), version }),
            Err(SnapshotError::Io(error)) => match OpenError::unreadable(path, error) {
                OpenError::Damaged { .. } => notes.push(format!("the disk cannot read {}", path.display())),
                error => return Err(error),
            },
            Err(SnapshotError::Damaged { offset, what }) => {
                notes
                    .push(format!("{} is damaged at byte {offset} ({what}): looking for an older one", path.display()));
                unusable.get_or_insert(OpenError::damaged(path, offset, what));
            }
        }
    }
    if listing.segments.contains_key(&FIRST_SEGMENT) {
        return Ok((FIRST_SEGMENT, None));
    }
    let (number, path) = listing.segments.first_key_value().expect("there is a segment");
    let missing = || OpenError::damaged(path, 0, format!("the snapshot before segment {number} is missing"));
    Err(unusable.unwrap_or_else(missing))
}

/// Reads every segment from `start` on; together they must be one chain.
fn read_segments(
    directory: &Path,
    listing: &Listing,
    start: u64,
    identity: &Identity,
) -> Result<Vec<Segment>, OpenError> {
    let mut segments: Vec<Segment> = Vec::new();
    for (expected, (&number, path)) in (start..).zip(listing.segments.range(start..)) {
        if number != expected {
            let missing = files::segment(directory, expected);
            return Err(OpenError::damaged(&missing, 0, "the segment is missing"));
        }
        let segment = Segment::read(path, identity)?;
        if segment.header.segment != number {
            return Err(OpenError::damaged(path, 0, format!("this is segment {}", segment.header.segment)));
        }
        // A segment is begun only when the one before it is durable, whole.
        if let Some(before) = segments.last()
            && before.chain.next != segment.header.first
        {
            return Err(OpenError::damaged(&before.path, before.end, "a record that was durable is missing"));
        }
        segments.push(segment);
    }
    if let Some(last) = segments.last().filter(|last| last.cut) {
        let what = "the file has no whole size and ends in the middle of what was written: it was cut";
        return Err(OpenError::damaged(&last.path, last.size, what));
    }
    Ok(segments)
}

/// Whether the replica lost an earlier log and has not yet written down from where on it may vote.
fn is_lost(segments: &[Segment]) -> bool {
    segments.last().is_some_and(|last| last.header.lost)
        && !segments.iter().any(|segment| segment.records.iter().any(|record| record.record.abstains()))
}

/// All records, and the segment to go on with.
fn split_last(mut segments: Vec<Segment>) -> (Vec<LogRecord>, Segment) {
    let records = segments.iter_mut().flat_map(|segment| std::mem::take(&mut segment.records)).collect();
    (records, segments.pop().expect("there is a segment"))
}

/// Deletes what nothing depends on any more. What cannot be deleted is only noted.
fn clean_up(place: &Place, listing: &Listing, start: u64, snapshot: Option<&ClaimedSnapshot>, notes: &mut Vec<String>) {
    let current = snapshot.map(|_| start);
    let old_segments = listing.segments.range(..start).map(|(_, path)| path);
    let other_snapshots = listing.snapshots.iter().filter(|(number, _)| Some(**number) != current);
    for path in old_segments.chain(other_snapshots.map(|(_, path)| path)).chain(&listing.unfinished) {
        match place.disk.remove(path) {
            Ok(()) => notes.push(format!("deleted {}, which was superseded or never finished", path.display())),
            Err(error) => notes.push(format!("{} cannot be deleted: {error}", path.display())),
        }
    }
}

/// Keeps some space back, so that a full disk does not keep a replica from writing its last records.
fn reserve(disk: &dyn Disk, directory: &Path, options: &Options, notes: &mut Vec<String>) {
    let path = directory.join(files::RESERVE);
    let is_there = std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() >= options.reserve_bytes);
    if is_there || options.reserve_bytes == 0 {
        return;
    }
    let result = disk.create(&path).and_then(|mut file| file.allocate(0, options.reserve_bytes));
    if let Err(error) = result {
        let _ = disk.remove(&path);
        let hint = if is_full(&error) { " (the disk is almost full)" } else { "" };
        notes.push(format!("no space could be kept back for the shutdown: {error}{hint}"));
    }
}

/// Clears the torn tail of the last segment, gives it a whole size, and makes it durable: so far it may only be in the
/// kernel's memory.
fn resume(place: &Place, last: Segment, notes: &mut Vec<String>) -> Result<Active, OpenError> {
    if last.torn {
        notes.push(format!(
            "{}: cleared from byte {} on, where a write was interrupted; nobody was promised what follows",
            last.path.display(),
            last.end
        ));
    }
    let mut allocated = last.size;
    let mut reopen = || {
        let mut file = place.disk.open(&last.path)?;
        let whole = last.header.size_for(last.size);
        if whole != last.size {
            let without = whole - u64::from(last.header.allocation);
            // What has grown in part is given back, unless the log needs it: the disk may be full.
            if last.end <= without {
                file.truncate(without)?;
                allocated = without;
            } else {
                file.allocate(last.size, whole - last.size)?;
                allocated = whole;
            }
        } else if last.torn {
            file.write_all_at(&vec![0; (last.size - last.end) as usize], last.end)?;
        }
        // If a sync failed, the kernel may have dropped what it could not write and still show it to us as clean:
        // then only a new write brings it to the disk. Earlier segments were synced with success.
        let bytes = std::fs::read(&last.path)?;
        file.write_all_at(&bytes[..last.end as usize], 0)?;
        file.sync()?;
        place.disk.sync_directory(&place.directory)?;
        Ok(file)
    };
    let file = reopen().map_err(|error| OpenError::io(&last.path, error))?;
    Ok(Active {
        file,
        header: last.header,
        chain: last.chain,
        offset: last.end,
        allocated,
        pending: Rope::new(),
        written: 0,
        dirty: false,
        mark_due: true,
    })
}
