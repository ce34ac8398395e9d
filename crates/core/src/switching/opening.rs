//! Opening: how a replica comes to the history with which an instance begins (`docs/papers/abstract.md`).
//!
//! # Steps
//! * Opening 1. The proof yields the abort history: digests from some anchor to L0.
//! * Opening 2. The own log is compared with it. What they share is kept. If the own log does not reach the history's
//!   anchor at all, or would grow beyond what a report holds, or the own state at the end of a Backup is not the one
//!   that f+1 reports attest, the log begins anew: with the state at the first checkpoint from the anchor on that is
//!   known to be true, and what follows is executed. That state is fetched, unless it is here: nobody else may have it
//!   any more, for others drop what is below an anchor to which this replica has consented as well.
//! * Opening 3. The bodies that are missing are fetched, from all who say that they have them, before this replica
//!   vouches for anything (abs-D9).
//! * Opening 4. What the own log has beyond is taken back: to the last version of the state that the history still
//!   covers (abs-D6), and forward again by executing what follows.
//!
//! The anchor of the own log stays where it was (abs-D7): an inherited history makes nothing more certain. But one that
//! comes with a certificate is certain here as well.
//!
//! # Two valid proofs
//! Which 2f+1 reports came first decides which history is proved, and a liar may sign as many reports as it likes. So
//! two correct replicas may begin an instance with different histories X and Y. Both hold all that has committed and
//! all that is certain (the anchors of correct replicas), in the same places. They may differ in everything else: what
//! follows, where they end, which anchor is known to be certain, and so which bodies are needed. Where all n replicas
//! commit nothing will, in a Backup the order chooses, and in a resilient ring 2f+1 sign one of them.
//!
//! Then the bodies of the other may be gone: whoever began with X drops what Y has beyond, or what is below an anchor
//! that X certifies, as soon as that is certain in the instance, or at once. A replica that is still on its way to Y
//! would wait for ever, and the others for it. So if nothing comes for long, it asks one replica after the other for
//! what that one began with, and goes over to it (`Composite::ask_for_proof`); or, in a resilient ring, to any
//! checkpoint of the instance that 2f+1 signed (`compositions/jump.rs`), wherever Y ends.
//!
//! *Why it is safe.* Whoever is opening an instance has said nothing in it, and written nothing down: to go over is no
//! different from a crash, and hearing of the other proof first. (Or it has begun a resilient ring and signed nothing
//! yet, when it opens that again with its sequencer's proof: then the last one that it finishes counts, after a crash
//! as well.) That proof is checked like the first one, and all that committed is in its history. (Who finds after a
//! restart that its log does not tell all of what it had once begun with may have spoken: it stays with that.)
//!
//! *Why it is live.* A correct replica that runs the instance has all bodies
//! above its anchor, and the state there. Its anchor moves with a certificate, which it shows, or with everybody's
//! consent, also of the one that opens. Whom to ask next goes round, and each is taken at its word once for each time
//! that it is asked, whether or not others have been asked since: so a liar who has another proof each time costs
//! one turn in n−1, and links may be as slow as they like.

use super::ledger::Ledger;
use super::message::{Bodies, FETCH_MAX, Fetch, Switch, SwitchMessage};
use super::report::{AbortHistory, BOUNDARIES_MAX, CHECKPOINTS_MAX};
use super::surroundings::{Speaker, Surroundings};
use crate::checkpoint::transfer::Transfer;
use crate::checkpoint::{Evidence, TransferMessage, Tree};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::estate::Summary;
use crate::history::{Boundary, LogEntry};
use crate::ids::{InstanceId, Principal, ReplicaId, Sequence};
use crate::machine::Destination;
use crate::notice::Divergence;
use crate::rejection::Rejection;
use crate::service::Service;
use crate::switching::OpeningTimer;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// An own version at a checkpoint of the history that is not what f+1 reports attest, or 2f+1 have signed.
///
/// What f+1 attest is compared at the end of a Backup only that this replica took part in. A version that was reached
/// by executing a history counts batches otherwise, and so has another root, although it is as right. Whatever went
/// wrong between two Backups is found behind the next one.
fn wrong_version<S: Service>(history: &AbortHistory, ledger: &Ledger<S>) -> Option<(u64, Tree)> {
    let signed = history.certificate.as_ref().map(|certificate| certificate.value().boundary);
    let wrong = |boundary: &Boundary| {
        let tree = ledger.estate.version(Sequence(boundary.position))?;
        let is_end = Summary::of(tree).is_some_and(|of| of.is_end && of.position == boundary.position);
        let is_same = ledger.log.history_at(boundary.position) == Some(boundary.history);
        let counts = is_end || is_same && signed == Some(*boundary);
        (counts && tree.root() != boundary.root).then(|| (boundary.position, tree.clone()))
    };
    history.boundaries.iter().rev().find_map(wrong)
}

