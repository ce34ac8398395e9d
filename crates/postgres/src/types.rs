//! Types of PostgreSQL, and values in their two formats.
//!
//! SQLite's values have their own type, whatever the column declares. A client is told the declared type if all values
//! of a result fit it, and otherwise one that they do fit.

use crate::calendar;
use crate::error::{PgError, sqlstate};
use crate::translate::Type;
use bezant_sql::{Column, Value};
use bytes::Bytes;
use std::fmt::Write as _;

mod arrays;
mod names;
mod numbers;
pub(crate) mod oid;
mod texts;

pub(crate) use arrays::{elements, take_array};
pub(crate) use names::{by_name, name_of, of_declaration, size_of};
pub(crate) use texts::{bool_of, bytea, integer as integer_of, invalid};

use numbers::{float, is_numeric, put_numeric, real_text, single_text, take_numeric};
use texts::{excerpt, from_hex};

/// The text format.
pub(crate) const TEXT_FORMAT: i16 = 0;
/// The binary format.
pub(crate) const BINARY_FORMAT: i16 = 1;

/// The type of a column whose values are not there yet.
pub(crate) fn of_column(column: &Column) -> u32 {
    if let Some(declared) = &column.declared {
        return of_declaration(declared).0;
    }
    oid::TEXT
}

/// The type of an expression without a name, which SQLite calls as it is written, where it is the time or begins with a
/// function that gives integers only.
pub(crate) fn of_expression(name: &str) -> Option<String> {
    const INTEGERS: [&str; 6] = ["count(", "length(", "row_number(", "rank(", "changes(", "unixepoch("];
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "current_timestamp" => return Some("timestamp".into()),
        "current_date" => return Some("date".into()),
        "current_time" => return Some("time".into()),
        _ => {}
    }
    INTEGERS.iter().any(|begin| name.starts_with(begin)).then(|| "bigint".into())
}

/// The type of a column with these values.
pub(crate) fn of_values<'a>(column: &Column, values: impl Iterator<Item = &'a Value> + Clone) -> u32 {
    let mut some = values.filter(|value| !matches!(value, Value::Null)).peekable();
    if some.peek().is_none() {
        return of_column(column);
    }
    let all_fit = |type_id: u32| some.clone().all(|value| fits(value, type_id));
    let declared = column.declared.as_deref().map(|declared| of_declaration(declared).0);
    let kinds = [oid::INT8, oid::FLOAT8, oid::TEXT, oid::BYTEA];
    declared.into_iter().chain(kinds).find(|type_id| all_fit(*type_id)).unwrap_or(oid::TEXT)
}

/// Whether a value can be told as one of a type without changing it.
fn fits(value: &Value, type_id: u32) -> bool {
    match (value, type_id) {
        (Value::Null, _) | (Value::Integer(_), oid::INT8 | oid::NUMERIC) => true,
        (Value::Integer(number), oid::BOOL) => matches!(number, 0 | 1),
        (Value::Integer(number), oid::INT2) => i16::try_from(*number).is_ok(),
        (Value::Integer(number), oid::INT4) => i32::try_from(*number).is_ok(),
        (Value::Integer(number), oid::OID) => u32::try_from(*number).is_ok(),
        (Value::Integer(number), oid::FLOAT8) => (*number as f64) as i64 == *number && number.abs() < 1 << 53,
        (Value::Real(_), oid::FLOAT8) => true,
        (Value::Real(number), oid::FLOAT4) => f64::from(*number as f32) == *number,
        (Value::Text(text), oid::NUMERIC) => is_numeric(text),
        (Value::Text(text), oid::INTERVAL) => interval_of(text).is_some(),
        (Value::Real(number), oid::NUMERIC) => number.is_finite(),
        (Value::Text(text), oid::BOOL) => bool_of(text).is_some(),
        (Value::Text(text), oid::DATE) => calendar::date(text).is_some(),
        (Value::Text(text), oid::TIME) => calendar::time(text).is_some(),
        (Value::Text(text), oid::TIMESTAMP | oid::TIMESTAMPTZ) => calendar::timestamp(text).is_some(),
        (Value::Text(text), oid::UUID) => uuid_of(text).is_some(),
        (Value::Text(_), oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::CHAR | oid::JSON | oid::JSONB) => {
            true
        }
        (Value::Blob(_), oid::BYTEA) => true,
        (Value::Text(text), oid::TEXTS | oid::INT8S) => text.starts_with('{'),
        _ => false,
    }
}

/// Months, days and microseconds, as the replicas give an interval.
fn interval_of(text: &str) -> Option<(i32, i32, i64)> {
    let mut parts = text.split(' ');
    let all = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(all)
}

/// The same as PostgreSQL writes it.
pub(crate) fn interval_text(stored: &str) -> Option<String> {
    interval_of(stored).map(|(months, days, micros)| calendar::interval_text(months, days, micros))
}

fn uuid_of(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    from_hex(&digits)?.try_into().ok()
}

