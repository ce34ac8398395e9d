//! What the store does when deadlines pass: see [`super::deadline`].

use super::deadline::{DeadlineCondition, Over, Until};
use super::operation::KvOperation;
use super::parts::LIST_MAX;
use super::result::KvResult;
use super::store::Kv;
use crate::services::kv::deadline::SWEPT_MAX;
use bytes::Bytes;

impl Kv {
    /// Removes keys that are due before the operation is carried out.
    pub(super) fn remove_due(&mut self, operation: &KvOperation, now_ms: u64) {
        let most = if operation.looks_at_all() { LIST_MAX } else { SWEPT_MAX };
        for _ in 0..most {
            match self.due.first() {
                Some((deadline, key)) if *deadline <= now_ms => {
                    let key = key.clone();
                    self.remove(&key);
                }
                _ => return,
            }
        }
        operation.for_each_key(&mut |key| {
            if self.deadline_of(key).is_some_and(|deadline| deadline <= now_ms) {
                self.remove(key);
            }
        });
    }

    /// The first deadline of all keys that the operation depends on.
    pub(super) fn first_deadline(&self, operation: &KvOperation) -> Option<u64> {
        if operation.looks_at_all() {
            return self.due.first().map(|(deadline, _)| *deadline);
        }
        let mut first = None;
        operation.for_each_key(&mut |key| {
            let deadline = self.deadline_of(key);
            first = first.into_iter().chain(deadline).min();
        });
        first
    }

    /// The deadline of a key that has one, in milliseconds since the Unix epoch, whatever the time is.
    pub fn deadline_of(&self, key: &[u8]) -> Option<u64> {
        self.entry(key)?.deadline_ms
    }

    /// The deadline of a value that is written; `Err` if that is over already.
    pub(super) fn deadline_for(&self, key: &[u8], until: Option<Until>, now_ms: u64) -> Result<Option<u64>, Over> {
        let Some(until) = until else { return Ok(self.deadline_of(key)) };
        let deadline = until.deadline(now_ms);
        if deadline > now_ms { Ok(Some(deadline)) } else { Err(Over) }
    }

    pub(super) fn expire(&mut self, key: &Bytes, until: Until, condition: DeadlineCondition, now_ms: u64) -> KvResult {
        let Some(entry) = self.entry(key) else { return KvResult::NotDone };
        let deadline = until.deadline(now_ms);
        if !condition.holds(entry.deadline_ms, deadline) {
            return KvResult::NotDone;
        }
        if deadline > now_ms {
            return self.set_deadline(key, Some(deadline));
        }
        self.remove(key);
        KvResult::Done
    }

    pub(super) fn persist(&mut self, key: &Bytes) -> KvResult {
        match self.deadline_of(key) {
            Some(_) => self.set_deadline(key, None),
            None => KvResult::NotDone,
        }
    }

    pub(super) fn deadline(&self, key: &[u8], now_ms: u64) -> KvResult {
        match self.entry(key) {
            Some(entry) => KvResult::Deadline { now_ms, deadline_ms: entry.deadline_ms },
            None => KvResult::NotDone,
        }
    }
}
