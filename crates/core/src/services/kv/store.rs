//! The store itself: what is in it, and what each operation does.

use super::bucket::{
    BUCKET_OVERHEAD, BUCKETS, Bucket, DEADLINE_OVERHEAD, ENTRY_OVERHEAD, Entry, bucket_of, entry_bytes,
};
use super::deadline::{Over, milliseconds};
use super::operation::{Condition, KvOperation};
use super::parts::RESULT_BYTES_MAX;
use super::result::KvResult;
use crate::digest::{Digest, Domain};
use crate::service::{Agreed, Asker, BadState, NotReadOnly, PAGE_BYTES_MAX, PageNumber, Service};
use crate::services::kv::{LIST_MAX, VALUE_BYTES_MAX};
use crate::wire::Wire;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Bound;

/// The most bytes of all buckets together, as encoded.
pub const TOTAL_BYTES_MAX: u64 = 1 << 30;
/// The most bytes of values that the splices of one transaction write: a short one may write a long value again.
pub(super) const SPLICED_BYTES_MAX: usize = 16 << 20;
/// What [`Kv::note`] says of an entry in the place of its value's length: it was removed, or has another deadline.
pub(super) const REMOVED: u32 = u32::MAX;
pub(super) const DEADLINE: u32 = u32::MAX - 1;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kv {
    /// By number; empty ones are not kept.
    pub(super) buckets: BTreeMap<PageNumber, Bucket>,
    /// Those that were written since they were saved.
    pub(super) written: BTreeSet<PageNumber>,
    /// A digest of what was written since it was asked for.
    pub(super) effects: Digest,
    /// The keys of all buckets.
    pub(super) keys: BTreeSet<Bytes>,
    /// Those with a deadline, the first to come first.
    pub(super) due: BTreeSet<(u64, Bytes)>,
    /// The sum over all buckets.
    pub(super) bytes: u64,
}

