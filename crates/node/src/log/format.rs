//! The bytes of a log segment. `docs/durability.md` spells them out.
//!
//! A segment is a header and a chain of records. A record's checksum covers its number and the checksum before it,
//! so that a record is only ever valid in its place. A *mark* is a record of the log itself: it says that every
//! record before it was durable when the mark was written. Marks tell a torn tail, which nobody was promised, from
//! rot: see [`durable_up_to`].

use bezant_core::digest::Digest;
use bezant_core::ids::ReplicaId;
use bezant_core::wire::{Rope, Sink, Wire};
use bytes::Bytes;

/// First bytes of every segment.
const MAGIC: [u8; 8] = *b"bezantlg";
/// The version of this format.
const VERSION: u32 = 4;
/// Size of [`Header`].
pub(crate) const HEADER_BYTES: usize = 92;
/// Length and checksum.
pub(crate) const FRAME_BYTES: usize = 8;
/// The largest payload of a record. Records hold messages, which are smaller.
pub(crate) const RECORD_BYTES_MAX: usize = 64 << 20;

/// First byte of a payload: a mark.
const KIND_MARK: u8 = 0;
/// First byte of a payload: a record of the replica.
const KIND_LOG: u8 = 1;
/// Salt, number, checksum.
const MARK_BYTES: usize = 16 + 8 + 4;

/// Whose log it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The digest of the cluster's parameters.
    pub cluster: Digest,
    /// Which replica.
    pub replica: ReplicaId,
}

/// The beginning of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Whose log it is.
    pub(crate) identity: Identity,
    /// Whether the log replaces a lost one and the replica has not yet written down from where on it may vote.
    pub(crate) lost: bool,
    /// The number in the file's name.
    pub(crate) segment: u64,
    /// The number of the segment's first record; numbers go on from segment to segment.
    pub(crate) first: u64,
    /// Random: keeps records of another file from being valid here, and clients from forging marks.
    pub(crate) salt: [u8; 16],
    /// The size of the file is a multiple of this. One that is not was cut, or its growth was interrupted.
    pub(crate) allocation: u32,
}

/// Why bytes are not the beginning of a segment of this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// Not a segment, or damaged.
    Damaged,
    /// A format of another version of this program.
    Version(u32),
}

impl Header {
    /// The bytes and their checksum, which begins the chain.
    pub(crate) fn encode(&self) -> ([u8; HEADER_BYTES], u32) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&u32::from(self.lost).to_le_bytes());
        bytes[16..48].copy_from_slice(&self.identity.cluster.0);
        bytes[48] = self.identity.replica.0;
        bytes[52..56].copy_from_slice(&self.allocation.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.segment.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.first.to_le_bytes());
        bytes[72..88].copy_from_slice(&self.salt);
        let crc = crc32c::crc32c(&bytes[..88]);
        bytes[88..].copy_from_slice(&crc.to_le_bytes());
        (bytes, crc)
    }

    /// The size that the file has when it holds so many bytes.
    pub(crate) fn size_for(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(u64::from(self.allocation.max(1)))
    }

    /// Reads what [`Header::encode`] wrote, and the checksum.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, u32), HeaderError> {
        let bytes = bytes.get(..HEADER_BYTES).ok_or(HeaderError::Damaged)?;
        let version = u32_at(bytes, 8);
        if bytes[..8] == MAGIC && version != VERSION && crc32c::crc32c(&bytes[..88]) == u32_at(bytes, 88) {
            return Err(HeaderError::Version(version));
        }
        let header = Self {
            identity: Identity { cluster: Digest(array_at(bytes, 16)), replica: ReplicaId(bytes[48]) },
            lost: bytes[12] != 0,
            segment: u64::from_le_bytes(array_at(bytes, 56)),
            first: u64::from_le_bytes(array_at(bytes, 64)),
            salt: array_at(bytes, 72),
            allocation: u32_at(bytes, 52),
        };
        let (expected, crc) = header.encode();
        if bytes == expected { Ok((header, crc)) } else { Err(HeaderError::Damaged) }
    }
}

/// `N` bytes at a place that the caller knows to exist.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

/// A `u32` at a place that the caller knows to exist.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// Records in frames whose checksums are still open: only the log thread knows what they continue. Long operations are
/// shared with whoever has them in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenFrames {
    rope: Rope,
    /// Where each frame begins, in bytes that were written and not shared.
    starts: Vec<usize>,
}

