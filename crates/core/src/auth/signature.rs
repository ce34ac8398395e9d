//! Signatures: Ed25519 with one strict rule everywhere.
//!
//! Libraries disagree about odd signatures, and a signature that is valid at one replica only splits them. Our rule:
//!
//! 1. the public key is a canonical point encoding and not of small order;
//! 2. R is a canonical point encoding, S is below the group order;
//! 3. `[8](S·B − k·A − R) = 0` with `k = SHA-512(R ‖ A ‖ M)`.
//!
//! The factor 8 makes batch verification agree with single verification for every input: a random linear
//! combination of terms that each vanish under the factor vanishes too, and torsion cannot survive it. A batch that
//! fails is verified one by one.

use crate::digest::{Digest, Domain};
use crate::ids::PublicKey;
use crate::wire::{Reader, Sink, Wire, WireError};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{IsIdentity, VartimeMultiscalarMul};
use ed25519_dalek::SigningKey;
use sha2::{Digest as _, Sha512};
use zeroize::ZeroizeOnDrop;

/// A secret identity key: 32 random bytes. Never printed, wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct SecretKey(pub [u8; 32]);

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// A signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature(pub [u8; 64]);

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sig:{:02x}{:02x}", self.0[0], self.0[1])
    }
}

impl Wire for Signature {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.array()?))
    }
}

/// The public-key operations. The one implementation that ships is [`Ed25519`]; the simulator brings one that is
/// cheap and unforgeable by construction.
pub trait Suite: fmt::Debug + Send + Sync {
    /// The public key of a secret key.
    fn public(&self, secret: &SecretKey) -> PublicKey;
    /// Prepares a secret key for signing.
    fn signer(&self, secret: &SecretKey) -> Arc<dyn Signer>;
    /// Whether the signature is valid under the one rule.
    fn verify(&self, public: &PublicKey, message: &[u8], signature: &Signature) -> bool;
    /// Whether all are valid under the same rule. `false` says nothing about which is not.
    fn verify_batch(&self, items: &[(PublicKey, &[u8], Signature)]) -> bool;
    /// The Diffie–Hellman secret between two identity keys, `None` if the public key is not a proper point.
    fn agree(&self, secret: &SecretKey, public: &PublicKey) -> Option<[u8; 32]>;
}

/// A secret key, prepared for signing once. Never shown.
pub trait Signer: Send + Sync {
    /// Signs.
    fn sign(&self, message: &[u8]) -> Signature;
}

impl Signer for SigningKey {
    fn sign(&self, message: &[u8]) -> Signature {
        Signature(ed25519_dalek::Signer::sign(self, message).to_bytes())
    }
}

/// Ed25519 signatures and X25519 agreement from the same pinned key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ed25519;

/// A point from its canonical encoding: y below the field's order, and no sign for x = 0. Checking the bytes is much
/// cheaper than encoding the point again.
fn point(bytes: &[u8; 32]) -> Option<EdwardsPoint> {
    let (sign, mut y) = (bytes[31] >> 7, *bytes);
    y[31] &= 0x7f;
    let all_ones = y[1..31].iter().all(|byte| *byte == 0xff) && y[31] == 0x7f;
    let reduced = !(all_ones && y[0] >= 0xed);
    // x = 0 exactly if y = 1 or y = −1.
    let one = y[0] == 1 && y[1..].iter().all(|byte| *byte == 0);
    let minus_one = y[0] == 0xec && all_ones;
    if !reduced || (sign == 1 && (one || minus_one)) {
        return None;
    }
    CompressedEdwardsY(*bytes).decompress()
}

/// A public key that may verify: rule 1.
fn public_point(public: &PublicKey) -> Option<EdwardsPoint> {
    point(&public.0).filter(|a| !a.is_small_order())
}

/// One signature's equation, all parts but the public key checked: rule 2.
struct Equation {
    r: EdwardsPoint,
    s: Scalar,
    k: Scalar,
}

impl Equation {
    fn parse(public: &PublicKey, message: &[u8], signature: &Signature) -> Option<Self> {
        let (r_bytes, s_bytes) = signature.0.split_at(32);
        let r_bytes: [u8; 32] = r_bytes.try_into().ok()?;
        let s = Option::<Scalar>::from(Scalar::from_canonical_bytes(s_bytes.try_into().ok()?))?;
        let r = point(&r_bytes)?;
        let mut hash = Sha512::new();
        hash.update(r_bytes);
        hash.update(public.0);
        hash.update(message);
        let k = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
        Some(Self { r, s, k })
    }
}

impl Suite for Ed25519 {
    fn public(&self, secret: &SecretKey) -> PublicKey {
        PublicKey(SigningKey::from_bytes(&secret.0).verifying_key().to_bytes())
    }

    fn signer(&self, secret: &SecretKey) -> Arc<dyn Signer> {
        Arc::new(SigningKey::from_bytes(&secret.0))
    }

    fn verify(&self, public: &PublicKey, message: &[u8], signature: &Signature) -> bool {
        let Some(e) = Equation::parse(public, message, signature) else { return false };
        let Some(a) = public_point(public) else { return false };
        let s_b_minus_k_a = EdwardsPoint::vartime_double_scalar_mul_basepoint(&-e.k, &a, &e.s);
        (s_b_minus_k_a - e.r).mul_by_cofactor().is_identity()
    }

