//! The operations of a bundle in one transaction, if each of them does what most do.
//!
//! A transaction costs more than a row: SQLite reads and writes page 1, keeps a copy of every page that it changes, and
//! hands over each of them. 64 inserts in a row change the same few pages.
//!
//! 1. The operations are executed one after the other, each with its own time, seed, limits and result, and nothing is
//!    committed in between.
//! 2. If all of them succeed, one commit makes them the state.
//! 3. If one does not, or does something that outlives a transaction, all are undone and are executed one by one, as if
//!    nobody had tried: an error may undo only its own request, and the schema and the members decide what comes after.
//! 4. Where the schema has references that may stay unmet until a transaction ends, nobody tries: an unmet one is the
//!    fault of whoever left it. SQLite counts those of a transaction, and a row that meets an old one makes the count
//!    say less than there is.
//!
//! Which of the two happens shows in the file, which counts its transactions. So it must depend on the state and the
//! operations alone, at every replica. It does, but for what they cost, which depends on the past. For that the rule
//! of [`crate::meter`] holds: who comes near a bound tries again on a database that has just been opened, which is the
//! same everywhere; who comes near one there, executes one by one. So together they cost no more than half of what
//! one operation may, in memory too.

use crate::engine::{Engine, Near};
use crate::moment::act;
use crate::request::Request;
use crate::response::Response;
use crate::service::Sql;
use bezant_core::service::{Agreed, in_turn};
use bezant_core::wire::Wire;
use bytes::Bytes;

/// What outlives a transaction: [`Sql`] keeps something of the schema and of the members.
const OUTLASTS: u32 = act::WRITES_SCHEMA | act::WRITES_SYSTEM;

impl Sql {
    /// Executes operations in one transaction. `None`: nothing was done, and they are to be executed one by one.
    pub(crate) fn execute_together(&mut self, operations: &[Bytes], agreed: &Agreed) -> Option<Vec<Bytes>> {
        if self.defers() {
            return None;
        }
        let allowed = self.allowed(&agreed.asker)?;
        let attempt = self.attempt_together(allowed, operations, agreed).or_else(|Near| {
            self.reopen();
            self.attempt_together(allowed, operations, agreed)
        });
        attempt.unwrap_or(None)
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

    fn attempt_together(
        &mut self,
        allowed: u32,
        operations: &[Bytes],
        agreed: &Agreed,
    ) -> Result<Option<Vec<Bytes>>, Near> {
        let mut known = self.known.take();
        let (mut near, mut acts) = (Ok(()), 0);
        self.engine(&mut known, false).control("begin");
        let results = in_turn(operations, agreed, |operation, agreed| {
            let request = Request::from_bytes(operation.clone()).ok()?;
            let mut engine = Engine { allowed, ..self.engine(&mut known, false) };
            let response = engine.execute_among_others(&request, agreed);
            acts |= engine.acts;
            self.remember(engine.done());
            let response = response.map_err(|it| near = Err(it)).ok()??;
            Some(response.to_bytes().into())
        });
        let engine = self.engine(&mut known, false);
        let results = results.filter(|_| engine.commit(0).is_ok());
        engine.undo();
        *self.known.get_mut() = known;
        if acts & act::WRITES_SCHEMA != 0 {
            self.reopen();
        }
        near.map(|()| results)
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
