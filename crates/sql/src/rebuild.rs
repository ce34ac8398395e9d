//! Makes a table anew: the changes that SQLite's ALTER TABLE does not know.
//!
//! 1. The old table takes a name that nobody else can give, and whatever names the table keeps its words.
//! 2. A table with the old name is made as the client says, and gets the old rows as the client says. SQLite holds
//!    them against everything that the new table declares.
//! 3. The old table goes; its indexes and triggers are made again from their own texts.
//! 4. References are checked: those of the new rows, and those of others to them.
//!
//! Meanwhile SQLite follows no foreign keys, or the old table would take the rows with it that refer to it. So what the
//! client says is cut into two statements that can write nothing but this one table. Whatever fails, all of it is
//! undone.

use crate::engine::{Engine, Fault, denied};
use crate::error::{ErrorKind, SqlError};
use crate::meter::STEP_BYTES;
use crate::moment::act;
use crate::request::Statement;
use crate::response::Rows;
use crate::stop::stop;
use crate::system::{is_system, made_by_the_system};
use crate::value::Value;
use crate::vfs::set_last_insert_rowid;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};
use std::sync::atomic::Ordering;

/// What the old table is called until it goes.
const OLD: &str = "bezant_old";

/// What it does, as [`act`] says it.
const ACTS: u32 = act::WRITES_ROWS | act::WRITES_SCHEMA | act::ALTERS_TABLES | act::ADDS_SCHEMA;

/// What SQLite does differently meanwhile: whether it is on, and whether it is on otherwise.
const SETTINGS: [(DbConfig, bool); 2] =
    [(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false), (DbConfig::SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, true)];

/// What it costs to look for the references of a table, besides its rows, in bytes gone through.
const CHILD_BYTES: i64 = 1_000 * STEP_BYTES;

/// What [`Statement::rebuild`] says.
struct Plan<'a> {
    table: &'a str,
    definition: &'a str,
    columns: &'a str,
    values: &'a str,
}

