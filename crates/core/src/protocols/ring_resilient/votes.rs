//! PREP and COMM: Resilient 3 to 5 of the [module](super).

use super::message::{Commit, ResilientMessage};
use super::state::{RingResilient, Slot};
use crate::auth::{Certificate, Claimed, Signed};
use crate::ids::{Principal, ReplicaId};
use crate::machine::Destination;
use crate::protocols::ring_resilient::message::Speaker;
use crate::protocols::ring_resilient::peer::{AHEAD_MAX, Peer};
use crate::protocols::ring_resilient::record::ResilientRecord;
use crate::rejection::Rejection;
use crate::service::Service;
use crate::switching::Surroundings;
use crate::switching::certificate::Prepared;
use alloc::vec::Vec;

impl<S: Service> RingResilient<S> {
    /// This replica's PREP for a batch that it has logged.
    pub(super) fn own_prepare(&mut self, s: &Surroundings<'_, impl Speaker>, end: u64) -> Option<Signed<Prepared>> {
        let slot = self.slots.get_mut(&end)?;
        let value = Prepared { instance: self.base.what.number, position: end, history: slot.history };
        Some(slot.prepares.entry(s.me).or_insert_with(|| s.keyring.sign(value)).clone())
    }

    /// Resilient 4: another replica has logged a batch.
    pub(super) fn on_prepare(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        signed: Claimed<Signed<Prepared>>,
    ) {
        let Prepared { instance, position, history } = *signed.claims();
        if signed.signer() != from || instance != self.base.what.number {
            return s.reject(Principal::Replica(from), Rejection::WrongSender);
        }
        if position <= self.base.ledger.log.anchor().position && !self.slots.contains_key(&position) {
            return;
        }
        let Some(slot) = self.slots.get_mut(&position) else {
            let ahead = &mut self.peers.entry(from).or_default().prepares;
            let is_news = !ahead.contains_key(&position);
            ahead.entry(position).or_insert(signed);
            if ahead.len() > AHEAD_MAX {
                ahead.pop_last();
            }
            let is_of_next = self.early.first_key_value().is_some_and(|(end, _)| *end == position);
            if is_news && is_of_next {
                // Perhaps this word is what the ORDER waits for.
                self.take_early(s);
            }
            return;
        };
        if slot.prepares.contains_key(&from) {
            return;
        }
        if slot.history != history {
            // It may be right: then the sequencer lied to one of us.
            return s.reject(Principal::Replica(from), Rejection::OutsideWindow);
        }
        let Some(signed) = s.keyring.verify(signed) else {
            return s.reject(Principal::Replica(from), Rejection::BadSignature);
        };
        slot.prepares.insert(from, signed);
        self.try_prepare(s, position);
    }

    /// Whether f+1 have signed a history, the sequencer, whose PREP it comes with, among them. One of these is correct,
    /// and the first correct one has judged the agreed time when it was fresh, and the proofs of the clients. Who comes
    /// later, when both may be too old to be judged, may take its word for it.
    pub(super) fn is_vouched_for(&self, s: &Surroundings<'_, impl Speaker>, claim: &Prepared) -> bool {
        let has_signed = |(&signer, peer): (&ReplicaId, &Peer)| {
            let said = peer.prepares.get(&claim.position).filter(|said| said.claims() == claim);
            signer != self.base.what.head && said.and_then(|said| s.keyring.verify_in_place(said)).is_some()
        };
        1 + self.peers.iter().filter(|peer| has_signed(*peer)).count() >= self.base.what.replicas.weak()
    }

    /// Counts what was said of a batch before it was logged here.
    fn take_ahead(&mut self, s: &mut Surroundings<'_, impl Speaker>, end: u64) {
        let Some(slot) = self.slots.get_mut(&end) else { return };
        let value = Prepared { instance: self.base.what.number, position: end, history: slot.history };
        for (&signer, peer) in &mut self.peers {
            let Some(said) = peer.prepares.remove(&end) else { continue };
            if *said.claims() != value || slot.prepares.contains_key(&signer) {
                continue;
            }
            if let Some(signed) = s.keyring.verify(said) {
                slot.prepares.insert(signer, signed);
            } else {
                s.reject(Principal::Replica(signer), Rejection::BadSignature);
            }
        }
    }

