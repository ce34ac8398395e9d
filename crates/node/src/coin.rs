//! The common coin that ships: BLS signatures over BLS12-381, f + 1 of n, by `blst`.
//!
//! A share is a BLS signature by the secret of a place, which is a value of a polynomial of degree f. So f + 1 shares,
//! each with the factor of its place (Lagrange, in the exponent), make the signature by the value at 0, whichever they
//! are: Boldyreva, *Threshold signatures … based on the gap-Diffie-Hellman-group signature scheme*, 2003. Signatures
//! are points of the short group (48 bytes), keys of the long one (96 bytes). Everything that comes from a peer or from
//! a file is checked to be in its group.
//!
//! The library signs, verifies and adds points with factors. The factors, and the polynomial where keys are dealt, are
//! ours: whole numbers modulo the order of the groups.

use bezant_core::auth::{CoinKey, CoinScheme, CoinShare, SecretKey};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::ReplicaId;
use bezant_core::replicas::Replicas;
use blst::MultiPoint;
use blst::min_sig::{PublicKey, SecretKey as Scalar, Signature};
use num_bigint::BigUint;
use std::io;
use zeroize::Zeroizing;

/// What these signatures are for, and how names become points (RFC 9380).
const DOMAIN: &[u8] = b"BEZANT-COMMON-COIN-V01-CS01-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";

/// The order of the groups.
const ORDER: &[u8] = b"73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";

/// Bits of a factor.
const FACTOR_BITS: usize = 255;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Bls;

fn order() -> BigUint {
    BigUint::parse_bytes(ORDER, 16).expect("hexadecimal digits")
}

/// Where on the polynomial a replica's secret is. At 0 is that of all together.
fn place(replica: ReplicaId) -> u64 {
    u64::from(replica.0) + 1
}

/// The factors with which values at these places make the value at another one: 32 bytes each, the lowest first.
fn factors(places: &[u64], at: u64) -> Vec<u8> {
    let order = order();
    let minus = |a: u64, b: u64| (&order + a - b) % &order;
    let mut bytes = Vec::with_capacity(32 * places.len());
    for mine in places {
        let others = || places.iter().filter(|other| *other != mine);
        let above = others().fold(BigUint::from(1u8), |product, other| product * minus(at, *other) % &order);
        let below = others().fold(BigUint::from(1u8), |product, other| product * minus(*mine, *other) % &order);
        let below = below.modinv(&order).expect("the places are distinct, and the order is prime");
        let mut factor = (above * below % &order).to_bytes_le();
        factor.resize(32, 0);
        bytes.extend(factor);
    }
    bytes
}

fn key(bytes: &CoinKey) -> Option<PublicKey> {
    PublicKey::key_validate(&bytes.0).ok()
}

/// Whether these are points that nobody can misuse: in the right group, and not its zero.
pub fn is_key(bytes: &CoinKey) -> bool {
    key(bytes).is_some()
}

/// Whether the keys of all replicas are of one dealing for f, so that any f + 1 make the same coins, and f make none.
pub fn belong_together(replicas: &Replicas, keys: &[CoinKey]) -> bool {
    let Some(points) = keys.iter().map(key).collect::<Option<Vec<_>>>() else { return false };
    let Some(first) = points.get(..replicas.weak()) else { return false };
    let places: Vec<u64> = replicas.iter().take(first.len()).map(place).collect();
    let is_on = |(replica, point): (ReplicaId, &PublicKey)| {
        first.mult(&factors(&places, place(replica)), FACTOR_BITS).to_public_key() == *point
    };
    // Had they been dealt for fewer faults, the keys before the last of these would say what it is.
    let (last, fewer) = first.split_last().expect("f + 1 are one at least");
    let fewer_are_enough = !fewer.is_empty() && {
        let factors = factors(&places[..fewer.len()], places[fewer.len()]);
        fewer.mult(&factors, FACTOR_BITS).to_public_key() == *last
    };
    let are_all = points.len() == replicas.n() && !fewer_are_enough;
    are_all && replicas.iter().zip(&points).skip(first.len()).all(is_on)
}

