//! What the fuzz targets share: a cluster of four, keys, networks that the fuzzer plays, and files that it damages.
//!
//! Two suites stand in for Ed25519, for no fuzzer finds a valid signature by chance:
//! * [`Credulous`] accepts one signature in two, so that what lies behind the check of one message is reached;
//! * [`Sound`] accepts what the signer signed and nothing else, so that replicas may be held to their promises.

pub mod cluster;
pub mod handshake;
pub mod postgres;
pub mod snapshot;

use bezant_core::auth::{Keyring, PublicKeys, SecretKey, Signature, Signer, Suite};
use bezant_core::cluster::Cluster;
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{ClientId, IdentityId, Principal, PublicKey, ReplicaId};
use std::sync::Arc;

/// Keys that protect nothing.
#[derive(Clone, Copy, Debug)]
pub struct Credulous;

impl Suite for Credulous {
    fn public(&self, secret: &SecretKey) -> PublicKey {
        Sound.public(secret)
    }

    fn signer(&self, secret: &SecretKey) -> Arc<dyn Signer> {
        Sound.signer(secret)
    }

    fn verify(&self, _public: &PublicKey, _message: &[u8], signature: &Signature) -> bool {
        signature.0[0].is_multiple_of(2)
    }

    fn verify_batch(&self, items: &[(PublicKey, &[u8], Signature)]) -> bool {
        items.iter().all(|(public, message, signature)| self.verify(public, message, signature))
    }

    fn agree(&self, secret: &SecretKey, public: &PublicKey) -> Option<[u8; 32]> {
        Sound.agree(secret, public)
    }
}

/// A hash in the place of a signature: whoever knows how could forge it, but a fuzzer does not.
#[derive(Clone, Copy, Debug)]
pub struct Sound;

/// Whoever may sign for a key.
struct Hand(PublicKey);

impl Signer for Hand {
    fn sign(&self, message: &[u8]) -> Signature {
        let digest = Digest::of_parts(Domain::Signature, &[&self.0.0, message]).0;
        Signature(std::array::from_fn(|at| digest[at % 32]))
    }
}

impl Suite for Sound {
    fn public(&self, secret: &SecretKey) -> PublicKey {
        PublicKey(secret.0)
    }

    fn signer(&self, secret: &SecretKey) -> Arc<dyn Signer> {
        Arc::new(Hand(self.public(secret)))
    }

    fn verify(&self, public: &PublicKey, message: &[u8], signature: &Signature) -> bool {
        Hand(*public).sign(message) == *signature
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
pub fn four() -> Cluster {
    Cluster::of([7; 16], 4).expect("four replicas are a cluster")
}

/// The keys of one of them, or of [`CLIENT`], also where it goes by its key alone.
///
/// # Panics
/// If `me` is neither a replica of [`four`] nor [`CLIENT`].
pub fn keyring(suite: &'static dyn Suite, cluster: &Cluster, me: Principal) -> Keyring {
    let secret = |principal| match principal {
        Principal::Replica(ReplicaId(id)) => SecretKey([id + 1; 32]),
        Principal::Client(_) | Principal::Key(_) => SecretKey([200; 32]),
    };
    let replicas = cluster.replicas.iter().map(|id| suite.public(&secret(Principal::Replica(id)))).collect();
    let identities = [(CLIENT.identity, suite.public(&secret(Principal::Client(CLIENT))))].into();
    let keys = PublicKeys { replicas, identities };
    Keyring::new(suite, cluster, me, secret(me), keys).expect("every key above is its owner's")
}
