//! The replica that speculates: Speculation 1, 2 and 4 of the [module](super).

use super::lightweight::Checkpoints;
use super::speaker::Speaker;
use crate::checkpoint::Tree;
use crate::clients::Freshness;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::history::{LogEntry, Logged};
use crate::ids::{ClientId, InstanceId, Sequence};
use crate::message::{Outcome, Request, are_of_distinct_clients};
use crate::notice::Notice;
use crate::schedule::Specification;
use crate::service::{Proposal, Service};
use crate::stop::{StopReason, SwitchReason};
use crate::switching::report::CHECKPOINTS_MAX;
use crate::switching::{AbortReport, Certificates, Certified, CheckedReport, HistoryRecord, Ledger, Surroundings};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The methods of [`crate::switching::Abortable`] that Quorum, ZLight, Chain and both rings leave to their `base`.
macro_rules! as_its_speculation {
    () => {
        as_its_speculation!(but replay);

        fn replay(&mut self, cluster: &$crate::cluster::Cluster, record: $crate::switching::HistoryRecord) {
            self.base.replay(cluster, record);
        }
    };
    (but replay) => {
        fn what(&self) -> &$crate::schedule::Specification {
            &self.base.what
        }

        fn report(&self) -> Option<&$crate::switching::CheckedReport> {
            self.base.report()
        }

        fn ledger(&self) -> &$crate::switching::Ledger<S> {
            &self.base.ledger
        }

        fn retain(&mut self, entries: alloc::vec::Vec<$crate::history::LogEntry>) {
            self.base.ledger.log.retain(entries);
        }

        fn begin_with(&mut self, _proof: $crate::switching::Proof) {}

        fn restored(&mut self, _evidence: $crate::checkpoint::Evidence) {}

        fn lose_log(&mut self) -> bool {
            false
        }

        fn certainty(&self) -> $crate::switching::Certainty<'_> {
            $crate::switching::Certainty::Anchor
        }

        fn left_because(&self) -> $crate::stop::SwitchReason {
            self.base.left_because()
        }

        fn halt(self, _cluster: &$crate::cluster::Cluster) -> $crate::switching::Ledger<S> {
            self.base.halt()
        }
    };
}
pub(crate) use as_its_speculation;

/// What the history says about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may be logged.
    New,
    /// It was executed: with this digest of the history (abs-D5), this came of it.
    Done { position: u64, history: Digest, outcome: Outcome },
    /// Its client has had a later one executed.
    Stale,
}

/// Clients with a request that is logged and not executed, in their order, when the history had this digest. Made when
/// somebody asks: most batches are executed before anybody does.
#[derive(Clone, Debug, Default)]
struct Unexecuted {
    history: Digest,
    clients: Vec<ClientId>,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Speculation<S> {
    pub(crate) what: Specification,
    pub(crate) ledger: Ledger<S>,
    /// L0 and the history's digest there: where this instance began.
    pub(super) init: (u64, Digest),
    pub(super) checkpoints: Checkpoints,
    pub(super) report: Option<CheckedReport>,
    /// Why this replica stopped, once it has.
    pub(super) stop_reason: Option<StopReason>,
    /// See [`Speculation::awaits_execution`].
    unexecuted: Unexecuted,
    pub(super) requests_logged: u64,
    /// The anchor at which the log on disk begins, if it was begun again in this instance.
    pub(super) log_begins: Option<u64>,
}

impl<S: Service> Speculation<S> {
    /// An instance that begins with what the ledger holds.
    pub(crate) fn open(what: Specification, ledger: Ledger<S>) -> Self {
        let init = (ledger.log.length(), ledger.log.history());
        Self {
            what,
            ledger,
            init,
            checkpoints: Checkpoints::default(),
            report: None,
            stop_reason: None,
            unexecuted: Unexecuted::default(),
            requests_logged: 0,
            log_begins: None,
        }
    }

    /// L0 and the history's digest there: where this instance began.
    pub(crate) const fn init(&self) -> (u64, Digest) {
        self.init
    }

    /// The ledger is at an anchor above the history that the instance began with, whose end and digest are these.
    pub(crate) fn resume_after(&mut self, init: (u64, Digest)) {
        self.init = init;
        self.log_begins = Some(self.ledger.log.anchor().position);
    }

