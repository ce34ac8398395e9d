//! PostgreSQL's functions, and how SQLite says them. What stands in none of these tables is a function of SQLite's own,
//! if the replicas have it; its results are of whatever type its values have.

use super::kinds::Type::{self, *};
use super::resolve::Signature;

macro_rules! functions {
    ($($name:ident ($($input:ident),*) -> $result:ident $how:expr;)*) => {
        &[$(Signature { name: stringify!($name), inputs: &[$($input),*], result: $result, how: $how }),*]
    };
}

/// Rows from a start to a stop by steps, from how the step is said, its sign, the next value, and a collation. What
/// comes next is made before it is known whether it comes: so integers, whose range ends, have a condition of their
/// own. The name in it is none that a table is likely to have.
macro_rules! series {
    ($step:literal, $sign:literal, $next:literal, $collation:literal) => {
        series!(
            $step,
            $sign,
            $next,
            concat!("iif(sign > 0, value", $collation, " <= stop, value", $collation, " >= stop)"),
            $collation
        )
    };
    ($step:literal, $sign:literal, $next:literal, $goes_on:expr, $collation:literal) => {
        concat!(
            "WITH RECURSIVE \"a series\"(value, stop, step, sign) AS (SELECT value, stop, step, ",
            $sign,
            "(step) FROM (SELECT {0} AS value, {1} AS stop, ",
            $step,
            " AS step) UNION ALL SELECT ",
            $next,
            ", stop, step, sign FROM \"a series\" WHERE ",
            $goes_on,
            ") SELECT value FROM \"a series\" WHERE iif(sign > 0, value",
            $collation,
            " <= stop, value",
            $collation,
            " >= stop)"
        )
    };
}

macro_rules! integers {
    ($step:literal) => {
        series!($step, "pg_int_step", "value + step", "iif(sign > 0, stop - value >= step, stop - value <= step)", "")
    };
}

/// The agreed time, as a `timestamptz`.
pub(crate) const NOW: &str = "pg_in_timestamptz(strftime('%Y-%m-%d %H:%M:%f', 'now') || '+00', 'UTC')";

/// The midnight with which the day began in the session's zone.
pub(crate) const TODAY: &str = "pg_date_to_timestamp(pg_timestamp_to_date(pg_timestamptz_to_timestamp({now}, {zone})))";

/// A UUID of 122 random bits that replicas agree on; the rest says so (RFC 9562, version 4).
pub(crate) const RANDOM_UUID: &str = "pg_in_uuid(hex(randomblob(6)) || '4' || substr(hex(randomblob(2)), 2) || \
     substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(8)), 2))";

