//! Dissent in a Backup: what its replicas say when they have executed something otherwise, and what they do when it is
//! ruled. Dissent 2 to 8 of [`crate::dissent`].

use super::message::Speaker;
use super::state::{Backup, Queue};
use crate::auth::{Certificate, Claimed, Signed};
use crate::batch::Ordered;
use crate::checkpoint::{Checkpoint, Evidence, Tree};
use crate::cluster::Cluster;
use crate::dissent::{
    BLOCK, Hopeless, List, Ruling, Scope, Testimony, Verdict, disputed, is_unsettled, last_block, right,
    right_without_some, tally,
};
use crate::estate::Ruled;
use crate::ids::{Principal, ReplicaId, Sequence};
use crate::machine::Destination;
use crate::message::Request;
use crate::notice::Notice;
use crate::protocols::backup::testimonies::TESTIMONIES_MAX;
use crate::protocols::total_order::TotalOrder;
use crate::rejection::Rejection;
use crate::service::Service;
use crate::switching::{Ledger, Surroundings};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What of a batch may be rulings: none of nearly every one.
pub(super) fn rulings_of(ordered: &Ordered) -> Vec<Request> {
    ordered.requests().filter(|request| request.is_ruling()).cloned().collect()
}

impl<O: TotalOrder, S: Service> Backup<O, S> {
    /// Whether a checkpoint is due after the last batch executed (Dissent 6).
    pub(super) fn is_checkpoint(&self, cluster: &Cluster) -> bool {
        let executed = self.ledger.estate.executed();
        cluster.is_checkpoint(executed) || self.ledger.estate.follows_ruling_in(executed)
    }

    /// Dissent 2 and 7: the votes for a checkpoint. `again`: one came that was here before, so somebody waits.
    pub(super) fn doubt_checkpoint(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        sequence: Sequence,
        again: bool,
    ) {
        if sequence <= self.stable.checkpoint().sequence || self.version(sequence).is_none() {
            return;
        }
        let votes = self.votes_about(sequence);
        let most = tally(votes.iter().map(|vote| vote.value().root)).into_values().max().unwrap_or(0);
        let is_hopeless = most + (self.what.replicas.n() - votes.len()) < self.what.replicas.strong();
        if (is_hopeless || again)
            && most < self.what.replicas.strong()
            && right(self.what.replicas, votes.iter().map(Signed::value)).is_some()
        {
            return self.ask_for(s, self.ledger.estate.ruled(), &Ruling::Right(List::of(votes)));
        }
        if is_hopeless {
            self.testify(s, None);
        }
    }

    /// The last vote of each replica for this checkpoint, under the last ruling.
    fn votes_about(&self, sequence: Sequence) -> Vec<Signed<Checkpoint>> {
        let ruled = self.ledger.estate.ruled();
        let about_it = |vote: &&Signed<Checkpoint>| (vote.value().sequence, vote.value().ruled) == (sequence, ruled);
        self.votes.values().filter_map(|votes| votes.iter().rfind(about_it)).cloned().collect()
    }

    /// Dissent 2: a client asks again for what it was answered at this position. An answer may have got lost; or there
    /// were no 2f+1 equal ones. What this instance begins with nobody has compared yet.
    pub(super) fn doubt_answer(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, position: u64) {
        let begins = self.is_limited() && self.stable.checkpoint().sequence == Sequence(0);
        if begins || self.scope(None).is_some_and(|scope| position > scope.position) {
            self.testify(s, None);
        }
    }

    /// What this replica would testify about now.
    fn scope(&self, block: Option<u32>) -> Option<Scope> {
        let base = *self.stable.checkpoint();
        let here = self.ledger.estate.position_at(base.sequence).filter(|_| self.version(base.sequence).is_some())?;
        let position = self.init_base.filter(|_| base.sequence == Sequence(0)).unwrap_or(here);
        Some(Scope { base, position, ruled: self.ledger.estate.ruled(), block })
    }

