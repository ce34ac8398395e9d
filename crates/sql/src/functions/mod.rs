//! PostgreSQL's types as functions of SQL: what the gateway's translation calls, and what replicas compute.
//!
//! Every function is a function of its arguments alone: it asks no clock, no locale and no library of the platform's.
//! Values have the canonical forms that `docs/postgres.md` lists. NULL in gives NULL out. An error has PostgreSQL's own
//! SQLSTATE and words: it leaves SQLite as `pg:SQLSTATE:message`, and [`crate::explain`] makes an answer of it.
//!
//! What a function costs is paid before it works ([`call::Charge`]), and what it makes is bounded before it is made.

mod aggregate;
mod bytes;
mod calendar;
mod call;
mod datetime;
mod digest;
mod digits;
mod documents;
mod encoding;
mod fields;
mod figures;
mod float;
mod format;
mod gregorian;
mod input;
mod integer;
mod interval;
mod json;
mod moments;
mod numeric;
mod parts;
mod pattern;
mod regex;
mod series;
mod shortest;
mod table;
mod text;
mod units;

pub use gregorian::{civil, days_of};

use call::{VALUE_BYTES, pay};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Result};
use std::cmp::Ordering;

pub(crate) use call::error_of;
pub(crate) use table::is_function;
#[cfg(test)]
pub(crate) use table::names;

/// How texts are compared that stand for something else.
type Compare = fn(&str, &str) -> Ordering;

/// The collations of what is kept as texts and not compared as such.
const COLLATIONS: [(&str, Compare); 2] = [("pg_numeric", numeric::compare), ("pg_interval", interval::compare)];

/// Adds PostgreSQL's types to a connection: the functions `pg_…` and the collations `pg_numeric` and `pg_interval`, as
/// the replicas have them. Nothing bounds there what they take.
///
/// # Errors
/// Those of SQLite, for want of memory.
pub fn add(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    for function in table::FUNCTIONS {
        connection.create_scalar_function(function.name, function.arity, flags, |context| function.call(context))?;
    }
    table::add_aggregates(connection, flags)?;
    for (name, compare) in COLLATIONS {
        connection.create_collation(name, move |left: &str, right: &str| {
            // Who has nothing left to pay with gets no answer, whatever this says.
            match pay(2 * (left.len() + right.len() + VALUE_BYTES)) {
                Ok(()) => compare(left, right),
                Err(_) => Ordering::Equal,
            }
        })?;
    }
    Ok(())
}