/// A value as text, of a type. Moments are told as the clocks of the session's zone show them, which are so many
/// seconds before those of UTC.
fn text(value: &Value, type_id: u32, zone: i32) -> String {
    match (value, type_id) {
        (Value::Text(text), oid::TIMESTAMPTZ) => calendar::timestamp(text)
            .and_then(|micros| calendar::zoned_text(micros, zone))
            .unwrap_or_else(|| text.clone()),
        (Value::Text(text), oid::INTERVAL) => interval_text(text).unwrap_or_else(|| text.clone()),
        (Value::Real(number), oid::FLOAT4) => single_text(*number as f32),
        (Value::Integer(number), oid::BOOL) => if *number == 0 { "f" } else { "t" }.into(),
        (Value::Text(text), oid::BOOL) => match bool_of(text) {
            Some(true) => "t".into(),
            Some(false) => "f".into(),
            None => text.clone(),
        },
        (Value::Real(number), oid::NUMERIC) => number.to_string(),
        (Value::Real(number), _) => real_text(*number),
        (Value::Blob(bytes), _) => {
            let mut text = String::with_capacity(2 + 2 * bytes.len());
            text.push_str("\\x");
            bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string takes everything"));
            text
        }
        (value, _) => value.to_string(),
    }
}

/// Writes a value in a format. Says whether there is one.
///
/// # Errors
/// If it is none of the announced type, which only binary values can show.
pub(crate) fn put(value: &Value, type_id: u32, format: i16, zone: i32, out: &mut Vec<u8>) -> Result<bool, PgError> {
    if matches!(value, Value::Null) {
        return Ok(false);
    }
    if format == TEXT_FORMAT {
        out.extend(text(value, type_id, zone).bytes());
    } else {
        put_binary(value, type_id, out)
            .ok_or_else(|| PgError::new(sqlstate::BAD_BINARY, "a value is none of the type that was announced"))?;
    }
    Ok(true)
}

