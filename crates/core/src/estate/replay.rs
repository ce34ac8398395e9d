//! Executing again what led to a version that is wrong: was it the requests, or something beside them?

use super::Estate;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::Sequence;
use crate::service::{BadState, Service};

impl<S: Service> Estate<S> {
    /// The newest version is right: nobody will ask what led to it.
    pub fn trust_newest_version(&mut self) {
        self.interval.clear();
    }

    /// Goes back to the version at `from`, executes what led from there to the newest version, and returns the root of
    /// that; `None` if the batches are not here any more. Why a replica went wrong shows in it: was it the batches, or
    /// something beside them? The state is the newest version again only by accident, so another one is to be
    /// installed next.
    ///
    /// # Errors
    /// [`BadState`] if the service does not accept its own pages.
    pub fn replay_interval(&mut self, cluster: &Cluster, from: Sequence) -> Result<Option<Digest>, BadState> {
        let batches = core::mem::take(&mut self.interval);
        let newest = self.versions.keys().next_back().copied();
        let leads = batches.first().is_some_and(|first| first.sequence == from.next())
            && batches.last().map(|last| last.sequence) == newest;
        let Some(version) = self.versions.get(&from).filter(|_| leads).cloned() else { return Ok(None) };
        self.tentative = None;
        self.restore(&version)?;
        for ordered in batches {
            self.execute(cluster, ordered, true, |_, _, _| ());
        }
        self.save();
        Ok(Some(self.tree.root()))
    }
}
