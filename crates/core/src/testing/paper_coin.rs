//! A common coin without curve arithmetic: unforgeable because nobody forges, and not by hardness.
//!
//! A share is a hash keyed with the *public* key of its place, behind a half that is the same for all places: that one
//! is the toss.

use crate::auth::{CoinKey, CoinScheme, CoinShare, CommonCoin, SecretKey};
use crate::digest::{Digest, Domain};
use crate::ids::ReplicaId;
use alloc::vec::Vec;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct PaperCoin;

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    Digest::of_parts(Domain::Trace, parts).0
}

fn seal(key: &CoinKey, name: &Digest) -> CoinShare {
    let mut share = [0; CoinShare::BYTES];
    share[..16].copy_from_slice(&hash(&[b"toss", &key.0[..32], &name.0])[..16]);
    share[16..].copy_from_slice(&hash(&[b"share", &key.0, &name.0]));
    CoinShare(share)
}

impl PaperCoin {
    /// The secrets of so many places.
    pub(crate) fn secrets(n: usize, seed: u64) -> Vec<SecretKey> {
        let secret = |place: usize| {
            let mut secret = [0; 32];
            secret[..8].copy_from_slice(&seed.to_le_bytes());
            secret[8] = place as u8;
            SecretKey(secret)
        };
        (0..n).map(secret).collect()
    }

    /// Their public keys.
    pub(crate) fn keys(n: usize, seed: u64) -> Vec<CoinKey> {
        Self::secrets(n, seed).iter().filter_map(|secret| Self.public(secret)).collect()
    }

    /// The coins of one process.
    pub(crate) fn coin(n: usize, seed: u64, me: ReplicaId) -> CommonCoin {
        let secret = Self::secrets(n, seed).swap_remove(usize::from(me.0));
        CommonCoin::of(&Self, me, secret, Self::keys(n, seed)).expect("its own secret")
    }
}

impl CoinScheme for PaperCoin {
    fn public(&self, secret: &SecretKey) -> Option<CoinKey> {
        let mut key = [0; CoinKey::BYTES];
        key[..32].copy_from_slice(&hash(&[b"dealt", &secret.0[..8]]));
        key[32..64].copy_from_slice(&hash(&[b"place", &secret.0]));
        Some(CoinKey(key))
    }

    fn share(&self, secret: &SecretKey, name: &Digest) -> CoinShare {
        seal(&self.public(secret).expect("every secret has one"), name)
    }

    fn verify(&self, key: &CoinKey, name: &Digest, share: &CoinShare) -> bool {
        seal(key, name) == *share
    }

    fn combine(&self, shares: &[(ReplicaId, CoinShare)]) -> Digest {
        Digest(hash(&[b"combined", &shares[0].1.0[..16]]))
    }
}
