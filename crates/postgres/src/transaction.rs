//! `BEGIN … COMMIT` over a database that knows only whole requests.
//!
//! Nothing is locked. Each statement is *rehearsed*: the replicas execute it after all others of the transaction,
//! answer, and have it undone. So every result is a true one, with the transaction's own writes in it. COMMIT has all
//! of it executed for good, as one request, if every result is still what the client was shown. The outcome is as if
//! the transactions had run one after the other: those that write in the order of their commits.
//!
//! Replicas keep what a rehearsal came to, so that the next one need not bring what it [holds](Transaction::held):
//! * while it runs a transaction sees a snapshot: the database as it was at its beginning, and its own writes. What
//!   gives it a beginning is asked of all replicas, and 2f + 1 of them vouch for the answer at one position. From there
//!   on f + 1 are enough, of those who have vouched for all so far, and always the same ones: the others do not hold
//!   what came after. One of the f + 1 is correct. It began at that position or, if it was asked twice, later: it knew
//!   of whatever was acknowledged before the transaction began. And it answers only if its own scratch state gave all
//!   results so far. So a transaction that only reads is of one state, which is not an old one, and has nothing to
//!   validate. Any f + 1 would not do: the correct one might have been late, and have begun in an old state;
//! * that somebody else has changed what was shown is noticed at COMMIT, or as soon as a replica has to begin again:
//!   when they do not hold it, or give different answers, or none. Then all of it comes as checks, and is rehearsed in
//!   the present state. A replica that holds something else than the others can bring that about, and no more;
//! * whatever is kept is only looked at on the way. What COMMIT does follows from the request alone.
//!
//! Nothing that the client was shown is ever forgotten: what `ROLLBACK TO` takes back is an attempt that must end as it
//! did, with the same rows and errors, wherever the transaction is rehearsed from its beginning, or executed.
//!
//! Time is that of the commit, unless a statement shows it: then the transaction has its own from there on. What asks
//! for it without showing it, as `CURRENT_TIMESTAMP` in an INSERT, is rehearsed with a guess.

mod savepoints;

use crate::error::{PgError, sqlstate};
use crate::link::{Link, Provenance};
use bezant_core::digest::Digest;
use bezant_sql::{
    Batch, Check, CheckBytes, Dated, ErrorKind, Failure, Rehearsal, Request, Rows, STATEMENTS_MAX, SqlError, Statement,
};
use std::collections::VecDeque;

/// Statements of which it is asked whether one of them writes. Of more it is taken for granted.
const ASKED_MAX: usize = 64;
/// Statements that are rehearsed together, ahead of the client's asking for them.
pub(crate) const AHEAD_MAX: usize = 1_024;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    /// Every statement, and what the client was shown of it. What was taken back stands between the marks of an
    /// attempt.
    shown: Vec<Check>,
    /// Bytes of them.
    bytes: CheckBytes,
    /// The name of the one before it on this connection, and its own: what replicas know it by.
    names: Option<[Digest; 2]>,
    /// What replicas hold of it: so many of `shown`, and then what is `ahead`. Zero: nothing.
    held: Digest,
    covered: usize,
    /// Where that began, and those who have vouched for all of it since.
    holders: Provenance,
    /// Statements that were rehearsed already and that the client has not asked for, with what they gave.
    ahead: VecDeque<(Statement, Rows)>,
    /// Whether the client has learned something of the schema that is none of these results.
    told: bool,
    /// Whether one of them has changed rows.
    changed: bool,
    /// Whether an answer had to be ordered: it may depend on a random number.
    ordered: bool,
    /// When it began, as far as its statements can tell: the agreed time when the first of them showed it, in
    /// microseconds since 1970; before that 0.
    time: u64,
    /// What is taken for the time before that, where a statement asks for it.
    guess: u64,
    /// Names, and how many statements came before.
    savepoints: Vec<(String, usize)>,
    read_only: bool,
    failed: bool,
}

