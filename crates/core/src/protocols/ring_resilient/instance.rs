//! The resilient ring as an instance of a composition.

use super::message::Speaker;
use super::state::RingResilient;
use crate::cluster::Cluster;
use crate::history::LogEntry;
use crate::ids::{ClientId, Principal};
use crate::notice::Report;
use crate::protocols::ring_resilient::{ResilientMessage, ResilientTimer};
use crate::rejection::Rejection;
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::{Abortable, CheckedReport, Heard, HistoryRecord, Ledger, Steps, Surroundings};
use alloc::vec::Vec;

impl<S: Service> Abortable for RingResilient<S> {
    type Service = S;
    type Message = ResilientMessage;
    type Timer = ResilientTimer;

    fn report(&self) -> Option<&CheckedReport> {
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

    fn stop(&mut self, s: &mut Surroundings<'_, M>, reason: StopReason, _low_load: bool) {
        self.halt_here(s, reason);
    }
}
