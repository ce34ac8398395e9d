//! Checkpoints, the end, and what is said again: Resilient 6 to 8 of the [module](super).

use super::message::{Commit, ResilientMessage, ResilientTimer, Status};
use super::state::{Doubt, EARLY_MAX, RingResilient};
use crate::auth::{Certificate, Claimed, Signed};
use crate::cluster::ClientAuth;
use crate::history::Boundary;
use crate::ids::{Principal, ReplicaId};
use crate::machine::Destination;
use crate::message::{Request, Vouched};
use crate::notice::Notice;
use crate::protocols::ring_resilient::message::Speaker;
use crate::protocols::ring_resilient::peer::VOTES_MAX;
use crate::rejection::Rejection;
use crate::replicas::ReplicaSet;
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::certificate::Stable;
use crate::switching::report::CHECKPOINTS_MAX;
use crate::switching::{AbortReport, Certificates, Certified, HistoryRecord, Surroundings};
use crate::time::Duration;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Batches in the answer to one STATUS: as many as are kept early.
const ANSWERS_MAX: usize = EARLY_MAX;

/// Bytes of operations in these, unless a single batch has more.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Requests passed on to the sequencer at a time.
pub(super) const PASSED_ON_MAX: usize = 64;

/// Bytes of operations in these, unless a single one has more.
const PASSED_ON_BYTES_MAX: usize = 1 << 20;

impl<S: Service> RingResilient<S> {
    /// Resilient 6: the init history's end is the first checkpoint, unless it is the anchor.
    pub(super) fn take_first_checkpoint(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let log = &self.base.ledger.log;
        let position = self.base.init().0;
        if position > log.anchor().position && self.base.ledger.estate.executed().0 == position {
            self.take_checkpoint(s);
        }
    }

    /// Resilient 6, of the state as far as it is executed.
    pub(super) fn take_checkpoint(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        s.step("Resilient 6");
        let position = self.base.ledger.estate.executed().0;
        let known = self.base.ledger.log.boundaries().iter().find(|boundary| boundary.position == position).copied();
        let boundary = known.unwrap_or_else(|| self.base.ledger.checkpoint());
        let vote = s.keyring.sign(self.stable_at(boundary));
        self.send(s, Destination::Replicas, ResilientMessage::Checkpoint(vote.claim()));
        // After a restart it may have been found already.
        self.votes.retain(|known| known.value().boundary.position != position);
        let value = *vote.value();
        self.votes.push(vote);
        self.count_votes(s, value);
    }

    /// Resilient 6: a client asks again for what it was answered at a position. It may have missed an answer; or there
    /// were no 2f+1 equal ones.
    pub(super) fn doubt_answer(&mut self, s: &mut Surroundings<'_, impl Speaker>, position: u64) {
        let doubt = *self.doubt.get_or_insert(Doubt { position, since: s.now });
        if s.now >= doubt.since + self.patience {
            return self.halt_here(s, StopReason::Doubted);
        }
        self.sign_where_it_is(s);
    }

    /// Resilient 6: where this replica is now others may be as well. Not more often than once in a status interval, and
    /// as long as there is room for the checkpoints that are due: whoever asks may mean no good. Nothing is signed
    /// before it is committed here: until then this replica may begin again with another history, and would have signed
    /// both.
    fn sign_where_it_is(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let (executed, log) = (self.base.ledger.estate.executed().0, &self.base.ledger.log);
        let is_certain = self.committed.is_some_and(|committed| committed >= executed);
        let has_room = log.boundaries().len() < CHECKPOINTS_MAX / 2;
        let may = is_certain && has_room && executed > log.anchor().position;
        let has_signed = self.votes.iter().any(|vote| vote.value().boundary.position == executed);
        if may && !has_signed && s.now >= self.signed_out_of_turn + s.cluster.limits.status_interval {
            self.signed_out_of_turn = s.now;
            self.take_checkpoint(s);
        }
    }

    /// What this replica signs about its state there.
    const fn stable_at(&self, boundary: Boundary) -> Stable {
        Stable { instance: self.base.what.number, init: self.base.init(), boundary }
    }

    /// After a restart: what this replica said about its checkpoints, it says again.
    pub(super) fn find_votes(&mut self, s: &Surroundings<'_, impl Speaker>) {
        let begin = self.base.init().0;
        let own = self.base.ledger.log.boundaries().iter().filter(|own| own.position >= begin);
        let own = own.filter(|own| Some(own.position) <= self.committed);
        self.votes = own.map(|boundary| s.keyring.sign(self.stable_at(*boundary))).collect();
    }

