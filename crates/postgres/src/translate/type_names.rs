//! Types as statements name them.

use super::kinds::{Modifier, Type};
use super::refusal::unsupported;
use crate::error::PgError;
use sqlparser::ast::{CharacterLength, DataType, ExactNumberInfo, TimezoneInfo};

/// A type as a statement names it.
pub(super) fn data_type(named: &DataType) -> Result<(Type, Modifier), PgError> {
    let plain = |kind| Ok((kind, None));
    let length = |kind, length: &Option<CharacterLength>| match length {
        None => Ok((kind, None)),
        Some(CharacterLength::IntegerLength { length, unit: None }) if (1..=10_485_760).contains(length) => {
            Ok((kind, Some((*length as i32, 0))))
        }
        Some(_) => Err(PgError::new("22023", "the length of a type must be at least 1 and at most 10485760")),
    };
    match named {
        DataType::Bool | DataType::Boolean => plain(Type::Bool),
        DataType::SmallInt(None) | DataType::Int2(None) => plain(Type::Int2),
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => plain(Type::Int4),
        DataType::BigInt(None) | DataType::Int8(None) => plain(Type::Int8),
        DataType::Real | DataType::Float4 => plain(Type::Float4),
        DataType::Float8 | DataType::DoublePrecision | DataType::Float(ExactNumberInfo::None) => plain(Type::Float8),
        DataType::Double(ExactNumberInfo::None) => plain(Type::Float8),
        DataType::Float(ExactNumberInfo::Precision(bits @ 1..=53)) => {
            plain(if *bits <= 24 { Type::Float4 } else { Type::Float8 })
        }
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => numeric(info),
        DataType::Text => plain(Type::Text),
        DataType::Varchar(n) | DataType::CharacterVarying(n) | DataType::CharVarying(n) => length(Type::Varchar, n),
        DataType::Char(None) | DataType::Character(None) => Ok((Type::Char, Some((1, 0)))),
        DataType::Char(n) | DataType::Character(n) => length(Type::Char, n),
        DataType::Bytea => plain(Type::Bytea),
        DataType::Date => plain(Type::Date),
        DataType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => moment(Type::Time, *digits),
        DataType::Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            moment(Type::Timestamp, *digits)
        }
        DataType::Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            moment(Type::Timestamptz, *digits)
        }
        DataType::Interval { fields: None, precision: None } => plain(Type::Interval),
        DataType::Uuid => plain(Type::Uuid),
        DataType::JSON => plain(Type::Json),
        DataType::JSONB => plain(Type::Jsonb),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => custom(&name.to_string()),
        other => Err(unsupported(format!("type {other}"))),
    }
}

/// With so many digits of a second: six if nothing is said, and at most.
fn moment(kind: Type, digits: Option<u64>) -> Result<(Type, Modifier), PgError> {
    Ok((kind, digits.filter(|digits| *digits < 6).map(|digits| (digits as i32, 0))))
}

fn custom(name: &str) -> Result<(Type, Modifier), PgError> {
    let kind = match name.to_lowercase().trim_start_matches("pg_catalog.") {
        "text" | "name" => Type::Text,
        "timestamptz" => Type::Timestamptz,
        "bytea" => Type::Bytea,
        "bpchar" => Type::Char,
        "float8" => Type::Float8,
        "float4" => Type::Float4,
        "int8" => Type::Int8,
        "int4" => Type::Int4,
        "int2" => Type::Int2,
        "bool" => Type::Bool,
        "varchar" => Type::Varchar,
        "uuid" => Type::Uuid,
        "numeric" => Type::Numeric,
        "jsonb" => Type::Jsonb,
        "json" => Type::Json,
        "timetz" => return Err(unsupported("type timetz")),
        other => return Err(PgError::new("42704", format!("type \"{other}\" does not exist"))),
    };
    Ok((kind, None))
}

fn numeric(info: &ExactNumberInfo) -> Result<(Type, Modifier), PgError> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok((Type::Numeric, None)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if !(1..=1_000).contains(&precision) || !(-1_000..=1_000).contains(&scale) {
        return Err(PgError::new("22023", "a numeric has a precision of 1 to 1000 and a scale of -1000 to 1000"));
    }
    Ok((Type::Numeric, Some((precision as i32, scale as i32))))
}
