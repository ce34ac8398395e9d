//! Fetching a version of the state from others of whom some may lie.
//!
//! The target is a certified checkpoint, so its root is known, and from there downwards the digest of everything
//! that is asked for: a node's content proves the digests of its children, and a page is a child. Whatever arrives is
//! checked before it is used, so a liar can delay but not deceive, and cannot make this replica ask for more
//! than the state holds. Subtrees that are here already (same place, same digest) are not fetched.
//!
//! * **Order.** Pages first, then the deepest nodes: what is known to be missing stays short, about a node's children
//!   per level, however large the state.
//! * **Senders** take turns, each with an equal share of the outstanding requests, so that a slow one delays its
//!   share only. One that lies is not asked again, one that is silent or has the version no more rests; if nobody is
//!   left, those that rest are asked again after a pause, and if nobody rests, the liars.
//! * **Moving targets.** Under load the version fetched is discarded by its senders sooner or later. Then
//!   [`Transfer::retarget`] goes on with a newer certificate, and everything fetched so far is part of what is here.

mod message;

pub use message::{TransferMessage, serve};

use super::{ChildId, Evidence, NODE_CHILDREN, NodeContent, NodeId, Tree, page_digest};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::ReplicaId;
use crate::rejection::Rejection;
use crate::service::PageNumber;
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use core::cmp::Reverse;

/// The most by which the patience with a sender grows, as a factor of the first.
const PATIENCE_FACTOR_MAX: u64 = 4;
/// How long to wait before senders that failed are asked again, when all have.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Something to fetch. What comes first in the order is fetched first: see the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Page(PageNumber),
    /// Nodes of deeper levels are greater.
    Node(Reverse<NodeId>),
}

impl From<ChildId> for Item {
    fn from(child: ChildId) -> Self {
        match child {
            ChildId::Page(number) => Self::Page(number),
            ChildId::Node(node) => Self::Node(Reverse(node)),
        }
    }
}

/// What is known about an item that is missing.
#[derive(Clone, Copy, Debug)]
struct Want {
    /// The digest that it must have.
    digest: Digest,
    /// How often it has been asked for.
    attempts: u32,
}

/// A request without an answer yet.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    to: ReplicaId,
    deadline: Instant,
}

/// What a message did for the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing: an answer that came too late, or that the sender does not have the version.
    None,
    /// Something that was missing is here now.
    Received,
    /// Nothing is missing any more: [`Transfer::finish`] has the state.
    Complete,
}

/// One running transfer. See the [module](self).
#[derive(Clone, Debug)]
pub struct Transfer {
    target: Evidence,
    patience: Duration,
    /// What is here, sealed: at the start, or when the target last moved.
    base: Tree,
    /// The base on its way to becoming the target.
    building: Tree,
    wanted: BTreeMap<Item, Want>,
    outstanding: BTreeMap<Item, Outstanding>,
    senders: Senders,
    received: u64,
}

impl Transfer {
    /// Begins to fetch the state that `target` names for replica `me` of `n`, which has `base`, sealed.
    /// [`Transfer::finish`] may have the state at once. A sender has `patience` to answer before another one is asked,
    /// more each time that the same item is asked for again; an answer that comes later is still used.
    pub fn new(target: Evidence, base: Tree, me: ReplicaId, n: usize, patience: Duration) -> Self {
        let mut transfer = Self {
            target,
            patience,
            building: base.clone(),
            base,
            wanted: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            senders: Senders::new(me, n),
            received: 0,
        };
        transfer.want_root();
        transfer
    }

    fn want_root(&mut self) {
        let root = self.target.checkpoint().root;
        if root == Digest::ZERO {
            self.building = Tree::new();
        } else if root != self.base.root() {
            self.wanted.insert(Item::Node(Reverse(NodeId::ROOT)), Want { digest: root, attempts: 0 });
        }
    }

    /// The state that is being fetched, and why.
    pub const fn target(&self) -> &Evidence {
        &self.target
    }

    /// Pages and nodes received so far.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Moves on to a newer state. What was fetched is kept, so that
    /// [`Transfer::finish`] may have the state at once. An older one is ignored.
    pub fn retarget(&mut self, target: Evidence) {
        if target.checkpoint().sequence <= self.target.checkpoint().sequence {
            return;
        }
        self.target = target;
        self.building.seal();
        self.base = self.building.clone();
        self.wanted.clear();
        self.outstanding.clear();
        self.senders.resting.clear();
        self.want_root();
    }

