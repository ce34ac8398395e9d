//! What can be asked of the key-value service. The encodings are canonical and bounded; bytes that are no operation are
//! answered with [`KvResult::Malformed`] by every replica.

use super::deadline::{DeadlineCondition, Until};
use super::parts::{encode_entries, encode_keys, encode_optional, entry, key, list, optional_value, value};
#[cfg(doc)]
use super::{KvResult, LIST_MAX, RESULT_BYTES_MAX, VALUE_BYTES_MAX};
use crate::wire::{Reader, Sink, Wire, WireError, encode_payload};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;

/// When a [`KvOperation::Set`] writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// In any case.
    #[default]
    Always,
    /// Only if the key has no value.
    Absent,
    /// Only if the key has a value.
    Present,
}

impl Wire for Condition {
    fn encode(&self, out: &mut impl Sink) {
        out.push(match self {
            Self::Always => 0,
            Self::Absent => 1,
            Self::Present => 2,
        });
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::Always),
            1 => Ok(Self::Absent),
            2 => Ok(Self::Present),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// An operation. [`Wire::to_bytes`] gives what a client submits. Each is atomic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KvOperation {
    /// Read: [`KvResult::Value`].
    Get {
        /// Whose value.
        key: Bytes,
    },
    /// Read: [`KvResult::Values`] in the order of the keys, or [`KvResult::TooLarge`].
    MultiGet {
        /// Whose values, at most [`LIST_MAX`].
        keys: Vec<Bytes>,
    },
    /// Read: [`KvResult::Range`], at least one entry if there is one and `limit` is not 0.
    Range {
        /// Where to begin.
        from: Bytes,
        /// Whether `from` itself is wanted.
        inclusive: bool,
        /// The most entries wanted; [`LIST_MAX`] bounds it.
        limit: u32,
        /// The most bytes wanted, counted as for [`RESULT_BYTES_MAX`], which bounds it.
        bytes: u32,
        /// Leave the values empty.
        keys_only: bool,
    },
    /// Read: how many keys have a value, as [`KvResult::Count`].
    Count,
    /// Read: how many of the keys have a value, as [`KvResult::Count`]. A key that stands twice counts twice.
    Exists {
        /// Which, at most [`LIST_MAX`].
        keys: Vec<Bytes>,
    },
    /// [`KvResult::Done`], or [`KvResult::NotDone`] if the condition does not hold. The key has no deadline then.
    Set {
        /// Which key.
        key: Bytes,
        /// Its new value.
        value: Bytes,
        /// When to write.
        condition: Condition,
    },
    /// Writes all or, if there is no room, nothing. If a key stands twice, its last value counts. [`KvResult::Done`].
    /// The keys have no deadlines then.
    MultiSet {
        /// Keys and new values, at most [`LIST_MAX`].
        entries: Vec<(Bytes, Bytes)>,
    },
    /// Removes keys: how many had a value, as [`KvResult::Count`].
    Delete {
        /// Which, at most [`LIST_MAX`].
        keys: Vec<Bytes>,
    },
    /// [`KvResult::Done`], or [`KvResult::NotDone`] if the value is not the expected one. A key that was written has
    /// no deadline then.
    CompareAndSet {
        /// Which key.
        key: Bytes,
        /// The value that it must have now, `None`: none.
        expected: Option<Bytes>,
        /// The value that it gets, `None`: it is removed.
        value: Option<Bytes>,
    },
    /// Adds to a value that is a decimal integer; no value counts as 0. [`KvResult::Integer`] with the sum.
    Increment {
        /// Which key.
        key: Bytes,
        /// By how much.
        by: i64,
    },
    /// Several operations as one, with nothing in between: [`KvResult::Transaction`] with their results in order, or
    /// [`KvResult::NotDone`] and none of them if a condition does not hold. One that fails is as if it were not there;
    /// the others are done all the same. A read whose answer would bring the answers of all above
    /// [`RESULT_BYTES_MAX`] is [`KvResult::TooLarge`].
    Transaction {
        /// Keys and the values that they must have before the first operation, `None`: none. At most [`LIST_MAX`].
        conditions: Vec<(Bytes, Option<Bytes>)>,
        /// At most [`LIST_MAX`], and neither [`KvOperation::Range`] nor a transaction.
        operations: Vec<Self>,
    },
    /// Writes into a value. No value counts as an empty one, and a gap is filled with zeros; but no bytes at an offset
    /// write nothing. [`KvResult::Integer`] with the length that the value has then, or [`KvResult::TooLarge`] and
    /// nothing changed if that is more than [`VALUE_BYTES_MAX`].
    Splice {
        /// Whose value.
        key: Bytes,
        /// Where to, in bytes from its beginning; `None`: behind its end.
        offset: Option<u32>,
        /// What is there then.
        bytes: Bytes,
    },
    /// As [`KvOperation::Set`], with a deadline. One that is not ahead removes the key.
    SetUntil {
        /// Which key.
        key: Bytes,
        /// Its new value.
        value: Bytes,
        /// When to write.
        condition: Condition,
        /// How long it lives; `None`: as long as the value before.
        until: Option<Until>,
    },
    /// Gives a key another deadline. One that is not ahead removes the key. [`KvResult::Done`], or
    /// [`KvResult::NotDone`] if there is no such key or the condition does not hold.
    Expire {
        /// Which key.
        key: Bytes,
        /// How long it lives.
        until: Until,
        /// When to do it.
        condition: DeadlineCondition,
    },
    /// Takes the deadline off a key. [`KvResult::Done`], or [`KvResult::NotDone`] if it had none.
    Persist {
        /// Which key.
        key: Bytes,
    },
    /// Reads a key's deadline and the agreed time, so it is ordered: [`KvResult::Deadline`], or
    /// [`KvResult::NotDone`] if there is no such key.
    Deadline {
        /// Whose deadline.
        key: Bytes,
    },
    /// Read: how many keys have a deadline, as [`KvResult::Count`].
    CountDeadlines,
    /// Read: the same as the operation in it. As a query it is refused as not read-only if a key that it depends on
    /// has a deadline at or before what the asker takes for the time: only in order can the key be removed.
    AsOf {
        /// What the asker's clock says, in milliseconds since the Unix epoch.
        now_ms: u64,
        /// What it asks: anything but another one of these.
        operation: Box<Self>,
    },
}

