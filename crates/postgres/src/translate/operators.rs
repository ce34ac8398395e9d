//! PostgreSQL's operators, and how SQLite says them.

use super::kinds::Type::{self, *};
use super::resolve::Signature;

macro_rules! operators {
    ($($name:literal ($($input:ident),+) -> $result:ident $how:literal;)*) => {
        &[$(Signature { name: $name, inputs: &[$($input),+], result: $result, how: $how }),*]
    };
}

/// Arithmetic and text; comparisons are in [`comparison`], for they are the same for all types.
#[rustfmt::skip]
pub(crate) const OPERATORS: &[Signature] = operators! {
    "+" (Int2, Int2) -> Int2 "pg_int_add({0}, {1}, 16)";
    "+" (Int4, Int4) -> Int4 "pg_int_add({0}, {1}, 32)";
    "+" (Int8, Int8) -> Int8 "pg_int_add({0}, {1}, 64)";
    "-" (Int2, Int2) -> Int2 "pg_int_sub({0}, {1}, 16)";
    "-" (Int4, Int4) -> Int4 "pg_int_sub({0}, {1}, 32)";
    "-" (Int8, Int8) -> Int8 "pg_int_sub({0}, {1}, 64)";
    "*" (Int2, Int2) -> Int2 "pg_int_mul({0}, {1}, 16)";
    "*" (Int4, Int4) -> Int4 "pg_int_mul({0}, {1}, 32)";
    "*" (Int8, Int8) -> Int8 "pg_int_mul({0}, {1}, 64)";
    "/" (Int2, Int2) -> Int2 "pg_int_div({0}, {1}, 16)";
    "/" (Int4, Int4) -> Int4 "pg_int_div({0}, {1}, 32)";
    "/" (Int8, Int8) -> Int8 "pg_int_div({0}, {1}, 64)";
    "%" (Int2, Int2) -> Int2 "pg_int_mod({0}, {1}, 16)";
    "%" (Int4, Int4) -> Int4 "pg_int_mod({0}, {1}, 32)";
    "%" (Int8, Int8) -> Int8 "pg_int_mod({0}, {1}, 64)";
    "&" (Int2, Int2) -> Int2 "({0} & {1})";
    "&" (Int4, Int4) -> Int4 "({0} & {1})";
    "&" (Int8, Int8) -> Int8 "({0} & {1})";
    "|" (Int2, Int2) -> Int2 "({0} | {1})";
    "|" (Int4, Int4) -> Int4 "({0} | {1})";
    "|" (Int8, Int8) -> Int8 "({0} | {1})";
    "+" (Numeric, Numeric) -> Numeric "pg_numeric_add({0}, {1})";
    "-" (Numeric, Numeric) -> Numeric "pg_numeric_sub({0}, {1})";
    "*" (Numeric, Numeric) -> Numeric "pg_numeric_mul({0}, {1})";
    "/" (Numeric, Numeric) -> Numeric "pg_numeric_div({0}, {1})";
    "%" (Numeric, Numeric) -> Numeric "pg_numeric_mod({0}, {1})";
    "+" (Float8, Float8) -> Float8 "pg_float_add({0}, {1})";
    "+" (Float4, Float8) -> Float8 "pg_float_add({0}, {1})";
    "+" (Float8, Float4) -> Float8 "pg_float_add({0}, {1})";
    "-" (Float8, Float8) -> Float8 "pg_float_sub({0}, {1})";
    "-" (Float4, Float8) -> Float8 "pg_float_sub({0}, {1})";
    "-" (Float8, Float4) -> Float8 "pg_float_sub({0}, {1})";
    "*" (Float8, Float8) -> Float8 "pg_float_mul({0}, {1})";
    "*" (Float4, Float8) -> Float8 "pg_float_mul({0}, {1})";
    "*" (Float8, Float4) -> Float8 "pg_float_mul({0}, {1})";
    "/" (Float8, Float8) -> Float8 "pg_float_div({0}, {1})";
    "/" (Float4, Float8) -> Float8 "pg_float_div({0}, {1})";
    "/" (Float8, Float4) -> Float8 "pg_float_div({0}, {1})";
    "+" (Float4, Float4) -> Float4 "pg_float4_add({0}, {1})";
    "-" (Float4, Float4) -> Float4 "pg_float4_sub({0}, {1})";
    "*" (Float4, Float4) -> Float4 "pg_float4_mul({0}, {1})";
    "/" (Float4, Float4) -> Float4 "pg_float4_div({0}, {1})";
    "+" (Date, Int4) -> Date "pg_date_add_days({0}, {1})";
    "+" (Int4, Date) -> Date "pg_date_add_days({1}, {0})";
    "-" (Date, Int4) -> Date "pg_date_add_days({0}, -({1}))";
    "-" (Date, Date) -> Int4 "pg_date_sub({0}, {1})";
    "+" (Date, Interval) -> Timestamp "pg_timestamp_add_interval(pg_date_to_timestamp({0}), {1})";
    "+" (Interval, Date) -> Timestamp "pg_timestamp_add_interval(pg_date_to_timestamp({1}), {0})";
    "-" (Date, Interval) -> Timestamp
        "pg_timestamp_add_interval(pg_date_to_timestamp({0}), pg_interval_neg({1}))";
    "+" (Timestamp, Interval) -> Timestamp "pg_timestamp_add_interval({0}, {1})";
    "+" (Interval, Timestamp) -> Timestamp "pg_timestamp_add_interval({1}, {0})";
    "-" (Timestamp, Interval) -> Timestamp "pg_timestamp_add_interval({0}, pg_interval_neg({1}))";
    "+" (Timestamptz, Interval) -> Timestamptz
        "pg_timestamp_to_timestamptz(pg_timestamp_add_interval(pg_timestamptz_to_timestamp({0}, {zone}), {1}), {zone})";
    "+" (Interval, Timestamptz) -> Timestamptz
        "pg_timestamp_to_timestamptz(pg_timestamp_add_interval(pg_timestamptz_to_timestamp({1}, {zone}), {0}), {zone})";
    "-" (Timestamptz, Interval) -> Timestamptz
        "pg_timestamp_to_timestamptz(pg_timestamp_add_interval(pg_timestamptz_to_timestamp({0}, {zone}), \
         pg_interval_neg({1})), {zone})";
    "-" (Timestamp, Timestamp) -> Interval "pg_timestamp_sub({0}, {1})";
    "-" (Timestamptz, Timestamptz) -> Interval "pg_timestamp_sub({0}, {1})";
    "+" (Time, Interval) -> Time "pg_time_add_interval({0}, {1})";
    "-" (Time, Interval) -> Time "pg_time_add_interval({0}, pg_interval_neg({1}))";
    "+" (Interval, Interval) -> Interval "pg_interval_add({0}, {1})";
    "-" (Interval, Interval) -> Interval "pg_interval_sub({0}, {1})";
    "*" (Interval, Float8) -> Interval "pg_interval_mul({0}, {1})";
    "*" (Float8, Interval) -> Interval "pg_interval_mul({1}, {0})";
    "/" (Interval, Float8) -> Interval "pg_interval_div({0}, {1})";
    "-" (Time, Time) -> Interval "pg_time_sub({0}, {1})";
    "->" (Json, Text) -> Json "pg_json_field({0}, {1})";
    "->" (Json, Int4) -> Json "pg_json_item({0}, {1})";
    "->" (Jsonb, Text) -> Jsonb "pg_json_field({0}, {1})";
    "->" (Jsonb, Int4) -> Jsonb "pg_jsonb_item({0}, {1})";
    "->>" (Json, Text) -> Text "pg_json_shown(pg_json_field({0}, {1}))";
    "->>" (Json, Int4) -> Text "pg_json_shown(pg_json_item({0}, {1}))";
    "->>" (Jsonb, Text) -> Text "pg_json_shown(pg_json_field({0}, {1}))";
    "->>" (Jsonb, Int4) -> Text "pg_json_shown(pg_jsonb_item({0}, {1}))";
    "@>" (Jsonb, Jsonb) -> Bool "pg_json_contains({0}, {1})";
    "<@" (Jsonb, Jsonb) -> Bool "pg_json_contains({1}, {0})";
    "?" (Jsonb, Text) -> Bool "pg_json_has({0}, {1})";
    "||" (Jsonb, Jsonb) -> Jsonb "pg_jsonb_concat({0}, {1})";
    "~" (Text, Text) -> Bool "pg_regex({0}, {1})";
    "~*" (Text, Text) -> Bool "pg_iregex({0}, {1})";
    "!~" (Text, Text) -> Bool "(NOT pg_regex({0}, {1}))";
    "!~*" (Text, Text) -> Bool "(NOT pg_iregex({0}, {1}))";
    "||" (Text, Text) -> Text "({0} || {1})";
    "||" (Bytea, Bytea) -> Bytea "CAST({0} || {1} AS BLOB)";
};

