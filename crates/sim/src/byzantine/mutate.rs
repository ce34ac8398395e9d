//! Mutations: small changes to valid messages (a neighbour's number, another live digest, an old message in place of
//! a new one), authenticated again with the liar's keys. Large random changes only test the decoder.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::cluster::{InstanceId, Sequence, Timestamp, View};
use bezant_core::digest::Digest;
use bezant_core::machine::Principal;
use bezant_core::message::{Incoming, Message, Ordering};
use bezant_core::protocols::pbft::{PbftMessage, PrePrepare, Vote};

/// Digests and own messages that it remembers.
const MEMORY_MAX: usize = 32;

#[derive(Debug)]
pub(super) struct Mutate {
    /// Messages that are changed, per mille.
    often: u64,
    digests: Vec<Digest>,
    said: Vec<Message>,
}

fn near(rng: &mut Rng, number: u64) -> u64 {
    if rng.coin() { number.saturating_add(1) } else { number.saturating_sub(1) }
}

impl Mutate {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { often: rng.between(20, 500), digests: Vec::new(), said: Vec::new() }
    }

    fn vote(&self, rng: &mut Rng, vote: &Vote) -> Vote {
        let mut lie = *vote;
        match rng.below(3) {
            0 => lie.view = View(near(rng, vote.view.0)),
            1 => lie.sequence = Sequence(near(rng, vote.sequence.0)),
            _ if !self.digests.is_empty() => lie.digest = *rng.pick(&self.digests),
            _ => {}
        }
        lie
    }

    fn pbft(&self, liar: &mut Liar<'_>, message: &PbftMessage) -> PbftMessage {
        let rng = &mut *liar.rng;
        match message {
            // One kind of vote for another, now and then.
            PbftMessage::Prepare(vote) if rng.per_mille(200) => PbftMessage::Commit(*vote),
            PbftMessage::Prepare(vote) => PbftMessage::Prepare(self.vote(rng, vote)),
            PbftMessage::Commit(vote) => PbftMessage::Commit(self.vote(rng, vote)),
            PbftMessage::PrePrepare(proposal) => {
                let PrePrepare { mut view, mut sequence, batch } = proposal.clone();
                if rng.coin() {
                    view = View(near(rng, view.0));
                } else {
                    sequence = Sequence(near(rng, sequence.0));
                }
                PbftMessage::PrePrepare(PrePrepare { view, sequence, batch })
            }
            PbftMessage::ViewChange(signed) if signed.signer == liar.me => {
                let mut change = signed.value.clone();
                match rng.below(3) {
                    0 => change.view = View(near(rng, change.view.0)),
                    1 => drop(change.prepared.pop()),
                    _ => {
                        if let (Some(claim), false) = (change.prepared.last_mut(), self.digests.is_empty()) {
                            claim.digest = *rng.pick(&self.digests);
                        }
                    }
                }
                PbftMessage::ViewChange(Box::new(liar.keyring.sign(change)))
            }
            PbftMessage::NewView(signed) if signed.signer == liar.me => {
                let mut new_view = signed.value.clone();
                if rng.coin() {
                    new_view.view_changes.pop();
                } else {
                    new_view.chosen.pop();
                }
                PbftMessage::NewView(std::sync::Arc::new(liar.keyring.sign(new_view)))
            }
            PbftMessage::Decided(position) => {
                let mut lie = *position;
                lie.sequence = Sequence(near(rng, lie.sequence.0));
                PbftMessage::Decided(lie)
            }
            other => other.clone(),
        }
    }

    fn mutated(&self, liar: &mut Liar<'_>, message: &Message) -> Message {
        if liar.rng.per_mille(150) && !self.said.is_empty() {
            return liar.rng.pick(&self.said).clone();
        }
        match message {
            Message::Ordering(Ordering { instance, message }) => {
                let message = self.pbft(liar, message);
                let other = InstanceId(near(liar.rng, instance.0));
                let instance = if liar.rng.per_mille(50) { other } else { *instance };
                Message::Ordering(Ordering { instance, message })
            }
            Message::Reply(reply) => {
                let mut lie = reply.clone();
                match liar.rng.below(3) {
                    0 => lie.timestamp = Timestamp(near(liar.rng, lie.timestamp.0)),
                    1 => lie.sequence = Sequence(near(liar.rng, lie.sequence.0)),
                    _ => lie.view = View(near(liar.rng, lie.view.0)),
                }
                Message::Reply(lie)
            }
            Message::Checkpoint(signed) if signed.signer == liar.me => {
                let mut lie = signed.value;
                lie.sequence = Sequence(near(liar.rng, lie.sequence.0));
                Message::Checkpoint(Box::new(liar.keyring.sign(lie)))
            }
            other => other.clone(),
        }
    }
}

impl Behaviour for Mutate {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        if self.said.len() < MEMORY_MAX {
            self.said.push(message.clone());
        }
        if liar.rng.per_mille(self.often) {
            let lie = self.mutated(liar, message);
            liar.say(to, &lie);
        } else {
            liar.say(to, message);
        }
    }

    fn receive(&mut self, _liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        if let Message::Ordering(Ordering { message: PbftMessage::PrePrepare(proposal), .. }) = &*incoming.message {
            if self.digests.len() == MEMORY_MAX {
                self.digests.remove(0);
            }
            self.digests.push(proposal.digest());
        }
        true
    }
}
