//! Which batches a new view must propose again: a pure function of the VIEW-CHANGEs, computed by the new primary and
//! again by every backup.

use super::message::{Claim, ViewChange};
use crate::auth::Certificate;
use crate::checkpoint::Checkpoint;
use crate::cluster::{Cluster, Sequence};
use crate::digest::Digest;
use crate::protocols::batch::Batch;
use alloc::vec::Vec;

/// What a new view starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The highest stable checkpoint that anybody proved: h.
    pub(super) stable: Certificate<Checkpoint>,
    /// The batches for h+1, h+2, …: the one that may have been committed, or the null batch if none can have been.
    pub(super) chosen: Vec<Digest>,
}

/// Decides, or returns `None` if more view changes are needed. With those of all n−f correct replicas it always
/// decides.
///
/// A digest d at position n is chosen if some replica claims that it prepared there in view v, and
/// - A1: 2f+1 replicas claim nothing there, or something in an earlier view, or the same: so nothing else can have
///   committed in v or later;
/// - A2: f+1 replicas accepted d there in v or later: so a correct one did, d is authentic, and its body exists.
///
/// The null batch is chosen if (B) 2f+1 replicas claim nothing there: then nothing can have committed.
pub(super) fn decide(cluster: &Cluster, view_changes: &[&ViewChange]) -> Option<Decision> {
    if view_changes.len() < cluster.strong() {
        return None;
    }
    let stable = view_changes.iter().map(|vc| &vc.stable).max_by_key(|stable| stable.value)?.clone();
    let low = stable.value.sequence;
    let high = view_changes.iter().filter_map(|vc| vc.prepared.last()).map(|claim| claim.sequence).max();
    let null = Batch::null().digest();
    let mut chosen = Vec::new();
    let mut sequence = low.next();
    while high.is_some_and(|high| sequence <= high) {
        chosen.push(decide_at(cluster, view_changes, sequence, null)?);
        sequence = sequence.next();
    }
    while chosen.last() == Some(&null) {
        chosen.pop();
    }
    Some(Decision { stable, chosen })
}

