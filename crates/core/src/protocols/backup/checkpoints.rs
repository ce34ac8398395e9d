//! Checkpoints, stability and state transfer: Backup 5 to 7 of the [module](super).

use super::message::{Speaker, TransferTimer};
use super::state::{Backup, Init, Queue, VOTES_PER_CHECKPOINT_MAX, VOTES_PER_REPLICA_MAX};
use crate::auth::{Certificate, Claimed, Signed};
use crate::checkpoint::transfer::{Transfer, serve};
use crate::checkpoint::{Checkpoint, Evidence, Snapshot, TransferMessage, Tree};
use crate::digest::Digest;
use crate::dissent::tally;
use crate::ids::{Principal, ReplicaId, Sequence};
use crate::machine::Destination;
use crate::notice::{Divergence, Notice};
use crate::protocols::total_order::TotalOrder;
use crate::rejection::Rejection;
use crate::service::Service;
use crate::switching::{LogRecord, SnapshotRecord, Surroundings};
use alloc::boxed::Box;
use alloc::vec::Vec;

impl<O: TotalOrder, S: Service> Backup<O, S> {
    /// Backup 5. Take a version of the state and say what its root is.
    pub(super) fn take_checkpoint(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, queue: &mut Queue<O>) {
        s.step("Backup 5");
        let sequence = self.ledger.estate.executed();
        let root = self.ledger.estate.checkpoint();
        if let Some(certificate) = self.ahead.take_if(|ahead| ahead.value().sequence <= sequence) {
            self.on_certificate(s, queue, certificate);
        }
        self.vote(s, queue, sequence, root);
        self.compare(s, sequence);
        self.doubt_checkpoint(s, sequence, false);
    }

    /// Says what the root of this replica's state is at a checkpoint, in place of what it may have said before.
    pub(super) fn vote(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        sequence: Sequence,
        root: Digest,
    ) {
        let value = Checkpoint { instance: self.what.number, sequence, ruled: self.ledger.estate.ruled(), root };
        // One at the batch of a ruling is not voted for under the next: that has one of its own.
        if !self.order.may_vote() || !value.is_plausible(s.cluster) || self.dissent.overruled.is_some() {
            return;
        }
        assert!(sequence <= self.executed_for_good(), "a replica signs what it has executed for good");
        let vote = s.keyring.sign(value);
        s.send(Destination::Replicas, Box::new(vote.claim()));
        self.votes.entry(s.me).or_default().retain(|known| known.value().sequence != sequence);
        self.count_vote(s, queue, vote);
    }

    /// Backup 5, for a replica that may have missed it. Each vote counts for ever: if those of the last checkpoint in
    /// the window are lost, no batch follows that could bring another checkpoint.
    pub(super) fn vote_again(&self, s: &mut Surroundings<'_, impl Speaker<O>>, to: ReplicaId, stable: Sequence) {
        for vote in self.votes.get(&s.me).into_iter().flatten().filter(|vote| vote.value().sequence > stable) {
            s.send(Destination::Replica(to), Box::new(vote.claim()));
        }
    }

    /// Somebody's checkpoint vote.
    pub(super) fn on_checkpoint(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        from: ReplicaId,
        vote: Claimed<Signed<Checkpoint>>,
    ) {
        let sequence = vote.claims().sequence;
        if sequence <= self.stable.checkpoint().sequence {
            return;
        }
        let plausible = vote.claims().instance == self.what.number && vote.claims().is_plausible(s.cluster);
        if !plausible || vote.signer() == s.me {
            return s.reject(Principal::Replica(from), Rejection::BadCertificate);
        }
        if self.votes.get(&vote.signer()).is_some_and(|known| known.iter().any(|known| vote.says(known))) {
            return self.doubt_checkpoint(s, sequence, true);
        }
        let Some(vote) = s.keyring.verify(vote) else {
            return s.reject(Principal::Replica(from), Rejection::BadSignature);
        };
        let mut queue = Queue::new();
        self.count_vote(s, &mut queue, vote);
        self.compare(s, sequence);
        self.drain(s, queue);
        self.doubt_checkpoint(s, sequence, false);
    }

