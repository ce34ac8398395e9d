//! What is true of an estate between steps.

use super::{Estate, Meta};
use crate::cluster::Cluster;
use crate::service::Service;

impl<S: Service> Estate<S> {
    /// See the [module](self).
    pub(crate) fn check_invariants(&self, cluster: &Cluster) {
        self.check_positions();
        self.check_batches();
        self.check_trace();
        let (newest, tree) = self.newest();
        assert_eq!(self.tree.root(), tree.root(), "what is not saved follows the newest version");
        if newest == self.meta.executed {
            self.clients.check_invariants();
            self.members.check_invariants(&cluster.limits);
        }
    }

    fn check_positions(&self) {
        let Meta { position, last, least, disputed, disputed_last, closed, .. } = self.meta;
        assert!(position <= last, "an instance executes no more than its quota");
        assert!(least <= last, "an instance is open at its end only while it stays");
        assert!(disputed_last <= position, "what was disputed was executed as nothing");
        assert_eq!(disputed > 0, disputed_last > 0, "whatever was disputed has a position");
        assert!(disputed <= disputed_last, "each request that was disputed has a position");
        assert!(closed <= position, "a cluster is closed by a request that was executed");
    }

    /// Versions, and the batches beyond the newest one: to undo the last of them, the others are executed again.
    fn check_batches(&self) {
        let (newest, good) = (self.newest().0, self.executed_for_good());
        assert!(newest <= good, "checkpoints are final");
        if let (Some(first), Some(last)) = (self.since.first(), self.since.last()) {
            assert_eq!(first.sequence, newest.next(), "what follows the newest version is kept");
            assert_eq!(last.sequence, good, "what was executed for good is kept");
            assert_eq!(self.since.len() as u64, good.0 - newest.0, "no batch is missing");
        }
        let follow = self.interval.windows(2).all(|pair| pair[0].sequence.next() == pair[1].sequence);
        assert!(follow, "no batch is missing between two versions");
        if let Some(tentative) = &self.tentative {
            assert_eq!(tentative.ordered.sequence, self.meta.executed, "only the last batch may be undone");
            let requests = self.meta.position - tentative.position;
            let most = tentative.ordered.batch.entries().len() as u64;
            assert!(requests <= most, "a batch executes what stands in it");
        }
    }

    /// Dissent 1 and 5.
    fn check_trace(&self) {
        let Meta { position, effects, ruled, .. } = self.meta;
        assert_eq!(self.trace.first + self.trace.effects.len() as u64, position + 1, "each request leaves a trace");
        assert_eq!(self.trace.effects.back(), Some(&effects), "the trace has come to where the state is");
        assert!(self.rulings.is_sorted_by(|one, next| one.until < next.until), "rulings stand in their order");
        let oldest = self.versions.keys().next();
        let is_new = |until| oldest.is_none_or(|oldest| until > *oldest);
        assert!(self.rulings.iter().all(|ruling| is_new(ruling.until)), "what the oldest version follows is forgotten");
        assert!(ruled <= self.ruled(), "the state follows no ruling but those that it knows");
    }
}
