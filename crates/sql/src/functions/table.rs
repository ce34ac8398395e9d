//! All functions: names, arities, and what each is charged.

use super::aggregate::{FloatAverage, FloatSum, IntegerAverage, IntegerSum, NumericAverage, NumericSum, add};
use super::call::{Arguments, Charge, Function, Outcome};
use super::documents::{ArrayOf, ObjectOf};
use super::interval::{IntervalAverage, IntervalSum};
use super::shortest::Width;
use super::{
    bytes, calendar, call, digest, documents, encoding, figures, float, format, integer, interval, json, moments,
    numeric, regex, series, text,
};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Result};

const fn function(name: &'static str, arity: i32, charge: Charge, call: fn(&Arguments<'_>) -> Outcome) -> Function {
    Function { name, arity, charge, call }
}

const ONCE: Charge = Charge::Bytes(1);
const TWICE: Charge = Charge::Bytes(2);
/// JSON is looked through byte by byte.
const EIGHT: Charge = Charge::Bytes(8);
const FIELDS: Charge = Charge::FIELDS;
use Charge::{Digits, Product};

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Function] = &[
    // Integers and truth values
    function("pg_in_bool", 1, ONCE, integer::in_bool),
    function("pg_in_int2", 1, ONCE, |a| integer::input(a, 16)),
    function("pg_in_int4", 1, ONCE, |a| integer::input(a, 32)),
    function("pg_in_int8", 1, ONCE, |a| integer::input(a, 64)),
    function("pg_out_bool", 1, ONCE, integer::out_bool),
    function("pg_int_to_bool", 1, ONCE, integer::to_bool),
    function("pg_bool_to_int", 1, ONCE, integer::of_bool),
    function("pg_to_int2", 1, Digits, |a| numeric::to_integer(a, 16)),
    function("pg_to_int4", 1, Digits, |a| numeric::to_integer(a, 32)),
    function("pg_to_int8", 1, Digits, |a| numeric::to_integer(a, 64)),
    function("pg_int_add", 3, ONCE, integer::add),
    function("pg_int_sub", 3, ONCE, integer::sub),
    function("pg_int_mul", 3, ONCE, integer::mul),
    function("pg_int_div", 3, ONCE, integer::div),
    function("pg_int_mod", 3, ONCE, integer::modulo),
    function("pg_int_neg", 2, ONCE, integer::neg),
    function("pg_int_abs", 2, ONCE, integer::abs),
    // Numbers of rows
    function("pg_only", 1, ONCE, integer::only),
    function("pg_limit", 2, ONCE, integer::limit),
    function("pg_raise", 2, ONCE, call::raise),
    function("pg_int_step", 1, ONCE, series::of_integer),
    function("pg_numeric_step", 1, Digits, series::of_numeric),
    function("pg_interval_step", 1, FIELDS, series::of_interval),
    // Floating-point numbers
    function("pg_in_float4", 1, TWICE, float::in_float4),
    function("pg_in_float8", 1, TWICE, float::in_float8),
    function("pg_out_float4", 1, ONCE, float::out_float4),
    function("pg_out_float8", 1, ONCE, float::out_float8),
    function("pg_to_float4", 1, ONCE, float::to_float4),
    function("pg_float_add", 2, ONCE, |a| float::add(a, Width::Eight)),
    function("pg_float_sub", 2, ONCE, |a| float::sub(a, Width::Eight)),
    function("pg_float_mul", 2, ONCE, |a| float::mul(a, Width::Eight)),
    function("pg_float_div", 2, ONCE, |a| float::div(a, Width::Eight)),
    function("pg_float4_add", 2, ONCE, |a| float::add(a, Width::Four)),
    function("pg_float4_sub", 2, ONCE, |a| float::sub(a, Width::Four)),
    function("pg_float4_mul", 2, ONCE, |a| float::mul(a, Width::Four)),
    function("pg_float4_div", 2, ONCE, |a| float::div(a, Width::Four)),
    function("pg_float_neg", 1, ONCE, float::neg),
    function("pg_float_abs", 1, ONCE, float::abs),
    function("pg_float_round", 1, ONCE, float::round),
    function("pg_float_sqrt", 1, ONCE, float::sqrt),
    function("pg_float_trunc", 1, ONCE, float::trunc),
    function("pg_float_ceil", 1, ONCE, float::ceil),
    function("pg_float_floor", 1, ONCE, float::floor),
    // Exact decimals
    function("pg_in_numeric", 1, Digits, numeric::input),
    function("pg_in_numeric", 3, Digits, numeric::input_fit),
    function("pg_numeric_fit", 3, Digits, numeric::fit),
    function("pg_numeric_to_int2", 1, Digits, |a| numeric::to_integer(a, 16)),
    function("pg_numeric_to_int4", 1, Digits, |a| numeric::to_integer(a, 32)),
    function("pg_numeric_to_int8", 1, Digits, |a| numeric::to_integer(a, 64)),
    function("pg_numeric_to_float4", 1, Digits, numeric::to_float4),
    function("pg_numeric_to_float8", 1, Digits, numeric::to_float8),
    function("pg_float4_to_numeric", 1, Digits, numeric::of_float4),
    function("pg_float8_to_numeric", 1, Digits, numeric::of_float8),
    function("pg_int_to_numeric", 1, ONCE, numeric::of_integer),
    function("pg_numeric_add", 2, Digits, numeric::add),
    function("pg_numeric_sub", 2, Digits, numeric::sub),
    function("pg_numeric_mul", 2, Digits, numeric::mul),
    function("pg_numeric_div", 2, Digits, numeric::div),
    function("pg_numeric_mod", 2, Digits, numeric::modulo),
    function("pg_numeric_neg", 1, Digits, numeric::neg),
    function("pg_numeric_abs", 1, Digits, numeric::abs),
    function("pg_numeric_sign", 1, Digits, numeric::sign),
    function("pg_numeric_round", 1, Digits, numeric::round),
    function("pg_numeric_round", 2, Digits, numeric::round),
    function("pg_numeric_trunc", 1, Digits, numeric::trunc),
    function("pg_numeric_trunc", 2, Digits, numeric::trunc),
    function("pg_numeric_ceil", 1, Digits, numeric::ceil),
    function("pg_numeric_floor", 1, Digits, numeric::floor),
    function("pg_numeric_cmp", 2, ONCE, numeric::cmp),
    function("pg_numeric_to_char", 2, Digits, figures::to_char),
    // Texts and bytes
    function("pg_varchar", 2, TWICE, text::varchar),
    function("pg_varchar_cut", 2, TWICE, text::varchar_cut),
    function("pg_char", 2, TWICE, text::char),
    function("pg_char_cut", 2, TWICE, text::char_cut),
    function("pg_like", 2, Product, text::like),
    function("pg_like", 3, Product, text::like),
    function("pg_ilike", 2, Product, text::ilike),
    function("pg_ilike", 3, Product, text::ilike),
    function("pg_substr", 2, TWICE, text::substr),
    function("pg_substr", 3, TWICE, text::substr),
    function("pg_strpos", 2, TWICE, text::strpos),
    function("pg_lpad", 2, TWICE, text::lpad),
    function("pg_lpad", 3, TWICE, text::lpad),
    function("pg_rpad", 2, TWICE, text::rpad),
    function("pg_rpad", 3, TWICE, text::rpad),
    function("pg_left", 2, TWICE, text::left),
    function("pg_right", 2, TWICE, text::right),
    function("pg_lower", 1, ONCE, text::lower),
    function("pg_upper", 1, ONCE, text::upper),
    function("pg_split_part", 3, TWICE, text::split_part),
    function("pg_repeat", 2, ONCE, text::repeat),
    function("pg_reverse", 1, TWICE, text::reverse),
    function("pg_initcap", 1, TWICE, text::initcap),
    function("pg_translate", 3, FIELDS, text::translate),
    function("pg_regex", 2, ONCE, regex::matches_exactly),
    function("pg_iregex", 2, ONCE, regex::matches_in_any_case),
    function("pg_regex_substring", 2, TWICE, regex::substring),
    function("pg_regex_replace", 3, TWICE, regex::replace),
    function("pg_regex_replace", 4, TWICE, regex::replace),
    function("pg_octet_length", 1, ONCE, bytes::octet_length),
    function("pg_in_bytea", 1, ONCE, bytes::input),
    function("pg_out_bytea", 1, ONCE, bytes::output),
    function("pg_encode", 2, TWICE, encoding::encode),
    function("pg_decode", 2, FIELDS, encoding::decode),
    function("pg_md5", 1, FIELDS, digest::md5),
    function("pg_sha256", 1, FIELDS, digest::sha256),
    function("pg_in_uuid", 1, ONCE, bytes::in_uuid),
    function("pg_in_json", 1, Charge::Bytes(32), json::input),
    function("pg_in_jsonb", 1, Charge::Bytes(64), json::input_binary),
    function("pg_json_field", 2, EIGHT, documents::field),
    function("pg_json_item", 2, EIGHT, documents::item),
    function("pg_jsonb_item", 2, EIGHT, documents::item_or_scalar),
    function("pg_json_step", 2, EIGHT, documents::step),
    function("pg_json_shown", 1, EIGHT, documents::shown),
    function("pg_json_has", 2, EIGHT, documents::has),
    function("pg_json_contains", 2, Product, documents::contains),
    function("pg_jsonb_concat", 2, Charge::Bytes(64), documents::concat),
    function("pg_text_join", 3, Charge::Bytes(32), documents::joined),
    function("pg_json_array_length", 1, EIGHT, documents::array_length),
    function("pg_json_typeof", 1, ONCE, documents::kind),
    function("pg_json_string", 1, EIGHT, documents::quoted),
    function("pg_json_number", 1, ONCE, documents::number),
    function("pg_json_moment", 1, ONCE, documents::moment),
    function("pg_json_key", 1, EIGHT, documents::key),
    function("pg_json_no_key", 0, ONCE, documents::no_key),
    // Dates and times
    function("pg_in_date", 1, FIELDS, calendar::in_date),
    function("pg_in_time", 1, FIELDS, calendar::in_time),
    function("pg_in_timestamp", 1, FIELDS, calendar::in_timestamp),
    function("pg_in_timestamptz", 2, FIELDS, calendar::in_timestamptz),
    function("pg_out_timestamptz", 2, FIELDS, calendar::out_timestamptz),
    function("pg_timestamp_to_date", 1, FIELDS, calendar::timestamp_to_date),
    function("pg_date_to_timestamp", 1, FIELDS, calendar::date_to_timestamp),
    function("pg_timestamp_to_time", 1, FIELDS, calendar::timestamp_to_time),
    function("pg_timestamp_to_timestamptz", 2, FIELDS, calendar::timestamp_to_timestamptz),
    function("pg_timestamptz_to_timestamp", 2, FIELDS, calendar::timestamptz_to_timestamp),
    function("pg_date_add_days", 2, FIELDS, calendar::date_add_days),
    function("pg_date_sub", 2, FIELDS, calendar::date_sub),
    function("pg_date_trunc", 2, FIELDS, calendar::date_trunc),
    function("pg_extract", 2, FIELDS, calendar::extract),
    function("pg_make_date", 3, FIELDS, moments::make_date),
    function("pg_make_timestamp", 6, FIELDS, moments::make_timestamp),
    function("pg_to_timestamp", 1, FIELDS, moments::to_timestamp),
    function("pg_age", 2, FIELDS, moments::age),
    function("pg_to_char", 2, Charge::Bytes(128), format::to_char),
    function("pg_to_char", 3, Charge::Bytes(128), format::to_char),
    function("pg_timestamp_add_interval", 2, FIELDS, calendar::timestamp_add_interval),
    function("pg_timestamp_sub", 2, FIELDS, calendar::timestamp_sub),
    function("pg_moment_fit", 2, FIELDS, calendar::fit),
    function("pg_time_add_interval", 2, FIELDS, calendar::time_add_interval),
    function("pg_time_sub", 2, FIELDS, calendar::time_sub),
    function("pg_in_interval", 1, FIELDS, interval::input),
    function("pg_out_interval", 1, FIELDS, interval::output),
    function("pg_interval_add", 2, FIELDS, interval::add),
    function("pg_interval_sub", 2, FIELDS, interval::sub),
    function("pg_interval_neg", 1, FIELDS, interval::neg),
    function("pg_interval_mul", 2, FIELDS, interval::mul),
    function("pg_interval_div", 2, FIELDS, interval::div),
    function("pg_interval_trunc", 2, FIELDS, interval::trunc),
];

