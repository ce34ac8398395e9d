//! The client library for other languages: a C interface over `bezant_node::client`.
//!
//! A client must not believe one replica, so that it cannot be a socket and a parser in each language: it numbers and
//! proves its requests, and compares what 2f + 1 replicas say. That is done once, in Rust, and this crate opens it to
//! others (`docs/decisions/0018-other-languages.md` says why). `include/bezant.h` is the interface as C reads it,
//! and says what each function does; the Python package in `clients/python` stands on it.
//!
//! | file | what |
//! |---|---|
//! | `lib.rs` | the functions: bytes of C become values of Rust, and nothing else happens |
//! | `types.rs` | what crosses the boundary |
//! | `clients.rs` | the clients that are open, by number |
//! | `ask.rs` | keys and values, SQL, and operations of a service of one's own |
//! | `outcome.rs` | what came of a call |
//!
//! This is the only file with unsafe code. What it relies on: pointers that a caller gives are null or point to as
//! much as the caller says, for as long as the call takes; a result is one that a call of ours returned and that has
//! not been freed. Everything else is checked. No panic crosses: one inside of a call becomes [`Code::Internal`], and
//! the rest reads vectors by `get`.

#![allow(unsafe_code)]

mod ask;
mod clients;
mod outcome;
mod types;

pub use outcome::{Code, Outcome};
pub use types::{BezantBytes, BezantFailure, BezantStatement, BezantTable, BezantValue};

use bezant_sql::{PARAMETERS_MAX, STATEMENTS_MAX, Statement, VALUE_BYTES_MAX, Value};
use bytes::Bytes;
use outcome::Problem;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

/// Grows with every change after which a program that was compiled before would not run.
const ABI: u32 = 1;
/// The longest time-out, in milliseconds: a day.
const TIMEOUT_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// Carries out a call, whatever happens in it.
fn call(work: impl FnOnce() -> Result<Outcome, Problem>) -> *mut Outcome {
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Problem::internal()));
    Box::into_raw(Box::new(done.unwrap_or_else(Outcome::from)))
}

const fn timeout(milliseconds: u64) -> Duration {
    Duration::from_millis(if milliseconds < TIMEOUT_MS_MAX { milliseconds } else { TIMEOUT_MS_MAX })
}

/// What a caller's pointer points to.
///
/// # Safety
/// The pointer is null or points to so many values that nobody changes during the call.
unsafe fn slice<'a, T>(data: *const T, length: usize) -> Result<&'a [T], Problem> {
    match (data.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Problem::invalid("a null pointer with a length")),
        (false, _) if length > isize::MAX as usize / size_of::<T>() => Err(Problem::invalid("too long")),
        // SAFETY: as the caller of this function promises; the length in bytes has just been bounded.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(data, length) }),
    }
}

/// # Safety
/// As for [`slice()`].
unsafe fn bytes(given: BezantBytes) -> Result<Bytes, Problem> {
    // SAFETY: as the caller promises.
    Ok(Bytes::copy_from_slice(unsafe { slice(given.data, given.length) }?))
}

/// # Safety
/// Null, or one such value.
unsafe fn optional(given: *const BezantBytes) -> Result<Option<Bytes>, Problem> {
    // SAFETY: as the caller promises.
    unsafe { given.as_ref().map(|given| bytes(*given)).transpose() }
}

/// # Safety
/// As for [`slice()`].
unsafe fn text(given: BezantBytes) -> Result<String, Problem> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { slice(given.data, given.length) }?;
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Problem::invalid("a text that is not UTF-8"))
}

/// # Safety
/// As for [`slice()`].
unsafe fn path(given: *const c_char) -> Result<Option<PathBuf>, Problem> {
    if given.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and the caller promises that it ends with a zero.
    let name = unsafe { std::ffi::CStr::from_ptr(given) };
    name.to_str().map(|name| Some(name.into())).map_err(|_| Problem::invalid("a path that is not UTF-8"))
}

