//! An ordered map from bytes to bytes.
//!
//! Entries lie in [`BUCKETS`] buckets by a hash of the key. A bucket is one page, its entries in the order of their
//! keys, and only the buckets that were written since the last checkpoint are looked at and encoded again. Beside them
//! all keys are kept in order, for ranges. A bucket that would not fit in a page, or a service that would exceed
//! [`TOTAL_BYTES_MAX`], refuses the write with [`KvResult::Full`], which is the same at every replica.

mod operation;

pub use operation::{Condition, KEY_BYTES_MAX, KvOperation, KvResult, LIST_MAX, RESULT_BYTES_MAX, VALUE_BYTES_MAX};

use crate::digest::{Digest, Domain};
use crate::service::{Agreed, Asker, BadState, NotReadOnly, PAGE_BYTES_MAX, PageNumber, Service};
use crate::wire::{Reader, Wire, WireError, encode_payload};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Bound;

/// Buckets, and pages of the service.
pub const BUCKETS: u32 = 4096;
/// The most bytes of all buckets together, as encoded.
pub const TOTAL_BYTES_MAX: u64 = 1 << 30;
/// The most bytes of values that the splices of one transaction write: a short one may write a long value again.
const SPLICED_BYTES_MAX: usize = 16 << 20;
/// What an entry takes in a bucket besides key and value, and an entry counts for in a result: its two lengths.
const ENTRY_OVERHEAD: usize = 8;
/// The encoding of a bucket begins with the number of its entries.
const BUCKET_OVERHEAD: usize = 4;

/// The entries that share a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bucket {
    entries: BTreeMap<Bytes, Bytes>,
    /// Size of the entries as encoded.
    bytes: usize,
}

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kv {
    /// By number; empty ones are not kept.
    buckets: BTreeMap<PageNumber, Bucket>,
    /// Those that were written since they were saved.
    written: BTreeSet<PageNumber>,
    /// A digest of what was written since it was asked for.
    effects: Digest,
    /// The keys of all buckets.
    keys: BTreeSet<Bytes>,
    /// The sum over all buckets.
    bytes: u64,
}

/// FNV-1a, with its high bits spread by the golden ratio.
fn bucket_of(key: &[u8]) -> PageNumber {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BUCKETS.trailing_zeros())) as PageNumber
}

const fn entry_bytes(key: &[u8], value: &[u8]) -> usize {
    ENTRY_OVERHEAD + key.len() + value.len()
}

