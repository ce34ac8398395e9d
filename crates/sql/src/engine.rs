//! Executes requests: atomically, within a budget, with errors that are the same at every replica.
//!
//! 1. A request begins with agreed time and seed, and with nothing left over from the one before (prac-F35).
//! 2. Its statements run in one transaction, which clients can neither end nor nest.
//! 3. An error of the request (SQL, constraint, budget) undoes it all and is the answer. An error of this machine
//!    (no memory, a page that is no page) is never an answer: the replica stops, and starts again from its log.
//!
//! A statement that comes twice is kept prepared; what it does ([`act`]) is found out when it is prepared.

use crate::connection::{Handle, STEPS_PER_LOOK, only_statement};
use crate::error::{ErrorKind, SqlError};
use crate::meter::{self, Allowance, Limits, Measured, Past, STEP_BYTES};
use crate::moment::act;
use crate::request::{ATTEMPT, ATTEMPTS_MAX, Batch, Dated, REBUILD, Rehearsal, Statement, UNDO};
use crate::response::{Column, Description, Failure, RESULT_BYTES_MAX, Response, Rows};
use crate::schema;
use crate::stop::stop;
use crate::value::Value;
use crate::vfs::{Disk, set_last_insert_rowid};
use bezant_core::digest::Digest;
use bezant_core::service::NotReadOnly;
use rusqlite::StatementStatus;
use rusqlite::types::ValueRef;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// A request came near a bound, on a database that has been open for a while: nothing was done, and it is to be
/// executed again on one that has just been opened.
#[derive(Debug)]
pub(crate) struct Near;

/// Bytes that a statement may take which is kept prepared.
const KEPT_BYTES_MAX: i64 = 256 << 10;

/// Statements of which is known what they do.
const KNOWN_MAX: usize = 1_024;

/// The longest text of such a statement.
const KEPT_TEXT_BYTES_MAX: usize = 16 << 10;

/// What each statement does that has been prepared lately, by its text.
pub(crate) type Known = HashMap<String, Prepared>;

/// What is known of a statement since it was prepared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    /// Bits of [`act`].
    acts: u32,
    /// What it cost to prepare it, in bytes gone through.
    cost: i64,
    /// The most memory that it took meanwhile, in bytes.
    memory: i64,
}

/// A statement failed: by its own fault, or because it is not what this client may ask now.
pub(crate) enum Fault {
    Error(SqlError),
    NotReadOnly,
}

impl From<SqlError> for Fault {
    fn from(error: SqlError) -> Self {
        Self::Error(error)
    }
}

/// One request under way.
pub(crate) struct Engine<'a> {
    pub(crate) database: &'a Handle,
    pub(crate) disk: &'a Disk,
    pub(crate) known: &'a mut Known,
    /// What the client may do: bits of [`act`].
    pub(crate) allowed: u32,
    /// Asked as a query: anything but a read of the state alone is refused.
    pub(crate) query: bool,
    /// Nothing of it will last.
    pub(crate) undone: bool,
    /// What was executed so far, on a scratch state.
    pub(crate) chain: Option<Digest>,
    /// Attempts that are open.
    pub(crate) open: usize,
    /// Bytes that the rest of the result may have.
    pub(crate) room: usize,
    /// What the statements of this request do, together, or would have done.
    pub(crate) acts: u32,
    pub(crate) limits: Limits,
    /// Names that SQLite draws at random are let through: for tests alone.
    pub(crate) draws_names: bool,
    /// What the rest of this request may cost.
    pub(crate) left: Allowance,
    /// The least memory that was left, in bytes.
    pub(crate) least: i64,
    /// Bytes that were allocated and not given back.
    pub(crate) kept: i64,
    /// What was done before, since the database was opened.
    pub(crate) before: Past,
    /// The database has just been opened, so that what a request costs is the same everywhere.
    pub(crate) fresh: bool,
}

impl<'a> Engine<'a> {
    /// Forgets the request before this one.
    pub(crate) fn begin(&self, time: u64, seed: Digest) {
        self.disk.moment.begin(time, seed);
        set_last_insert_rowid(&self.database.connection, 0);
    }

    /// What this request has done.
    pub(crate) const fn done(&self) -> Past {
        Past { bytes: Allowance::of(&self.limits).bytes - self.left.bytes, kept: self.kept }
    }

