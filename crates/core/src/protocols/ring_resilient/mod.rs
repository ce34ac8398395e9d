//! The resilient ring: a sequencer orders, 2f+1 sign, and what committed can be proved (section 1.8 of the note on
//! Ring, which repairs section 4.3 of the thesis).
//!
//! # What it is for
//! Fast instances stop as soon as one replica is down. Something has to serve the clients then, with as many as f
//! replicas that are silent or lie, and for long enough that the way through the fast instances is worth it. This one
//! does for as long as its sequencer is correct; it has no view change. When the sequencer is not, the replicas stop,
//! and the next resilient ring of the schedule has another one.
//!
//! # Steps
//! * R1. *Ask.* A client sends its request, signed, to every replica, and again until 2f+1 have answered. It never
//!   panics. Each replica keeps the newest request of each client, passes those that wait longest on to the sequencer,
//!   if their signatures hold, and stops if it waits too long while nothing is executed, or much longer while others
//!   are served and what it has passed on is not.
//! * R2. *Order.* The sequencer gives the requests that wait the next positions, as one batch, proposes the agreed
//!   time and a seed, and sends ORDER with its own PREP. Big requests travel by reference: the client has sent them to
//!   everybody, and who lacks one asks for it. The first ORDER is empty and about the init history, so that all who go
//!   on begin with the same one. Whoever began with another one, and has signed nothing yet, begins again with the
//!   sequencer's.
//! * R3. *Log and sign.* A replica that has every request in hand, checked, and finds none of them in the history that
//!   it has *logged* (not: executed), logs the batch, makes it durable, and sends PREP to all: its signature over
//!   instance, position and the digest of the history up to there. What only further execution makes stale is no reason
//!   not to sign: the sequencer may have executed less. It is executed as nothing, and is no progress (L1 of
//!   [`crate::protocols::speculative`]). It logs in order of the positions, takes nothing
//!   back, and so signs at most one history. What f+1 have signed, the sequencer among them, one correct replica has
//!   judged: who comes later logs it although the agreed time is long past, and although those who have the requests
//!   have restarted, and their clients' proofs are gone.
//! * R4. *Prepared.* 2f+1 PREPs for one position and history are a certificate. The replica makes it durable and sends
//!   COMM to all.
//! * R5. *Committed.* 2f+1 COMMs for this history or a longer one: the replica executes up to there, and answers each
//!   client with position, result and history digest. 2f+1 equal answers commit.
//! * R6. *Checkpoint.* After the init history, every CHK-th position and the last one, a replica signs its state.
//!   2f+1 equal signatures make the checkpoint the anchor; nobody waits for it (F14), but nothing is logged further
//!   than [`Cluster::history_bound`] above the anchor. When a client goes on asking for what it was answered above the
//!   anchor, replicas sign where they are, too. Either 2f+1 have the same state there, and the client has lost an
//!   answer; or else they have not all executed alike ([`crate::dissent`]), or one of them has stopped: after T a
//!   replica that is asked stops.
//! * R7. *End.* Nothing is ordered after the quota's last request. A replica that has executed it, with a checkpoint
//!   there, stops; and so does one that has waited too long, for a request or for that checkpoint. f+1 that have
//!   stopped stop all others (S2). The abort report lists the history up to the highest certificate, with that
//!   certificate.
//! * R8. *Repeat.* Messages may get lost. A replica that waits for something says how far it has come, and whoever has
//!   more sends it.
//!
//! # Why it is safe
//! Two certificates have a correct signer in common. It signed the history of one after that of the other, and logs
//! are only appended to: the shorter history is a prefix of the longer. So there is one certified history. A request
//! committed if one correct replica executed it: then 2f+1 said COMM, f+1 correct ones among them hold a durable
//! certificate for it, every 2f+1 abort reports include one of theirs, and [`crate::switching::report`] picks the
//! longest. A correct signer checked that each request is its client's and in no position before.
//!
//! # Why it is live
//! With a correct sequencer the 2f+1 correct replicas get each ORDER, and its PREPs and COMMs, from one another:
//! nothing is awaited from the other f. A liar's votes for another history are one per place and count for nothing. A
//! request that any correct replica has reaches the sequencer after a status interval, so that what the clients send is
//! ordered within five message delays from then; T is longer and doubles from one failed instance to the next. A
//! sequencer that serves some and not others would stay for its quota, which doubles too; it does not: a correct one
//! orders what it gets in the order in which it came, so that 8 T are enough for the few that a replica passes on at a
//! time, or are after some doublings. A replica that fell behind an anchor fetches the state there, and goes on from it
//! (`compositions/jump.rs`).
//!
//! # Deviations from the note
//! * Not flooded. Each replica has a link to each other one, so that a signature needs no relay: a correct signer sends
//!   it to all, and a certificate needs correct signers only. Flooding to f+1 successors sends each of 2n signatures
//!   over up to n(f+1) links, 2n²(f+1) messages for a batch (64 for f = 1); this sends 2n(n−1), 24.
//! * COMM is not signed. No report contains it: a MAC convinces the replica that executes.
//! * PREP names the history after the position only. Its digest covers all before: requests, agreed values, order.
//! * A batch is one step. A replica signs one PREP for each, at its end.
//!
//! # Cost
//! For a batch of b: 1 signature at every replica and at the client of each request, 2f checked PREPs and b checked
//! requests; n(n−1) PREPs (one of them within ORDER for n−1), n(n−1) COMMs, b·n answers. Five delays, two writes to
//! disk one after the other. A certificate is 2f+1 signatures, once in each report.