impl OpenFrames {
    /// Appends the frame of one record.
    pub(crate) fn push(&mut self, record: &impl Wire) {
        let (start, before) = (self.rope.written().len(), self.rope.len());
        self.rope.extend_from_slice(&[0; FRAME_BYTES]);
        self.rope.push(KIND_LOG);
        record.encode(&mut self.rope);
        let length = self.rope.len() - before - FRAME_BYTES;
        assert!(length <= RECORD_BYTES_MAX, "a record of {length} bytes could not be read back");
        self.rope.written_mut()[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
        self.starts.push(start);
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Bytes in all frames.
    pub(crate) fn len(&self) -> usize {
        self.rope.len()
    }

    /// Removes all and keeps the memory for the next ones.
    pub(crate) fn clear(&mut self) {
        self.rope.clear();
        self.starts.clear();
    }
}

/// Number and checksum of the last record: what the next one continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The number of the next record.
    pub(crate) next: u64,
    /// The checksum of the last one, or of the header.
    pub(crate) crc: u32,
}

impl Chain {
    /// The checksum of what comes before the payload.
    fn begin(&self, length: usize) -> u32 {
        let mut prefix = [0; 16];
        prefix[..4].copy_from_slice(&(length as u32).to_le_bytes());
        prefix[4..12].copy_from_slice(&self.next.to_le_bytes());
        prefix[12..].copy_from_slice(&self.crc.to_le_bytes());
        crc32c::crc32c(&prefix)
    }

    fn checksum(&self, payload: &[u8]) -> u32 {
        crc32c::crc32c_append(self.begin(payload.len()), payload)
    }

    fn advance(&mut self, crc: u32) {
        self.next += 1;
        self.crc = crc;
    }

    /// Fills in the checksums.
    pub(crate) fn close<'a>(&mut self, frames: &'a mut OpenFrames) -> &'a mut Rope {
        let OpenFrames { rope, starts } = frames;
        let mut checksums = Vec::with_capacity(starts.len());
        let (mut left, mut crc) = (0, 0);
        for mut segment in rope.segments() {
            while !segment.is_empty() {
                if left == 0 {
                    // The head of a frame was written in one piece, with the kind behind it.
                    left = u32_at(segment, 0) as usize;
                    crc = self.begin(left);
                    segment = &segment[FRAME_BYTES..];
                }
                let (payload, rest) = segment.split_at(left.min(segment.len()));
                crc = crc32c::crc32c_append(crc, payload);
                left -= payload.len();
                segment = rest;
                if left == 0 {
                    self.advance(crc);
                    checksums.push(crc);
                }
            }
        }
        for (start, crc) in starts.iter().zip(checksums) {
            rope.written_mut()[start + 4..start + FRAME_BYTES].copy_from_slice(&crc.to_le_bytes());
        }
        rope
    }

    /// Appends a mark: everything before it is durable.
    pub(crate) fn push_mark(&mut self, salt: &[u8; 16], out: &mut Rope) {
        let mut payload = [0; 1 + MARK_BYTES];
        payload[0] = KIND_MARK;
        payload[1..17].copy_from_slice(salt);
        payload[17..25].copy_from_slice(&self.next.to_le_bytes());
        let crc = crc32c::crc32c(&payload[1..25]);
        payload[25..].copy_from_slice(&crc.to_le_bytes());
        let crc = self.checksum(&payload);
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&payload);
        self.advance(crc);
    }

    /// Takes the next record off `bytes`. `None`: there is no valid one.
    pub(crate) fn take(&mut self, bytes: &Bytes, at: &mut usize) -> Option<Entry> {
        let frame = bytes.get(*at..*at + FRAME_BYTES)?;
        let length = u32_at(frame, 0) as usize;
        if length == 0 || length > RECORD_BYTES_MAX {
            return None;
        }
        let start = *at + FRAME_BYTES;
        let payload = bytes.get(start..start + length)?;
        let crc = self.checksum(payload);
        if crc != u32_at(frame, 4) {
            return None;
        }
        self.advance(crc);
        *at = start + length;
        match payload[0] {
            KIND_MARK => Some(Entry::Mark),
            KIND_LOG => Some(Entry::Log(bytes.slice(start + 1..start + length))),
            _ => Some(Entry::Unknown),
        }
    }
}

/// A valid record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The log's own.
    Mark,
    /// The replica's.
    Log(Bytes),
    /// Of a kind that this version does not know.
    Unknown,
}

/// What the marks in `tail` prove, wherever they stand: every record with a number below the result was durable.
///
/// Records after the first bad one are found by looking for the salt: a damaged length hides where the next record
/// begins. Valid records *without* a mark prove nothing: a disk may write the blocks of one group in any order.
pub(crate) fn durable_up_to(tail: &[u8], salt: &[u8; 16]) -> u64 {
    const BLOCK: usize = 4096;
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    let mut durable = 0;
    for start in (0..tail.len()).step_by(BLOCK) {
        let block = &tail[start..tail.len().min(start + BLOCK)];
        if block == &ZEROS[..block.len()] {
            continue;
        }
        for offset in 0..block.len() {
            let Some(mark) = tail.get(start + offset..start + offset + MARK_BYTES) else { break };
            if mark.starts_with(salt) && crc32c::crc32c(&mark[..24]) == u32_at(mark, 24) {
                durable = durable.max(u64::from_le_bytes(array_at(mark, 16)));
            }
        }
    }
    durable
}