    /// Whether what this request took is too near a bound to be judged here.
    pub(crate) fn far(&self) -> Result<(), Near> {
        let all = Allowance::of(&self.limits);
        let least = self.least.min(all.memory);
        let is_near = self.before.bytes + self.done().bytes > all.bytes / 2
            || self.before.kept + all.memory - least > all.memory / 2;
        if is_near && !self.fresh { Err(Near) } else { Ok(()) }
    }

    /// Executes a batch for good, or not at all.
    pub(crate) fn execute(&mut self, batch: &Batch, time: u64, seed: Digest) -> Result<Response, Near> {
        self.begin(time, seed);
        self.control("begin");
        let result = self.run(batch);
        let far = self.far();
        let response = result.and_then(|response| match response {
            Response::Done(_) if far.is_ok() => self.commit(batch.statements.len() as u32).map(|()| response),
            other => Ok(other),
        });
        self.undo();
        far?;
        Ok(response.unwrap_or_else(|(statement, fault)| match fault {
            Fault::Error(error) => Response::Failed(Failure { statement, error }),
            Fault::NotReadOnly => unreachable!("what is ordered may write"),
        }))
    }

    /// Undoes what was not committed. SQLite ends a transaction by itself after some errors.
    pub(crate) fn undo(&self) {
        if !self.database.connection.is_autocommit() {
            self.control("rollback");
        }
    }

    /// Executes a batch for good, or not at all, as of its time.
    pub(crate) fn settle(&mut self, dated: &Dated, time: u64, seed: Digest) -> Result<Response, Near> {
        match dated.as_of(time) {
            Ok(time) => self.execute(&dated.batch, time, seed),
            Err(error) => Ok(Response::Failed(Failure { statement: 0, error })),
        }
    }

    /// Executes a batch that only reads the state.
    pub(crate) fn query(&mut self, batch: &Batch) -> Result<Result<Response, NotReadOnly>, Near> {
        self.begin(0, Digest::ZERO);
        let result = self.run(batch);
        self.far()?;
        Ok(self.answer(result))
    }

    pub(crate) fn run(&mut self, batch: &Batch) -> Result<Response, (u32, Fault)> {
        if batch.schema != 0 && batch.schema != self.schema_version() {
            return Ok(Response::Stale);
        }
        self.open = 0;
        for (number, check) in (0..).zip(&batch.checks) {
            let digest = match self.statement_or_mark(&check.statement) {
                // Whatever it did before it failed is undone with the attempt.
                Err(Fault::Error(error)) if self.open > 0 && !self.database.connection.is_autocommit() => {
                    error.digest()
                }
                result => result.map_err(|fault| (number, fault))?.digest(),
            };
            if digest != check.digest {
                return Ok(Response::Conflict(number));
            }
            self.chain = self.chain.map(|chain| Rehearsal::chain(chain, &check.statement, digest));
        }
        let first = batch.checks.len() as u32;
        let mut results = Vec::with_capacity(batch.statements.len());
        for (number, statement) in (first..).zip(&batch.statements) {
            let rows = self.statement_or_mark(statement).map_err(|fault| (number, fault))?;
            self.chain = self.chain.map(|chain| Rehearsal::chain(chain, statement, rows.digest()));
            results.push(rows);
        }
        Ok(Response::Done(results))
    }

    /// Executes a statement, or opens or undoes an attempt. Without a transaction, as in a query, or after an error
    /// that has ended it, there is nothing to undo.
    fn statement_or_mark(&mut self, statement: &Statement) -> Result<Rows, Fault> {
        let undoes = match &*statement.sql {
            ATTEMPT => false,
            UNDO => true,
            REBUILD => return self.rebuild(&statement.parameters),
            _ => return self.statement(statement),
        };
        if self.database.connection.is_autocommit() || undoes && self.open == 0 {
            return Err(SqlError::new(ErrorKind::NotAllowed, "there is no attempt to undo").into());
        }
        if undoes {
            self.control("rollback to attempt");
            self.control("release attempt");
            self.open -= 1;
            if self.acts & act::WRITES_SCHEMA != 0 {
                self.forget_kept();
            }
        } else if self.open < ATTEMPTS_MAX {
            self.control("savepoint attempt");
            self.open += 1;
        } else {
            return Err(SqlError::new(ErrorKind::TooLarge, format!("more than {ATTEMPTS_MAX} nested attempts")).into());
        }
        Ok(Rows::default())
    }

