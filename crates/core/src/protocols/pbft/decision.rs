//! Which batches a new view must propose again: a pure function of the VIEW-CHANGEs, computed by the new primary and
//! again by every backup.
//!
//! # The size of P and Q
//! In the paper Q lists, for each position, every batch that a replica ever accepted there. A primary that lies adds
//! one in each view that it leads, without a bound; and if a replica keeps the newest only, pbft-A2 may never be met
//! again for a batch that prepared long ago. Here P and Q hold one batch each, because a NEW-VIEW refutes all that it
//! did not choose: it proves that nothing else was committed in any earlier view. Whoever learns how view u began
//! forgets what it claimed of views before u, unless u chose it; and says of what u chose that it accepted it in u,
//! whether it did or not: like an acceptance that means that a correct replica found the batch authentic, and that
//! nothing else was committed before u.
//!
//! *Nothing committed is lost.* Let d be committed at n in view v, and let the views after v that have begun so far
//! have chosen it, which is the assumption of the induction. Then the f+1 correct replicas that prepared it in v claim
//! (n, d) of v or later views, as no view refutes d. So B fails, and pbft-A1 for all of views before v and all others
//! of v. For a later view w pbft-A2 needs a correct replica that says that it accepted something in w or later. Which
//! is d.
//!
//! *The choice is total* on the VIEW-CHANGEs of the correct replicas, if all know the same view u as the last one that
//! has begun, and how it did: in one way, or in which ones if its primary lied (`begun.rs`), of which what all of them
//! chose counts. At a position for which u chose d, they claim nothing else to be prepared, so pbft-A1 holds, and
//! all say that they accepted d in u or later, so pbft-A2 holds; or nobody claims that anything prepared, and B
//! holds. At any other, all claims are about u; what prepared there, f+1 correct replicas accepted, and they still say
//! so. They come to know u because whoever knows of a later view than another says in its STATUS shows how it began,
//! also to those who left that view before, or know it to have begun otherwise. A liar that shows a view to one of
//! them, and late, spoils one choice with each view that it has led, and with each position that it chose in one way
//! only.
//!
//! *What is chosen can be had*, if the VIEW-CHANGEs are those of correct replicas: one claims that it prepared there,
//! and has it. With a liar's claim among them it may be that nobody has it any more: then the new primary does without
//! that VIEW-CHANGE ([`super::Pbft::try_new_view`]).

use super::message::{Claim, ViewChange};
use crate::auth::{Certificate, Claimed, Signed};
use crate::batch::Batch;
use crate::checkpoint::{Checkpoint, Evidence};
use crate::digest::Digest;
use crate::ids::Sequence;
use crate::replicas::Replicas;
use alloc::vec::Vec;

/// What a new view starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The highest stable checkpoint that anybody proved, if that is not the state before the first batch.
    pub(super) stable: Option<Certificate<Checkpoint>>,
    /// The batches for h+1, h+2, …: the one that may have been committed, or the null batch if none can have been.
    pub(super) chosen: Vec<Digest>,
}

impl Decision {
    /// h.
    pub(super) fn low(&self) -> Sequence {
        self.stable.as_ref().map_or(Sequence(0), |stable| stable.value().sequence)
    }
}

/// A VIEW-CHANGE that its author signed, and that a correct replica could have made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sound {
    pub(super) signed: Signed<ViewChange>,
    /// What proves the checkpoint from which it starts, if that is not the state before the first batch.
    pub(super) stable: Option<Certificate<Checkpoint>>,
}

impl Sound {
    /// What this replica said itself, or had checked, when it wrote that to its log.
    pub(super) fn recalled(claimed: Claimed<Signed<ViewChange>>) -> Self {
        let signed = claimed.recalled();
        let stable = Evidence::recalled(signed.value().stable.clone());
        Self { stable: stable.certificate().cloned(), signed }
    }

    pub(super) const fn value(&self) -> &ViewChange {
        self.signed.value()
    }
}