    /// Dissent 2 and 3. Says the same again only after a status interval.
    fn testify(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, block: Option<u32>) {
        let may = self.order.may_vote() && self.dissent.overruled.is_none();
        let Some(scope) = self.scope(block).filter(|_| may) else { return };
        let limits = &s.cluster.limits;
        let interval = limits.status_interval.doubled(self.dissent.fruitless, limits.view_timeout_max);
        self.dissent.said.retain(|(at, _)| s.now < *at + interval);
        let said = &self.dissent.said;
        if said.len() >= TESTIMONIES_MAX || said.iter().any(|(_, said)| *said == scope) {
            return;
        }
        match block {
            None => s.step("Dissent 2"),
            Some(_) => s.step("Dissent 3"),
        }
        self.dissent.said.push((s.now, scope));
        assert!(self.dissent.said.len() <= TESTIMONIES_MAX, "at most TESTIMONIES_MAX in an interval");
        let (first, step) = match block {
            None => (scope.first() + BLOCK as u64, BLOCK),
            Some(_) => (scope.first(), 1),
        };
        let effects = self.ledger.estate.effects_from(first, step, BLOCK + usize::from(block.is_some()));
        let signed = s.keyring.sign(Testimony { scope, effects });
        s.send(Destination::Replicas, Box::new(signed.claim()));
        self.dissent.heard.insert((s.me, block.is_some()), signed);
        self.weigh(s);
    }

    /// Somebody testifies.
    pub(super) fn on_testimony(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        from: ReplicaId,
        signed: Claimed<Signed<Testimony>>,
    ) {
        let scope = signed.claims().scope;
        if signed.signer() != from || scope.base.instance != self.what.number {
            return s.reject(Principal::Replica(from), Rejection::WrongSender);
        }
        let place = (from, scope.block.is_some());
        if self.dissent.heard.get(&place).is_some_and(|known| signed.says(known)) {
            return self.testify(s, None);
        }
        let Some(signed) = s.keyring.verify(signed) else {
            return s.reject(Principal::Replica(from), Rejection::BadSignature);
        };
        self.dissent.heard.insert(place, signed);
        self.testify(s, None);
        self.weigh(s);
    }

    /// Dissent 3 and 4: what the testimonies amount to.
    fn weigh(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>) {
        let Some(outline) = self.scope(None) else { return };
        let outlines = self.dissent.about(outline);
        if outlines.clone().count() < self.what.replicas.reachable() {
            return;
        }
        let block = last_block(self.what.replicas, outlines.map(|signed| &*signed.value().effects));
        let Some(block) = u32::try_from(block).ok().filter(|_| block < BLOCK) else { return };
        self.testify(s, Some(block));
        let scope = Scope { block: Some(block), ..outline };
        let of_block: Vec<Signed<Testimony>> = self.dissent.about(scope).cloned().collect();
        let effects = || of_block.iter().map(|signed| &*signed.value().effects);
        if disputed(self.what.replicas, effects()).is_some() {
            return self.ask_for(s, scope.ruled, &Ruling::Disputed(List::of(of_block)));
        }
        if !is_unsettled(self.what.replicas, effects()) {
            self.dissent.unsettled = None;
            return;
        }
        if s.now < *self.dissent.unsettled.get_or_insert(s.now) + s.cluster.limits.status_interval {
            return;
        }
        let newest = self.ledger.estate.newest().0;
        if newest < self.executed_for_good() {
            s.step("Dissent 6");
            self.ask_for(s, scope.ruled, &Ruling::Unsettled(List::of(of_block)));
            return;
        }
        let votes = self.votes_about(newest);
        if let Some(some) = right_without_some(self.what.replicas, &votes) {
            return self.ask_for(s, scope.ruled, &Ruling::Right(List::of(some)));
        }
        // An older testimony may end before the request that is disputed.
        let reached = self.ledger.estate.position_at(newest).unwrap_or(u64::MAX);
        let mut testimonies = of_block;
        testimonies.retain(|signed| signed.value().reaches(reached));
        let (votes, testimonies) = (List::of(votes), List::of(testimonies));
        self.ask_for(s, scope.ruled, &Ruling::Hopeless(Hopeless { votes, testimonies }));
    }

