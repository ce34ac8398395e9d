//! What the key-value service answers.

use super::parts::{encode_entries, encode_optional, entry, list, optional_value};
use crate::wire::{Reader, Sink, Wire, WireError};
use alloc::vec::Vec;
use bytes::Bytes;

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
    /// The answer would exceed [`RESULT_BYTES_MAX`](super::RESULT_BYTES_MAX): ask for less.
    TooLarge,
    /// The bytes are not an operation.
    Malformed,
    /// The client's role does not allow it: said where the service stands beside one that knows roles.
    Denied,
    /// What came of the operations of a [`KvOperation::Transaction`](super::KvOperation::Transaction), in order.
    Transaction(Vec<Self>),
    /// How long the key lives.
    Deadline {
        /// The agreed time, in milliseconds since the Unix epoch.
        now_ms: u64,
        /// The key's deadline, likewise; `None`: it has none.
        deadline_ms: Option<u64>,
    },
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
            Self::Deadline { now_ms, deadline_ms } => {
                out.push(14);
                now_ms.encode(out);
                deadline_ms.encode(out);
            }
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let tag = reader.tag()?;
        Self::decode_tagged(tag, reader)
    }
}

impl KvResult {
    /// Bytes of keys and values, each counted with 8 more, as [`RESULT_BYTES_MAX`](super::RESULT_BYTES_MAX) counts
    /// them; 0 for what is short in any case.
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
            14 => Self::Deadline { now_ms: Wire::decode(reader)?, deadline_ms: Wire::decode(reader)? },
            _ => return Err(WireError::UnknownTag),
        })
    }
}

/// The result of an operation of a transaction.
fn part_result(reader: &mut Reader) -> Result<KvResult, WireError> {
    match reader.tag()? {
        4 | 13 => Err(WireError::UnknownTag),
        tag => KvResult::decode_tagged(tag, reader),
    }
}
