//! What can be asked of the SQL service.

use crate::error::{ErrorKind, SqlError};
use crate::split::outer_words;
use crate::value::{Value, text};
use bezant_core::digest::{Digest, Domain};
use bezant_core::wire::{Reader, Sink, Wire, WireError, encode_list, encode_part, encode_payload};
use bezant_core::wire_struct;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// The longest statement, in bytes.
pub const SQL_BYTES_MAX: usize = 512 << 10;
/// The most statements in a batch, and the most checks before it: as many short ones as an operation of the usual
/// length has room for. They take some 100 bytes each in memory.
pub const STATEMENTS_MAX: usize = 32_768;
/// The most parameters of a statement.
pub const PARAMETERS_MAX: usize = 32_766;
/// How deep attempts may be nested ([`Statement::attempt`]): every page that is written asks all of them.
pub const ATTEMPTS_MAX: usize = 32;

/// Marks of an attempt. No statement of SQL has a zero byte, and nobody types one.
pub(crate) const ATTEMPT: &str = "\0attempt";
pub(crate) const UNDO: &str = "\0undo";
/// The mark of a table that is made anew, which is no statement of SQL either.
pub(crate) const REBUILD: &str = "\0rebuild";

/// One SQL statement with the values of its parameters `?1`, `?2` and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Exactly one statement; a semicolon may end it. Those of a batch that are alike share it.
    pub sql: Arc<str>,
    /// As many values as the statement has parameters.
    pub parameters: Vec<Value>,
}

impl Statement {
    /// A statement without parameters.
    pub fn new(sql: impl Into<Arc<str>>) -> Self {
        Self { sql: sql.into(), parameters: Vec::new() }
    }

