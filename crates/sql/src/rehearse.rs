//! Executes what is undone: rehearsals in the database itself, and steps of a transaction on its scratch state.

use crate::engine::{Engine, Fault, Near};
use crate::moment::act;
use crate::request::{Dated, Rehearsal};
use crate::response::{Failure, Response};
use crate::vfs::set_last_insert_rowid;
use bezant_core::digest::Digest;
use bezant_core::service::NotReadOnly;
use std::sync::atomic::Ordering;

impl Engine<'_> {
    /// Executes a batch and undoes it. Asked as a query, what depends on the moment or changes the schema is refused:
    /// what SQLite remembers of a schema may depend on more than the file.
    pub(crate) fn rehearse(
        &mut self,
        dated: &Dated,
        time: u64,
        seed: Digest,
    ) -> Result<Result<Response, NotReadOnly>, Near> {
        self.undone = true;
        self.begin(if dated.time == 0 { time } else { dated.time }, seed);
        self.disk.moment.dated.store(dated.time != 0, Ordering::Relaxed);
        self.control("begin");
        let result = self.run(&dated.batch);
        self.undo();
        self.far()?;
        Ok(self.answer(result))
    }

    /// Goes on with a transaction on its scratch state, or begins it there. What fails, or is not to last, is undone.
    /// What this database remembers of a schema is gone with the state, so that it may be changed.
    pub(crate) fn go_on(&mut self, rehearsal: &Rehearsal) -> Result<Result<Response, NotReadOnly>, Near> {
        let Rehearsal { held, lasts, dated: Dated { time, batch }, .. } = rehearsal;
        let (connection, moment) = (&self.database.connection, &self.disk.moment);
        self.undone = true;
        self.chain = Some(*held);
        if *held == Digest::ZERO {
            self.begin(*time, Digest::ZERO);
            self.control("begin");
        }
        moment.go_on(*time);
        let before = (moment.changes.load(Ordering::Relaxed), connection.last_insert_rowid());
        self.control("savepoint step");
        let result = self.run(batch);
        let far = self.far();
        let is_done = matches!(result, Ok(Response::Done(_))) && self.open == 0 && !moment.was_touched();
        if connection.is_autocommit() {
            // SQLite has ended the whole transaction.
            self.chain = None;
        } else if !(is_done && *lasts && far.is_ok()) {
            self.control("rollback to step");
            self.control("release step");
            moment.changes.store(before.0, Ordering::Relaxed);
            set_last_insert_rowid(connection, before.1);
            self.chain = Some(*held);
            if self.acts & act::WRITES_SCHEMA != 0 {
                self.forget_kept();
            }
        } else {
            self.control("release step");
        }
        far?;
        Ok(self.answer(result))
    }

    /// What is answered to those who asked for a query, or for what is undone.
    pub(crate) fn answer(&self, result: Result<Response, (u32, Fault)>) -> Result<Response, NotReadOnly> {
        if self.query && self.disk.moment.was_touched() {
            return Err(NotReadOnly);
        }
        match result {
            // Replicas rehearse in states that others have added rows to, or not yet.
            Ok(Response::Done(mut results)) if self.undone => {
                results.iter_mut().for_each(|rows| rows.last_insert_rowid = 0);
                Ok(Response::Done(results))
            }
            Ok(response) => Ok(response),
            Err((_, Fault::NotReadOnly)) => Err(NotReadOnly),
            Err((statement, Fault::Error(error))) => Ok(Response::Failed(Failure { statement, error })),
        }
    }
}