    fn verify_batch(&self, items: &[(PublicKey, &[u8], Signature)]) -> bool {
        let mut transcript = Vec::with_capacity(items.len() * 128);
        let mut equations = Vec::with_capacity(items.len());
        for (public, message, signature) in items {
            let Some(equation) = Equation::parse(public, message, signature) else { return false };
            transcript.extend_from_slice(&public.0);
            transcript.extend_from_slice(&signature.0);
            transcript.extend_from_slice(equation.k.as_bytes());
            equations.push(equation);
        }
        // The coefficients are a hash of all that is verified: whoever chose the signatures cannot know them before.
        let seed = Digest::of(Domain::Batching, &transcript);
        let mut scalars = Vec::with_capacity(2 * equations.len() + 1);
        let mut points = Vec::with_capacity(2 * equations.len() + 1);
        let mut base = Scalar::ZERO;
        // Signatures of one key share its term: many sessions of one identity cost half.
        let mut keys: BTreeMap<PublicKey, Scalar> = BTreeMap::new();
        for (i, ((public, ..), equation)) in items.iter().zip(&equations).enumerate() {
            let mut input = [0; 40];
            input[..32].copy_from_slice(&seed.0);
            input[32..].copy_from_slice(&(i as u64).to_le_bytes());
            let mut z_bytes = [0; 32];
            z_bytes[..16].copy_from_slice(&Digest::of(Domain::Batching, &input).0[..16]);
            let z = Scalar::from_bytes_mod_order(z_bytes);
            base += z * equation.s;
            scalars.push(-z);
            points.push(equation.r);
            *keys.entry(*public).or_insert(Scalar::ZERO) -= z * equation.k;
        }
        for (public, scalar) in keys {
            let Some(a) = public_point(&public) else { return false };
            scalars.push(scalar);
            points.push(a);
        }
        scalars.push(base);
        points.push(curve25519_dalek::constants::ED25519_BASEPOINT_POINT);
        EdwardsPoint::vartime_multiscalar_mul(scalars, points).mul_by_cofactor().is_identity()
    }

    fn agree(&self, secret: &SecretKey, public: &PublicKey) -> Option<[u8; 32]> {
        let theirs = point(&public.0)?;
        if theirs.is_small_order() {
            return None;
        }
        let mine = SigningKey::from_bytes(&secret.0).to_scalar_bytes();
        Some(theirs.to_montgomery().mul_clamped(mine).to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PublicKey;
    use alloc::vec;
    use curve25519_dalek::constants::EIGHT_TORSION;

    fn key(n: u8) -> SecretKey {
        SecretKey([n; 32])
    }

    #[test]
    fn agreement_is_symmetric_and_between_two_keys_only() {
        let (a, b, c) = (key(1), key(2), key(3));
        let ab = Ed25519.agree(&a, &Ed25519.public(&b)).unwrap();
        assert_eq!(ab, Ed25519.agree(&b, &Ed25519.public(&a)).unwrap());
        assert_ne!(ab, Ed25519.agree(&c, &Ed25519.public(&a)).unwrap());
    }

    #[test]
    fn what_the_library_signs_passes_alone_and_in_a_batch() {
        let messages: Vec<[u8; 4]> = (0u32..9).map(u32::to_le_bytes).collect();
        let items: Vec<_> = messages
            .iter()
            .enumerate()
            .map(|(i, m)| (Ed25519.public(&key(i as u8)), m.as_slice(), Ed25519.signer(&key(i as u8)).sign(m)))
            .collect();
        assert!(items.iter().all(|(p, m, s)| Ed25519.verify(p, m, s)));
        assert!(Ed25519.verify_batch(&items));
        let mut bad = items;
        bad[4].2.0[40] ^= 1;
        assert!(!Ed25519.verify_batch(&bad));
    }

    /// Torsion added to R or to A, the place where libraries differ: alone and in a batch the answer must be equal.
    #[test]
    fn batch_and_single_verification_agree_on_odd_signatures() {
        let message = b"odd";
        let honest = Ed25519.signer(&key(7)).sign(message);
        for torsion in EIGHT_TORSION {
            let r = point(&honest.0[..32].try_into().unwrap()).unwrap() + torsion;
            let mut signature = honest;
            signature.0[..32].copy_from_slice(&r.compress().0);
            let public = Ed25519.public(&key(7));
            let single = Ed25519.verify(&public, message, &signature);
            for copies in 1..5 {
                let batch = vec![(public, message.as_slice(), signature); copies];
                assert_eq!(Ed25519.verify_batch(&batch), single, "{copies} copies");
            }
        }
    }

    /// The check on bytes says what decoding and encoding again would say.
    #[test]
    fn only_canonical_encodings_are_points() {
        let mut odd: Vec<[u8; 32]> = Vec::new();
        for low in 0..=255u8 {
            for high in [0x7f, 0xff] {
                let mut bytes = [0xff; 32];
                (bytes[0], bytes[31]) = (low, high);
                odd.push(bytes);
            }
            for high in [0, 0x80] {
                let mut bytes = [0; 32];
                (bytes[0], bytes[31]) = (low, high);
                odd.push(bytes);
            }
        }
        for bytes in odd {
            let again = CompressedEdwardsY(bytes).decompress().filter(|point| point.compress().0 == bytes);
            assert_eq!(point(&bytes).is_some(), again.is_some(), "{bytes:02x?}");
        }
    }

    #[test]
    fn small_order_keys_and_non_canonical_scalars_are_refused() {
        let small = PublicKey(EIGHT_TORSION[1].compress().0);
        assert!(!Ed25519.verify(&small, b"", &Signature([0; 64])));
        assert!(Ed25519.agree(&key(1), &small).is_none());
        let mut signature = Ed25519.signer(&key(1)).sign(b"m");
        signature.0[32..].fill(0xff);
        assert!(!Ed25519.verify(&Ed25519.public(&key(1)), b"m", &signature));
    }
}
