//! The estate: what instances hand on to one another. Service, client table, members, history, agreed time, and the
//! versions of all of it at checkpoints.
//!
//! Execution may be tentative: the batch after the last final one. Undoing it, or anything since the last
//! checkpoint, is one mechanism: load the pages of the checkpoint that differ, and execute the final batches since
//! again (D6 of `docs/protocols.md`).

mod contents;
mod replay;
mod standing;

pub use contents::{Summary, clients_of, genesis_of, page_holder, service_pages};

use crate::auth::{PublicKey, PublicKeys};
use crate::checkpoint::Tree;
use crate::clients::{self, ClientTable, Entry};
use crate::cluster::{ClientId, Cluster, IdentityId, Sequence};
use crate::digest::Digest;
use crate::history::{LogEntry, Logged};
use crate::machine::{Duration, Instant};
use crate::members::{Admission, Members, Room, SessionId, is_leave};
use crate::message::{Outcome, Refusal, Request};
use crate::protocols::total_order::Ordered;
use crate::service::{Agreed, Asker, BadState, PAGES_MAX, PageNumber, Proposal, Service};
use crate::wire::Wire;
use crate::wire_struct;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

/// The client table's pages follow the service's.
const CLIENTS: PageNumber = PAGES_MAX;
/// The members' pages follow the client table's.
const MEMBERS: PageNumber = CLIENTS + clients::PAGES_MAX;
/// The last page of the tree holds the rest.
const META: PageNumber = 2 * PAGES_MAX - 1;

