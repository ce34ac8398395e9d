//! The client's part of the ring: whom it asks, and the answers of the last f + 1 positions.

use super::message::RingReply;
use super::path::Path;
use crate::auth::Keyring;
use crate::ids::{Principal, ReplicaId, Timestamp};
use crate::machine::{Destination, Step};
use crate::protocols::speculative::{Asking, ClientHalf, Complaint, Response, Settled, Verdict, all_equal};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// See the [module](self).
pub(crate) struct RingFastClient;

impl ClientHalf for RingFastClient {
    fn receivers(&self, at: &Asking, timestamp: Timestamp) -> Vec<ReplicaId> {
        let entry = Path::entry_for(at.replicas, at.client, timestamp, 0);
        let path = Path::new(at.replicas, at.head, entry);
        (0..at.replicas.weak()).map(|position| path.at(position)).collect()
    }

    fn first(&self, at: &Asking, timestamp: Timestamp, _everybody: bool) -> Destination {
        Destination::Replica(Path::entry_for(at.replicas, at.client, timestamp, 0))
    }

    fn counts(&self, _at: &Asking, _from: ReplicaId) -> bool {
        true
    }

    fn weigh(&self, at: &Asking, responses: &BTreeMap<ReplicaId, Response>) -> Verdict {
        all_equal(responses, at.replicas.all())
    }

    fn believes_certain(&self) -> bool {
        true
    }

    fn asks(&self) -> Option<Step> {
        Some("Ring 1")
    }

    fn accepts(&self) -> Option<Step> {
        Some("Ring 5")
    }

    fn ends(&self) -> Step {
        "Client 7"
    }

    fn complaint(&self) -> Complaint {
        Complaint::Signed
    }
}

/// What the exit's answer settles: it bears the MACs of the last f + 1 positions.
pub(crate) fn settles(at: &Asking, keyring: &Keyring, reply: RingReply) -> Option<Settled> {
    if !at.replicas.contains(reply.entry) {
        return None;
    }
    let path = Path::new(at.replicas, at.head, reply.entry);
    let bytes = reply.statement().bytes();
    let vouched = reply.outcome.is_whole()
        && reply.tags.len() == at.replicas.weak()
        && path.vouchers().zip(&reply.tags).all(|(id, tag)| keyring.check(Principal::Replica(id), &bytes, tag));
    let vouchers = path.vouchers().fold(0, |bits, id| bits | 1 << id.0);
    let RingReply { position, history, outcome, .. } = reply;
    vouched.then_some(Settled { position, history, outcome, vouchers })
}
