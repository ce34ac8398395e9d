//! One server without a protocol: every request is executed and answered on arrival. It runs on the same runtime,
//! wire format, authentication and client as everything else, so it is the yardstick of the benchmarks. It
//! tolerates no fault; a restart begins with an empty state.

use crate::batch::{Batch, Entry, Ordered};
use crate::checkpoint::Evidence;
use crate::clients::Freshness;
use crate::cluster::Cluster;
use crate::history::LogEntry;
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, View};
use crate::machine::Destination;
use crate::message::{Firmness, Outcome, Refusal, Reply, Request};
use crate::notice::Report;
use crate::rejection::Rejection;
use crate::schedule::Specification;
use crate::service::{Proposal, Service};
use crate::stop::{StopReason, SwitchReason};
use crate::switching::{
    Abortable, Certainty, CheckedReport, Heard, HistoryRecord, Ledger, Proof, Speaker, Steps, Surroundings,
};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Unreplicated<S> {
    what: Specification,
    ledger: Ledger<S>,
    requests_executed: u64,
}

impl<S: Service> Unreplicated<S> {
    /// A server over an estate.
    pub const fn open(what: Specification, ledger: Ledger<S>) -> Self {
        Self { what, ledger, requests_executed: 0 }
    }

    /// Requests executed since the process started.
    pub const fn requests_executed(&self) -> u64 {
        self.requests_executed
    }

    fn on_request(&mut self, s: &mut Surroundings<'_, impl Speaker>, request: Request) {
        let (client, timestamp) = (request.client, request.timestamp);
        let mut firmness = Firmness::Final;
        let outcome = if request.read_only {
            firmness = Firmness::Read;
            self.ledger.estate.query(&request)
        } else if let Freshness::Last(entry) = self.ledger.estate.freshness(&request) {
            entry.outcome.clone()
        } else {
            self.execute(s, request)
        };
        let sequence = self.ledger.estate.executed();
        let reply = Reply { instance: self.what.number, view: View(0), sequence, client, timestamp, firmness, outcome };
        s.send(Destination::Client(client), reply);
    }

    fn execute(&mut self, s: &mut Surroundings<'_, impl Speaker>, request: Request) -> Outcome {
        let proposal = Proposal { time: s.now, ..Proposal::default() };
        let batch = Arc::new(Batch::new(proposal, vec![Entry::Inline(request)]));
        let ordered = Ordered {
            sequence: self.ledger.estate.executed().next(),
            view: View(0),
            batch,
            bodies: Vec::new(),
            standing: None,
        };
        let mut outcome = Outcome::Refused(Refusal::StaleTimestamp);
        self.requests_executed +=
            self.ledger.estate.execute(s.cluster, ordered, true, |_, done, _| outcome = done.clone()) as u64;
        if s.cluster.is_checkpoint(self.ledger.estate.executed()) {
            self.ledger.estate.checkpoint();
            self.ledger.estate.forget_versions_before(self.ledger.estate.executed());
        }
        outcome
    }
}

impl<S: Service> Abortable for Unreplicated<S> {
    type Service = S;
    type Message = Infallible;
    type Timer = Infallible;

    fn what(&self) -> &Specification {
        &self.what
    }

    fn report(&self) -> Option<&CheckedReport> {
        None
    }

    fn ledger(&self) -> &Ledger<S> {
        &self.ledger
    }

    fn waiting_clients(&self) -> Vec<ClientId> {
        Vec::new()
    }

    fn replay(&mut self, _cluster: &Cluster, _record: HistoryRecord) {}

    fn retain(&mut self, _entries: Vec<LogEntry>) {}

    fn describe(&self, report: &mut Report) {
        report.requests_executed = self.requests_executed;
    }

    fn begin_with(&mut self, _proof: Proof) {}

    fn restored(&mut self, _evidence: Evidence) {}

    fn lose_log(&mut self) -> bool {
        false
    }

    fn certainty(&self) -> Certainty<'_> {
        Certainty::Newest
    }

    fn left_because(&self) -> SwitchReason {
        SwitchReason::OthersStopped
    }

    fn check_invariants(&self, cluster: &Cluster, _me: ReplicaId) {
        self.ledger.check_invariants(cluster);
        assert!(!self.ledger.estate.is_tentative(), "one server has nothing to undo");
        assert_eq!(self.what.number, InstanceId(1), "nothing follows one server");
    }

    fn halt(self, _cluster: &Cluster) -> Ledger<S> {
        self.ledger
    }
}

impl<S: Service, M: Speaker> Steps<M> for Unreplicated<S> {
    fn start(&mut self, _surroundings: &mut Surroundings<'_, M>) {}

    fn message(&mut self, surroundings: &mut Surroundings<'_, M>, from: Principal, message: Heard<Self::Message>) {
        match message {
            Heard::Request(request) if request.instance == self.what.number => self.on_request(surroundings, request),
            _ => surroundings.reject(from, Rejection::WrongInstance),
        }
    }

    fn timer(&mut self, _surroundings: &mut Surroundings<'_, M>, _timer: Self::Timer) {}

    fn pass_end(&mut self, _surroundings: &mut Surroundings<'_, M>) {}

    fn panicked(&mut self, _surroundings: &mut Surroundings<'_, M>) {}

    fn stop(&mut self, _surroundings: &mut Surroundings<'_, M>, _reason: StopReason, _low_load: bool) {}
}
