//! What can be asked of the SQL service.

use crate::value::{Value, text};
use bezant_core::digest::Digest;
use bezant_core::wire::{Reader, Sink, Wire, WireError, encode_list, encode_payload};
use bezant_core::wire_struct;

/// The longest statement, in bytes.
pub const SQL_BYTES_MAX: usize = 512 << 10;
/// The most statements in a batch, and the most checks before it.
pub const STATEMENTS_MAX: usize = 4_096;
/// The most parameters of a statement.
pub const PARAMETERS_MAX: usize = 32_766;
/// How deep attempts may be nested ([`Statement::attempt`]): every page that is written asks all of them.
pub const ATTEMPTS_MAX: usize = 32;

/// Marks of an attempt. No statement of SQL has a zero byte, and nobody types one.
pub(crate) const ATTEMPT: &str = "\0attempt";
pub(crate) const UNDO: &str = "\0undo";

/// One SQL statement with the values of its parameters `?1`, `?2` and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Exactly one statement; a semicolon may end it.
    pub sql: String,
    /// As many values as the statement has parameters.
    pub parameters: Vec<Value>,
}

impl Statement {
    /// A statement without parameters.
    pub fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), parameters: Vec::new() }
    }

    /// A statement with parameters.
    pub fn with(sql: impl Into<String>, parameters: impl IntoIterator<Item = Value>) -> Self {
        Self { sql: sql.into(), parameters: parameters.into_iter().collect() }
    }

    /// Opens an attempt: what follows up to [`Self::undo`] is undone there. As a check it may also fail: its digest is
    /// [`SqlError::digest`](crate::SqlError::digest) then.
    pub fn attempt() -> Self {
        Self::new(ATTEMPT)
    }

    /// Undoes what was executed since the last attempt that is open, and closes it.
    pub fn undo() -> Self {
        Self::new(UNDO)
    }
}

impl Wire for Statement {
    fn encode(&self, out: &mut impl Sink) {
        encode_payload(self.sql.as_bytes(), out);
        encode_list(&self.parameters, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { sql: text(reader, SQL_BYTES_MAX)?, parameters: reader.list(PARAMETERS_MAX)? })
    }
}

/// A statement that must still give what it gave before: how a transaction that read first and writes now is validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was asked.
    pub statement: Statement,
    /// [`Rows::digest`](crate::Rows::digest) of what it gave.
    pub digest: Digest,
}
wire_struct!(Check { statement, digest });

/// Statements that take effect together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Executed first. If one gives something else than it did, the answer is
    /// [`Response::Conflict`](crate::Response::Conflict) and nothing is changed.
    pub checks: Vec<Check>,
    /// Executed in order. If one fails, the answer is [`Response::Failed`](crate::Response::Failed) and nothing is
    /// changed.
    pub statements: Vec<Statement>,
    /// The version of the schema (SQLite's `schema_version`) that all of this was written for: if it is another one
    /// when the request begins, the answer is [`Response::Stale`](crate::Response::Stale) and nothing is executed. 0:
    /// whatever the schema is.
    pub schema: u32,
}

impl Wire for Batch {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.checks, out);
        encode_list(&self.statements, out);
        self.schema.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let (checks, statements) = (reader.list(STATEMENTS_MAX)?, reader.list(STATEMENTS_MAX)?);
        Ok(Self { checks, statements, schema: Wire::decode(reader)? })
    }
}

/// How far back the time of a [`Dated`] batch may lie, in microseconds: how long a transaction may take.
pub const AGE_MAX: u64 = 600_000_000;

/// A batch as of a time: that at which a transaction began, as long as it is built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dated {
    /// What functions of date and time give, in microseconds since 1970: not after the agreed time, and not more than
    /// [`AGE_MAX`] before it. 0: the agreed time itself.
    pub time: u64,
    /// What is executed.
    pub batch: Batch,
}
wire_struct!(Dated { time, batch });

