//! What can be asked of the key-value service and what it answers. The encodings are canonical and bounded; bytes
//! that are no operation are answered with [`KvResult::Malformed`] by every replica alike.

use crate::wire::{Reader, Sink, Wire, WireError, encode_payload};
use alloc::vec::Vec;
use bytes::Bytes;

/// The longest key, in bytes. A key may be empty.
pub const KEY_BYTES_MAX: usize = 4 << 10;
/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 512 << 10;
/// The most keys in one operation, and the most entries in one result.
pub const LIST_MAX: usize = 1 << 14;
/// The most bytes of keys and values in one result, each counted with 8 bytes more. Room for a longest key and value.
pub const RESULT_BYTES_MAX: usize = 768 << 10;

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
    /// [`KvResult::Done`], or [`KvResult::NotDone`] if the condition does not hold.
    Set {
        /// Which key.
        key: Bytes,
        /// Its new value.
        value: Bytes,
        /// When to write.
        condition: Condition,
    },
    /// Writes all or, if there is no room, nothing. If a key stands twice, its last value counts. [`KvResult::Done`].
    MultiSet {
        /// Keys and new values, at most [`LIST_MAX`].
        entries: Vec<(Bytes, Bytes)>,
    },
    /// Removes keys: how many had a value, as [`KvResult::Count`].
    Delete {
        /// Which, at most [`LIST_MAX`].
        keys: Vec<Bytes>,
    },
    /// [`KvResult::Done`], or [`KvResult::NotDone`] if the value is not the expected one.
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
}

impl KvOperation {
    /// Whether it leaves the state as it is, so that it may be asked as a query.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Get { .. } | Self::MultiGet { .. } | Self::Range { .. } | Self::Count | Self::Exists { .. } => true,
            Self::Set { .. }
            | Self::MultiSet { .. }
            | Self::Delete { .. }
            | Self::CompareAndSet { .. }
            | Self::Increment { .. }
            | Self::Splice { .. } => false,
            Self::Transaction { operations, .. } => operations.iter().all(Self::is_read_only),
        }
    }
}

fn key(reader: &mut Reader) -> Result<Bytes, WireError> {
    reader.payload(KEY_BYTES_MAX)
}

fn value(reader: &mut Reader) -> Result<Bytes, WireError> {
    reader.payload(VALUE_BYTES_MAX)
}

pub(super) fn entry(reader: &mut Reader) -> Result<(Bytes, Bytes), WireError> {
    Ok((key(reader)?, value(reader)?))
}

fn optional_value(reader: &mut Reader) -> Result<Option<Bytes>, WireError> {
    Ok(if bool::decode(reader)? { Some(value(reader)?) } else { None })
}

fn condition(reader: &mut Reader) -> Result<(Bytes, Option<Bytes>), WireError> {
    Ok((key(reader)?, optional_value(reader)?))
}

/// An operation of a transaction. It is no transaction itself, so that decoding has no depth, and no range: each may
/// look at [`LIST_MAX`] entries for a few bytes of operation.
fn part(reader: &mut Reader) -> Result<KvOperation, WireError> {
    match reader.tag()? {
        3 | 11 => Err(WireError::UnknownTag),
        tag => KvOperation::decode_tagged(tag, reader),
    }
}

/// The result of an operation of a transaction.
fn part_result(reader: &mut Reader) -> Result<KvResult, WireError> {
    match reader.tag()? {
        4 | 13 => Err(WireError::UnknownTag),
        tag => KvResult::decode_tagged(tag, reader),
    }
}

/// A list of elements that take at least `element` bytes each.
fn list<T>(
    reader: &mut Reader,
    element: usize,
    read: fn(&mut Reader) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let length = reader.length(LIST_MAX, element)?;
    (0..length).map(|_| read(reader)).collect()
}

fn encode_optional(value: Option<&Bytes>, out: &mut impl Sink) {
    value.is_some().encode(out);
    if let Some(value) = value {
        encode_payload(value, out);
    }
}

fn encode_keys(keys: &[Bytes], out: &mut impl Sink) {
    (keys.len() as u32).encode(out);
    for key in keys {
        encode_payload(key, out);
    }
}

fn encode_entries(entries: &[(Bytes, Bytes)], out: &mut impl Sink) {
    (entries.len() as u32).encode(out);
    for (key, value) in entries {
        encode_payload(key, out);
        encode_payload(value, out);
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
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let tag = reader.tag()?;
        Self::decode_tagged(tag, reader)
    }
}

