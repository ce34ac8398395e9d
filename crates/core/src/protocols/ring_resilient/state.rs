//! What a replica of the resilient ring knows.

use super::message::{Resilient, ResilientMessage, ResilientTimer, Speaker};
use super::peer::Peer;
use crate::auth::{Certificate, Signed};
use crate::batch::Batch;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::history::Boundary;
use crate::ids::{ClientId, ReplicaId, Timestamp};
use crate::machine::Destination;
use crate::message::Request;
use crate::protocols::pool::Pool;
use crate::protocols::speculative::Speculation;
use crate::schedule::Specification;
use crate::service::{Proposal, Service};
use crate::switching::certificate::{Prepared, Stable};
use crate::switching::{Ledger, Surroundings};
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// ORDERs ahead of the log that are kept.
pub(super) const EARLY_MAX: usize = 64;

/// How much more often a replica says how far it has come while that helps, than once in a status interval.
pub(super) const CATCHING_UP_PARTS: u64 = 8;

/// A client asks again for what it was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    /// The answer's position.
    pub(super) position: u64,
    /// When it was first asked for again.
    pub(super) since: Instant,
}

/// A batch that is logged here.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// The history's digest with it.
    pub(super) history: Digest,
    pub(super) proposal: Proposal,
    /// Its requests; those that the log of an earlier process told have no proof any more.
    pub(super) requests: Vec<Request>,
    /// Who signed that.
    pub(super) prepares: BTreeMap<ReplicaId, Signed<Prepared>>,
}

/// An ORDER ahead of the log, whose PREP the sequencer has signed.
#[derive(Clone, Debug)]
pub(crate) struct Early {
    pub(super) first: u64,
    pub(super) batch: Batch,
    pub(super) prepare: Signed<Prepared>,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct RingResilient<S> {
    /// What it shares with speculative instances: the log, and the report.
    pub(crate) base: Speculation<S>,
    pub(super) quota: u64,
    /// T.
    pub(super) patience: Duration,
    /// Requests that wait to be ordered, or are ordered and not executed.
    pub(super) pool: Pool,
    /// Who waits for the answer to which request of the init history, until that is certain. The answers are in the
    /// client table.
    pub(super) inherited: BTreeMap<ClientId, Timestamp>,
    /// The last request of each client that is logged and not executed.
    pub(super) ordered: BTreeMap<ClientId, Timestamp>,
    /// Whether this replica has logged the first ORDER: from then on it sticks to its init history.
    pub(super) opened: bool,
    /// Batches by their last position: those since the anchor before the last, so that who is a little behind can
    /// catch up.
    pub(super) slots: BTreeMap<u64, Slot>,
    /// ORDERs ahead, by their last position.
    pub(super) early: BTreeMap<u64, Early>,
    /// Requests of the next ORDER, and of no other, that were not here, or not with a proof.
    pub(super) bodies: BTreeMap<Digest, Option<Request>>,
    /// What the others have said.
    pub(super) peers: BTreeMap<ReplicaId, Peer>,
    /// The highest certificate.
    pub(super) prepared: Option<Certificate<Prepared>>,
    /// The last position that is committed.
    pub(super) committed: Option<u64>,
    /// Own checkpoints above the anchor.
    pub(super) votes: Vec<Signed<Stable>>,
    /// An answer above the anchor that a client asks for again.
    pub(super) doubt: Option<Doubt>,
    /// When this replica last signed its state because of that, and not because a checkpoint was due.
    pub(super) signed_out_of_turn: Instant,
    /// What proves the anchor, if it was reached in this instance.
    pub(super) stable: Option<Certificate<Stable>>,
    pub(super) requests_executed: u64,
    /// The requests that had waited longest when they were passed on to the sequencer, and when that was. Others take
    /// their place when all of them are served.
    pub(super) passed_on: (Instant, Vec<(ClientId, Timestamp)>),
    pub(super) is_patient: bool,
    pub(super) repeats: bool,
    /// Whether it will soon say again how far it has come, because it is catching up.
    pub(super) hurries: bool,
    /// How long the log was when it last said how far it has come.
    pub(super) repeated_at: u64,
    /// When the log last grew, or something was executed.
    pub(super) progress: Instant,
    /// How long the log was when somebody showed a checkpoint beyond it.
    pub(super) was_behind: Option<u64>,
}

impl<S: Service> RingResilient<S> {
    /// An instance that begins with what the ledger holds.
    pub(crate) fn open(cluster: &Cluster, what: Specification, ledger: Ledger<S>) -> Self {
        Self {
            base: Speculation::open(what, ledger),
            quota: what.requests(false),
            patience: cluster.limits.view_timeout,
            pool: Pool::default(),
            inherited: BTreeMap::new(),
            ordered: BTreeMap::new(),
            opened: false,
            slots: BTreeMap::new(),
            early: BTreeMap::new(),
            bodies: BTreeMap::new(),
            peers: BTreeMap::new(),
            prepared: None,
            committed: None,
            votes: Vec::new(),
            doubt: None,
            signed_out_of_turn: Instant(0),
            stable: None,
            requests_executed: 0,
            passed_on: (Instant(0), Vec::new()),
            is_patient: false,
            repeats: false,
            hurries: false,
            repeated_at: 0,
            progress: Instant(0),
            was_behind: None,
        }
    }

