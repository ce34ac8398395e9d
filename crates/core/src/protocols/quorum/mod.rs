//! Quorum: two message delays, as long as clients do not contend and nobody fails (section 5.1 of the paper).
//!
//! # What it is for
//! A client asks all replicas, each executes at once and answers; there is no other message. It is the fastest that a
//! replicated service can be, and it aborts as soon as two clients' requests arrive in different orders.
//!
//! # Steps
//! * Quorum 1. The client sends its request, with one MAC per replica, to all (the client's part is in
//!   [`crate::client`]).
//! * Quorum 2. A replica that has not executed the client's request logs it, makes it durable, executes it and answers
//!   with the digest of its whole history. One that has answers again (abs-D5).
//! * Quorum 3. n equal answers, in history and result, commit. Anything else makes the client panic.
//! * Quorum 4. Where a protocol for many clients comes next, a replica that sees more than three of them, in each of
//!   five windows of 20 ms that follow one another, stops ([`crowd`]).
//!
//! # Why it is safe
//! n equal digests mean that every correct replica has this very history, and had not stopped. It is therefore in any
//! 2f+1 abort reports at least f+1 times, whatever n is.
//!
//! # Why it is live
//! Without contention and faults all correct replicas receive the same requests in the same order, since a client has
//! one request outstanding. Otherwise the next instance takes over. Quorum 4 takes nothing from that: an instance may
//! abort whenever it likes, and the composition is live because of its Backups alone. It cannot be used to switch for
//! ever: from Chain back to Quorum goes only who has seen no more than one client for two seconds, and whoever makes
//! f+1 replicas see a crowd could as well have sent a PANIC.
//!
//! # Deviations from the paper
//! * Agreed time: nobody proposes one, so it is the client's timestamp, kept growing and bounded like every agreed
//!   time. A request from further in the future than the clocks may differ stops the instance, and the next one orders
//!   it. The seed is the history's digest before the request.
//! * A duplicate is answered from the client table, with the digest at its own position (abs-S4).
//! * In a cluster with signatures, requests to Quorum carry MACs only: nobody has to be convinced of them later.
//! * Quorum 4: the paper's Quorum is left when two requests really arrive in different orders. Requests that come
//!   through one gateway hardly ever do, and then Quorum goes on under any load, at n times the MACs and answers that
//!   Chain needs. Of four clients that are served all the time, two would race sooner or later: leaving before that
//!   costs no client its patience. It is a rule of performance only, judged by each replica for itself.
//!
//! # Cost
//! Per request 2 MACs at each replica, 2n at the client, 2n messages, two delays, one write to the log.

pub(crate) mod client;
pub(crate) mod crowd;
#[cfg(test)]
mod paper_test;

use crate::cluster::Cluster;
use crate::ids::{ClientId, Principal, ReplicaId, View};
use crate::message::Request;
use crate::notice::Report;
use crate::protocols::speculative::{Speaker, Speculation, SpeculativeTimer, Standing, as_its_speculation};
use crate::rejection::Rejection;
use crate::schedule::Specification;
use crate::service::{Proposal, Service};
use crate::stop::StopReason;
use crate::switching::{Abortable, Heard, Ledger, Steps, Surroundings};
use crate::time::Instant;
use alloc::vec::Vec;
use core::convert::Infallible;
use crowd::Crowd;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Quorum<S> {
    pub(crate) base: Speculation<S>,
    /// None where nothing better for many clients comes next.
    crowd: Option<Crowd>,
}

impl<S: Service> Quorum<S> {
    /// An instance that begins with what the ledger holds.
    pub(crate) fn open(what: Specification, ledger: Ledger<S>) -> Self {
        Self { base: Speculation::open(what, ledger), crowd: what.watches_load.then(Crowd::default) }
    }

    /// Quorum 2.
    pub(crate) fn on_request(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, request: Request) {
        if self.base.is_stopped() {
            return;
        }
        match self.base.standing(s, &request) {
            Standing::New => self.log(s, from, request),
            Standing::Done { position, history, outcome } => {
                self.base.respond(s, &request, position, history, &outcome);
            }
            Standing::Stale => s.too_late(from, View(0), &request),
        }
    }

    fn log(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, request: Request) {
        if !self.base.may_log(s, 1) {
            return s.reject(from, Rejection::Overload);
        }
        if self.crowd.as_mut().is_some_and(|crowd| crowd.is_too_much(s.now, request.client)) {
            s.step("Quorum 4");
            return self.base.stop(s, StopReason::Crowded, false);
        }
        if request.timestamp.0 > (s.now + s.cluster.limits.clock_skew_max).0 {
            return self.base.stop(s, StopReason::Future, false);
        }
        s.step("Quorum 2");
        let before = self.base.ledger.log.length();
        let proposal = Proposal { time: Instant(request.timestamp.0), seed: self.base.ledger.log.history() };
        self.base.log(s, proposal, request);
        self.base.persist(s, before);
        self.base.execute_and_respond(s);
    }
}

impl<S: Service> Abortable for Quorum<S> {
    type Service = S;
    type Message = Infallible;
    type Timer = SpeculativeTimer;

    as_its_speculation!();

    fn waiting_clients(&self) -> Vec<ClientId> {
        self.base.unconfirmed_clients().collect()
    }

    fn describe(&self, report: &mut Report) {
        report.requests_executed = self.base.requests_logged();
    }

    fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        self.base.check_speculation(cluster, me);
        self.crowd.iter().for_each(Crowd::check_invariants);
        let Ledger { estate, log, .. } = &self.base.ledger;
        assert_eq!(estate.executed().0, log.length(), "whatever is logged is executed at once (Quorum 2)");
    }
}

impl<S: Service, M: Speaker> Steps<M> for Quorum<S> {
    fn start(&mut self, s: &mut Surroundings<'_, M>) {
        self.base.start(s);
    }

    fn message(&mut self, s: &mut Surroundings<'_, M>, from: Principal, message: Heard<Self::Message>) {
        match (message, from) {
            (Heard::Request(request), from) if !request.read_only => self.on_request(s, from, request),
            (Heard::Switch(switch), Principal::Replica(from)) => self.base.on_switch(s, from, &switch),
            (_, from) => s.reject(from, Rejection::WrongSender),
        }
    }

    fn timer(&mut self, s: &mut Surroundings<'_, M>, timer: Self::Timer) {
        match timer {
            SpeculativeTimer::Checkpoint => self.base.on_checkpoint_timeout(s),
            SpeculativeTimer::LowLoad => {}
        }
    }

    fn pass_end(&mut self, _s: &mut Surroundings<'_, M>) {}

    fn panicked(&mut self, s: &mut Surroundings<'_, M>) {
        self.base.stop(s, StopReason::Panicked, false);
    }

    fn stop(&mut self, s: &mut Surroundings<'_, M>, reason: StopReason, low_load: bool) {
        self.base.stop(s, reason, low_load);
    }
}