/// The last position that the own log shares with the history, if it can go on from there.
fn shared_with<S: Service>(cluster: &Cluster, history: &AbortHistory, ledger: &Ledger<S>) -> Option<u64> {
    let (own, anchor) = (ledger.log.anchor().position, history.anchor.position);
    let takes_over = history.certificate.is_some() && anchor >= own;
    let begin = if takes_over { anchor } else { own };
    (own.max(anchor)..=ledger.log.length().min(history.position))
        .rev()
        .find(|&position| ledger.log.history_at(position) == history.history_at(position))
        // Who fetched a state above its anchor cannot go back below it; and at an anchor that it takes it needs it.
        .filter(|&position| ledger.reaches(if takes_over { anchor } else { position }))
        // Else nobody would accept its report.
        .filter(|_| history.position.saturating_sub(begin) <= cluster.inherited_bound())
        .filter(|_| ledger.log.boundaries().len() <= CHECKPOINTS_MAX + BOUNDARIES_MAX / 4)
}

/// Executes what the log has beyond the state, knows what the history's proof attests, and begins the log at an anchor
/// that 2f+1 replicas signed: so the log of a replica that has heard of no other one for long does not grow from one
/// instance to the next.
///
/// # Panics
/// Unless the log holds the history.
pub(crate) fn settle<S: Service>(
    cluster: &Cluster,
    instance: InstanceId,
    history: &AbortHistory,
    ledger: &mut Ledger<S>,
) {
    let own = ledger.log.anchor().position;
    ledger.catch_up_to(cluster, own);
    let has_anchor = ledger.estate.version(Sequence(own)).is_some();
    // Of what it attests it has the state.
    for boundary in history.boundaries.iter().filter(|boundary| has_anchor || boundary.position > own) {
        ledger.log.learn(*boundary);
    }
    ledger.keep_versions(cluster);
    if cluster.part(InstanceId(instance.0 - 1)).is_backup() {
        ledger.log.forget_bodies();
    }
    if let Some(certificate) = &history.certificate {
        if history.anchor.position > own {
            ledger.anchor_at(history.anchor);
        }
        if history.anchor.position >= own {
            ledger.certify(certificate.clone());
        }
    }
    assert_eq!(ledger.log.history(), history.history(), "the history is the one that was proved");
    assert_eq!(ledger.estate.history(), history.history(), "the state is the history's");
}

/// What a transfer fetches. Nobody asks for signatures: the proof of the history has them.
const fn state_at(instance: InstanceId, boundary: &Boundary) -> Evidence {
    Evidence::reported(instance, boundary.position, boundary.root)
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
    /// The state with which the log begins anew.
    fetched: Option<Tree>,
    /// An own version that is not the one that f+1 attest, and its position.
    wrong: Option<(u64, Tree)>,
    /// Who is asked next, among the holders.
    turn: usize,
    /// Time-outs in a row that nothing had come before.
    idle: usize,
    /// How much of what has to be fetched had come at the last time-out.
    received: u64,
    /// Whether this replica has said nothing in the instance, and written nothing down.
    is_free: bool,
}