fn decide_at(cluster: &Cluster, view_changes: &[&ViewChange], sequence: Sequence, null: Digest) -> Option<Digest> {
    let prepared: Vec<Option<&Claim>> =
        view_changes.iter().map(|vc| vc.prepared.iter().find(|claim| claim.sequence == sequence)).collect();
    let mut candidates: Vec<&Claim> = prepared.iter().flatten().copied().collect();
    candidates.sort_by_key(|claim| (core::cmp::Reverse(claim.view), claim.digest));
    for candidate in candidates {
        let compatible = prepared
            .iter()
            .filter(|claim| {
                claim.is_none_or(|claim| {
                    claim.view < candidate.view || (claim.view == candidate.view && claim.digest == candidate.digest)
                })
            })
            .count();
        let accepted = view_changes
            .iter()
            .filter(|vc| {
                vc.pre_prepared.iter().any(|claim| {
                    claim.sequence == sequence && claim.digest == candidate.digest && claim.view >= candidate.view
                })
            })
            .count();
        if compatible >= cluster.strong() && accepted >= cluster.weak() {
            return Some(candidate.digest);
        }
    }
    (prepared.iter().filter(|claim| claim.is_none()).count() >= cluster.strong()).then_some(null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::genesis;
    use crate::cluster::{InstanceId, View};
    use alloc::vec;
    use proptest::prelude::*;

    fn claim(sequence: u64, digest: u8, view: u64) -> Claim {
        Claim { sequence: Sequence(sequence), digest: Digest([digest; 32]), view: View(view) }
    }

    fn view_change(prepared: Vec<Claim>, pre_prepared: Vec<Claim>) -> ViewChange {
        ViewChange { view: View(9), stable: genesis(InstanceId(1), Digest::ZERO), prepared, pre_prepared }
    }

    fn decided(view_changes: &[ViewChange]) -> Option<Vec<Digest>> {
        let cluster = Cluster::of([0; 16], 4).unwrap();
        let all: Vec<&ViewChange> = view_changes.iter().collect();
        decide(&cluster, &all).map(|decision| decision.chosen)
    }

    #[test]
    fn what_may_have_committed_is_chosen() {
        let with = view_change(vec![claim(1, 7, 0)], vec![claim(1, 7, 0)]);
        let accepted_only = view_change(vec![], vec![claim(1, 7, 0)]);
        let nothing = view_change(vec![], vec![]);
        assert_eq!(decided(&[with, accepted_only, nothing]), Some(vec![Digest([7; 32])]));
    }

    #[test]
    fn one_liar_cannot_force_a_batch_nor_block_once_all_correct_have_spoken() {
        let liar = view_change(vec![claim(1, 66, 8)], vec![claim(1, 66, 8)]);
        let honest = view_change(vec![], vec![]);
        assert_eq!(decided(&[liar.clone(), honest.clone(), honest.clone()]), None);
        assert_eq!(decided(&[liar, honest.clone(), honest.clone(), honest]), Some(vec![]));
    }

    #[test]
    fn a_gap_below_a_chosen_batch_is_filled_with_the_null_batch() {
        let with = view_change(vec![claim(2, 7, 0)], vec![claim(1, 5, 0), claim(2, 7, 0)]);
        let other = view_change(vec![], vec![claim(2, 7, 0)]);
        let nothing = view_change(vec![], vec![]);
        assert_eq!(decided(&[with, other, nothing]), Some(vec![Batch::null().digest(), Digest([7; 32])]));
    }

    #[test]
    fn fewer_than_2f_plus_1_decide_nothing_not_even_that_there_is_nothing() {
        let nothing = view_change(vec![], vec![]);
        assert_eq!(decided(&[nothing.clone(), nothing.clone()]), None);
        assert_eq!(decided(&[nothing.clone(), nothing.clone(), nothing]), Some(vec![]));
    }

    /// Condition A1: a batch of view 2 may have been committed since, although f+1 accepted that of view 1.
    #[test]
    fn an_older_batch_is_not_chosen_over_a_newer_claim_that_may_be_true() {
        let older = view_change(vec![claim(1, 5, 1)], vec![claim(1, 5, 1)]);
        let newer = view_change(vec![claim(1, 7, 2)], vec![claim(1, 7, 2)]);
        assert_eq!(decided(&[older.clone(), older.clone(), newer.clone()]), None);
        assert_eq!(decided(&[older.clone(), older, newer.clone(), newer]), Some(vec![Digest([7; 32])]));
    }

    proptest! {
        /// Museum, flaw 2: the choice must be total. Whatever the liar says, the correct replicas' honest claims
        /// (here: one batch accepted by all of them in some view, prepared at some) suffice to decide, and a batch
        /// that committed is chosen.
        #[test]
        fn the_choice_is_total_on_the_correct_replicas_and_keeps_what_committed(
            prepared_at in prop::collection::vec(any::<bool>(), 3),
            lie_digest in 1u8..9, lie_view in 0u64..8, lie_prepares in any::<bool>(), lie_accepts in any::<bool>(),
        ) {
            let honest = |prepared: bool| view_change(
                if prepared { vec![claim(1, 4, 3)] } else { vec![] },
                vec![claim(1, 4, 3)],
            );
            let lie = claim(1, lie_digest, lie_view);
            let liar = view_change(
                if lie_prepares { vec![lie] } else { vec![] },
                if lie_accepts { vec![lie] } else { vec![] },
            );
            let all = [honest(prepared_at[0]), honest(prepared_at[1]), honest(prepared_at[2]), liar];
            let chosen = decided(&all);
            prop_assert!(chosen.is_some());
            // Committed means 2f+1 prepared: at least two correct ones here.
            if prepared_at.iter().filter(|prepared| **prepared).count() >= 2 {
                prop_assert_eq!(chosen, Some(vec![Digest([4; 32])]));
            }
        }
    }
}
