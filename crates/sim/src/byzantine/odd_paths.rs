//! A client that signs several requests under one root and gives them wrong ways there: the path of another, another
//! side, a level more or less, more levels than there may be, the root of an earlier pass, a node in place of a leaf.
//! Its MACs are good for some replicas only, so that the signature decides; and of two requests with one timestamp,
//! both below one root, each receiver gets either.

use super::ClientBehaviour;
use super::partial_macs::spoil;
use crate::rng::Rng;
use bezant_core::auth::{Keyring, PATH_MAX, TreeSignature};
use bezant_core::cluster::Cluster;
use bezant_core::digest::Digest;
use bezant_core::ids::{ReplicaId, Timestamp};
use bezant_core::message::Request;

/// The most requests below one root that it does not send.
const LATER_MAX: u64 = 7;

#[derive(Debug)]
pub(super) struct OddPaths {
    /// Bit per replica: whose tag is spoilt.
    spoilt: u64,
    /// Requests with a wrong way to their root, per mille.
    wrong: u64,
    /// Requests that differ between receivers, per mille.
    doubled: u64,
    /// The signature over an earlier request.
    earlier: Option<TreeSignature>,
}

impl OddPaths {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { spoilt: rng.next(), wrong: rng.below(800), doubled: rng.below(300), earlier: None }
    }
}

impl ClientBehaviour for OddPaths {
    fn request(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        keyring: &Keyring,
        _to: ReplicaId,
        request: &Request,
    ) -> Option<Request> {
        // In a ring a signature is a panic.
        if request.authentication.signature.is_none() && rng.coin() {
            return Some(request.clone());
        }
        let other = |operation: Vec<u8>, timestamp| {
            Request::new(request.instance, request.client, timestamp, request.read_only, operation.into())
        };
        let mut longer = request.operation.to_vec();
        longer.push(0);
        let mut pass = vec![request.clone(), other(longer, request.timestamp).authenticate(cluster, keyring)];
        let later = |number| other(request.operation.to_vec(), Timestamp(request.timestamp.0 + number));
        pass.extend((1..=rng.between(1, LATER_MAX)).map(later));
        Request::sign_all(pass.iter_mut(), keyring);
        let theirs = pass[2].authentication.signature.clone();
        let mut lie = pass.swap_remove(usize::from(rng.per_mille(self.doubled)));
        spoil(&mut lie.authentication, self.spoilt);
        let right = lie.authentication.signature.clone();
        if let (true, Some(signed)) = (rng.per_mille(self.wrong), &mut lie.authentication.signature) {
            match rng.below(7) {
                0 => lie.authentication.signature = theirs,
                1 => signed.sides ^= 1 << rng.below(signed.path.len().max(1) as u64),
                2 => drop(signed.path.pop()),
                3 => signed.path.push(Digest::ZERO),
                4 => signed.path.resize(PATH_MAX + 1, Digest::ZERO),
                5 => lie.authentication.signature = self.earlier.clone().or(theirs),
                // As if the node above its leaf were the leaf.
                _ => {
                    signed.path = signed.path.split_off(1.min(signed.path.len()));
                    signed.sides >>= 1;
                }
            }
        }
        self.earlier = right;
        Some(lie)
    }
}
