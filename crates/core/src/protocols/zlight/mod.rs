//! ZLight: three message delays without contention to fear, as long as nobody fails (section 4 of the paper).
//!
//! # What it is for
//! Zyzzyva's fast path and nothing else: a primary orders, everybody executes at once and answers, and a client that
//! does not get n equal answers panics. There is no view change and no second kind of commit.
//!
//! # Steps
//! * ZLight 1. The client sends its request, with one MAC per replica, to the primary.
//! * ZLight 2. The primary gives the requests that wait the next positions, proposes the agreed time and a seed, sends
//!   ORDER with all of it, MACs included, to the others, then logs, executes and answers like them.
//! * ZLight 3. A replica takes ORDERs in the order of their positions and keeps one that is early (abs-L8). It checks
//!   its own MAC of each request; if one fails, or the agreed time is not acceptable, it stops, and
//!   says so in its report. Otherwise it logs, executes and answers.
//! * ZLight 4. n equal answers, in history and result, commit. Anything else makes the client panic.
//!
//! # Why it is safe
//! As in [`super::quorum`]: n equal history digests.
//!
//! # Why it is live
//! With a correct primary and no failure the replicas log the same batches. The primary is another one in each
//! instance (abs-P1).
//!
//! # Deviations from the paper
//! * ORDERs that overtake one another are put in order; the paper assumes FIFO links (abs-L8).
//! * The primary's MAC covers the clients' MACs as well: line noise cannot make a replica blame a client (abs-P3).
//! * The primary rotates (abs-P1). Agreed time and seed are proposed as in PBFT (prac-F27).
//! * A client that waits too long sends its request to all before it panics (abs-P12); whoever has it in its history
//!   answers again.
//!
//! # Cost
//! With batches of b: at the primary 2 + 3f/b MACs per request, at a backup 2 + 1/b, at the client 2n; 6f + 2 messages
//! for b = 1; three delays.

pub(crate) mod client;
#[cfg(test)]
mod paper_test;

use crate::auth::Keyring;
use crate::cluster::Cluster;
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, View};
use crate::machine::Destination;
use crate::message::{Request, Vouched};
use crate::notice::Report;
use crate::protocols::speculative;
use crate::protocols::speculative::{
    AHEAD_MAX, Ahead, BATCH_MAX, Queue, Speculation, SpeculativeTimer, Standing, as_its_speculation, weight,
};
use crate::rejection::Rejection;
use crate::schedule::Specification;
use crate::service::{Proposal, Service};
use crate::shares::Bounds;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::stop::StopReason;
use crate::switching::{Abortable, Heard, Ledger, Steps, Surroundings};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use alloc::vec::Vec;
use core::fmt;

/// ORDER: the primary's next batch.
#[derive(Clone, Debug)]
pub struct Order {
    /// The instance.
    pub instance: InstanceId,
    /// The position of the first request.
    pub first: u64,
    /// Agreed time and seed.
    pub proposal: Proposal,
    /// The requests, with their clients' MACs.
    pub requests: Vec<Request>,
}

impl Wire for Order {
    fn encode(&self, out: &mut impl Sink) {
        self.instance.encode(out);
        self.first.encode(out);
        self.proposal.encode(out);
        encode_list(&self.requests, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self {
            instance: Wire::decode(reader)?,
            first: Wire::decode(reader)?,
            proposal: Wire::decode(reader)?,
            requests: reader.list(BATCH_MAX)?,
        })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ORDER {} p{} with {} requests", self.instance, self.first, self.requests.len())
    }
}

impl Spoken for Order {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    /// All of it, clients' MACs included (abs-P3).
    fn cover(&self) -> Cover {
        Cover::Digest
    }

    fn may_overtake(&self) -> bool {
        false
    }

    /// Each request by this replica's MAC.
    fn admit(&mut self, from: Principal, _cluster: &Cluster, keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)?;
        if let Principal::Replica(me) = keyring.me() {
            self.requests.iter_mut().for_each(|request| _ = request.vouch_by_mac_at(keyring, me.0.into()));
        }
        Ok(())
    }
}

/// A machine that an instance of this protocol may be a part of.
pub trait Speaker: speculative::Speaker<Outgoing: From<Order>> {}

impl<M: speculative::Speaker<Outgoing: From<Order>>> Speaker for M {}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct ZLight<S> {
    pub(crate) base: Speculation<S>,
    queue: Queue,
    early: Ahead<Order>,
}

impl<S: Service> ZLight<S> {
    /// An instance that begins with what the ledger holds.
    pub(crate) fn open(what: Specification, ledger: Ledger<S>) -> Self {
        let base = Speculation::open(what, ledger);
        Self { base, queue: Queue::default(), early: Ahead::default() }
    }

    /// ZLight 2, first half; and whoever has the request in its history answers again.
    pub(crate) fn on_request(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, request: Request) {
        if self.base.is_stopped() {
            return;
        }
        match self.base.standing(s, &request) {
            Standing::New if s.me == self.base.what.head => {
                s.step("ZLight 2");
                if let Err(reason) = self.queue.push(s.now, &s.cluster.limits, request) {
                    s.reject(from, reason);
                }
            }
            Standing::New => {}
            Standing::Done { position, history, outcome } => {
                self.base.respond(s, &request, position, history, &outcome);
            }
            Standing::Stale => s.too_late(from, View(0), &request),
        }
    }