    const fn version(&self) -> Digest {
        self.target.checkpoint().root
    }

    /// The requests to send now, so that at most `max_outstanding` are without an answer. To be called after every
    /// message and at [`Transfer::wake_at`].
    pub fn next_requests(&mut self, now: Instant, max_outstanding: usize) -> Vec<(ReplicaId, TransferMessage)> {
        self.give_up_late_requests(now);
        let mut requests = Vec::new();
        while self.outstanding.len() < max_outstanding {
            let next = self.wanted.iter_mut().find(|(item, _)| !self.outstanding.contains_key(item));
            let Some((&item, want)) = next else { break };
            let Some(to) = self.senders.pick(now, max_outstanding, &self.outstanding) else { break };
            let timeout = self.patience.doubled(want.attempts, Duration(self.patience.0 * PATIENCE_FACTOR_MAX));
            want.attempts += 1;
            self.outstanding.insert(item, Outstanding { to, deadline: now + timeout });
            let version = self.target.checkpoint().root;
            let request = match item {
                Item::Page(number) => TransferMessage::FetchPage { version, number },
                Item::Node(Reverse(node)) => TransferMessage::FetchNode { version, node },
            };
            requests.push((to, request));
        }
        requests
    }

    /// When to call [`Transfer::next_requests`] at the latest, if no message comes before.
    pub fn wake_at(&self) -> Option<Instant> {
        let deadlines = self.outstanding.values().map(|outstanding| outstanding.deadline);
        deadlines.chain(self.senders.paused_until).min()
    }

    fn give_up_late_requests(&mut self, now: Instant) {
        let late = self.outstanding.values().filter(|outstanding| outstanding.deadline <= now);
        self.senders.resting.extend(late.map(|outstanding| outstanding.to));
        self.outstanding.retain(|_, outstanding| outstanding.deadline > now);
    }

    /// Handles an answer.
    ///
    /// # Errors
    /// [`Rejection::Unsolicited`] if the sender owes no answer; [`Rejection::BadPage`] if it lied.
    pub fn on_message(&mut self, from: ReplicaId, message: TransferMessage) -> Result<Progress, Rejection> {
        let owed = self.senders.owed.get_mut(&from).filter(|owed| **owed > 0).ok_or(Rejection::Unsolicited)?;
        match message {
            TransferMessage::FetchNode { .. } | TransferMessage::FetchPage { .. } => Err(Rejection::Unsolicited),
            TransferMessage::Gone { version } => {
                *owed -= 1;
                if version == self.version() {
                    self.senders.resting.insert(from);
                    self.outstanding.retain(|_, outstanding| outstanding.to != from);
                }
                Ok(Progress::None)
            }
            TransferMessage::Node { version, node, content } => {
                *owed -= 1;
                let received = self.receive(from, version, Item::Node(Reverse(node)), content.digest())?;
                if received {
                    self.use_node(node, &content);
                }
                Ok(self.progress(received))
            }
            TransferMessage::Page { version, number, content } => {
                *owed -= 1;
                let received = self.receive(from, version, Item::Page(number), page_digest(number, &content))?;
                if received {
                    // A slice of the receive buffer would keep all of the buffer in memory.
                    self.building.set(number, Some(Bytes::copy_from_slice(&content)));
                }
                Ok(self.progress(received))
            }
        }
    }

    fn progress(&self, received: bool) -> Progress {
        match (received, self.wanted.is_empty()) {
            (false, _) => Progress::None,
            (true, false) => Progress::Received,
            (true, true) => Progress::Complete,
        }
    }

    /// Whether this answer is what is wanted: then it is missing no more.
    fn receive(&mut self, from: ReplicaId, version: Digest, item: Item, digest: Digest) -> Result<bool, Rejection> {
        let Some(want) = self.wanted.get(&item) else { return Ok(false) };
        if want.digest == digest {
            self.wanted.remove(&item);
            self.outstanding.remove(&item);
            self.senders.resting.remove(&from);
            self.received += 1;
            debug_assert!(!self.outstanding.contains_key(&item), "what is here is not waited for");
            return Ok(true);
        }
        // An answer for an earlier target may well differ from what is wanted now.
        if version != self.version() {
            return Ok(false);
        }
        self.senders.liars.insert(from);
        self.outstanding.retain(|_, outstanding| outstanding.to != from);
        Err(Rejection::BadPage)
    }