/// Aggregates, which are window functions, too.
const AGGREGATES: [&str; 14] = [
    "pg_bigint_sum",
    "pg_float4_avg",
    "pg_float4_sum",
    "pg_float_avg",
    "pg_float_sum",
    "pg_int_avg",
    "pg_int_sum",
    "pg_interval_avg",
    "pg_interval_sum",
    "pg_json_agg",
    "pg_json_object_agg",
    "pg_json_rows",
    "pg_numeric_avg",
    "pg_numeric_sum",
];

/// Adds the aggregates to a connection.
pub(super) fn add_aggregates(connection: &Connection, flags: FunctionFlags) -> Result<()> {
    add::<NumericSum>(connection, "pg_bigint_sum", 1, flags)?;
    add::<FloatAverage>(connection, "pg_float4_avg", 1, flags)?;
    add::<FloatSum<true>>(connection, "pg_float4_sum", 1, flags)?;
    add::<FloatAverage>(connection, "pg_float_avg", 1, flags)?;
    add::<FloatSum<false>>(connection, "pg_float_sum", 1, flags)?;
    add::<IntegerAverage>(connection, "pg_int_avg", 1, flags)?;
    add::<IntegerSum>(connection, "pg_int_sum", 1, flags)?;
    add::<IntegerSum>(connection, "pg_int_sum", 2, flags)?;
    add::<IntervalAverage>(connection, "pg_interval_avg", 1, flags)?;
    add::<IntervalSum>(connection, "pg_interval_sum", 1, flags)?;
    add::<ArrayOf<false>>(connection, "pg_json_agg", 1, flags)?;
    add::<ObjectOf>(connection, "pg_json_object_agg", 2, flags)?;
    add::<ArrayOf<true>>(connection, "pg_json_rows", 1, flags)?;
    add::<NumericAverage>(connection, "pg_numeric_avg", 1, flags)?;
    add::<NumericSum>(connection, "pg_numeric_sum", 1, flags)
}

/// Whether it is one of these functions.
pub(crate) fn is_function(name: &str) -> bool {
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    FUNCTIONS.iter().any(|function| is(function.name)) || AGGREGATES.into_iter().any(is)
}

/// The functions that are no aggregates, and how many arguments each takes.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = (&'static str, i32)> {
    FUNCTIONS.iter().map(|function| (function.name, function.arity))
}
