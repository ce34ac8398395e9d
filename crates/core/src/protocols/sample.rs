//! Sample: what a new protocol needs, and no more. It exists in tests only, where the conformance suite runs it as any
//! other part; `docs/new-protocol.md` walks through it.
//!
//! # What it is for
//! To show, and to keep true, which places a new protocol touches. It is ZLight without batches.
//!
//! # Steps
//! * Sample 1. A client sends its request, with one MAC per replica, to the head.
//! * Sample 2. The head gives it the next position, and sends PASS with it to the others; then it logs, executes and
//!   answers.
//! * Sample 3. A replica takes each PASS when its position is the next, checks its own MAC of the request, logs,
//!   executes and answers. If the MAC fails it stops.
//! * Sample 4. n equal answers, in history and result, commit. Anything else makes the client panic.
//!
//! # Why it is safe
//! As in [`super::quorum`]: n equal history digests.
//!
//! # Cost
//! Three delays; 2n − 1 messages besides the request.

use crate::auth::Keyring;
use crate::cluster::Cluster;
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, Timestamp, View};
use crate::machine::{Destination, Step};
use crate::message::{Request, Vouched};
use crate::notice::Report;
use crate::protocols::speculative::{
    self, AHEAD_MAX, Ahead, Asking, ClientHalf, Complaint, Queue, Response, Speculation, SpeculativeTimer, Standing,
    Verdict, all_equal, as_its_speculation, weight,
};
use crate::rejection::Rejection;
use crate::schedule::Specification;
use crate::service::{Proposal, Service};
use crate::spoken::{Cover, Spoken, from_replica};
use crate::stop::StopReason;
use crate::switching::{Abortable, Heard, Ledger, Steps, Surroundings};
use crate::wire_struct;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use core::slice;

/// PASS: the head's next request.
#[derive(Clone, Debug)]
pub struct Pass {
    pub instance: InstanceId,
    pub position: u64,
    pub proposal: Proposal,
    pub request: Request,
}
wire_struct!(Pass { instance, position, proposal, request });

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PASS {} p{}", self.instance, self.position)
    }
}

impl Spoken for Pass {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    fn cover(&self) -> Cover {
        Cover::Digest
    }

    fn may_overtake(&self) -> bool {
        false
    }

    fn admit(&mut self, from: Principal, _cluster: &Cluster, keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)?;
        if let Principal::Replica(me) = keyring.me() {
            self.request.vouch_by_mac_at(keyring, me.0.into());
        }
        Ok(())
    }
}

/// A machine that an instance of this protocol may be a part of.
pub(crate) trait Speaker: speculative::Speaker<Outgoing: From<Pass>> {}

impl<M: speculative::Speaker<Outgoing: From<Pass>>> Speaker for M {}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Sample<S> {
    pub(crate) base: Speculation<S>,
    queue: Queue,
    early: Ahead<Pass>,
}

impl<S: Service> Sample<S> {
    pub(crate) fn open(what: Specification, ledger: Ledger<S>) -> Self {
        let base = Speculation::open(what, ledger);
        Self { base, queue: Queue::default(), early: Ahead::default() }
    }

