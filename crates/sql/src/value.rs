//! SQL values in their canonical encoding: equal values, equal bytes, on every machine.

use bezant_core::wire::{Reader, Sink, Wire, WireError, encode_payload};
use bytes::Bytes;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::fmt;
use std::str::Utf8Error;

/// The longest text or blob, in bytes. SQLite is told the same limit, so that nothing longer comes to be either.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// A value as SQLite has it.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// A 64-bit floating point number; never NaN, which SQLite turns into null.
    Real(f64),
    /// UTF-8 text.
    Text(String),
    /// Bytes.
    Blob(Bytes),
}

impl Value {
    /// Bytes of the encoding of what SQLite gives.
    pub(crate) const fn bytes_encoded(value: ValueRef<'_>) -> usize {
        const TAG: usize = 1;
        const LENGTH: usize = 4;
        TAG + match value {
            ValueRef::Null => 0,
            ValueRef::Integer(_) | ValueRef::Real(_) => size_of::<u64>(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => LENGTH + bytes.len(),
        }
    }
}

/// Two values are equal if their encodings are: numbers by their bits.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Integer(a), Self::Integer(b)) => a == b,
            (Self::Real(a), Self::Real(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Blob(a), Self::Blob(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

/// What SQLite gives. A text that is not UTF-8 is no value of ours.
impl TryFrom<ValueRef<'_>> for Value {
    type Error = Utf8Error;

    fn try_from(value: ValueRef<'_>) -> Result<Self, Utf8Error> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(text) => Self::Text(std::str::from_utf8(text)?.to_owned()),
            ValueRef::Blob(bytes) => Self::Blob(Bytes::copy_from_slice(bytes)),
        })
    }
}

/// Bound as a parameter without a copy of our own.
impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// As SQLite's shell prints it in its list mode: nothing for null, numbers in their shortest form, text as it is.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Integer(number) => write!(out, "{number}"),
            Self::Real(number) => write!(out, "{number:?}"),
            Self::Text(text) => out.write_str(text),
            Self::Blob(bytes) => bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
        }
    }
}

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

impl Wire for Value {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Null => out.push(NULL),
            Self::Integer(number) => {
                out.push(INTEGER);
                number.encode(out);
            }
            Self::Real(number) => {
                out.push(REAL);
                number.to_bits().encode(out);
            }
            Self::Text(text) => {
                out.push(TEXT);
                encode_payload(text.as_bytes(), out);
            }
            Self::Blob(bytes) => {
                out.push(BLOB);
                encode_payload(bytes, out);
            }
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            NULL => Ok(Self::Null),
            INTEGER => Ok(Self::Integer(i64::decode(reader)?)),
            REAL => {
                let number = f64::from_bits(u64::decode(reader)?);
                if number.is_nan() { Err(WireError::NotCanonical) } else { Ok(Self::Real(number)) }
            }
            TEXT => Ok(Self::Text(text(reader, VALUE_BYTES_MAX)?)),
            BLOB => Ok(Self::Blob(reader.payload(VALUE_BYTES_MAX)?)),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// UTF-8 text of at most `max` bytes.
pub(crate) fn text(reader: &mut Reader, max: usize) -> Result<String, WireError> {
    let length = reader.length(max, 1)?;
    let bytes = reader.slice(length)?;
    String::from_utf8(bytes.into()).map_err(|_| WireError::NotCanonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back() {
        let values = [
            Value::Null,
            Value::Integer(i64::MIN),
            Value::Real(-0.0),
            Value::Real(0.1),
            Value::Text("naïve ☃".into()),
            Value::Blob(Bytes::from_static(&[0, 255])),
        ];
        for value in values {
            assert_eq!(Value::from_bytes(value.to_bytes().into()), Ok(value));
        }
    }

    #[test]
    fn what_is_not_canonical_is_refused() {
        let nan = [&[REAL][..], &f64::NAN.to_bits().to_le_bytes()].concat();
        assert_eq!(Value::from_bytes(nan.into()), Err(WireError::NotCanonical));
        assert_eq!(Value::from_bytes(vec![TEXT, 1, 0, 0, 0, 0xff].into()), Err(WireError::NotCanonical));
        assert_eq!(Value::from_bytes(vec![9].into()), Err(WireError::UnknownTag));
    }
}
