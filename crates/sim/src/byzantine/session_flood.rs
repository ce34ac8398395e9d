//! One identity that panics, all at once and at one replica, in the name of more sessions than anybody remembers. Such
//! a flood is long, so that few runs have one; its messages cost next to nothing.

use super::ClientBehaviour;
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, ReplicaId};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::switching::{Panic, Switch, SwitchMessage};

/// PANICs in a run: more than a set of clients holds.
const PANICS: u32 = 5_000;

#[derive(Debug)]
pub(super) struct SessionFlood {
    /// Requests until the flood comes.
    wait: Option<u64>,
}

impl SessionFlood {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { wait: Some(rng.below(3)) }
    }
}

impl ClientBehaviour for SessionFlood {
    fn also(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        _keyring: &Keyring,
        request: &Request,
    ) -> Vec<(ReplicaId, Message)> {
        self.wait = match self.wait {
            Some(0) => None,
            Some(wait) => {
                self.wait = Some(wait - 1);
                return Vec::new();
            }
            None => return Vec::new(),
        };
        let to = ReplicaId(rng.below(cluster.replicas.n() as u64) as u8);
        let panic = |session| {
            let client = ClientId { session, ..request.client };
            let message = SwitchMessage::Panic(Panic { client, timestamp: request.timestamp });
            (to, Message::Switch(Switch { instance: request.instance, message }))
        };
        (1..=PANICS).map(panic).collect()
    }
}
