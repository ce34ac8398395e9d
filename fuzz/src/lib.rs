//! What the fuzz targets share: a cluster of four, and keys whose signatures a fuzzer can forge.
//!
//! No fuzzer finds a valid signature by chance, so nothing behind the check would ever be reached. [`Credulous`]
//! accepts one signature in two; what is behind the check must stand up to it all the same.

use bezant_core::auth::{Keyring, PublicKey, PublicKeys, SecretKey, Signature, Suite};
use bezant_core::cluster::{ClientId, Cluster, IdentityId, ReplicaId};
use bezant_core::machine::Principal;

/// Keys that protect nothing.
#[derive(Clone, Copy, Debug)]
pub struct Credulous;

impl Suite for Credulous {
    fn public(&self, secret: &SecretKey) -> PublicKey {
        PublicKey(secret.0)
    }

    fn sign(&self, _secret: &SecretKey, _message: &[u8]) -> Signature {
        Signature([0; 64])
    }

    fn verify(&self, _public: &PublicKey, _message: &[u8], signature: &Signature) -> bool {
        signature.0[0] % 2 == 0
    }

    fn verify_batch(&self, items: &[(PublicKey, &[u8], Signature)]) -> bool {
        items.iter().all(|(public, message, signature)| self.verify(public, message, signature))
    }

    fn agree(&self, secret: &SecretKey, public: &PublicKey) -> Option<[u8; 32]> {
        Some(std::array::from_fn(|at| secret.0[at] ^ public.0[at]))
    }
}

/// The only identity that may send requests.
pub const CLIENT: ClientId = ClientId { identity: IdentityId(1), session: 0 };

/// Four replicas with the default limits.
///
/// # Panics
/// Never: four replicas are a cluster.
pub fn cluster() -> Cluster {
    Cluster::of([7; 16], 4).expect("four replicas are a cluster")
}

/// The keys of one of them, or of [`CLIENT`].
///
/// # Panics
/// If `me` is neither a replica of [`cluster`] nor [`CLIENT`].
pub fn keyring(cluster: &Cluster, me: Principal) -> Keyring {
    let secret = |principal| match principal {
        Principal::Replica(ReplicaId(id)) => SecretKey([id + 1; 32]),
        Principal::Client(_) => SecretKey([200; 32]),
    };
    let replicas = cluster.replicas().map(|id| Credulous.public(&secret(Principal::Replica(id)))).collect();
    let identities = [(CLIENT.identity, Credulous.public(&secret(Principal::Client(CLIENT))))].into();
    let keys = PublicKeys { replicas, identities };
    Keyring::new(&Credulous, cluster, me, secret(me), keys).expect("every key above is its owner's")
}