    /// The version that page 1 says the schema is.
    fn schema_version(&self) -> u32 {
        let connection = &self.database.connection;
        let ask = || connection.prepare_cached("pragma schema_version")?.query_row([], |row| row.get(0));
        self.disk.moment.privileged(ask).unwrap_or_else(|error| stop(&error))
    }

    /// A statement of our own, which only controls the transaction.
    pub(crate) fn control(&self, sql: &str) {
        self.try_control(sql).unwrap_or_else(|error| stop(&error));
    }

    fn try_control(&self, sql: &str) -> rusqlite::Result<()> {
        let connection = &self.database.connection;
        let execute = || connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        self.disk.moment.privileged(execute).map(|_| ())
    }

    /// Makes the transaction's changes the state. Deferred constraints are checked now.
    pub(crate) fn commit(&self, statements: u32) -> Result<(), (u32, Fault)> {
        self.try_control("commit").map_err(|error| (statements.saturating_sub(1), self.explain(error).into()))
    }

    /// What a statement would take and give.
    pub(crate) fn describe(&mut self, sql: &str) -> Result<Response, Near> {
        if sql == REBUILD {
            let description = Description { parameters: 4, columns: Vec::new(), read_only: false };
            return Ok(Response::Described(description));
        }
        self.begin(0, Digest::ZERO);
        let described = self.prepare(sql).and_then(|statement| {
            let (parameters, read_only) = (statement.parameter_count() as u32, statement.readonly());
            Ok(Description { parameters, columns: self.columns(&statement)?, read_only })
        });
        self.far()?;
        Ok(match described {
            Ok(description) => Response::Described(description),
            Err(error) => Response::Failed(Failure { statement: 0, error }),
        })
    }

    pub(crate) fn statement(&mut self, statement: &Statement) -> Result<Rows, Fault> {
        self.disk.moment.acts.store(0, Ordering::Relaxed);
        self.disk.moment.asked.store(0, Ordering::Relaxed);
        self.disk.moment.take_created();
        let result = self.prepare_and_step(statement);
        let acts = self.disk.moment.acts.load(Ordering::Relaxed);
        let before = self.acts;
        self.acts |= acts;
        if acts & act::WRITES_SCHEMA == 0 {
            return result;
        }
        self.forget_kept();
        let paid = self.pay_for_schema(before, acts);
        let rows = result?;
        paid?;
        self.check_schema(acts)?;
        Ok(rows)
    }

    /// Forgets kept statements when the schema is another one. SQLite would prepare them again, at the cost of whoever
    /// comes next.
    pub(crate) fn forget_kept(&mut self) {
        self.known.clear();
        self.database.connection.flush_prepared_statement_cache();
    }

    /// Who changes the schema, or has only tried to, makes the replica read all of it again, once, when the request is
    /// over.
    pub(crate) fn pay_for_schema(&mut self, before: u32, acts: u32) -> Result<(), SqlError> {
        let (connection, moment) = (&self.database.connection, &self.disk.moment);
        let (size, measured) = self.left.measure(|| moment.privileged(|| schema::size(connection)));
        self.check(measured)?;
        let size = size.map_err(|error| self.explain(error))?;
        if before & act::WRITES_SCHEMA == 0 {
            self.pay(size.saturating_mul(STEP_BYTES))?;
        }
        if acts & act::ADDS_SCHEMA == 0 || size <= schema::SCHEMA_BYTES_MAX {
            return Ok(());
        }
        let text = format!(
            "the schema is larger than {} bytes, {} for each table, index, view, trigger and statistic included",
            schema::SCHEMA_BYTES_MAX,
            schema::OBJECT_BYTES
        );
        Err(SqlError::with_hint(ErrorKind::TooLarge, text, "drop what is not needed"))
    }

