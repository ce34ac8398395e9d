//! The grades of trust. See the [module](super).

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

    /// Whether a correct replica signs one with each batch, and not now and then: then many come from whoever passes
    /// them on.
    const WITH_EACH_BATCH: bool = false;
}

/// What somebody says of a fact, and nobody has checked: what comes from the wire. It alone has an encoding, and
/// anybody may make one. What it [claims](Claimed::claims) may be looked at, for cheap tests before the dear ones; only
/// the [`super::Keyring`] makes the fact of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed<F>(F);

impl<F> From<F> for Claimed<F> {
    /// Whoever is convinced says so; whoever hears it is not.
    fn from(fact: F) -> Self {
        Self(fact)
    }
}

impl<F> Claimed<F> {
    /// The fact, if it is one. For those who have checked it.
    pub(super) fn accept(self) -> F {
        self.0
    }

    /// The same without a move.
    pub(super) const fn accepted(&self) -> &F {
        &self.0
    }

    /// What this replica wrote to its own log, when it was convinced of it: its own word needs no check. For recovery
    /// only.
    pub(crate) fn recalled(self) -> F {
        self.0
    }

    /// Takes somebody at its word. For those who look on or lie, and decide nothing.
    #[cfg(feature = "testing")]
    pub const fn believed(&self) -> &F {
        &self.0
    }

    /// Whether this is a fact that is known already, and so needs no check.
    pub fn says(&self, known: &F) -> bool
    where
        F: PartialEq,
    {
        self.0 == *known
    }
}

/// A value with its signer and a signature, which was made or checked here, and which anybody can check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed<T> {
    value: T,
    signer: ReplicaId,
    /// Over kind, cluster, signer and value.
    signature: Signature,
}

impl<T> Signed<T> {
    /// Only the keyring may say so.
    pub(super) const fn new(value: T, signer: ReplicaId, signature: Signature) -> Self {
        Self { value, signer, signature }
    }

    /// What was signed.
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// Who signed it.
    pub const fn signer(&self) -> ReplicaId {
        self.signer
    }

    /// What convinces others.
    pub const fn signature(&self) -> Signature {
        self.signature
    }

    /// What others are told of it.
    pub fn claim(&self) -> Claimed<Self>
    where
        T: Clone,
    {
        Claimed(self.clone())
    }
}

impl<T> Claimed<Signed<T>> {
    /// Whatever anybody may write.
    pub const fn signed(value: T, signer: ReplicaId, signature: Signature) -> Self {
        Self(Signed { value, signer, signature })
    }

    /// What somebody is said to have signed. Nobody has checked that.
    pub const fn claims(&self) -> &T {
        &self.0.value
    }

    /// The same, to make another claim of it.
    pub const fn claims_mut(&mut self) -> &mut T {
        &mut self.0.value
    }

    /// Who is said to have signed it.
    pub const fn signer(&self) -> ReplicaId {
        self.0.signer
    }

    /// What is to prove it.
    pub const fn signature(&self) -> Signature {
        self.0.signature
    }
}

impl<T: Signable> Wire for Claimed<Signed<T>> {
    fn encode(&self, out: &mut impl Sink) {
        let Signed { value, signer, signature } = &self.0;
        out.mark(Mark::Signed(T::KIND));
        encode_part(value, out);
        signer.encode(out);
        signature.encode(out);
        out.mark(Mark::End);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self::signed(Wire::decode(reader)?, Wire::decode(reader)?, Wire::decode(reader)?))
    }
}

/// Signatures of distinct replicas over one value, each of which was checked. There are as many as were asked for when
/// it was made, which is not always the same number: see [`Certificate::signers`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate<T> {
    value: T,
    /// In ascending order, so that equal certificates have equal bytes.
    signatures: Vec<(ReplicaId, Signature)>,
}

impl<T> Certificate<T> {
    /// What is true of a certificate that this replica has checked, or made of what it has checked.
    pub(crate) fn check_invariants(&self, cluster: &Cluster, threshold: usize) {
        let signers = || self.signatures.iter().map(|(signer, _)| *signer);
        assert!(signers().count() >= threshold, "{} have signed, of {threshold} needed", signers().count());
        assert!(signers().is_sorted_by(|one, next| one < next), "nobody signs a certificate twice");
        assert!(signers().all(|signer| cluster.replicas.contains(signer)), "only replicas sign certificates");
    }

    /// Puts together what replicas have signed.
    ///
    /// # Panics
    /// Unless these are at least `threshold` votes of distinct replicas for equal values.
    pub fn tally(votes: impl IntoIterator<Item = Signed<T>>, threshold: usize) -> Self
    where
        T: PartialEq,
    {
        let mut votes: Vec<Signed<T>> = votes.into_iter().collect();
        votes.sort_by_key(Signed::signer);
        assert!(!votes.is_empty() && votes.len() >= threshold, "enough have signed it");
        assert!(votes.windows(2).all(|pair| pair[0].signer < pair[1].signer), "nobody counts twice");
        assert!(votes.iter().all(|vote| vote.value == votes[0].value), "votes are equal");
        let signatures = votes.iter().map(|vote| (vote.signer, vote.signature)).collect();
        Self { value: votes.swap_remove(0).value, signatures }
    }

    /// What all of them signed.
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// Who, in ascending order.
    pub fn signers(&self) -> impl ExactSizeIterator<Item = ReplicaId> {
        self.signatures.iter().map(|(signer, _)| *signer)
    }

    /// What others are told of it.
    pub fn claim(&self) -> Claimed<Self>
    where
        T: Clone,
    {
        Claimed(self.clone())
    }
}

impl<T> Claimed<Certificate<T>> {
    /// Whatever anybody may write. Without a signature it claims that none is needed.
    pub const fn certified(value: T, signatures: Vec<(ReplicaId, Signature)>) -> Self {
        Self(Certificate { value, signatures })
    }

    /// What replicas are said to have signed. Nobody has checked that.
    pub const fn claims(&self) -> &T {
        &self.0.value
    }

    /// The same, to make another claim of it.
    pub const fn claims_mut(&mut self) -> &mut T {
        &mut self.0.value
    }

    /// What is to prove it.
    pub fn signatures(&self) -> &[(ReplicaId, Signature)] {
        &self.0.signatures
    }

    /// The same, to make another claim of it.
    pub const fn signatures_mut(&mut self) -> &mut Vec<(ReplicaId, Signature)> {
        &mut self.0.signatures
    }
}

impl<T: Signable> Wire for Claimed<Certificate<T>> {
    fn encode(&self, out: &mut impl Sink) {
        let Certificate { value, signatures } = &self.0;
        out.mark(Mark::Certified(T::KIND));
        encode_part(value, out);
        encode_list(signatures, out);
        out.mark(Mark::End);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let value = Wire::decode(reader)?;
        let signatures: Vec<(ReplicaId, Signature)> = reader.list(crate::replicas::REPLICAS_MAX)?;
        if signatures.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err(WireError::NotCanonical);
        }
        Ok(Self::certified(value, signatures))
    }
}