    /// The state at the anchor and what is logged above it, when the log on disk may begin there: it is another anchor
    /// than last time, nothing of the init history is above it, and nobody needs a body from below.
    pub(crate) fn begin_log(&mut self) -> Option<(u64, Tree, Vec<LogEntry>)> {
        let Ledger { log, estate, .. } = &self.ledger;
        let anchor = log.anchor().position;
        let may = !self.is_stopped() && anchor >= self.init.0 && log.retained() == 0;
        if !may || self.log_begins == Some(anchor) {
            return None;
        }
        let tree = estate.version(Sequence(anchor))?.clone();
        let entries = log.after(anchor).map(|logged| logged.entry.clone()).collect();
        self.log_begins = Some(anchor);
        Some((anchor, tree, entries))
    }

    /// The first input: what was inherited is made certain as soon as possible (abs-L4).
    pub(crate) fn start(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if self.is_stopped() {
            return;
        }
        if self.ledger.log.boundaries().iter().any(|boundary| boundary.position >= self.init.0) {
            self.announce_again(s);
        } else if self.init.0 > self.ledger.log.anchor().position && self.may_take_checkpoint() {
            self.take_checkpoint(s);
        }
    }

    /// Whether a report has room for one more: see [`crate::switching::report`].
    pub(super) fn may_take_checkpoint(&self) -> bool {
        self.ledger.log.boundaries().len() < CHECKPOINTS_MAX
    }

    /// Requests logged by this instance here.
    pub(crate) const fn requests_logged(&self) -> u64 {
        self.requests_logged
    }

    /// The abort report, once stopped.
    pub(crate) const fn report(&self) -> Option<&CheckedReport> {
        self.report.as_ref()
    }

    /// Whether anything was logged after the init history.
    pub(crate) fn has_logged(&self) -> bool {
        self.ledger.log.length() > self.init.0
    }

    /// Whether this replica has stopped in this instance.
    pub(crate) const fn is_stopped(&self) -> bool {
        self.report.is_some()
    }

    /// Whether so many requests may be logged now: all of a batch, so that the log keeps its bound.
    pub(crate) fn may_log(&self, s: &Surroundings<'_, impl Speaker>, requests: usize) -> bool {
        !self.is_stopped() && !self.checkpoints.is_suspended() && requests as u64 <= self.room(s)
    }

    /// How many requests may be logged now.
    pub(crate) fn room(&self, s: &Surroundings<'_, impl Speaker>) -> u64 {
        let log = &self.ledger.log;
        (log.anchor().position + s.cluster.history_bound()).saturating_sub(log.length())
    }

    /// What a head proposes with its next batch.
    pub(crate) fn propose(&self, s: &Surroundings<'_, impl Speaker>) -> Proposal {
        let log = &self.ledger.log;
        let mut position = [0; 16];
        position[..8].copy_from_slice(&self.what.number.0.to_le_bytes());
        position[8..].copy_from_slice(&log.length().to_le_bytes());
        Proposal { time: s.now, seed: s.keyring.seed(&position) }
    }

    /// Why a head's batch, whose requests are authentic, may not be logged.
    pub(crate) fn objection(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        proposal: &Proposal,
        requests: &[Request],
    ) -> Option<StopReason> {
        let skew = s.cluster.limits.clock_skew_max;
        if proposal.time > s.now + skew || proposal.time + skew < s.now {
            return Some(StopReason::AgreedTime);
        }
        if !are_of_distinct_clients(requests.iter()) {
            return Some(StopReason::Unloggable);
        }
        for request in requests {
            if !Self::is_proper(s, self.what.number, request) || self.repeats(s, request) {
                return Some(StopReason::Unloggable);
            }
        }
        requests.is_empty().then_some(StopReason::Empty)
    }

    /// Whether a head may log an authentic request: it is for this instance, and new as far as this replica knows.
    pub(crate) fn may_be_logged(&mut self, s: &mut Surroundings<'_, impl Speaker>, request: &Request) -> bool {
        Self::is_proper(s, self.what.number, request) && self.standing(s, request) == Standing::New
    }

    /// What a request must be whatever the history is.
    fn is_proper(s: &Surroundings<'_, impl Speaker>, instance: InstanceId, request: &Request) -> bool {
        request.instance == instance
            && !request.read_only
            && request.operation.len() <= s.cluster.limits.operation_bytes_max
    }

