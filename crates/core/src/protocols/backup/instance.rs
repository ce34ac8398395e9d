//! A Backup as an instance of a composition.

use super::message::{BackupMessage, BackupTimer, Speaker};
use super::state::Backup;
use crate::checkpoint::Evidence;
use crate::cluster::Cluster;
use crate::history::LogEntry;
use crate::ids::{ClientId, Principal, ReplicaId};
use crate::notice::Report;
use crate::protocols::total_order::TotalOrder;
use crate::schedule::Specification;
use crate::service::Service;
use crate::stop::{StopReason, SwitchReason};
use crate::switching::{Abortable, Certainty, CheckedReport, Heard, HistoryRecord, Ledger, Proof, Steps, Surroundings};
use alloc::vec::Vec;

impl<O: TotalOrder, S: Service> Abortable for Backup<O, S> {
    type Service = S;
    type Message = BackupMessage<O::Message>;
    type Timer = BackupTimer<O::Timer>;

    fn what(&self) -> &Specification {
        &self.what
    }

    fn report(&self) -> Option<&CheckedReport> {
        self.report.as_ref()
    }

    fn ledger(&self) -> &Ledger<S> {
        &self.ledger
    }

    fn waiting_clients(&self) -> Vec<ClientId> {
        self.clients_that_wait()
    }

    fn replay(&mut self, _cluster: &Cluster, record: HistoryRecord) {
        self.replay_history(record);
    }

    fn retain(&mut self, entries: Vec<LogEntry>) {
        self.ledger.log.retain(entries);
    }

    fn describe(&self, report: &mut Report) {
        self.order.describe(report);
        report.abstaining = !self.order.may_vote();
        report.stable = self.stable.checkpoint().sequence;
        report.stable_root = self.stable.checkpoint().root;
        report.requests_executed = self.requests_executed;
        report.transfer = self.transfer();
        report.differs = self.differs();
    }

    fn begin_with(&mut self, proof: Proof) {
        self.proof = Some(proof);
    }

    fn restored(&mut self, evidence: Evidence) {
        self.resume_at(evidence);
    }

    fn lose_log(&mut self) -> bool {
        self.order.lose_log();
        true
    }

    fn certainty(&self) -> Certainty<'_> {
        Certainty::Certified(&self.stable)
    }

    fn left_because(&self) -> SwitchReason {
        SwitchReason::BackupDone
    }

    fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        self.check_state(cluster, me);
    }

    fn halt(self, cluster: &Cluster) -> Ledger<S> {
        self.into_ledger(cluster)
    }
}

impl<O: TotalOrder, S: Service, M: Speaker<O>> Steps<M> for Backup<O, S> {
    fn start(&mut self, surroundings: &mut Surroundings<'_, M>) {
        Self::start(self, surroundings);
    }

    fn message(&mut self, surroundings: &mut Surroundings<'_, M>, from: Principal, message: Heard<Self::Message>) {
        Self::message(self, surroundings, from, message);
    }

    fn timer(&mut self, surroundings: &mut Surroundings<'_, M>, timer: Self::Timer) {
        match timer {
            BackupTimer::Transfer => self.on_transfer_timeout(surroundings),
            BackupTimer::Opening => self.on_opening_timeout(surroundings),
            BackupTimer::Order(timer) => self.drive(surroundings, |order, context| order.timer(context, timer)),
        }
    }

    fn pass_end(&mut self, surroundings: &mut Surroundings<'_, M>) {
        Self::pass_end(self, surroundings);
    }

    /// No client makes it stop.
    fn panicked(&mut self, _s: &mut Surroundings<'_, M>) {}

    /// A Backup ends by itself, after k requests.
    fn stop(&mut self, _surroundings: &mut Surroundings<'_, M>, _reason: StopReason, _low_load: bool) {}
}
