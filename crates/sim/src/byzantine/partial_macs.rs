//! The big MAC attack (pbft-F20): a client's authenticator convinces some replicas and not others; and, now and then,
//! one timestamp names two operations.

use super::ClientBehaviour;
use crate::rng::Rng;
use bezant_core::auth::{Keyring, Tag};
use bezant_core::cluster::Cluster;
use bezant_core::ids::ReplicaId;
use bezant_core::message::{Authentication, Request};

#[derive(Debug)]
pub(super) struct PartialMacs {
    /// Bit per replica: whose tag is spoilt.
    spoilt: u64,
    /// Requests without a valid signature, per mille.
    unsigned: u64,
    /// Requests that differ between receivers, per mille.
    doubled: u64,
}

impl PartialMacs {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { spoilt: rng.next(), unsigned: rng.below(600), doubled: rng.below(300) }
    }
}

/// Spoils the MACs of these replicas, a bit for each.
pub(super) fn spoil(proof: &mut Authentication, whose: u64) {
    let spoilt = Tag::from_bytes([0xee; 16]);
    let tags = proof.tags.iter().enumerate();
    proof.tags = tags.map(|(index, tag)| if whose >> index & 1 == 1 { spoilt } else { tag }).collect();
}

impl ClientBehaviour for PartialMacs {
    fn request(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        keyring: &Keyring,
        _to: ReplicaId,
        request: &Request,
    ) -> Option<Request> {
        let mut lie = request.clone();
        if rng.per_mille(self.doubled) {
            let mut operation = lie.operation.to_vec();
            operation.push(0);
            lie = Request::new(lie.instance, lie.client, lie.timestamp, lie.read_only, operation.into());
            lie = lie.authenticate(cluster, keyring);
        }
        spoil(&mut lie.authentication, self.spoilt);
        if rng.per_mille(self.unsigned)
            && let Some(signed) = &mut lie.authentication.signature
        {
            signed.signature.0[0] ^= 1;
        }
        Some(lie)
    }
}