    /// Whether the history has this request, or a later one of its session, as far as every head knows that has the
    /// same history: see [`crate::estate::Estate::repeats`].
    fn repeats(&mut self, s: &mut Surroundings<'_, impl Speaker>, request: &Request) -> bool {
        if self.awaits_execution(request.client) {
            self.execute(s, |_, _, _, _| ());
        }
        self.ledger.estate.repeats(request)
    }

    /// Whether something of this client is logged and not executed yet.
    fn awaits_execution(&mut self, client: ClientId) -> bool {
        let Ledger { estate, log, .. } = &self.ledger;
        let (executed, history) = (estate.executed().0, log.history());
        if executed == log.length() {
            return false;
        }
        if self.unexecuted.history != history {
            let mut clients: Vec<_> = log.after(executed).map(|logged| logged.entry.request.client).collect();
            clients.sort_unstable();
            self.unexecuted = Unexecuted { history, clients };
        }
        self.unexecuted.clients.binary_search(&client).is_ok()
    }

    /// Speculation 2.
    pub(crate) fn standing(&mut self, s: &mut Surroundings<'_, impl Speaker>, request: &Request) -> Standing {
        if self.awaits_execution(request.client) {
            self.execute(s, |_, _, _, _| ());
        }
        match self.ledger.estate.freshness(request) {
            Freshness::New => Standing::New,
            Freshness::Stale | Freshness::Gone(_) => Standing::Stale,
            Freshness::Last(entry) => {
                let (position, history) = if entry.position <= self.init.0 {
                    (self.init.0, self.init.1)
                } else {
                    (entry.position, entry.history)
                };
                Standing::Done { position, history, outcome: entry.outcome.clone() }
            }
        }
    }

    /// Speculation 1. The record is to be made durable with [`Speculation::persist`], once for all that is logged in a
    /// step.
    ///
    /// # Panics
    /// If this replica has stopped.
    pub(crate) fn log(&mut self, s: &mut Surroundings<'_, impl Speaker>, proposal: Proposal, request: Request) {
        assert!(!self.is_stopped(), "nothing is logged after the report");
        s.step("Speculation 1");
        self.ledger.log.push(LogEntry::new(proposal, request));
        self.requests_logged += 1;
    }

    /// Takes back what was logged after a position, when nothing was said about it yet.
    pub(crate) fn forget_after(&mut self, position: u64) {
        assert!(position >= self.ledger.estate.executed().0, "what was executed may have been answered");
        assert!(position >= self.init.0, "what the instance began with stays");
        self.requests_logged -= self.ledger.log.length() - position;
        self.ledger.log.cut(position);
    }

    /// Makes what was logged after a position durable before anything that follows leaves. The host is told first: a
    /// crash may come in between, and after it nothing is told again.
    pub(crate) fn persist(&self, s: &mut Surroundings<'_, impl Speaker>, after: u64) {
        let (log, instance) = (&self.ledger.log, self.what.number);
        if log.length() == after {
            return;
        }
        let before = log.history_at(after).expect("logged after a position of this log");
        let entries = log.after(after).map(|logged| (logged.entry.request.digest(), logged.history)).collect();
        s.out.notify(Notice::Logged { instance, first: after + 1, before, entries });
        s.persist_all(instance, HistoryRecord::logged(log.after(after).map(|logged| logged.entry.clone()).collect()));
    }