mod bodies;
mod checkpoints;
mod message;
mod record;
mod recovery;
mod replica;
mod votes;

pub use message::{Commit, Order, Resilient, ResilientMessage, Speaker, Status};
pub use record::ResilientRecord;

use crate::auth::{Certificate, Signature, Signed};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::history::{Boundary, LogEntry};
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, Timestamp};
use crate::machine::Destination;
use crate::message::Request;
use crate::notice::Report;
use crate::protocols::pbft::pool::Pool;
use crate::protocols::speculative::Speculation;
use crate::rejection::Rejection;
use crate::service::{Proposal, Service};
use crate::switching::certificate::{Prepared, Stable};
use crate::switching::{AbortReport, Abortable, Heard, HistoryRecord, Ledger, Steps, Surroundings};
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use votes::Peer;

/// ORDERs ahead of the log that are kept.
const EARLY_MAX: usize = 64;

/// How much more often a replica says how far it has come while that helps, than once in a status interval.
const CATCHING_UP_PARTS: u64 = 8;

/// The timers of the resilient ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResilientTimer {
    /// Nothing was executed for too long.
    Patience,
    /// Say again what may have got lost.
    Repeat,
}

/// A client asks again for what it was answered.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The answer's position.
    position: u64,
    /// When it was first asked for again.
    since: Instant,
}

