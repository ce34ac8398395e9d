//! `BEGIN … COMMIT` over a database that knows only whole requests.
//!
//! Nothing is locked and nothing is held open. Each statement is *rehearsed*: the replicas execute all statements of
//! the transaction so far and then this one, answer, and undo it all. So every result is a true one, of one state, with
//! the transaction's own writes in it; and a statement that sees that an earlier result has changed since ends the
//! transaction with 40001. COMMIT has all of it executed for good if every result is still what the client was shown.
//! The outcome is as if the transactions had run one after the other.
//!
//! Nothing that the client was shown is ever forgotten: what `ROLLBACK TO` takes back is an attempt that must end as it
//! did, with the same rows and errors, wherever the transaction is rehearsed or executed.

use crate::error::{PgError, sqlstate};
use crate::link::Link;
use bezant_sql::{
    ATTEMPTS_MAX, Batch, Check, Dated, ErrorKind, Failure, Request, Rows, STATEMENTS_MAX, SqlError, Statement, Value,
};

/// Savepoints of a transaction.
const SAVEPOINTS_MAX: usize = 1_024;
/// Statements of which it is asked whether one of them writes. Of more it is taken for granted.
const ASKED_MAX: usize = 64;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    /// Every statement, and what the client was shown of it. What was taken back stands between the marks of an
    /// attempt.
    shown: Vec<Check>,
    /// Whether the client has learned something of the schema that is none of these results.
    told: bool,
    /// Whether one of them has changed rows.
    changed: bool,
    /// Whether an answer had to be ordered: it may depend on a random number.
    ordered: bool,
    /// When it began, as far as its statements can tell: the agreed time when the first of them asked for it, in
    /// microseconds since 1970; before that 0.
    time: u64,
    /// Names, and how many statements came before.
    savepoints: Vec<(String, usize)>,
    read_only: bool,
    failed: bool,
}

impl Transaction {
    /// One without statements.
    pub(crate) fn new(read_only: bool) -> Self {
        Self { read_only, ..Self::default() }
    }

    /// Whether the client has been shown something of it.
    pub(crate) const fn has_begun(&self) -> bool {
        self.told || !self.shown.is_empty()
    }

    /// The client learns something of the schema: it must stay as it is.
    pub(crate) fn tell(&mut self) {
        self.told = true;
    }

    /// Whether it refuses to write.
    pub(crate) const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Has it refuse to write, or not.
    ///
    /// # Errors
    /// If it has executed statements the other way.
    pub(crate) fn set_read_only(&mut self, read_only: bool) -> Result<(), PgError> {
        if self.read_only != read_only && !self.shown.is_empty() {
            let text = "READ ONLY and READ WRITE must be set before the first statement of a transaction";
            return Err(PgError::new(sqlstate::ACTIVE_TRANSACTION, text));
        }
        self.read_only = read_only;
        Ok(())
    }