    /// Whether the schema that a statement left may stay.
    fn check_schema(&mut self, acts: u32) -> Result<(), Fault> {
        let connection = &self.database.connection;
        let moment = &self.disk.moment;
        let created = moment.take_created();
        let created = if acts & act::ALTERS_TABLES == 0 { Some(created) } else { None };
        let look = || schema::what_is_wrong(connection, created, self.draws_names);
        let (wrong, measured) = self.left.measure(|| moment.privileged(look));
        self.check(measured)?;
        match wrong.map_err(|error| self.explain(error))? {
            None => Ok(()),
            Some(wrong) => Err(SqlError::new(ErrorKind::NotAllowed, wrong).into()),
        }
    }

    fn prepare_and_step(&mut self, statement: &Statement) -> Result<Rows, Fault> {
        let Statement { sql, parameters } = statement;
        let connection = &self.database.connection;
        // What comes once is not kept: it would push out what comes again and again.
        if let Some(&Prepared { acts, cost, memory }) = self.known.get(&**sql) {
            self.pay(cost)?;
            self.least = self.least.min(self.limits.memory as i64 - memory);
            let mut prepared = connection.prepare_cached(sql).map_err(|error| self.explain(error))?;
            self.disk.moment.acts.fetch_or(acts, Ordering::Relaxed);
            return self.step(&mut prepared, parameters);
        }
        let mut prepared = self.prepare(sql)?;
        self.step(&mut prepared, parameters)
    }

