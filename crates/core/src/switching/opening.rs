//! Opening: how a replica comes to the history with which an instance begins (section 2.5 of the note on Abstract).
//!
//! # Steps
//! 1. The proof yields the abort history: digests from some anchor to L0.
//! 2. The own log is compared with it. What they share is kept. If the own log does not reach the history's anchor at
//!    all, or the own state at the end of a Backup is not the one that f+1 reports attest, the state is fetched at the
//!    last checkpoint that they attest.
//! 3. The bodies that are missing are fetched, from all who say that they have them, before this replica vouches for
//!    anything (D9).
//! 4. What the own log has beyond is taken back: to the last version of the state that the history still covers (D6),
//!    and forward again by executing what follows.
//!
//! The anchor of the own log stays where it was (D7): an inherited history makes nothing more certain.

use super::ledger::Ledger;
use super::message::{Bodies, FETCH_MAX, Fetch, Switch, SwitchMessage};
use super::report::AbortHistory;
use super::surroundings::Surroundings;
use crate::auth::Certificate;
use crate::checkpoint::{Checkpoint, TransferMessage, Tree, transfer::Transfer};
use crate::cluster::{Cluster, InstanceId, ReplicaId, Sequence};
use crate::compositions::Part;
use crate::digest::Digest;
use crate::estate::Summary;
use crate::history::{Boundary, LogEntry};
use crate::machine::{Destination, Principal};
use crate::message::Message;
use crate::rejection::Rejection;
use crate::replica::{Divergence, ReplicaTimer};
use crate::service::Service;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// An own version at a checkpoint of the history that is not what f+1 reports attest.
///
/// Only the end of a Backup that this replica took part in is compared. A version that was reached by executing a
/// history counts batches otherwise, and so has another root, although it is as right. Whatever went wrong between two
/// Backups is found behind the next one.
fn wrong_version<S: Service>(history: &AbortHistory, ledger: &Ledger<S>) -> Option<(u64, Tree)> {
    let wrong = |boundary: &Boundary| {
        let tree = ledger.estate.version(Sequence(boundary.position))?;
        let is_end = Summary::of(tree).is_some_and(|of| of.is_end && of.position == boundary.position);
        (is_end && tree.root() != boundary.root).then(|| (boundary.position, tree.clone()))
    };
    history.boundaries.iter().rev().find_map(wrong)
}

/// An anchor that 2f+1 replicas signed is certain here as well: so the log of a replica that has heard of no other one
/// for long does not grow from one instance to the next.
fn begin_at_certified<S: Service>(history: &AbortHistory, ledger: &mut Ledger<S>) {
    let is_new = history.anchor.position > ledger.log.anchor().position;
    let has_state = ledger.estate.version(Sequence(history.anchor.position)).is_some();
    if history.is_anchor_certified && is_new && has_state {
        ledger.anchor_at(history.anchor);
    }
}

/// What a transfer fetches. Nobody asks for signatures: the proof of the history has them.
fn state_at(instance: InstanceId, boundary: &Boundary) -> Certificate<Checkpoint> {
    let value = Checkpoint { instance, sequence: Sequence(boundary.position), root: boundary.root };
    Certificate { value, signatures: Vec::new() }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    instance: InstanceId,
    history: AbortHistory,
    /// The last position that the own log shares with the history; `None` if the state has to be fetched.
    shared: Option<u64>,
    /// Entries that have to be fetched: `None` until they are here.
    wanted: BTreeMap<Digest, Option<LogEntry>>,
    missing: usize,
    transfer: Option<Transfer>,
    fetched: Option<Tree>,
    /// An own version that is not the one that f+1 attest, and its position.
    wrong: Option<(u64, Tree)>,
    /// Who is asked next, among the holders.
    turn: usize,
    /// Time-outs in a row that nothing had come before.
    idle: usize,
    /// How much of what has to be fetched had come at the last time-out.
    received: u64,
}