    /// ZLight 2, second half.
    pub(crate) fn pass_end(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        while s.me == self.base.what.head && !self.queue.is_empty() && self.base.may_log(s, 1) {
            let room = self.base.room(s);
            let mut requests = self.queue.take(&s.cluster.limits, room);
            requests.retain(|request| self.base.standing(s, request) == Standing::New);
            if requests.is_empty() {
                continue;
            }
            s.step("ZLight 2");
            let first = self.base.ledger.log.length() + 1;
            let proposal = self.base.propose(s);
            let order = Order { instance: self.base.what.number, first, proposal, requests };
            self.log(s, &order);
            s.send(Destination::Replicas, order);
            self.base.execute_and_respond(s);
        }
    }

    fn log(&mut self, s: &mut Surroundings<'_, impl Speaker>, order: &Order) {
        assert_eq!(order.first, self.base.ledger.log.length() + 1, "ORDERs are logged in their order (abs-L8)");
        for request in &order.requests {
            self.base.log(s, order.proposal.clone(), request.clone());
        }
        self.base.persist(s, order.first - 1);
    }

    /// ZLight 3.
    pub(crate) fn on_order(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, order: Order) {
        if self.base.is_stopped() {
            return;
        }
        if from != self.base.what.head {
            return s.reject(Principal::Replica(from), Rejection::WrongSender);
        }
        let next = self.base.ledger.log.length() + 1;
        if order.first < next || order.first > next + 2 * s.cluster.history_bound() {
            return s.reject(Principal::Replica(from), Rejection::OutsideWindow);
        }
        if !self.early.keep(order.first, weight(&order.requests), order, AHEAD_MAX) {
            return s.reject(Principal::Replica(from), Rejection::Overload);
        }
        self.take_early(s);
    }

    /// Takes the ORDERs whose turn it is; also after a checkpoint has made room.
    pub(crate) fn take_early(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        loop {
            let next = self.base.ledger.log.length() + 1;
            let may_log = |order: &Order| self.base.may_log(s, order.requests.len());
            let Some(order) = self.early.take_if(next, may_log) else { return };
            s.step("ZLight 3");
            if let Some(objection) = self.objection(s, &order) {
                return self.base.stop(s, objection, false);
            }
            self.log(s, &order);
            self.base.execute_and_respond(s);
        }
    }

    fn objection(&mut self, s: &mut Surroundings<'_, impl Speaker>, order: &Order) -> Option<StopReason> {
        if order.requests.iter().any(|request| request.vouched == Vouched::No) {
            return Some(StopReason::Unauthentic);
        }
        self.base.objection(s, &order.proposal, &order.requests)
    }
}

impl<S: Service> Abortable for ZLight<S> {
    type Service = S;
    type Message = Order;
    type Timer = SpeculativeTimer;

    as_its_speculation!();

    fn waiting_clients(&self) -> Vec<ClientId> {
        self.queue.clients().chain(self.base.unconfirmed_clients()).collect()
    }

    fn describe(&self, report: &mut Report) {
        report.requests_executed = self.base.requests_logged();
        report.pending_requests = self.queue.len();
    }

    fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        self.base.check_speculation(cluster, me);
        self.queue.check_invariants(Bounds::of_waiting(&cluster.limits));
        self.early.check_invariants(AHEAD_MAX);
        assert!(cluster.replicas.contains(self.base.what.head), "a replica leads");
        assert!(me == self.base.what.head || self.queue.is_empty(), "requests wait at the primary (ZLight 2)");
        assert!(me != self.base.what.head || self.early.is_empty(), "nobody orders for the primary (ZLight 3)");
        let Ledger { estate, log, .. } = &self.base.ledger;
        assert_eq!(estate.executed().0, log.length(), "whatever is logged is executed at once (ZLight 3)");
    }
}

impl<S: Service, M: Speaker> Steps<M> for ZLight<S> {
    fn start(&mut self, s: &mut Surroundings<'_, M>) {
        self.base.start(s);
    }

    fn message(&mut self, s: &mut Surroundings<'_, M>, from: Principal, message: Heard<Self::Message>) {
        match (message, from) {
            (Heard::Request(request), from) if !request.read_only => self.on_request(s, from, request),
            (Heard::Own(order), Principal::Replica(from)) => self.on_order(s, from, order),
            (Heard::Switch(switch), Principal::Replica(from)) => {
                self.base.on_switch(s, from, &switch);
                self.take_early(s);
            }
            (_, from) => s.reject(from, Rejection::WrongSender),
        }
    }

    fn timer(&mut self, s: &mut Surroundings<'_, M>, timer: Self::Timer) {
        match timer {
            SpeculativeTimer::Checkpoint => self.base.on_checkpoint_timeout(s),
            SpeculativeTimer::LowLoad => {}
        }
    }

    fn pass_end(&mut self, s: &mut Surroundings<'_, M>) {
        Self::pass_end(self, s);
    }

    fn panicked(&mut self, s: &mut Surroundings<'_, M>) {
        self.base.stop(s, StopReason::Panicked, false);
    }

    fn stop(&mut self, s: &mut Surroundings<'_, M>, reason: StopReason, low_load: bool) {
        self.base.stop(s, reason, low_load);
    }
}
