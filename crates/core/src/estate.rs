//! The estate: what instances hand on to one another. Service, client table, history, agreed time, and the versions
//! of all of it at checkpoints.
//!
//! Execution may be tentative: the batch after the last final one. Undoing it, or anything since the last
//! checkpoint, is one mechanism: load the pages of the checkpoint that differ, and execute the final batches since
//! again (D6 of `docs/protocols.md`).

use crate::checkpoint::Tree;
use crate::clients::{ClientTable, Freshness};
use crate::cluster::{ClientId, Cluster, Sequence, Timestamp};
use crate::digest::Digest;
use crate::machine::{Duration, Instant};
use crate::message::{Outcome, Refusal, Request};
use crate::protocols::total_order::Ordered;
use crate::service::{Agreed, BadState, PAGES_MAX, PageNumber, Proposal, Service};
use crate::wire::Wire;
use crate::wire_struct;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

/// The client table's pages follow the service's.
const CLIENTS: PageNumber = PAGES_MAX;
/// The last page of the tree holds the rest.
const META: PageNumber = 2 * PAGES_MAX - 1;

/// Everything replicated that is neither service nor client table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Meta {
    /// The last batch executed.
    executed: Sequence,
    /// The hash chain over all requests executed (D3).
    history: Digest,
    /// The agreed time of the last batch that was not null.
    time: Instant,
}
wire_struct!(Meta { executed, history, time });

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Estate<S> {
    service: S,
    clients: ClientTable,
    meta: Meta,
    /// The pages as last saved.
    tree: Tree,
    /// The state at checkpoints: for rollback, and for those who fell behind.
    versions: BTreeMap<Sequence, Tree>,
    /// The final batches since the newest version.
    since: Vec<Ordered>,
    /// The last batch executed, while it may still be undone.
    tentative: Option<Tentative>,
}

/// A batch that may still be undone.
#[derive(Clone, Debug)]
struct Tentative {
    ordered: Ordered,
    /// The history before it.
    history: Digest,
}

impl<S: Service> Estate<S> {
    /// The state before the first batch.
    pub fn new(cluster: &Cluster, service: S) -> Self {
        let mut estate = Self {
            service,
            clients: ClientTable::new(cluster.limits.sessions_per_identity_max),
            meta: Meta::default(),
            tree: Tree::new(),
            versions: BTreeMap::new(),
            since: Vec::new(),
            tentative: None,
        };
        estate.checkpoint();
        estate
    }

    /// The application.
    pub const fn service(&self) -> &S {
        &self.service
    }

    /// The last batch executed, tentatively or for good.
    pub const fn executed(&self) -> Sequence {
        self.meta.executed
    }

    /// The last batch executed for good.
    pub const fn executed_for_good(&self) -> Sequence {
        match self.tentative {
            Some(_) => Sequence(self.meta.executed.0 - 1),
            None => self.meta.executed,
        }
    }

    /// The hash chain over all requests executed for good.
    pub const fn history(&self) -> Digest {
        match &self.tentative {
            Some(tentative) => tentative.history,
            None => self.meta.history,
        }
    }

    /// Whether the last batch executed may still be undone.
    pub const fn is_tentative(&self) -> bool {
        self.tentative.is_some()
    }

    /// The digest of the batch that may still be undone.
    pub fn tentative_digest(&self) -> Option<Digest> {
        self.tentative.as_ref().map(|tentative| tentative.ordered.batch.digest())
    }

