//! Why a log cannot be used, and what its operator is to do.

use super::Identity;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Why a log cannot be opened. Each message says what to do.
#[derive(Debug)]
pub enum OpenError {
    /// Another process uses the directory.
    InUse {
        /// Which.
        directory: PathBuf,
    },
    /// There is a log where a new one was to be made.
    Exists {
        /// Where.
        directory: PathBuf,
    },
    /// The directory has no log: it was emptied, or never initialised.
    LogLost {
        /// Which.
        directory: PathBuf,
    },
    /// Something that was durable is not as it was written.
    Damaged {
        /// Where.
        file: PathBuf,
        /// The first byte that is not right.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// The file belongs to another replica or cluster, or the cluster's parameters have changed.
    Foreign {
        /// Which file.
        file: PathBuf,
        /// Whose it is.
        found: Identity,
        /// Whose it should be.
        expected: Identity,
    },
    /// The file was written by another version of this program.
    Version {
        /// Which file.
        file: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The file system says no.
    Io {
        /// About what.
        file: PathBuf,
        /// What it says.
        error: io::Error,
    },
}

impl OpenError {
    pub(super) fn damaged(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged { file: file.to_owned(), offset, what: what.into() }
    }

    pub(super) fn io(file: &Path, error: io::Error) -> Self {
        Self::Io { file: file.to_owned(), error }
    }

    /// A file that cannot be read: damaged if it is the disk that cannot.
    pub(super) fn unreadable(file: &Path, error: io::Error) -> Self {
        if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) {
            return Self::damaged(file, 0, "the disk cannot read it");
        }
        Self::io(file, error)
    }

    /// Whether `--recover-lost-log` is the way on.
    pub const fn is_recoverable_as_learner(&self) -> bool {
        matches!(self, Self::LogLost { .. } | Self::Damaged { .. })
    }
}

/// What to do about a log that cannot be shown whole.
const REJOIN: &str = "The replica can no longer show what it promised and must not vote. Start it once with \
    --recover-lost-log: it learns the state from the others and votes again when it is past all it may have said. \
    Until then it counts as one of the f faulty replicas";

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { directory } => {
                write!(f, "{} is in use by another process: stop that one first", directory.display())
            }
            Self::Exists { directory } => write!(f, "{} already has a log: it is kept as it is", directory.display()),
            Self::LogLost { directory } => write!(f, "{} has no log. {REJOIN}", directory.display()),
            Self::Damaged { file, offset, what } => {
                write!(f, "{} is damaged at byte {offset}: {what}. {REJOIN}", file.display())
            }
            Self::Foreign { file, found, expected } if found.cluster == expected.cluster => {
                let (found, expected) = (found.replica, expected.replica);
                write!(f, "{} belongs to replica {found}, not {expected}: check `replica`", file.display())
            }
            Self::Foreign { file, .. } => {
                let file = file.display();
                write!(f, "{file} was written under another cluster.toml: restore the one that it was written under")
            }
            Self::Version { file, version } => {
                write!(f, "{} has format version {version}, which this program does not know", file.display())
            }
            Self::Io { file, error } => write!(f, "{}: {error}", file.display()),
        }
    }
}

impl std::error::Error for OpenError {}