impl Opening {
    /// Steps 1 and 2.
    pub(crate) fn new<S: Service>(
        s: &Surroundings<'_, S>,
        instance: InstanceId,
        history: AbortHistory,
        ledger: &Ledger<S>,
    ) -> Self {
        let own = ledger.log.anchor();
        let wrong = wrong_version(&history, ledger);
        let lowest = own.position.max(history.anchor.position);
        let highest = ledger.log.length().min(history.position);
        let shared = (lowest..=highest)
            .rev()
            .find(|&position| ledger.log.history_at(position) == history.history_at(position))
            // Who fetched a state above its anchor cannot go back below it.
            .filter(|&position| {
                let version = ledger.estate.version_before(Sequence(position));
                ledger.estate.executed().0 <= position || version.is_some_and(|version| version.0 >= own.position)
            })
            .filter(|_| wrong.is_none());
        let from = shared.unwrap_or(history.anchor.position);
        let mut wanted: BTreeMap<Digest, Option<LogEntry>> =
            history.digests_after(from).iter().map(|digest| (*digest, None)).collect();
        let digests: Vec<Digest> = wanted.keys().copied().collect();
        for entry in ledger.log.find(&digests) {
            wanted.insert(entry.digest(), Some(entry));
        }
        let missing = wanted.values().filter(|entry| entry.is_none()).count();
        let transfer = match (shared, history.boundaries.last()) {
            (None, Some(boundary)) => {
                let target = state_at(instance, boundary);
                let base = ledger.estate.newest_version().clone();
                let patience = s.cluster.limits.status_interval;
                Some(Transfer::new(target, base, s.me, s.cluster.n, patience))
            }
            _ => None,
        };
        Self {
            instance,
            history,
            shared,
            wanted,
            missing,
            transfer,
            fetched: None,
            wrong,
            turn: 0,
            idle: 0,
            received: 0,
        }
    }

    /// The history that this instance begins with.
    pub(crate) const fn history(&self) -> &AbortHistory {
        &self.history
    }

    /// Step 3: asks for what is missing; again, of others, at every time-out.
    pub(crate) fn ask<S: Service>(&mut self, s: &mut Surroundings<'_, S>) {
        let missing: Vec<Digest> =
            self.wanted.iter().filter(|(_, entry)| entry.is_none()).map(|(digest, _)| *digest).collect();
        // The holders first; but who has opened the instance in the meantime has everything as well, and a holder may
        // be down for good.
        let mut holders: Vec<ReplicaId> = self.history.holders.iter().copied().filter(|id| *id != s.me).collect();
        if self.turn > holders.len() || holders.is_empty() {
            holders = s.cluster.replicas().filter(|id| *id != s.me).collect();
        }
        // Each part goes to another holder; a holder that lies about what it has delays its share by one time-out.
        let share = missing.len().div_ceil(holders.len().max(1)).clamp(1, FETCH_MAX);
        for (number, part) in missing.chunks(share).enumerate() {
            let Some(to) = holders.get((self.turn + number) % holders.len().max(1)) else { break };
            let message = SwitchMessage::Fetch(Fetch(part.to_vec()));
            s.out.send(Destination::Replica(*to), Message::Switch(Switch { instance: self.instance, message }));
        }
        // One step per time-out: as many as there are holders would bring each part back to the same liar.
        self.turn += 1;
        let here = self.wanted.len() - self.missing;
        let received = here as u64 + self.transfer.as_ref().map_or(0, Transfer::received);
        self.idle = if received > self.received { 0 } else { self.idle + 1 };
        self.received = received;
        self.continue_transfer(s);
        if !self.is_done() {
            s.out.set_timer(ReplicaTimer::Opening, s.now + s.cluster.limits.status_interval);
        }
    }

    /// Fetches the state at the end of a later history instead, of which nothing else is needed. What has come of the
    /// first one is kept: under load checkpoints move on faster than a large state comes.
    pub(crate) fn retarget(&mut self, history: AbortHistory) {
        if let (Some(transfer), Some(boundary)) = (&mut self.transfer, history.boundaries.last()) {
            transfer.retarget(state_at(self.instance, boundary));
            (self.history, self.idle) = (history, 0);
        }
    }

    /// Whether nobody seems to have what is missing: as often as there are replicas, a time-out brought nothing.
    pub(crate) fn is_stalled(&self, cluster: &Cluster) -> bool {
        self.idle >= cluster.n
    }

    /// Whether it fetches the version of the state with this root.
    pub(crate) fn fetches(&self, version: Digest) -> bool {
        self.transfer.as_ref().is_some_and(|transfer| transfer.target().value.root == version)
    }

