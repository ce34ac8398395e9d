//! One connection's way to the database: calls, and who vouched for the last answer.

use crate::database::{Answer, CallFailure, Database};
use crate::error::{PgError, sqlstate};
use bezant_core::digest::{Digest, Domain};
use bezant_sql::{
    Batch, Dated, Description, Failure, PARAMETERS_MAX, Request, Response, Rows, SQL_BYTES_MAX, STATEMENTS_MAX,
    SqlError, Statement, VALUE_BYTES_MAX, Value,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Statements of which is remembered whether they read.
const KNOWN_MAX: usize = 1_024;

/// See the [module](self).
pub(crate) struct Link {
    database: Arc<dyn Database>,
    last: Option<Provenance>,
    /// Whether a statement reads and no more, by its text.
    known: BTreeMap<Digest, bool>,
    /// The version of the schema that requests are for; 0: of any.
    pub(crate) schema: u32,
    /// Whether the last request was for another one than there is.
    was_stale: bool,
}

/// Where an answer comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// A connection that has asked nothing yet.
    pub(crate) const fn new(database: Arc<dyn Database>) -> Self {
        Self { database, last: None, known: BTreeMap::new(), schema: 0, was_stale: false }
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

    fn call(&mut self, request: &Request) -> Result<Response, PgError> {
        self.was_stale = false;
        check_bounds(request)?;
        let Answer { response, sequence, replicas, ordered } = self.database.call(request)?;
        self.last = Some(Provenance { sequence, replicas, ordered });
        self.was_stale = response == Response::Stale;
        Ok(response)
    }

    /// One result per statement, or which one failed.
    ///
    /// # Errors
    /// Those of the way there; a check that does not hold is 40001.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Result<Vec<Rows>, Failure>, PgError> {
        match self.call(request)? {
            Response::Done(results) => Ok(Ok(results)),
            Response::Failed(failure) => Ok(Err(failure)),
            Response::Conflict(_) | Response::Stale => Err(PgError::conflict()),
            Response::Described(_) | Response::Malformed => Err(confused()),
        }
    }

    /// One result per statement.
    ///
    /// # Errors
    /// Those of the statements and of the way there; a check that does not hold is 40001.
    pub(crate) fn results(&mut self, request: &Request) -> Result<Vec<Rows>, PgError> {
        Ok(self.ask(request)??)
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

/// A statement without columns may do nothing today and something tomorrow, as `CREATE … IF NOT EXISTS`; of all others
/// the text alone decides.
fn only_reads(description: &Description) -> bool {
    description.read_only && !description.columns.is_empty()
}

fn name_of(sql: &str) -> Digest {
    Digest::of(Domain::Service, sql.as_bytes())
}

/// Refuses what the replicas would not even read. What a cluster takes in bytes its client library knows.
fn check_bounds(request: &Request) -> Result<(), PgError> {
    let batch = match request {
        Request::Describe(sql) => return bound("bytes of a statement", sql.len(), SQL_BYTES_MAX),
        Request::Run(batch) | Request::Rehearse(Dated { batch, .. }) | Request::Settle(Dated { batch, .. }) => batch,
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
            CallFailure::TooLarge(why) => Self::new(sqlstate::LIMIT, why).hint(SEND_LESS),
            CallFailure::Unknown(what) => {
                Self::new(sqlstate::UNKNOWN_OUTCOME, "it is not known whether the statement has taken effect")
                    .detail(what)
                    .hint("look at what it would have changed before you run it again")
            }
        }
    }
}