/// Deals new keys: by replica, its secret and its public key. Whoever sees all that this computes foresees every coin.
///
/// # Errors
/// That of the operating system's source of random bytes.
pub fn deal(replicas: &Replicas) -> io::Result<Vec<(SecretKey, CoinKey)>> {
    let order = order();
    let mut coefficients = Vec::with_capacity(replicas.weak());
    for _ in 0..replicas.weak() {
        // As long as twice the order: what is left of it is as good as uniform.
        let mut bytes = Zeroizing::new([0; 64]);
        getrandom::fill(&mut *bytes).map_err(|error| io::Error::other(error.to_string()))?;
        coefficients.push(BigUint::from_bytes_be(&*bytes) % &order);
    }
    let dealt = |replica| {
        let at = place(replica);
        let value = coefficients.iter().rev().fold(BigUint::ZERO, |value, next| (value * at + next) % &order);
        let digits = Zeroizing::new(value.to_bytes_be());
        let mut secret = SecretKey([0; 32]);
        secret.0[32 - digits.len()..].copy_from_slice(&digits);
        let public = Bls.public(&secret)?;
        Some((secret, public))
    };
    let dealt: Option<Vec<_>> = replicas.iter().map(dealt).collect();
    dealt.ok_or_else(|| io::Error::other("the source of random bytes gives zeros"))
}

impl CoinScheme for Bls {
    fn public(&self, secret: &SecretKey) -> Option<CoinKey> {
        Some(CoinKey(Scalar::from_bytes(&secret.0).ok()?.sk_to_pk().compress()))
    }

    fn share(&self, secret: &SecretKey, name: &Digest) -> CoinShare {
        let scalar = Scalar::from_bytes(&secret.0).expect("it has a public key");
        CoinShare(scalar.sign(&name.0, DOMAIN, &[]).compress())
    }

    fn verify(&self, key: &CoinKey, name: &Digest, share: &CoinShare) -> bool {
        // The key was checked where it was read.
        let (Ok(point), Ok(key)) = (Signature::uncompress(&share.0), PublicKey::uncompress(&key.0)) else {
            return false;
        };
        point.verify(true, &name.0, DOMAIN, &[], &key, false) == blst::BLST_ERROR::BLST_SUCCESS
    }

