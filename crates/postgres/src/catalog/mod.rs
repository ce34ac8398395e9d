//! What tools ask about the tables: PostgreSQL's catalog, kept in an SQLite database in memory.
//!
//! The replicas are asked for the schema with every question, as with any read; what they agree on fills the catalog
//! when it has changed. So the catalog is as true as the rest, and the replicas know nothing of PostgreSQL.

mod fill;
mod functions;
mod rewrite;
#[cfg(test)]
mod tests;

use crate::error::{PgError, sqlstate};
use crate::settings::DEFAULTS;
use crate::tokens::Token;
use crate::translate::REFUSED;
use bezant_core::digest::Digest;
use bezant_sql::{Column, Limits, RESULT_BYTES_MAX, Rows, Value, hand_out, within};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use rewrite::for_catalog;

/// Asks the replicas for the schema.
pub(crate) const SCHEMA_SQL: &str = "select rowid, type, name, tbl_name, sql from sqlite_schema order by rowid";

/// Steps of SQLite's virtual machine that a question may take, in thousands: others wait meanwhile.
const STEPS_MAX_K: u32 = 5_000;

/// What else it may cost: what a step goes through, and memory.
const LIMITS: Limits = Limits { steps: 10_000_000, memory: 64 << 20 };

/// The tables of the catalog, and what is in them whatever the schema.
const TABLES: &str = include_str!("tables.sql");

/// See the [module](self).
pub(crate) struct Catalog {
    filled: Mutex<Option<Filled>>,
}

struct Filled {
    /// Of the schema that it was filled from.
    digest: Digest,
    connection: Connection,
    /// Who asks.
    user: Arc<Mutex<String>>,
}

impl Catalog {
    /// One that knows no schema.
    pub(crate) const fn new() -> Self {
        Self { filled: Mutex::new(None) }
    }

    /// Answers a question.
    ///
    /// # Errors
    /// If SQLite does not understand it, or it takes too long.
    pub(crate) fn query(&self, schema: &Rows, user: &str, sql: &str, values: &[Value]) -> Result<Rows, PgError> {
        self.with(schema, user, |connection| {
            let mut left = STEPS_MAX_K;
            let limit = move || {
                left = left.saturating_sub(1);
                left == 0
            };
            connection.progress_handler(1_000, Some(limit)).map_err(explain)?;
            bounded(|| {
                let mut statement = connection.prepare(sql).map_err(explain)?;
                if !statement.readonly() {
                    return Err(PgError::new("42501", "the catalog can only be read"));
                }
                collect(&mut statement, values)
            })
        })
    }

    /// What a question would give: its columns, and how many parameters it has.
    ///
    /// # Errors
    /// If SQLite does not understand it.
    pub(crate) fn describe(&self, schema: &Rows, user: &str, sql: &str) -> Result<(Vec<Column>, usize), PgError> {
        self.with(schema, user, |connection| {
            bounded(|| {
                let statement = connection.prepare(sql).map_err(explain)?;
                Ok((Column::of(&statement), statement.parameter_count()))
            })
        })
    }

    fn with<T>(
        &self,
        schema: &Rows,
        user: &str,
        ask: impl FnOnce(&mut Connection) -> Result<T, PgError>,
    ) -> Result<T, PgError> {
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = schema.digest();
        if filled.as_ref().is_none_or(|filled| filled.digest != digest) {
            *filled = Some(build(schema, digest).map_err(explain)?);
        }
        let filled = filled.as_mut().expect("it was filled just now");
        *filled.user.lock().unwrap_or_else(PoisonError::into_inner) = user.into();
        ask(&mut filled.connection)
    }
}

fn build(schema: &Rows, digest: Digest) -> rusqlite::Result<Filled> {
    let connection = Connection::open_in_memory()?;
    let user = Arc::new(Mutex::new(String::new()));
    let names = functions::register(&connection, &user)?;
    connection.execute_batch(TABLES)?;
    for (name, value) in DEFAULTS {
        connection.execute("insert into pg_settings(name, setting) values (?1, ?2)", [name, value])?;
    }
    fill::fill(&connection, schema, &names)?;
    connection.execute_batch("pragma query_only = on")?;
    Ok(Filled { digest, connection, user })
}

/// Others wait meanwhile: an answer has a bound that one step of SQLite's could exceed.
fn bounded<T>(ask: impl FnOnce() -> Result<T, PgError>) -> Result<T, PgError> {
    let (answer, is_within) = within(&LIMITS, ask);
    if is_within { answer } else { Err(PgError::new(sqlstate::LIMIT, "the question about the catalog takes too much")) }
}