/// A batch that is logged here.
#[derive(Clone, Debug, Default)]
struct Slot {
    /// The history's digest with it.
    history: Digest,
    proposal: Proposal,
    /// Its requests; those that the log of an earlier process told have no proof any more.
    requests: Vec<Request>,
    /// Who signed that.
    prepares: BTreeMap<ReplicaId, Signature>,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct RingResilient<S> {
    /// What it shares with speculative instances: the log, and the report.
    pub(crate) base: Speculation<S>,
    sequencer: ReplicaId,
    quota: u64,
    /// T.
    patience: Duration,
    /// Requests that wait to be ordered, or are ordered and not executed.
    pool: Pool,
    /// Who waits for the answer to which request of the init history, until that is certain. The answers are in the
    /// client table.
    inherited: BTreeMap<ClientId, Timestamp>,
    /// The last request of each client that is logged and not executed.
    ordered: BTreeMap<ClientId, Timestamp>,
    /// Whether this replica has logged the first ORDER: from then on it sticks to its init history.
    opened: bool,
    /// Batches by their last position: those since the anchor before the last, so that who is a little behind can
    /// catch up.
    slots: BTreeMap<u64, Slot>,
    /// ORDERs ahead, by their last position.
    early: BTreeMap<u64, Order>,
    /// Requests of the next ORDER, and of no other, that were not here, or not with a proof.
    bodies: BTreeMap<Digest, Option<Request>>,
    /// What the others have said.
    peers: BTreeMap<ReplicaId, Peer>,
    /// The highest certificate.
    prepared: Option<Certificate<Prepared>>,
    /// The last position that is committed.
    committed: Option<u64>,
    /// Own checkpoints above the anchor.
    votes: Vec<Signed<Stable>>,
    /// An answer above the anchor that a client asks for again.
    doubt: Option<Doubt>,
    /// When this replica last signed its state because of that, and not because a checkpoint was due.
    signed_out_of_turn: Instant,
    /// What proves the anchor, if it was reached in this instance.
    stable: Option<Certificate<Stable>>,
    requests_executed: u64,
    /// The requests that had waited longest when they were passed on to the sequencer, and when that was. Others take
    /// their place when all of them are served.
    passed_on: (Instant, Vec<(ClientId, Timestamp)>),
    is_patient: bool,
    repeats: bool,
    /// Whether it will soon say again how far it has come, because it is catching up.
    hurries: bool,
    /// How long the log was when it last said how far it has come.
    repeated_at: u64,
    /// When the log last grew, or something was executed.
    progress: Instant,
    /// How long the log was when somebody showed a checkpoint beyond it.
    was_behind: Option<u64>,
}

impl<S: Service> RingResilient<S> {
    /// An instance that begins with what the ledger holds.
    pub(crate) fn open(cluster: &Cluster, instance: InstanceId, sequencer: ReplicaId, ledger: Ledger<S>) -> Self {
        let before = cluster.protocol.schedule().map_or(0, |schedule| schedule.same_before(instance));
        Self {
            base: Speculation::open(instance, ledger),
            sequencer,
            quota: cluster.quota.requests(before, false),
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
    pub(crate) fn take_orders(&mut self) -> BTreeMap<u64, Order> {
        core::mem::take(&mut self.early)
    }

    /// Takes over the ORDERs that another one kept for later ([`Self::take_orders`]).
    pub(crate) fn give_orders(&mut self, s: &mut Surroundings<'_, impl Speaker>, orders: BTreeMap<u64, Order>) {
        self.early = orders;
        self.take_early(s);
    }

    /// The last position of the quota.
    const fn last(&self) -> u64 {
        self.base.init().0.saturating_add(self.quota)
    }

    fn leads(&self, s: &Surroundings<'_, impl Speaker>) -> bool {
        s.me == self.sequencer
    }

    fn send(&self, s: &mut Surroundings<'_, impl Speaker>, to: Destination, message: ResilientMessage) {
        s.send(to, Resilient { instance: self.base.instance, message });
    }

    fn on_resilient(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, message: ResilientMessage) {
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
    fn look_at_timers(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
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
        let hurries = self.catches_up(s.cluster);
        if (!self.repeats || hurries && !self.hurries) && self.is_unfinished() {
            (self.repeats, self.hurries) = (true, hurries);
            let parts = if hurries { CATCHING_UP_PARTS } else { 1 };
            let at = s.now + Duration(s.cluster.limits.status_interval.0 / parts);
            s.set_timer(ResilientTimer::Repeat, at);
        }
    }
}

impl<S: Service> Abortable for RingResilient<S> {
    type Service = S;
    type Message = ResilientMessage;
    type Timer = ResilientTimer;

    fn report(&self) -> Option<&Arc<Signed<AbortReport>>> {
        self.base.report()
    }

    fn ledger(&self) -> &Ledger<S> {
        &self.base.ledger
    }

    fn waiting_clients(&self) -> Vec<ClientId> {
        self.pool.clients().chain(self.inherited.keys().copied()).chain(self.ordered.keys().copied()).collect()
    }

    fn replay(&mut self, cluster: &Cluster, record: HistoryRecord) {
        self.replay_history(cluster, record);
    }

    fn retain(&mut self, entries: Vec<LogEntry>) {
        self.base.ledger.log.retain(entries);
    }

    fn describe(&self, _cluster: &Cluster, report: &mut Report) {
        report.requests_executed = self.requests_executed;
        report.pending_requests = self.pool.len();
        report.primary = self.sequencer;
    }

    fn halt(self) -> Ledger<S> {
        self.base.halt()
    }
}

impl<S: Service, M: Speaker> Steps<M> for RingResilient<S> {
    fn start(&mut self, s: &mut Surroundings<'_, M>) {
        if self.base.is_stopped() {
            return;
        }
        self.begin(s);
        self.look_at_timers(s);
    }

    fn message(&mut self, s: &mut Surroundings<'_, M>, from: Principal, message: Heard<Self::Message>) {
        if self.base.is_stopped() {
            return;
        }
        match (message, from) {
            (Heard::Request(request), from) if !request.read_only => self.on_request(s, from, request),
            (Heard::Own(message), Principal::Replica(from)) => self.on_resilient(s, from, message),
            // What speculative instances say to one another.
            (Heard::Switch(_), Principal::Replica(_)) => {}
            (_, from) => s.reject(from, Rejection::WrongSender),
        }
        self.look_at_timers(s);
    }

    fn timer(&mut self, s: &mut Surroundings<'_, M>, timer: Self::Timer) {
        if self.base.is_stopped() {
            return;
        }
        match timer {
            ResilientTimer::Patience => self.on_impatience(s),
            ResilientTimer::Repeat => self.on_repeat(s),
        }
        self.look_at_timers(s);
    }

    fn pass_end(&mut self, s: &mut Surroundings<'_, M>) {
        self.order(s);
        self.look_at_timers(s);
    }

    /// It knows by itself when a client waits too long: what a client says does not make it stop.
    fn panicked(&mut self, _s: &mut Surroundings<'_, M>) {}

    fn stop(&mut self, s: &mut Surroundings<'_, M>, reason: &'static str, _low_load: bool) {
        self.halt_here(s, reason);
    }
}
