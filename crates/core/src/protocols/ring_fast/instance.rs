//! The ring as an instance of a composition.

use super::message::{RingHeard, RingTimer, Speaker};
use super::state::RingFast;
use crate::cluster::Cluster;
use crate::ids::{ClientId, Principal, ReplicaId};
use crate::notice::Report;
use crate::protocols::speculative::{SpeculativeTimer, as_its_speculation};
use crate::rejection::Rejection;
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::{Abortable, Heard, Steps, Surroundings};
use alloc::vec::Vec;

impl<S: Service> Abortable for RingFast<S> {
    type Service = S;
    type Message = RingHeard;
    type Timer = RingTimer;

    as_its_speculation!();

    fn waiting_clients(&self) -> Vec<ClientId> {
        let panicked = self.panics.clients();
        self.queue.clients().chain(self.base.unconfirmed_clients()).chain(panicked).collect()
    }

    fn describe(&self, report: &mut Report) {
        report.requests_executed = self.base.requests_logged();
        report.pending_requests = self.queue.len();
        report.ring_alarm = self.alarm;
    }

    fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        self.check_state(cluster, me);
    }
}

impl<S: Service, M: Speaker> Steps<M> for RingFast<S> {
    fn start(&mut self, s: &mut Surroundings<'_, M>) {
        self.base.start(s);
        self.load.start(s, self.base.is_stopped());
        if !self.base.is_stopped() {
            Self::set_pace_timer(s);
        }
    }

    fn message(&mut self, s: &mut Surroundings<'_, M>, from: Principal, message: Heard<Self::Message>) {
        match (message, from) {
            (Heard::Request(request), from) if !request.read_only => self.on_request(s, from, request),
            (Heard::Own(RingHeard::Ring(message)), Principal::Replica(from)) => self.on_ring(s, from, message),
            (Heard::Own(RingHeard::Pace(pace)), Principal::Replica(from)) => self.on_pace(s, from, pace),
            (Heard::Own(RingHeard::Pace(pace)), from) => self.on_question(s, from, &pace),
            (Heard::Switch(switch), Principal::Replica(from)) => {
                self.base.on_switch(s, from, &switch);
                self.take(s);
            }
            (_, from) => s.reject(from, Rejection::WrongSender),
        }
    }

    fn timer(&mut self, s: &mut Surroundings<'_, M>, timer: Self::Timer) {
        match timer {
            RingTimer::Speculative(SpeculativeTimer::Checkpoint) => self.base.on_checkpoint_timeout(s),
            RingTimer::Speculative(SpeculativeTimer::LowLoad) => self.load.judge(s, &mut self.base),
            RingTimer::Panic | RingTimer::Pace if self.base.is_stopped() => {}
            RingTimer::Panic => self.on_panic_timeout(s),
            RingTimer::Pace => self.on_pace_timer(s),
        }
    }

    fn pass_end(&mut self, s: &mut Surroundings<'_, M>) {
        Self::pass_end(self, s);
    }

    /// It knows by itself when a client waits too long: what a client says does not make it stop.
    fn panicked(&mut self, _s: &mut Surroundings<'_, M>) {}

    fn stop(&mut self, s: &mut Surroundings<'_, M>, reason: StopReason, low_load: bool) {
        self.base.stop(s, reason, low_load);
    }
}
