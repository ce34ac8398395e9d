//! Slowness: a primary that proposes just before the others lose patience.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::ids::Principal;
use bezant_core::protocols::pbft::{Ordering, PbftMessage};
use bezant_core::registry::Message;

#[derive(Debug)]
pub(super) struct Slow {
    /// Of the view time-out, in per mille.
    part: u64,
    /// Whether only proposals are slow, or everything.
    proposals_only: bool,
}

impl Slow {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { part: rng.between(500, 990), proposals_only: rng.coin() }
    }
}

impl Behaviour for Slow {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let proposal = matches!(message, Message::Ordering(Ordering { message: PbftMessage::PrePrepare(_), .. }));
        if proposal || !self.proposals_only {
            let delay = liar.cluster.limits.view_timeout.0 * self.part / 1000;
            liar.say_later(delay, to, message);
        } else {
            liar.say(to, message);
        }
    }
}
