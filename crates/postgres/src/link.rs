//! One connection's way to the database: calls, and who vouched for the last answer.

use crate::cancel::Cancel;
use crate::database::{Answer, CallFailure, Database};
use crate::error::{PgError, sqlstate};
use crate::tokens::{Kind, Token, tokens};
use bezant_core::digest::{Digest, Domain};
use bezant_sql::{
    Batch, Dated, Description, Failure, PARAMETERS_MAX, Rehearsal, Request, Response, Rows, SQL_BYTES_MAX,
    STATEMENTS_MAX, SqlError, Statement, VALUE_BYTES_MAX, Value,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Statements of which is remembered whether they read, and so many that ask for the time.
const KNOWN_MAX: usize = 1_024;

/// How long a clock is taken to go like that of the replicas.
const CLOCK_MAX: Duration = Duration::from_secs(60);

/// See the [module](self).
pub(crate) struct Link {
    database: Arc<dyn Database>,
    cancel: Arc<Cancel>,
    last: Option<Provenance>,
    /// Whether a statement reads and no more, by its text.
    known: BTreeMap<Digest, bool>,
    /// Statements that ask for the time and do not show it, whatever values are written in them.
    asks_time: BTreeSet<Digest>,
    /// An agreed time, and when it was asked for.
    clock: Option<(u64, Instant)>,
    /// Names the last transaction.
    name: Digest,
    /// The version of the schema that requests are for; 0: of any.
    pub(crate) schema: u32,
    /// Whether the last request was for another one than there is.
    was_stale: bool,
}

/// Where an answer comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Provenance {
    /// The position in the order of requests; 0 if not known.
    pub(crate) sequence: u64,
    /// Who vouched.
    pub(crate) replicas: Vec<u8>,
    ordered: bool,
}

impl Provenance {
    /// The replicas' numbers, as a list.
    pub(crate) fn replicas(&self) -> String {
        self.replicas.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl Link {
    /// A connection that has asked nothing yet. The number is drawn at random.
    pub(crate) const fn new(database: Arc<dyn Database>, cancel: Arc<Cancel>, drawn: [u8; 32]) -> Self {
        Self {
            database,
            cancel,
            last: None,
            known: BTreeMap::new(),
            asks_time: BTreeSet::new(),
            clock: None,
            name: Digest(drawn),
            schema: 0,
            was_stale: false,
        }
    }

    /// The name of the last transaction, and one that none has had.
    pub(crate) fn new_name(&mut self) -> [Digest; 2] {
        let new = Digest::of(Domain::Service, &self.name.0);
        [std::mem::replace(&mut self.name, new), new]
    }

    /// Whether every request is ordered, reads as well.
    pub(crate) fn orders_reads(&self) -> bool {
        self.database.orders_reads()
    }

    /// Refuses a request that is too long for the cluster.
    ///
    /// # Errors
    /// If it is.
    pub(crate) fn admit_bytes(&self, bytes: usize) -> Result<(), PgError> {
        bound("bytes of a request", bytes, self.database.request_bytes_max())
    }

    /// The agreed time, in microseconds; whole milliseconds are all that SQLite says.
    ///
    /// # Errors
    /// Those of the way there.
    pub(crate) fn ask_time(&mut self) -> Result<u64, PgError> {
        let question = Statement::new("select cast(unixepoch('now', 'subsec') * 1000 as integer)");
        let results = self.results(&Request::one(question))?;
        let time = match results.first().and_then(|rows| rows.rows.first()?.first()) {
            Some(Value::Integer(millis)) if *millis > 0 => *millis as u64 * 1_000,
            _ => return Err(PgError::new(sqlstate::PROTOCOL, "the replicas do not tell the time")),
        };
        self.clock = Some((time, Instant::now()));
        Ok(time)
    }

    /// About what the agreed time is.
    ///
    /// # Errors
    /// Those of the way there.
    pub(crate) fn guess_time(&mut self) -> Result<u64, PgError> {
        match self.clock.map(|(time, at)| (time, at.elapsed())) {
            Some((time, age)) if age < CLOCK_MAX => Ok(time + age.as_micros() as u64),
            _ => self.ask_time(),
        }
    }

    /// A statement asks for the time, and does not show it.
    pub(crate) fn asks_time(&mut self, sql: &str) {
        if self.asks_time.len() >= KNOWN_MAX {
            self.asks_time.clear();
        }
        self.asks_time.insert(shape_of(sql));
    }

    /// Whether a statement did so before.
    pub(crate) fn is_asking_time(&self, sql: &str) -> bool {
        !self.asks_time.is_empty() && self.asks_time.contains(&shape_of(sql))
    }

    /// Where the last answer came from.
    pub(crate) const fn last(&self) -> Option<&Provenance> {
        self.last.as_ref()
    }

    /// Forgets whether the last request was refused because the schema is another one.
    pub(crate) fn begin(&mut self) {
        self.was_stale = false;
    }

    /// Whether the last request was refused because the schema is another one.
    pub(crate) const fn was_stale(&self) -> bool {
        self.was_stale
    }

    /// Whether the last request had to be ordered.
    pub(crate) fn last_was_ordered(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.ordered)
    }

    /// What the replicas would not even read is not sent, nor what nobody waits for any more.
    fn admit(&self, request: &Request) -> Result<(), PgError> {
        if self.cancel.take() {
            return Err(CallFailure::Cancelled.into());
        }
        check_bounds(request)
    }

    fn call(&mut self, request: &Request) -> Result<Response, PgError> {
        self.was_stale = false;
        self.admit(request)?;
        let answer = self.database.call(request, &self.cancel)?;
        Ok(self.accept(answer))
    }

    /// Remembers where an answer comes from.
    fn accept(&mut self, answer: Answer) -> Response {
        let Answer { response, sequence, replicas, ordered } = answer;
        self.last = Some(Provenance { sequence, replicas, ordered });
        self.was_stale = response == Response::Stale;
        response
    }

    /// One result per statement, or which one failed. `None`: the replicas do not hold what the request goes on from.
    ///
    /// # Errors
    /// Those of the way there; a check that does not hold is 40001.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Option<Result<Vec<Rows>, Failure>>, PgError> {
        self.call(request).and_then(outcome)
    }