    /// Whether a statement has failed, so that only going back is possible.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed
    }

    /// A statement has failed.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// Carries out a statement as far as anybody in the transaction can tell.
    ///
    /// # Errors
    /// Its own, or that something shown before is no longer so.
    pub(crate) fn execute(&mut self, link: &mut Link, statement: Statement) -> Result<Rows, PgError> {
        let shown = self.rehearse(link, &statement)?;
        self.note(statement, &shown);
        let rows = shown?;
        self.changed |= rows.changes > 0;
        Ok(rows)
    }

    /// What a statement would give at this point, without being part of the transaction.
    ///
    /// # Errors
    /// Its own, which the client has seen then; or that something shown before is no longer so.
    pub(crate) fn look(&mut self, link: &mut Link, statement: Statement) -> Result<Rows, PgError> {
        let shown = self.ask_one(link, &statement)?;
        if shown.is_err() {
            self.note(statement, &shown);
        }
        Ok(shown?)
    }

    /// Remembers what the client is shown.
    fn note(&mut self, statement: Statement, shown: &Result<Rows, SqlError>) {
        let digest = match shown {
            Ok(rows) => rows.digest(),
            Err(error) if is_about_rows(error) => error.digest(),
            Err(_) => return,
        };
        self.shown.push(Check { statement, digest });
    }

    fn rehearse(&mut self, link: &mut Link, statement: &Statement) -> Result<Result<Rows, SqlError>, PgError> {
        if self.read_only {
            match link.reads(&statement.sql)? {
                Ok(true) => {}
                Ok(false) => return Err(PgError::read_only()),
                // The same comes again, of one state with all that was shown.
                Err(_) => {
                    return self
                        .ask_one(link, statement)?
                        .map_or_else(|error| Ok(Err(error)), |_| Err(PgError::conflict()));
                }
            }
        }
        if self.shown.len() >= STATEMENTS_MAX {
            let text = format!("a transaction has at most {STATEMENTS_MAX} statements");
            return Err(
                PgError::new(sqlstate::LIMIT, text).hint("commit from time to time, or write more rows at once")
            );
        }
        if self.time == 0 {
            let shown = self.ask_one(link, statement)?;
            let is_ordered = link.last_was_ordered();
            self.ordered |= is_ordered;
            if !is_ordered || shown.as_ref().map_or(true, |rows| rows.columns.is_empty()) {
                return Ok(shown);
            }
            // It asks for time or randomness, or this cluster orders every read. From here on the time is that of this
            // moment.
            self.time = ask_time(link)?;
        }
        self.ask_twice(link, statement)
    }

    /// Rehearses a statement two times in one state: what differs then is random, and known when the transaction takes
    /// effect and not before.
    fn ask_twice(&self, link: &mut Link, statement: &Statement) -> Result<Result<Rows, SqlError>, PgError> {
        let twice = vec![Statement::attempt(), statement.clone(), Statement::undo(), statement.clone()];
        match self.ask(link, twice)?.as_deref_mut() {
            Ok([_, first, _, second]) if first.columns.is_empty() || first.digest() == second.digest() => {
                Ok(Ok(std::mem::take(first)))
            }
            Ok([_, _, _, _]) => Err(random()),
            Ok(_) => Err(no_result()),
            // Once may be within the bounds. COMMIT finds out what changes.
            Err(error) if matches!(error.kind, ErrorKind::TooLarge | ErrorKind::TooSlow) => {
                self.ask_one(link, statement)
            }
            Err(error) => Ok(Err(error.clone())),
        }
    }

    fn ask_one(&self, link: &mut Link, statement: &Statement) -> Result<Result<Rows, SqlError>, PgError> {
        match self.ask(link, vec![statement.clone()])? {
            Ok(mut results) => results.pop().map(Ok).ok_or_else(no_result),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Rehearses statements. The outer error is that of the way there, or that something shown before is no longer so.
    fn ask(&self, link: &mut Link, statements: Vec<Statement>) -> Result<Result<Vec<Rows>, SqlError>, PgError> {
        let batch = Batch { checks: self.shown.clone(), statements, schema: link.schema };
        match self.validate(link, &Request::Rehearse(Dated { time: self.time, batch }))? {
            Err(failure) if (failure.statement as usize) < self.shown.len() && is_about_rows(&failure.error) => {
                Err(PgError::conflict())
            }
            other => Ok(other.map_err(|failure| failure.error)),
        }
    }

    /// Asks with all that was shown as checks.
    fn validate(&self, link: &mut Link, request: &Request) -> Result<Result<Vec<Rows>, Failure>, PgError> {
        let answer = link.ask(request);
        match &answer {
            Err(error) if error.sqlstate == sqlstate::CONFLICT && self.is_random(link) => Err(random()),
            _ => answer,
        }
    }

    /// Whether the transaction was shown what depends on random numbers that it drew: in one state, nothing else gives
    /// two results. What cannot be found out is a conflict.
    fn is_random(&self, link: &mut Link) -> bool {
        if !self.ordered {
            return false;
        }
        let all = || self.shown.iter().map(|check| check.statement.clone());
        let between = [Statement::undo(), Statement::new("select random()")];
        let statements = [Statement::attempt()].into_iter().chain(all()).chain(between).chain(all()).collect();
        let batch = Batch { statements, schema: link.schema, ..Batch::default() };
        let request = Request::Rehearse(Dated { time: self.time, batch });
        let results = link.results(&request).unwrap_or_default();
        let first = results.iter().skip(1).take(self.shown.len());
        let mut both = first.zip(results.iter().skip(self.shown.len() + 3));
        both.any(|(one, other)| one.digest() != other.digest())
    }

    /// Ends the transaction for good.
    ///
    /// # Errors
    /// Nothing has taken effect; or nobody knows, with SQLSTATE 08007.
    pub(crate) fn commit(self, link: &mut Link) -> Result<(), PgError> {
        // Every rehearsal looked at all results before its own: reads alone are of one state already.
        if !self.writes(link)? {
            return Ok(());
        }
        let batch = Batch { checks: self.shown.clone(), schema: link.schema, ..Batch::default() };
        match self.validate(link, &Request::Settle(Dated { time: self.time, batch }))? {
            Ok(_) => Ok(()),
            // Deferred constraints are looked at here, and nowhere before.
            Err(failure) if failure.error.kind == ErrorKind::ForeignKey || !is_about_rows(&failure.error) => {
                Err(failure.into())
            }
            Err(_) => Err(PgError::conflict()),
        }
    }

    /// Whether a statement that was not taken back writes, as the replicas say.
    fn writes(&self, link: &mut Link) -> Result<bool, PgError> {
        if self.read_only || self.changed {
            return Ok(!self.read_only);
        }
        if self.shown.len() > ASKED_MAX {
            return Ok(true);
        }
        for (check, depth) in self.shown.iter().zip(depths(&self.shown)) {
            // One that cannot be described outside of the transaction depends on what another one makes.
            if depth == 0 && *check != mark(Statement::undo()) && link.reads(&check.statement.sql)? != Ok(true) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Marks a place.
    ///
    /// # Errors
    /// If there are too many already.
    pub(crate) fn save(&mut self, name: String) -> Result<(), PgError> {
        if self.savepoints.len() >= SAVEPOINTS_MAX {
            return Err(PgError::new(
                sqlstate::LIMIT,
                format!("a transaction has at most {SAVEPOINTS_MAX} savepoints"),
            ));
        }
        self.savepoints.push((name, self.shown.len()));
        Ok(())
    }

    /// Goes back to a place; the transaction goes on from there even if it has failed since. What came after it is an
    /// attempt from now on.
    ///
    /// # Errors
    /// If there is no such place, or attempts are in attempts too often.
    pub(crate) fn go_back(&mut self, name: &str) -> Result<(), PgError> {
        let place = self.find(name)?;
        let start = self.savepoints[place].1;
        if depths(&self.shown[start..]).max() == Some(ATTEMPTS_MAX) {
            let text = format!("ROLLBACK TO is nested more than {ATTEMPTS_MAX} times");
            return Err(PgError::new(sqlstate::LIMIT, text).hint("roll back the whole transaction"));
        }
        self.savepoints.truncate(place + 1);
        if start < self.shown.len() {
            self.shown.insert(start, mark(Statement::attempt()));
            self.shown.push(mark(Statement::undo()));
            self.savepoints[place].1 = self.shown.len();
        }
        self.failed = false;
        Ok(())
    }

    /// Forgets a place and all that were marked after it.
    ///
    /// # Errors
    /// If there is no such place.
    pub(crate) fn release(&mut self, name: &str) -> Result<(), PgError> {
        let place = self.find(name)?;
        self.savepoints.truncate(place);
        Ok(())
    }

    fn find(&self, name: &str) -> Result<usize, PgError> {
        let place = self.savepoints.iter().rposition(|(known, _)| known == name);
        place.ok_or_else(|| PgError::new(sqlstate::NO_SAVEPOINT, format!("savepoint \"{name}\" does not exist")))
    }
}

/// What the client has not seen, but the replicas do.
fn mark(statement: Statement) -> Check {
    Check { statement, digest: Rows::default().digest() }
}

/// In how many attempts each check is; the mark that opens one is in it.
fn depths(checks: &[Check]) -> impl Iterator<Item = usize> {
    let (opens, closes) = (mark(Statement::attempt()), mark(Statement::undo()));
    checks.iter().scan(0, move |depth, check| {
        *depth += usize::from(*check == opens);
        *depth -= usize::from(*check == closes);
        Some(*depth)
    })
}

/// Whether an error tells something about the rows; others are about what may be asked, and how much at once.
fn is_about_rows(error: &SqlError) -> bool {
    !matches!(error.kind, ErrorKind::TooLarge | ErrorKind::TooSlow | ErrorKind::Denied | ErrorKind::Full)
}

fn random() -> PgError {
    PgError::unsupported("the result is random, and drawn when the transaction is committed")
        .hint("leave it out of what the statement returns, or run the statement outside of the transaction")
}

fn no_result() -> PgError {
    PgError::new(sqlstate::PROTOCOL, "the replicas gave no result")
}

/// The agreed time, in microseconds; whole milliseconds are all that SQLite says.
fn ask_time(link: &mut Link) -> Result<u64, PgError> {
    let question = Statement::new("select cast(unixepoch('now', 'subsec') * 1000 as integer)");
    let results = link.results(&Request::one(question))?;
    let value = results.first().and_then(|rows| rows.rows.first()?.first());
    match value {
        Some(Value::Integer(millis)) if *millis > 0 => Ok(*millis as u64 * 1_000),
        _ => Err(PgError::new(sqlstate::PROTOCOL, "the replicas do not tell the time")),
    }
}