/// Decides on no more positions than fit into a window, or returns `None` if more view changes are needed.
///
/// A digest d at position n is chosen if some replica claims that it prepared there in view v, and
/// - pbft-A1: 2f+1 replicas claim nothing there, or something in an earlier view, or the same: so nothing else can have
///   committed in v or later;
/// - pbft-A2: f+1 replicas accepted d there in v or later: so a correct one did, and d is authentic.
///
/// The null batch is chosen if (B) 2f+1 replicas claim nothing there: then nothing can have committed.
pub(super) fn decide<'a>(
    replicas: Replicas,
    window: u64,
    view_changes: impl Iterator<Item = &'a Sound> + Clone,
) -> Option<Decision> {
    let proved = view_changes.clone().filter_map(|sound| sound.stable.as_ref());
    let stable = proved.max_by_key(|stable| *stable.value()).cloned();
    let view_changes: &[&ViewChange] = &view_changes.map(Sound::value).collect::<Vec<_>>();
    if view_changes.len() < replicas.strong() {
        return None;
    }
    let mut decision = Decision { stable, chosen: Vec::new() };
    let low = decision.low();
    let high = view_changes.iter().filter_map(|vc| vc.prepared.last()).map(|claim| claim.sequence).max();
    let mut chosen = Vec::new();
    let mut sequence = low.next();
    // Nobody who is correct claims more than a window, and no claims make this go on for longer.
    while high.is_some_and(|high| sequence <= high) && (chosen.len() as u64) < window {
        chosen.push(decide_at(replicas, view_changes, sequence)?);
        sequence = sequence.next();
    }
    // What is free at the end is free for any batch. A null batch that prepared there is not: it may be committed.
    while chosen.last() == Some(&None) {
        chosen.pop();
    }
    assert!(chosen.len() as u64 <= window, "no more is chosen than fits into the window");
    assert_ne!(chosen.last(), Some(&None), "what is free at the end is free for any batch");
    let null = Batch::null().digest();
    decision.chosen = chosen.into_iter().map(|digest| digest.unwrap_or(null)).collect();
    Some(decision)
}

/// The batch that may have been committed at a position, `Some(None)` if none can have been, or `None` if that cannot
/// be told yet.
fn decide_at(replicas: Replicas, view_changes: &[&ViewChange], sequence: Sequence) -> Option<Option<Digest>> {
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
        if compatible >= replicas.strong() && accepted >= replicas.weak() {
            return Some(Some(candidate.digest));
        }
    }
    (prepared.iter().filter(|claim| claim.is_none()).count() >= replicas.strong()).then_some(None)
}

#[cfg(test)]
mod tests {
    use super::super::slot::Slot;
    use super::*;
    use crate::auth::Signature;
    use crate::cluster::{ClientAuth, Cluster, Limits};
    use crate::ids::{InstanceId, ReplicaId, View};
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use proptest::prelude::*;

    fn claim(sequence: u64, digest: u8, view: u64) -> Claim {
        Claim { sequence: Sequence(sequence), digest: Digest([digest; 32]), view: View(view) }
    }

    fn view_change(prepared: Vec<Claim>, pre_prepared: Vec<Claim>) -> Sound {
        let stable = Evidence::genesis(InstanceId(1), Digest::ZERO).claim();
        let value = ViewChange { view: View(9), stable, prepared, pre_prepared };
        Sound::recalled(Claimed::signed(value, ReplicaId(0), Signature([0; 64])))
    }