    /// The same of those who hold what the request goes on from, if it does.
    ///
    /// # Errors
    /// As of [`Self::ask`].
    pub(crate) fn ask_holders(
        &mut self,
        request: &Request,
        holders: &Provenance,
    ) -> Result<Option<Result<Vec<Rows>, Failure>>, PgError> {
        if !request.goes_on() {
            return self.ask(request);
        }
        self.was_stale = false;
        self.admit(request)?;
        let answer = self.database.go_on(request, &holders.replicas, &self.cancel)?;
        // Those who go on by themselves tell of the state in which they began.
        let sequence = if answer.sequence == 0 { holders.sequence } else { answer.sequence };
        outcome(self.accept(Answer { sequence, ..answer }))
    }

    /// One result per statement.
    ///
    /// # Errors
    /// Those of the statements and of the way there; a check that does not hold is 40001.
    pub(crate) fn results(&mut self, request: &Request) -> Result<Vec<Rows>, PgError> {
        Ok(self.ask(request)?.ok_or_else(confused)??)
    }

    /// What a statement takes and gives, or what is wrong with it.
    ///
    /// # Errors
    /// Those of the way there.
    pub(crate) fn describe(&mut self, sql: &str) -> Result<Result<Description, SqlError>, PgError> {
        match self.call(&Request::Describe(sql.into()))? {
            Response::Described(description) => {
                if self.known.len() >= KNOWN_MAX {
                    self.known.clear();
                }
                self.known.insert(name_of(sql), only_reads(&description));
                Ok(Ok(description))
            }
            Response::Failed(failure) => Ok(Err(failure.error)),
            _ => Err(confused()),
        }
    }