fn put_binary(value: &Value, type_id: u32, out: &mut Vec<u8>) -> Option<()> {
    match (type_id, value) {
        (oid::BOOL, Value::Integer(number)) => out.push((*number != 0).into()),
        (oid::BOOL, Value::Text(text)) => out.push(bool_of(text)?.into()),
        (oid::INT2, value) => out.extend(i16::try_from(integer(value)?).ok()?.to_be_bytes()),
        (oid::INT4, value) => out.extend(i32::try_from(integer(value)?).ok()?.to_be_bytes()),
        (oid::OID, value) => out.extend(u32::try_from(integer(value)?).ok()?.to_be_bytes()),
        (oid::INT8, value) => out.extend(integer(value)?.to_be_bytes()),
        (oid::FLOAT8, Value::Integer(number)) => out.extend((*number as f64).to_be_bytes()),
        (oid::FLOAT8, Value::Real(number)) => out.extend(number.to_be_bytes()),
        (oid::FLOAT4, Value::Real(number)) => out.extend((*number as f32).to_be_bytes()),
        (oid::INTERVAL, Value::Text(text)) => {
            let (months, days, micros) = interval_of(text)?;
            out.extend(micros.to_be_bytes());
            out.extend(days.to_be_bytes());
            out.extend(months.to_be_bytes());
        }
        (oid::NUMERIC, value) => put_numeric(&numeric_text(value)?, out)?,
        (oid::DATE, Value::Text(text)) => out.extend(calendar::date(text)?.to_be_bytes()),
        (oid::TIME, Value::Text(text)) => out.extend(calendar::time(text)?.to_be_bytes()),
        (oid::TIMESTAMP | oid::TIMESTAMPTZ, Value::Text(text)) => out.extend(calendar::timestamp(text)?.to_be_bytes()),
        (oid::UUID, Value::Text(text)) => out.extend(uuid_of(text)?),
        (oid::BYTEA, Value::Blob(bytes)) => out.extend(bytes),
        (oid::BYTEA, Value::Text(text)) => out.extend(text.bytes()),
        (oid::JSONB, value) => {
            out.push(1);
            out.extend(text(value, type_id, 0).bytes());
        }
        (
            oid::BOOL
            | oid::FLOAT4
            | oid::FLOAT8
            | oid::INTERVAL
            | oid::TEXTS
            | oid::INT8S
            | oid::DATE
            | oid::TIME
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::UUID,
            _,
        ) => {
            return None;
        }
        _ => out.extend(text(value, type_id, 0).bytes()),
    }
    Some(())
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

fn numeric_text(value: &Value) -> Option<String> {
    match value {
        Value::Integer(number) => Some(number.to_string()),
        Value::Real(number) if number.is_finite() => Some(number.to_string()),
        Value::Text(text) if is_numeric(text) => Some(text.clone()),
        _ => None,
    }
}

/// A parameter's value: bytes in a format, of the type that the client says, if it does.
///
/// # Errors
/// If they are none of that type, or the type is not known in binary.
pub(crate) fn take(bytes: &Bytes, type_id: u32, format: i16) -> Result<Value, PgError> {
    let name = || name_of(type_id).map_or_else(|| format!("the type with number {type_id}"), Into::into);
    if format == BINARY_FORMAT {
        let known = take_binary(bytes, type_id);
        return known.ok_or_else(|| match (type_id, bytes.len()) {
            (oid::DATE | oid::FLOAT4, 4) | (oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::FLOAT8, 8) => {
                PgError::unsupported(format!("this value of {} is not supported", name()))
                    .hint("there are the years 1 to 9999, no infinity, and no NaN")
            }
            _ => PgError::new(sqlstate::BAD_BINARY, format!("a binary parameter is no value of {}", name())),
        });
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| PgError::new("22021", "a parameter is not UTF-8").hint("send it as bytea"))?;
    if let (Some(kind), true) = (Type::of_oid(type_id), matches!(type_id, oid::INT2 | oid::INT4 | oid::INT8)) {
        return integer_of(text, kind).map(Value::Integer);
    }
    if text.contains('\0') {
        return Err(PgError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    if matches!(type_id, oid::FLOAT4 | oid::FLOAT8) {
        return float(text, type_id);
    }
    let known = take_text(text, type_id);
    if known.is_none() && type_id == oid::BYTEA && text.starts_with("\\x") {
        return Err(PgError::new("22023", "invalid hexadecimal data"));
    }
    known.ok_or_else(|| {
        PgError::new(sqlstate::BAD_TEXT, format!("invalid input syntax for type {}: \"{}\"", name(), excerpt(text)))
    })
}

fn take_text(text: &str, type_id: u32) -> Option<Value> {
    Some(match type_id {
        oid::OID => Value::Integer(text.trim().parse().ok()?),
        oid::BOOL => Value::Integer(bool_of(text)?.into()),
        oid::BYTEA => Value::Blob(bytea(text)?.into()),
        _ => Value::Text(text.into()),
    })
}

/// SQLite has no value that is not a number.
const fn real(number: f64) -> Option<Value> {
    if number.is_nan() { None } else { Some(Value::Real(number)) }
}

fn take_binary(bytes: &Bytes, type_id: u32) -> Option<Value> {
    let bytes_of = bytes.as_ref();
    Some(match type_id {
        oid::BOOL => Value::Integer((*<&[u8; 1]>::try_from(bytes_of).ok()? != [0]).into()),
        oid::INT2 => Value::Integer(i16::from_be_bytes(bytes_of.try_into().ok()?).into()),
        oid::INT4 => Value::Integer(i32::from_be_bytes(bytes_of.try_into().ok()?).into()),
        oid::INT8 => Value::Integer(i64::from_be_bytes(bytes_of.try_into().ok()?)),
        oid::OID => Value::Integer(u32::from_be_bytes(bytes_of.try_into().ok()?).into()),
        oid::FLOAT4 => real(f32::from_be_bytes(bytes_of.try_into().ok()?).into())?,
        oid::FLOAT8 => real(f64::from_be_bytes(bytes_of.try_into().ok()?))?,
        oid::NUMERIC => Value::Text(take_numeric(bytes_of)?),
        oid::INTERVAL => take_interval(bytes_of)?,
        oid::DATE => Value::Text(calendar::date_text(i32::from_be_bytes(bytes_of.try_into().ok()?))?),
        oid::TIME => Value::Text(calendar::time_text(i64::from_be_bytes(bytes_of.try_into().ok()?))?),
        oid::TIMESTAMP => Value::Text(calendar::timestamp_text(i64::from_be_bytes(bytes_of.try_into().ok()?))?),
        oid::TIMESTAMPTZ => {
            Value::Text(calendar::timestamp_text(i64::from_be_bytes(bytes_of.try_into().ok()?))? + "+00")
        }
        oid::UUID => Value::Text(uuid_text(bytes_of.try_into().ok()?)),
        oid::JSONB => Value::Text(std::str::from_utf8(bytes_of.strip_prefix(&[1])?).ok()?.into()),
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::CHAR | oid::JSON => {
            Value::Text(std::str::from_utf8(bytes_of).ok()?.into())
        }
        // Who sends bytes and does not say what they are means bytes.
        oid::BYTEA | 0 | oid::UNKNOWN => Value::Blob(bytes.clone()),
        _ => return None,
    })
}

/// As PostgreSQL's own text, which the replicas read.
fn take_interval(bytes: &[u8]) -> Option<Value> {
    let (micros, rest) = bytes.split_first_chunk::<8>()?;
    let (days, months) = rest.split_first_chunk::<4>()?;
    let (micros, days) = (i64::from_be_bytes(*micros), i32::from_be_bytes(*days));
    let months = i32::from_be_bytes(months.try_into().ok()?);
    Some(Value::Text(calendar::interval_text(months, days, micros)))
}

fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests;