impl Opening {
    /// Opening 1 and 2.
    pub(crate) fn new<S: Service>(
        s: &mut Surroundings<'_, impl Speaker>,
        instance: InstanceId,
        history: AbortHistory,
        ledger: &Ledger<S>,
    ) -> Self {
        s.step("Opening 1");
        s.step("Opening 2");
        let wrong = wrong_version(&history, ledger);
        let shared = shared_with(s.cluster, &history, ledger).filter(|_| wrong.is_none());
        let from = shared.unwrap_or(history.anchor.position);
        let mut wanted: BTreeMap<Digest, Option<LogEntry>> =
            history.digests_after(from).iter().map(|digest| (*digest, None)).collect();
        let digests: Vec<Digest> = wanted.keys().copied().collect();
        for entry in ledger.log.find(&digests) {
            wanted.insert(entry.digest(), Some(entry));
        }
        let missing = wanted.values().filter(|entry| entry.is_none()).count();
        let base = history.base().filter(|_| shared.is_none());
        let own = base.and_then(|base| ledger.estate.version(Sequence(base.position)).map(|tree| (base, tree)));
        let fetched = own.filter(|(base, tree)| tree.root() == base.root).map(|(_, tree)| tree.clone());
        let transfer = match base {
            Some(boundary) if fetched.is_none() => {
                let target = state_at(instance, &boundary);
                let base = ledger.estate.newest_version().clone();
                let patience = s.cluster.limits.status_interval;
                Some(Transfer::new(target, base, s.me, s.cluster.replicas.n(), patience))
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
            fetched,
            wrong,
            turn: 0,
            idle: 0,
            received: 0,
            is_free: true,
        }
    }

    /// The same, of a replica that may have spoken in the instance before.
    pub(crate) fn again(self) -> Self {
        Self { is_free: false, ..self }
    }

    /// Whether it may go over to whatever else proves to be the beginning of the instance.
    pub(crate) const fn is_free(&self) -> bool {
        self.is_free
    }

    /// The history that this instance begins with.
    pub(crate) const fn history(&self) -> &AbortHistory {
        &self.history
    }

    /// Opening 3: asks for what is missing; again, of others, at every time-out.
    pub(crate) fn ask(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let missing: Vec<Digest> =
            self.wanted.iter().filter(|(_, entry)| entry.is_none()).map(|(digest, _)| *digest).collect();
        // The holders first; but who has opened the instance in the meantime has everything as well, and a holder may
        // be down for good.
        let mut holders: Vec<ReplicaId> = self.history.holders.iter().copied().filter(|id| *id != s.me).collect();
        if self.turn > holders.len() || holders.is_empty() {
            holders = s.cluster.replicas.iter().filter(|id| *id != s.me).collect();
        }
        // Each part goes to another holder; a holder that lies about what it has delays its share by one time-out.
        let share = missing.len().div_ceil(holders.len().max(1)).clamp(1, FETCH_MAX);
        for (number, part) in missing.chunks(share).enumerate() {
            let Some(to) = holders.get((self.turn + number) % holders.len().max(1)) else { break };
            let message = SwitchMessage::Fetch(Fetch(part.to_vec()));
            s.send(Destination::Replica(*to), Switch { instance: self.instance, message });
        }
        // One step per time-out: as many as there are holders would bring each part back to the same liar.
        self.turn += 1;
        let here = self.wanted.len() - self.missing;
        let received = here as u64 + self.transfer.as_ref().map_or(0, Transfer::received);
        self.idle = if received > self.received { 0 } else { self.idle + 1 };
        self.received = received;
        self.continue_transfer(s);
        if !self.is_done() {
            s.step("Opening 3");
            s.set_timer(OpeningTimer, s.now + s.cluster.limits.status_interval);
        }
    }

    /// Fetches the state at the end of a later history instead, of which nothing else is needed. What has come of the
    /// first one is kept: under load checkpoints move on faster than a large state comes.
    pub(crate) fn retarget(&mut self, history: AbortHistory) {
        if let (Some(transfer), Some(boundary)) = (&mut self.transfer, history.base()) {
            transfer.retarget(state_at(self.instance, &boundary));
            (self.history, self.idle) = (history, 0);
        }
    }

    /// Whether nobody seems to have what is missing: as often as there are replicas, a time-out brought nothing.
    pub(crate) fn is_stalled(&self, cluster: &Cluster) -> bool {
        self.idle >= cluster.replicas.n()
    }

    /// Whether it fetches the version of the state with this root.
    pub(crate) fn fetches(&self, version: Digest) -> bool {
        self.transfer.as_ref().is_some_and(|transfer| transfer.target().checkpoint().root == version)
    }

    fn continue_transfer(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let Some(transfer) = &mut self.transfer else { return };
        for (to, request) in transfer.next_requests(s.now, s.cluster.limits.transfer_requests_max) {
            s.send(Destination::Replica(to), request);
        }
        if let Some(tree) = transfer.finish() {
            self.fetched = Some(tree);
            self.transfer = None;
        }
    }

    /// Entries that somebody sent.
    pub(crate) fn on_bodies(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, bodies: Bodies) {
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
    pub(crate) fn on_transfer(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
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
        Some((self.history.base()?, self.fetched.clone()?))
    }

    /// What was wrong with the own state, once the right one is here. The proof of that is the one that opened the
    /// instance.
    pub(crate) fn divergence(&self) -> Option<Divergence> {
        let (position, mine) = self.wrong.clone()?;
        let (boundary, agreed) = self.fetched()?;
        Some(Divergence {
            sequence: Sequence(position),
            mine,
            evidence: state_at(self.instance, &boundary),
            agreed,
            since: None,
            replayed: None,
        })
    }

    /// Whether everything is here.
    pub(crate) const fn is_done(&self) -> bool {
        self.missing == 0 && (self.shared.is_some() || self.fetched.is_some())
    }

    /// Opening 4. Returns the entries that were not logged here before.
    ///
    /// # Panics
    /// Unless everything is here.
    pub(crate) fn finish<S: Service>(
        self,
        s: &mut Surroundings<'_, impl Speaker>,
        ledger: &mut Ledger<S>,
    ) -> Vec<LogEntry> {
        s.step("Opening 4");
        assert!(self.is_done(), "opened with everything at hand");
        let Self { instance, history, shared, wanted, fetched, .. } = self;
        let from = match shared {
            Some(shared) => {
                ledger.go_back_to(shared);
                ledger.log.cut(shared);
                shared
            }
            None => {
                let (base, tree) = history.base().zip(fetched).expect("the state is here");
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
        settle(s.cluster, instance, &history, ledger);
        assert_eq!(ledger.log.length(), history.position, "the log ends where the history does");
        new
    }

    /// What is true between steps.
    pub(crate) fn check_invariants(&self, cluster: &Cluster) {
        let Self { history, shared, wanted, transfer, fetched, .. } = self;
        history.check_invariants();
        let missing = wanted.values().filter(|entry| entry.is_none()).count();
        assert_eq!(self.missing, missing, "each entry that is missing is counted");
        assert!(wanted.len() <= history.digests.len(), "nothing is wanted but entries of the history");
        assert!(transfer.is_none() || fetched.is_none(), "what is here is not fetched");
        assert!(shared.is_none() || transfer.is_none() && fetched.is_none(), "who shares the history has its state");
        assert!(shared.is_none_or(|shared| shared <= history.position), "what is shared is a part of the history");
        assert!(self.wrong.is_none() || shared.is_none(), "who has a wrong state gets another one");
        let base = history.base().map(|base| (base.position, base.root));
        if let Some(transfer) = transfer {
            let target = *transfer.target().checkpoint();
            assert_eq!(Some((target.sequence.0, target.root)), base, "the state is fetched with which the log begins");
            transfer.check_invariants(cluster);
        }
        if let Some(tree) = fetched {
            assert_eq!(Some(tree.root()), base.map(|(_, root)| root), "the log begins with the state that is attested");
        }
    }
}
