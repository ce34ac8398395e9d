//! Replay: everything that was ever said to it or by it, again, to anybody, in any view and after any restart. Only
//! what was authenticated for that receiver, or signed, can do harm.

use super::{Behaviour, Liar};
use bezant_core::batch::Entry;
use bezant_core::ids::Principal;
use bezant_core::protocols::pbft::{Ordering, PbftMessage, PrePrepare};
use bezant_core::registry::{Incoming, Message};
use std::collections::VecDeque;

/// What it remembers: the oldest is forgotten first.
const MEMORY_MAX: usize = 400;

#[derive(Debug, Default)]
pub(super) struct Replay {
    own: VecDeque<(Principal, Message)>,
    /// Messages of others that convince third parties, or that it may repeat under its own name.
    others: VecDeque<Message>,
}

fn remember<T>(memory: &mut VecDeque<T>, item: T) {
    if memory.len() == MEMORY_MAX {
        memory.pop_front();
    }
    memory.push_back(item);
}

impl Behaviour for Replay {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        remember(&mut self.own, (to, message.clone()));
        liar.say(to, message);
        if liar.rng.per_mille(300) && !self.own.is_empty() {
            let (to, message) = self.own[liar.rng.below(self.own.len() as u64) as usize].clone();
            let delay = liar.rng.below(liar.cluster.limits.view_timeout.0);
            liar.say_later(delay, to, &message);
        }
    }

    fn receive(&mut self, _liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        remember(&mut self.others, (*incoming.message).clone());
        // An old request that a proposal carried, as if its client had just asked.
        if let Message::Ordering(Ordering { message: PbftMessage::PrePrepare(PrePrepare { batch, .. }), .. }) =
            &*incoming.message
        {
            for entry in batch.entries() {
                if let Entry::Inline(request) = entry {
                    remember(&mut self.others, Message::Request(request.clone()));
                }
            }
        }
        true
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        for _ in 0..3 {
            if self.others.is_empty() {
                return;
            }
            let message = &self.others[liar.rng.below(self.others.len() as u64) as usize];
            let to = *liar.rng.pick(&liar.others());
            liar.say(to, message);
        }
    }
}
