//! The three grades of trust. See the [module](super).

use super::signature::Signature;
use crate::cluster::Cluster;
use crate::ids::ReplicaId;
use crate::wire::{Mark, Reader, Sink, Wire, WireError, encode_list, encode_part};
use alloc::vec::Vec;
use core::ops::Deref;

/// Something that a MAC convinced *this* replica of. It has no encoding: it cannot be passed on as evidence.
#[derive(Clone, Debug)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// Only the keyring and the protocols' verification functions may say so.
    pub(crate) const fn vouch(value: T) -> Self {
        Self(value)
    }

    /// The value, without the claim.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// A statement that can be signed. `KIND` separates statements of different types: no signature on one can be
/// presented as a signature on another. Cluster and configuration are added by the keyring.
pub trait Signable: Wire {
    /// A number that no other signable type has. See `docs/wire.md`.
    const KIND: u8;
}

/// A value with its signer and a signature that anybody can check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed<T> {
    /// What is claimed.
    pub value: T,
    /// Who claims it.
    pub signer: ReplicaId,
    /// Over kind, cluster, signer and value.
    pub signature: Signature,
}

impl<T: Signable> Wire for Signed<T> {
    fn encode(&self, out: &mut impl Sink) {
        out.mark(Mark::Signed(T::KIND));
        encode_part(&self.value, out);
        self.signer.encode(out);
        self.signature.encode(out);
        out.mark(Mark::End);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { value: Wire::decode(reader)?, signer: Wire::decode(reader)?, signature: Wire::decode(reader)? })
    }
}

/// Signatures of distinct replicas over one value. [`super::Keyring::check_certificate`] says whether there are
/// enough; signers stand in ascending order, so that equal certificates have equal bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate<T> {
    /// What all of them signed.
    pub value: T,
    /// Who, in ascending order, and the signature.
    pub signatures: Vec<(ReplicaId, Signature)>,
}

impl<T> Certificate<T> {
    /// What is true of a certificate that this replica has checked, or made of what it has checked.
    pub(crate) fn check_invariants(&self, cluster: &Cluster, threshold: usize) {
        let signers = || self.signatures.iter().map(|(signer, _)| *signer);
        assert!(signers().count() >= threshold, "{} have signed, of {threshold} needed", signers().count());
        assert!(signers().is_sorted_by(|one, next| one < next), "nobody signs a certificate twice");
        assert!(signers().all(|signer| cluster.replicas.contains(signer)), "only replicas sign certificates");
    }
}

impl<T: Signable> Wire for Certificate<T> {
    fn encode(&self, out: &mut impl Sink) {
        out.mark(Mark::Certified(T::KIND));
        encode_part(&self.value, out);
        encode_list(&self.signatures, out);
        out.mark(Mark::End);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let value = Wire::decode(reader)?;
        let signatures: Vec<(ReplicaId, Signature)> = reader.list(crate::replicas::REPLICAS_MAX)?;
        if signatures.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err(WireError::NotCanonical);
        }
        Ok(Self { value, signatures })
    }
}
