//! A client that panics whenever it speaks (abs-K14): in the instance that it asks, in later ones, and in some that
//! will never be; to everybody or to some.

use super::ClientBehaviour;
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{InstanceId, ReplicaId};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::schedule::Part;
use bezant_core::switching::{Panic, Switch, SwitchMessage};

/// PANICs to each replica for each request.
const BURST: usize = 3;

#[derive(Debug)]
pub(super) struct PanicStorm;

impl ClientBehaviour for PanicStorm {
    fn request(
        &mut self,
        rng: &mut Rng,
        _cluster: &Cluster,
        _keyring: &Keyring,
        _to: ReplicaId,
        request: &Request,
    ) -> Option<Request> {
        rng.coin().then(|| request.clone())
    }

    fn also(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        keyring: &Keyring,
        request: &Request,
    ) -> Vec<(ReplicaId, Message)> {
        let mut storm = Vec::new();
        for to in cluster.replicas.iter() {
            // Ring knows a panic by its signature.
            if cluster.part(request.instance) == Part::RingFast && rng.coin() {
                storm.push((to, Message::Request(request.clone().sign(keyring))));
            }
            for _ in 0..BURST {
                let ahead = *rng.pick(&[0, 0, 1, 2, 3, 1 << 40]);
                let instance = InstanceId(request.instance.0 + ahead);
                let panic = Panic { client: request.client, timestamp: request.timestamp };
                storm.push((to, Message::Switch(Switch { instance, message: SwitchMessage::Panic(panic) })));
            }
        }
        storm
    }
}