    /// Resilient 4: 2f+1 PREPs are a certificate.
    pub(super) fn try_prepare(&mut self, s: &mut Surroundings<'_, impl Speaker>, end: u64) {
        self.take_ahead(s, end);
        self.match_commits();
        let is_higher = self.prepared.as_ref().is_none_or(|certificate| certificate.value().position < end);
        let enough = |slot: &&Slot| slot.prepares.len() >= self.base.what.replicas.strong();
        if let Some(slot) = self.slots.get(&end).filter(enough).filter(|_| is_higher) {
            s.step("Resilient 4");
            let value = Prepared { instance: self.base.what.number, position: end, history: slot.history };
            let strong = self.base.what.replicas.strong();
            let certificate = Certificate::tally(slot.prepares.values().take(strong).cloned(), strong);
            assert!(end <= self.base.ledger.log.length(), "this replica has logged what is certified");
            s.persist(self.base.what.number, ResilientRecord::Prepared(certificate.claim()));
            self.prepared = Some(certificate);
            self.send(
                s,
                Destination::Replicas,
                ResilientMessage::Commit(Commit { position: end, history: value.history }),
            );
        }
        self.count_commits(s);
    }

    /// Resilient 5: another replica holds a certificate.
    pub(super) fn on_commit(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, commit: Commit) {
        if commit.position < self.base.ledger.log.anchor().position {
            return;
        }
        let ahead = &mut self.peers.entry(from).or_default().commits;
        if ahead.len() >= AHEAD_MAX {
            ahead.pop_first();
        }
        ahead.insert(commit.position, commit.history);
        self.match_commits();
        self.count_commits(s);
    }

    /// Whether what is logged grows, and f+1 others hold certificates for more than that.
    pub(super) fn catches_up(&self) -> bool {
        let ahead = self.peers.values().filter(|peer| !peer.commits.is_empty()).count();
        self.base.ledger.log.length() > self.repeated_at && ahead >= self.base.what.replicas.weak()
    }

    /// Looks which COMMs are about this log.
    fn match_commits(&mut self) {
        if !self.opened {
            return;
        }
        let log = &self.base.ledger.log;
        // A part of the init history may be all that others began with: that it is certified says nothing of this one.
        let begin = self.base.init().0;
        for peer in self.peers.values_mut() {
            while let Some((&position, &history)) =
                peer.commits.first_key_value().filter(|(at, _)| **at <= log.length())
            {
                peer.commits.pop_first();
                if position >= begin && log.history_at(position) == Some(history) {
                    peer.committed = peer.committed.max(Some(position));
                }
            }
        }
    }

    /// Resilient 5: the longest history for which 2f+1 hold a certificate.
    fn count_commits(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let own = self.prepared.as_ref().map(|certificate| certificate.value().position);
        let mut claims: Vec<Option<u64>> = self.peers.values().map(|peer| peer.committed).chain([own]).collect();
        claims.sort_unstable_by_key(|claim| core::cmp::Reverse(*claim));
        if let Some(Some(position)) = claims.get(self.base.what.replicas.strong() - 1) {
            self.commit(s, *position);
        }
    }

    /// Resilient 5: what is committed up to here is certain, beginning with the init history.
    pub(super) fn commit(&mut self, s: &mut Surroundings<'_, impl Speaker>, position: u64) {
        if self.committed.is_some_and(|committed| committed >= position) {
            return;
        }
        s.step("Resilient 5");
        assert!(position <= self.base.ledger.log.length(), "committed is what is logged");
        assert!(self.opened, "nothing commits before the init history is the sequencer's (Resilient 2)");
        let is_first = self.committed.replace(position).is_none();
        s.append(self.base.what.number, ResilientRecord::Committed(position));
        if is_first {
            self.take_first_checkpoint(s);
            self.answer_inherited(s);
        }
        self.execute(s);
    }
}
