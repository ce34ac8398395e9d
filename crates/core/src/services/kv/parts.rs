//! What operations and answers are made of: keys, values and lists, each within its bound.

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

pub(super) fn key(reader: &mut Reader) -> Result<Bytes, WireError> {
    reader.payload(KEY_BYTES_MAX)
}

pub(super) fn value(reader: &mut Reader) -> Result<Bytes, WireError> {
    reader.payload(VALUE_BYTES_MAX)
}

pub(super) fn entry(reader: &mut Reader) -> Result<(Bytes, Bytes), WireError> {
    Ok((key(reader)?, value(reader)?))
}

pub(super) fn optional_value(reader: &mut Reader) -> Result<Option<Bytes>, WireError> {
    Ok(if bool::decode(reader)? { Some(value(reader)?) } else { None })
}

/// A list of elements that take at least `element` bytes each.
pub(super) fn list<T>(
    reader: &mut Reader,
    element: usize,
    read: fn(&mut Reader) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let length = reader.length(LIST_MAX, element)?;
    (0..length).map(|_| read(reader)).collect()
}

pub(super) fn encode_optional(value: Option<&Bytes>, out: &mut impl Sink) {
    value.is_some().encode(out);
    if let Some(value) = value {
        encode_payload(value, out);
    }
}

pub(super) fn encode_keys(keys: &[Bytes], out: &mut impl Sink) {
    (keys.len() as u32).encode(out);
    for key in keys {
        encode_payload(key, out);
    }
}

pub(super) fn encode_entries(entries: &[(Bytes, Bytes)], out: &mut impl Sink) {
    (entries.len() as u32).encode(out);
    for (key, value) in entries {
        encode_payload(key, out);
        encode_payload(value, out);
    }
}
