//! What was said in one instance, said again in another (abs-K10, abs-K11): checkpoints, orders, answers and abort
//! reports of instances that are over, or have not begun.

use super::{Behaviour, Liar};
use bezant_core::ids::{InstanceId, Principal};
use bezant_core::protocols::speculative::Certain;
use bezant_core::registry::{Incoming, Message};
use bezant_core::switching::{Switch, SwitchMessage};
use std::collections::VecDeque;

/// What it remembers: the oldest is forgotten first.
const MEMORY_MAX: usize = 200;

#[derive(Debug, Default)]
pub(super) struct CrossInstance {
    memory: VecDeque<Message>,
    latest: InstanceId,
}

/// The same, of another instance.
fn moved(message: &Message, to: InstanceId) -> Message {
    let mut moved = message.clone();
    match &mut moved {
        Message::Request(request) => request.instance = to,
        Message::Reply(reply) => reply.instance = to,
        Message::Ordering(ordering) => ordering.instance = to,
        Message::Agreement(agreement) => agreement.instance = to,
        Message::Switch(Switch { instance, .. }) => *instance = to,
        Message::Response(response) => response.instance = to,
        Message::Order(order) => order.instance = to,
        Message::Chain(chain) => chain.instance = to,
        Message::Resilient(resilient) => resilient.instance = to,
        Message::ChainReply(reply) => reply.instance = to,
        Message::Ring(ring) => ring.instance = to,
        Message::RingReply(reply) => reply.instance = to,
        Message::RingCertain(Certain(response)) => response.instance = to,
        Message::RingPace(pace) => pace.instance = to,
        Message::Checkpoint(_) | Message::Testimony(_) | Message::Transfer(_) | Message::Cookie(_) => {}
    }
    moved
}

impl CrossInstance {
    fn remember(&mut self, message: &Message) {
        self.latest = self.latest.max(message.instance().unwrap_or_default());
        if self.memory.len() == MEMORY_MAX {
            self.memory.pop_front();
        }
        self.memory.push_back(message.clone());
    }
}

impl Behaviour for CrossInstance {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        self.remember(message);
        liar.say(to, message);
    }

    fn receive(&mut self, _liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        self.remember(&incoming.message);
        true
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        for _ in 0..4 {
            if self.memory.is_empty() {
                return;
            }
            let message = &self.memory[liar.rng.below(self.memory.len() as u64) as usize];
            let instance = InstanceId(self.latest.0.saturating_add(liar.rng.below(4)).saturating_sub(1).max(1));
            // Behind is a question; asking it from everywhere is not worth a message.
            let asks = matches!(message, Message::Switch(Switch { message: SwitchMessage::Behind(()), .. }));
            let message = if asks { message.clone() } else { moved(message, instance) };
            let to = *liar.rng.pick(&liar.others());
            liar.say(to, &message);
        }
    }
}