    /// Prepares a statement that is not known, and learns what it does and costs.
    fn prepare(&mut self, sql: &str) -> Result<rusqlite::Statement<'a>, SqlError> {
        let connection = &self.database.connection;
        // What it takes is given back with the statement.
        let mut left = Allowance { memory: self.limits.memory as i64, ..self.left };
        let (prepared, measured) = left.measure(|| only_statement(connection, sql));
        self.left.bytes = left.bytes;
        self.check(measured)?;
        let prepared = prepared.map_err(|error| self.explain(error))?;
        let prepared = prepared.ok_or_else(|| SqlError::new(ErrorKind::Syntax, "there is no statement"))?;
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        if measured.kept <= KEPT_BYTES_MAX && sql.len() <= KEPT_TEXT_BYTES_MAX {
            let acts = self.disk.moment.acts.load(Ordering::Relaxed);
            let memory = self.limits.memory as i64 - measured.least;
            self.known.insert(sql.to_string(), Prepared { acts, cost: measured.bytes, memory });
        }
        Ok(prepared)
    }

    /// Takes from what this request may cost.
    pub(crate) fn pay(&mut self, bytes: i64) -> Result<(), SqlError> {
        self.left.bytes -= bytes;
        if self.left.is_spent() { Err(self.too_slow()) } else { Ok(()) }
    }

    /// Whether what SQLite did was within bounds. If not, that is what is said, whatever SQLite says.
    pub(crate) fn check(&mut self, measured: Measured) -> Result<(), SqlError> {
        self.least = self.least.min(measured.least);
        self.kept += measured.kept.max(0);
        match measured.refused {
            _ if self.left.is_spent() => Err(self.too_slow()),
            true => Err(self.too_much()),
            false => Ok(()),
        }
    }

    /// Binds, steps and collects.
    fn step(&mut self, prepared: &mut rusqlite::Statement<'_>, parameters: &[Value]) -> Result<Rows, Fault> {
        self.admit(prepared, parameters.len())?;
        for (number, value) in (1..).zip(parameters) {
            prepared.raw_bind_parameter(number, value).map_err(|error| self.explain(error))?;
        }
        // The meter is paid whenever this counter passes a multiple of the interval, so that it must begin anew,
        // however often the statement was executed before.
        prepared.reset_status(StatementStatus::VmStep);
        let columns = self.columns(prepared)?;
        let name = schema::drawn_name(columns.iter().map(|column| column.name.as_str()));
        if let Some(name) = name.filter(|_| !self.draws_names) {
            return Err(SqlError::with_hint(ErrorKind::NotAllowed, schema::drawn(name), schema::DRAWN_HINT).into());
        }
        let mut left = self.left;
        let (rows, measured) = left.measure(|| self.rows(prepared, columns.len()));
        self.left = left;
        self.check(measured)?;
        let rows = rows?;
        let rest = prepared.get_status(StatementStatus::VmStep) as u32 % STEPS_PER_LOOK;
        self.pay(i64::from(rest) * STEP_BYTES)?;
        // A statement that was kept is prepared again when the schema has changed; then it may do something else.
        self.admit(prepared, parameters.len())?;
        let moment = &self.disk.moment;
        if moment.last_rowid_used.load(Ordering::Relaxed) {
            return Err(SqlError::new(
                ErrorKind::NotAllowed,
                format!("rowid {} is not allowed: SQLite would choose the next one at random", i64::MAX),
            )
            .into());
        }
        let acts = moment.acts.load(Ordering::Relaxed);
        let wrote_rows = acts & act::WRITES_ROWS != 0 && acts & act::WRITES_SCHEMA == 0 && !prepared.readonly();
        let changes = if wrote_rows { self.database.connection.changes() } else { 0 };
        moment.changes.store(changes, Ordering::Relaxed);
        Ok(Rows { columns, rows, changes, last_insert_rowid: self.database.connection.last_insert_rowid() })
    }

    /// Steps and collects, until the statement is reset.
    fn rows(&mut self, prepared: &mut rusqlite::Statement<'_>, width: usize) -> Result<Vec<Vec<Value>>, SqlError> {
        let mut rows = Vec::new();
        let mut cursor = prepared.raw_query();
        while let Some(row) = cursor.next().map_err(|error| self.explain(error))? {
            let mut values = Vec::with_capacity(width);
            for column in 0..width {
                let given = meter::hand_out(|| row.get_ref(column).expect("within the columns"));
                if meter::has_refused() {
                    return Err(self.too_much());
                }
                // Before it is copied: a row may have very many columns, all of them the same value.
                self.take(Value::bytes_encoded(given))?;
                values.push(value(given)?);
            }
            if width > 0 {
                rows.push(values);
            }
        }
        Ok(rows)
    }

    /// Whether the client may have this statement executed now.
    fn admit(&mut self, prepared: &rusqlite::Statement<'_>, given: usize) -> Result<(), Fault> {
        let acts = self.disk.moment.acts.load(Ordering::Relaxed);
        let may_write = self.chain.is_some() || self.undone && acts & act::WRITES_SCHEMA == 0;
        if self.query && !prepared.readonly() && !may_write {
            return Err(Fault::NotReadOnly);
        }
        if !prepared.readonly() && acts & !self.allowed != 0 || acts & act::WRITES_SYSTEM & !self.allowed != 0 {
            return Err(denied().into());
        }
        // The bytecode of EXPLAIN shows addresses.
        if prepared.is_explain() == 1 {
            return Err(SqlError::new(ErrorKind::NotAllowed, "EXPLAIN is not allowed: use EXPLAIN QUERY PLAN").into());
        }
        let wanted = prepared.parameter_count();
        if wanted != given {
            let text = format!("the statement has {wanted} parameters and {given} values came with it");
            return Err(SqlError::new(ErrorKind::Parameters, text).into());
        }
        Ok(())
    }

    /// The columns of a result, which have room in it.
    fn columns(&mut self, prepared: &rusqlite::Statement<'_>) -> Result<Vec<Column>, SqlError> {
        const OVERHEAD: usize = 16;
        let mut columns = Vec::new();
        for column in prepared.columns() {
            self.take(OVERHEAD + column.name().len() + column.decl_type().map_or(0, str::len))?;
            columns.push(Column::from(&column));
        }
        Ok(columns)
    }

    /// Takes room in the result.
    fn take(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.room = self.room.checked_sub(bytes).ok_or_else(|| {
            SqlError::with_hint(
                ErrorKind::TooLarge,
                format!("the result is larger than {RESULT_BYTES_MAX} bytes"),
                "ask for a part of it, with WHERE or LIMIT",
            )
        })?;
        Ok(())
    }
}

/// What those are told whose role does not allow what they ask for.
pub(crate) fn denied() -> SqlError {
    SqlError::with_hint(
        ErrorKind::Denied,
        "this client's role does not allow the statement",
        "the table bezant_members says which key has which role; an administrator can change it",
    )
}

fn value(value: ValueRef<'_>) -> Result<Value, SqlError> {
    Value::try_from(value).map_err(|_| {
        let hint = "cast it to a blob: CAST(… AS BLOB)";
        SqlError::with_hint(ErrorKind::Mismatch, "a text in the result is not UTF-8", hint)
    })
}
