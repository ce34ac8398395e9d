//! Signatures without curve arithmetic: unforgeable by construction, not by hardness.
//!
//! A signature is a hash keyed with the *public* key, so that anybody could compute it; nobody does. A
//! [`Signer`] is the only maker, it wants a secret key, and Byzantine code in the simulator is handed the secrets of
//! its own  replicas and clients only. The same holds for the Diffie–Hellman secret.

use bezant_core::auth::{CoinKey, CoinScheme, CoinShare, SecretKey, Signature, Signer, Suite};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{PublicKey, ReplicaId};
use std::sync::Arc;

/// The simulator's suite.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paper;

fn seal(public: &PublicKey, message: &[u8]) -> Signature {
    let half = Digest::of_parts(Domain::Trace, &[b"sign", &public.0, message]);
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&half.0);
    Signature(signature)
}

/// Signs with the public key of the secret that it was made from.
struct Pen(PublicKey);

impl Signer for Pen {
    fn sign(&self, message: &[u8]) -> Signature {
        seal(&self.0, message)
    }
}

impl Suite for Paper {
    fn public(&self, secret: &SecretKey) -> PublicKey {
        PublicKey(Digest::of_parts(Domain::Trace, &[b"public", &secret.0]).0)
    }

    fn signer(&self, secret: &SecretKey) -> Arc<dyn Signer> {
        Arc::new(Pen(self.public(secret)))
    }

    fn verify(&self, public: &PublicKey, message: &[u8], signature: &Signature) -> bool {
        seal(public, message) == *signature
    }

    fn verify_batch(&self, items: &[(PublicKey, &[u8], Signature)]) -> bool {
        items.iter().all(|(public, message, signature)| self.verify(public, message, signature))
    }

    fn agree(&self, secret: &SecretKey, public: &PublicKey) -> Option<[u8; 32]> {
        let mine = self.public(secret);
        let (low, high) = if mine <= *public { (&mine, public) } else { (public, &mine) };
        Some(Digest::of_parts(Domain::Trace, &[b"agree", &low.0, &high.0]).0)
    }
}

/// The same of a common coin: a share is what is common to all shares of a name, and a seal of its place.
fn share(key: &CoinKey, name: &Digest) -> CoinShare {
    let mut share = [0; CoinShare::BYTES];
    share[..16].copy_from_slice(&Digest::of_parts(Domain::Trace, &[b"toss", &name.0]).0[..16]);
    share[16..].copy_from_slice(&Digest::of_parts(Domain::Trace, &[b"share", &key.0, &name.0]).0);
    CoinShare(share)
}

/// The common coin beside it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PaperCoin;

impl CoinScheme for PaperCoin {
    fn public(&self, secret: &SecretKey) -> Option<CoinKey> {
        let mut key = [0; CoinKey::BYTES];
        key[..32].copy_from_slice(&Digest::of_parts(Domain::Trace, &[b"place", &secret.0]).0);
        Some(CoinKey(key))
    }

    fn share(&self, secret: &SecretKey, name: &Digest) -> CoinShare {
        let key = self.public(secret).expect("every secret has one");
        share(&key, name)
    }

    fn verify(&self, key: &CoinKey, name: &Digest, shown: &CoinShare) -> bool {
        share(key, name) == *shown
    }

    fn combine(&self, shares: &[(ReplicaId, CoinShare)]) -> Digest {
        Digest::of(Domain::Trace, &shares[0].1.0[..16])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_good_for_one_key_and_one_message() {
        let (a, b) = (SecretKey([1; 32]), SecretKey([2; 32]));
        let signature = Paper.signer(&a).sign(b"yes");
        assert!(Paper.verify(&Paper.public(&a), b"yes", &signature));
        assert!(!Paper.verify(&Paper.public(&a), b"no", &signature));
        assert!(!Paper.verify(&Paper.public(&b), b"yes", &signature));
        let toss = Digest([7; 32]);
        let [mine, yours] = [&a, &b].map(|secret| PaperCoin.share(secret, &toss));
        let key = PaperCoin.public(&a).unwrap();
        assert!(PaperCoin.verify(&key, &toss, &mine) && !PaperCoin.verify(&key, &toss, &yours));
        assert_eq!(PaperCoin.combine(&[(ReplicaId(0), mine)]), PaperCoin.combine(&[(ReplicaId(1), yours)]));
        assert_eq!(Paper.agree(&a, &Paper.public(&b)), Paper.agree(&b, &Paper.public(&a)));
    }
}
