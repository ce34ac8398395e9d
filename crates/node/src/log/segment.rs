//! Reads a segment and judges how it ends.

use super::OpenError;
use super::format::{Chain, Entry, HEADER_BYTES, Header, HeaderError, Identity, durable_up_to};
use bezant_core::registry::LogRecord;
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::path::{Path, PathBuf};

/// A segment as it was found.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    /// The replica's records, oldest first.
    pub(crate) records: Vec<LogRecord>,
    /// Number of the next record, checksum of the last.
    pub(crate) chain: Chain,
    /// Where the next record goes.
    pub(crate) end: u64,
    /// Size of the file.
    pub(crate) size: u64,
    /// Bytes after the last record that are not zero, as a crash leaves them in the middle of a write. Nobody was
    /// promised any of them.
    pub(crate) torn: bool,
    /// It has no whole size, and ends in the middle of what was written: see [`ends_in_zeros`].
    pub(crate) cut: bool,
}

impl Segment {
    /// Reads the header alone.
    pub(crate) fn header(path: &Path, bytes: &[u8], identity: &Identity) -> Result<(Header, u32), OpenError> {
        let (header, crc) = Header::decode(bytes).map_err(|error| match error {
            HeaderError::Damaged => OpenError::damaged(path, 0, "the header does not have its checksum"),
            HeaderError::Version(version) => OpenError::Version { file: path.to_owned(), version },
        })?;
        if header.identity != *identity {
            return Err(OpenError::Foreign { file: path.to_owned(), found: header.identity, expected: *identity });
        }
        Ok((header, crc))
    }

    /// Reads the whole segment.
    ///
    /// # Errors
    /// [`OpenError::Damaged`] if a record that was durable is not as it was written.
    pub(crate) fn read(path: &Path, identity: &Identity) -> Result<Self, OpenError> {
        let bytes = Bytes::from(std::fs::read(path).map_err(|error| OpenError::unreadable(path, error))?);
        let (header, crc) = Self::header(path, &bytes, identity)?;
        let mut chain = Chain { next: header.first, crc };
        let mut at = HEADER_BYTES;
        let mut records = Vec::new();
        loop {
            let offset = at as u64;
            match chain.take(&bytes, &mut at) {
                Some(Entry::Log(payload)) => {
                    let record = LogRecord::from_bytes(payload);
                    let unreadable =
                        |error| OpenError::damaged(path, offset, format!("a record cannot be read: {error}"));
                    records.push(record.map_err(unreadable)?);
                }
                Some(Entry::Mark) => {}
                Some(Entry::Unknown) => {
                    return Err(OpenError::damaged(
                        path,
                        offset,
                        "a record is of a kind that this version does not know",
                    ));
                }
                None => break,
            }
        }
        let tail = &bytes[at..];
        if durable_up_to(tail, &header.salt) > chain.next {
            return Err(OpenError::damaged(path, at as u64, "a record that was durable does not have its checksum"));
        }
        let torn = tail.iter().any(|&byte| byte != 0);
        let size = bytes.len() as u64;
        let cut = header.size_for(size) != size && !ends_in_zeros(tail);
        Ok(Self { path: path.to_owned(), header, records, chain, end: at as u64, size, torn, cut })
    }
}

/// Whether what follows the last record shows that no other one began there: the length of a record is not zero.
///
/// A file grows by whole pieces of zeros before anything is written to them. If a crash interrupts that, the size may
/// be any, but what was written before is whole, and zeros follow it. So a file whose size is not whole and that ends
/// otherwise has lost its end, and with it perhaps what was durable.
fn ends_in_zeros(tail: &[u8]) -> bool {
    tail.len() >= size_of::<u32>() && tail.iter().all(|&byte| byte == 0)
}
