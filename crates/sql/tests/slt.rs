//! The service against plain SQLite of the same build: the files in the folder `slt`.
//!
//! What a file expects is what plain SQLite gives; `BEZANT_REWRITE=1` writes that down anew. Only `refused.slt` has
//! records marked `onlyif bezant`: the documented differences.

mod support;

use bezant_core::service::{Agreed, Service};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bezant_sql::{Request, Sql, Statement, Value};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use sqllogictest::{DB, DefaultColumnType, Runner, default_column_validator, default_normalizer, default_validator};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{SystemTime, UNIX_EPOCH};
use support::{Output, Refusal, answered, files, output};

/// The service, one request a statement.
struct Replicated(Sql);

impl DB for Replicated {
    type Error = Refusal;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<Output, Refusal> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        let agreed = Agreed { time: Instant(now.as_micros() as u64), ..Agreed::default() };
        let bytes = self.0.execute(&Request::one(Statement::new(sql)).to_bytes(), &agreed);
        answered(bytes)
    }

    fn engine_name(&self) -> &str {
        "bezant"
    }
}

/// SQLite with the settings that decide about results.
struct Plain(Connection);

impl Plain {
    fn new() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch("pragma foreign_keys = on; pragma recursive_triggers = on")?;
        for (option, on) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
            (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        ] {
            connection.set_db_config(option, on)?;
        }
        connection.set_limit(rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH, bezant_sql::VALUE_BYTES_MAX as i32)?;
        connection.set_limit(rusqlite::limits::Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 100)?;
        Ok(Self(connection))
    }

    fn rows(&self, sql: &str) -> rusqlite::Result<(usize, Vec<Vec<Value>>)> {
        let mut statement = self.0.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = Vec::new();
        let mut cursor = statement.raw_query();
        while let Some(row) = cursor.next()? {
            let value = |column| Value::try_from(row.get_ref(column).expect("within the columns")).expect("UTF-8");
            rows.push((0..columns).map(value).collect());
        }
        Ok((columns, rows))
    }
}

impl DB for Plain {
    type Error = Refusal;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<Output, Refusal> {
        // As a request: all of it or nothing.
        let begun = self.0.execute_batch("begin");
        begun.expect("no transaction is left over");
        let outcome = self.rows(sql).and_then(|rows| self.0.execute_batch("commit").map(|()| rows));
        if outcome.is_err() && !self.0.is_autocommit() {
            self.0.execute_batch("rollback").expect("there is a transaction");
        }
        let (columns, rows) = outcome.map_err(|error| match error {
            rusqlite::Error::SqliteFailure(_, Some(message)) => Refusal(message),
            rusqlite::Error::SqlInputError { msg, .. } => Refusal(msg),
            other => Refusal(other.to_string()),
        })?;
        Ok(output(columns, &rows))
    }

    fn engine_name(&self) -> &str {
        "sqlite"
    }
}

/// Runs a future that never waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// Runs every file; those that are to be written anew say afterwards what happened.
fn run<D: DB + Send>(new: impl Fn() -> D, rewritten: impl Fn(&str) -> bool) {
    for file in files() {
        let mut runner = Runner::new(|| async { Ok(new()) });
        let name = file.file_stem().unwrap().to_string_lossy();
        if std::env::var_os("BEZANT_REWRITE").is_some() && rewritten(&name) {
            let update =
                runner.update_test_file(&file, " ", default_validator, default_normalizer, default_column_validator);
            at_once(update).unwrap();
        } else {
            runner.run_file(&file).unwrap();
        }
    }
}

/// The file of what plain SQLite does not refuse.
const REFUSED: &str = "refused";

#[test]
fn plain_sqlite_gives_what_the_files_say() {
    run(|| Plain::new().expect("SQLite"), |name| name != REFUSED);
}

#[test]
fn the_service_gives_what_the_files_say() {
    run(|| Replicated(Sql::new()), |name| name == REFUSED);
}