impl KvOperation {
    /// Whether it leaves values and deadlines as they are.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Get { .. }
            | Self::MultiGet { .. }
            | Self::Range { .. }
            | Self::Count
            | Self::Exists { .. }
            | Self::Deadline { .. }
            | Self::CountDeadlines => true,
            Self::Set { .. }
            | Self::MultiSet { .. }
            | Self::Delete { .. }
            | Self::CompareAndSet { .. }
            | Self::Increment { .. }
            | Self::Splice { .. }
            | Self::SetUntil { .. }
            | Self::Expire { .. }
            | Self::Persist { .. } => false,
            Self::Transaction { operations, .. } => operations.iter().all(Self::is_read_only),
            Self::AsOf { operation, .. } => operation.is_read_only(),
        }
    }

    /// Whether it may be asked as a query: it reads, and not the agreed time.
    pub fn is_query(&self) -> bool {
        match self {
            Self::Deadline { .. } => false,
            Self::Transaction { operations, .. } => operations.iter().all(Self::is_query),
            Self::AsOf { operation, .. } => operation.is_query(),
            _ => self.is_read_only(),
        }
    }

    /// Whether it depends on keys that it does not name.
    pub(super) fn looks_at_all(&self) -> bool {
        match self {
            Self::Range { .. } | Self::Count | Self::CountDeadlines => true,
            Self::Transaction { operations, .. } => operations.iter().any(Self::looks_at_all),
            Self::AsOf { operation, .. } => operation.looks_at_all(),
            _ => false,
        }
    }

    /// Shows every key that it names.
    pub(super) fn for_each_key<'a>(&'a self, see: &mut dyn FnMut(&'a Bytes)) {
        match self {
            Self::Get { key }
            | Self::Set { key, .. }
            | Self::CompareAndSet { key, .. }
            | Self::Increment { key, .. }
            | Self::Splice { key, .. }
            | Self::SetUntil { key, .. }
            | Self::Expire { key, .. }
            | Self::Persist { key }
            | Self::Deadline { key } => see(key),
            Self::MultiGet { keys } | Self::Exists { keys } | Self::Delete { keys } => keys.iter().for_each(see),
            Self::MultiSet { entries } => entries.iter().for_each(|(key, _)| see(key)),
            Self::Transaction { conditions, operations } => {
                conditions.iter().for_each(|(key, _)| see(key));
                operations.iter().for_each(|operation| operation.for_each_key(see));
            }
            Self::AsOf { operation, .. } => operation.for_each_key(see),
            Self::Range { .. } | Self::Count | Self::CountDeadlines => {}
        }
    }
}