    fn continue_transfer<S: Service>(&mut self, s: &mut Surroundings<'_, S>) {
        let Some(transfer) = &mut self.transfer else { return };
        for (to, request) in transfer.next_requests(s.now, s.cluster.limits.transfer_requests_max) {
            s.out.send(Destination::Replica(to), Message::Transfer(request));
        }
        if let Some(tree) = transfer.finish() {
            self.fetched = Some(tree);
            self.transfer = None;
        }
    }

    /// Entries that somebody sent.
    pub(crate) fn on_bodies<S: Service>(&mut self, s: &mut Surroundings<'_, S>, from: ReplicaId, bodies: Bodies) {
        for entry in bodies.0 {
            match self.wanted.get_mut(&entry.digest()) {
                Some(slot @ None) => {
                    *slot = Some(entry);
                    self.missing -= 1;
                }
                Some(Some(_)) => {}
                None => s.reject(Principal::Replica(from), Rejection::Unsolicited),
            }
        }
    }

    /// A piece of the state.
    pub(crate) fn on_transfer<S: Service>(
        &mut self,
        s: &mut Surroundings<'_, S>,
        from: ReplicaId,
        message: TransferMessage,
    ) {
        let Some(transfer) = &mut self.transfer else {
            return s.reject(Principal::Replica(from), Rejection::Unsolicited);
        };
        if let Err(reason) = transfer.on_message(from, message) {
            s.reject(Principal::Replica(from), reason);
        }
        self.continue_transfer(s);
    }

    /// The state that was fetched, and where it stands in the history.
    pub(crate) fn fetched(&self) -> Option<(Boundary, Tree)> {
        Some((*self.history.boundaries.last()?, self.fetched.clone()?))
    }

    /// What was wrong with the own state, once the right one is here. The proof of that is the one that opened the
    /// instance.
    pub(crate) fn divergence(&self) -> Option<Divergence> {
        let (position, mine) = self.wrong.clone()?;
        let (Boundary { position: at, root, .. }, agreed) = self.fetched()?;
        let value = Checkpoint { instance: self.instance, sequence: Sequence(at), root };
        Some(Divergence {
            sequence: Sequence(position),
            mine,
            certificate: Certificate { value, signatures: Vec::new() },
            agreed,
            since: None,
            replayed: None,
        })
    }

    /// Whether everything is here.
    pub(crate) const fn is_done(&self) -> bool {
        self.missing == 0 && self.transfer.is_none()
    }

    /// Step 4. Returns the entries that were not logged here before.
    ///
    /// # Panics
    /// Unless everything is here.
    pub(crate) fn finish<S: Service>(self, s: &Surroundings<'_, S>, ledger: &mut Ledger<S>) -> Vec<LogEntry> {
        assert!(self.is_done(), "opened with everything at hand");
        let Self { instance, history, shared, wanted, fetched, .. } = self;
        let from = match shared {
            Some(shared) => {
                if ledger.estate.executed().0 > shared {
                    let version = ledger.estate.version_before(Sequence(shared));
                    let version = version.expect("there is a version at the anchor, and the anchor is shared");
                    ledger.estate.rewind(version).expect("the service accepts the pages that it saved itself");
                }
                ledger.log.cut(shared);
                shared
            }
            None => {
                let base = history.boundaries.last().expect("f+1 correct replicas have a checkpoint in common");
                let tree = fetched.expect("the state is here");
                let installed = ledger.estate.install_at(tree, Sequence(base.position));
                installed.expect("the service accepts the pages that correct replicas saved");
                ledger.log.restart(history.anchor);
                history.anchor.position
            }
        };
        let mut new = Vec::new();
        for digest in history.digests_after(from) {
            let entry = wanted.get(digest).cloned().flatten().expect("every body is here");
            new.push(entry.clone());
            ledger.log.push(entry);
        }
        for boundary in &history.boundaries {
            // All n may make it certain: then this replica needs a version of it like the others.
            ledger.catch_up_to(s.cluster, boundary.position);
        }
        ledger.catch_up(s.cluster, |_, _, _| ());
        if s.cluster.part(InstanceId(instance.0 - 1)) == Some(Part::Backup) {
            ledger.log.forget_bodies();
        }
        for boundary in &history.boundaries {
            ledger.log.learn(*boundary);
        }
        begin_at_certified(&history, ledger);
        assert_eq!(ledger.log.history(), history.history(), "the history is the one that was proved");
        assert_eq!(ledger.estate.history(), history.history(), "the state is the history's");
        new
    }
}