impl Engine<'_> {
    /// See the [module](self).
    pub(crate) fn rebuild(&mut self, parameters: &[Value]) -> Result<Rows, Fault> {
        let [Value::Text(table), Value::Text(definition), Value::Text(columns), Value::Text(values)] = parameters
        else {
            return Err(SqlError::new(ErrorKind::Parameters, "a table is rebuilt by four texts").into());
        };
        let connection = &self.database.connection;
        if self.query && self.chain.is_none() {
            return Err(Fault::NotReadOnly);
        }
        if connection.is_autocommit() {
            return Err(SqlError::new(ErrorKind::NotAllowed, "there is no transaction to rebuild a table in").into());
        }
        if ACTS & !self.allowed != 0 {
            return Err(denied().into());
        }
        if is_system(table) {
            return Err(SqlError::new(ErrorKind::NotAllowed, made_by_the_system(table)).into());
        }
        let before = self.acts;
        self.acts |= ACTS;
        self.pay_for_schema(before, ACTS)?;
        self.forget_kept();
        let last = connection.last_insert_rowid();
        self.control("savepoint rebuild");
        self.set(|meanwhile| meanwhile);
        let result = self.exchange(&Plan { table, definition, columns, values });
        self.set(|meanwhile| !meanwhile);
        self.forget_kept();
        set_last_insert_rowid(connection, last);
        self.disk.moment.changes.store(0, Ordering::Relaxed);
        // After some errors SQLite has undone everything by itself.
        if !connection.is_autocommit() {
            if result.is_err() {
                self.control("rollback to rebuild");
            }
            self.control("release rebuild");
        }
        result.map(|()| Rows { last_insert_rowid: last, ..Rows::default() })
    }

    fn set(&self, on: impl Fn(bool) -> bool) {
        for (setting, meanwhile) in SETTINGS {
            let done = self.database.connection.set_db_config(setting, on(meanwhile));
            done.unwrap_or_else(|error| stop(&error));
        }
    }

    fn exchange(&mut self, plan: &Plan<'_>) -> Result<(), Fault> {
        let Plan { table, definition, columns, values } = plan;
        let name = self.own(|connection| name_of(connection, table))?;
        let (table, quoted) = (name.as_str(), quoted(&name));
        let parts = self.own(|connection| parts(connection, table))?;
        let sequence = self.own(|connection| sequence(connection, table))?;
        self.own(|connection| connection.execute(&format!("alter table {quoted} rename to {OLD}"), []))?;
        self.alone(format!("create table {quoted} {definition}"))?;
        // In the order of the old table, whatever index has the same columns.
        let copy = format!("insert into {quoted} ({columns}) select {values} from {OLD} as {quoted} not indexed");
        self.alone(copy)?;
        self.own(|connection| connection.execute(&format!("drop table {OLD}"), []))?;
        if let Some(sequence) = sequence {
            self.own(|connection| keep_sequence(connection, table, sequence))?;
        }
        for part in parts {
            self.alone(part)?;
        }
        for child in self.own(|connection| referring(connection, table))? {
            self.pay(CHILD_BYTES)?;
            if let Some(parent) = self.own(|connection| dangling(connection, &child, table))? {
                let text = format!("a row of table \"{child}\" refers to one of table \"{parent}\" that is not there");
                return Err(SqlError::new(ErrorKind::ForeignKey, text).into());
            }
        }
        Ok(())
    }

    /// A statement of the client's.
    fn alone(&mut self, sql: String) -> Result<(), Fault> {
        self.statement(&Statement::new(sql)).map(drop)
    }

    /// Something of the service's own, at the client's cost.
    fn own<T>(&mut self, act: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Fault> {
        let (connection, moment) = (&self.database.connection, &self.disk.moment);
        moment.asked.store(0, Ordering::Relaxed);
        let (result, measured) = self.left.measure(|| moment.privileged(|| act(connection)));
        self.check(measured)?;
        result.map_err(|error| self.explain(error).into())
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A table's name as it was created; names are the same in upper and lower case.
fn name_of(connection: &Connection, table: &str) -> rusqlite::Result<String> {
    let ask = "select name from sqlite_schema where type = 'table' and name = ?1 collate nocase";
    let name = connection.query_row(ask, [table], |row| row.get(0)).optional()?;
    Ok(name.unwrap_or_else(|| table.to_owned()))
}

/// The statements that have made what goes with a table.
fn parts(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut all = connection.prepare(
        "select sql from sqlite_schema where tbl_name = ?1 collate nocase and type in ('index', 'trigger')
            and sql is not null order by rowid",
    )?;
    all.query_map([table], |row| row.get(0))?.collect()
}

/// The last number that a table has given to a row of its own accord, if it keeps account of that.
fn sequence(connection: &Connection, table: &str) -> rusqlite::Result<Option<i64>> {
    let exists = "select 1 from sqlite_schema where name = 'sqlite_sequence'";
    if connection.query_row(exists, [], |_| Ok(())).optional()?.is_none() {
        return Ok(None);
    }
    // Anybody may write that table, and whatever they like.
    let ask = "select max(cast(seq as integer)) from sqlite_sequence where name = ?1 collate nocase";
    connection.query_row(ask, [table], |row| row.get(0))
}

/// No number comes twice, if the new table keeps account of that, too.
fn keep_sequence(connection: &Connection, table: &str, sequence: i64) -> rusqlite::Result<()> {
    let counts = "select 1 from sqlite_schema where type = 'table' and name = ?1 and sql like '%autoincrement%'";
    if connection.query_row(counts, [table], |_| Ok(())).optional()?.is_none() {
        return Ok(());
    }
    connection.execute("delete from sqlite_sequence where name = ?1", [table])?;
    connection.execute("insert into sqlite_sequence(name, seq) values (?1, ?2)", (table, sequence)).map(drop)
}

/// A table and those that refer to it.
fn referring(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut all = connection.prepare(
        "select distinct s.name from sqlite_schema s left join pragma_foreign_key_list(s.name) f
            where s.type = 'table' and (s.name = ?1 collate nocase or f.\"table\" = ?1 collate nocase) order by 1",
    )?;
    all.query_map([table], |row| row.get(0))?.collect()
}

/// To which table a row of one refers, and to no row there, where one of both is this one.
fn dangling(connection: &Connection, child: &str, table: &str) -> rusqlite::Result<Option<String>> {
    let check = "select parent from pragma_foreign_key_check(?1)
        where ?1 = ?2 collate nocase or parent = ?2 collate nocase limit 1";
    connection.query_row(check, [child, table], |row| row.get(0)).optional()
}
