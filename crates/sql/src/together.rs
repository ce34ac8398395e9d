//! The operations of a bundle, or of a run of requests, in as few transactions as they can share.
//!
//! A transaction costs more than a row: SQLite reads and writes page 1, keeps a copy of every page that it changes, and
//! hands over each of them. 64 inserts in a row change the same few pages.
//!
//! 1. The operations are executed one after the other, each with its own time, seed, limits and result, and nothing is
//!    committed in between.
//! 2. If all of them succeed, one commit makes them the state.
//! 3. If one does not, or does something that outlives a transaction, all are undone: an error may undo only its own
//!    request, and the schema and the members decide what comes after. Those before it are executed again, together,
//!    then it by itself, and then what follows it. So each is executed twice at most, and where they come near a bound
//!    (see below) once or twice more.
//! 4. Who may not ask, and what is no request, gets its answer and disturbs nobody.
//! 5. Where the schema has references that may stay unmet until a transaction ends, nobody tries: an unmet one is the
//!    fault of whoever left it. SQLite counts those of a transaction, and a row that meets an old one makes the count
//!    say less than there is.
//!
//! Which of the two happens shows in the file, which counts its transactions. So it must depend on the state and the
//! operations alone, at every replica. It does, but for what they cost, which depends on the past. For that the rule
//! of [`crate::meter`] holds: who comes near a bound tries again on a database that has just been opened, which is the
//! same everywhere. The operation that comes near one there is by itself, as one that fails. So together they cost no
//! more than half of what one operation may, in memory too.

use crate::engine::{Engine, Near, denied};
use crate::moment::act;
use crate::request::Request;
use crate::response::{Failure, Response};
use crate::service::Sql;
use bezant_core::service::{Agreed, Operation, Service, in_turn};
use bezant_core::wire::Wire;
use bytes::Bytes;

/// What outlives a transaction: [`Sql`] keeps something of the schema and of the members.
const OUTLASTS: u32 = act::WRITES_SCHEMA | act::WRITES_SYSTEM;

/// What comes of operations that are executed together.
enum Attempt {
    /// They are the state, as many as there was room for.
    Done,
    /// This one cannot be with others: it fails, or does what outlives a transaction.
    Fails(usize),
    /// With this one they come near a bound.
    Near(usize),
    /// Each has to be by itself: references may stay unmet, or the file has no room for what they wrote.
    Apart,
}

impl Sql {
    /// Executes operations in as few transactions as they can share. Which, and results, as of [`in_turn`].
    pub(crate) fn execute_together(&mut self, operations: &[Operation], results: &mut Vec<Bytes>) {
        let mut together = operations;
        while results.len() < operations.len() {
            let mut attempt = self.attempt_together(together, results);
            if matches!(attempt, Attempt::Near(_)) {
                self.reopen();
                attempt = self.attempt_together(together, results);
            }
            let alone = match attempt {
                Attempt::Done if together.len() == operations.len() => break,
                Attempt::Fails(at) | Attempt::Near(at) if at > results.len() => {
                    together = &operations[..at];
                    continue;
                }
                Attempt::Done | Attempt::Fails(_) | Attempt::Near(_) => results.len() + 1,
                Attempt::Apart => operations.len(),
            };
            self.execute_in_turn(&operations[..alone], results);
            if results.len() < alone {
                break;
            }
            together = operations;
        }
        self.forget_old_scratches();
    }

    fn execute_in_turn(&mut self, operations: &[Operation], results: &mut Vec<Bytes>) {
        in_turn(operations, results, |Operation { bytes, agreed }| Some(self.execute(bytes, agreed)));
    }

    /// Whether references may stay unmet until the end of a transaction, by what the schema says, or seems to.
    fn defers(&mut self) -> bool {
        if let Some(known) = self.defers {
            return known;
        }
        let sql = "select exists (select 1 from sqlite_schema where instr(lower(sql), 'deferred') > 0)";
        let asked = self.privileged(|connection| connection.query_row(sql, [], |row| row.get(0)));
        let defers = asked.expect("the schema can be read");
        self.defers = Some(defers);
        defers
    }

    /// Executes those of the operations that have no result yet in one transaction, or does nothing.
    fn attempt_together(&mut self, operations: &[Operation], results: &mut Vec<Bytes>) -> Attempt {
        if self.defers() {
            return Attempt::Apart;
        }
        let before = results.len();
        let mut known = self.known.take();
        let (mut near, mut acts) = (false, 0);
        self.engine(&mut known, false).control("begin");
        let done = in_turn(operations, results, |Operation { bytes, agreed }| {
            let answer = |response: Response| Some(response.to_bytes().into());
            let Ok(request) = Request::from_bytes(bytes.clone()) else { return answer(Response::Malformed) };
            let allowed = match (self.allowed(&agreed.asker), &request) {
                (Some(allowed), _) => allowed,
                (None, Request::Run(_) | Request::Settle(_)) => {
                    return answer(Response::Failed(Failure { statement: 0, error: denied() }));
                }
                (None, Request::Describe(_) | Request::Rehearse(_)) => return None,
            };
            let mut engine = Engine { allowed, ..self.engine(&mut known, false) };
            let response = engine.execute_among_others(&request, agreed);
            acts |= engine.acts;
            self.remember(engine.done());
            answer(response.map_err(|Near| near = true).ok()??)
        });
        let engine = self.engine(&mut known, false);
        let attempt = match done {
            None if near => Attempt::Near(results.len()),
            None => Attempt::Fails(results.len()),
            Some(()) if engine.commit(0).is_err() => Attempt::Apart,
            Some(()) => Attempt::Done,
        };
        if !matches!(attempt, Attempt::Done) {
            results.truncate(before);
        }
        engine.undo();
        *self.known.get_mut() = known;
        if acts & act::WRITES_SCHEMA != 0 {
            self.reopen();
        }
        attempt
    }
}

impl Engine<'_> {
    /// Executes a request in a transaction that others are in as well. `None`: it must be in one of its own.
    fn execute_among_others(&mut self, request: &Request, agreed: &Agreed) -> Result<Option<Response>, Near> {
        let (batch, time) = match request {
            Request::Run(batch) => (batch, agreed.time.0),
            Request::Settle(dated) => match dated.as_of(agreed.time.0) {
                Ok(time) => (&dated.batch, time),
                Err(_) => return Ok(None),
            },
            Request::Describe(_) | Request::Rehearse(_) => return Ok(None),
        };
        self.begin(time, agreed.seed.digest());
        let result = self.run(batch);
        self.far()?;
        let is_over = self.database.connection.is_autocommit() || self.acts & OUTLASTS != 0;
        match result {
            Ok(response @ Response::Done(_)) if !is_over => {
                (0..self.open).for_each(|_| self.control("release attempt"));
                Ok(Some(response))
            }
            _ => Ok(None),
        }
    }
}
