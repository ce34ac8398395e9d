//! What a way of lying is to its host: a mind beside the honest machine of a replica or a client.

use super::Liar;
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::message::Request;
use bezant_core::registry::{Incoming, Message};
use std::fmt;

/// A Byzantine replica's mind. By default it is honest.
pub trait Behaviour: fmt::Debug {
    /// Its honest machine asks to say this to one receiver.
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        liar.say(to, message);
    }

    /// Its honest machine is about to receive this. `false` keeps it away.
    fn receive(&mut self, _liar: &mut Liar<'_>, _incoming: &Incoming) -> bool {
        true
    }

    /// Time went by.
    fn tick(&mut self, _liar: &mut Liar<'_>) {}

    /// How many microseconds it does nothing between one look at what has come and the next.
    fn stall(&self, _cluster: &Cluster) -> Option<u64> {
        None
    }
}

/// A Byzantine client's mind: what it sends to each replica in place of an honest request.
pub trait ClientBehaviour: fmt::Debug + Send {
    /// The request for one replica, or nothing; the honest one unless a behaviour knows better.
    fn request(
        &mut self,
        _rng: &mut Rng,
        _cluster: &Cluster,
        _keyring: &Keyring,
        _to: ReplicaId,
        request: &Request,
    ) -> Option<Request> {
        Some(request.clone())
    }

    /// What it says besides, whenever it sends a request.
    fn also(
        &mut self,
        _rng: &mut Rng,
        _cluster: &Cluster,
        _keyring: &Keyring,
        _request: &Request,
    ) -> Vec<(ReplicaId, Message)> {
        Vec::new()
    }

    /// What it sends to each replica besides that need not be a message at all.
    fn frames(&mut self, _rng: &mut Rng, _keyring: &Keyring, _to: ReplicaId, _request: &Request) -> Vec<Vec<u8>> {
        Vec::new()
    }
}
