//! A client whose requests are well formed and differ from receiver to receiver in whatever the codec knows of them
//! ([`super::forge`]), with proofs that fit or with those of the honest request. A bundle becomes another one, or none.

use super::ClientBehaviour;
use super::forge::Forge;
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::ReplicaId;
use bezant_core::message::{Request, bundle};
use bezant_core::registry::Message;
use bytes::Bytes;

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
        let form = |operation| Request::new(lie.instance, lie.client, lie.timestamp, read_only, operation);
        let mut lie = if request.is_bundle() { rebundled(rng, request, form) } else { form(request.operation.clone()) };
        lie.authentication = proof;
        Some(match rng.below(4) {
            0 => lie,
            1 => lie.authenticate(cluster, keyring).sign(keyring),
            2 => lie.authenticate_for_all(cluster, keyring),
            _ => lie.authenticate(cluster, keyring),
        })
    }
}

/// Another bundle of the same operations under the same timestamp, one of them alone, or their bytes as one operation.
fn rebundled(rng: &mut Rng, request: &Request, form: impl FnOnce(Bytes) -> Request) -> Request {
    let mut operations = request.operations();
    let choice = rng.below(4);
    let lie = form(match choice {
        1 => operations.swap_remove(0),
        2 => {
            operations.reverse();
            bundle::pack(&operations)
        }
        _ => request.operation.clone(),
    });
    if choice > 1 && Request::may_be_bundle(lie.client) { lie.as_bundle() } else { lie }
}
