//! A primary of ZLight or a head of Chain that gives different replicas different orders, leaves gaps, or proposes
//! other agreed values (K17).

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::auth::Tag;
use bezant_core::digest::{Digest, Domain};
use bezant_core::machine::{Duration, Principal};
use bezant_core::message::{Message, Request};
use bezant_core::protocols::zlight::Order;

#[derive(Debug)]
pub(super) struct SplitOrder {
    /// Bit per replica: who hears the second story.
    second: u64,
    /// Batches that are told in two ways, per mille.
    often: u64,
    /// The last batch: told again in place of a later one.
    last: Option<Order>,
}

/// What the client did not ask for, with its MACs.
pub(super) fn forged(request: &Request) -> Request {
    let mut operation = request.operation.to_vec();
    operation.push(0);
    let Request { instance, client, timestamp, read_only, .. } = *request;
    let mut forged = Request::new(instance, client, timestamp, read_only, operation.into());
    forged.authentication = request.authentication.clone();
    forged
}

impl SplitOrder {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { second: rng.next(), often: rng.between(50, 700), last: None }
    }

    fn other(&self, liar: &mut Liar<'_>, order: &Order) -> Option<Order> {
        let mut lie = order.clone();
        match liar.rng.below(9) {
            0 => return None,
            1 => lie.first += 1,
            2 => lie.requests.reverse(),
            3 => drop(lie.requests.pop()),
            4 => lie.proposal.seed = Digest::of(Domain::Trace, &lie.proposal.seed.0),
            5 => lie.proposal.time += Duration(liar.rng.below(1 << 40)),
            6 => {
                let requests = self.last.as_ref().map(|last| last.requests.clone());
                lie.requests = requests.unwrap_or_default();
            }
            7 => lie.requests = lie.requests.iter().map(forged).collect(),
            _ => {
                // As if the clients had authenticated them for some only (K2).
                let spoilt = Tag::from_bytes([0xee; 16]);
                for request in &mut lie.requests {
                    request.authentication.tags = request.authentication.tags.iter().map(|_| spoilt).collect();
                }
            }
        }
        Some(lie)
    }
}

impl Behaviour for SplitOrder {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let (Principal::Replica(id), Message::Order(order)) = (to, message) else { return liar.say(to, message) };
        if self.second >> id.0 & 1 == 1 && liar.rng.per_mille(self.often) {
            if let Some(lie) = self.other(liar, order) {
                liar.say(to, &Message::Order(lie));
            }
        } else {
            liar.say(to, message);
        }
        self.last = Some(order.clone());
    }
}