    /// Counts votes for *equal* checkpoints only (museum, flaw 15). A replica has two at a checkpoint, its first
    /// and its last: whoever repairs itself signs again, and each counts for itself.
    fn count_vote(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        vote: Signed<Checkpoint>,
    ) {
        let value = *vote.value();
        let of_replica = self.votes.entry(vote.signer()).or_default();
        if of_replica.iter().any(|known| *known.value() == value) {
            return;
        }
        let is_here = |known: &Signed<Checkpoint>| known.value().sequence == value.sequence;
        if of_replica.iter().filter(|known| is_here(known)).count() >= VOTES_PER_CHECKPOINT_MAX {
            of_replica.iter().rposition(is_here).map(|last| of_replica.remove(last));
        }
        of_replica.push(vote);
        of_replica.sort_by_key(|known| known.value().sequence);
        if of_replica.len() > VOTES_PER_REPLICA_MAX {
            of_replica.remove(0);
        }
        assert!(of_replica.len() <= VOTES_PER_REPLICA_MAX, "at most VOTES_PER_REPLICA_MAX");
        let equal: Vec<_> = self.votes.values().flatten().filter(|known| *known.value() == value).collect();
        let strong = self.what.replicas.strong();
        if equal.len() >= strong {
            let certificate = Certificate::tally(equal.into_iter().cloned(), strong);
            self.on_certificate(s, queue, certificate);
        }
    }

    /// Backup 7. Whether f+1 others signed the same other state than this replica has at a checkpoint, so it is
    /// wrong unless others are as well: f liars alone never make it think so. (n − strong + 1 where n is more than
    /// 3f+1: fewer may be wrong and 2f+1 right, as [`crate::dissent`] says.) It has the right one as soon as 2f+1
    /// signed that, or a ruling says which one it is.
    fn compare(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, sequence: Sequence) {
        if sequence <= self.stable.checkpoint().sequence {
            return;
        }
        let Some(mine) = self.version(sequence).map(Tree::root) else { return };
        let own = self.votes.get(&s.me).into_iter().flatten().find(|vote| vote.value().sequence == sequence);
        let ruled = own.map_or(self.ledger.estate.ruled(), |vote| vote.value().ruled);
        let others = self.votes.iter().filter(|(id, _)| **id != s.me).flat_map(|(_, votes)| votes);
        let otherwise = others
            .map(Signed::value)
            .filter(|value| (value.sequence, value.ruled) == (sequence, ruled) && value.root != mine);
        let roots = tally(otherwise.map(|value| value.root));
        let agreed = roots.into_iter().find(|(_, count)| *count >= self.what.replicas.blocking());
        let Some((root, _)) = agreed else { return };
        self.note_difference(s, sequence, root);
        if self.ahead.is_some() {
            self.begin_transfer(s);
        }
    }

    /// This replica's own state is not the right one.
    pub(super) fn note_difference(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        sequence: Sequence,
        agreed: Digest,
    ) {
        let Some(tree) = self.version(sequence).filter(|_| self.wrong.is_none()).cloned() else { return };
        s.step("Backup 7");
        s.out.notify(Notice::Diverged { sequence, mine: tree.root(), agreed });
        self.wrong = Some((sequence, tree));
    }

    /// A checkpoint is stable. If this replica has it, it moves on; if it has another root, it is wrong and repairs
    /// itself; if it is behind, it waits a moment before it fetches the state.
    pub(super) fn on_certificate(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        certificate: Certificate<Checkpoint>,
    ) {
        let Checkpoint { sequence, root, .. } = *certificate.value();
        if sequence <= self.stable.checkpoint().sequence {
            return;
        }
        self.blame(s, &certificate);
        if sequence > self.executed_for_good() {
            let far = sequence.0 > self.executed_for_good().0 + s.cluster.window();
            if self.ahead.as_ref().is_none_or(|ahead| ahead.value().sequence < sequence) {
                if self.ahead.is_none() {
                    s.set_timer(TransferTimer, s.now + s.cluster.limits.status_interval);
                }
                self.ahead = Some(certificate);
            }
            if far || self.transfer.is_some() {
                self.begin_transfer(s);
            }
            return;
        }
        // Whoever took a state that was ruled to be right may have none from before it.
        if !self.has(certificate.value()) {
            self.note_difference(s, sequence, root);
            // What follows is proved as well: the others may not keep this one any more.
            if self.ahead.as_ref().is_none_or(|ahead| ahead.value().sequence < sequence) {
                self.ahead = Some(certificate);
            }
            return self.begin_transfer(s);
        }
        self.make_stable(s, queue, certificate);
    }

    /// Whether this replica has executed for good what led to a checkpoint, and has the state that was signed.
    fn has(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.sequence <= self.executed_for_good()
            && self.version(checkpoint.sequence).is_some_and(|mine| mine.root() == checkpoint.root)
    }

    /// The last batch of this instance executed for good. Before it has its init history, the state counts otherwise.
    pub(super) fn executed_for_good(&self) -> Sequence {
        if matches!(self.init, Init::Done) { self.ledger.estate.executed_for_good() } else { Sequence(0) }
    }

