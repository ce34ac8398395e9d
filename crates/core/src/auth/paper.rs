//! Signatures without curve arithmetic: unforgeable by construction, not by hardness.
//!
//! A signature is a hash keyed with the *public* key, so that anybody could compute it; nobody does. A [`Signer`] is
//! the only maker, it wants a secret key, and who lies in tests and in the simulator is handed the secrets of its own
//! replicas and clients only. The same holds for the Diffie–Hellman secret.

use super::{SecretKey, Signature, Signer, Suite};
use crate::digest::{Digest, Domain};
use crate::ids::PublicKey;
use alloc::sync::Arc;

/// See the [module](self).
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
        assert_eq!(Paper.agree(&a, &Paper.public(&b)), Paper.agree(&b, &Paper.public(&a)));
    }
}
