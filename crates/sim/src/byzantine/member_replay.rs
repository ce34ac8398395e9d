//! Replay of what members said (prac-A19, prac-F25): JOINs, LEAVEs and requests of sessions that are over, ordered
//! again by a lying primary and passed on by a lying backup. All of it bears valid signatures.

use super::{Behaviour, Liar};
use bezant_core::batch::{Batch, Entry};
use bezant_core::ids::Principal;
use bezant_core::message::Request;
use bezant_core::protocols::pbft::{Ordering, PbftMessage, PrePrepare, Vote};
use bezant_core::registry::{Incoming, Message};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Requests that it remembers: the oldest is forgotten first.
const MEMORY_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct MemberReplay {
    heard: VecDeque<Request>,
    /// What it proposed in place of its machine's batches, so that every receiver hears the same.
    proposed: BTreeMap<(u64, u64), Arc<Batch>>,
}

impl MemberReplay {
    fn remember(&mut self, request: &Request) {
        if request.credential().is_none() || self.heard.iter().any(|known| known.digest() == request.digest()) {
            return;
        }
        if self.heard.len() == MEMORY_MAX {
            self.heard.pop_front();
        }
        self.heard.push_back(request.clone());
    }

    /// The same batch with an old request in it.
    fn story(&mut self, liar: &mut Liar<'_>, proposal: &PrePrepare) -> Arc<Batch> {
        let heard = &self.heard;
        let batch = self.proposed.entry((proposal.view.0, proposal.sequence.0)).or_insert_with(|| {
            let mut entries = proposal.batch.entries().to_vec();
            let room = entries.len() < liar.cluster.limits.batch_requests_max;
            if !heard.is_empty() && room && liar.rng.per_mille(600) {
                let old = heard[liar.rng.below(heard.len() as u64) as usize].clone();
                let fits = old.operation.len() <= liar.cluster.limits.inline_bytes_max;
                if fits && entries.iter().filter_map(Entry::inline).all(|request| request.client != old.client) {
                    let place = liar.rng.below(entries.len() as u64 + 1) as usize;
                    entries.insert(place, Entry::Inline(old));
                }
            }
            Arc::new(Batch::new(proposal.batch.proposal().clone(), entries))
        });
        batch.clone()
    }

    fn vote(&self, vote: Vote) -> Vote {
        let digest = self.proposed.get(&(vote.view.0, vote.sequence.0)).map_or(vote.digest, |batch| batch.digest());
        Vote { digest, ..vote }
    }
}

impl Behaviour for MemberReplay {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let Message::Ordering(Ordering { instance, message: said }) = message else { return liar.say(to, message) };
        let said = match said {
            PbftMessage::PrePrepare(proposal) if !proposal.batch.is_null() => {
                let batch = self.story(liar, proposal);
                let PrePrepare { view, sequence, .. } = *proposal;
                PbftMessage::PrePrepare(PrePrepare { view, sequence, batch })
            }
            PbftMessage::Commit(vote) => PbftMessage::Commit(self.vote(*vote)),
            other => other.clone(),
        };
        liar.order(to, *instance, said);
    }

    /// Its own machine believes in the honest batch; votes for the other one are answered in its place.
    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        match &*incoming.message {
            Message::Request(request) => self.remember(request),
            Message::Ordering(Ordering { message: PbftMessage::PrePrepare(proposal), .. }) => {
                for entry in proposal.batch.entries() {
                    if let Entry::Inline(request) = entry {
                        self.remember(request);
                    }
                }
            }
            Message::Ordering(Ordering { instance, message: PbftMessage::Prepare(vote) })
                if self
                    .proposed
                    .get(&(vote.view.0, vote.sequence.0))
                    .is_some_and(|batch| batch.digest() == vote.digest) =>
            {
                for to in liar.others() {
                    liar.order(to, *instance, PbftMessage::Commit(*vote));
                }
            }
            _ => {}
        }
        true
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        if self.heard.is_empty() {
            return;
        }
        for to in liar.others() {
            let old = self.heard[liar.rng.below(self.heard.len() as u64) as usize].clone();
            liar.say(to, &Message::Request(old));
        }
    }
}
