//! A primary of ZLight, a head of Chain or a sequencer of a resilient ring that gives different replicas different
//! orders, leaves gaps, or proposes other agreed values (abs-K17); and a replica that says of whatever is ordered that
//! it holds a certificate for it.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::auth::Tag;
use bezant_core::batch::{Batch, Entry};
use bezant_core::digest::{Digest, Domain};
use bezant_core::history::LogEntry;
use bezant_core::ids::{InstanceId, Principal};
use bezant_core::message::Request;
use bezant_core::protocols::ring_resilient::{Commit, Order as RingOrder, Resilient, ResilientMessage};
use bezant_core::protocols::zlight::Order;
use bezant_core::registry::Message;
use bezant_core::switching::certificate::Prepared;
use bezant_core::time::Duration;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct SplitOrder {
    /// Bit per replica: who hears the second story.
    second: u64,
    /// Batches that are told in two ways, per mille.
    often: u64,
    /// The last batch: told again in place of a later one.
    last: Option<Order>,
    /// The histories of a ring that it has ordered.
    ordered: BTreeMap<(InstanceId, u64), Digest>,
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
        Self { second: rng.next(), often: rng.between(50, 700), last: None, ordered: BTreeMap::new() }
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
                // As if the clients had authenticated them for some only (abs-K2).
                let spoilt = Tag::from_bytes([0xee; 16]);
                for request in &mut lie.requests {
                    request.authentication.tags = request.authentication.tags.iter().map(|_| spoilt).collect();
                }
            }
        }
        Some(lie)
    }
}

impl SplitOrder {
    /// Another batch at the same place of a ring, with a PREP that is as good.
    fn other_of_ring(&self, liar: &mut Liar<'_>, instance: InstanceId, order: &RingOrder) -> Option<RingOrder> {
        let before = *self.ordered.get(&(instance, order.first - 1))?;
        let mut proposal = order.batch.proposal().clone();
        let mut entries = order.batch.entries().to_vec();
        match liar.rng.below(4) {
            0 => return None,
            1 => entries.reverse(),
            2 => drop(entries.pop()),
            _ => proposal.seed = Digest::of(Domain::Trace, &proposal.seed.0),
        }
        let mut history = before;
        for entry in &entries {
            let Entry::Inline(request) = entry else { return None };
            history = history.chain(LogEntry::new(proposal.clone(), request.clone()).digest());
        }
        let position = order.first - 1 + entries.len() as u64;
        let prepare = liar.keyring.sign(Prepared { instance, position, history });
        Some(RingOrder { first: order.first, batch: Batch::new(proposal, entries), prepare: prepare.into() })
    }

    fn send_of_ring(&mut self, liar: &mut Liar<'_>, to: Principal, ring: &Resilient, is_second: bool) {
        let honest = Message::Resilient(ring.clone());
        let say = |message| Message::Resilient(Resilient { instance: ring.instance, message });
        match &ring.message {
            ResilientMessage::Order(order) => {
                let Prepared { position, history, .. } = *order.prepare.claims();
                if !is_second || !liar.rng.per_mille(self.often) {
                    liar.say(to, &honest);
                } else if let Some(lie) = self.other_of_ring(liar, ring.instance, order) {
                    let Prepared { position, history, .. } = *lie.prepare.claims();
                    liar.say(to, &say(ResilientMessage::Order(Box::new(lie))));
                    liar.say(to, &say(ResilientMessage::Commit(Commit { position, history })));
                }
                self.ordered.insert((ring.instance, position), history);
            }
            ResilientMessage::Prepare(signed) if is_second && liar.rng.per_mille(self.often) => {
                let Prepared { position, history, .. } = *signed.claims();
                if liar.rng.coin() {
                    liar.say(to, &honest);
                }
                liar.say(to, &say(ResilientMessage::Commit(Commit { position, history })));
            }
            _ => liar.say(to, &honest),
        }
    }
}

impl Behaviour for SplitOrder {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        if let (Principal::Replica(id), Message::Resilient(ring)) = (to, message) {
            return self.send_of_ring(liar, to, ring, self.second >> id.0 & 1 == 1);
        }
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
