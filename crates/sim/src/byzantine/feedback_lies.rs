//! A client that lies about what waits (abs-K22): it announces what it never asks for, says that nothing is ever
//! answered, or that nothing waits, speaks for many machines, and names requests of others.

use super::ClientBehaviour;
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, InstanceId, ReplicaId, Timestamp};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::switching::{Feedback, Switch, SwitchMessage};

#[derive(Debug)]
pub(super) struct FeedbackLies {
    /// How many machines it claims to have.
    machines: u64,
    /// How much waits there, as it says, in thousandths of a request.
    load: u32,
    /// Whether it asks for anything at all.
    asks: bool,
    next: u64,
}

impl FeedbackLies {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self {
            machines: *rng.pick(&[1, 1, 3, 50, 5_000]),
            load: *rng.pick(&[0, 1, 700, 20_000, u32::MAX]),
            asks: rng.per_mille(700),
            next: 0,
        }
    }
}

impl ClientBehaviour for FeedbackLies {
    fn request(
        &mut self,
        _rng: &mut Rng,
        _cluster: &Cluster,
        _keyring: &Keyring,
        _to: ReplicaId,
        request: &Request,
    ) -> Option<Request> {
        self.asks.then(|| request.clone())
    }

    fn also(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        _keyring: &Keyring,
        request: &Request,
    ) -> Vec<(ReplicaId, Message)> {
        let mut said = Vec::new();
        for _ in 0..rng.between(1, 40) {
            self.next += 1;
            let machine = ClientId { session: (self.next % self.machines) as u32, ..request.client };
            let load = if rng.per_mille(900) { self.load } else { rng.below(5_000) as u32 };
            let session = *rng.pick(&[request.client.session, 0, u32::MAX]);
            let timestamp = Timestamp(*rng.pick(&[request.timestamp.0, request.timestamp.0 + 1, 1, u64::MAX]));
            let oldest = (load > 0 || rng.per_mille(20)).then_some((session, timestamp));
            let instance = InstanceId(request.instance.0 + *rng.pick(&[0, 0, 0, 1, 1 << 40]));
            let message = SwitchMessage::Feedback(Feedback { machine, load, oldest });
            let some = if rng.per_mille(200) { rng.next() } else { u64::MAX };
            let heard = cluster.replicas.iter().filter(|to| some >> to.0 & 1 == 1);
            said.extend(heard.map(|to| (to, Message::Switch(Switch { instance, message: message.clone() }))));
        }
        said
    }
}