fn condition(reader: &mut Reader) -> Result<(Bytes, Option<Bytes>), WireError> {
    Ok((key(reader)?, optional_value(reader)?))
}

/// An operation of a transaction. It is no transaction itself, so decoding has no depth, and no range: each may
/// look at [`LIST_MAX`] entries for a few bytes of operation.
fn part(reader: &mut Reader) -> Result<KvOperation, WireError> {
    match reader.tag()? {
        3 | 11 | 18 => Err(WireError::UnknownTag),
        tag => KvOperation::decode_tagged(tag, reader),
    }
}

/// What is asked as of some time.
fn asked(reader: &mut Reader) -> Result<KvOperation, WireError> {
    match reader.tag()? {
        18 => Err(WireError::UnknownTag),
        tag => KvOperation::decode_tagged(tag, reader),
    }
}

impl Wire for KvOperation {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Get { key } => {
                out.push(1);
                encode_payload(key, out);
            }
            Self::MultiGet { keys } => {
                out.push(2);
                encode_keys(keys, out);
            }
            Self::Range { from, inclusive, limit, bytes, keys_only } => {
                out.push(3);
                encode_payload(from, out);
                inclusive.encode(out);
                limit.encode(out);
                bytes.encode(out);
                keys_only.encode(out);
            }
            Self::Count => out.push(4),
            Self::Set { key, value, condition } => {
                out.push(5);
                encode_payload(key, out);
                encode_payload(value, out);
                condition.encode(out);
            }
            Self::MultiSet { entries } => {
                out.push(6);
                encode_entries(entries, out);
            }
            Self::Delete { keys } => {
                out.push(7);
                encode_keys(keys, out);
            }
            Self::CompareAndSet { key, expected, value } => {
                out.push(8);
                encode_payload(key, out);
                encode_optional(expected.as_ref(), out);
                encode_optional(value.as_ref(), out);
            }
            Self::Increment { key, by } => {
                out.push(9);
                encode_payload(key, out);
                by.encode(out);
            }
            Self::Exists { keys } => {
                out.push(10);
                encode_keys(keys, out);
            }
            Self::Transaction { conditions, operations } => {
                out.push(11);
                (conditions.len() as u32).encode(out);
                for (key, expected) in conditions {
                    encode_payload(key, out);
                    encode_optional(expected.as_ref(), out);
                }
                (operations.len() as u32).encode(out);
                operations.iter().for_each(|operation| operation.encode(out));
            }
            Self::Splice { key, offset, bytes } => {
                out.push(12);
                encode_payload(key, out);
                offset.is_some().encode(out);
                if let Some(offset) = offset {
                    offset.encode(out);
                }
                encode_payload(bytes, out);
            }
            _ => self.encode_timed(out),
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let tag = reader.tag()?;
        Self::decode_tagged(tag, reader)
    }
}

impl KvOperation {
    /// What has to do with time.
    fn encode_timed(&self, out: &mut impl Sink) {
        match self {
            Self::SetUntil { key, value, condition, until } => {
                out.push(13);
                encode_payload(key, out);
                encode_payload(value, out);
                condition.encode(out);
                until.encode(out);
            }
            Self::Expire { key, until, condition } => {
                out.push(14);
                encode_payload(key, out);
                until.encode(out);
                condition.encode(out);
            }
            Self::Persist { key } => {
                out.push(15);
                encode_payload(key, out);
            }
            Self::Deadline { key } => {
                out.push(16);
                encode_payload(key, out);
            }
            Self::CountDeadlines => out.push(17),
            Self::AsOf { now_ms, operation } => {
                out.push(18);
                now_ms.encode(out);
                operation.encode(out);
            }
            _ => unreachable!("the others are encoded where this is called"),
        }
    }

