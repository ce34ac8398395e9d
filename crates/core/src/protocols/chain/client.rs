//! The client's part of Chain: whom it asks, and the answers of the last f + 1 places.

use super::message::ChainReply;
use super::topology::Topology;
use crate::auth::Keyring;
use crate::ids::{Principal, ReplicaId, Timestamp};
use crate::machine::{Destination, Step};
use crate::protocols::speculative::{Asking, ClientHalf, Complaint, Response, Settled, Verdict, all_equal};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// See the [module](self).
pub(crate) struct ChainClient;

impl ClientHalf for ChainClient {
    fn receivers(&self, at: &Asking, _timestamp: Timestamp) -> Vec<ReplicaId> {
        let topology = Topology::new(at.replicas, at.head);
        topology.client_receivers().map(|place| topology.at(place)).collect()
    }

    fn first(&self, at: &Asking, _timestamp: Timestamp, _everybody: bool) -> Destination {
        Destination::Replica(at.head)
    }

    fn counts(&self, at: &Asking, from: ReplicaId) -> bool {
        let topology = Topology::new(at.replicas, at.head);
        topology.is_last(topology.place(from))
    }

    fn weigh(&self, at: &Asking, responses: &BTreeMap<ReplicaId, Response>) -> Verdict {
        // A repeated answer. Those of exactly the last f + 1 places count.
        let needed = at.replicas.iter().filter(|id| self.counts(at, *id)).count();
        all_equal(responses, needed)
    }

    fn believes_certain(&self) -> bool {
        false
    }

    fn asks(&self) -> Option<Step> {
        Some("Chain 1")
    }

    fn accepts(&self) -> Option<Step> {
        Some("Chain 4")
    }

    fn ends(&self) -> Step {
        "Client 7"
    }

    fn complaint(&self) -> Complaint {
        Complaint::Panic
    }
}

/// What the tail's answer settles: it bears the MACs of all of the last f + 1 places.
pub(crate) fn settles(at: &Asking, keyring: &Keyring, reply: ChainReply) -> Option<Settled> {
    let topology = Topology::new(at.replicas, at.head);
    let statement = reply.statement();
    let bytes = statement.bytes();
    let last = || (0..=topology.tail()).filter(|place| topology.is_last(*place));
    let vouched = reply.outcome.is_whole()
        && reply.tags.len() == topology.reply_tags(topology.tail())
        && last()
            .zip(&reply.tags)
            .all(|(place, tag)| keyring.check(Principal::Replica(topology.at(place)), &bytes, tag));
    let vouchers = last().fold(0, |bits, place| bits | 1 << topology.at(place).0);
    let (position, history) = (statement.position, statement.history);
    vouched.then_some(Settled { position, history, outcome: reply.outcome, vouchers })
}
