//! A client whose requests are well formed and differ from receiver to receiver in whatever the codec knows of them
//! ([`super::forge`]), with proofs that fit or with those of the honest request.

use super::ClientBehaviour;
use super::forge::Forge;
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::ReplicaId;
use bezant_core::message::Request;
use bezant_core::registry::Message;

#[derive(Debug)]
pub(super) struct OddClient {
    forge: Forge,
    often: u64,
}

impl OddClient {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { forge: Forge::default(), often: *rng.pick(&[50, 300, 900]) }
    }
}

impl ClientBehaviour for OddClient {
    fn request(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        keyring: &Keyring,
        _to: ReplicaId,
        request: &Request,
    ) -> Option<Request> {
        let honest = Message::Request(request.clone());
        self.forge.learn(rng, &honest);
        if !rng.per_mille(self.often) {
            return Some(request.clone());
        }
        let Some(Message::Request(lie)) = self.forge.change(rng, keyring, &honest) else { return None };
        // What it writes stays on the liars' keys.
        let proof = lie.authentication;
        let read_only = lie.read_only;
        let mut lie = Request::new(lie.instance, lie.client, lie.timestamp, read_only, request.operation.clone());
        lie.authentication = proof;
        Some(match rng.below(4) {
            0 => lie,
            1 => lie.authenticate(cluster, keyring).sign(keyring),
            2 => lie.authenticate_for_all(cluster, keyring),
            _ => lie.authenticate(cluster, keyring),
        })
    }
}