    /// What the client table says about a request.
    pub fn freshness(&self, request: &Request) -> Freshness<'_> {
        self.clients.check(request.client, request.timestamp)
    }

    /// Whether the request was executed or never will be.
    pub fn is_executed(&self, client: ClientId, timestamp: Timestamp) -> bool {
        !matches!(self.clients.check(client, timestamp), Freshness::New)
    }

    /// Executes the next batch. `answer` gets every request with its outcome; the flag says whether it was executed
    /// now, rather than earlier or never. Returns how many were executed.
    ///
    /// # Panics
    /// If the batch is not the next one, or the last one is still tentative.
    pub fn execute(
        &mut self,
        cluster: &Cluster,
        ordered: Ordered,
        for_good: bool,
        mut answer: impl FnMut(&Request, &Outcome, bool),
    ) -> usize {
        assert!(self.tentative.is_none(), "one tentative batch at a time");
        assert_eq!(ordered.sequence, self.meta.executed.next(), "batches are executed in sequence");
        self.meta.executed = ordered.sequence;
        let history = self.meta.history;
        let count = self.execute_requests(cluster, &ordered, &mut answer);
        if for_good {
            self.since.push(ordered);
        } else {
            self.tentative = Some(Tentative { ordered, history });
        }
        count
    }

    fn execute_requests(
        &mut self,
        cluster: &Cluster,
        ordered: &Ordered,
        answer: &mut impl FnMut(&Request, &Outcome, bool),
    ) -> usize {
        let Proposal { time, seed } = ordered.batch.proposal;
        if !ordered.batch.is_null() {
            self.meta.time = agreed_time(self.meta.time, time, cluster.limits.agreed_time_step_max);
        }
        let mut count = 0;
        for request in ordered.requests() {
            match self.clients.check(request.client, request.timestamp) {
                Freshness::New => {}
                Freshness::Last(entry) => {
                    answer(request, &entry.outcome, false);
                    continue;
                }
                Freshness::Stale => {
                    answer(request, &Outcome::Refused(Refusal::StaleTimestamp), false);
                    continue;
                }
            }
            let outcome = if request.operation.len() > cluster.limits.operation_bytes_max {
                Outcome::Refused(Refusal::TooLarge)
            } else {
                let agreed = Agreed { time: self.meta.time, seed, client: request.client };
                Outcome::Done(self.service.execute(&request.operation, &agreed))
            };
            self.meta.history = self.meta.history.chain(request.digest());
            answer(request, &outcome, true);
            self.clients.record(request.client, request.timestamp, ordered.sequence, outcome);
            count += 1;
        }
        count
    }

    /// The tentative batch is final.
    ///
    /// # Panics
    /// If there is none.
    pub fn confirm(&mut self) {
        let tentative = self.tentative.take().expect("confirmed what was executed tentatively");
        self.since.push(tentative.ordered);
    }

    /// Undoes the tentative batch, if there is one.
    ///
    /// # Errors
    /// [`BadState`] if the service does not accept its own pages.
    pub fn undo(&mut self, cluster: &Cluster) -> Result<(), BadState> {
        if self.tentative.take().is_none() {
            return Ok(());
        }
        let version = self.versions.values().next_back().expect("there is always a version").clone();
        self.restore(&version)?;
        for ordered in core::mem::take(&mut self.since) {
            self.execute(cluster, ordered, true, |_, _, _| ());
        }
        Ok(())
    }

    /// Takes a version of the state as it is now and returns its root.
    ///
    /// # Panics
    /// If a batch is tentative.
    pub fn checkpoint(&mut self) -> Digest {
        assert!(self.tentative.is_none(), "checkpoints are final");
        self.save();
        self.versions.insert(self.meta.executed, self.tree.clone());
        self.since.clear();
        self.tree.root()
    }

    /// The version at a checkpoint, if it is still kept.
    pub fn version(&self, sequence: Sequence) -> Option<&Tree> {
        self.versions.get(&sequence)
    }

    /// The newest version.
    pub fn newest_version(&self) -> &Tree {
        self.versions.values().next_back().expect("there is always a version")
    }

    /// Forgets versions before this one; the newest one always stays.
    pub fn forget_versions_before(&mut self, sequence: Sequence) {
        let newest = self.versions.keys().next_back().copied().unwrap_or_default();
        self.versions = self.versions.split_off(&sequence.min(newest));
    }

    /// Replaces the whole state by a version that others proved.
    ///
    /// # Errors
    /// [`BadState`] if the service does not accept the pages: it is not the service that wrote them.
    pub fn install(&mut self, tree: Tree) -> Result<(), BadState> {
        self.tentative = None;
        self.restore(&tree)?;
        self.versions.clear();
        self.versions.insert(self.meta.executed, tree);
        self.since.clear();
        Ok(())
    }

    /// Hands over every page that changed, and digests them.
    fn save(&mut self) {
        let tree = &mut self.tree;
        self.service.save(&mut |number, page| {
            assert!(number < PAGES_MAX, "a service has pages below PAGES_MAX");
            tree.set(number, page.map(Bytes::from));
        });
        self.clients.save(&mut |number, page| tree.set(CLIENTS + number, page.map(Bytes::from)));
        tree.set(META, Some(Bytes::from(self.meta.to_bytes())));
        tree.seal();
    }

    /// Loads whatever differs between the present state and `target`.
    fn restore(&mut self, target: &Tree) -> Result<(), BadState> {
        self.save();
        let changed = target.changed(&self.tree);
        let part = |low: PageNumber, high: PageNumber| {
            changed
                .iter()
                .filter(move |(number, _)| (low..high).contains(number))
                .map(move |(number, page)| (number - low, page.clone()))
        };
        self.service.load(&mut part(0, CLIENTS))?;
        self.clients.load(&mut part(CLIENTS, META))?;
        let meta = target.get(META).ok_or(BadState)?;
        self.meta = Meta::from_bytes(meta.clone()).map_err(|_| BadState)?;
        self.tree = target.clone();
        Ok(())
    }
}

/// F27: the agreed time grows with every batch, and never by more than a bound, whatever the primary proposes. The
/// first batch sets it.
fn agreed_time(last: Instant, proposed: Instant, step_max: Duration) -> Instant {
    if last == Instant(0) {
        return proposed.max(Instant(1));
    }
    proposed.clamp(last + Duration(1), last + step_max.max(Duration(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreed_time_is_monotone_and_bounded() {
        let step = Duration(100);
        assert_eq!(agreed_time(Instant(0), Instant(5_000), step), Instant(5_000));
        assert_eq!(agreed_time(Instant(5_000), Instant(5_050), step), Instant(5_050));
        assert_eq!(agreed_time(Instant(5_000), Instant(1), step), Instant(5_001));
        assert_eq!(agreed_time(Instant(5_000), Instant(u64::MAX), step), Instant(5_100));
    }
}