/// A request. [`Wire::to_bytes`] gives what a client submits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Execute: [`Response::Done`](crate::Response::Done) with one result per statement. It may be asked as a query;
    /// the replicas find out whether it is one, and refuse it if not.
    Run(Batch),
    /// What a statement would take and give: [`Response::Described`](crate::Response::Described). Changes nothing.
    Describe(String),
    /// Execute and undo: what [`Self::Settle`] would answer, and nothing is changed. So a client can build a
    /// transaction statement by statement, see true results, and then have it settled with all that it was shown as
    /// checks.
    Rehearse(Dated),
    /// Like [`Self::Run`], as of a time.
    Settle(Dated),
}

/// The tags are none of the key-value service's, so that both share one cluster ([`crate::Database`]).
const RUN: u8 = 64;
const DESCRIBE: u8 = 65;
const REHEARSE: u8 = 66;
const SETTLE: u8 = 67;

impl Request {
    /// One statement.
    pub fn one(statement: Statement) -> Self {
        Self::Run(Batch { statements: vec![statement], ..Batch::default() })
    }

    /// Whether an operation is one of this service's.
    pub(crate) fn is_request(operation: &[u8]) -> bool {
        matches!(operation.first(), Some(&(RUN | DESCRIBE | REHEARSE | SETTLE)))
    }

    /// Whether it is likely that it changes nothing, so that asking it as a query is worth a try.
    pub fn seems_read_only(&self) -> bool {
        match self {
            Self::Run(batch) => batch.statements.iter().all(|statement| seems_read_only(&statement.sql)),
            Self::Describe(_) | Self::Rehearse(_) => true,
            Self::Settle(_) => false,
        }
    }

    /// Whether it changes nothing, whatever follows the first word of each statement. Some reads do not look like it.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Run(batch) => batch.statements.iter().all(|statement| begins_with(&statement.sql, &READS)),
            Self::Describe(_) | Self::Rehearse(_) => true,
            Self::Settle(_) => false,
        }
    }
}

/// How statements begin that cannot write.
const READS: [&str; 4] = ["select", "values", "explain", "pragma"];

/// Whether a statement begins like one that reads.
fn seems_read_only(sql: &str) -> bool {
    begins_with(sql, &READS) || begins_with(sql, &["with"])
}

fn begins_with(sql: &str, words: &[&str]) -> bool {
    let first = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    words.iter().any(|word| first.eq_ignore_ascii_case(word))
}

impl Wire for Request {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Run(batch) => {
                out.push(RUN);
                batch.encode(out);
            }
            Self::Describe(sql) => {
                out.push(DESCRIBE);
                encode_payload(sql.as_bytes(), out);
            }
            Self::Rehearse(dated) => {
                out.push(REHEARSE);
                dated.encode(out);
            }
            Self::Settle(dated) => {
                out.push(SETTLE);
                dated.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            RUN => Ok(Self::Run(Batch::decode(reader)?)),
            DESCRIBE => Ok(Self::Describe(text(reader, SQL_BYTES_MAX)?)),
            REHEARSE => Ok(Self::Rehearse(Dated::decode(reader)?)),
            SETTLE => Ok(Self::Settle(Dated::decode(reader)?)),
            _ => Err(WireError::UnknownTag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back() {
        let read = Statement::with("select ?1", [Value::Integer(1)]);
        let check = Check { statement: read.clone(), digest: Digest([7; 32]) };
        let batch = Batch { checks: vec![check], statements: vec![read, Statement::new("delete from t")], schema: 3 };
        let dated = Dated { time: 7, batch: batch.clone() };
        let requests = [
            Request::Run(batch),
            Request::Describe("select 1".into()),
            Request::Rehearse(dated.clone()),
            Request::Settle(dated),
        ];
        for request in requests {
            assert_eq!(Request::from_bytes(request.to_bytes().into()), Ok(request));
        }
    }

    #[test]
    fn reads_look_like_reads() {
        for read in ["select 1", "  SELECT(1)", "with a as (select 1) select * from a", "explain select 1"] {
            let request = Request::one(Statement::new(read));
            assert!(request.seems_read_only(), "{read}");
            assert_eq!(request.is_read_only(), !read.starts_with("with"), "{read}");
        }
        for write in ["insert into t values (1)", "", "-- a comment\nselect 1", "selection"] {
            assert!(!Request::one(Statement::new(write)).seems_read_only(), "{write}");
        }
    }
}
