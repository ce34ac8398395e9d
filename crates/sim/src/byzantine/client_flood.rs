//! A flood of requests: one identity asks in the name of very many of its sessions at once, as fast as it can, and
//! every request is well-formed, with good MACs or a signature, for all replicas.

use super::ClientBehaviour;
use super::forge::in_the_name_of;
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, ReplicaId, Timestamp};
use bezant_core::message::Request;
use bezant_core::registry::Message;

/// Requests of one mind: a flood may last, a run must end.
const REQUESTS_MAX: u64 = 4_096;

#[derive(Debug)]
pub(super) struct ClientFlood {
    sessions: u64,
    burst: u64,
    signs: bool,
    asked: u64,
}

impl ClientFlood {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { sessions: *rng.pick(&[50, 1_000, 1 << 32]), burst: *rng.pick(&[8, 32]), signs: rng.coin(), asked: 0 }
    }
}

impl ClientBehaviour for ClientFlood {
    fn also(
        &mut self,
        _rng: &mut Rng,
        cluster: &Cluster,
        keyring: &Keyring,
        request: &Request,
    ) -> Vec<(ReplicaId, Message)> {
        let mut said = Vec::new();
        for _ in 0..self.burst.min(REQUESTS_MAX - self.asked) {
            self.asked += 1;
            let client = ClientId { session: (self.asked % self.sessions) as u32, ..request.client };
            let timestamp = Timestamp(request.timestamp.0 + self.asked);
            let more = in_the_name_of(request, request.instance, client, timestamp, (cluster, keyring));
            let more = if self.signs { more.sign(keyring) } else { more };
            said.extend(cluster.replicas.iter().map(|to| (to, Message::Request(more.clone()))));
        }
        said
    }
}
