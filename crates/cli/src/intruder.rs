//! Somebody who has taken over a replica's machine, for demonstrations and end-to-end tests: when told to, he changes a
//! value in the state that no request has changed, and tells nobody.
//!
//! The change is in the same pages that requests read and write. So this replica answers from it, its next checkpoint
//! has another root than those of the others, and what the others then have it do about that is no part of this file.

use bezant_core::digest::Digest;
use bezant_core::service::{Agreed, Asker, BadState, NotReadOnly, Operation, PageNumber, Proposal, Service};
use bezant_core::services::kv::{Condition, Kv, KvOperation, KvResult};
use bezant_core::services::{Counter, Null};
use bezant_core::wire::Wire;
use bezant_sql::{Batch, Database, Request, Response, Statement, Value};
use bytes::Bytes;
use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A service in whose state there is something to alter.
pub(crate) trait Alterable: Service {
    /// Changes one value, if there is one. Says whether there was.
    fn alter(&mut self) -> bool;
}

/// A service on a machine that is not safe. See the [module](self).
#[derive(Debug)]
pub(crate) struct Intruded<S> {
    service: RefCell<S>,
    /// Whether the intruder is to act. He does when the service is next used.
    order: Arc<AtomicBool>,
}

impl<S: Alterable> Intruded<S> {
    pub(crate) const fn new(service: S, order: Arc<AtomicBool>) -> Self {
        Self { service: RefCell::new(service), order }
    }

    fn intrude(&self) {
        // A replica that is behind may have nothing yet: then he waits.
        if !self.order.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut service = self.service.borrow_mut();
        if !service.alter() {
            self.order.store(true, Ordering::Relaxed);
        }
        // He leaves no trace in what replies say was written.
        _ = service.take_written();
    }
}

impl<S: Alterable> Service for Intruded<S> {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        self.intrude();
        self.service.get_mut().execute(operation, agreed)
    }

    fn execute_many(&mut self, operations: &[Operation]) -> Vec<Bytes> {
        self.intrude();
        self.service.get_mut().execute_many(operations)
    }

    fn run_max(&self) -> usize {
        self.service.borrow().run_max()
    }

    fn take_written(&mut self) -> Digest {
        self.service.get_mut().take_written()
    }

    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        self.intrude();
        self.service.borrow().query(operation, asker)
    }

    fn ordered_query(&mut self, operation: &[u8], agreed: &Agreed) -> Result<Bytes, NotReadOnly> {
        self.intrude();
        self.service.get_mut().ordered_query(operation, agreed)
    }

    fn validate(&self, proposal: &Proposal, operation: &[u8]) -> bool {
        self.service.borrow().validate(proposal, operation)
    }

    fn authorize(&mut self, identification: &[u8], agreed: &Agreed) -> bool {
        self.service.get_mut().authorize(identification, agreed)
    }

    fn may_close(&self, asker: &Asker) -> bool {
        self.service.borrow().may_close(asker)
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.intrude();
        self.service.get_mut().save(write);
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        self.service.get_mut().load(pages)
    }
}

/// What stands in place of a text.
const LIE: &str = "a lie";
/// What is added to a number.
const MILLION: i64 = 1_000_000;

impl Alterable for Database {
    /// A row of a table, or else a value of a key.
    fn alter(&mut self) -> bool {
        alter_row(self) || alter_key(self)
    }
}

impl Alterable for Kv {
    fn alter(&mut self) -> bool {
        alter_key(self)
    }
}

impl Alterable for Counter {
    /// There is nothing that would be worth it.
    fn alter(&mut self) -> bool {
        true
    }
}

impl Alterable for Null {
    /// There is nothing that would be worth it.
    fn alter(&mut self) -> bool {
        true
    }
}

