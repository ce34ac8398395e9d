//! Conversions between types: which there are, when they happen by themselves, and how SQLite says them.

use super::kinds::Type::{self, *};

/// When a conversion happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Context {
    /// Wherever another type is wanted.
    Implicit,
    /// When a value is assigned to a column.
    Assignment,
    /// When the statement says so.
    Explicit,
}

/// From, to, when, and how: `{}` stands for the value, `{zone}` for the session's time zone.
#[rustfmt::skip]
const CASTS: &[(Type, Type, Context, &str)] = &[
    (Int2, Int4, Context::Implicit, "{}"),
    (Int2, Int8, Context::Implicit, "{}"),
    (Int4, Int8, Context::Implicit, "{}"),
    (Int4, Int2, Context::Assignment, "pg_to_int2({})"),
    (Int8, Int2, Context::Assignment, "pg_to_int2({})"),
    (Int8, Int4, Context::Assignment, "pg_to_int4({})"),
    (Int2, Numeric, Context::Implicit, "pg_int_to_numeric({})"),
    (Int4, Numeric, Context::Implicit, "pg_int_to_numeric({})"),
    (Int8, Numeric, Context::Implicit, "pg_int_to_numeric({})"),
    (Int2, Float4, Context::Implicit, "CAST({} AS REAL)"),
    (Int4, Float4, Context::Implicit, "pg_to_float4({})"),
    (Int8, Float4, Context::Implicit, "pg_to_float4({})"),
    (Int2, Float8, Context::Implicit, "CAST({} AS REAL)"),
    (Int4, Float8, Context::Implicit, "CAST({} AS REAL)"),
    (Int8, Float8, Context::Implicit, "CAST({} AS REAL)"),
    (Int4, Bool, Context::Explicit, "pg_int_to_bool({})"),
    (Bool, Int4, Context::Explicit, "pg_bool_to_int({})"),
    (Numeric, Int2, Context::Assignment, "pg_numeric_to_int2({})"),
    (Numeric, Int4, Context::Assignment, "pg_numeric_to_int4({})"),
    (Numeric, Int8, Context::Assignment, "pg_numeric_to_int8({})"),
    (Numeric, Float4, Context::Implicit, "pg_numeric_to_float4({})"),
    (Numeric, Float8, Context::Implicit, "pg_numeric_to_float8({})"),
    (Float4, Float8, Context::Implicit, "{}"),
    (Float4, Int2, Context::Assignment, "pg_to_int2({})"),
    (Float4, Int4, Context::Assignment, "pg_to_int4({})"),
    (Float4, Int8, Context::Assignment, "pg_to_int8({})"),
    (Float4, Numeric, Context::Assignment, "pg_float4_to_numeric({})"),
    (Float8, Float4, Context::Assignment, "pg_to_float4({})"),
    (Float8, Int2, Context::Assignment, "pg_to_int2({})"),
    (Float8, Int4, Context::Assignment, "pg_to_int4({})"),
    (Float8, Int8, Context::Assignment, "pg_to_int8({})"),
    (Float8, Numeric, Context::Assignment, "pg_float8_to_numeric({})"),
    (Varchar, Text, Context::Implicit, "{}"),
    (Char, Text, Context::Implicit, "{}"),
    (Text, Varchar, Context::Implicit, "{}"),
    (Text, Char, Context::Implicit, "rtrim({}, ' ')"),
    (Char, Varchar, Context::Implicit, "{}"),
    (Varchar, Char, Context::Implicit, "rtrim({}, ' ')"),
    (Date, Timestamp, Context::Implicit, "pg_date_to_timestamp({})"),
    (Date, Timestamptz, Context::Implicit, "pg_timestamp_to_timestamptz(pg_date_to_timestamp({}), {zone})"),
    (Timestamp, Timestamptz, Context::Implicit, "pg_timestamp_to_timestamptz({}, {zone})"),
    (Timestamp, Date, Context::Assignment, "pg_timestamp_to_date({})"),
    (Timestamp, Time, Context::Assignment, "pg_timestamp_to_time({})"),
    (Timestamptz, Timestamp, Context::Assignment, "pg_timestamptz_to_timestamp({}, {zone})"),
    (Timestamptz, Date, Context::Assignment, "pg_timestamp_to_date(pg_timestamptz_to_timestamp({}, {zone}))"),
    (Timestamptz, Time, Context::Assignment, "pg_timestamp_to_time(pg_timestamptz_to_timestamp({}, {zone}))"),
    (Time, Interval, Context::Implicit, "pg_time_sub({}, '00:00:00')"),
    (Interval, Time, Context::Assignment, "pg_time_add_interval('00:00:00', {})"),
    (Json, Jsonb, Context::Assignment, "pg_in_jsonb({})"),
    (Jsonb, Json, Context::Assignment, "{}"),
];