/// Everything replicated that is neither service nor client table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Meta {
    /// The last batch executed, as the running instance counts.
    executed: Sequence,
    /// The hash chain over all requests executed (D3).
    history: Digest,
    /// The agreed time of the last batch that was not null.
    time: Instant,
    /// Requests executed, over all instances.
    position: u64,
    /// The position after which the running instance executes nothing more.
    last: u64,
}
wire_struct!(Meta { executed, history, time, position, last });

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
    pub fn new(cluster: &Cluster, keys: &PublicKeys, service: S) -> Self {
        let mut estate = Self {
            service,
            pinned: keys.identities.clone(),
            clients: ClientTable::new(cluster.limits.sessions_per_identity_max),
            members: Members::new(&cluster.limits),
            meta: Meta { last: u64::MAX, ..Meta::default() },
            tree: Tree::new(),
            versions: BTreeMap::new(),
            earlier: Vec::new(),
            since: Vec::new(),
            interval: Vec::new(),
            tentative: None,
            ended: Vec::new(),
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

    /// Requests executed, over all instances.
    pub const fn position(&self) -> u64 {
        self.meta.position
    }

    /// Whether the running instance has executed all that it may.
    pub const fn is_full(&self) -> bool {
        self.meta.position >= self.meta.last
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

    /// Those who joined.
    pub const fn members(&self) -> &Members {
        &self.members
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
        self.ended.clear();
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
        if !ordered.batch.is_null() {
            self.advance_time(cluster, &ordered.batch.proposal);
        }
        let mut count = 0;
        for request in ordered.requests().filter(|request| !request.is_system()) {
            if self.is_full() {
                break;
            }
            if let Some(outcome) = self.settled(request) {
                answer(request, &outcome, false);
                continue;
            }
            let history = self.meta.history.chain(request.digest());
            let outcome = self.execute_new(cluster, &ordered.batch.proposal, request, history);
            answer(request, &outcome, true);
            self.note(request, outcome);
            count += 1;
        }
        count
    }

    /// Executes the next entry of a history, which makes a batch of its own. `answer` gets the outcome. Returns whether
    /// it was executed now.
    ///
    /// Whoever logs an entry judges it by the state that it has then, which may be an older one: what comes before in
    /// the history and is not executed yet may evict the request's session. So it is judged here, where all replicas
    /// have the same state. What must not be executed (any more) keeps its position in the history and does nothing.
    pub fn execute_entry(
        &mut self,
        cluster: &Cluster,
        logged: &Logged,
        answer: impl FnOnce(&Request, &Outcome),
    ) -> bool {
        let LogEntry { proposal, request } = &logged.entry;
        self.meta.executed = self.meta.executed.next();
        self.advance_time(cluster, proposal);
        if let Some(outcome) = self.settled(request) {
            self.meta.history = logged.history;
            self.meta.position += 1;
            answer(request, &outcome);
            return false;
        }
        let outcome = self.execute_new(cluster, proposal, request, logged.history);
        answer(request, &outcome);
        self.note(request, outcome);
        true
    }

    /// Answers a request that only reads.
    pub(crate) fn query(&self, request: &Request) -> Outcome {
        let answer = self.service.query(&request.operation, &self.asker(request));
        answer.map_or(Outcome::Refused(Refusal::NotReadOnly), Outcome::Done)
    }

    /// Who asks, with the key that speaks for it.
    fn asker(&self, request: &Request) -> Asker {
        let credential = request.credential();
        let pinned = || self.pinned.get(&request.client.identity).copied().unwrap_or_default();
        Asker {
            client: request.client,
            public_key: credential.map_or_else(pinned, |credential| credential.key),
            joined: credential.is_some(),
        }
    }

    fn advance_time(&mut self, cluster: &Cluster, proposal: &Proposal) {
        self.meta.time = agreed_time(self.meta.time, proposal.time, cluster.limits.agreed_time_step_max);
    }

    fn execute_new(&mut self, cluster: &Cluster, proposal: &Proposal, request: &Request, history: Digest) -> Outcome {
        self.meta.history = history;
        self.meta.position += 1;
        if request.operation.len() > cluster.limits.operation_bytes_max {
            return Outcome::Refused(Refusal::TooLarge);
        }
        let now = self.meta.time;
        let agreed = Agreed { time: now, seed: proposal.seed, asker: self.asker(request) };
        if request.client.identity.is_joining() {
            return self.join(cluster, request, agreed).unwrap_or_else(|refusal| self.refuse_join(request, refusal));
        }
        if is_leave(request.client) {
            let outcome = Outcome::Done(Bytes::new());
            self.members.leave(request.client.identity, self.entry(request, outcome.clone()), now);
            self.clients.forget(request.client.identity);
            self.ended.extend(request.credential().map(|credential| credential.session));
            return outcome;
        }
        if request.client.identity.is_member() {
            self.members.touch(request.client.identity, &cluster.limits, now);
        }
        Outcome::Done(self.service.execute(&request.operation, &agreed))
    }

    /// Step M3 of [`crate::members`].
    fn join(&mut self, cluster: &Cluster, request: &Request, agreed: Agreed) -> Result<Outcome, Refusal> {
        let (Some(join), Some(credential)) = (request.join(), request.credential()) else {
            return Err(Refusal::Unauthorized);
        };
        let room @ Room { admission, ends, .. } = self.members.room(cluster, &credential, agreed.time)?;
        let client = ClientId { identity: admission.identity, session: 0 };
        let agreed = Agreed { asker: Asker { client, ..agreed.asker }, ..agreed };
        if !self.service.authorize(&join.identification, &agreed) {
            return Err(Refusal::Unauthorized);
        }
        if let Some(Admission { identity, session }) = ends {
            self.clients.forget(identity);
            self.ended.push(session);
        }
        let outcome = Outcome::Done(admission.to_bytes().into());
        self.members.admit(room, &credential, self.entry(request, outcome.clone()), join.time(), agreed.time);
        Ok(outcome)
    }

    fn refuse_join(&mut self, request: &Request, refusal: Refusal) -> Outcome {
        let outcome = Outcome::Refused(refusal);
        if let (Some(join), Some(credential)) = (request.join(), request.credential()) {
            self.members.refuse(&credential, self.entry(request, outcome.clone()), join.time());
        }
        outcome
    }

    /// Remembers what came of a request just executed. The members table remembers JOIN and LEAVE itself.
    fn note(&mut self, request: &Request, outcome: Outcome) {
        if !request.client.identity.is_joining() && !is_leave(request.client) {
            self.clients.record(request.client, self.entry(request, outcome));
        }
    }

    fn entry(&self, request: &Request, outcome: Outcome) -> Entry {
        let Meta { executed: sequence, position, history, .. } = self.meta;
        Entry { timestamp: request.timestamp, sequence, position, history, outcome }
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

    /// Counts batches from `sequence` on, for an instance that ends at position `last`. Earlier versions can still be
    /// fetched, but not gone back to.
    pub fn begin_instance(&mut self, sequence: Sequence, last: u64) {
        assert!(self.tentative.is_none(), "an instance begins with what is final");
        self.earlier.extend(core::mem::take(&mut self.versions).into_values());
        self.meta.executed = sequence;
        self.meta.last = last;
        self.checkpoint();
    }

    /// Goes back to a version, and counts batches from `sequence` on.
    ///
    /// # Errors
    /// [`BadState`] if the service does not accept its own pages.
    ///
    /// # Panics
    /// If the version is not kept.
    pub fn rewind(&mut self, sequence: Sequence) -> Result<(), BadState> {
        let version = self.versions.get(&sequence).expect("goes back to a version that is kept").clone();
        self.tentative = None;
        self.restore(&version)?;
        assert_eq!(self.meta.position, sequence.0, "versions that are gone back to are named by their positions");
        self.meta.executed = sequence;
        self.meta.last = u64::MAX;
        self.since.clear();
        self.versions.split_off(&sequence.next());
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
        self.meta.executed = sequence;
        self.meta.last = u64::MAX;
        self.since.clear();
        self.earlier.clear();
        self.versions = BTreeMap::from([(sequence, tree)]);
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
        self.clients.save(&mut |number, page| tree.set(CLIENTS + number, page));
        self.members.save(&mut |number, page| tree.set(MEMBERS + number, page));
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
        self.clients.load(&mut part(CLIENTS, MEMBERS))?;
        self.members.load(&mut part(MEMBERS, META))?;
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