/// Runs SQL that nobody ordered.
fn run(database: &mut Database, sql: &str) -> Option<bezant_sql::Rows> {
    let batch = Batch { statements: vec![Statement::new(sql)], ..Batch::default() };
    let answer = database.execute(&Request::Run(batch).to_bytes(), &Agreed::default());
    match Response::from_bytes(answer).ok()? {
        Response::Done(mut results) => results.pop(),
        _ => None,
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Changes a value in the first row of the first table in which that is possible; what SQLite refuses (a constraint,
/// say) is tried in another column. Last columns come first: keys mostly stand at the beginning.
fn alter_row(database: &mut Database) -> bool {
    let tables = "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' \
                  and name not like 'bezant_%' order by rowid";
    let names = |rows: Option<bezant_sql::Rows>| -> Vec<String> {
        let cells = rows.map(|rows| rows.rows).unwrap_or_default().into_iter().flatten();
        cells.filter_map(|cell| if let Value::Text(name) = cell { Some(name) } else { None }).collect()
    };
    for table in names(run(database, tables)) {
        let literal = table.replace('\'', "''");
        let columns = names(run(database, &format!("select name from pragma_table_info('{literal}')")));
        for column in columns.iter().rev().map(|name| quoted(name)) {
            let lie = format!(
                "case typeof({column}) when 'integer' then {column} + {MILLION} when 'real' then {column} + {MILLION} \
                 else case {column} when '{LIE}' then 'another lie' else '{LIE}' end end"
            );
            let table = quoted(&table);
            let update = format!(
                "update {table} set {column} = {lie} where {column} = (select {column} from {table} \
                 where {column} is not null limit 1) and (select count(*) from {table} as same where \
                 same.{column} = {table}.{column}) = 1"
            );
            let anyhow = format!("update {table} set {column} = {lie} where rowid = (select min(rowid) from {table})");
            // A table without row numbers has no rowid; a value that stands in several rows needs one.
            if [anyhow, update].iter().any(|sql| run(database, sql).is_some_and(|rows| rows.changes == 1)) {
                return true;
            }
        }
    }
    false
}

/// Changes the value of the first key.
fn alter_key<S: Service>(service: &mut S) -> bool {
    let range = KvOperation::Range { from: Bytes::new(), inclusive: true, limit: 1, bytes: u32::MAX, keys_only: false };
    let answer =
        service.query(&range.to_bytes(), &Asker::default()).ok().and_then(|answer| KvResult::from_bytes(answer).ok());
    let Some(KvResult::Range { entries, .. }) = answer else { return false };
    let Some((key, value)) = entries.into_iter().next() else { return false };
    let lie = if value == LIE.as_bytes() { "another lie" } else { LIE };
    let set = KvOperation::Set { key, value: lie.into(), condition: Condition::Always };
    service.execute(&set.to_bytes(), &Agreed::default());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(service: &impl Service, sql: &str) -> Vec<Vec<Value>> {
        let answer = service.query(&Request::one(Statement::new(sql)).to_bytes(), &Asker::default()).unwrap();
        match Response::from_bytes(answer).unwrap() {
            Response::Done(mut results) => results.pop().unwrap().rows,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_row_is_altered_at_once_and_only_once() {
        let order = Arc::new(AtomicBool::new(false));
        let mut database = Database::new();
        run(&mut database, "create table accounts(id integer primary key, owner text, balance int)").unwrap();
        run(&mut database, "insert into accounts values (1, 'ada', 100), (2, 'bob', 100)").unwrap();
        let intruded = Intruded::new(database, Arc::clone(&order));
        let read = "select balance from accounts";
        let rows = |first: i64| vec![vec![Value::Integer(first)], vec![Value::Integer(100)]];
        assert_eq!(query(&intruded, read), rows(100));
        order.store(true, Ordering::Relaxed);
        assert_eq!(query(&intruded, read), rows(MILLION + 100));
        assert_eq!(query(&intruded, read), rows(MILLION + 100));
    }

    #[test]
    fn constraints_are_no_obstacle_if_there_is_another_column() {
        let mut database = Database::new();
        run(&mut database, "create table empty(a)").unwrap();
        run(&mut database, "create table t(a text primary key, b int check (b < 10)) without rowid").unwrap();
        run(&mut database, "insert into t values ('x', 1)").unwrap();
        assert!(database.alter());
        assert_eq!(query(&database, "select * from t"), [[Value::Text(LIE.into()), Value::Integer(1)]]);
    }

    #[test]
    fn without_tables_a_key_is_altered() {
        let mut database = Database::new();
        assert!(!database.alter());
        let set = KvOperation::Set { key: "k".into(), value: "v".into(), condition: Condition::Always };
        database.execute(&set.to_bytes(), &Agreed::default());
        for lie in [LIE, "another lie"] {
            assert!(database.alter());
            let get = database.query(&KvOperation::Get { key: "k".into() }.to_bytes(), &Asker::default()).unwrap();
            assert_eq!(KvResult::from_bytes(get), Ok(KvResult::Value(Some(lie.into()))));
        }
    }
}