    /// Executes what is logged, and takes the checkpoints that are due. `answer` gets each entry with its outcome.
    pub(crate) fn execute<M: Speaker>(
        &mut self,
        s: &mut Surroundings<'_, M>,
        mut answer: impl FnMut(&mut Surroundings<'_, M>, &Logged, &Request, &Outcome),
    ) {
        let interval = s.cluster.limits.history_interval;
        loop {
            let Ledger { estate, log, .. } = &mut self.ledger;
            let mut due = false;
            for logged in log.after(estate.executed().0) {
                estate.execute_entry(s.cluster, logged, |request, outcome| answer(s, logged, request, outcome));
                // At the same positions everywhere, however the entries came.
                due = estate.position().is_multiple_of(interval);
                if due {
                    break;
                }
            }
            if !due {
                break;
            }
            if self.may_take_checkpoint() {
                self.take_checkpoint(s);
            }
        }
        assert_eq!(self.ledger.estate.executed().0, self.ledger.log.length(), "all that is logged is executed");
    }

    /// Replays a record of this instance: see [`crate::compositions`].
    pub(crate) fn replay(&mut self, cluster: &Cluster, record: HistoryRecord) {
        match record {
            HistoryRecord::Logged(entries) => {
                for entry in entries {
                    self.ledger.log.push(entry);
                    self.ledger.catch_up(cluster, |_, _, _| ());
                    let is_due = self.ledger.log.length().is_multiple_of(cluster.limits.history_interval);
                    if is_due && self.may_take_checkpoint() {
                        self.ledger.checkpoint();
                    }
                }
            }
            HistoryRecord::Stable(certificate) => self.ledger.certify(certificate.recalled()),
            HistoryRecord::Anchored(boundary) if self.ledger.log.boundaries().contains(&boundary) => {
                self.ledger.anchor_at(boundary);
            }
            HistoryRecord::Stopped(report) => {
                self.report = Some(CheckedReport::recalled(Arc::unwrap_or_clone(report)));
            }
            _ => {}
        }
    }

    /// Speculation 4. Stops for good, and says what was logged.
    pub(crate) fn stop(&mut self, s: &mut Surroundings<'_, impl Speaker>, reason: StopReason, low_load: bool) {
        if self.is_stopped() {
            return;
        }
        s.step("Speculation 4");
        self.execute(s, |_, _, _, _| ());
        let log = &self.ledger.log;
        let report = AbortReport {
            instance: self.what.number,
            anchor: log.anchor(),
            boundaries: log.boundaries().to_vec(),
            digests: log.after(log.anchor().position).map(|logged| logged.digest).collect(),
            low_load,
            silent: s.silent,
            certificates: Certificates::default(),
        };
        let proves = Certified { prepared: None, stable: self.ledger.certificate().cloned() };
        self.stop_with(s, reason, report, proves);
    }

    /// Stops for good, and says this, with what proves it.
    pub(crate) fn stop_with(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        reason: StopReason,
        report: AbortReport,
        proves: Certified,
    ) {
        assert!(!self.is_stopped(), "a report is never made differently (abs-P4)");
        assert_eq!(report.instance, self.what.number, "the report is about this instance");
        let report = CheckedReport::sign(s.keyring, report, proves);
        let record = HistoryRecord::Stopped(Arc::new(report.claim()));
        s.persist(self.what.number, record);
        s.out.notify(Notice::Stopped { instance: self.what.number, reason });
        self.checkpoints.cancel(s);
        self.report = Some(report);
        self.stop_reason = Some(reason);
    }

    /// Why a replica leaves the instance.
    pub(crate) fn left_because(&self) -> SwitchReason {
        self.stop_reason.map_or(SwitchReason::OthersStopped, SwitchReason::Stopped)
    }

    /// Whose requests are logged here and perhaps not everywhere. Each as often as it has some; no more than the bound
    /// of a history.
    pub(crate) fn unconfirmed_clients(&self) -> impl Iterator<Item = ClientId> {
        let log = &self.ledger.log;
        log.after(log.anchor().position).map(|logged| logged.entry.request.client)
    }

    /// Hands the ledger on: nothing of this instance can speak any more.
    pub(crate) fn halt(self) -> Ledger<S> {
        self.ledger
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Limits;
    use crate::history::Boundary;
    use crate::schedule::Protocol;
    use crate::switching::report::BOUNDARIES_MAX;
    use crate::testing::net::Net;

    /// A liar may keep a replica from ever learning that one of its checkpoints is certain, through any number of
    /// instances that end soon: each begins with one more history.
    #[test]
    fn a_report_has_room_for_all_checkpoints_that_are_taken() {
        let net: Net = Net::new(4, Limits::default());
        let ledger = Ledger::new(net.hosts[0].replica.estate().clone());
        let what = Cluster { protocol: Protocol::Quorum, ..net.cluster }.specification(InstanceId(1));
        let mut base = Speculation::open(what, ledger);
        let taken = (1..=BOUNDARIES_MAX as u64).take_while(|position| {
            let may = base.may_take_checkpoint();
            base.ledger.log.mark(Boundary { position: *position, ..Boundary::default() });
            may
        });
        assert_eq!(taken.count(), CHECKPOINTS_MAX);
    }
}
