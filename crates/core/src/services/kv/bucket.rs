//! The entries that share a page, and the page.

use super::parts::entry;
use crate::service::{PAGE_BYTES_MAX, PageNumber};
use crate::wire::{Reader, Wire, WireError, encode_payload};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

/// Buckets, and pages of the service.
pub const BUCKETS: u32 = 4096;
/// What an entry takes in a bucket besides key and value, and an entry counts for in a result: its two lengths.
pub(super) const ENTRY_OVERHEAD: usize = 8;
/// The encoding of a bucket begins with the number of its entries.
pub(super) const BUCKET_OVERHEAD: usize = 4;
/// What a deadline takes on a page: the place of its entry, and the time.
const DEADLINE_BYTES: usize = 4 + 8;
/// What a deadline counts: its bytes, and those of the number of deadlines, although they share that.
pub(super) const DEADLINE_OVERHEAD: usize = DEADLINE_BYTES + 4;

/// A value, and how long it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) value: Bytes,
    /// Milliseconds since the Unix epoch, by agreed time.
    pub(super) deadline_ms: Option<u64>,
}

impl Entry {
    /// Without a deadline.
    pub(super) const fn lasting(value: Bytes) -> Self {
        Self { value, deadline_ms: None }
    }

    /// What it counts in its bucket, at least what it takes there.
    pub(super) fn bytes(&self, key: &[u8]) -> usize {
        let deadline = if self.deadline_ms.is_some() { DEADLINE_OVERHEAD } else { 0 };
        entry_bytes(key, &self.value) + deadline
    }
}

/// What key and value count.
pub(super) const fn entry_bytes(key: &[u8], value: &[u8]) -> usize {
    ENTRY_OVERHEAD + key.len() + value.len()
}

/// FNV-1a, with its high bits spread by the golden ratio.
pub(super) fn bucket_of(key: &[u8]) -> PageNumber {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BUCKETS.trailing_zeros())) as PageNumber
}

/// The entries that share a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) entries: BTreeMap<Bytes, Entry>,
    /// The sum of what they count.
    pub(super) bytes: usize,
}

impl Bucket {
    /// The bucket as a page: the entries, and behind them the deadlines if there are any.
    pub(super) fn page(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BUCKET_OVERHEAD + self.bytes);
        (self.entries.len() as u32).encode(&mut out);
        for (key, entry) in &self.entries {
            encode_payload(key, &mut out);
            encode_payload(&entry.value, &mut out);
        }
        let deadlines: Vec<(u32, u64)> =
            (0..).zip(self.entries.values()).filter_map(|(place, entry)| Some((place, entry.deadline_ms?))).collect();
        if !deadlines.is_empty() {
            (deadlines.len() as u32).encode(&mut out);
            deadlines.iter().for_each(|deadline| deadline.encode(&mut out));
        }
        out
    }

    /// The entries on a page, as they stand there.
    pub(super) fn parse(page: Bytes) -> Result<Vec<(Bytes, Entry)>, WireError> {
        let mut reader = Reader::new(page);
        let length = reader.length(PAGE_BYTES_MAX, ENTRY_OVERHEAD)?;
        let entry = |_| entry(&mut reader).map(|(key, value)| (key, Entry::lasting(value)));
        let mut entries = (0..length).map(entry).collect::<Result<Vec<_>, _>>()?;
        if reader.remaining() > 0 {
            let count = reader.length(length, DEADLINE_BYTES)?;
            let mut free = 0..length;
            for _ in 0..count {
                let (place, deadline_ms) = <(u32, u64)>::decode(&mut reader)?;
                let place = place as usize;
                if !free.contains(&place) {
                    return Err(WireError::NotCanonical);
                }
                entries[place].1.deadline_ms = Some(deadline_ms);
                free.start = place + 1;
            }
            if count == 0 {
                return Err(WireError::NotCanonical);
            }
        }
        reader.finish()?;
        Ok(entries)
    }
}