/// Functions of one row. `{0}`, `{1}` and so on are the arguments.
#[rustfmt::skip]
const SCALARS: &[Signature] = functions! {
    abs(Int2) -> Int2 "pg_int_abs({0}, 16)";
    abs(Int4) -> Int4 "pg_int_abs({0}, 32)";
    abs(Int8) -> Int8 "pg_int_abs({0}, 64)";
    abs(Numeric) -> Numeric "pg_numeric_abs({0})";
    abs(Float4) -> Float4 "pg_float_abs({0})";
    abs(Float8) -> Float8 "pg_float_abs({0})";
    round(Numeric) -> Numeric "pg_numeric_round({0}, 0)";
    round(Numeric, Int4) -> Numeric "pg_numeric_round({0}, {1})";
    round(Float8) -> Float8 "pg_float_round({0})";
    trunc(Float8) -> Float8 "pg_float_trunc({0})";
    ceil(Float8) -> Float8 "pg_float_ceil({0})";
    ceiling(Float8) -> Float8 "pg_float_ceil({0})";
    floor(Float8) -> Float8 "pg_float_floor({0})";
    trunc(Numeric) -> Numeric "pg_numeric_trunc({0}, 0)";
    trunc(Numeric, Int4) -> Numeric "pg_numeric_trunc({0}, {1})";
    ceil(Numeric) -> Numeric "pg_numeric_ceil({0})";
    ceiling(Numeric) -> Numeric "pg_numeric_ceil({0})";
    floor(Numeric) -> Numeric "pg_numeric_floor({0})";
    sign(Numeric) -> Numeric "pg_numeric_sign({0})";
    sign(Float8) -> Float8 "CAST(sign({0}) AS REAL)";
    r#mod(Int2, Int2) -> Int2 "pg_int_mod({0}, {1}, 16)";
    r#mod(Int4, Int4) -> Int4 "pg_int_mod({0}, {1}, 32)";
    r#mod(Int8, Int8) -> Int8 "pg_int_mod({0}, {1}, 64)";
    r#mod(Numeric, Numeric) -> Numeric "pg_numeric_mod({0}, {1})";
    length(Text) -> Int4 "length({0})";
    length(Char) -> Int4 "length({0})";
    length(Bytea) -> Int4 "length({0})";
    char_length(Text) -> Int4 "length({0})";
    character_length(Text) -> Int4 "length({0})";
    octet_length(Text) -> Int4 "octet_length({0})";
    octet_length(Bytea) -> Int4 "octet_length({0})";
    lower(Text) -> Text "pg_lower({0})";
    upper(Text) -> Text "pg_upper({0})";
    substr(Text, Int4) -> Text "pg_substr({0}, {1})";
    substr(Text, Int4, Int4) -> Text "pg_substr({0}, {1}, {2})";
    substring(Text, Int4) -> Text "pg_substr({0}, {1})";
    substring(Text, Int4, Int4) -> Text "pg_substr({0}, {1}, {2})";
    left(Text, Int4) -> Text "pg_left({0}, {1})";
    right(Text, Int4) -> Text "pg_right({0}, {1})";
    lpad(Text, Int4) -> Text "pg_lpad({0}, {1}, ' ')";
    lpad(Text, Int4, Text) -> Text "pg_lpad({0}, {1}, {2})";
    rpad(Text, Int4) -> Text "pg_rpad({0}, {1}, ' ')";
    rpad(Text, Int4, Text) -> Text "pg_rpad({0}, {1}, {2})";
    strpos(Text, Text) -> Int4 "pg_strpos({0}, {1})";
    position(Text, Text) -> Int4 "pg_strpos({0}, {1})";
    replace(Text, Text, Text) -> Text "replace({0}, {1}, {2})";
    btrim(Text) -> Text "trim({0}, ' ')";
    btrim(Text, Text) -> Text "trim({0}, {1})";
    ltrim(Text) -> Text "ltrim({0}, ' ')";
    ltrim(Text, Text) -> Text "ltrim({0}, {1})";
    rtrim(Text) -> Text "rtrim({0}, ' ')";
    rtrim(Text, Text) -> Text "rtrim({0}, {1})";
    ascii(Text) -> Int4 "coalesce(unicode({0}), iif({0} IS NULL, NULL, 0))";
    chr(Int4) -> Text "char({0})";
    starts_with(Text, Text) -> Bool "(pg_left({0}, length({1})) = {1})";
    split_part(Text, Text, Int4) -> Text "pg_split_part({0}, {1}, {2})";
    repeat(Text, Int4) -> Text "pg_repeat({0}, {1})";
    reverse(Text) -> Text "pg_reverse({0})";
    initcap(Text) -> Text "pg_initcap({0})";
    translate(Text, Text, Text) -> Text "pg_translate({0}, {1}, {2})";
    md5(Text) -> Text "pg_md5({0})";
    md5(Bytea) -> Text "pg_md5({0})";
    sha256(Bytea) -> Bytea "pg_sha256({0})";
    encode(Bytea, Text) -> Text "pg_encode({0}, {1})";
    decode(Text, Text) -> Bytea "pg_decode({0}, {1})";
    substring(Text, Text) -> Text "pg_regex_substring({0}, {1})";
    regexp_replace(Text, Text, Text) -> Text "pg_regex_replace({0}, {1}, {2})";
    regexp_replace(Text, Text, Text, Text) -> Text "pg_regex_replace({0}, {1}, {2}, {3})";
    regexp_like(Text, Text) -> Bool "pg_regex({0}, {1})";
    json_array_length(Json) -> Int4 "pg_json_array_length({0})";
    jsonb_array_length(Jsonb) -> Int4 "pg_json_array_length({0})";
    json_typeof(Json) -> Text "pg_json_typeof({0})";
    jsonb_typeof(Jsonb) -> Text "pg_json_typeof({0})";
    pi() -> Float8 "3.141592653589793";
    sqrt(Float8) -> Float8 "pg_float_sqrt({0})";
    // Here for the sake of choosing only.
    sqrt(Numeric) -> Numeric "";
    gen_random_uuid() -> Uuid "{uuid}";
    uuid_generate_v4() -> Uuid "{uuid}";
    now() -> Timestamptz "{now}";
    transaction_timestamp() -> Timestamptz "{now}";
    statement_timestamp() -> Timestamptz "{now}";
    clock_timestamp() -> Timestamptz "{now}";
    date(Timestamp) -> Date "pg_timestamp_to_date({0})";
    date(Timestamptz) -> Date "pg_timestamp_to_date(pg_timestamptz_to_timestamp({0}, {zone}))";
    date(Date) -> Date "{0}";
    date_trunc(Text, Interval) -> Interval "pg_interval_trunc({0}, {1})";
    date_trunc(Text, Timestamp) -> Timestamp "pg_date_trunc({0}, {1})";
    date_trunc(Text, Timestamptz) -> Timestamptz
        "pg_timestamp_to_timestamptz(pg_date_trunc({0}, pg_timestamptz_to_timestamp({1}, {zone})), {zone})";
    extract(Text, Date) -> Numeric "pg_extract({0}, {1})";
    extract(Text, Time) -> Numeric "pg_extract({0}, {1})";
    extract(Text, Timestamp) -> Numeric "pg_extract({0}, {1})";
    date_part(Text, Date) -> Float8 "pg_numeric_to_float8(pg_extract({0}, {1}))";
    date_part(Text, Timestamp) -> Float8 "pg_numeric_to_float8(pg_extract({0}, {1}))";
    extract(Text, Interval) -> Numeric "pg_extract({0}, {1})";
    date_part(Text, Time) -> Float8 "pg_numeric_to_float8(pg_extract({0}, {1}))";
    date_part(Text, Interval) -> Float8 "pg_numeric_to_float8(pg_extract({0}, {1}))";
    make_date(Int4, Int4, Int4) -> Date "pg_make_date({0}, {1}, {2})";
    make_timestamp(Int4, Int4, Int4, Int4, Int4, Float8) -> Timestamp
        "pg_make_timestamp({0}, {1}, {2}, {3}, {4}, {5})";
    to_timestamp(Float8) -> Timestamptz "pg_to_timestamp({0})";
    to_timestamp(Text, Text) -> Timestamptz "";
    age(Timestamp, Timestamp) -> Interval "pg_age({0}, {1})";
    age(Timestamptz, Timestamptz) -> Interval
        "pg_age(pg_timestamptz_to_timestamp({0}, {zone}), pg_timestamptz_to_timestamp({1}, {zone}))";
    age(Timestamp) -> Interval "pg_age({today}, {0})";
    age(Timestamptz) -> Interval "pg_age({today}, pg_timestamptz_to_timestamp({0}, {zone}))";
    to_char(Timestamp, Text) -> Text "pg_to_char({0}, {1})";
    to_char(Timestamptz, Text) -> Text "pg_to_char(pg_timestamptz_to_timestamp({0}, {zone}), {1}, {zone})";
    // Here for the sake of choosing only.
    to_char(Interval, Text) -> Text "";
    to_char(Time, Text) -> Text "";
    to_char(Int4, Text) -> Text "pg_numeric_to_char({0}, {1})";
    to_char(Int8, Text) -> Text "pg_numeric_to_char({0}, {1})";
    to_char(Float4, Text) -> Text "";
    to_char(Float8, Text) -> Text "";
    to_char(Numeric, Text) -> Text "pg_numeric_to_char({0}, {1})";
    random() -> Float8 "((random() & 9007199254740991) / 9007199254740992.0)";
};