    /// Compares a node of the target with the same node here: what is missing is wanted, what is too much removed.
    fn use_node(&mut self, node: NodeId, content: &NodeContent) {
        let here = self.base.node(node).unwrap_or(NodeContent::EMPTY);
        for slot in 0..NODE_CHILDREN as u32 {
            let child = node.child(slot);
            match (content.child(slot), here.child(slot), child) {
                (there, here, _) if there == here => {}
                (Some(digest), _, _) => {
                    self.wanted.insert(child.into(), Want { digest, attempts: 0 });
                }
                (None, _, ChildId::Page(number)) => self.building.set(number, None),
                (None, _, ChildId::Node(node)) => {
                    self.base.below(node).for_each(|(number, _)| self.building.set(number, None));
                }
            }
        }
    }

    /// The state, sealed and with the target's root, if nothing is missing.
    pub fn finish(&mut self) -> Option<Tree> {
        if !self.wanted.is_empty() {
            return None;
        }
        self.building.seal();
        assert_eq!(self.building.root(), self.target.checkpoint().root, "every part has the digest that it must have");
        Some(self.building.clone())
    }

    /// What is true between steps.
    pub(crate) fn check_invariants(&self, cluster: &Cluster) {
        let Self { wanted, outstanding, .. } = self;
        assert!(outstanding.keys().all(|item| wanted.contains_key(item)), "only what is missing is waited for");
        assert!(outstanding.keys().all(|item| wanted[item].attempts > 0), "what is waited for was asked for");
        assert!(outstanding.len() <= cluster.limits.transfer_requests_max, "at most transfer_requests_max");
        assert!(wanted.values().all(|want| want.digest != Digest::ZERO), "what is not there is not fetched");
        assert!(outstanding.values().all(|of| self.senders.owed.contains_key(&of.to)), "others are asked");
        self.senders.check_invariants(cluster);
    }
}

/// Whom to ask next.
#[derive(Clone, Debug)]
struct Senders {
    /// Everybody else, with the number of answers that it may still give.
    owed: BTreeMap<ReplicaId, u64>,
    /// Whoever was asked last.
    last: ReplicaId,
    /// Sent what does not have the digest that it must have.
    liars: BTreeSet<ReplicaId>,
    /// Let a request time out, or does not have this version.
    resting: BTreeSet<ReplicaId>,
    /// Nobody is asked before, because everybody failed.
    paused_until: Option<Instant>,
}

impl Senders {
    fn new(me: ReplicaId, n: usize) -> Self {
        let owed = (0..n as u8).map(ReplicaId).filter(|id| *id != me).map(|id| (id, 0)).collect();
        Self { owed, last: me, liars: BTreeSet::new(), resting: BTreeSet::new(), paused_until: None }
    }

    fn check_invariants(&self, cluster: &Cluster) {
        assert_eq!(self.owed.len() + 1, cluster.replicas.n(), "all but this replica have the state, or not");
        assert!(self.owed.keys().all(|id| cluster.replicas.contains(*id)), "replicas have the state");
        assert!(self.liars.iter().all(|id| self.owed.contains_key(id)), "only who was asked has lied");
        assert!(self.resting.iter().all(|id| self.owed.contains_key(id)), "only who was asked rests");
    }

    /// The next in turn that may be asked and has not used up its share.
    fn pick(
        &mut self,
        now: Instant,
        max_outstanding: usize,
        outstanding: &BTreeMap<Item, Outstanding>,
    ) -> Option<ReplicaId> {
        if self.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        self.paused_until = None;
        let fit = |id: &ReplicaId| !self.liars.contains(id) && !self.resting.contains(id);
        let fit: Vec<ReplicaId> = self.owed.keys().copied().filter(fit).collect();
        if fit.is_empty() {
            let failed = if self.resting.is_empty() { &mut self.liars } else { &mut self.resting };
            failed.clear();
            self.paused_until = Some(now + PAUSE);
            return None;
        }
        let share = max_outstanding.div_ceil(fit.len());
        let load = |id: ReplicaId| outstanding.values().filter(|outstanding| outstanding.to == id).count();
        let (before, after): (Vec<_>, Vec<_>) = fit.into_iter().partition(|id| *id <= self.last);
        let next = after.into_iter().chain(before).find(|id| load(*id) < share)?;
        self.last = next;
        *self.owed.entry(next).or_default() += 1;
        Some(next)
    }
}

#[cfg(test)]
mod tests;