    fn decided(view_changes: &[Sound]) -> Option<Vec<Digest>> {
        let cluster = Cluster::of([0; 16], 4).unwrap();
        decide(cluster.replicas, cluster.window(), view_changes.iter()).map(|decision| decision.chosen)
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

    /// Whatever is claimed, no more is chosen than a window holds.
    #[test]
    fn claims_beyond_every_window_choose_nothing() {
        let far = claim(1 << 20, 7, 0);
        let claims = view_change(vec![far], vec![far]);
        assert_eq!(decided(&[claims.clone(), claims.clone(), claims]), Some(vec![]));
    }

    #[test]
    fn fewer_than_2f_plus_1_decide_nothing_not_even_that_there_is_nothing() {
        let nothing = view_change(vec![], vec![]);
        assert_eq!(decided(&[nothing.clone(), nothing.clone()]), None);
        assert_eq!(decided(&[nothing.clone(), nothing.clone(), nothing]), Some(vec![]));
    }

    /// Condition pbft-A1: a batch of view 2 may have been committed since, although f+1 accepted that of view 1.
    #[test]
    fn an_older_batch_is_not_chosen_over_a_newer_claim_that_may_be_true() {
        let older = view_change(vec![claim(1, 5, 1)], vec![claim(1, 5, 1)]);
        let newer = view_change(vec![claim(1, 7, 2)], vec![claim(1, 7, 2)]);
        assert_eq!(decided(&[older.clone(), older.clone(), newer.clone()]), None);
        assert_eq!(decided(&[older.clone(), older, newer.clone(), newer]), Some(vec![Digest([7; 32])]));
    }

    /// What a gap was filled with may be committed like anything else.
    #[test]
    fn a_null_batch_that_prepared_keeps_its_place_although_nothing_follows_it() {
        let null = Batch::null().digest();
        let claim = Claim { sequence: Sequence(1), digest: null, view: View(3) };
        let filled = view_change(vec![claim], vec![claim]);
        let nothing = view_change(vec![], vec![]);
        assert_eq!(decided(&[filled.clone(), filled, nothing]), Some(vec![null]));
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

    /// One position through many views, with f liars who also lead whenever that does harm.
    struct World {
        cluster: Cluster,
        correct: Vec<Correct>,
        /// Choices of the adversary and of chance.
        choices: Vec<u8>,
        committed: Option<Digest>,
    }

    #[derive(Default)]
    struct Correct {
        slot: Slot,
        /// The last view of which it knows how it began, and what that chose, in each way that it knows.
        begun: (View, BTreeSet<Option<Digest>>),
    }

    impl Correct {
        fn learn(&mut self, view: View, chosen: Option<Digest>) {
            if self.begun.0 < view {
                self.begun = (view, BTreeSet::new());
            }
            if self.begun.0 == view {
                self.begun.1.insert(chosen);
                self.slot.refute(view, self.chosen());
            }
        }

        /// What all ways chose.
        fn chosen(&self) -> Option<Digest> {
            self.begun.1.first().copied().flatten().filter(|_| self.begun.1.len() == 1)
        }

        fn view_change(&self) -> Sound {
            let claim = |(view, digest)| Claim { sequence: Sequence(1), digest, view };
            let accepted = self.chosen().map(|digest| (self.begun.0, digest)).or(self.slot.pre_prepared);
            view_change(self.slot.prepared.map(claim).into_iter().collect(), accepted.map(claim).into_iter().collect())
        }
    }

    impl World {
        fn choose(&mut self, below: u64) -> u64 {
            u64::from(self.choices.pop().unwrap_or_default()) % below
        }

        fn digest(&mut self) -> Digest {
            Digest([1 + self.choose(3) as u8; 32])
        }

        fn lie(&mut self, view: View) -> Sound {
            let claim = Claim { sequence: Sequence(1), digest: self.digest(), view: View(self.choose(view.0)) };
            let claims = |told: bool| if told { vec![claim] } else { vec![] };
            view_change(claims(self.choose(2) == 0), claims(self.choose(2) == 0))
        }

        /// The adversary begins a view if it can, in as many ways and at whom it likes. Who has begun it in one way may
        /// learn of others.
        fn run(&mut self, view: View) {
            let left: Vec<Sound> = self.correct.iter().map(Correct::view_change).collect();
            let ways = 1 + self.choose(3);
            let mut entered = BTreeSet::new();
            for _ in 0..ways {
                self.begin(view, &left, &mut entered);
            }
            self.order(view, &entered);
        }

        /// The adversary begins a view in one way, with the VIEW-CHANGEs that it likes.
        fn begin(&mut self, view: View, left: &[Sound], entered: &mut BTreeSet<usize>) {
            let n = self.cluster.replicas.reachable();
            let heard: Vec<bool> = (0..n).map(|_| self.choose(4) > 0).collect();
            let mut all: Vec<Sound> =
                left.iter().zip(&heard).filter(|(_, heard)| **heard).map(|(one, _)| one.clone()).collect();
            all.extend((0..self.cluster.replicas.faults()).map(|_| self.lie(view)).collect::<Vec<_>>());
            let Some(Decision { chosen, .. }) = decide(self.cluster.replicas, self.cluster.window(), all.iter()) else {
                return;
            };
            let chosen = chosen.first().copied();
            assert!(self.committed.is_none() || chosen == self.committed, "{view} loses what was committed");
            let learn: Vec<usize> = (0..n).filter(|_| self.choose(3) > 0).collect();
            for id in learn {
                self.correct[id].learn(view, chosen);
                let digest = self.digest();
                if entered.insert(id) && self.choose(4) > 0 {
                    self.correct[id].slot.pre_prepare(chosen.unwrap_or(digest), view);
                }
            }
        }

        fn order(&mut self, view: View, entered: &BTreeSet<usize>) {
            // The liars accept and prepare whatever there is.
            let enough = self.cluster.replicas.strong() - self.cluster.replicas.faults();
            for digest in (0..=3).map(|byte| if byte == 0 { Batch::null().digest() } else { Digest([byte; 32]) }) {
                let of = |one: &Correct| one.slot.pre_prepared == Some((view, digest));
                let accepted: Vec<usize> = entered.iter().copied().filter(|id| of(&self.correct[*id])).collect();
                if accepted.len() < enough {
                    continue;
                }
                let prepared: Vec<usize> = accepted.into_iter().filter(|_| self.choose(3) > 0).collect();
                for &id in &prepared {
                    self.correct[id].slot.prepared = Some((view, digest));
                }
                if prepared.len() >= enough {
                    assert!(self.committed.is_none_or(|before| before == digest), "{view} commits another batch");
                    self.committed = Some(digest);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        /// Whatever was accepted, prepared and committed in however many views: as soon as all correct replicas know
        /// which view was the last to begin, and in which ways, they decide without any liar, what was committed stays,
        /// and what they choose one of them has prepared and therefore has.
        #[test]
        fn the_choice_is_total_after_any_history_and_keeps_what_committed(
            f in 1usize..3, spare in 0usize..4, views in 1u64..12, choices in prop::collection::vec(any::<u8>(), 1_500),
        ) {
            let n = 3 * f + 1 + spare;
            let cluster = Cluster::new([0; 16], n, f, ClientAuth::Hybrid, Limits::default()).unwrap();
            let correct = (0..n - f).map(|_| Correct::default()).collect();
            let mut world = World { cluster, correct, choices, committed: None };
            for view in 1..=views {
                world.run(View(view));
            }
            let last = world.correct.iter().map(|one| one.begun.0).max().unwrap();
            let known = world.correct.iter().filter(|one| one.begun.0 == last).flat_map(|one| one.begun.1.clone());
            for chosen in known.collect::<BTreeSet<_>>() {
                world.correct.iter_mut().for_each(|one| one.learn(last, chosen));
            }
            let all: Vec<Sound> = world.correct.iter().map(Correct::view_change).collect();
            let decision = decide(world.cluster.replicas, world.cluster.window(), all.iter());
            prop_assert!(decision.is_some(), "{all:?}");
            let chosen = decision.unwrap().chosen.first().copied();
            prop_assert!(world.committed.is_none() || chosen == world.committed);
            let has = |digest| {
                world.correct.iter().any(|one| one.slot.prepared.is_some_and(|(_, known)| known == digest))
            };
            let at_hand = chosen.is_none_or(has);
            prop_assert!(at_hand);
            // A liar's word may spoil this choice, and nobody have what it names; but it does not spoil what is safe.
            let lie = world.lie(View(views + 1));
            let Cluster { replicas, .. } = world.cluster;
            let with = decide(replicas, world.cluster.window(), all.iter().chain([&lie]));
            let with = with.and_then(|with| with.chosen.first().copied());
            prop_assert!(world.committed.is_none() || with == world.committed);
        }
    }
}
