//! What replicas testified about what they executed.

use crate::auth::Signed;
use crate::cluster::Cluster;
use crate::dissent::{Scope, Testimony};
use crate::ids::{ReplicaId, Sequence};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How often a replica testifies in an interval, whatever makes it: each time costs a signature and up to 33 KB.
pub(super) const TESTIMONIES_MAX: usize = 6;

/// What replicas have testified, as far as it is of use.
#[derive(Clone, Debug, Default)]
pub(super) struct Dissent {
    /// The newest of each replica: in outline, and of a block.
    pub(super) heard: BTreeMap<(ReplicaId, bool), Signed<Testimony>>,
    /// When this replica testified lately, and about what.
    pub(super) said: Vec<(Instant, Scope)>,
    /// The ruling before the one that this replica last asked for.
    pub(super) asked: Option<Sequence>,
    /// The checkpoint at which another state than this replica's was ruled to be right, until it has that. Meanwhile it
    /// neither testifies nor votes.
    pub(super) overruled: Option<Sequence>,
    /// Since when not all have the same effects, and no request is disputed.
    pub(super) unsettled: Option<Instant>,
    /// Rulings in a row that refused nothing. A liar can bring them about: the interval doubles with each.
    pub(super) fruitless: u32,
}

impl Dissent {
    /// What was said before follows another ruling.
    pub(super) fn begin_anew(&mut self, ruling: Sequence) {
        self.heard.retain(|_, signed| signed.value().scope.ruled >= ruling);
        self.unsettled = None;
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self, cluster: &Cluster, stable: Sequence) {
        assert!(self.said.len() <= TESTIMONIES_MAX, "at most TESTIMONIES_MAX in an interval");
        for ((id, is_block), signed) in &self.heard {
            assert!(cluster.replicas.contains(*id), "replicas testify");
            assert_eq!(signed.signer(), *id, "each testifies to what it has executed itself");
            assert_eq!(signed.value().scope.block.is_some(), *is_block, "outlines and blocks are kept apart");
        }
        assert!(self.overruled.is_none_or(|at| at > stable), "what is stable is not overruled");
    }

    pub(super) fn about(&self, scope: Scope) -> impl Iterator<Item = &Signed<Testimony>> + Clone {
        let of_kind = self.heard.iter().filter(move |((_, is_block), _)| *is_block == scope.block.is_some());
        of_kind.map(|(_, signed)| signed).filter(move |signed| signed.value().scope == scope)
    }
}
