//! Operations of one connection on their way to the service, and their results on the way back.
//!
//! A run of reads becomes one operation, and so does a run of writes, or of what has to do with deadlines. Other
//! operations go one by one, each after the result of the one before, so that all take effect in the order in which
//! they came.

use crate::store::{Store, StoreError};
use bezant_core::services::kv::{Condition, KvOperation, KvResult};
use std::collections::VecDeque;

/// Most operations that wait.
pub const BATCH_OPERATIONS_MAX: usize = 1_024;
/// Bytes of keys and values after which a batch is sent off. One command may exceed them.
pub const BATCH_BYTES_MAX: usize = 256 << 10;

/// Operations that are waiting, and results that nobody has asked for yet.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    operations: VecDeque<KvOperation>,
    bytes: usize,
    results: VecDeque<Result<KvResult, StoreError>>,
}

impl Batch {
    /// Adds operations whose keys and values are `bytes` long.
    pub(crate) fn extend(&mut self, operations: Vec<KvOperation>, bytes: usize) {
        self.operations.extend(operations);
        self.bytes += bytes;
    }

    /// Whether it is time to send it off.
    pub(crate) fn is_full(&self) -> bool {
        self.operations.len() >= BATCH_OPERATIONS_MAX || self.bytes >= BATCH_BYTES_MAX
    }

    /// The result of the operation after the one asked for before. Carries out those that are waiting, as many at
    /// once as possible, when there is no result left.
    pub(crate) fn next_result(&mut self, store: &dyn Store) -> Result<KvResult, StoreError> {
        if self.results.is_empty() {
            self.bytes = 0;
            let run = take_run(&mut self.operations);
            call_run(store, &run, &mut self.results);
        }
        self.results.pop_front().expect("there is a result for every operation, and one result is asked for each")
    }
}

const fn is_get(operation: &KvOperation) -> bool {
    matches!(operation, KvOperation::Get { .. })
}

const fn is_plain_set(operation: &KvOperation) -> bool {
    matches!(operation, KvOperation::Set { condition: Condition::Always, .. })
}

const fn is_timed(operation: &KvOperation) -> bool {
    matches!(
        operation,
        KvOperation::SetUntil { .. }
            | KvOperation::Expire { .. }
            | KvOperation::Persist { .. }
            | KvOperation::Deadline { .. }
    )
}

/// Takes the operations at the front that can be carried out as one.
fn take_run(operations: &mut VecDeque<KvOperation>) -> Vec<KvOperation> {
    let length_of =
        |alike: fn(&KvOperation) -> bool| operations.iter().take_while(|&operation| alike(operation)).count();
    let length = length_of(is_get).max(length_of(is_plain_set)).max(length_of(is_timed));
    let length = length.clamp(1, BATCH_OPERATIONS_MAX);
    operations.drain(..length.min(operations.len())).collect()
}

/// Carries out a run: one result for each of its operations.
fn call_run(store: &dyn Store, run: &[KvOperation], results: &mut VecDeque<Result<KvResult, StoreError>>) {
    if let [single] = run {
        results.push_back(store.call(single));
        return;
    }
    match store.call(&merge(run)) {
        Ok(KvResult::Values(values)) if values.len() == run.len() => {
            results.extend(values.into_iter().map(|value| Ok(KvResult::Value(value))));
        }
        Ok(KvResult::Transaction(parts)) if parts.len() == run.len() => results.extend(parts.into_iter().map(Ok)),
        Ok(KvResult::Done) => results.extend(run.iter().map(|_| Ok(KvResult::Done))),
        // Too much together, and nothing was changed: one half may do, and in the end one operation alone.
        Ok(KvResult::TooLarge | KvResult::Full) => {
            let (first, second) = run.split_at(run.len() / 2);
            call_run(store, first, results);
            call_run(store, second, results);
        }
        other => results.extend(run.iter().map(|_| other.clone())),
    }
}

/// One operation for a run of several.
fn merge(run: &[KvOperation]) -> KvOperation {
    if run.iter().all(is_timed) {
        return KvOperation::Transaction { conditions: Vec::new(), operations: run.to_vec() };
    }
    let (mut keys, mut entries) = (Vec::new(), Vec::new());
    for operation in run {
        match operation {
            KvOperation::Get { key } => keys.push(key.clone()),
            KvOperation::Set { key, value, .. } => entries.push((key.clone(), value.clone())),
            _ => unreachable!("a run of several holds reads or writes"),
        }
    }
    if keys.is_empty() { KvOperation::MultiSet { entries } } else { KvOperation::MultiGet { keys } }
}