/// The number that a value stands for: decimal, in the shortest form, as Redis has it.
pub(super) fn parse_integer(value: &[u8]) -> Option<i64> {
    let text = core::str::from_utf8(value).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The result of a part of a transaction, if there is room for it. Only reads have results that take room.
pub(super) fn fit(result: KvResult, room: &mut usize) -> KvResult {
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

    pub(super) fn entry(&self, key: &[u8]) -> Option<&Entry> {
        self.buckets.get(&bucket_of(key))?.entries.get(key)
    }

    fn get(&self, key: &[u8]) -> Option<&Bytes> {
        Some(&self.entry(key)?.value)
    }

    /// Answers a query; `None` if it is none, or must be ordered.
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
            KvOperation::CountDeadlines => KvResult::Count(self.due.len() as u64),
            KvOperation::Exists { keys } => {
                KvResult::Count(keys.iter().filter(|key| self.get(key).is_some()).count() as u64)
            }
            KvOperation::Transaction { conditions, operations } => {
                if !operation.is_query() {
                    return None;
                }
                if !self.all_hold(conditions) {
                    return Some(KvResult::NotDone);
                }
                let mut room = RESULT_BYTES_MAX;
                let results = operations.iter().map(|part| Some(fit(self.answer(part)?, &mut room)));
                KvResult::Transaction(results.collect::<Option<_>>()?)
            }
            KvOperation::AsOf { now_ms, operation } => {
                let is_due = self.first_deadline(operation).is_some_and(|deadline| deadline <= *now_ms);
                return if is_due { None } else { self.answer(operation) };
            }
            _ => return None,
        })
    }

    fn all_hold(&self, conditions: &[(Bytes, Option<Bytes>)]) -> bool {
        conditions.iter().all(|(key, expected)| self.get(key) == expected.as_ref())
    }

    /// Carries out a transaction. What it writes is noted operation by operation.
    fn transact(
        &mut self,
        conditions: &[(Bytes, Option<Bytes>)],
        operations: Vec<KvOperation>,
        now_ms: u64,
    ) -> KvResult {
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
            fit(self.apply(part, now_ms), &mut room)
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
            let entry = Entry { deadline_ms: self.deadline_of(&key), value: value.into() };
            let written = self.write_all([(key, entry)]);
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

    fn apply(&mut self, operation: KvOperation, now_ms: u64) -> KvResult {
        match operation {
            KvOperation::Set { key, value, condition } if self.allows(condition, &key) => {
                self.write_all([(key, Entry::lasting(value))])
            }
            KvOperation::SetUntil { key, value, condition, until } if self.allows(condition, &key) => {
                match self.deadline_for(&key, until, now_ms) {
                    Ok(deadline_ms) => self.write_all([(key, Entry { value, deadline_ms })]),
                    Err(Over) => {
                        self.remove(&key);
                        KvResult::Done
                    }
                }
            }
            KvOperation::Set { .. } | KvOperation::SetUntil { .. } => KvResult::NotDone,
            KvOperation::MultiSet { entries } => {
                self.write_all(entries.into_iter().map(|(key, value)| (key, Entry::lasting(value))))
            }
            KvOperation::Delete { keys } => KvResult::Count(keys.iter().map(|key| u64::from(self.remove(key))).sum()),
            KvOperation::CompareAndSet { key, expected, value } => {
                if self.get(&key) != expected.as_ref() {
                    return KvResult::NotDone;
                }
                if let Some(value) = value {
                    return self.write_all([(key, Entry::lasting(value))]);
                }
                self.remove(&key);
                KvResult::Done
            }
            KvOperation::Increment { key, by } => self.increment(key, by),
            KvOperation::Splice { key, offset, bytes } => self.splice(key, offset, &bytes),
            KvOperation::Transaction { conditions, operations } => self.transact(&conditions, operations, now_ms),
            KvOperation::Expire { key, until, condition } => self.expire(&key, until, condition, now_ms),
            KvOperation::Persist { key } => self.persist(&key),
            KvOperation::Deadline { key } => self.deadline(&key, now_ms),
            KvOperation::AsOf { operation, .. } => self.apply(*operation, now_ms),
            KvOperation::Get { .. }
            | KvOperation::MultiGet { .. }
            | KvOperation::Range { .. }
            | KvOperation::Count
            | KvOperation::CountDeadlines
            | KvOperation::Exists { .. } => self.answer(&operation).expect("queries have an answer"),
        }
    }

    fn allows(&self, condition: Condition, key: &[u8]) -> bool {
        match condition {
            Condition::Always => true,
            Condition::Absent => self.entry(key).is_none(),
            Condition::Present => self.entry(key).is_some(),
        }
    }

    fn increment(&mut self, key: Bytes, by: i64) -> KvResult {
        let Some(number) = self.get(&key).map_or(Some(0), |value| parse_integer(value)) else {
            return KvResult::NotAnInteger;
        };
        let Some(sum) = number.checked_add(by) else { return KvResult::Overflow };
        let entry = Entry { deadline_ms: self.deadline_of(&key), value: sum.to_string().into() };
        match self.write_all([(key, entry)]) {
            KvResult::Done => KvResult::Integer(sum),
            refused => refused,
        }
    }

    /// Writes all entries if there is room for all, otherwise none.
    fn write_all(&mut self, entries: impl IntoIterator<Item = (Bytes, Entry)>) -> KvResult {
        let entries: BTreeMap<Bytes, Entry> = entries.into_iter().collect();
        if !self.has_room(&entries) {
            return KvResult::Full;
        }
        for (key, entry) in &entries {
            self.write(key, entry);
            self.note(key, &entry.value, entry.value.len() as u32);
            if let Some(deadline_ms) = entry.deadline_ms {
                self.note(key, &deadline_ms.to_le_bytes(), DEADLINE);
            }
        }
        KvResult::Done
    }

    fn has_room(&self, entries: &BTreeMap<Bytes, Entry>) -> bool {
        let before = |number| self.buckets.get(&number).map_or(0, |bucket| bucket.bytes);
        let mut buckets: BTreeMap<PageNumber, usize> = BTreeMap::new();
        for (key, entry) in entries {
            let number = bucket_of(key);
            let bytes = buckets.entry(number).or_insert_with(|| before(number));
            *bytes += entry.bytes(key);
            *bytes -= self.entry(key).map_or(0, |old| old.bytes(key));
        }
        let before: usize = buckets.keys().copied().map(before).sum();
        let after: usize = buckets.values().sum();
        buckets.values().all(|&bytes| BUCKET_OVERHEAD + bytes <= PAGE_BYTES_MAX)
            && self.bytes - before as u64 + after as u64 <= TOTAL_BYTES_MAX
    }

    /// Writes an entry for which there is room. Key and value are copied: as slices of the operation or page that
    /// they came in they would keep all of it in memory.
    fn write(&mut self, key: &[u8], entry: &Entry) {
        let number = bucket_of(key);
        let bucket = self.buckets.entry(number).or_default();
        let (added, mut removed) = (entry.bytes(key), 0);
        let entry = Entry { value: Bytes::copy_from_slice(&entry.value), ..*entry };
        let new = entry.deadline_ms;
        let old = if let Some(place) = bucket.entries.get_mut(key) {
            removed = place.bytes(key);
            core::mem::replace(place, entry).deadline_ms
        } else {
            let key = Bytes::copy_from_slice(key);
            self.keys.insert(key.clone());
            bucket.entries.insert(key, entry);
            None
        };
        bucket.bytes = bucket.bytes + added - removed;
        self.written.insert(number);
        self.bytes = self.bytes + added as u64 - removed as u64;
        self.move_due(key, old, new);
    }

    /// Moves a key to its place among those that are due.
    fn move_due(&mut self, key: &[u8], old: Option<u64>, new: Option<u64>) {
        if old == new {
            return;
        }
        let key = self.keys.get(key).cloned().expect("every entry's key is there");
        let mut place = (old.unwrap_or_default(), key);
        if old.is_some() {
            self.due.remove(&place);
        }
        if let Some(new) = new {
            place.0 = new;
            self.due.insert(place);
        }
    }

    /// Gives an entry that is there another deadline, if there is room for it. Its value is not touched: it may be
    /// long, and one operation may do this often.
    pub(super) fn set_deadline(&mut self, key: &[u8], deadline_ms: Option<u64>) -> KvResult {
        let number = bucket_of(key);
        let bucket = self.buckets.get_mut(&number).expect("the entry is there");
        let entry = bucket.entries.get_mut(key).expect("the entry is there");
        let (old, removed) = (entry.deadline_ms, entry.bytes(key));
        let added = removed - old.map_or(0, |_| DEADLINE_OVERHEAD) + deadline_ms.map_or(0, |_| DEADLINE_OVERHEAD);
        let (in_bucket, in_all) = (bucket.bytes + added - removed, self.bytes + added as u64 - removed as u64);
        if added > removed && (BUCKET_OVERHEAD + in_bucket > PAGE_BYTES_MAX || in_all > TOTAL_BYTES_MAX) {
            return KvResult::Full;
        }
        entry.deadline_ms = deadline_ms;
        (bucket.bytes, self.bytes) = (in_bucket, in_all);
        self.written.insert(number);
        self.move_due(key, old, deadline_ms);
        self.note(key, &deadline_ms.unwrap_or_default().to_le_bytes(), DEADLINE);
        KvResult::Done
    }

    /// Whether there was such an entry.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        let number = bucket_of(key);
        let Some(bucket) = self.buckets.get_mut(&number) else { return false };
        let Some(entry) = bucket.entries.remove(key) else { return false };
        let bytes = entry.bytes(key);
        bucket.bytes -= bytes;
        if bucket.entries.is_empty() {
            self.buckets.remove(&number);
        }
        self.written.insert(number);
        self.note(key, &[], REMOVED);
        self.bytes -= bytes as u64;
        self.move_due(key, entry.deadline_ms, None);
        self.keys.remove(key);
        true
    }

    /// Notes what was written for [`Service::take_written`]: a value with its length, or what stands in that place.
    fn note(&mut self, key: &[u8], content: &[u8], length: u32) {
        let lengths = [key.len() as u32, length].map(u32::to_le_bytes);
        let parts = [content, key, &lengths.concat(), &self.effects.0];
        self.effects = Digest::of_parts(Domain::Effects, &parts);
    }

    /// Replaces a bucket by what a page says.
    fn load_bucket(&mut self, number: PageNumber, page: Option<Bytes>) -> Result<(), BadState> {
        let old = self.buckets.remove(&number).unwrap_or_default();
        self.bytes -= old.bytes as u64;
        for (key, entry) in old.entries {
            self.move_due(&key, entry.deadline_ms, None);
            self.keys.remove(&key);
        }
        if let Some(page) = page {
            let entries = Bucket::parse(page).map_err(|_| BadState)?;
            let ascending = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
            if entries.is_empty() || !ascending || entries.iter().any(|(key, _)| bucket_of(key) != number) {
                return Err(BadState);
            }
            for (key, entry) in entries {
                self.write(&key, &entry);
            }
        }
        self.written.remove(&number);
        Ok(())
    }
}

impl Service for Kv {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        let result = match KvOperation::from_bytes(Bytes::copy_from_slice(operation)) {
            Ok(operation) => {
                let now_ms = milliseconds(agreed.time);
                self.remove_due(&operation, now_ms);
                self.apply(operation, now_ms)
            }
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