    /// Resilient 6: another replica's state.
    pub(super) fn on_vote(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        vote: Claimed<Signed<Stable>>,
    ) {
        let Stable { instance, boundary, .. } = *vote.claims();
        if vote.signer() != from || instance != self.base.what.number {
            return s.reject(Principal::Replica(from), Rejection::WrongSender);
        }
        if boundary.position <= self.base.ledger.log.anchor().position {
            return;
        }
        let known = &self.peers.entry(from).or_default().votes;
        if let Some(known) = known.iter().find(|known| known.value().boundary.position == boundary.position) {
            if known.value() != vote.claims() && s.keyring.verify(vote).is_some() {
                s.reject(Principal::Replica(from), Rejection::Equivocation);
            }
            return;
        }
        let Some(vote) = s.keyring.verify(vote) else {
            return s.reject(Principal::Replica(from), Rejection::BadSignature);
        };
        let value = *vote.value();
        if boundary.position == self.base.ledger.estate.executed().0 {
            // Its client may have asked nobody else.
            self.sign_where_it_is(s);
        }
        let votes = &mut self.peers.entry(from).or_default().votes;
        votes.push(vote);
        votes.sort_by_key(|vote| vote.value().boundary);
        if votes.len() > VOTES_MAX {
            votes.remove(0);
        }
        self.count_votes(s, value);
    }

    fn count_votes(&mut self, s: &mut Surroundings<'_, impl Speaker>, value: Stable) {
        let all = self.peers.values().flat_map(|peer| &peer.votes).chain(&self.votes);
        let equal = all.filter(|vote| *vote.value() == value);
        // By signer: nobody counts twice.
        let equal: BTreeMap<_, _> = equal.map(|vote| (vote.signer(), vote)).collect();
        let strong = self.base.what.replicas.strong();
        if equal.len() >= strong {
            let certificate = Certificate::tally(equal.into_iter().take(strong).map(|(_, vote)| vote.clone()), strong);
            self.anchor(s, certificate);
        }
    }

    /// A certificate that somebody sent, or put into its abort report; it was checked.
    pub(crate) fn on_stable(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        certificate: Certificate<Stable>,
    ) {
        let Stable { instance, boundary, .. } = *certificate.value();
        if self.base.is_stopped() || boundary.position <= self.base.ledger.log.anchor().position {
            return;
        }
        if instance != self.base.what.number {
            return s.reject(Principal::Replica(from), Rejection::BadCertificate);
        }
        self.anchor(s, certificate);
    }

    /// Resilient 6: 2f+1 have executed this: it is certain. A replica whose log goes elsewhere, or not so far, has to
    /// jump.
    fn anchor(&mut self, s: &mut Surroundings<'_, impl Speaker>, certificate: Certificate<Stable>) {
        let boundary = certificate.value().boundary;
        let log = &self.base.ledger.log;
        let before = log.anchor().position;
        // One below the init history's end says nothing of the rest of it: see `match_commits`.
        let is_here =
            boundary.position >= self.base.init().0 && log.history_at(boundary.position) == Some(boundary.history);
        if boundary.position <= before || !is_here {
            return;
        }
        if !self.opened {
            self.opened = true;
            s.persist(self.base.what.number, HistoryRecord::Logged(Vec::new()));
        }
        self.commit(s, boundary.position);
        let known = self.base.ledger.log.boundaries().iter().find(|own| own.position == boundary.position);
        let Some(own) = known.copied().filter(|_| self.base.ledger.log.anchor().position < boundary.position) else {
            return;
        };
        if own != boundary {
            let (sequence, mine) = (crate::ids::Sequence(own.position), own.root);
            return s.out.notify(Notice::Diverged { sequence, mine, agreed: boundary.root });
        }
        s.step("Resilient 6");
        self.base.ledger.anchor_at(boundary);
        self.base.ledger.certify(certificate.clone());
        self.slots = self.slots.split_off(&before.saturating_add(1));
        self.votes.retain(|vote| vote.value().boundary.position > boundary.position);
        self.doubt.take_if(|doubt| doubt.position <= boundary.position);
        self.peers.values_mut().for_each(|peer| peer.forget_below(boundary.position));
        s.append(self.base.what.number, HistoryRecord::Stable(certificate.claim()));
        self.stable = Some(certificate);
        let instance = self.base.what.number;
        s.out.notify(Notice::Anchored { instance, position: boundary.position, root: boundary.root });
        if boundary.position >= self.last() {
            return self.halt_here(s, StopReason::QuotaDone);
        }
        self.take_early(s);
    }

