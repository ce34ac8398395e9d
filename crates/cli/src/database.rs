//! The replicated SQL database as the shell and the gateways reach it: requests in, responses that enough replicas
//! vouch for out.

use crate::interrupt::Interrupts;
use crate::snapshot::{ReadError, Snapshots};
use bezant_core::message::Refusal;
use bezant_core::wire::Wire;
use bezant_node::client::{CallError, Client};
use bezant_sql::{Request, Response};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How much a read is worth. Writes, and reads of time and randomness, are ordered at every level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Level {
    /// It sees everything that any client was told before
    #[default]
    Linearizable,
    /// The state at the last checkpoint, which replicas' signatures prove: it may be old, but never wrong
    Snapshot,
    /// The word of one replica: it may be old, or a lie
    Local,
}

/// A response, and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// What the service says; an error of SQL is such a response.
    pub(crate) response: Response,
    /// Whether enough replicas vouch for it; otherwise it is the word of one.
    pub(crate) verified: bool,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseError {
    /// It was not executed and never will be.
    Refused(String),
    /// The deadline passed, but it was a read: nothing can have changed.
    Unanswered(String),
    /// The deadline passed: it may or may not have been executed, or be executed yet. The text names the request.
    Unknown(String),
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) | Self::Unanswered(why) => out.write_str(why),
            Self::Unknown(what) => write!(out, "{what}. It may still take effect: read before you write again"),
        }
    }
}

impl std::error::Error for DatabaseError {}

/// A database that any number of threads may use at once.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    client: Client,
    deadline: Duration,
    snapshots: Arc<Snapshots>,
    interrupts: Arc<Interrupts>,
}

impl Database {
    /// Over a client; requests whose outcome is not known at the deadline count as unknown.
    pub(crate) const fn new(
        client: Client,
        deadline: Duration,
        snapshots: Arc<Snapshots>,
        interrupts: Arc<Interrupts>,
    ) -> Self {
        Self { client, deadline, snapshots, interrupts }
    }

    /// Carries out a request: atomically, and seen by everybody who asks later.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub(crate) fn call(&self, request: &Request) -> Result<Answer, DatabaseError> {
        self.call_at(request, Level::Linearizable)
    }

    /// Carries out a request. What seems to be a read is asked as a query first, at this level, and ordered only if
    /// the replicas say that it is none.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub(crate) fn call_at(&self, request: &Request, level: Level) -> Result<Answer, DatabaseError> {
        if self.interrupts.was_raised() {
            return Err(DatabaseError::Refused("interrupted before it was sent".into()));
        }
        if level == Level::Snapshot && request.seems_read_only() {
            match self.snapshots.query(request) {
                Ok(response) => return Ok(Answer { response, verified: true }),
                Err(ReadError::NotReadOnly) => {}
                Err(error) => return Err(DatabaseError::Unanswered(format!("no checkpoint can be read: {error}"))),
            }
        }
        let operation = bytes::Bytes::from(request.to_bytes());
        let wait = |call| self.interrupts.wait(call).ok_or_else(|| interrupted(request));
        let ordered = || wait(self.client.execute(operation.clone(), self.deadline));
        let result = match (request.seems_read_only(), level) {
            (false, _) => ordered(),
            (true, Level::Linearizable | Level::Snapshot) => wait(self.client.query(operation.clone(), self.deadline)),
            (true, Level::Local) => wait(self.client.query_local(operation.clone(), self.deadline)),
        };
        let (result, verified) = match result? {
            Err(CallError::Rejected(Refusal::NotReadOnly)) => (ordered()?, true),
            other => (other, level != Level::Local || !request.seems_read_only()),
        };
        let bytes = result.map_err(|error| match error {
            CallError::Unknown { replicas, .. } if request.is_read_only() => {
                let told: Vec<_> = replicas.iter().map(|(id, what)| format!("; replica {}: {what}", id.0)).collect();
                DatabaseError::Unanswered(format!("not enough equal answers in time{}", told.concat()))
            }
            error if error.may_have_been_executed() => DatabaseError::Unknown(error.to_string()),
            other => DatabaseError::Refused(other.to_string()),
        })?;
        match Response::from_bytes(bytes) {
            Ok(response) => Ok(Answer { response, verified }),
            Err(_) if !verified => {
                Err(DatabaseError::Unanswered("the replica that was asked gave no answer of a database".into()))
            }
            Err(_) => Err(DatabaseError::Refused(
                "the replicas agree on a result that is none of a database's: does the cluster run another version?"
                    .into(),
            )),
        }
    }
}

/// What it means that nobody waits for the answer any more.
fn interrupted(request: &Request) -> DatabaseError {
    match request.is_read_only() {
        true => DatabaseError::Unanswered("interrupted; it was a read, so nothing has changed".into()),
        false => DatabaseError::Unknown("outcome unknown: interrupted before there was an answer".into()),
    }
}
