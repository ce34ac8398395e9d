//! What instances hand on: the state, and the history above the anchor that led to it.

use crate::auth::Certificate;
use crate::cluster::Cluster;
use crate::estate::Estate;
use crate::history::{Boundary, Log, Logged};
use crate::ids::{ClientId, Sequence, Timestamp};
use crate::message::{Outcome, Request};
use crate::service::Service;
use crate::switching::certificate::Stable;
use alloc::vec::Vec;

/// See the [module](self).
///
/// Within an instance that may abort, batch numbers are positions: each entry is a batch of its own.
#[derive(Clone, Debug)]
pub struct Ledger<S> {
    /// The state. It may lag behind the log: execution can wait.
    pub estate: Estate<S>,
    /// The history above the anchor.
    pub log: Log,
    /// That 2f+1 replicas signed an anchor; see [`Ledger::certificate`].
    certificate: Option<Certificate<Stable>>,
}

impl<S: Service> Ledger<S> {
    /// Over a state in which nothing is uncertain, such as the one before the first request.
    pub fn new(estate: Estate<S>) -> Self {
        let root = estate.newest_version().root();
        let log = Log::new(Boundary { position: estate.position(), history: estate.history(), root });
        Self { estate, log, certificate: None }
    }

    /// What proves the anchor to everybody, if it is a checkpoint of a resilient ring. Few may have it there, but
    /// nobody can be asked for anything below it any more: so it goes wherever the anchor goes.
    pub fn certificate(&self) -> Option<&Certificate<Stable>> {
        self.certificate.as_ref().filter(|certificate| certificate.value().boundary == self.log.anchor())
    }

    /// A checkpoint that is, or becomes, the anchor is proved by this.
    pub fn certify(&mut self, certificate: Certificate<Stable>) {
        self.certificate = Some(certificate);
    }

    /// Executes what is logged and not executed yet. `answer` gets each entry with its outcome.
    pub fn catch_up(&mut self, cluster: &Cluster, mut answer: impl FnMut(&Logged, &Request, &Outcome)) {
        let Self { estate, log, .. } = self;
        assert!(estate.executed().0 >= log.anchor().position, "what leads from the anchor is executed on its state");
        for logged in log.after(estate.executed().0) {
            estate.execute_entry(cluster, logged, |request, outcome| answer(logged, request, outcome));
        }
        assert_eq!(estate.executed().0, log.length(), "all that is logged is executed");
    }

    /// Whether a session's request of this number, or a later one, is executed, or logged and will be.
    pub fn has(&self, client: ClientId, timestamp: Timestamp) -> bool {
        let is_it = |of: &Request| of.client == client && of.timestamp >= timestamp;
        let executed = self.estate.executed().0;
        self.estate.has_settled(client, timestamp)
            || self.log.after(executed).any(|logged| is_it(&logged.entry.request))
    }

    /// Whether the state at a position of the log can be had here: by executing, or by going back to a version first.
    /// Not in the middle of a Backup, even if only the batch is missing that ended it (Presence 5).
    pub fn reaches(&self, position: u64) -> bool {
        if self.estate.is_in_backup() {
            return false;
        }
        let version = self.estate.version_before(Sequence(position));
        self.estate.executed().0 <= position || version.is_some_and(|at| at.0 >= self.log.anchor().position)
    }

    /// Goes back to the last version of the state at or below a position that it [reaches](Self::reaches), if the state
    /// is beyond.
    pub fn go_back_to(&mut self, position: u64) {
        if self.estate.executed().0 > position {
            let version = self.estate.version_before(Sequence(position)).expect("the position can be reached");
            self.estate.rewind(version).expect("the service accepts the pages that it saved itself");
        }
        assert!(self.estate.executed().0 <= position, "what is beyond is undone (abs-D6)");
    }

    /// Has a version of the state at every checkpoint of the log: what this replica attests it can give to others, and
    /// what becomes certain it can go back to. Who came here with another history may have executed past one.
    pub fn keep_versions(&mut self, cluster: &Cluster) {
        let checkpoints: Vec<u64> = self.log.boundaries().iter().map(|boundary| boundary.position).collect();
        let lacks = |position: &&u64| self.estate.version(Sequence(**position)).is_none();
        if let Some(first) = checkpoints.iter().find(lacks).copied().filter(|first| self.reaches(*first)) {
            self.go_back_to(first);
        }
        for position in checkpoints {
            self.catch_up_to(cluster, position);
        }
        self.catch_up(cluster, |_, _, _| ());
        // Whoever executed otherwise does not have what others attest.
        let Self { estate, log, .. } = self;
        let has = |boundary: &Boundary| {
            estate.version(Sequence(boundary.position)).is_none_or(|tree| tree.root() == boundary.root)
        };
        log.retain_boundaries(has);
    }

    /// Executes up to a position, if it is not beyond, and keeps a version of the state there.
    pub fn catch_up_to(&mut self, cluster: &Cluster, position: u64) {
        let Self { estate, log, .. } = self;
        let before = estate.executed().0;
        if position < before || position > log.length() || estate.version(Sequence(position)).is_some() {
            return;
        }
        for logged in log.after(before).take((position - before) as usize) {
            estate.execute_entry(cluster, logged, |_, _| ());
        }
        assert_eq!(estate.executed().0, position, "the log leads there");
        estate.checkpoint();
    }

    /// Whether this checkpoint is this replica's as well, somewhere in what it has executed. If it was not taken, or
    /// not kept, it is taken again: by going back, and forth again as far as it was.
    pub fn takes_again(&mut self, cluster: &Cluster, boundary: Boundary) -> bool {
        let (position, executed) = (boundary.position, self.estate.executed().0);
        if self.log.history_at(position) != Some(boundary.history) {
            return false;
        }
        if self.estate.version(Sequence(position)).is_none() {
            if position > executed || !self.reaches(position) {
                return false;
            }
            self.go_back_to(position);
            self.catch_up_to(cluster, position);
            let later: Vec<u64> = self.log.boundaries().iter().map(|later| later.position).collect();
            later.into_iter().filter(|later| *later <= executed).for_each(|later| self.catch_up_to(cluster, later));
            let Self { estate, log, .. } = self;
            let before = estate.executed().0;
            for logged in log.after(before).take((executed - before) as usize) {
                estate.execute_entry(cluster, logged, |_, _| ());
            }
        }
        let is_same = self.estate.version(Sequence(position)).is_some_and(|tree| tree.root() == boundary.root);
        if is_same {
            self.log.learn(boundary);
        }
        is_same
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
        assert!(boundary.position <= self.estate.executed().0, "what is certain is executed here");
        self.log.anchor_at(boundary);
        self.estate.forget_versions_before(Sequence(boundary.position));
    }

    /// The state just executed is the end of a Backup, where every replica goes on.
    pub fn close(&mut self, root: crate::digest::Digest) -> Boundary {
        let boundary = Boundary { position: self.estate.position(), history: self.estate.history(), root };
        self.log.close(boundary);
        assert_eq!(self.log.length(), boundary.position, "nothing is logged beyond the end");
        boundary
    }

    /// What is true between steps.
    pub(crate) fn check_invariants(&self, cluster: &Cluster) {
        self.log.check_invariants();
        self.estate.check_invariants(cluster);
        if let Some(certificate) = &self.certificate {
            certificate.check_invariants(cluster, cluster.replicas.strong());
        }
    }
}