    /// The version of the state after a batch of this instance.
    pub(super) fn version(&self, sequence: Sequence) -> Option<&Tree> {
        self.ledger.estate.version(sequence).filter(|_| matches!(self.init, Init::Done))
    }

    fn make_stable(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        certificate: Certificate<Checkpoint>,
    ) {
        let Checkpoint { sequence, root, .. } = *certificate.value();
        s.step("Backup 5");
        assert!(sequence > self.stable.checkpoint().sequence, "what is stable stays stable");
        assert!(sequence <= self.executed_for_good(), "stable here means executed here");
        assert_eq!(self.version(sequence).map(Tree::root), Some(root), "the state here is the one that was signed");
        // The version before stays: somebody may be fetching it.
        self.ledger.estate.forget_versions_before(self.stable.checkpoint().sequence);
        if self.ledger.estate.newest().0 == sequence {
            self.ledger.estate.trust_newest_version();
        }
        self.stable = Evidence::Certified(certificate.clone());
        // What was wrong before is right again, whatever made it so: to go back there would be a step backwards.
        self.wrong.take_if(|(at, _)| *at <= sequence);
        self.dissent.overruled.take_if(|at| *at <= sequence);
        self.transfer.take_if(|transfer| transfer.target().checkpoint().sequence <= sequence);
        self.ahead.take_if(|ahead| ahead.value().sequence <= sequence);
        for of_replica in self.votes.values_mut() {
            of_replica.retain(|vote| vote.value().sequence > sequence);
        }
        s.out.notify(Notice::Stable { instance: self.what.number, sequence, root });
        self.call(s, queue, |order, context| order.stable(context, &certificate));
        if s.log_is_long() || self.unlogged {
            self.save_snapshot(s, Evidence::Certified(certificate), false);
            self.unlogged = false;
        }
        self.end_if_done(s);
    }

    pub(super) fn save_snapshot(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        evidence: Evidence,
        transferred: bool,
    ) {
        let sequence = evidence.checkpoint().sequence;
        let Some(tree) = self.ledger.estate.version(sequence).cloned() else { return };
        let instance = self.what.number;
        let opening = self.opening_records(sequence).into_iter().map(Into::into);
        let of_order = self.order.live_records(s.me).into_iter().map(Into::into);
        let live = opening.chain(of_order).map(|record| LogRecord { instance, record }).collect();
        let snapshot = Snapshot { evidence, tree };
        s.begin_log(SnapshotRecord { snapshot, live, transferred });
    }

    /// A replica that signed another root than 2f+1 others is wrong about its state, or lies.
    fn blame(&self, s: &mut Surroundings<'_, impl Speaker<O>>, certificate: &Certificate<Checkpoint>) {
        let Checkpoint { sequence, ruled, root, .. } = *certificate.value();
        for (&replica, votes) in &self.votes {
            let here = votes.iter().filter(|vote| (vote.value().sequence, vote.value().ruled) == (sequence, ruled));
            if replica != s.me && here.into_iter().any(|vote| vote.value().root != root) {
                s.out.notify(Notice::Suspicion { replica, reason: Rejection::BadCertificate });
                s.reject(Principal::Replica(replica), Rejection::BadCertificate);
            }
        }
    }

    /// Backup 6. Fetch the state at the checkpoint that is ahead.
    fn begin_transfer(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        if let Some(target) = self.ahead.clone() {
            self.fetch(s, Evidence::Certified(target));
        }
    }

    /// Fetches the state at a checkpoint; a transfer that runs takes it as its new target and keeps what it has.
    pub(super) fn fetch(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, target: Evidence) {
        let sequence = target.checkpoint().sequence;
        match &mut self.transfer {
            Some(transfer) if transfer.target().checkpoint().sequence >= sequence => return,
            Some(transfer) => transfer.retarget(target),
            None => {
                let base = self.ledger.estate.newest_version().clone();
                let patience = s.cluster.limits.status_interval.doubled(2, s.cluster.limits.view_timeout);
                self.transfer = Some(Transfer::new(target, base, s.me, self.what.replicas.n(), patience));
            }
        }
        if !matches!(self.init, Init::Done) {
            // That state includes the init history, which others may not keep any more. The order delivers again what
            // follows it.
            self.init = Init::Waiting;
            self.held.clear();
        }
        s.step("Backup 6");
        s.out.notify(Notice::Transfer { sequence, received: 0, done: false });
        self.continue_transfer(s);
    }

    /// The transfer timer: begin what had to wait, and ask again for what did not come.
    pub(crate) fn on_transfer_timeout(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        if self.transfer.is_none() {
            let ahead = self.ahead.take();
            self.ahead = ahead.filter(|ahead| !self.has(ahead.value()));
            self.begin_transfer(s);
        }
        self.continue_transfer(s);
    }