    /// Resilient 7: stops for good.
    pub(super) fn halt_here(&mut self, s: &mut Surroundings<'_, impl Speaker>, reason: StopReason) {
        if self.base.is_stopped() {
            return;
        }
        s.step("Resilient 7");
        for timer in [ResilientTimer::Patience, ResilientTimer::Repeat] {
            s.cancel_timer(timer);
        }
        let (report, proves) = self.final_report(s.silent);
        self.base.stop_with(s, reason, report, proves);
    }

    /// What is certified; before anything is, the init history.
    fn final_report(&self, silent: ReplicaSet) -> (AbortReport, Certified) {
        let log = &self.base.ledger.log;
        let anchor = log.anchor();
        let stable = self.base.ledger.certificate().cloned();
        let prepared = self.prepared.clone().filter(|certificate| certificate.value().position > anchor.position);
        let end = match &prepared {
            Some(certificate) => certificate.value().position,
            None if self.stable.is_some() => anchor.position,
            None => self.base.init().0.max(anchor.position),
        };
        assert!(end >= anchor.position && end <= log.length(), "what is reported is logged");
        let listed = log.after(anchor.position).take((end - anchor.position) as usize);
        let report = AbortReport {
            instance: self.base.what.number,
            anchor,
            boundaries: log.boundaries().iter().filter(|boundary| boundary.position <= end).copied().collect(),
            digests: listed.map(|logged| logged.digest).collect(),
            low_load: false,
            silent,
            certificates: Certificates::default(),
        };
        (report, Certified { prepared, stable })
    }

    /// Whether this replica waits for anything.
    pub(super) fn is_unfinished(&self) -> bool {
        self.committed.is_none()
            || self.has_uncommitted()
            || self.pool.len() > 0
            || !self.early.is_empty()
            || !self.votes.is_empty()
    }

    pub(super) fn wait(&mut self, s: &mut Surroundings<'_, impl Speaker>, span: Duration) {
        self.is_patient = true;
        s.set_timer(ResilientTimer::Patience, s.now + span);
    }

    /// Resilient 8.
    pub(super) fn on_repeat(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        (self.repeats, self.hurries) = (false, false);
        self.repeated_at = self.base.ledger.log.length();
        if !self.is_unfinished() {
            return;
        }
        s.step("Resilient 8");
        let status = Status {
            opened: self.opened,
            logged: self.base.ledger.log.length(),
            prepared: self.prepared.as_ref().map(|certificate| certificate.value().position),
            committed: self.committed,
            anchor: self.base.ledger.log.anchor().position,
        };
        self.send(s, Destination::Replicas, ResilientMessage::Status(status));
        for vote in self.votes.clone() {
            self.send(s, Destination::Replicas, ResilientMessage::Checkpoint(vote.into()));
        }
        self.fetch(s, Destination::Replicas);
        if self.leads(s) {
            return;
        }
        if !self.opened {
            self.ask_for_init(s);
        }
        self.pass_on_waiting(s);
    }

    /// Resilient 1: the requests that have waited longest go to the sequencer, if a correct one must accept them: what
    /// only this replica takes for a client's must not keep out what is behind it (pbft-F20).
    fn pass_on_waiting(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let mut waiting: Vec<Request> = self.pool.iter_watched().take(PASSED_ON_MAX).cloned().collect();
        let are_signed = s.cluster.client_auth != ClientAuth::Mac;
        if are_signed {
            Request::vouch_signatures(waiting.iter_mut(), s.cluster, s.keyring);
        }
        let (mut passed_on, mut bytes) = (Vec::new(), 0);
        for request in waiting {
            let (client, vouched) = (request.client, request.vouched);
            if are_signed && vouched != Vouched::Signature {
                self.pool.remove(client);
                s.reject(Principal::Client(client), Rejection::UnauthenticRequest);
                continue;
            }
            // Its signature need not be checked again.
            self.pool.get_mut(client).into_iter().for_each(|kept| kept.vouched = vouched);
            bytes += request.operation.len();
            if bytes > PASSED_ON_BYTES_MAX && !passed_on.is_empty() {
                break;
            }
            passed_on.push((client, request.timestamp));
            s.step("Resilient 1");
            s.send(Destination::Replica(self.base.what.head), request);
        }
        self.passed_on.1.retain(|(client, timestamp)| self.pool.waits(*client, *timestamp));
        if self.passed_on.1.is_empty() {
            self.passed_on = (s.now, passed_on);
        }
    }