/// # Safety
/// As for [`slice()`], and for the bytes of each value.
unsafe fn statement(given: &BezantStatement) -> Result<Statement, Problem> {
    if given.count > PARAMETERS_MAX {
        return Err(Problem::invalid("too many parameters"));
    }
    // SAFETY: as the caller promises, here and for the bytes of each.
    let values = unsafe { slice(given.parameters, given.count) }?.iter().map(|given| unsafe { value(given) });
    // SAFETY: as the caller promises.
    Ok(Statement::with(unsafe { text(given.sql) }?, values.collect::<Result<Vec<_>, _>>()?))
}

/// # Safety
/// As for [`slice()`].
unsafe fn value(given: &BezantValue) -> Result<Value, Problem> {
    if matches!(given.kind, types::TEXT | types::BLOB) && given.bytes.length > VALUE_BYTES_MAX {
        return Err(Problem::invalid("a value has at most 1 MiB"));
    }
    Ok(match given.kind {
        types::NULL => Value::Null,
        types::INTEGER => Value::Integer(given.integer),
        // As SQLite has it: there is no NaN.
        types::REAL if given.real.is_nan() => Value::Null,
        types::REAL => Value::Real(given.real),
        // SAFETY: as the caller promises.
        types::TEXT => Value::Text(unsafe { text(given.bytes) }?),
        // SAFETY: as the caller promises.
        types::BLOB => Value::Blob(unsafe { bytes(given.bytes) }?),
        _ => return Err(Problem::invalid("a value of a kind that there is not")),
    })
}

/// The version of this interface: that of a header must be equal.
#[unsafe(no_mangle)]
pub extern "C" fn bezant_abi() -> u32 {
    ABI
}

/// Connects; see the header.
///
/// # Safety
/// Paths are null or end with a zero; `client` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_open(cluster: *const c_char, key: *const c_char, client: *mut u64) -> *mut Outcome {
    call(|| {
        // SAFETY: as the caller promises.
        let (cluster, key) = unsafe { (path(cluster)?, path(key)?) };
        let cluster = cluster.ok_or_else(|| Problem::invalid("no cluster file is named"))?;
        // SAFETY: null, or it may be written, as the caller promises.
        let client = unsafe { client.as_mut() }.ok_or_else(|| Problem::invalid("no place for the client"))?;
        *client = clients::open(&cluster, key.as_deref())?;
        Ok(Outcome::default())
    })
}

/// Closes a client; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn bezant_close(client: u64) {
    // What it cannot do need not be known: the client is gone in any case.
    drop(catch_unwind(|| clients::close(client)));
}

/// Has an operation ordered and executed; see the header.
///
/// # Safety
/// Bytes point to as many as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_execute(client: u64, operation: BezantBytes, timeout_ms: u64) -> *mut Outcome {
    // SAFETY: as the caller promises.
    call(|| ask::execute(&clients::get(client)?, unsafe { bytes(operation) }?, timeout(timeout_ms)))
}

/// Asks an operation that only reads; see the header.
///
/// # Safety
/// Bytes point to as many as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_query(client: u64, operation: BezantBytes, timeout_ms: u64) -> *mut Outcome {
    // SAFETY: as the caller promises.
    call(|| ask::query(&clients::get(client)?, unsafe { bytes(operation) }?, timeout(timeout_ms)))
}

/// The value of a key; see the header.
///
/// # Safety
/// Bytes point to as many as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_get(client: u64, key: BezantBytes, timeout_ms: u64) -> *mut Outcome {
    // SAFETY: as the caller promises.
    call(|| ask::get(&clients::get(client)?, unsafe { bytes(key) }?, timeout(timeout_ms)))
}

/// Gives a key a value; see the header.
///
/// # Safety
/// Bytes point to as many as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_set(
    client: u64,
    key: BezantBytes,
    value: BezantBytes,
    timeout_ms: u64,
) -> *mut Outcome {
    // SAFETY: as the caller promises.
    call(|| unsafe { ask::set(&clients::get(client)?, bytes(key)?, bytes(value)?, timeout(timeout_ms)) })
}

/// Removes a key; see the header.
///
/// # Safety
/// Bytes point to as many as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_delete(client: u64, key: BezantBytes, timeout_ms: u64) -> *mut Outcome {
    // SAFETY: as the caller promises.
    call(|| ask::delete(&clients::get(client)?, unsafe { bytes(key) }?, timeout(timeout_ms)))
}