fn collect(statement: &mut Statement<'_>, values: &[Value]) -> Result<Rows, PgError> {
    if statement.parameter_count() != values.len() {
        return Err(PgError::new(sqlstate::PROTOCOL, "another number of values than of parameters"));
    }
    for (number, value) in (1..).zip(values) {
        statement.raw_bind_parameter(number, value).map_err(explain)?;
    }
    let mut columns = Column::of(statement);
    let (mut rows, mut room) = (Vec::new(), RESULT_BYTES_MAX);
    let mut cursor = statement.raw_query();
    while let Some(row) = cursor.next().map_err(explain)? {
        let mut values = Vec::with_capacity(columns.len());
        for at in 0..columns.len() {
            let given = hand_out(|| row.get_ref(at)).map_err(explain)?;
            // Before it is copied.
            let bytes = size_of::<Value>() + given.as_bytes_or_null().ok().flatten().map_or(0, <[u8]>::len);
            room = room.checked_sub(bytes).ok_or_else(|| PgError::new(sqlstate::LIMIT, "the result is too large"))?;
            values.push(value(given));
        }
        rows.push(values);
    }
    for (at, column) in columns.iter_mut().enumerate().filter(|(_, column)| column.declared.is_none()) {
        column.declared = array_type(rows.iter().map(|row| &row[at]));
    }
    Ok(Rows { columns, rows, ..Rows::default() })
}

/// The type of a column that has arrays only.
fn array_type<'a>(values: impl Iterator<Item = &'a Value>) -> Option<String> {
    let mut type_name = None;
    for value in values.filter(|value| **value != Value::Null) {
        let Value::Text(text) = value else { return None };
        if !text.starts_with('{') || !text.ends_with('}') {
            return None;
        }
        let all_numbers = functions::elements(text).iter().all(|element| element.parse::<i64>().is_ok());
        let name = if all_numbers && type_name != Some("text[]") { "bigint[]" } else { "text[]" };
        type_name = Some(name);
    }
    type_name.map(Into::into)
}

/// A name that is not UTF-8 is shown as well as it can be.
fn value(value: ValueRef<'_>) -> Value {
    let as_well_as_it_can = || String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned();
    Value::try_from(value).unwrap_or_else(|_| Value::Text(as_well_as_it_can()))
}

/// An error is about the question: the catalog itself is ours.
fn explain(error: rusqlite::Error) -> PgError {
    let message = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message,
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        other => other.to_string(),
    };
    let sqlstate = match message.as_str() {
        text if text.starts_with("no such table") => "42P01",
        text if text.starts_with("no such column") => "42703",
        text if text.starts_with("no such function") => "42883",
        text if text.starts_with("interrupted") => "57014",
        text if text.starts_with("relation ") => "42P01",
        _ => sqlstate::SYNTAX,
    };
    PgError::new(sqlstate, message).detail("The gateway answers questions about the catalog, from its own copy.")
}

/// Whether a statement asks about the catalog and not about the tables.
pub(crate) fn is_about(solid: &[Token<'_>]) -> bool {
    const FUNCTIONS: &[&str] = &[
        "version",
        "current_schema",
        "current_schemas",
        "current_database",
        "format_type",
        "obj_description",
        "col_description",
        "shobj_description",
        "to_regclass",
        "to_regtype",
        "quote_ident",
        "set_config",
        "current_setting",
        "has_table_privilege",
        "has_schema_privilege",
        "inet_server_addr",
        "inet_server_port",
        "txid_current",
        "unnest",
    ];
    const WORDS: &[&str] = &["current_user", "session_user", "current_role", "current_catalog", "current_schema"];
    if !solid.first().is_some_and(|token| token.is_any(&["select", "with", "values", "table"]) || token.text == "(") {
        return false;
    }
    solid.iter().enumerate().any(|(at, token)| {
        let is_called = solid.get(at + 1).is_some_and(|next| next.is_symbol("("));
        let name = token.name().unwrap_or_default();
        // Locks and the like are refused with words elsewhere.
        (name.starts_with("pg_") && !(is_called && REFUSED.contains(&name.as_str())))
            || name == "information_schema"
            || (is_called && FUNCTIONS.contains(&name.as_str()))
            || token.is_any(WORDS)
    })
}
