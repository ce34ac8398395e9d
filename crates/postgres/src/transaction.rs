//! `BEGIN … COMMIT` over a database that knows only whole requests.
//!
//! Nothing is locked and nothing is held open. Each statement is *rehearsed*: the replicas execute all statements of
//! the transaction so far and then this one, answer, and undo it all. So every result is a true one, of one state, with
//! the transaction's own writes in it; and a statement that sees that an earlier result has changed since ends the
//! transaction with 40001. COMMIT has all of it executed for good if every result is still what the client was shown.
//! The outcome is as if the transactions had run one after the other.

use crate::error::{PgError, sqlstate};
use crate::link::Link;
use bezant_sql::{Batch, Check, Dated, Request, Rows, STATEMENTS_MAX, Statement, Value};

/// Savepoints of a transaction.
const SAVEPOINTS_MAX: usize = 1_024;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    /// Every statement, and what the client was shown of it.
    shown: Vec<Check>,
    /// Whether one of them may have written: from which place on.
    first_write: Option<usize>,
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
    /// Its own, or that something shown before is no longer so. The transaction has failed then.
    pub(crate) fn execute(&mut self, link: &mut Link, statement: Statement, reads: bool) -> Result<Rows, PgError> {
        let result = self.rehearse(link, &statement, reads);
        match &result {
            Ok(rows) => {
                if !reads {
                    self.first_write.get_or_insert(self.shown.len());
                }
                self.shown.push(Check { statement, digest: rows.digest() });
            }
            Err(_) => self.failed = true,
        }
        result
    }

    fn rehearse(&mut self, link: &mut Link, statement: &Statement, reads: bool) -> Result<Rows, PgError> {
        if self.read_only && !reads {
            return Err(PgError::new(sqlstate::READ_ONLY, "cannot write in a read-only transaction"));
        }
        if self.shown.len() >= STATEMENTS_MAX {
            let text = format!("a transaction has at most {STATEMENTS_MAX} statements");
            return Err(
                PgError::new(sqlstate::LIMIT, text).hint("commit from time to time, or write more rows at once")
            );
        }
        let rows = self.look(link, statement, reads)?;
        if !link.last_was_ordered() || rows.columns.is_empty() {
            return Ok(rows);
        }
        // It asks for time or randomness. From here on the time is that of this moment.
        if self.time == 0 {
            self.time = ask_time(link)?;
        }
        let rows = self.look(link, statement, reads)?;
        // Randomness is known when the transaction takes effect, and not before.
        if link.last_was_ordered() && self.look(link, statement, reads)?.digest() != rows.digest() {
            return Err(PgError::unsupported("the result is random, and drawn when the transaction is committed")
                .hint("leave it out of what the statement returns, or run the statement outside of the transaction"));
        }
        Ok(rows)
    }

    /// What a statement would give at this point, without being part of the transaction.
    ///
    /// # Errors
    /// Its own, or that something shown before is no longer so.
    pub(crate) fn look(&self, link: &mut Link, statement: &Statement, reads: bool) -> Result<Rows, PgError> {
        let request = if self.shown.is_empty() && reads && self.time == 0 {
            Request::one(statement.clone())
        } else {
            let batch = Batch { checks: self.shown.clone(), statements: vec![statement.clone()] };
            Request::Rehearse(Dated { time: self.time, batch })
        };
        let mut results = link.results(&request)?;
        results.pop().ok_or_else(|| PgError::new(sqlstate::PROTOCOL, "the replicas gave no result"))
    }

    /// Ends the transaction for good.
    ///
    /// # Errors
    /// Nothing has taken effect; or nobody knows, with SQLSTATE 08007.
    pub(crate) fn commit(self, link: &mut Link) -> Result<(), PgError> {
        // Every rehearsal looked at all results before its own: reads alone are of one state already.
        if self.first_write.is_none() {
            return Ok(());
        }
        let batch = Batch { checks: self.shown, statements: Vec::new() };
        let request = Request::Settle(Dated { time: self.time, batch });
        link.results(&request).map(drop)
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

    /// Goes back to a place; the transaction goes on from there even if it has failed since.
    ///
    /// # Errors
    /// If there is no such place.
    pub(crate) fn go_back(&mut self, name: &str) -> Result<(), PgError> {
        let place = self.find(name)?;
        let statements = self.savepoints[place].1;
        self.savepoints.truncate(place + 1);
        self.shown.truncate(statements);
        self.first_write = self.first_write.filter(|first| *first < statements);
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