    /// Resilient 6: the end of the init history is this replica's anchor already, and not everybody's: who has no room
    /// in its log before it is, may need this vote.
    fn vote_for_inherited(&mut self, s: &mut Surroundings<'_, impl Speaker>, to: Destination, anchor: u64) {
        let own = self.base.ledger.log.anchor();
        if self.stable.is_none()
            && self.committed.is_some()
            && own.position == self.base.init().0
            && anchor < own.position
        {
            let vote = s.keyring.sign(self.stable_at(own));
            self.send(s, to, ResilientMessage::Checkpoint(vote.into()));
        }
    }

    /// Resilient 8: what somebody who waits may lack. Whoever has logged all that it was told is told more at once.
    pub(super) fn on_status(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, status: Status) {
        let pause = Duration(s.cluster.limits.status_interval.0 / 2);
        let peer = self.peers.entry(from).or_default();
        // What it says that it has logged is its word only: nobody has more than it was told of.
        let has_all = peer.told_until.is_some_and(|until| status.logged >= until);
        let is_late = peer.told.is_some_and(|told| s.now - told < pause) && !has_all;
        if !self.opened || is_late {
            return;
        }
        s.step("Resilient 8");
        let ends: Vec<u64> = self.slots.keys().copied().collect();
        let lacks = |end: &u64| !status.opened || *end > status.logged;
        let next: Vec<u64> = ends.iter().copied().filter(lacks).take(ANSWERS_MAX).collect();
        // Who lacks nothing is not told that again before the pause is over.
        (peer.told, peer.told_until) = (Some(s.now), next.last().copied());
        let to = Destination::Replica(from);
        if let Some(stable) = self.stable.clone().filter(|stable| stable.value().boundary.position > status.anchor) {
            self.send(s, to, ResilientMessage::Stable(stable.into()));
        }
        self.vote_for_inherited(s, to, status.anchor);
        if self.leads(s) {
            self.repeat_orders(s, to, &next);
        }
        let unprepared = |end: &&u64| status.prepared.is_none_or(|prepared| **end > prepared);
        for end in ends.iter().filter(unprepared).take(ANSWERS_MAX) {
            if let Some(prepare) = self.own_prepare(s, *end) {
                self.send(s, to, ResilientMessage::Prepare(prepare.into()));
            }
        }
        self.repeat_commits(s, to, &status, next.last().copied());
    }

    /// The sequencer's batches that end there, while they are not too much for one answer.
    fn repeat_orders(&mut self, s: &mut Surroundings<'_, impl Speaker>, to: Destination, ends: &[u64]) {
        let mut bytes = 0;
        for end in ends {
            if let Some(order) = self.order_at(s, *end) {
                bytes += order.batch.inline_bytes();
                self.send(s, to, ResilientMessage::Order(Box::new(order)));
            }
            if bytes > ANSWER_BYTES_MAX {
                return;
            }
        }
    }

    /// That this replica holds a certificate: for the whole history, and for what somebody has logged of it, or soon
    /// will have. The certificate stands for everything before as well.
    fn repeat_commits(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        to: Destination,
        status: &Status,
        next: Option<u64>,
    ) {
        let Some(certified) = self.prepared.as_ref().map(|certificate| certificate.value().position) else { return };
        let begin = self.base.init().0;
        let positions = [Some(certified), Some(status.logged), next].into_iter().flatten();
        let positions: BTreeSet<u64> = positions.map(|position| position.min(certified)).collect();
        let unknown = |position: &u64| status.committed.is_none_or(|committed| *position > committed);
        for position in positions.into_iter().filter(|position| *position >= begin).filter(unknown) {
            if let Some(history) = self.base.ledger.log.history_at(position) {
                self.send(s, to, ResilientMessage::Commit(Commit { position, history }));
            }
        }
    }
}