/// How a value becomes text.
pub(super) const fn to_text(from: Type) -> &'static str {
    match from {
        Bool => "pg_out_bool({})",
        Int2 | Int4 | Int8 | Any => "CAST({} AS TEXT)",
        Float4 => "pg_out_float4({})",
        Float8 => "pg_out_float8({})",
        Bytea => "pg_out_bytea({})",
        Timestamptz => "pg_out_timestamptz({}, {zone})",
        Interval => "pg_out_interval({})",
        _ => "{}",
    }
}

/// How text becomes a value.
pub(super) const fn from_text(to: Type) -> &'static str {
    match to {
        Bool => "pg_in_bool({})",
        Int2 => "pg_in_int2({})",
        Int4 => "pg_in_int4({})",
        Int8 => "pg_in_int8({})",
        Float4 => "pg_in_float4({})",
        Float8 => "pg_in_float8({})",
        Numeric => "pg_in_numeric({})",
        Bytea => "pg_in_bytea({})",
        Date => "pg_in_date({})",
        Time => "pg_in_time({})",
        Timestamp => "pg_in_timestamp({})",
        Timestamptz => "pg_in_timestamptz({}, {zone})",
        Interval => "pg_in_interval({})",
        Uuid => "pg_in_uuid({})",
        Json => "pg_in_json({})",
        Jsonb => "pg_in_jsonb({})",
        Char => "rtrim({}, ' ')",
        Unknown | Any | Text | Varchar | Array(_) => "{}",
    }
}

/// How a value of SQLite's becomes one of a type.
const fn from_any(to: Type) -> Option<&'static str> {
    Some(match to {
        Text | Varchar => "CAST({} AS TEXT)",
        Bool => "pg_in_bool(CAST({} AS TEXT))",
        Int2 => "pg_in_int2(CAST({} AS TEXT))",
        Int4 => "pg_in_int4(CAST({} AS TEXT))",
        Int8 => "pg_in_int8(CAST({} AS TEXT))",
        Float4 | Float8 => "CAST({} AS REAL)",
        Bytea => "CAST({} AS BLOB)",
        _ => return None,
    })
}

/// How a value of one type becomes one of another, if that happens in this context.
pub(crate) fn conversion(from: Type, to: Type, context: Context) -> Option<&'static str> {
    if from == to || to == Any {
        return Some("{}");
    }
    if let Some((.., how)) = CASTS.iter().find(|cast| cast.0 == from && cast.1 == to && cast.2 <= context) {
        return Some(how);
    }
    match (from, to) {
        (Any, _) => Some(from_any(to).unwrap_or_else(|| from_text(to))),
        (_, Text | Varchar | Char) if context >= Context::Assignment => Some(to_text(from)),
        // Its bytes would be with the blanks at the end.
        (Char, Bytea) => None,
        (Text | Varchar | Char, _) if context == Context::Explicit => Some(from_text(to)),
        _ => None,
    }
}

/// Whether a value is of a wanted type by itself.
pub(crate) fn is_implicit(from: Type, to: Type) -> bool {
    from == Unknown || conversion(from, to, Context::Implicit).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_happen_where_postgresql_has_them() {
        assert!(is_implicit(Int2, Numeric) && is_implicit(Date, Timestamptz) && is_implicit(Varchar, Text));
        for (from, to) in [(Int8, Int4), (Numeric, Int4), (Int4, Text), (Float8, Numeric), (Timestamptz, Date)] {
            assert!(!is_implicit(from, to), "{from:?} {to:?}");
            assert!(conversion(from, to, Context::Assignment).is_some(), "{from:?} {to:?}");
        }
        for (from, to) in [(Int4, Bool), (Text, Int4), (Bool, Int4)] {
            assert!(conversion(from, to, Context::Assignment).is_none(), "{from:?} {to:?}");
            assert!(conversion(from, to, Context::Explicit).is_some(), "{from:?} {to:?}");
        }
        for (from, to) in [(Int2, Bool), (Date, Int4), (Bool, Float8), (Uuid, Bytea)] {
            assert!(conversion(from, to, Context::Explicit).is_none(), "{from:?} {to:?}");
        }
    }
}
