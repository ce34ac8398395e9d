//! What a Backup knows.

use super::testimonies::Dissent;
use crate::auth::{Certificate, Signed};
use crate::batch::Ordered;
use crate::checkpoint::transfer::Transfer;
use crate::checkpoint::{Checkpoint, Evidence, Tree};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ReplicaId, Sequence, View};
use crate::message::Request;
use crate::protocols::speculative::Queue as Waiting;
use crate::protocols::total_order::{OrderEffect, TotalOrder};
use crate::replicas::ReplicaSet;
use crate::schedule::Specification;
use crate::service::Service;
use crate::shares::ClientSet;
use crate::switching::{CheckedReport, Ledger, Opening, Proof};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// How far a Backup has come with the history that it begins with.
#[derive(Clone, Debug)]
pub(super) enum Init {
    /// No INIT was delivered yet.
    Waiting,
    /// Something of the history is missing.
    Opening(Box<Opening>),
    /// It works.
    Done,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Backup<O: TotalOrder, S> {
    /// What it is. If it hands on after k requests, only final deliveries count, and every read is ordered (abs-D12).
    pub(super) what: Specification,
    pub(super) order: O,
    pub(super) ledger: Ledger<S>,
    pub(super) init: Init,
    /// Batches delivered before the init history was there.
    pub(super) held: VecDeque<Ordered>,
    /// Requests executed where whoever lacks the init history begins to execute it.
    pub(super) init_base: Option<u64>,
    pub(super) report: Option<CheckedReport>,
    /// The report that it made before a crash, until it is at the end again.
    pub(super) said: Option<CheckedReport>,
    /// Whether the state does not follow from the log: it was repaired with f+1 signatures.
    pub(super) unlogged: bool,
    /// What proves that this instance may run, if there was one before it.
    pub(super) proof: Option<Proof>,
    /// Who is missing, as the INIT says (Presence 4); nobody, if this replica has a later state and not that INIT.
    pub(super) missing: ReplicaSet,
    /// END, if this replica has asked for it (Presence 5).
    pub(super) end: Option<Request>,
    /// Clients whose requests were ordered behind the last one that is executed.
    pub(super) unserved: ClientSet,
    /// The last checkpoint that 2f+1 replicas signed and that this replica has.
    pub(super) stable: Evidence,
    /// CHECKPOINT votes above it: the newest [`VOTES_PER_REPLICA_MAX`] of each replica.
    pub(super) votes: BTreeMap<ReplicaId, Vec<Signed<Checkpoint>>>,
    /// A stable checkpoint that this replica has not reached by executing.
    pub(super) ahead: Option<Certificate<Checkpoint>>,
    pub(super) transfer: Option<Transfer>,
    /// What replicas testified about what they executed.
    pub(super) dissent: Dissent,
    /// A state of this replica that is not the one that f+1 others signed, until it is repaired.
    pub(super) wrong: Option<(Sequence, Tree)>,
    /// Read-only requests, and those that are too late, waiting for a state that may answer them.
    pub(super) reads: Waiting,
    /// The view in which the tentative batch was executed.
    pub(super) tentative_view: View,
    pub(super) requests_executed: u64,
}

/// CHECKPOINT votes kept of each replica at one checkpoint: what it signed first, and what it signed last, once it had
/// repaired itself.
pub(super) const VOTES_PER_CHECKPOINT_MAX: usize = 2;

/// CHECKPOINT votes kept of each replica: those for each checkpoint that fits into the window, and for one more.
pub(super) const VOTES_PER_REPLICA_MAX: usize = 3 * VOTES_PER_CHECKPOINT_MAX;

/// The effects of the order that are still to be carried out.
pub(super) type Queue<O> = VecDeque<OrderEffect<O>>;

impl<O: TotalOrder, S: Service> Backup<O, S> {
    /// An instance over a ledger. One of several waits for INIT, but for the first of all, which begins with the ledger
    /// as it is; and so does the only one of its composition. `lost_log`: see [`TotalOrder::open`].
    pub fn open(what: Specification, ledger: Ledger<S>, lost_log: bool) -> Self {
        let (root, init) = match what.hands_on() {
            true => (Digest::ZERO, Init::Waiting),
            false => (ledger.estate.newest_version().root(), Init::Done),
        };
        Self {
            what,
            order: O::open(&what, root, lost_log),
            ledger,
            init,
            held: VecDeque::new(),
            init_base: None,
            report: None,
            said: None,
            unlogged: false,
            proof: None,
            missing: ReplicaSet::NOBODY,
            end: None,
            unserved: ClientSet::default(),
            stable: Evidence::genesis(what.number, root),
            votes: BTreeMap::new(),
            ahead: None,
            transfer: None,
            dissent: Dissent::default(),
            wrong: None,
            reads: Waiting::default(),
            tentative_view: View(0),
            requests_executed: 0,
        }
    }

    /// The order.
    pub const fn order(&self) -> &O {
        &self.order
    }

    /// The same.
    pub(crate) const fn order_mut(&mut self) -> &mut O {
        &mut self.order
    }

    /// Whether it hands on after k requests.
    pub(super) const fn is_limited(&self) -> bool {
        self.what.hands_on()
    }

    /// The view to be named in replies.
    pub(super) fn view(&self) -> View {
        self.order.view().unwrap_or_default()
    }

    /// Replays a record of the order.
    pub(crate) fn replay_order(&mut self, cluster: &Cluster, me: ReplicaId, record: O::Record) {
        self.order.replay(cluster, me, record);
    }

    /// The last stable checkpoint that this replica has.
    pub const fn stable(&self) -> &Evidence {
        &self.stable
    }

    /// Requests executed for good since the process started.
    pub const fn requests_executed(&self) -> u64 {
        self.requests_executed
    }

    /// A running state transfer: target and items received.
    pub fn transfer(&self) -> Option<(Sequence, u64)> {
        self.transfer.as_ref().map(|transfer| (transfer.target().checkpoint().sequence, transfer.received()))
    }

    /// Where this replica's state differs from that of f+1 others, until it is repaired.
    pub fn differs(&self) -> Option<Sequence> {
        self.wrong.as_ref().map(|(sequence, _)| *sequence)
    }
}
