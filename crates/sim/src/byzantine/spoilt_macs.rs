//! MACs that are spoilt on their way along the chain or around the ring (abs-K18, ring-A5): the liar's own for replicas
//! further on, those of others that pass through it, and those of clients. Its MAC for the next place stays good.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::auth::Tag;
use bezant_core::ids::Principal;
use bezant_core::protocols::ring_fast::Body;
use bezant_core::registry::Message;

#[derive(Debug)]
pub(super) struct SpoiltMacs {
    /// Batches that it touches, per mille.
    often: u64,
}

impl SpoiltMacs {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { often: rng.between(20, 600) }
    }
}

impl Behaviour for SpoiltMacs {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let spoilt = Tag::from_bytes([0xee; 16]);
        if !liar.rng.per_mille(self.often) {
            return liar.say(to, message);
        }
        let mut lie = message.clone();
        match &mut lie {
            Message::Chain(chain) => match liar.rng.below(4) {
                0 => {
                    let which = liar.rng.below(chain.tags.len().max(1) as u64) as usize;
                    chain.tags.get_mut(which).into_iter().for_each(|tag| *tag = spoilt);
                }
                1 => {
                    let which = liar.rng.below(chain.reply_tags.len().max(1) as u64) as usize;
                    chain.reply_tags.get_mut(which).into_iter().for_each(|tag| *tag = spoilt);
                }
                2 => drop(chain.tags.pop()),
                _ => {
                    for request in &mut chain.requests {
                        request.authentication.tags = request.authentication.tags.iter().map(|_| spoilt).collect();
                    }
                }
            },
            Message::ChainReply(reply) => {
                let which = liar.rng.below(reply.tags.len().max(1) as u64) as usize;
                reply.tags.get_mut(which).into_iter().for_each(|tag| *tag = spoilt);
            }
            Message::Ring(ring) => match (liar.rng.below(4), &mut ring.body) {
                (0, _) => {
                    let which = liar.rng.below(ring.tags.len().max(1) as u64) as usize;
                    ring.tags.get_mut(which).into_iter().for_each(|tag| *tag = spoilt);
                }
                (1, _) => {
                    let which = liar.rng.below(ring.reply_tags.len().max(1) as u64) as usize;
                    ring.reply_tags.get_mut(which).into_iter().for_each(|tag| *tag = spoilt);
                }
                (2, _) => drop(ring.tags.pop()),
                (_, Body::Requests(requests)) => {
                    for request in requests {
                        request.authentication.tags = request.authentication.tags.iter().map(|_| spoilt).collect();
                    }
                }
                (_, Body::Digest(_) | Body::DigestAgain(_) | Body::Probe(_)) => {}
            },
            Message::RingReply(reply) => {
                let which = liar.rng.below(reply.tags.len().max(1) as u64) as usize;
                reply.tags.get_mut(which).into_iter().for_each(|tag| *tag = spoilt);
            }
            _ => {}
        }
        liar.say(to, &lie);
    }
}
