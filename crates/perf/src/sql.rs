//! Requests to the SQL service, and SQLite without any replication as the yardstick.
//!
//! The table has a row per payment: a key, two texts, a number. Inserts take keys in turn, each used once; reads ask
//! for one row by its key, spread over the rows that were there before.

use bezant_core::client::{Read, Submit};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bezant_sql::{Batch, Request, Response, Statement, Value};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Makes the table.
pub const CREATE: &str =
    "create table payment(id integer primary key, payer text not null, payee text not null, cents integer not null)";
pub(crate) const INSERT: &str = "insert into payment values (?1, ?2, ?3, ?4)";
const READ: &str = "select payer, payee, cents from payment where id = ?1";

/// The paper "On the Practicality of PBFT" lets replicas agree on a time and a random number with every vote.
const CREATE_VOTES: &str =
    "create table vote(voter integer primary key, choice text not null, at real not null, draw integer not null)";
const VOTE: &str = "insert into vote values (?1, ?2, unixepoch('now', 'subsec'), random())";

/// Rows that are there before reads are measured.
pub const ROWS: i64 = 20_000;
/// Rows of a batch that makes them.
const ROWS_PER_BATCH: i64 = 500;

/// A multiplier that spreads keys: odd, near the golden ratio of 2⁶³.
const SPREAD: i64 = 0x4f1b_bcdc_bfa5_3e0b;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Single-row inserts.
    Insert,
    /// Reads of one row by its key, asked as queries.
    Read,
    /// Nine reads, then one insert.
    Mixed,
    /// Single-row inserts of votes: a key, a text, the agreed time and an agreed random number.
    Vote,
}

impl Mix {
    /// As figures name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "sql-insert",
            Self::Read => "sql-read",
            Self::Mixed => "sql-mixed",
            Self::Vote => "sql-vote",
        }
    }
}

/// One row's values.
pub(crate) fn row(id: i64) -> [Value; 4] {
    let name = |of: i64| Value::Text(format!("account-{:08}", of.wrapping_mul(SPREAD).rem_euclid(100_000_000)));
    [Value::Integer(id), name(id), name(id + 1), Value::Integer(id.wrapping_mul(SPREAD).rem_euclid(1_000_000))]
}

/// One vote's voter and choice.
fn vote(id: i64) -> [Value; 2] {
    [Value::Integer(id), Value::Text(format!("candidate-{}", id.wrapping_mul(SPREAD).rem_euclid(10)))]
}

/// What lets every key join, and write.
pub fn admission() -> [Request; 1] {
    [Request::one(Statement::new("insert into bezant_members values ('*', 'writer', 'the load')"))]
}

/// What makes the table and, for reads, its first rows.
pub fn preparation(mix: Mix) -> impl Iterator<Item = Request> {
    let rows = if matches!(mix, Mix::Insert | Mix::Vote) { 0 } else { ROWS };
    let batches = (0..rows).step_by(ROWS_PER_BATCH as usize).map(|first| {
        let statements = (first..first + ROWS_PER_BATCH).map(|id| Statement::with(INSERT, row(id))).collect();
        Request::Run(Batch { statements, ..Batch::default() })
    });
    let create = if mix == Mix::Vote { CREATE_VOTES } else { CREATE };
    std::iter::once(Request::one(Statement::new(create))).chain(batches)
}

/// Makes requests and looks at results.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    mix: Mix,
    /// The next key that was never used, over all threads.
    next: Arc<AtomicI64>,
    made: u64,
}

impl Requests {
    pub(crate) fn new(mix: Mix, next: Arc<AtomicI64>) -> Self {
        Self { mix, next, made: 0 }
    }

    /// The next request, which is given up after its deadline.
    pub(crate) fn next(&mut self, deadline: Instant) -> Submit {
        self.made += 1;
        let insert = match self.mix {
            Mix::Insert | Mix::Vote => true,
            Mix::Read => false,
            Mix::Mixed => self.made.is_multiple_of(10),
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let statement = match insert {
            true if self.mix == Mix::Vote => Statement::with(VOTE, vote(id)),
            true => Statement::with(INSERT, row(ROWS + id)),
            false => Statement::with(READ, [Value::Integer(id.wrapping_mul(SPREAD).rem_euclid(ROWS))]),
        };
        let operation = Request::one(statement).to_bytes().into();
        Submit { operation, is_bundle: false, read_only: !insert, read: Read::Quorum, deadline: Some(deadline) }
    }

    /// What is wrong with a result: it must be one row, written or read.
    pub(crate) fn objection(result: &Bytes) -> Option<String> {
        match Response::from_bytes(result.clone()) {
            Ok(Response::Done(results))
                if results.len() == 1 && (results[0].changes == 1 || results[0].rows.len() == 1) =>
            {
                None
            }
            Ok(other) => Some(format!("not one row: {other:?}")),
            Err(error) => Some(format!("no answer of the SQL service ({error}): is the service `sql`?")),
        }
    }
}