impl KvOperation {
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
            _ => return Err(WireError::UnknownTag),
        })
    }
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KvResult {
    /// It was done.
    Done,
    /// Its condition did not hold; nothing changed.
    NotDone,
    /// The value, if there is one.
    Value(Option<Bytes>),
    /// The values.
    Values(Vec<Option<Bytes>>),
    /// Entries in the order of their keys.
    Range {
        /// Keys and values.
        entries: Vec<(Bytes, Bytes)>,
        /// Whether there are entries after the last one.
        more: bool,
    },
    /// How many.
    Count(u64),
    /// The new number.
    Integer(i64),
    /// The value is not a decimal integer of 64 bits in its shortest form; nothing changed.
    NotAnInteger,
    /// The sum would not fit in 64 bits; nothing changed.
    Overflow,
    /// There is no room, in the service or in the key's bucket; nothing changed.
    Full,
    /// The answer would exceed [`RESULT_BYTES_MAX`]: ask for less.
    TooLarge,
    /// The bytes are not an operation.
    Malformed,
    /// The client's role does not allow it: said where the service stands beside one that knows roles.
    Denied,
    /// What came of the operations of a [`KvOperation::Transaction`], in order.
    Transaction(Vec<Self>),
}

impl Wire for KvResult {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Done => out.push(0),
            Self::NotDone => out.push(1),
            Self::Value(value) => {
                out.push(2);
                encode_optional(value.as_ref(), out);
            }
            Self::Values(values) => {
                out.push(3);
                (values.len() as u32).encode(out);
                for value in values {
                    encode_optional(value.as_ref(), out);
                }
            }
            Self::Range { entries, more } => {
                out.push(4);
                encode_entries(entries, out);
                more.encode(out);
            }
            Self::Count(count) => {
                out.push(5);
                count.encode(out);
            }
            Self::Integer(number) => {
                out.push(6);
                number.encode(out);
            }
            Self::NotAnInteger => out.push(7),
            Self::Overflow => out.push(8),
            Self::Full => out.push(9),
            Self::TooLarge => out.push(10),
            Self::Malformed => out.push(11),
            Self::Denied => out.push(12),
            Self::Transaction(results) => {
                out.push(13);
                (results.len() as u32).encode(out);
                results.iter().for_each(|result| result.encode(out));
            }
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let tag = reader.tag()?;
        Self::decode_tagged(tag, reader)
    }
}

impl KvResult {
    /// Bytes of keys and values, each counted with 8 more, as [`RESULT_BYTES_MAX`] counts them; 0 for what is short
    /// in any case.
    pub(super) fn payload_bytes(&self) -> usize {
        let optional = |value: &Option<Bytes>| 8 + value.as_ref().map_or(0, Bytes::len);
        match self {
            Self::Value(value) => optional(value),
            Self::Values(values) => values.iter().map(optional).sum(),
            Self::Range { entries, .. } => entries.iter().map(|(key, value)| 8 + key.len() + value.len()).sum(),
            Self::Transaction(results) => results.iter().map(Self::payload_bytes).sum(),
            _ => 0,
        }
    }

    fn decode_tagged(tag: u8, reader: &mut Reader) -> Result<Self, WireError> {
        Ok(match tag {
            0 => Self::Done,
            1 => Self::NotDone,
            2 => Self::Value(optional_value(reader)?),
            3 => Self::Values(list(reader, 1, optional_value)?),
            4 => Self::Range { entries: list(reader, 8, entry)?, more: Wire::decode(reader)? },
            5 => Self::Count(Wire::decode(reader)?),
            6 => Self::Integer(Wire::decode(reader)?),
            7 => Self::NotAnInteger,
            8 => Self::Overflow,
            9 => Self::Full,
            10 => Self::TooLarge,
            11 => Self::Malformed,
            12 => Self::Denied,
            13 => Self::Transaction(list(reader, 1, part_result)?),
            _ => return Err(WireError::UnknownTag),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            KvOperation::Splice { key, offset: Some(7), bytes: short("v") },
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
    fn a_transaction_holds_no_transaction_and_no_range() {
        let wrap = |operation| {
            let whole = KvOperation::Transaction { conditions: vec![], operations: vec![operation] };
            KvOperation::from_bytes(whole.to_bytes().into())
        };
        assert!(wrap(KvOperation::Count).is_ok());
        for operation in operations() {
            let refused = matches!(operation, KvOperation::Transaction { .. } | KvOperation::Range { .. });
            assert_eq!(wrap(operation.clone()).is_err(), refused, "{operation:?}");
        }
        for result in results() {
            let refused = matches!(result, KvResult::Transaction(_) | KvResult::Range { .. });
            let read = KvResult::from_bytes(KvResult::Transaction(vec![result.clone()]).to_bytes().into());
            assert_eq!(read.is_err(), refused, "{result:?}");
        }
        let many = KvOperation::Transaction { conditions: vec![], operations: vec![KvOperation::Count; LIST_MAX + 1] };
        assert_eq!(KvOperation::from_bytes(many.to_bytes().into()), Err(WireError::TooLong));
    }

    proptest! {
        #[test]
        fn what_decodes_is_canonical(mut bytes in proptest::collection::vec(0u8..4, 0..24), tag in 0u8..15) {
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