/// Functions of many rows. `{0}` is the argument, with DISTINCT before it if that was said.
#[rustfmt::skip]
const AGGREGATES: &[Signature] = functions! {
    sum(Interval) -> Interval "pg_interval_sum({0})";
    avg(Interval) -> Interval "pg_interval_avg({0})";
    sum(Int2) -> Int8 "pg_int_sum({0})";
    sum(Int4) -> Int8 "pg_int_sum({0})";
    sum(Int8) -> Numeric "pg_bigint_sum({0})";
    sum(Numeric) -> Numeric "pg_numeric_sum({0})";
    sum(Float4) -> Float4 "pg_float4_sum({0})";
    sum(Float8) -> Float8 "pg_float_sum({0})";
    avg(Int2) -> Numeric "pg_int_avg({0})";
    avg(Int4) -> Numeric "pg_int_avg({0})";
    avg(Int8) -> Numeric "pg_int_avg({0})";
    avg(Numeric) -> Numeric "pg_numeric_avg({0})";
    avg(Float4) -> Float8 "pg_float4_avg({0})";
    avg(Float8) -> Float8 "pg_float_avg({0})";
    bool_and(Bool) -> Bool "min({0})";
    bool_or(Bool) -> Bool "max({0})";
    every(Bool) -> Bool "min({0})";
    string_agg(Text, Text) -> Text "group_concat({0}, {1})";
};