    /// Dissent 4.
    fn ask_for(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, follows: Sequence, ruling: &Ruling) {
        let holds = || ruling.verdict(s.cluster, s.keyring, self.what.number).is_some();
        if self.dissent.asked != Some(follows) && holds() {
            s.step("Dissent 4");
            self.dissent.asked = Some(follows);
            let request = Request::ruling(self.what.number, s.me, follows, ruling);
            self.drive(s, |order, context| order.submit(context, request, None));
        }
    }

    /// Dissent 5 to 7, when a batch was delivered for good and executed. Whether the replica went back, so that the
    /// batch is delivered again.
    pub(super) fn follow_ruling(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        batch: Sequence,
        rulings: &[Request],
    ) -> bool {
        let estate = &self.ledger.estate;
        if estate.follows_ruling_in(batch) {
            return false;
        }
        let mut verdicts = rulings.iter().filter_map(|request| request.verdict(s.cluster, s.keyring, self.what.number));
        let Some((_, verdict)) = verdicts.find(|(follows, _)| *follows == estate.ruled()) else { return false };
        self.dissent.begin_anew(batch);
        self.dissent.fruitless += 1;
        match verdict {
            Verdict::Refused(position) => {
                self.refuse_request(s, queue, Ruled { position, until: batch });
                true
            }
            Verdict::Compared => {
                s.step("Dissent 6");
                self.ledger.estate.note_ruling(batch);
                self.vote_anew(s, queue, batch, batch);
                false
            }
            Verdict::Right(certificate) => {
                self.ledger.estate.note_ruling(batch);
                self.repair(s, queue, batch, certificate);
                false
            }
        }
    }

    /// Dissent 5.
    fn refuse_request(&mut self, s: &mut Surroundings<'_, impl Speaker<O>>, queue: &mut Queue<O>, ruled: Ruled) {
        s.step("Dissent 5");
        let (stable, Ledger { estate, log, .. }) = (self.stable.checkpoint().sequence, &mut self.ledger);
        let back = estate.rule(s.cluster, ruled, stable, log).expect("the service accepts its own pages");
        assert!(back < ruled.until, "what is executed again comes before the ruling");
        let Ruled { position, until: batch } = ruled;
        s.out.notify(Notice::Ruled { instance: self.what.number, position, batch, back });
        (self.wrong, self.dissent.overruled) = (None, None);
        self.dissent.said.clear();
        self.dissent.fruitless = 0;
        self.forget_unproved_transfer();
        self.vote_anew(s, queue, batch, back);
        self.go_back(s, queue, back);
    }

    /// Dissent 7.
    fn repair(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        batch: Sequence,
        certificate: Certificate<Checkpoint>,
    ) {
        s.step("Dissent 7");
        let Checkpoint { sequence, root, .. } = *certificate.value();
        let mine = self.version(sequence).map(Tree::root);
        if mine.is_none_or(|mine| mine == root) || sequence <= self.stable.checkpoint().sequence {
            return self.vote_anew(s, queue, batch, self.ledger.estate.executed());
        }
        self.forget_votes_before(batch);
        self.dissent.overruled = Some(sequence);
        self.forget_unproved_transfer();
        self.note_difference(s, sequence, root);
        if self.report.is_none() {
            self.fetch(s, Evidence::Certified(certificate));
        }
    }

    /// A state that an earlier ruling was about need not be had any more.
    fn forget_unproved_transfer(&mut self) {
        let strong = self.what.replicas.strong();
        self.transfer.take_if(|transfer| transfer.target().certificate_of(strong).is_none());
    }

    /// Dissent 8: what was voted before follows another ruling.
    fn forget_votes_before(&mut self, ruling: Sequence) {
        for votes in self.votes.values_mut() {
            votes.retain(|vote| vote.value().ruled >= ruling);
        }
    }

    /// Dissent 8: votes for the checkpoints up to a batch, under a new ruling.
    fn vote_anew(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker<O>>,
        queue: &mut Queue<O>,
        ruling: Sequence,
        until: Sequence,
    ) {
        s.step("Dissent 8");
        self.forget_votes_before(ruling);
        let first = self.stable.checkpoint().sequence.next();
        for sequence in (first.0..=until.0).map(Sequence) {
            if let Some(root) = self.version(sequence).map(Tree::root) {
                self.vote(s, queue, sequence, root);
            }
        }
    }
}