    /// T doubles with each resilient ring in a row that failed, as far as this process knows.
    pub(crate) fn be_patient(&mut self, cluster: &Cluster, failures: u32) {
        self.patience = cluster.limits.view_timeout.doubled(failures, cluster.limits.view_timeout_max);
    }

    /// Whether it may begin again with another init history: it has signed nothing.
    pub(crate) const fn may_begin_again(&self) -> bool {
        !self.opened && !self.base.is_stopped()
    }

    /// Whether all that it may execute is executed.
    pub(crate) fn is_full(&self) -> bool {
        self.base.ledger.estate.executed().0 >= self.last()
    }

    /// Whether it cannot come to a checkpoint by itself: its log goes elsewhere, or does not get on.
    pub(crate) fn is_behind(&mut self, boundary: Boundary) -> bool {
        if !self.may_go_on_from(boundary) {
            return false;
        }
        let length = self.base.ledger.log.length();
        boundary.position <= length || self.was_behind.replace(length) == Some(length)
    }

    /// Whether it may go on from a checkpoint that is not in its log: it has signed nothing beyond, or nothing at all.
    pub(crate) fn may_go_on_from(&self, boundary: Boundary) -> bool {
        let log = &self.base.ledger.log;
        // One below the init history's end is not where this replica could go on by itself: see `anchor`.
        let is_here =
            boundary.position >= self.base.init().0 && log.history_at(boundary.position) == Some(boundary.history);
        !self.base.is_stopped()
            && boundary.position > log.anchor().position
            && (boundary.position >= log.length() || !self.opened)
            && !is_here
    }

    /// The ORDERs that it keeps for later, for the one that goes on from a checkpoint.
    pub(crate) fn take_orders(&mut self) -> BTreeMap<u64, Early> {
        core::mem::take(&mut self.early)
    }

    /// Takes over the ORDERs that another one kept for later ([`Self::take_orders`]).
    pub(crate) fn give_orders(&mut self, s: &mut Surroundings<'_, impl Speaker>, orders: BTreeMap<u64, Early>) {
        self.early = orders;
        self.take_early(s);
    }

    /// The last position of the quota.
    pub(super) const fn last(&self) -> u64 {
        self.base.init().0.saturating_add(self.quota)
    }

    pub(super) fn leads(&self, s: &Surroundings<'_, impl Speaker>) -> bool {
        s.me == self.base.what.head
    }

    pub(super) fn send(&self, s: &mut Surroundings<'_, impl Speaker>, to: Destination, message: ResilientMessage) {
        s.send(to, Resilient { instance: self.base.what.number, message });
    }

    pub(super) fn on_resilient(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        message: ResilientMessage,
    ) {
        match message {
            ResilientMessage::Order(order) => self.on_order(s, from, *order),
            ResilientMessage::Prepare(signed) => self.on_prepare(s, from, signed),
            ResilientMessage::Commit(commit) => self.on_commit(s, from, commit),
            ResilientMessage::Checkpoint(vote) => self.on_vote(s, from, vote),
            // The composition looks at it first.
            ResilientMessage::Stable(_) => {}
            ResilientMessage::Status(status) => self.on_status(s, from, status),
            ResilientMessage::Fetch(fetch) => self.on_fetch(s, from, &fetch),
        }
    }

    /// Sets the timers that the state asks for.
    pub(super) fn arm_timers(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if self.base.is_stopped() {
            return;
        }
        let waits = self.pool.oldest_watched().is_some()
            || !self.inherited.is_empty()
            || self.has_uncommitted()
            || self.is_full();
        if waits && !self.is_patient {
            s.set_timer(ResilientTimer::Patience, s.now + self.patience);
        } else if !waits && self.is_patient {
            s.cancel_timer(ResilientTimer::Patience);
        }
        self.is_patient = waits;
        let hurries = self.catches_up();
        if (!self.repeats || hurries && !self.hurries) && self.is_unfinished() {
            (self.repeats, self.hurries) = (true, hurries);
            let parts = if hurries { CATCHING_UP_PARTS } else { 1 };
            let at = s.now + Duration(s.cluster.limits.status_interval.0 / parts);
            s.set_timer(ResilientTimer::Repeat, at);
        }
    }
}
