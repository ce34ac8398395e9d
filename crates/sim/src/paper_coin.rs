//! Common coins without curve arithmetic, as [`Paper`](bezant_core::auth::paper::Paper) has signatures: a share is what
//! is common to all shares of a name, and a seal of its place.

use bezant_core::auth::{CoinKey, CoinScheme, CoinShare, SecretKey};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::ReplicaId;

fn share(key: &CoinKey, name: &Digest) -> CoinShare {
    let mut share = [0; CoinShare::BYTES];
    share[..16].copy_from_slice(&Digest::of_parts(Domain::Trace, &[b"toss", &name.0]).0[..16]);
    share[16..].copy_from_slice(&Digest::of_parts(Domain::Trace, &[b"share", &key.0, &name.0]).0);
    CoinShare(share)
}

/// The simulator's common coin.
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
    fn a_share_is_of_one_place_and_the_toss_of_all() {
        let (a, b) = (SecretKey([1; 32]), SecretKey([2; 32]));
        let toss = Digest([7; 32]);
        let [mine, yours] = [&a, &b].map(|secret| PaperCoin.share(secret, &toss));
        let key = PaperCoin.public(&a).unwrap();
        assert!(PaperCoin.verify(&key, &toss, &mine) && !PaperCoin.verify(&key, &toss, &yours));
        assert_eq!(PaperCoin.combine(&[(ReplicaId(0), mine)]), PaperCoin.combine(&[(ReplicaId(1), yours)]));
    }
}
