//! The estate: what instances hand on to one another. Service, client table, members, history, agreed time, and the
//! versions of all of it at checkpoints.
//!
//! Execution may be tentative: the batch after the last final one. Undoing it, or anything since the last
//! checkpoint, is one mechanism: load the pages of the checkpoint that differ, and execute the final batches since
//! again (abs-D6).

#[cfg(test)]
mod bundles;
mod closing;
mod contents;
mod effects;
mod execution;
mod invariants;
mod replay;
mod runs;
mod standing;
mod trace;

pub use contents::{Summary, clients_of, genesis_of, page_holder, service_pages, successor_of};
pub use trace::Ruled;

use crate::auth::PublicKeys;
use crate::batch::Ordered;
use crate::checkpoint::Tree;
use crate::clients::{self, ClientTable};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{IdentityId, PublicKey, Sequence};
use crate::joining::SessionId;
use crate::members::Members;
use crate::service::{BadState, PAGES_MAX, PageNumber, Service};
use crate::time::{Duration, Instant};
use crate::wire::Wire;
use crate::wire_struct;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

/// The client table's pages follow the service's.
const CLIENTS: PageNumber = PAGES_MAX;
/// The members' pages follow the client table's.
const MEMBERS: PageNumber = CLIENTS + clients::PAGES_MAX;
/// What the order of a Backup has to know to go on, if it wants that to be a part of the state.
const ORDER: PageNumber = META - 1;
/// The last page of the tree holds the rest.
const META: PageNumber = 2 * PAGES_MAX - 1;

/// Everything replicated that is neither service nor client table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Meta {
    /// The last batch executed, as the running instance counts.
    executed: Sequence,
    /// The hash chain over all requests executed (abs-D3).
    history: Digest,
    /// The hash chain over all that they answered and wrote.
    effects: Digest,
    /// The agreed time of the last batch that was not null.
    time: Instant,
    /// Requests executed, over all instances.
    position: u64,
    /// The position after which the running instance executes nothing more.
    last: u64,
    /// The position that this comes to, at least, where somebody is missing and it is open how long it lasts.
    least: u64,
    /// The batch of the last ruling, of those executed.
    ruled: Sequence,
    /// Requests that were refused because they are disputed.
    disputed: u64,
    /// The position of the last of them.
    disputed_last: u64,
    /// The position of the request that closed the cluster; 0 while it is open.
    closed: u64,
    /// The position from which on requests are executed together again.
    alone: u64,
}
wire_struct!(Meta {
    executed,
    history,
    effects,
    time,
    position,
    last,
    least,
    ruled,
    disputed,
    disputed_last,
    closed,
    alone
});

