//! Savepoints: places of a transaction to which it goes back. See the [module](super).

use super::{Transaction, depths, mark};
use crate::error::{PgError, sqlstate};
use bezant_sql::{ATTEMPTS_MAX, Statement};

/// Savepoints of a transaction.
const SAVEPOINTS_MAX: usize = 1_024;

impl Transaction {
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
    /// attempt from now on. Returns how many savepoints there are then.
    ///
    /// # Errors
    /// If there is no such place, or attempts are in attempts too often.
    pub(crate) fn go_back(&mut self, name: &str) -> Result<usize, PgError> {
        let place = self.find(name)?;
        let start = self.savepoints[place].1;
        if depths(&self.shown[start..]).max() == Some(ATTEMPTS_MAX) {
            let text = format!("ROLLBACK TO is nested more than {ATTEMPTS_MAX} times");
            return Err(PgError::new(sqlstate::LIMIT, text).hint("roll back the whole transaction"));
        }
        self.savepoints.truncate(place + 1);
        if start < self.shown.len() {
            if start < self.covered {
                self.forget_held();
            }
            let [mut opens, mut closes] = [Statement::attempt(), Statement::undo()].map(mark);
            self.bytes.add(&mut opens);
            self.bytes.add(&mut closes);
            self.shown.insert(start, opens);
            self.shown.push(closes);
            self.savepoints[place].1 = self.shown.len();
        }
        self.failed = false;
        Ok(self.depth())
    }

    /// Forgets a place and all that were marked after it. Returns how many are left.
    ///
    /// # Errors
    /// If there is no such place.
    pub(crate) fn release(&mut self, name: &str) -> Result<usize, PgError> {
        let place = self.find(name)?;
        self.savepoints.truncate(place);
        Ok(self.depth())
    }

    /// How many there are.
    pub(crate) const fn depth(&self) -> usize {
        self.savepoints.len()
    }

    fn find(&self, name: &str) -> Result<usize, PgError> {
        let place = self.savepoints.iter().rposition(|(known, _)| known == name);
        place.ok_or_else(|| PgError::new(sqlstate::NO_SAVEPOINT, format!("savepoint \"{name}\" does not exist")))
    }
}
