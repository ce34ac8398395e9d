//! One connection's way to the database: calls, and who vouched for the last answer.

use crate::database::{Answer, CallFailure, Database};
use crate::error::{PgError, sqlstate};
use bezant_sql::{Description, Request, Response, Rows};
use std::sync::Arc;

/// See the [module](self).
pub(crate) struct Link {
    database: Arc<dyn Database>,
    last: Option<Provenance>,
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
        Self { database, last: None }
    }

    /// Where the last answer came from.
    pub(crate) const fn last(&self) -> Option<&Provenance> {
        self.last.as_ref()
    }

    /// Whether the last request had to be ordered.
    pub(crate) fn last_was_ordered(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.ordered)
    }

    fn call(&mut self, request: &Request) -> Result<Response, PgError> {
        let Answer { response, sequence, replicas, ordered } = self.database.call(request)?;
        self.last = Some(Provenance { sequence, replicas, ordered });
        Ok(response)
    }

    /// One result per statement.
    ///
    /// # Errors
    /// Those of the statements and of the way there; a check that does not hold is 40001.
    pub(crate) fn results(&mut self, request: &Request) -> Result<Vec<Rows>, PgError> {
        match self.call(request)? {
            Response::Done(results) => Ok(results),
            Response::Failed(failure) => Err(failure.into()),
            Response::Conflict(_) => Err(PgError::conflict()),
            Response::Described(_) | Response::Malformed => Err(confused()),
        }
    }

    /// What a statement takes and gives.
    ///
    /// # Errors
    /// Those of the statement and of the way there.
    pub(crate) fn describe(&mut self, sql: &str) -> Result<Description, PgError> {
        match self.call(&Request::Describe(sql.into()))? {
            Response::Described(description) => Ok(description),
            Response::Failed(failure) => Err(failure.into()),
            _ => Err(confused()),
        }
    }
}

fn confused() -> PgError {
    PgError::new(sqlstate::PROTOCOL, "the replicas agree on an answer to another question")
        .hint("does the cluster replicate SQL? `bezant status` names its service")
}

impl From<CallFailure> for PgError {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Refused(why) => Self::new(sqlstate::NO_CONNECTION, why),
            CallFailure::TooLarge(why) => {
                Self::new(sqlstate::LIMIT, why).hint("send less at once: fewer rows, or a shorter transaction")
            }
            CallFailure::Unknown(what) => {
                Self::new(sqlstate::UNKNOWN_OUTCOME, "it is not known whether the statement has taken effect")
                    .detail(what)
                    .hint("look at what it would have changed before you run it again")
            }
        }
    }
}
