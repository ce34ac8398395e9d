//! What is true of an instance that speculates, between steps.

use super::speculation::Speculation;
use crate::cluster::Cluster;
use crate::ids::ReplicaId;
use crate::service::Service;
use crate::switching::report::BOUNDARIES_MAX;

impl<S: Service> Speculation<S> {
    /// Of any instance with a history: see the [module](self).
    pub(crate) fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        self.ledger.check_invariants(cluster);
        self.check_positions();
        self.check_bounds(cluster);
        self.check_stop(me);
    }

    /// anchor ≤ executed ≤ length, and the init history is a part of the log.
    fn check_positions(&self) {
        let (estate, log) = (&self.ledger.estate, &self.ledger.log);
        let (anchor, executed, length) = (log.anchor().position, estate.executed().0, log.length());
        assert_eq!(executed, estate.position(), "each entry is a batch of its own");
        assert!(!estate.is_tentative(), "what is taken back is taken back to a version (abs-D6)");
        assert!(anchor <= executed, "what is certain is executed");
        assert!(executed <= length, "what is executed is logged");
        assert_eq!(Some(estate.history()), log.history_at(executed), "the state is that of the history (abs-D4)");
        assert!(self.init.0 <= length, "what the instance began with stays");
        let begins = log.history_at(self.init.0);
        assert!(begins.is_none_or(|begins| begins == self.init.1), "the instance goes on from its init history");
        assert!(self.log_begins.is_none_or(|begins| begins <= anchor), "the log on disk begins at an anchor");
        assert!(self.requests_logged <= length - self.init.0, "what was logged here stays logged");
    }

    /// What others accept in a report: [`crate::switching::report`].
    fn check_bounds(&self, cluster: &Cluster) {
        let log = &self.ledger.log;
        let (anchor, length) = (log.anchor().position, log.length());
        let most = self.init.0.max(anchor + cluster.history_bound());
        assert!(length <= most, "nothing is logged more than history_bound above the anchor");
        let inherited = self.init.0.saturating_sub(anchor);
        assert!(inherited <= cluster.inherited_bound(), "no more than inherited_bound is inherited above the anchor");
        assert!(log.boundaries().len() <= BOUNDARIES_MAX, "at most BOUNDARIES_MAX");
    }

    /// Speculation 4: it has stopped if and only if there is a report.
    fn check_stop(&self, me: ReplicaId) {
        assert!(self.stop_reason.is_none() || self.is_stopped(), "who has a reason to stop has stopped");
        let Some(report) = &self.report else { return };
        assert_eq!(report.signer(), me, "a replica reports what it has logged itself");
        assert_eq!(report.value().instance, self.what.number, "the report is about this instance");
        // A checkpoint that was not due is not taken again after a crash.
        let anchor = self.ledger.log.anchor();
        assert!(report.value().anchor.position >= anchor.position, "nothing becomes certain here any more");
    }

    /// Of an instance that answers before anything is agreed: its checkpoints are lightweight, and all that it has
    /// logged it reports.
    pub(crate) fn check_speculation(&self, cluster: &Cluster, me: ReplicaId) {
        self.check_invariants(cluster, me);
        let log = &self.ledger.log;
        self.checkpoints.check_invariants(cluster, me, log.anchor().position);
        let is_under_way = !log.boundaries().is_empty() && !self.is_stopped();
        assert!(is_under_way || !self.checkpoints.armed, "only a checkpoint that is under way is repeated");
        if let Some(report) = &self.report {
            assert_eq!(report.value().anchor, log.anchor(), "nothing becomes certain after the report");
            assert_eq!(report.value().end(), log.length(), "nothing is logged after the report");
            let last = report.value().digests.last().copied();
            let logged = log.at(log.length()).map(|logged| logged.digest);
            assert_eq!(last, logged, "what is reported is what was logged");
        }
    }
}