/// Gives a key a value if it has the expected one; see the header.
///
/// # Safety
/// Bytes point to as many as they say; `expected` and `value` are null or point to such bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_compare_and_set(
    client: u64,
    key: BezantBytes,
    expected: *const BezantBytes,
    value: *const BezantBytes,
    timeout_ms: u64,
) -> *mut Outcome {
    call(|| {
        // SAFETY: as the caller promises.
        let (key, expected, value) = unsafe { (bytes(key)?, optional(expected)?, optional(value)?) };
        ask::compare_and_set(&clients::get(client)?, key, expected, value, timeout(timeout_ms))
    })
}

/// Carries out statements of SQL, all or none; see the header.
///
/// # Safety
/// `statements` points to `count` of them, and each to what it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_sql(
    client: u64,
    statements: *const BezantStatement,
    count: usize,
    timeout_ms: u64,
) -> *mut Outcome {
    call(|| {
        if count > STATEMENTS_MAX {
            return Err(Problem::invalid("too many statements"));
        }
        // SAFETY: as the caller promises, here and for what each of them points to.
        let given = unsafe { slice(statements, count) }?.iter().map(|given| unsafe { statement(given) });
        let given = given.collect::<Result<Vec<_>, _>>()?;
        ask::sql(&clients::get(client)?, given, timeout(timeout_ms))
    })
}

/// How a call ended.
///
/// # Safety
/// A result that has not been freed, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_code(result: *const Outcome) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { result.as_ref() }.map_or(Code::Invalid, |result| result.code) as i32
}

/// Why a call has no answer; see the header.
///
/// # Safety
/// A result that has not been freed, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_message(result: *const Outcome) -> BezantBytes {
    // SAFETY: as the caller promises.
    unsafe { result.as_ref() }.map_or_else(BezantBytes::none, |result| BezantBytes::of(result.message.as_bytes()))
}

/// What an error of SQL is about; see the header.
///
/// # Safety
/// A result that has not been freed, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_failure(result: *const Outcome) -> BezantFailure {
    // SAFETY: as the caller promises.
    let failure = unsafe { result.as_ref() }.and_then(|result| result.failure);
    failure.map_or_else(BezantFailure::default, |(sqlstate, statement)| BezantFailure {
        sqlstate: BezantBytes::of(sqlstate.as_bytes()),
        statement: statement as usize,
    })
}

/// How many tables a result has.
///
/// # Safety
/// A result that has not been freed, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_tables(result: *const Outcome) -> usize {
    // SAFETY: as the caller promises.
    unsafe { result.as_ref() }.map_or(0, |result| result.tables.len())
}

/// The measures of a table; all zero if there is none.
///
/// # Safety
/// A result that has not been freed, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_table(result: *const Outcome, table: usize) -> BezantTable {
    // SAFETY: as the caller promises.
    let table = unsafe { result.as_ref() }.and_then(|result| result.tables.get(table));
    table.map_or_else(BezantTable::default, BezantTable::of)
}

/// The name of a column; no bytes if there is none.
///
/// # Safety
/// A result that has not been freed, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_column(result: *const Outcome, table: usize, column: usize) -> BezantBytes {
    // SAFETY: as the caller promises.
    let table = unsafe { result.as_ref() }.and_then(|result| result.tables.get(table));
    let column = table.and_then(|table| table.columns.get(column));
    column.map_or_else(BezantBytes::none, |column| BezantBytes::of(column.name.as_bytes()))
}

/// A value; null if there is none.
///
/// # Safety
/// A result that has not been freed, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_cell(result: *const Outcome, table: usize, row: usize, column: usize) -> BezantValue {
    // SAFETY: as the caller promises.
    let table = unsafe { result.as_ref() }.and_then(|result| result.tables.get(table));
    let value = table.and_then(|table| table.rows.get(row)).and_then(|row| row.get(column));
    value.map_or_else(BezantValue::null, BezantValue::of)
}

/// Gives back a result, with all that was read from it.
///
/// # Safety
/// A result that has not been freed, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bezant_free(result: *mut Outcome) {
    if !result.is_null() {
        // SAFETY: made by `Box::into_raw` in `call`, and the caller promises that it is freed once.
        drop(unsafe { Box::from_raw(result) });
    }
}