/// Operators with one operand.
#[rustfmt::skip]
pub(crate) const PREFIXES: &[Signature] = operators! {
    "-" (Int2) -> Int2 "pg_int_neg({0}, 16)";
    "-" (Int4) -> Int4 "pg_int_neg({0}, 32)";
    "-" (Int8) -> Int8 "pg_int_neg({0}, 64)";
    "-" (Numeric) -> Numeric "pg_numeric_neg({0})";
    "-" (Float4) -> Float4 "pg_float_neg({0})";
    "-" (Float8) -> Float8 "pg_float_neg({0})";
    "-" (Interval) -> Interval "pg_interval_neg({0})";
    "+" (Int2) -> Int2 "{0}";
    "+" (Int4) -> Int4 "{0}";
    "+" (Int8) -> Int8 "{0}";
    "+" (Numeric) -> Numeric "{0}";
    "+" (Float4) -> Float4 "{0}";
    "+" (Float8) -> Float8 "{0}";
    "~" (Int2) -> Int2 "(~ {0})";
    "~" (Int4) -> Int4 "(~ {0})";
    "~" (Int8) -> Int8 "(~ {0})";
    "@" (Int4) -> Int4 "pg_int_abs({0}, 32)";
    "@" (Numeric) -> Numeric "pg_numeric_abs({0})";
    "@" (Float8) -> Float8 "pg_float_abs({0})";
};