    fn decode_tagged(tag: u8, reader: &mut Reader) -> Result<Self, WireError> {
        Ok(match tag {
            1 => Self::Get { key: key(reader)? },
            2 => Self::MultiGet { keys: list(reader, 4, key)? },
            3 => Self::Range {
                from: key(reader)?,
                inclusive: Wire::decode(reader)?,
                limit: Wire::decode(reader)?,
                bytes: Wire::decode(reader)?,
                keys_only: Wire::decode(reader)?,
            },
            4 => Self::Count,
            5 => Self::Set { key: key(reader)?, value: value(reader)?, condition: Wire::decode(reader)? },
            6 => Self::MultiSet { entries: list(reader, 8, entry)? },
            7 => Self::Delete { keys: list(reader, 4, key)? },
            8 => Self::CompareAndSet {
                key: key(reader)?,
                expected: optional_value(reader)?,
                value: optional_value(reader)?,
            },
            9 => Self::Increment { key: key(reader)?, by: Wire::decode(reader)? },
            10 => Self::Exists { keys: list(reader, 4, key)? },
            11 => Self::Transaction { conditions: list(reader, 5, condition)?, operations: list(reader, 1, part)? },
            12 => Self::Splice {
                key: key(reader)?,
                offset: if bool::decode(reader)? { Some(Wire::decode(reader)?) } else { None },
                bytes: value(reader)?,
            },
            13 => Self::SetUntil {
                key: key(reader)?,
                value: value(reader)?,
                condition: Wire::decode(reader)?,
                until: Wire::decode(reader)?,
            },
            14 => Self::Expire { key: key(reader)?, until: Wire::decode(reader)?, condition: Wire::decode(reader)? },
            15 => Self::Persist { key: key(reader)? },
            16 => Self::Deadline { key: key(reader)? },
            17 => Self::CountDeadlines,
            18 => Self::AsOf { now_ms: Wire::decode(reader)?, operation: Box::new(asked(reader)?) },
            _ => return Err(WireError::UnknownTag),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::KvResult;
    use super::*;
    use crate::services::kv::{KEY_BYTES_MAX, LIST_MAX, VALUE_BYTES_MAX};
    use alloc::vec;
    use proptest::prelude::*;

    fn short(bytes: &'static str) -> Bytes {
        Bytes::from_static(bytes.as_bytes())
    }

    /// One of each, in the order of the tags.
    fn operations() -> Vec<KvOperation> {
        let key = short("k");
        vec![
            KvOperation::Get { key: key.clone() },
            KvOperation::MultiGet { keys: vec![key.clone(), short("")] },
            KvOperation::Range { from: key.clone(), inclusive: true, limit: 2, bytes: 3, keys_only: false },
            KvOperation::Count,
            KvOperation::Set { key: key.clone(), value: short("v"), condition: Condition::Absent },
            KvOperation::MultiSet { entries: vec![(key.clone(), short("v"))] },
            KvOperation::Delete { keys: vec![key.clone()] },
            KvOperation::CompareAndSet { key: key.clone(), expected: None, value: Some(short("v")) },
            KvOperation::Increment { key: key.clone(), by: -1 },
            KvOperation::Exists { keys: vec![key.clone()] },
            KvOperation::Transaction {
                conditions: vec![(key.clone(), None), (short(""), Some(short("v")))],
                operations: vec![KvOperation::Count, KvOperation::Get { key: key.clone() }],
            },
            KvOperation::Splice { key: key.clone(), offset: Some(7), bytes: short("v") },
            KvOperation::SetUntil {
                key: key.clone(),
                value: short("v"),
                condition: Condition::Present,
                until: Some(Until::In(-1)),
            },
            KvOperation::Expire { key: key.clone(), until: Until::At(7), condition: DeadlineCondition::Later },
            KvOperation::Persist { key: key.clone() },
            KvOperation::Deadline { key: key.clone() },
            KvOperation::CountDeadlines,
            KvOperation::AsOf { now_ms: 7, operation: KvOperation::Get { key }.into() },
        ]
    }

    fn results() -> Vec<KvResult> {
        vec![
            KvResult::Done,
            KvResult::NotDone,
            KvResult::Value(Some(short("v"))),
            KvResult::Values(vec![None, Some(short("v"))]),
            KvResult::Range { entries: vec![(short("k"), short("v"))], more: true },
            KvResult::Count(7),
            KvResult::Integer(-7),
            KvResult::NotAnInteger,
            KvResult::Overflow,
            KvResult::Full,
            KvResult::TooLarge,
            KvResult::Malformed,
            KvResult::Denied,
            KvResult::Transaction(vec![KvResult::Done, KvResult::Value(None)]),
            KvResult::Deadline { now_ms: 7, deadline_ms: Some(8) },
        ]
    }

    #[test]
    fn encodings_read_back_and_have_their_tags() {
        for (tag, operation) in (1..).zip(operations()) {
            assert_eq!(operation.to_bytes()[0], tag);
            assert_eq!(KvOperation::from_bytes(operation.to_bytes().into()), Ok(operation));
        }
        for (tag, result) in (0..).zip(results()) {
            assert_eq!(result.to_bytes()[0], tag);
            assert_eq!(KvResult::from_bytes(result.to_bytes().into()), Ok(result));
        }
    }

    #[test]
    fn keys_and_values_are_bounded() {
        let set = |key: usize, value: usize| {
            let (key, value) = (vec![0; key].into(), vec![0; value].into());
            KvOperation::from_bytes(KvOperation::Set { key, value, condition: Condition::Always }.to_bytes().into())
        };
        assert!(set(KEY_BYTES_MAX, VALUE_BYTES_MAX).is_ok());
        assert_eq!(set(KEY_BYTES_MAX + 1, 0), Err(WireError::TooLong));
        assert_eq!(set(0, VALUE_BYTES_MAX + 1), Err(WireError::TooLong));
    }

    #[test]
    fn operations_hold_operations_to_a_depth_of_two() {
        let wrap = |operation| {
            let whole = KvOperation::Transaction { conditions: vec![], operations: vec![operation] };
            KvOperation::from_bytes(whole.to_bytes().into())
        };
        assert!(wrap(KvOperation::Count).is_ok());
        for operation in operations() {
            let refused = matches!(
                operation,
                KvOperation::Transaction { .. } | KvOperation::Range { .. } | KvOperation::AsOf { .. }
            );
            assert_eq!(wrap(operation.clone()).is_err(), refused, "{operation:?}");
        }
        for result in results() {
            let refused = matches!(result, KvResult::Transaction(_) | KvResult::Range { .. });
            let read = KvResult::from_bytes(KvResult::Transaction(vec![result.clone()]).to_bytes().into());
            assert_eq!(read.is_err(), refused, "{result:?}");
        }
        for operation in operations() {
            let refused = matches!(operation, KvOperation::AsOf { .. });
            let whole = KvOperation::AsOf { now_ms: 1, operation: operation.clone().into() };
            assert_eq!(KvOperation::from_bytes(whole.to_bytes().into()).is_err(), refused, "{operation:?}");
        }
        let many = KvOperation::Transaction { conditions: vec![], operations: vec![KvOperation::Count; LIST_MAX + 1] };
        assert_eq!(KvOperation::from_bytes(many.to_bytes().into()), Err(WireError::TooLong));
    }

    proptest! {
        #[test]
        fn what_decodes_is_canonical(mut bytes in proptest::collection::vec(0u8..4, 0..24), tag in 0u8..20) {
            bytes.insert(0, tag);
            if let Ok(operation) = KvOperation::from_bytes(bytes.clone().into()) {
                prop_assert_eq!(operation.to_bytes(), bytes.clone());
            }
            if let Ok(result) = KvResult::from_bytes(bytes.clone().into()) {
                prop_assert_eq!(result.to_bytes(), bytes);
            }
        }
    }
}
