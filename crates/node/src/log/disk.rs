//! The few operations on files that the log needs, behind a port so that tests can make them fail.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

/// Files are for their owner only: records hold clients' operations.
const FILE_MODE: u32 = 0o600;
/// So are directories.
const DIRECTORY_MODE: u32 = 0o700;

/// Zeros are written in pieces of this size.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Where the log writes.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Creates a file, or empties the one that is there.
    ///
    /// # Errors
    /// Those of the file system.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file that exists.
    ///
    /// # Errors
    /// Those of the file system.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Renames a file, replacing one that may be there.
    ///
    /// # Errors
    /// Those of the file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Deletes a file.
    ///
    /// # Errors
    /// Those of the file system.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and deletions in a directory durable.
    ///
    /// # Errors
    /// Those of the file system. A failure is final, as for [`DiskFile::sync`].
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// An open file of a [`Disk`].
pub trait DiskFile: fmt::Debug + Send {
    /// Writes some of `bytes` at `offset`; says how many.
    ///
    /// # Errors
    /// Those of the file system.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Writes some of `segments`, one behind the other from `offset` on; says how many bytes.
    ///
    /// # Errors
    /// Those of the file system.
    fn write_vectored_at(&mut self, segments: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.write_at(segments.first().map_or(&[], |first| first), offset)
    }

    /// Reserves space and extends the file with zeros, so that later writes need not change its metadata. A crash
    /// leaves the file as it was, or longer by some or all of these zeros, whatever is written to it afterwards.
    ///
    /// # Errors
    /// Those of the file system.
    fn allocate(&mut self, offset: u64, bytes: u64) -> io::Result<()>;
    /// Cuts the file.
    ///
    /// # Errors
    /// Those of the file system.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;
    /// Makes everything written durable. After a failure the kernel may have dropped what was written and a second
    /// call would claim success: a failure is final.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync(&mut self) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// Those of the file system; how far it came is not known then.
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            match self.write_at(&bytes[written..], offset + written as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(FILE_MODE).open(path)?;
        Ok(Box::new(RealFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(OpenOptions::new().write(true).open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn write_vectored_at(&mut self, segments: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwritev(&self.0, segments, offset)?)
    }

    fn allocate(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        use rustix::io::Errno;
        let reserved = match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), offset, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => false,
            result => result.map(|()| true)?,
        };
        // Reserved blocks count as unwritten: the first write to each changes metadata, which the next sync would have
        // to commit to the file system's journal. With zeros in them a sync writes data and nothing else.
        let end = offset + bytes;
        for at in (offset..end).step_by(ZEROS.len()) {
            self.0.write_all_at(&ZEROS[..ZEROS.len().min((end - at) as usize)], at)?;
        }
        if !reserved {
            // The size grew bit by bit, and what is written next could be on the disk before all of it.
            self.0.sync_data().map_err(|error| io::Error::other(format!("fsync: {error}")))?;
        }
        Ok(())
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Whether the cause may go away by itself: no space, or no quota, left.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Creates a directory, and those above it, for its owner only.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}
