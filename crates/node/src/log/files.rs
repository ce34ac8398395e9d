//! The names of the files in a replica's directory, and what is there.

use super::OpenError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Held by the process that uses the directory.
pub(crate) const LOCK: &str = "lock";
/// Space that is given back at shutdown when the disk is full.
pub(crate) const RESERVE: &str = "reserve";
/// There while what is left of a lost log is set aside.
pub(crate) const REPLACING: &str = "replacing";
/// How the names of folders begin in which what was left of a lost log is kept.
const SET_ASIDE: &str = "lost-";
/// Ending of files that are being written.
const TEMPORARY: &str = ".new";

/// The path of a segment.
pub(crate) fn segment(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("log-{number}.bin"))
}

/// The path of the snapshot with which a segment goes on. Segments only grow in number; the sequence numbers of
/// snapshots do not, where one instance follows another.
pub(crate) fn snapshot(directory: &Path, segment: u64) -> PathBuf {
    directory.join(format!("snapshot-{segment}.bin"))
}

/// The path under which a file is written before it gets its name.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMPORARY);
    PathBuf::from(name)
}

/// The first free name for what is left of a lost log.
pub(crate) fn set_aside(directory: &Path) -> PathBuf {
    let mut names = (1..).map(|number: u64| directory.join(format!("{SET_ASIDE}{number}")));
    names.find(|path| !path.exists()).expect("some number is free")
}

/// What a directory holds.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Segments by number.
    pub(crate) segments: BTreeMap<u64, PathBuf>,
    /// Snapshots by the number of the segment that goes on where they end.
    pub(crate) snapshots: BTreeMap<u64, PathBuf>,
    /// Files that were never finished.
    pub(crate) unfinished: Vec<PathBuf>,
    /// Whether a lost log is being replaced.
    pub(crate) replacing: bool,
    /// Whether a log was lost here, ever.
    pub(crate) set_aside: bool,
}

impl Listing {
    /// Lists a directory.
    pub(crate) fn of(directory: &Path) -> Result<Self, OpenError> {
        let mut listing = Self::default();
        let entries = std::fs::read_dir(directory).map_err(|error| OpenError::io(directory, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| OpenError::io(directory, error))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let number = |prefix: &str| name.strip_prefix(prefix)?.strip_suffix(".bin")?.parse::<u64>().ok();
            if let Some(number) = number("log-") {
                listing.segments.insert(number, entry.path());
            } else if let Some(number) = number("snapshot-") {
                listing.snapshots.insert(number, entry.path());
            } else if name.ends_with(TEMPORARY) && (name.starts_with("log-") || name.starts_with("snapshot-")) {
                listing.unfinished.push(entry.path());
            }
            listing.replacing |= name == REPLACING;
            listing.set_aside |= name.starts_with(SET_ASIDE);
        }
        Ok(listing)
    }
}