/// The number that a value stands for: decimal, in the shortest form, as Redis has it.
fn parse_integer(value: &[u8]) -> Option<i64> {
    let text = core::str::from_utf8(value).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The result of a part of a transaction, if there is room for it. Only reads have results that take room.
fn fit(result: KvResult, room: &mut usize) -> KvResult {
    match room.checked_sub(result.payload_bytes()) {
        Some(left) => {
            *room = left;
            result
        }
        None => KvResult::TooLarge,
    }
}

impl Kv {
    /// A service without entries.
    pub fn new() -> Self {
        Self::default()
    }

    fn get(&self, key: &[u8]) -> Option<&Bytes> {
        self.buckets.get(&bucket_of(key))?.entries.get(key)
    }

    /// Answers a read-only operation; `None` if it is not one.
    fn answer(&self, operation: &KvOperation) -> Option<KvResult> {
        Some(match operation {
            KvOperation::Get { key } => KvResult::Value(self.get(key).cloned()),
            KvOperation::MultiGet { keys } => {
                let values: Vec<_> = keys.iter().map(|key| self.get(key).cloned()).collect();
                let size = |value: &Option<Bytes>| ENTRY_OVERHEAD + value.as_ref().map_or(0, Bytes::len);
                let fits = values.iter().map(size).sum::<usize>() <= RESULT_BYTES_MAX;
                if fits { KvResult::Values(values) } else { KvResult::TooLarge }
            }
            KvOperation::Range { from, inclusive, limit, bytes, keys_only } => {
                let from = if *inclusive { Bound::Included(from) } else { Bound::Excluded(from) };
                self.range(from, *limit as usize, *bytes as usize, *keys_only)
            }
            KvOperation::Count => KvResult::Count(self.keys.len() as u64),
            KvOperation::Exists { keys } => {
                KvResult::Count(keys.iter().filter(|key| self.get(key).is_some()).count() as u64)
            }
            KvOperation::Transaction { conditions, operations } => {
                if !operation.is_read_only() {
                    return None;
                }
                if !self.all_hold(conditions) {
                    return Some(KvResult::NotDone);
                }
                let mut room = RESULT_BYTES_MAX;
                let results = operations.iter().map(|part| Some(fit(self.answer(part)?, &mut room)));
                KvResult::Transaction(results.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    fn all_hold(&self, conditions: &[(Bytes, Option<Bytes>)]) -> bool {
        conditions.iter().all(|(key, expected)| self.get(key) == expected.as_ref())
    }

    /// Carries out a transaction. What it writes is noted operation by operation.
    fn transact(&mut self, conditions: &[(Bytes, Option<Bytes>)], operations: Vec<KvOperation>) -> KvResult {
        if !self.all_hold(conditions) {
            return KvResult::NotDone;
        }
        let (mut room, mut copies) = (RESULT_BYTES_MAX, SPLICED_BYTES_MAX);
        let mut part = |part: KvOperation| {
            if let KvOperation::Splice { key, offset, bytes } = &part {
                match copies.checked_sub(self.spliced_length(key, *offset, bytes)) {
                    Some(left) => copies = left,
                    None => return KvResult::TooLarge,
                }
            }
            fit(self.apply(part), &mut room)
        };
        KvResult::Transaction(operations.into_iter().map(&mut part).collect())
    }

    /// The length that a value would have.
    fn spliced_length(&self, key: &[u8], offset: Option<u32>, bytes: &[u8]) -> usize {
        let old = self.get(key).map_or(0, Bytes::len);
        match offset {
            Some(_) if bytes.is_empty() => old,
            Some(offset) => old.max((offset as usize).saturating_add(bytes.len())),
            None => old + bytes.len(),
        }
    }

    fn splice(&mut self, key: Bytes, offset: Option<u32>, bytes: &[u8]) -> KvResult {
        let length = self.spliced_length(&key, offset, bytes);
        if length > VALUE_BYTES_MAX {
            return KvResult::TooLarge;
        }
        if offset.is_none() || !bytes.is_empty() {
            let old = self.get(&key).map(Bytes::as_ref).unwrap_or_default();
            let start = offset.map_or(old.len(), |offset| offset as usize);
            let mut value = Vec::with_capacity(length);
            value.extend_from_slice(old);
            value.resize(length, 0);
            value[start..start + bytes.len()].copy_from_slice(bytes);
            let written = self.write_all([(key, value.into())]);
            if written != KvResult::Done {
                return written;
            }
        }
        KvResult::Integer(length as i64)
    }

    fn range(&self, from: Bound<&Bytes>, limit: usize, bytes: usize, keys_only: bool) -> KvResult {
        let (limit, mut budget) = (limit.min(LIST_MAX), bytes.min(RESULT_BYTES_MAX));
        let mut entries = Vec::new();
        for key in self.keys.range::<Bytes, _>((from, Bound::Unbounded)) {
            let value = if keys_only { None } else { self.get(key).cloned() }.unwrap_or_default();
            let size = entry_bytes(key, &value);
            // The first entry is given however small the budget, so that whoever walks over all comes to an end.
            if entries.len() == limit || (size > budget && !entries.is_empty()) {
                return KvResult::Range { entries, more: true };
            }
            budget = budget.saturating_sub(size);
            entries.push((key.clone(), value));
        }
        KvResult::Range { entries, more: false }
    }

    fn apply(&mut self, operation: KvOperation) -> KvResult {
        match operation {
            KvOperation::Set { key, value, condition } => match (condition, self.get(&key).is_some()) {
                (Condition::Always, _) | (Condition::Absent, false) | (Condition::Present, true) => {
                    self.write_all([(key, value)])
                }
                (Condition::Absent, true) | (Condition::Present, false) => KvResult::NotDone,
            },
            KvOperation::MultiSet { entries } => self.write_all(entries),
            KvOperation::Delete { keys } => KvResult::Count(keys.iter().map(|key| u64::from(self.remove(key))).sum()),
            KvOperation::CompareAndSet { key, expected, value } => {
                if self.get(&key) != expected.as_ref() {
                    return KvResult::NotDone;
                }
                if let Some(value) = value {
                    return self.write_all([(key, value)]);
                }
                self.remove(&key);
                KvResult::Done
            }
            KvOperation::Increment { key, by } => self.increment(key, by),
            KvOperation::Splice { key, offset, bytes } => self.splice(key, offset, &bytes),
            KvOperation::Transaction { conditions, operations } => self.transact(&conditions, operations),
            KvOperation::Get { .. }
            | KvOperation::MultiGet { .. }
            | KvOperation::Range { .. }
            | KvOperation::Count
            | KvOperation::Exists { .. } => self.answer(&operation).expect("read-only operations have an answer"),
        }
    }

    fn increment(&mut self, key: Bytes, by: i64) -> KvResult {
        let Some(number) = self.get(&key).map_or(Some(0), |value| parse_integer(value)) else {
            return KvResult::NotAnInteger;
        };
        let Some(sum) = number.checked_add(by) else { return KvResult::Overflow };
        match self.write_all([(key, sum.to_string().into())]) {
            KvResult::Done => KvResult::Integer(sum),
            refused => refused,
        }
    }

    /// Writes all entries if there is room for all, otherwise none.
    fn write_all(&mut self, entries: impl IntoIterator<Item = (Bytes, Bytes)>) -> KvResult {
        let entries: BTreeMap<Bytes, Bytes> = entries.into_iter().collect();
        if !self.has_room(&entries) {
            return KvResult::Full;
        }
        for (key, value) in &entries {
            self.write(key, value);
            self.note(key, Some(value));
        }
        KvResult::Done
    }

    fn has_room(&self, entries: &BTreeMap<Bytes, Bytes>) -> bool {
        let before = |number| self.buckets.get(&number).map_or(0, |bucket| bucket.bytes);
        let mut buckets: BTreeMap<PageNumber, usize> = BTreeMap::new();
        for (key, value) in entries {
            let number = bucket_of(key);
            let bytes = buckets.entry(number).or_insert_with(|| before(number));
            *bytes += entry_bytes(key, value);
            *bytes -= self.get(key).map_or(0, |old| entry_bytes(key, old));
        }
        let before: usize = buckets.keys().copied().map(before).sum();
        let after: usize = buckets.values().sum();
        buckets.values().all(|&bytes| BUCKET_OVERHEAD + bytes <= PAGE_BYTES_MAX)
            && self.bytes - before as u64 + after as u64 <= TOTAL_BYTES_MAX
    }

    /// Writes an entry for which there is room. Key and value are copied: as slices of the operation or page that
    /// they came in they would keep all of it in memory.
    fn write(&mut self, key: &[u8], value: &[u8]) {
        let number = bucket_of(key);
        let bucket = self.buckets.entry(number).or_default();
        let (added, mut removed) = (entry_bytes(key, value), 0);
        let value = Bytes::copy_from_slice(value);
        if let Some(place) = bucket.entries.get_mut(key) {
            removed = entry_bytes(key, place);
            *place = value;
        } else {
            let key = Bytes::copy_from_slice(key);
            self.keys.insert(key.clone());
            bucket.entries.insert(key, value);
        }
        bucket.bytes = bucket.bytes + added - removed;
        self.written.insert(number);
        self.bytes = self.bytes + added as u64 - removed as u64;
    }

    /// Whether there was such an entry.
    fn remove(&mut self, key: &[u8]) -> bool {
        let number = bucket_of(key);
        let Some(bucket) = self.buckets.get_mut(&number) else { return false };
        let Some(value) = bucket.entries.remove(key) else { return false };
        bucket.bytes -= entry_bytes(key, &value);
        if bucket.entries.is_empty() {
            self.buckets.remove(&number);
        }
        self.written.insert(number);
        self.note(key, None);
        self.bytes -= entry_bytes(key, &value) as u64;
        self.keys.remove(key);
        true
    }

    /// Notes what was written for [`Service::take_written`]; an entry that was removed has no value.
    fn note(&mut self, key: &[u8], value: Option<&[u8]>) {
        let lengths = [key.len() as u32, value.map_or(u32::MAX, |value| value.len() as u32)].map(u32::to_le_bytes);
        let parts = [value.unwrap_or_default(), key, &lengths.concat(), &self.effects.0];
        self.effects = Digest::of_parts(Domain::Effects, &parts);
    }

    /// Replaces a bucket by what a page says.
    fn load_bucket(&mut self, number: PageNumber, page: Option<Bytes>) -> Result<(), BadState> {
        let old = self.buckets.remove(&number).unwrap_or_default();
        self.bytes -= old.bytes as u64;
        for key in old.entries.keys() {
            self.keys.remove(key);
        }
        if let Some(page) = page {
            let entries = parse_page(page).map_err(|_| BadState)?;
            let ascending = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
            if entries.is_empty() || !ascending || entries.iter().any(|(key, _)| bucket_of(key) != number) {
                return Err(BadState);
            }
            for (key, value) in entries {
                self.write(&key, &value);
            }
        }
        self.written.remove(&number);
        Ok(())
    }
}

impl Bucket {
    /// The bucket as a page.
    fn page(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BUCKET_OVERHEAD + self.bytes);
        (self.entries.len() as u32).encode(&mut out);
        for (key, value) in &self.entries {
            encode_payload(key, &mut out);
            encode_payload(value, &mut out);
        }
        out
    }
}

fn parse_page(page: Bytes) -> Result<Vec<(Bytes, Bytes)>, WireError> {
    let mut reader = Reader::new(page);
    let length = reader.length(PAGE_BYTES_MAX, ENTRY_OVERHEAD)?;
    let entries = (0..length).map(|_| operation::entry(&mut reader)).collect::<Result<_, _>>()?;
    reader.finish()?;
    Ok(entries)
}

impl Service for Kv {
    fn execute(&mut self, operation: &[u8], _agreed: &Agreed) -> Bytes {
        let result = match KvOperation::from_bytes(Bytes::copy_from_slice(operation)) {
            Ok(operation) => self.apply(operation),
            Err(_) => KvResult::Malformed,
        };
        result.to_bytes().into()
    }

    fn take_written(&mut self) -> Digest {
        core::mem::replace(&mut self.effects, Digest::ZERO)
    }

    fn query(&self, operation: &[u8], _asker: &Asker) -> Result<Bytes, NotReadOnly> {
        let result = match KvOperation::from_bytes(Bytes::copy_from_slice(operation)) {
            Ok(operation) => self.answer(&operation).ok_or(NotReadOnly)?,
            Err(_) => KvResult::Malformed,
        };
        Ok(result.to_bytes().into())
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        for number in core::mem::take(&mut self.written) {
            write(number, self.buckets.get(&number).map(|bucket| bucket.page().into()));
        }
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        for (number, page) in pages {
            if number >= BUCKETS {
                return Err(BadState);
            }
            self.load_bucket(number, page)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
