//! Equivocation: at one position, one batch for some backups and another for the rest, with votes to match.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::batch::Batch;
use bezant_core::digest::Digest;
use bezant_core::ids::{Principal, Sequence, View};
use bezant_core::protocols::pbft::{Ordering, PbftMessage, PrePrepare, Vote};
use bezant_core::registry::Message;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Equivocate {
    /// Bit per replica: who hears the second story.
    second: u64,
    /// The second story at each position.
    stories: BTreeMap<(View, Sequence), Arc<Batch>>,
    /// Proposals that are doubled, per mille.
    often: u64,
}

/// Another batch that would be just as good.
pub(super) fn other(rng: &mut Rng, batch: &Batch) -> Batch {
    let mut entries = batch.entries().to_vec();
    let mut proposal = batch.proposal().clone();
    match rng.below(4) {
        0 if entries.len() > 1 => entries.reverse(),
        1 if entries.len() > 1 => drop(entries.pop()),
        2 => return Batch::null(),
        _ => proposal.seed = Digest(std::array::from_fn(|i| proposal.seed.0[i] ^ 0x55)),
    }
    Batch::new(proposal, entries)
}

impl Equivocate {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { second: rng.next(), stories: BTreeMap::new(), often: rng.between(200, 1000) }
    }

    fn story(&mut self, rng: &mut Rng, proposal: &PrePrepare) -> Option<Arc<Batch>> {
        let place = (proposal.view, proposal.sequence);
        if !self.stories.contains_key(&place) && rng.per_mille(self.often) {
            self.stories.insert(place, Arc::new(other(rng, &proposal.batch)));
        }
        self.stories.get(&place).cloned()
    }

    /// The vote as the second audience must see it.
    fn vote(&self, vote: Vote) -> Vote {
        let digest = self.stories.get(&(vote.view, vote.sequence)).map_or(vote.digest, |batch| batch.digest());
        Vote { digest, ..vote }
    }
}

impl Behaviour for Equivocate {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let (Principal::Replica(id), Message::Ordering(Ordering { instance, message: said })) = (to, message) else {
            return liar.say(to, message);
        };
        let second = self.second >> id.0 & 1 == 1;
        let conspirator = liar.liars.contains(&id);
        let lie = match said {
            PbftMessage::PrePrepare(proposal) => {
                let batch = self.story(liar.rng, proposal);
                // Fellow liars hear both.
                if conspirator {
                    liar.say(to, message);
                }
                batch.map(|batch| {
                    PbftMessage::PrePrepare(PrePrepare { view: proposal.view, sequence: proposal.sequence, batch })
                })
            }
            PbftMessage::Prepare(vote) => Some(PbftMessage::Prepare(self.vote(*vote))),
            PbftMessage::Commit(vote) => Some(PbftMessage::Commit(self.vote(*vote))),
            _ => None,
        };
        match lie {
            Some(lie) if second || conspirator => liar.order(to, *instance, lie),
            _ => liar.say(to, message),
        }
    }

    /// A liar that may not vote twice by itself votes for whatever it is told.
    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &bezant_core::registry::Incoming) -> bool {
        if let Message::Ordering(Ordering { instance, message: PbftMessage::Prepare(vote) }) = &*incoming.message
            && self.stories.contains_key(&(vote.view, vote.sequence))
        {
            liar.order(incoming.from, *instance, PbftMessage::Commit(*vote));
        }
        true
    }
}
