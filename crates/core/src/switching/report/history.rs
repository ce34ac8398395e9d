//! The history that a proof yields: with what an instance begins.

use crate::auth::Certificate;
use crate::digest::Digest;
use crate::history::Boundary;
use crate::ids::ReplicaId;
use crate::replicas::ReplicaSet;
use crate::switching::certificate::Stable;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The anchor of a history and the boundaries known from there on, oldest first. The anchor's position is certain; what
/// its signer says about the state there is so only if that is known as well.
pub(super) fn begin_at(anchor: Boundary, known: impl Iterator<Item = Boundary>) -> (Boundary, Vec<Boundary>) {
    let boundaries: BTreeSet<Boundary> = known.collect();
    let there = boundaries.first().copied().filter(|first| first.position == anchor.position);
    let anchor = there.unwrap_or(Boundary { root: Digest::ZERO, ..anchor });
    (anchor, boundaries.into_iter().collect())
}

/// The history with which an instance begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbortHistory {
    /// L0: its last position.
    pub position: u64,
    /// Where the digests begin. Certain to be in every correct history: a correct replica has its anchor here or above.
    /// The root may be unknown (zero).
    pub anchor: Boundary,
    /// Checkpoints from the anchor on that f+1 reports attest, or a certificate, oldest first: their states are true
    /// and can be fetched.
    pub boundaries: Vec<Boundary>,
    /// The digests of the entries above the anchor.
    pub digests: Vec<Digest>,
    /// The history's digest at each position from the anchor on.
    pub(super) histories: Vec<Digest>,
    /// Who says that it has all of it; or parts of it, where some of those have dropped its beginning.
    pub holders: Vec<ReplicaId>,
    /// f+1 replicas stopped because there was hardly any load.
    pub low_load: bool,
    /// Whom f+1 replicas had not heard of for a while.
    pub silent: ReplicaSet,
    /// That 2f+1 replicas signed the anchor: whoever begins with this history begins its log there.
    pub certificate: Option<Certificate<Stable>>,
}

impl AbortHistory {
    /// What 2f+1 replicas have executed, without anything before it: for one that is behind.
    pub(crate) fn of_stable(certificate: &Certificate<Stable>) -> Self {
        let anchor = certificate.value().boundary;
        Self {
            position: anchor.position,
            anchor,
            boundaries: alloc::vec![anchor],
            digests: Vec::new(),
            histories: alloc::vec![anchor.history],
            holders: certificate.signers().collect(),
            low_load: false,
            silent: ReplicaSet::NOBODY,
            certificate: Some(certificate.clone()),
        }
    }

    /// What is true of each, whatever the reports say that yield it.
    pub(crate) fn check_invariants(&self) {
        let Self { position, anchor, boundaries, digests, histories, .. } = self;
        assert_eq!(anchor.position + digests.len() as u64, *position, "each position above the anchor has an entry");
        assert_eq!(histories.len(), digests.len() + 1, "each position from the anchor on has a digest");
        assert_eq!(histories.first(), Some(&anchor.history), "the digests begin with the anchor's");
        assert!(boundaries.is_sorted(), "checkpoints stand in their order");
        let is_on_it = |known: &Boundary| self.history_at(known.position) == Some(known.history);
        assert!(boundaries.iter().all(is_on_it), "a checkpoint that is known to be true lies on this history");
        assert!(!self.holders.is_empty(), "somebody has all of it (abs-D9)");
        let is_proved = |of: &Certificate<Stable>| of.value().boundary == *anchor;
        assert!(self.certificate.as_ref().is_none_or(is_proved), "a certificate is about the anchor");
    }

    /// Where the state is fetched by who cannot come to it otherwise.
    pub fn base(&self) -> Option<Boundary> {
        self.boundaries.first().copied()
    }

    /// The history's digest at a position from the anchor on.
    pub fn history_at(&self, position: u64) -> Option<Digest> {
        let offset = position.checked_sub(self.anchor.position)?;
        self.histories.get(usize::try_from(offset).ok()?).copied()
    }

    /// The history's digest at its end.
    pub fn history(&self) -> Digest {
        self.histories.last().copied().unwrap_or(self.anchor.history)
    }

    /// The digests after a position.
    pub fn digests_after(&self, position: u64) -> &[Digest] {
        let offset = position.saturating_sub(self.anchor.position) as usize;
        self.digests.get(offset..).unwrap_or(&[])
    }
}