/// How long what was rehearsed lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lasts {
    /// The transaction goes on from there.
    Yes,
    /// It goes on from where it was.
    No,
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
    pub(crate) fn pin_schema(&mut self) {
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
        let shown = match self.ahead.pop_front() {
            Some((known, rows)) if known == statement => Ok(rows),
            _ => self.rehearse(link, &statement)?,
        };
        self.note(statement, &shown);
        let rows = shown?;
        self.changed |= rows.changes > 0;
        Ok(rows)
    }

    /// Whether it is worth telling what comes next.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.ahead.is_empty() && !self.read_only && !self.failed
    }

    /// Rehearses the statements that the client has sent, all together: the first of them that fails is asked for
    /// again, when its turn comes, and those after it never are.
    ///
    /// # Errors
    /// That something shown before is no longer so, or those of the way there.
    pub(crate) fn look_ahead(&mut self, link: &mut Link, mut statements: Vec<Statement>) -> Result<(), PgError> {
        let mut bytes = self.bytes.of_request();
        let has_room = |statement: &&Statement| {
            bytes += self.bytes.with(statement) - self.bytes.of_request();
            link.admit_bytes(bytes).is_ok()
        };
        let room = statements.iter().take(STATEMENTS_MAX - self.shown.len()).take_while(has_room).count();
        statements.truncate(room.min(AHEAD_MAX));
        self.guess_time(link, &statements)?;
        while statements.len() > 1 {
            match self.ask(link, statements.clone(), Lasts::Yes)? {
                Ok(results) => {
                    let shows = results.iter().any(|rows| !rows.columns.is_empty());
                    if shows && (link.last_was_ordered() || self.guess != 0) {
                        // Each of them must be looked at for what it shows.
                        self.forget_held();
                    } else {
                        self.ordered |= link.last_was_ordered();
                        self.ahead = statements.into_iter().zip(results).collect();
                    }
                    return Ok(());
                }
                Err((failed, _)) => statements.truncate(failed),
            }
        }
        Ok(())
    }

    /// What a statement would give at this point, without being part of the transaction.
    ///
    /// # Errors
    /// Its own, which the client has seen then; or that something shown before is no longer so.
    pub(crate) fn peek(&mut self, link: &mut Link, statement: Statement) -> Result<Rows, PgError> {
        let shown = self.ask_one(link, &statement, Lasts::No)?;
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
        let mut check = Check { statement, digest };
        self.bytes.add(&mut check);
        self.shown.push(check);
    }

    fn rehearse(&mut self, link: &mut Link, statement: &Statement) -> Result<Result<Rows, SqlError>, PgError> {
        self.admit(link, statement)?;
        if self.read_only {
            match link.reads(&statement.sql)? {
                Ok(true) => {}
                Ok(false) => return Err(PgError::read_only()),
                // The same comes again, of one state with all that was shown.
                Err(_) => {
                    return self
                        .ask_one(link, statement, Lasts::No)?
                        .map_or_else(|error| Ok(Err(error)), |_| Err(PgError::conflict()));
                }
            }
        }
        self.guess_time(link, std::slice::from_ref(statement))?;
        if self.time == 0 {
            let shown = self.ask_one(link, statement, Lasts::Yes)?;
            let is_ordered = link.last_was_ordered();
            self.ordered |= is_ordered;
            let shows = shown.as_ref().is_ok_and(|rows| !rows.columns.is_empty());
            if is_ordered && !shows && self.guess == 0 {
                link.asks_time(&statement.sql);
            }
            if !shows || !is_ordered && self.guess == 0 {
                return Ok(shown);
            }
            // It may show time or randomness, or this cluster orders every read. From here on the time is that of this
            // moment.
            self.forget_held();
            self.time = link.ask_time()?;
        }
        if !link.orders_reads() {
            let shown = self.ask_one(link, statement, Lasts::Yes)?;
            if !link.last_was_ordered() {
                return Ok(shown);
            }
            self.ordered = true;
        }
        self.ask_twice(link, statement)
    }

    /// Whether there is room for one more statement.
    fn admit(&self, link: &Link, statement: &Statement) -> Result<(), PgError> {
        if self.shown.len() >= STATEMENTS_MAX {
            let text = format!("a transaction has at most {STATEMENTS_MAX} statements");
            return Err(
                PgError::new(sqlstate::LIMIT, text).hint("commit from time to time, or write more rows at once")
            );
        }
        link.admit_bytes(self.bytes.with(statement))
    }

    /// If a statement asked for the time when it was executed before, without showing it, it is rehearsed at once as of
    /// a time that is about right. COMMIT gives it the right one, and looks whether that makes a difference.
    fn guess_time(&mut self, link: &mut Link, statements: &[Statement]) -> Result<(), PgError> {
        if self.time == 0 && self.guess == 0 && statements.iter().any(|one| link.is_asking_time(&one.sql)) {
            self.guess = link.guess_time()?;
        }
        Ok(())
    }

    /// Rehearses a statement two times in one state: what differs then is random, and known when the transaction takes
    /// effect and not before.
    fn ask_twice(&mut self, link: &mut Link, statement: &Statement) -> Result<Result<Rows, SqlError>, PgError> {
        let twice = vec![Statement::attempt(), statement.clone(), Statement::undo(), statement.clone()];
        match self.ask(link, twice, Lasts::No)?.as_deref_mut() {
            Ok([_, first, _, second]) if first.columns.is_empty() || first.digest() == second.digest() => {
                Ok(Ok(std::mem::take(first)))
            }
            Ok([_, _, _, _]) => Err(random()),
            Ok(_) => Err(PgError::no_result()),
            // Once may be within the bounds. COMMIT finds out what changes.
            Err((_, error)) if matches!(error.kind, ErrorKind::TooLarge | ErrorKind::TooSlow) => {
                self.ask_one(link, statement, Lasts::Yes)
            }
            Err((_, error)) => Ok(Err(error.clone())),
        }
    }

    fn ask_one(
        &mut self,
        link: &mut Link,
        statement: &Statement,
        lasts: Lasts,
    ) -> Result<Result<Rows, SqlError>, PgError> {
        match self.ask(link, vec![statement.clone()], lasts)? {
            Ok(mut results) => results.pop().map(Ok).ok_or_else(PgError::no_result),
            Err((_, error)) => Ok(Err(error)),
        }
    }

    /// Rehearses statements: their results, or which of them failed. The outer error is that of the way there, or that
    /// something shown before is no longer so.
    fn ask(
        &mut self,
        link: &mut Link,
        statements: Vec<Statement>,
        lasts: Lasts,
    ) -> Result<Result<Vec<Rows>, (usize, SqlError)>, PgError> {
        let [after, transaction] = *self.names.get_or_insert_with(|| link.new_name());
        // The client has not asked for what it was expected to ask for.
        if self.covered > self.shown.len() {
            self.forget_held();
        }
        let (checks, answered) = loop {
            let checks = &self.shown[self.covered..];
            // Who goes on from what it holds has looked at the schema.
            let schema = if self.held == Digest::ZERO { link.schema } else { 0 };
            let batch = Batch { checks: checks.to_vec(), statements: statements.clone(), schema };
            let time = if self.time == 0 { self.guess } else { self.time };
            let dated = Dated { time, batch };
            let (held, lasts) = (self.held, lasts == Lasts::Yes);
            let request = Request::Rehearse(Rehearsal { transaction, after, held, lasts, dated });
            match self.validate(link, &request)? {
                Some(answered) => break (checks.len(), answered),
                None if self.held == Digest::ZERO => return Err(PgError::no_result()),
                None => self.forget_held(),
            }
        };
        match answered {
            Err(failure) if (failure.statement as usize) < checks && is_about_rows(&failure.error) => {
                Err(PgError::conflict())
            }
            Err(failure) => Ok(Err(((failure.statement as usize).saturating_sub(checks), failure.error))),
            Ok(results) if lasts == Lasts::No => Ok(Ok(results)),
            Ok(results) => {
                self.hold(link, &statements, &results);
                Ok(Ok(results))
            }
        }
    }

    /// The replicas have executed all that was shown, and these statements. What was ordered they have not kept.
    fn hold(&mut self, link: &Link, statements: &[Statement], results: &[Rows]) {
        if link.last_was_ordered() {
            return self.forget_held();
        }
        let last = link.last().cloned().unwrap_or_default();
        if self.held == Digest::ZERO {
            self.holders = last;
        } else {
            self.holders.replicas.retain(|id| last.replicas.contains(id));
        }
        let shown = self.shown[self.covered..].iter().map(|check| (&check.statement, check.digest));
        let new = statements.iter().zip(results.iter().map(Rows::digest));
        let chain = |held, (statement, digest): (&Statement, Digest)| Rehearsal::chain(held, statement, digest);
        self.held = shown.chain(new).fold(self.held, chain);
        self.covered = self.shown.len() + statements.len();
    }

    /// The next rehearsal is one from the beginning.
    fn forget_held(&mut self) {
        (self.held, self.covered) = (Digest::ZERO, 0);
        self.ahead.clear();
    }

    /// Asks with what was shown as checks. `None`: the replicas do not hold what came before.
    fn validate(&self, link: &mut Link, request: &Request) -> Result<Option<Result<Vec<Rows>, Failure>>, PgError> {
        let answer = link.ask_holders(request, &self.holders);
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
        let request = Request::Rehearse(Rehearsal::alone(Dated { time: self.time, batch }));
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
        // All results are of one state already.
        if !self.writes(link)? {
            return Ok(());
        }
        let batch = Batch { checks: self.shown.clone(), schema: link.schema, ..Batch::default() };
        match self.validate(link, &Request::Settle(Dated { time: self.time, batch }))?.ok_or_else(PgError::no_result)? {
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
