//! A client whose requests reach one replica or a few only (abs-K12, abs-L2), with MACs that are missing, too many or
//! in the wrong order (abs-K2), and with two operations under one timestamp (abs-K16).

use super::ClientBehaviour;
use crate::rng::Rng;
use bezant_core::auth::{Keyring, Tag};
use bezant_core::cluster::Cluster;
use bezant_core::ids::{InstanceId, ReplicaId};
use bezant_core::message::Request;

#[derive(Debug)]
pub(super) struct LopsidedClient {
    /// Receivers that get a request, per mille.
    reach: u64,
    /// Requests with two operations, per mille.
    doubled: u64,
    /// Requests with other MACs than they should have, per mille.
    odd: u64,
}

impl LopsidedClient {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { reach: rng.between(200, 1_000), doubled: rng.below(400), odd: rng.below(500) }
    }
}

impl ClientBehaviour for LopsidedClient {
    fn request(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        keyring: &Keyring,
        _to: ReplicaId,
        request: &Request,
    ) -> Option<Request> {
        if !rng.per_mille(self.reach) {
            return None;
        }
        let mut lie = request.clone();
        let mut operation = lie.operation.to_vec();
        let mut instance = lie.instance;
        if rng.per_mille(self.doubled) {
            operation.push(0);
        }
        if rng.per_mille(100) {
            instance = InstanceId(instance.0 + 1);
        }
        let everybody = lie.authentication.tags.iter().len() == cluster.replicas.n();
        lie = Request::new(instance, lie.client, lie.timestamp, lie.read_only, operation.into());
        lie = lie.authenticate(cluster, keyring);
        if everybody {
            lie = lie.authenticate_for_all(cluster, keyring);
        }
        if rng.per_mille(self.odd) {
            let mut tags: Vec<Tag> = lie.authentication.tags.iter().collect();
            match rng.below(4) {
                0 => tags.truncate(1),
                1 => tags.reverse(),
                2 => tags.extend_from_within(..),
                _ => tags.truncate(cluster.replicas.weak()),
            }
            lie.authentication.tags = tags.into_iter().collect();
        }
        Some(lie)
    }
}