    fn combine(&self, shares: &[(ReplicaId, CoinShare)]) -> Digest {
        let points: Vec<Signature> =
            shares.iter().map(|(_, share)| Signature::uncompress(&share.0).expect("a valid share")).collect();
        let places: Vec<u64> = shares.iter().map(|(replica, _)| place(*replica)).collect();
        let whole = points.mult(&factors(&places, 0), FACTOR_BITS).to_signature();
        Digest::of(Domain::CommonCoin, &whole.compress())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(byte: u8) -> Digest {
        Digest([byte; 32])
    }

    #[test]
    fn any_f_plus_1_shares_make_one_coin() {
        for n in [1, 4, 5, 7, 10] {
            let replicas = Replicas::of(n).unwrap();
            let dealt = deal(&replicas).unwrap();
            let keys: Vec<CoinKey> = dealt.iter().map(|(_, key)| *key).collect();
            assert!(belong_together(&replicas, &keys), "n {n}");
            let shares: Vec<_> =
                replicas.iter().zip(&dealt).map(|(id, (secret, _))| (id, Bls.share(secret, &name(7)))).collect();
            let enough = replicas.weak();
            let coin = Bls.combine(&shares[..enough]);
            for first in 0..=n - enough {
                assert_eq!(Bls.combine(&shares[first..first + enough]), coin, "n {n}");
            }
            let mut backwards = shares[n - enough..].to_vec();
            backwards.reverse();
            assert_eq!(Bls.combine(&backwards), coin, "n {n}");
            if enough > 1 {
                assert_ne!(Bls.combine(&shares[..enough - 1]), coin, "n {n}: f shares are too few");
            }
            for ((id, share), key) in shares.iter().zip(&keys) {
                assert!(Bls.verify(key, &name(7), share), "n {n}, {id:?}");
            }
        }
    }

    /// With such keys fewer than f + 1 liars would foresee the coins.
    #[test]
    fn keys_that_were_dealt_for_other_faults_do_not_belong_together() {
        let seven = Replicas::of(7).unwrap();
        for f in [0, 1, 2] {
            let dealt = deal(&Replicas::new(7, f).unwrap()).unwrap();
            let keys: Vec<CoinKey> = dealt.iter().map(|(_, key)| *key).collect();
            assert_eq!(belong_together(&seven, &keys), f == 2, "dealt for f = {f}");
            assert_eq!(belong_together(&Replicas::new(7, 1).unwrap(), &keys), f == 1, "dealt for f = {f}");
        }
    }

    #[test]
    fn the_coin_is_the_signature_by_the_secret_that_nobody_has() {
        let replicas = Replicas::of(4).unwrap();
        let dealt = deal(&replicas).unwrap();
        let keys: Vec<PublicKey> = dealt.iter().map(|(_, public)| key(public).unwrap()).collect();
        let whole = keys[2..].mult(&factors(&[3, 4], 0), FACTOR_BITS).to_public_key();
        let points: Vec<Signature> =
            dealt[..2].iter().map(|(s, _)| Signature::uncompress(&Bls.share(s, &name(1)).0).unwrap()).collect();
        let signature = points.mult(&factors(&[1, 2], 0), FACTOR_BITS).to_signature();
        let verified = signature.verify(true, &name(1).0, DOMAIN, &[], &whole, true);
        assert_eq!(verified, blst::BLST_ERROR::BLST_SUCCESS);
    }

    #[test]
    fn a_share_is_good_for_one_place_and_one_name() {
        let dealt = deal(&Replicas::of(4).unwrap()).unwrap();
        let share = Bls.share(&dealt[0].0, &name(1));
        assert_eq!(share, Bls.share(&dealt[0].0, &name(1)), "there is one");
        assert!(Bls.verify(&dealt[0].1, &name(1), &share));
        assert!(!Bls.verify(&dealt[1].1, &name(1), &share));
        assert!(!Bls.verify(&dealt[0].1, &name(2), &share));
        for at in 0..CoinShare::BYTES {
            let mut damaged = share;
            damaged.0[at] ^= 1;
            assert!(!Bls.verify(&dealt[0].1, &name(1), &damaged), "byte {at}");
        }
        let mut zero = CoinShare([0; CoinShare::BYTES]);
        assert!(!Bls.verify(&dealt[0].1, &name(1), &zero));
        zero.0[0] = 0xc0;
        assert!(!Bls.verify(&dealt[0].1, &name(1), &zero), "the point at infinity");
    }

    #[test]
    fn keys_that_are_none_and_keys_of_two_dealings_are_seen() {
        let replicas = Replicas::of(4).unwrap();
        let (one, other) = (deal(&replicas).unwrap(), deal(&replicas).unwrap());
        let mut keys: Vec<CoinKey> = one.iter().map(|(_, key)| *key).collect();
        keys[3] = other[3].1;
        assert!(keys.iter().all(is_key) && !belong_together(&replicas, &keys));
        assert!(!belong_together(&replicas, &keys[..3]));
        let mut infinity = CoinKey([0; CoinKey::BYTES]);
        infinity.0[0] = 0xc0;
        assert!(!is_key(&infinity) && !is_key(&CoinKey([7; CoinKey::BYTES])));
        assert_eq!(Bls.public(&SecretKey([0; 32])), None);
        assert_eq!(Bls.public(&SecretKey([0xff; 32])), None, "above the order");
    }
}