    /// Sample 2; and whoever has the request in its history answers again.
    fn on_request(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, request: Request) {
        match self.base.standing(s, &request) {
            Standing::New if s.me == self.base.what.head => {
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

    /// Sample 2.
    fn pass(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        while s.me == self.base.what.head && self.base.may_log(s, 1) {
            let Some(request) = self.queue.take(&s.cluster.limits, 1).pop() else { return };
            if self.base.standing(s, &request) != Standing::New {
                continue;
            }
            let (instance, position) = (self.base.what.number, self.base.ledger.log.length() + 1);
            let pass = Pass { instance, position, proposal: self.base.propose(s), request };
            s.send(Destination::Replicas, pass.clone());
            self.log(s, pass);
        }
    }

    /// Sample 3.
    fn on_pass(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, pass: Pass) {
        let next = self.base.ledger.log.length() + 1;
        if from != self.base.what.head || pass.position < next || pass.position > next + 2 * s.cluster.history_bound() {
            return s.reject(Principal::Replica(from), Rejection::OutsideWindow);
        }
        if !self.early.keep(pass.position, weight(slice::from_ref(&pass.request)), pass, AHEAD_MAX) {
            s.reject(Principal::Replica(from), Rejection::Overload);
        }
        self.take_early(s);
    }

    /// Sample 3, for those whose turn it is.
    fn take_early(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        loop {
            let next = self.base.ledger.log.length() + 1;
            let Some(pass) = self.early.take_if(next, |_| self.base.may_log(s, 1)) else { return };
            if pass.request.vouched == Vouched::No {
                return self.base.stop(s, StopReason::Unauthentic, false);
            }
            if let Some(objection) = self.base.objection(s, &pass.proposal, slice::from_ref(&pass.request)) {
                return self.base.stop(s, objection, false);
            }
            self.log(s, pass);
        }
    }

    fn log(&mut self, s: &mut Surroundings<'_, impl Speaker>, pass: Pass) {
        let Pass { position, proposal, request, .. } = pass;
        s.step(if s.me == self.base.what.head { "Sample 2" } else { "Sample 3" });
        self.base.log(s, proposal, request);
        self.base.persist(s, position - 1);
        self.base.execute_and_respond(s);
    }
}

impl<S: Service> Abortable for Sample<S> {
    type Service = S;
    type Message = Pass;
    type Timer = SpeculativeTimer;

    as_its_speculation!();

    fn waiting_clients(&self) -> Vec<ClientId> {
        self.queue.clients().chain(self.base.unconfirmed_clients()).collect()
    }

    fn describe(&self, report: &mut Report) {
        report.requests_executed = self.base.requests_logged();
    }

    fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        self.base.check_speculation(cluster, me);
        self.early.check_invariants(AHEAD_MAX);
        assert!(me == self.base.what.head || self.queue.is_empty(), "requests wait at the head (Sample 2)");
    }
}

impl<S: Service, M: Speaker> Steps<M> for Sample<S> {
    fn start(&mut self, s: &mut Surroundings<'_, M>) {
        self.base.start(s);
    }

    fn message(&mut self, s: &mut Surroundings<'_, M>, from: Principal, message: Heard<Pass>) {
        match (message, from) {
            (_, _) if self.base.is_stopped() => {}
            (Heard::Request(request), from) if !request.read_only => self.on_request(s, from, request),
            (Heard::Own(pass), Principal::Replica(from)) => self.on_pass(s, from, pass),
            (Heard::Switch(switch), Principal::Replica(from)) => {
                self.base.on_switch(s, from, &switch);
                self.take_early(s);
            }
            (_, from) => s.reject(from, Rejection::WrongSender),
        }
    }

    fn timer(&mut self, s: &mut Surroundings<'_, M>, timer: SpeculativeTimer) {
        match timer {
            SpeculativeTimer::Checkpoint => self.base.on_checkpoint_timeout(s),
            SpeculativeTimer::LowLoad => {}
        }
    }

    fn pass_end(&mut self, s: &mut Surroundings<'_, M>) {
        self.pass(s);
    }

    fn panicked(&mut self, s: &mut Surroundings<'_, M>) {
        self.base.stop(s, StopReason::Panicked, false);
    }

    fn stop(&mut self, s: &mut Surroundings<'_, M>, reason: StopReason, low_load: bool) {
        self.base.stop(s, reason, low_load);
    }
}

/// The client's part: Sample 1 and 4.
pub(crate) struct SampleClient;

impl ClientHalf for SampleClient {
    fn receivers(&self, at: &Asking, _timestamp: Timestamp) -> Vec<ReplicaId> {
        at.replicas.iter().collect()
    }

    fn first(&self, at: &Asking, _timestamp: Timestamp, _everybody: bool) -> Destination {
        Destination::Replica(at.head)
    }

    fn counts(&self, _at: &Asking, _from: ReplicaId) -> bool {
        true
    }

    fn weigh(&self, at: &Asking, responses: &BTreeMap<ReplicaId, Response>) -> Verdict {
        all_equal(responses, at.replicas.all())
    }

    fn believes_certain(&self) -> bool {
        false
    }

    fn asks(&self) -> Option<Step> {
        Some("Sample 1")
    }

    fn accepts(&self) -> Option<Step> {
        Some("Sample 4")
    }

    fn ends(&self) -> Step {
        "Client 6"
    }

    fn complaint(&self) -> Complaint {
        Complaint::Panic
    }
}