    /// Whether a statement reads and no more: what SQLite says at the replicas, and not what it looks like.
    ///
    /// # Errors
    /// Those of the way there.
    pub(crate) fn reads(&mut self, sql: &str) -> Result<Result<bool, SqlError>, PgError> {
        match self.known.get(&name_of(sql)) {
            Some(reads) => Ok(Ok(*reads)),
            None => Ok(self.describe(sql)?.as_ref().map(only_reads).map_err(Clone::clone)),
        }
    }
}

/// What a response to statements says.
fn outcome(response: Response) -> Result<Option<Result<Vec<Rows>, Failure>>, PgError> {
    match response {
        Response::Done(results) => Ok(Some(Ok(results))),
        Response::Failed(failure) => Ok(Some(Err(failure))),
        Response::NotHeld => Ok(None),
        Response::Conflict(_) | Response::Stale => Err(PgError::conflict()),
        Response::Described(_) | Response::Malformed => Err(confused()),
    }
}

/// A statement without columns may do nothing today and something tomorrow, as `CREATE … IF NOT EXISTS`; of all others
/// the text alone decides.
fn only_reads(description: &Description) -> bool {
    description.read_only && !description.columns.is_empty()
}

fn name_of(sql: &str) -> Digest {
    Digest::of(Domain::Service, sql.as_bytes())
}

/// What a statement is without the values that are written in it.
fn shape_of(sql: &str) -> Digest {
    let is_value = |token: &Token<'_>| matches!(token.kind, Kind::Text | Kind::Dollar | Kind::Number);
    let shape: String = tokens(sql).iter().map(|token| if is_value(token) { "?" } else { token.text }).collect();
    name_of(&shape)
}

/// Refuses what the replicas would not even read. What a cluster takes in bytes its client library knows.
fn check_bounds(request: &Request) -> Result<(), PgError> {
    let batch = match request {
        Request::Describe(sql) => return bound("bytes of a statement", sql.len(), SQL_BYTES_MAX),
        Request::Run(batch)
        | Request::Rehearse(Rehearsal { dated: Dated { batch, .. }, .. })
        | Request::Settle(Dated { batch, .. }) => batch,
    };
    let Batch { checks, statements, .. } = batch;
    bound("statements at once", checks.len().max(statements.len()), STATEMENTS_MAX)?;
    for Statement { sql, parameters } in statements {
        bound("bytes of a statement", sql.len(), SQL_BYTES_MAX)?;
        bound("parameters", parameters.len(), PARAMETERS_MAX)?;
        for value in parameters {
            let bytes = match value {
                Value::Text(text) => text.len(),
                Value::Blob(bytes) => bytes.len(),
                Value::Null | Value::Integer(_) | Value::Real(_) => 0,
            };
            bound("bytes of a value", bytes, VALUE_BYTES_MAX)?;
        }
    }
    Ok(())
}

fn bound(of: &str, is: usize, max: usize) -> Result<(), PgError> {
    if is <= max {
        return Ok(());
    }
    Err(PgError::new(sqlstate::LIMIT, format!("{is} {of}, of at most {max}")).hint(SEND_LESS))
}

/// What to do about [`CallFailure::TooLarge`] and its like.
const SEND_LESS: &str = "send less at once: fewer rows, or a shorter transaction";

fn confused() -> PgError {
    PgError::new(sqlstate::PROTOCOL, "the replicas agree on an answer to another question")
        .hint("does the cluster replicate SQL? `bezant status` names its service")
}

impl From<CallFailure> for PgError {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Refused(why) => Self::new(sqlstate::NO_CONNECTION, why),
            CallFailure::Cancelled => Self::new(sqlstate::CANCELED, "canceling statement due to user request"),
            CallFailure::TooLarge(why) => Self::new(sqlstate::LIMIT, why).hint(SEND_LESS),
            CallFailure::ReadOnly(why) => Self::new(sqlstate::READ_ONLY, why),
            CallFailure::Unknown(what) => {
                Self::new(sqlstate::UNKNOWN_OUTCOME, "it is not known whether the statement has taken effect")
                    .detail(what)
                    .hint("look at what it would have changed before you run it again")
            }
        }
    }
}
