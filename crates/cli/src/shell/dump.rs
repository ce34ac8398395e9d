//! `.dump`: everything as SQL, in an order in which an ordinary SQLite loads it.
//!
//! Large tables are read in several requests, so that what others write meanwhile may be in the text or not.

use super::format::{literals, name_literal};
use super::{Shell, failure};
use crate::failure::{Failure, Result};
use bezant_sql::{ErrorKind, Request, Response, Rows, SYSTEM_PREFIX, Statement, Value};

/// Rows that are asked for at once; fewer if they are large.
const ROWS_AT_ONCE: i64 = 4_096;

/// A table and what is to be known to read it.
struct Table {
    name: String,
    sql: String,
    /// A name for the rowid; `None` if there is no rowid or all of its names are taken by columns.
    rowid: Option<&'static str>,
    /// Columns that are not computed from others, and whether there are such.
    columns: Vec<String>,
    computed: bool,
    /// The columns of the primary key.
    key: Vec<String>,
}

impl Shell {
    /// Prints the tables whose names are LIKE the pattern, or all that are the user's.
    pub(super) fn dump(&mut self, pattern: Option<&str>) -> Result {
        let user = format!(
            "substr(tbl_name, 1, {}) <> '{SYSTEM_PREFIX}' and (?1 is null or tbl_name like ?1) and sql is not null",
            SYSTEM_PREFIX.len()
        );
        let parameter = pattern.map_or(Value::Null, |pattern| Value::Text(pattern.to_owned()));
        let ask = |shell: &Self, condition: &str| {
            let sql = format!("select name, sql from sqlite_schema where {condition} and {user} order by rowid");
            shell.rows(Statement::with(sql, [parameter.clone()]))
        };
        let tables = ask(self, "type = 'table' and name not like 'sqlite\\_%' escape '\\'")?;
        let others = ask(self, "type <> 'table'")?;
        self.print("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n")?;
        let mut counted = false;
        for row in &tables.rows {
            let table = self.table(&row[0].to_string(), &row[1].to_string())?;
            counted |= table.sql.to_ascii_lowercase().contains("autoincrement");
            self.print(&format!("{};\n", table.sql))?;
            self.dump_rows(&table)?;
        }
        if counted {
            let sequence = self.rows(Statement::new("select name, seq from sqlite_sequence order by name"))?;
            let names: Vec<_> = tables.rows.iter().map(|row| &row[0]).collect();
            self.print("DELETE FROM sqlite_sequence;\n")?;
            for row in sequence.rows.iter().filter(|row| names.contains(&&row[0])) {
                self.print(&format!("INSERT INTO sqlite_sequence VALUES({});\n", literals(row)))?;
            }
        }
        for row in &others.rows {
            self.print(&format!("{};\n", row[1]))?;
        }
        self.print("COMMIT;\n")
    }

    fn table(&self, name: &str, sql: &str) -> Result<Table> {
        let by_name = |sql: &str| Statement::with(sql, [Value::Text(name.to_owned())]);
        let columns = self.rows(by_name("select name, hidden, pk from pragma_table_xinfo(?1)"))?;
        let list = self.rows(by_name("select wr from pragma_table_list(?1) where schema = 'main'"))?;
        let has_rowid = list.rows.first().is_some_and(|row| row[0] == Value::Integer(0));
        let names: Vec<_> = columns.rows.iter().map(|row| row[0].to_string()).collect();
        let is_free = |rowid: &&str| !names.iter().any(|name| name.eq_ignore_ascii_case(rowid));
        let mut key: Vec<_> = columns.rows.iter().filter(|row| row[2] != Value::Integer(0)).collect();
        key.sort_by_key(|row| if let Value::Integer(place) = row[2] { place } else { 0 });
        Ok(Table {
            name: name.to_owned(),
            sql: sql.to_owned(),
            rowid: ["rowid", "_rowid_", "oid"].into_iter().find(is_free).filter(|_| has_rowid),
            columns: columns
                .rows
                .iter()
                .filter(|row| row[1] == Value::Integer(0))
                .map(|row| name_literal(&row[0].to_string()))
                .collect(),
            computed: columns.rows.iter().any(|row| row[1] != Value::Integer(0)),
            key: key.into_iter().map(|row| name_literal(&row[0].to_string())).collect(),
        })
    }

    fn dump_rows(&mut self, table: &Table) -> Result {
        let into = match table.computed {
            true => format!("{}({})", name_literal(&table.name), table.columns.join(",")),
            false => name_literal(&table.name),
        };
        let mut limit = ROWS_AT_ONCE;
        let (mut last, mut done) = (Value::Null, 0);
        loop {
            let Some(page) = self.page(table, &last, done, limit)? else {
                limit /= 2;
                continue;
            };
            let mut text = String::new();
            for row in &page.rows {
                // The place comes first, then the values.
                text += &format!("INSERT INTO {into} VALUES({});\n", literals(&row[1..]));
            }
            self.print(&text)?;
            done += page.rows.len() as i64;
            match page.rows.last() {
                Some(row) if page.rows.len() as i64 == limit => last = row[0].clone(),
                _ => return Ok(()),
            }
        }
    }

    /// The next rows of a table; `None` if so many are too large for one answer.
    fn page(&self, table: &Table, last: &Value, done: i64, limit: i64) -> Result<Option<Rows>> {
        let (columns, name) = (table.columns.join(","), name_literal(&table.name));
        let statement = match table.rowid {
            Some(rowid) => Statement::with(
                format!(
                    "select {rowid}, {columns} from {name} where ?1 is null or {rowid} > ?1 order by {rowid} limit ?2"
                ),
                [last.clone(), Value::Integer(limit)],
            ),
            None => Statement::with(
                format!("select 0, {columns} from {name} order by {} limit ?1 offset ?2", table.order()),
                [Value::Integer(limit), Value::Integer(done)],
            ),
        };
        let request = Request::one(statement);
        let answer = self.service.database().call_at(&request, self.level);
        match answer.map(|answer| answer.response) {
            Ok(Response::Done(mut results)) => Ok(results.pop()),
            Ok(Response::Failed(error)) if error.error.kind == ErrorKind::TooLarge && limit > 1 => Ok(None),
            Ok(Response::Failed(error)) => Err(super::explain(&request, &error)),
            Ok(other) => Err(Failure::failed(format!("the service answered {other:?}."))),
            Err(error) => Err(failure(error)),
        }
    }
}

impl Table {
    /// What rows are sorted by where they have no rowid.
    fn order(&self) -> String {
        if self.key.is_empty() { self.columns.join(",") } else { self.key.join(",") }
    }
}