impl Meta {
    fn closed(&self) -> Option<u64> {
        (self.closed > 0).then_some(self.closed)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Estate<S> {
    service: S,
    /// The keys of the identities that the cluster file names.
    pinned: BTreeMap<IdentityId, PublicKey>,
    clients: ClientTable,
    /// Those who joined. Empty in clusters that do not let anybody join.
    members: Members,
    meta: Meta,
    standing: Option<Bytes>,
    /// The pages as last saved.
    tree: Tree,
    /// The state at checkpoints: for rollback, and for those who fell behind.
    versions: BTreeMap<Sequence, Tree>,
    /// Versions of earlier instances, for those who have to fetch one of them.
    earlier: Vec<Tree>,
    /// The final batches since the newest version.
    since: Vec<Ordered>,
    /// Those between the newest version and the one before it, until it is known to be right.
    interval: Vec<Ordered>,
    /// The last batch executed, while it may still be undone.
    tentative: Option<Tentative>,
    /// The sessions that the last batch executed ended.
    ended: Vec<SessionId>,
    /// What was answered and written since the oldest version, and a while before, request by request.
    trace: trace::Trace,
    /// The rulings that the oldest version does not follow yet, in the order of their batches.
    rulings: Vec<Ruled>,
    /// The batch that ended the stay of the running instance, if one has.
    stay_ends: Option<Sequence>,
}

/// A batch that may still be undone.
#[derive(Clone, Debug)]
struct Tentative {
    ordered: Ordered,
    /// The history before it.
    history: Digest,
    /// Requests executed before it.
    position: u64,
}

impl<S: Service> Estate<S> {
    /// The state before the first batch.
    pub fn new(cluster: &Cluster, keys: &PublicKeys, service: S) -> Self {
        let mut estate = Self {
            service,
            pinned: keys.identities.clone(),
            clients: ClientTable::new(cluster.limits.sessions_per_identity_max),
            members: Members::new(&cluster.limits),
            meta: Meta { last: u64::MAX, least: u64::MAX, ..Meta::default() },
            standing: None,
            tree: Tree::new(),
            versions: BTreeMap::new(),
            earlier: Vec::new(),
            since: Vec::new(),
            interval: Vec::new(),
            tentative: None,
            ended: Vec::new(),
            trace: trace::Trace::new(cluster),
            rulings: Vec::new(),
            stay_ends: None,
        };
        estate.return_trace();
        // What a service has from the beginning nobody wrote: whoever starts again makes it again.
        estate.service.take_written();
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

    /// Requests executed, over all instances.
    pub const fn position(&self) -> u64 {
        self.meta.position
    }

    /// Whether the running instance has executed all that it may.
    pub const fn is_full(&self) -> bool {
        self.meta.position >= self.meta.last
    }

    /// Whether it may have with so many requests more.
    pub const fn is_full_after(&self, requests: usize) -> bool {
        self.meta.position.saturating_add(requests as u64) >= self.meta.last
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

    /// What the order has to know to go on after the last batch executed, if it said so.
    pub const fn standing(&self) -> Option<&Bytes> {
        self.standing.as_ref()
    }

    /// Those who joined.
    pub const fn members(&self) -> &Members {
        &self.members
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
        self.interval = core::mem::take(&mut self.since);
        self.tree.root()
    }

    /// The version at a checkpoint, if it is still kept.
    pub fn version(&self, sequence: Sequence) -> Option<&Tree> {
        self.versions.get(&sequence)
    }

    /// The newest version, with the batch after which it was taken.
    pub fn newest(&self) -> (Sequence, &Tree) {
        let (sequence, tree) = self.versions.iter().next_back().expect("there is always a version");
        (*sequence, tree)
    }

    /// The newest version.
    pub fn newest_version(&self) -> &Tree {
        self.versions.values().next_back().expect("there is always a version")
    }

    /// Forgets versions before this one; the newest one always stays.
    pub fn forget_versions_before(&mut self, sequence: Sequence) {
        let newest = self.versions.keys().next_back().copied().unwrap_or_default();
        self.versions = self.versions.split_off(&sequence.min(newest));
        self.earlier.clear();
        self.forget_effects();
        assert!(!self.versions.is_empty(), "there is always a version");
    }

    /// Replaces the whole state by a version that others proved.
    ///
    /// # Errors
    /// [`BadState`] if the service does not accept the pages: it is not the service that wrote them.
    pub fn install(&mut self, tree: Tree) -> Result<(), BadState> {
        self.replace(tree, None)
    }

    /// Replaces the state, which is wrong, by one that was ruled to be right. The version at the stable checkpoint
    /// stays: from there replicas testify and go back, until another one is stable.
    ///
    /// # Errors
    /// [`BadState`] if the service does not accept the pages: it is not the service that wrote them.
    pub fn repair(&mut self, tree: Tree, stable: Sequence) -> Result<(), BadState> {
        self.replace(tree, Some(stable))
    }

    fn replace(&mut self, tree: Tree, kept: Option<Sequence>) -> Result<(), BadState> {
        self.tentative = None;
        self.restore(&tree)?;
        self.versions.retain(|sequence, _| Some(*sequence) == kept);
        self.versions.insert(self.meta.executed, tree);
        self.since.clear();
        self.forget_effects();
        Ok(())
    }

    /// Counts batches from `sequence` on, for an instance that ends at position `least`; or, if it `stays`, not before
    /// that and [`Self::end_stay`]. Earlier versions can still be fetched, but not gone back to.
    pub fn begin_instance(&mut self, sequence: Sequence, least: u64, stays: bool) {
        assert!(self.tentative.is_none(), "an instance begins with what is final");
        self.earlier.extend(core::mem::take(&mut self.versions).into_values());
        self.forget_rulings();
        self.standing = None;
        self.count_batches(sequence, (least, if stays { u64::MAX } else { least }));
    }

    /// Whether batches are counted, of an instance that comes to an end by itself, and not positions.
    pub const fn is_in_backup(&self) -> bool {
        self.meta.least < u64::MAX
    }

    /// Whether it is open how long the running instance lasts.
    pub const fn stays(&self) -> bool {
        self.meta.last > self.meta.least
    }

    /// The batch just executed says that nobody is missing any more: the instance ends with it, or where it ends at
    /// least.
    pub fn end_stay(&mut self, batch: Sequence) {
        assert_eq!(self.meta.executed, batch, "the end of a stay is executed with its batch");
        self.stay_ends = Some(batch);
        self.meta.last = self.meta.least.max(self.meta.position);
        self.meta.least = self.meta.last;
    }

    /// The state is where the running instance begins.
    fn count_batches(&mut self, sequence: Sequence, (least, last): (u64, u64)) {
        self.meta.executed = sequence;
        self.meta.least = least;
        self.meta.last = last;
        self.meta.ruled = Sequence(0);
        self.since.clear();
        self.checkpoint();
        self.interval.clear();
        self.forget_effects();
    }

    /// The running instance comes to no end by itself, and each request of it is a batch.
    fn count_positions(&mut self, sequence: Sequence) {
        self.meta.executed = sequence;
        (self.meta.least, self.meta.last) = (u64::MAX, u64::MAX);
        self.forget_rulings();
    }

    /// Goes back to a version, and counts batches from `sequence` on.
    ///
    /// # Errors
    /// [`BadState`] if the service does not accept its own pages.
    ///
    /// # Panics
    /// If the version is not kept.
    pub fn rewind(&mut self, sequence: Sequence) -> Result<(), BadState> {
        self.return_to(sequence)?;
        assert_eq!(self.meta.position, sequence.0, "versions that are gone back to are named by their positions");
        self.count_positions(sequence);
        Ok(())
    }

    /// The state is that of a version again, which is the newest one then.
    fn return_to(&mut self, sequence: Sequence) -> Result<(), BadState> {
        let version = self.versions.get(&sequence).expect("goes back to a version that is kept").clone();
        self.tentative = None;
        self.restore(&version)?;
        self.since.clear();
        self.versions.split_off(&sequence.next());
        assert_eq!(self.newest().0, sequence, "what came after is undone");
        Ok(())
    }

    /// Replaces the whole state by a version that others had, and counts batches from `sequence` on.
    ///
    /// # Errors
    /// [`BadState`] if the service does not accept the pages: it is not the service that wrote them.
    pub fn install_at(&mut self, tree: Tree, sequence: Sequence) -> Result<(), BadState> {
        self.install(tree)?;
        self.anchor_at(sequence);
        Ok(())
    }

    /// The state just executed is the end of an instance, and where the next one begins: from now on it is the version
    /// at `sequence`, and the only one.
    pub fn anchor_at(&mut self, sequence: Sequence) {
        let tree = self.newest_version().clone();
        self.count_positions(sequence);
        self.since.clear();
        self.earlier.clear();
        self.versions = BTreeMap::from([(sequence, tree)]);
        self.forget_effects();
    }

    /// The version with this root, if it is still kept.
    pub fn version_with(&self, root: Digest) -> Option<&Tree> {
        self.versions.values().chain(&self.earlier).find(|tree| tree.root() == root)
    }

    /// The newest version at or below a batch.
    pub fn version_before(&self, sequence: Sequence) -> Option<Sequence> {
        self.versions.range(..=sequence).next_back().map(|(sequence, _)| *sequence)
    }

    /// Hands over every page that changed, and digests them.
    fn save(&mut self) {
        let tree = &mut self.tree;
        self.service.save(&mut |number, page| {
            assert!(number < PAGES_MAX, "a service has pages below PAGES_MAX");
            tree.set(number, page);
        });
        self.clients.save(&mut |number, page| {
            assert!(number < MEMBERS - CLIENTS, "the client table's pages end where the members' begin");
            tree.set(CLIENTS + number, page);
        });
        self.members.save(&mut |number, page| {
            assert!(number < ORDER - MEMBERS, "the members' pages end before the last two");
            tree.set(MEMBERS + number, page);
        });
        tree.set(ORDER, self.standing.clone());
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
        self.service.take_written();
        self.clients.load(&mut part(CLIENTS, MEMBERS))?;
        self.members.load(&mut part(MEMBERS, ORDER))?;
        self.standing = target.get(ORDER).cloned();
        let meta = target.get(META).ok_or(BadState)?;
        self.meta = Meta::from_bytes(meta.clone()).map_err(|_| BadState)?;
        self.return_trace();
        self.tree = target.clone();
        Ok(())
    }
}

/// prac-F27: the agreed time grows with every batch, and never by more than a bound, whatever the primary proposes. The
/// first batch sets it.
fn agreed_time(last: Instant, proposed: Instant, step_max: Duration) -> Instant {
    if last == Instant(0) {
        return proposed.max(Instant(1));
    }
    proposed.clamp(last + Duration(1), last + step_max.max(Duration(1)))
}

/// Requests as the next batch of a state.
#[cfg(test)]
fn next_batch<S: Service>(estate: &Estate<S>, requests: impl IntoIterator<Item = crate::message::Request>) -> Ordered {
    let entries = requests.into_iter().map(crate::batch::Entry::Inline).collect();
    let batch = alloc::sync::Arc::new(crate::batch::Batch::new(crate::service::Proposal::default(), entries));
    let (sequence, view) = (estate.executed().next(), crate::ids::View(0));
    Ordered { sequence, view, batch, bodies: Vec::new(), standing: None }
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