/// Types that can be compared, each with itself; `numeric` needs its collation.
const COMPARED: &[Signature] = operators! {
    "" (Bool, Bool) -> Bool "";
    "" (Int2, Int2) -> Bool "";
    "" (Int4, Int4) -> Bool "";
    "" (Int8, Int8) -> Bool "";
    "" (Float4, Float4) -> Bool "";
    "" (Float4, Float8) -> Bool "";
    "" (Float8, Float4) -> Bool "";
    "" (Float8, Float8) -> Bool "";
    "" (Numeric, Numeric) -> Bool "";
    "" (Text, Text) -> Bool "";
    "" (Char, Char) -> Bool "";
    "" (Bytea, Bytea) -> Bool "";
    "" (Date, Date) -> Bool "";
    "" (Time, Time) -> Bool "";
    "" (Timestamp, Timestamp) -> Bool "";
    "" (Timestamptz, Timestamptz) -> Bool "";
    "" (Interval, Interval) -> Bool "";
    "" (Uuid, Uuid) -> Bool "";
    "" (Jsonb, Jsonb) -> Bool "";
};

/// The operators with this name.
pub(crate) fn named(name: &str) -> Vec<&'static Signature> {
    if is_comparison(name) {
        return COMPARED.iter().collect();
    }
    OPERATORS.iter().filter(|operator| operator.name == name).collect()
}

/// Those with one operand.
pub(crate) fn prefixes(name: &str) -> Vec<&'static Signature> {
    PREFIXES.iter().filter(|operator| operator.name == name).collect()
}

/// Whether an operator compares.
pub(crate) fn is_comparison(name: &str) -> bool {
    matches!(name, "=" | "<>" | "<" | "<=" | ">" | ">=")
}

/// Two operands of one type, compared.
pub(crate) fn comparison(name: &str, kind: Type, left: &str, right: &str) -> String {
    format!("({left}{} {name} {right})", kind.collation())
}