    /// A statement with parameters.
    pub fn with(sql: impl Into<Arc<str>>, parameters: impl IntoIterator<Item = Value>) -> Self {
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

    /// Makes a table anew, which keeps its name, its indexes and its triggers, and is referred to as before. All of it
    /// happens, or nothing does; afterwards every reference from and to the table holds. The texts are pieces of
    /// `CREATE TABLE … definition` and `INSERT INTO … (columns) SELECT values FROM …`, where the old table has its own
    /// name.
    ///
    /// Its errors are those of the two statements, of references ([`ErrorKind::ForeignKey`](crate::ErrorKind)), and of
    /// an index or a trigger that does not go with the new columns.
    pub fn rebuild(
        table: impl Into<String>,
        definition: impl Into<String>,
        columns: impl Into<String>,
        values: impl Into<String>,
    ) -> Self {
        let texts = [table.into(), definition.into(), columns.into(), values.into()];
        Self::with(REBUILD, texts.map(Value::Text))
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

/// Values of a batch that come again and again, such as the text of a statement that many rows are inserted with. Each
/// stands in the encoding once: a value is named by the number that it got when it came first, and follows its number
/// there.
struct Seen<T>(T);

impl<K: Copy + Eq + Hash> Seen<HashMap<K, u32>> {
    fn encode<S: Sink>(&mut self, value: K, out: &mut S, write: impl FnOnce(&mut S)) {
        let next = self.0.len() as u32;
        let number = *self.0.entry(value).or_insert(next);
        encode_part(&number, out);
        if number == next {
            write(out);
        }
    }
}

impl<V: Clone> Seen<Vec<V>> {
    fn decode(
        &mut self,
        reader: &mut Reader,
        read: impl FnOnce(&mut Reader) -> Result<V, WireError>,
    ) -> Result<V, WireError> {
        let number = u32::decode(reader)? as usize;
        if number == self.0.len() {
            self.0.push(read(reader)?);
        }
        self.0.get(number).cloned().ok_or(WireError::NotCanonical)
    }
}

impl Statement {
    fn encode<'a, S: Sink>(&'a self, texts: &mut Seen<HashMap<&'a str, u32>>, out: &mut S) {
        texts.encode(&self.sql, out, |out| encode_payload(self.sql.as_bytes(), out));
        encode_list(&self.parameters, out);
    }

    fn decode(texts: &mut Seen<Vec<Arc<str>>>, reader: &mut Reader) -> Result<Self, WireError> {
        let sql = texts.decode(reader, |reader| text(reader, SQL_BYTES_MAX).map(Arc::from))?;
        Ok(Self { sql, parameters: reader.list(PARAMETERS_MAX)? })
    }
}

/// The least bytes of a statement in a batch: the number of its text, and how many values it has.
const STATEMENT_BYTES_MIN: usize = 2 * size_of::<u32>();

const DIGEST_BYTES: usize = size_of::<Digest>();

/// Bytes that checks take in a batch, which grows one by one.
#[derive(Clone, Debug, Default)]
pub struct CheckBytes {
    texts: HashSet<Arc<str>>,
    digests: HashSet<Digest>,
    bytes: usize,
}

impl CheckBytes {
    /// One more check, which from now on shares its text with those before that have the same.
    pub fn add(&mut self, check: &mut Check) {
        let Check { statement, digest } = check;
        self.bytes += self.of(statement);
        match self.texts.get(&statement.sql) {
            Some(known) => statement.sql = Arc::clone(known),
            None => _ = self.texts.insert(Arc::clone(&statement.sql)),
        }
        if self.digests.insert(*digest) {
            self.bytes += DIGEST_BYTES;
        }
    }

    /// What a statement takes, but for the digest of its result.
    fn of(&self, statement: &Statement) -> usize {
        let Statement { sql, parameters } = statement;
        let values: usize = parameters.iter().map(Wire::length).sum();
        let text = if self.texts.contains(sql) { 0 } else { size_of::<u32>() + sql.len() };
        STATEMENT_BYTES_MIN + size_of::<u32>() + values + text
    }

    /// The most bytes of such a request with one more statement.
    pub fn with(&self, statement: &Statement) -> usize {
        self.of_request() + self.of(statement) + DIGEST_BYTES
    }

    /// The bytes of a request to settle a transaction of all these checks.
    pub const fn of_request(&self) -> usize {
        /// The kind of the request, its time, how many checks and statements it has, and its schema.
        const REST: usize = 1 + size_of::<u64>() + 3 * size_of::<u32>();
        self.bytes + REST
    }
}

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
        let (mut texts, mut digests) = (Seen(HashMap::new()), Seen(HashMap::new()));
        encode_part(&(self.checks.len() as u32), out);
        for check in &self.checks {
            check.statement.encode(&mut texts, out);
            digests.encode(check.digest, out, |out| encode_part(&check.digest, out));
        }
        encode_part(&(self.statements.len() as u32), out);
        for statement in &self.statements {
            statement.encode(&mut texts, out);
        }
        encode_part(&self.schema, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let (mut texts, mut digests) = (Seen(Vec::new()), Seen(Vec::new()));
        let mut batch = Self::default();
        for _ in 0..reader.length(STATEMENTS_MAX, STATEMENT_BYTES_MIN + size_of::<u32>())? {
            let statement = Statement::decode(&mut texts, reader)?;
            batch.checks.push(Check { statement, digest: digests.decode(reader, Digest::decode)? });
        }
        for _ in 0..reader.length(STATEMENTS_MAX, STATEMENT_BYTES_MIN)? {
            batch.statements.push(Statement::decode(&mut texts, reader)?);
        }
        batch.schema = Wire::decode(reader)?;
        Ok(batch)
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

/// Executed and undone: what [`Request::Settle`] would answer, and nothing is changed.
///
/// A replica may keep what comes of it, in a scratch state that nobody else sees, so that the next step of the same
/// transaction need not bring all of it again. Such a state is what the database was when the transaction began there,
/// and goes on from that. No replica promises to keep one, and what is ordered never uses one:
/// [`Response::NotHeld`](crate::Response::NotHeld) says that all is to be asked again, from the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rehearsal {
    /// Names the transaction among all of this client's, so that it must be new: drawn at random.
    pub transaction: Digest,
    /// Another one that is over: its place may be taken.
    pub after: Digest,
    /// Names all that was executed before, in order ([`Self::chain`]), and is not in the batch. Zero: nothing was.
    pub held: Digest,
    /// Whether the transaction goes on from here. If not, or if a statement fails, it goes on from where it was.
    pub lasts: bool,
    /// Checks and statements that come next. The time is the same in all steps from the first on that has one.
    pub dated: Dated,
}
wire_struct!(Rehearsal { transaction, after, held, lasts, dated });

impl Dated {
    /// The time as of which it is executed, if its client may have that.
    pub(crate) fn as_of(&self, agreed: u64) -> Result<u64, SqlError> {
        let oldest = agreed.saturating_sub(AGE_MAX);
        match self.time {
            0 => Ok(agreed),
            time if (oldest..=agreed).contains(&time) => Ok(time),
            _ => {
                let text = format!("a transaction may take {} minutes", AGE_MAX / 60_000_000);
                Err(SqlError::with_hint(ErrorKind::TooSlow, text, "run it again, and commit sooner"))
            }
        }
    }
}

impl Rehearsal {
    /// One that stands for itself.
    pub fn alone(dated: Dated) -> Self {
        Self { dated, ..Self::default() }
    }

    /// What was executed with one more statement, and the digest of what that gave.
    #[must_use]
    pub fn chain(held: Digest, statement: &Statement, digest: Digest) -> Digest {
        let mut bytes = Vec::new();
        encode_payload(statement.sql.as_bytes(), &mut bytes);
        encode_list(&statement.parameters, &mut bytes);
        Digest::of_parts(Domain::Service, &[&held.0, &digest.0, &bytes])
    }
}

/// A request. [`Wire::to_bytes`] gives what a client submits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Execute: [`Response::Done`](crate::Response::Done) with one result per statement. It may be asked as a query;
    /// the replicas find out whether it is one, and refuse it if not.
    Run(Batch),
    /// What a statement would take and give: [`Response::Described`](crate::Response::Described). Changes nothing.
    Describe(String),
    /// Execute and undo. So a client can build a transaction statement by statement, see true results, and then have it
    /// settled with all that it was shown as checks.
    Rehearse(Rehearsal),
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

    /// Whether it goes on from a scratch state, so that it is answered as a query or not at all: when it is ordered the
    /// answer is [`Response::NotHeld`](crate::Response::NotHeld).
    pub fn goes_on(&self) -> bool {
        matches!(self, Self::Rehearse(Rehearsal { held, .. }) if *held != Digest::ZERO)
    }

    /// Whether it changes nothing, by the words of each statement. Some reads do not look like it.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Run(batch) => batch.statements.iter().all(|statement| reads(&statement.sql)),
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

/// Whether a statement can change nothing. What follows WITH is what its first verb says, for SQLite has none within.
fn reads(sql: &str) -> bool {
    const VERBS: [&str; 6] = ["select", "values", "insert", "update", "delete", "replace"];
    let is_verb = |word: &&str| VERBS.iter().any(|verb| word.eq_ignore_ascii_case(verb));
    begins_with(sql, &READS)
        || begins_with(sql, &["with"]) && outer_words(sql).find(is_verb).is_some_and(|verb| begins_with(verb, &READS))
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
            Self::Rehearse(rehearsal) => {
                out.push(REHEARSE);
                rehearsal.encode(out);
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
            REHEARSE => Ok(Self::Rehearse(Rehearsal::decode(reader)?)),
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
            Request::Rehearse(Rehearsal::alone(dated.clone())),
            Request::Rehearse(Rehearsal {
                transaction: Digest([1; 32]),
                after: Digest([3; 32]),
                held: Digest([2; 32]),
                lasts: true,
                dated: dated.clone(),
            }),
            Request::Settle(dated),
        ];
        for request in requests {
            assert_eq!(Request::from_bytes(request.to_bytes().into()), Ok(request));
        }
    }

    /// Ten thousand rows of one text and one result are little more than their values, and as long as was foreseen.
    #[test]
    fn what_comes_again_is_written_once() {
        let text = "insert into a_table_with_a_long_name(a, b) values (?1, ?2)";
        let check = |number| Check {
            statement: Statement::with(text, [Value::Integer(number)]),
            digest: Digest([(number % 2) as u8; 32]),
        };
        let mut checks: Vec<_> = (0..10_000).map(check).collect();
        let mut bytes = CheckBytes::default();
        for check in &mut checks {
            let most = bytes.with(&check.statement);
            bytes.add(check);
            assert!((0..=DIGEST_BYTES).contains(&(most - bytes.of_request())));
        }
        assert!(Arc::ptr_eq(&checks[0].statement.sql, &checks[1].statement.sql));
        let batch = Batch { checks, statements: vec![Statement::new(text)], schema: 0 };
        let request = Request::Settle(Dated { time: 1, batch: batch.clone() });
        assert_eq!(request.length(), bytes.of_request() + STATEMENT_BYTES_MIN);
        assert!(request.length() < 250_000, "{}", request.length());
        let again = Batch::from_bytes(batch.to_bytes().into()).unwrap();
        assert!(Arc::ptr_eq(&again.checks[0].statement.sql, &again.statements[0].sql));
        assert_eq!(again, batch);
    }

    #[test]
    fn numbers_of_what_did_not_come_are_refused() {
        let check = Check { statement: Statement::new("a"), digest: Digest::ZERO };
        let bytes = Batch { checks: vec![check.clone(), check], statements: Vec::new(), schema: 0 }.to_bytes();
        // Behind are the number of statements and the schema.
        let at = bytes.len() - 2 * size_of::<u32>();
        // The second text, and the second digest.
        for (place, number) in [(at - 12, 2), (at - 4, 2), (at - 12, u32::MAX)] {
            let mut bytes = bytes.clone();
            bytes[place..place + 4].copy_from_slice(&u32::to_le_bytes(number));
            assert_eq!(Batch::from_bytes(bytes.into()), Err(WireError::NotCanonical));
        }
    }

    #[test]
    fn reads_look_like_reads() {
        for read in ["select 1", "  SELECT(1)", "with a as (select 1) select * from a", "explain select 1"] {
            let request = Request::one(Statement::new(read));
            assert!(request.seems_read_only(), "{read}");
            assert!(request.is_read_only(), "{read}");
        }
        for write in [
            "with a as (select 1) insert into t select * from a",
            "WITH RECURSIVE a(x) AS (SELECT 'values') /* select */ Update t set x = 1",
            "with \"select\" as (select 1) delete from t",
            "with a as (select 1",
        ] {
            assert!(!Request::one(Statement::new(write)).is_read_only(), "{write}");
        }
        for write in ["insert into t values (1)", "", "-- a comment\nselect 1", "selection"] {
            assert!(!Request::one(Statement::new(write)).seems_read_only(), "{write}");
        }
    }
}