/// What min and max take.
pub(crate) const ORDERED: &[Type] =
    &[Int2, Int4, Int8, Float4, Float8, Numeric, Text, Date, Time, Timestamp, Timestamptz, Interval];

/// Functions that only make sense over a window.
#[rustfmt::skip]
const WINDOWS: &[Signature] = functions! {
    row_number() -> Int8 "row_number()";
    rank() -> Int8 "rank()";
    dense_rank() -> Int8 "dense_rank()";
    percent_rank() -> Float8 "percent_rank()";
    cume_dist() -> Float8 "cume_dist()";
    ntile(Int4) -> Int4 "ntile({0})";
};

/// Functions that give several rows, each with a `value`.
#[rustfmt::skip]
const SETS: &[Signature] = functions! {
    generate_series(Int4, Int4) -> Int4 integers!("1");
    generate_series(Int4, Int4, Int4) -> Int4 integers!("{2}");
    generate_series(Int8, Int8) -> Int8 integers!("1");
    generate_series(Int8, Int8, Int8) -> Int8 integers!("{2}");
    generate_series(Numeric, Numeric) -> Numeric
        series!("'1'", "pg_numeric_step", "pg_numeric_add(value, step)", " COLLATE pg_numeric");
    generate_series(Numeric, Numeric, Numeric) -> Numeric
        series!("{2}", "pg_numeric_step", "pg_numeric_add(value, step)", " COLLATE pg_numeric");
    generate_series(Timestamp, Timestamp, Interval) -> Timestamp
        series!("{2}", "pg_interval_step", "pg_timestamp_add_interval(value, step)", "");
    generate_series(Timestamptz, Timestamptz, Interval) -> Timestamptz
        series!("{2}", "pg_interval_step", "pg_timestamp_to_timestamptz(pg_timestamp_add_interval(\
        pg_timestamptz_to_timestamp(value, {zone}), step), {zone})", "");
};

/// Functions of PostgreSQL's that are not here, although SQLite may have one of this name that does something else.
pub(crate) const REFUSED: &[&str] = &[
    "div",
    "quote_literal",
    "quote_nullable",
    "array_agg",
    "array_length",
    "array_to_string",
    "json_object",
    "jsonb_object",
    "jsonb_set",
    "jsonb_insert",
    "make_interval",
    "nextval",
    "currval",
    "setval",
    "lastval",
    "regexp_count",
    "regexp_instr",
    "regexp_match",
    "regexp_matches",
    "string_to_array",
    "to_date",
    "to_number",
    "format",
    "power",
    "exp",
    "ln",
    "log",
    "width_bucket",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "variance",
    "var_pop",
    "var_samp",
    "corr",
    "percentile_cont",
    "mode",
    "timeofday",
    "pg_advisory_lock",
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_xact_lock",
    "pg_notify",
    "pg_sleep",
    "pg_try_advisory_lock",
    "pg_try_advisory_xact_lock",
    "pg_typeof",
];

/// What kind of function it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Scalar,
    Aggregate,
    Window,
    /// Of FROM alone.
    Set,
}

/// The functions with this name, and their kind; nothing: PostgreSQL has none, or it is treated elsewhere.
pub(crate) fn named(name: &str) -> Option<(Sort, Vec<&'static Signature>)> {
    let is_it = |signature: &&Signature| signature.name.trim_start_matches("r#") == name;
    let tables = [(Sort::Scalar, SCALARS), (Sort::Aggregate, AGGREGATES), (Sort::Window, WINDOWS), (Sort::Set, SETS)];
    tables.into_iter().find_map(|(sort, table)| {
        let found: Vec<_> = table.iter().filter(is_it).collect();
        (!found.is_empty()).then_some((sort, found))
    })
}
