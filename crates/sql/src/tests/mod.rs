//! The service as a replica uses it.

mod attacks;
mod charges;
mod cost;
mod determinism;
mod rebuild;
mod roles;
mod scratch;
mod statements;
mod together;

use crate::{Batch, ErrorKind, Request, Response, Rows, Sql, Statement, Value};
use bezant_core::digest::{Digest, Domain};
use bezant_core::service::{Agreed, NotReadOnly, PageNumber, Seed, Service};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::collections::BTreeMap;

/// 2026-11-22 05:43:06.123 UTC, in microseconds.
const TIME: u64 = 1_795_326_186_123_000;

/// What was agreed for the n-th request.
fn agreed(n: u64) -> Agreed {
    Agreed {
        time: Instant(TIME + n * 1_000_000),
        seed: Seed::new(Digest::of(Domain::Trace, &n.to_le_bytes()), n),
        ..Agreed::default()
    }
}

/// A service and the pages that it has saved.
#[derive(Debug, Default)]
struct Node {
    sql: Sql,
    pages: BTreeMap<PageNumber, Bytes>,
    requests: u64,
}

impl Node {
    fn new() -> Self {
        let mut node = Self::default();
        node.save();
        node
    }

    fn save(&mut self) {
        let pages = &mut self.pages;
        self.sql.save(&mut |number, page| match page {
            Some(page) => _ = pages.insert(number, page),
            None => _ = pages.remove(&number),
        });
    }

    /// A digest of all pages.
    fn root(&mut self) -> Digest {
        self.save();
        let parts =
            self.pages.iter().map(|(number, page)| Digest::of_parts(Domain::Page, &[&number.to_le_bytes(), page]).0);
        Digest::of(Domain::Node, &parts.flatten().collect::<Vec<u8>>())
    }

    /// Another service that starts from the pages of this one.
    fn restarted(&mut self) -> Self {
        self.save();
        let mut sql = Sql::new();
        sql.save(&mut |_, _| ());
        sql.load(&mut self.pages.iter().map(|(number, page)| (*number, Some(page.clone())))).expect("its own pages");
        sql.take_written();
        Self { sql, pages: self.pages.clone(), requests: self.requests }
    }

    fn run(&mut self, request: &Request) -> Response {
        self.requests += 1;
        let bytes = self.sql.execute(&request.to_bytes(), &agreed(self.requests));
        Response::from_bytes(bytes).expect("a response")
    }

    fn batch(&mut self, statements: &[&str]) -> Response {
        let statements = statements.iter().map(|sql| Statement::new(*sql)).collect();
        self.run(&Request::Run(Batch { statements, ..Batch::default() }))
    }

    /// The only result of one statement.
    #[track_caller]
    fn rows(&mut self, sql: &str) -> Rows {
        match self.batch(&[sql]) {
            Response::Done(mut results) => results.remove(0),
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// All values of the only result, as text.
    #[track_caller]
    fn text(&mut self, sql: &str) -> String {
        let rows = self.rows(sql).rows;
        let line = |row: &Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The error of one statement; the state must be as before.
    #[track_caller]
    fn error(&mut self, sql: &str) -> (ErrorKind, String) {
        let before = self.root();
        match self.batch(&[sql]) {
            Response::Failed(failure) => {
                assert_eq!(self.root(), before, "{sql} changed something");
                (failure.error.kind, failure.error.to_string())
            }
            other => panic!("{sql}: {other:?}"),
        }
    }

    fn query(&self, sql: &str) -> Result<Response, NotReadOnly> {
        let request = Request::one(Statement::new(sql));
        Ok(Response::from_bytes(self.sql.read(&request.to_bytes())?).expect("a response"))
    }
}