    fn continue_transfer(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        let Some(transfer) = &mut self.transfer else { return };
        for (to, request) in transfer.next_requests(s.now, s.cluster.limits.transfer_requests_max) {
            s.send(Destination::Replica(to), request);
        }
        s.set_timer(TransferTimer, s.now + s.cluster.limits.status_interval);
        let Some(tree) = transfer.finish() else { return };
        let (evidence, received) = (transfer.target().clone(), transfer.received());
        self.transfer = None;
        self.take_over(s, evidence, tree, received);
    }

    /// A request for state, or a piece of it.
    pub(crate) fn on_transfer(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        from: ReplicaId,
        message: TransferMessage,
    ) {
        if let Some(answer) = serve(&message, |root| self.ledger.estate.version_with(root)) {
            return s.send(Destination::Replica(from), answer);
        }
        if matches!(self.init, Init::Opening(_)) {
            return self.on_opening_transfer(s, from, message);
        }
        let Some(transfer) = &mut self.transfer else {
            return s.reject(Principal::Replica(from), Rejection::Unsolicited);
        };
        if let Err(reason) = transfer.on_message(from, message) {
            s.reject(Principal::Replica(from), reason);
            if reason == Rejection::BadPage {
                s.out.notify(Notice::Suspicion { replica: from, reason });
            }
        }
        self.continue_transfer(s);
    }

    /// The whole state is here and has the certified root: it replaces ours. One that 2f+1 signed becomes the stable
    /// checkpoint, once it is durable. One that f+1 signed is in place of a wrong state at the same position, and no
    /// more: the log leads there as before, and what follows is executed again.
    fn take_over(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, evidence: Evidence, tree: Tree, received: u64) {
        let Checkpoint { sequence, root, .. } = *evidence.checkpoint();
        let proved = self.ahead.take_if(|ahead| ahead.value() == evidence.checkpoint());
        let evidence = proved.map_or(evidence, Evidence::Certified);
        let certificate = evidence.certificate_of(self.what.replicas.strong());
        if certificate.is_some() {
            self.ahead.take_if(|ahead| ahead.value().sequence <= sequence);
        }
        if self.has(evidence.checkpoint()) {
            return;
        }
        let repaired = self.examine(s, &evidence, &tree);
        let installed = match certificate {
            Some(_) => self.ledger.estate.install(tree),
            None => self.ledger.estate.repair(tree, self.stable.checkpoint().sequence),
        };
        if installed.is_err() {
            // 2f+1 replicas agree on pages that our service cannot read: it is not the same service.
            let mine = self.ledger.estate.newest_version().root();
            return s.out.notify(Notice::Diverged { sequence, mine, agreed: root });
        }
        self.dissent.overruled = None;
        if let Some(divergence) = repaired {
            s.out.notify(Notice::Repaired(Box::new(divergence)));
        }
        let mut queue = Queue::new();
        if let Some(certificate) = certificate {
            self.stable = evidence.clone();
            self.unlogged = false;
            self.installed_limited(s, certificate);
            let standing = self.ledger.estate.standing().cloned();
            self.call(s, &mut queue, |order, context| order.installed(context, certificate, standing.as_ref()));
            self.save_snapshot(s, evidence, true);
        } else {
            self.unlogged = true;
            // With its signature there may be 2f+1, so the window moves on: what follows may need places again.
            self.vote(s, &mut queue, sequence, root);
            self.go_back(s, &mut queue, sequence);
        }
        self.drain(s, queue);
        s.out.notify(Notice::Transfer { sequence, received, done: true });
    }

    /// What there is to say about a state that was wrong, before the right one replaces it. Executes again what led to
    /// it: if that gives the right state, the wrong one came about behind the service's back.
    fn examine(
        &mut self,
        s: &Surroundings<'_, impl Speaker<O>>,
        evidence: &Evidence,
        agreed: &Tree,
    ) -> Option<Divergence> {
        let (sequence, mine) = self.wrong.take()?;
        // Where a Backup of several begins is no checkpoint that anybody has compared.
        let is_known = !self.is_limited() || self.stable.certificate().is_some();
        let since = is_known.then_some(self.stable.checkpoint().sequence);
        let is_comparable = evidence.checkpoint().sequence == sequence;
        // A service that cannot go back cannot take the right state either: installing that will say so.
        let replay = since.filter(|_| is_comparable).map(|since| self.ledger.estate.replay_interval(s.cluster, since));
        let replayed = replay.and_then(Result::ok).flatten();
        let (evidence, agreed) = (evidence.clone(), agreed.clone());
        Some(Divergence { sequence, mine, evidence, agreed, since, replayed })
    }
}
