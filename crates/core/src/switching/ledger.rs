//! What instances hand on: the state, and the history above the anchor that led to it.

use crate::cluster::{Cluster, Sequence};
use crate::estate::Estate;
use crate::history::{Boundary, Log, Logged};
use crate::message::{Outcome, Request};
use crate::service::Service;

/// See the [module](self).
///
/// Within an instance that may abort, batch numbers are positions: each entry is a batch of its own.
#[derive(Clone, Debug)]
pub struct Ledger<S> {
    /// The state. It may lag behind the log: execution can wait.
    pub estate: Estate<S>,
    /// The history above the anchor.
    pub log: Log,
}

impl<S: Service> Ledger<S> {
    /// Over a state in which nothing is uncertain, such as the one before the first request.
    pub fn new(estate: Estate<S>) -> Self {
        let root = estate.newest_version().root();
        let log = Log::new(Boundary { position: estate.position(), history: estate.history(), root });
        Self { estate, log }
    }

    /// Executes what is logged and not executed yet. `answer` gets each entry with its outcome.
    pub fn catch_up(&mut self, cluster: &Cluster, mut answer: impl FnMut(&Logged, &Request, &Outcome)) {
        let Self { estate, log } = self;
        assert!(estate.executed().0 >= log.anchor().position, "what leads from the anchor is executed on its state");
        for logged in log.after(estate.executed().0) {
            estate.execute_entry(cluster, logged, |request, outcome| answer(logged, request, outcome));
        }
    }

    /// Executes up to a position, if it is ahead, and keeps a version of the state there.
    pub fn catch_up_to(&mut self, cluster: &Cluster, position: u64) {
        let Self { estate, log } = self;
        let before = estate.executed().0;
        if position <= before || position > log.length() {
            return;
        }
        for logged in log.after(before).take((position - before) as usize) {
            estate.execute_entry(cluster, logged, |_, _| ());
        }
        estate.checkpoint();
    }

    /// Takes a checkpoint of the state as far as it is executed.
    pub fn checkpoint(&mut self) -> Boundary {
        let position = self.estate.executed().0;
        let root = self.estate.checkpoint();
        let history = self.log.history_at(position).expect("the state is between anchor and end of the log");
        let boundary = Boundary { position, history, root };
        self.log.mark(boundary);
        boundary
    }

    /// A checkpoint of this log is certain: every correct replica has it.
    pub fn anchor_at(&mut self, boundary: Boundary) {
        self.log.anchor_at(boundary);
        self.estate.forget_versions_before(Sequence(boundary.position));
    }

    /// The state just executed is the end of a Backup, where every replica goes on.
    pub fn close(&mut self, root: crate::digest::Digest) -> Boundary {
        let boundary = Boundary { position: self.estate.position(), history: self.estate.history(), root };
        self.log.close(boundary);
        boundary
    }
}
