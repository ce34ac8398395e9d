//! Stable checkpoints: one root per position, and no correct replica ever finds that its own state is another.
//!
//! Where correct replicas execute a request otherwise and others lie, they may be more than a ruling can save from each
//! other: a liar signs one state for one replica, which is the last signature that this needs, and helps the others to
//! refuse the request. It is the one case in which an answer may be taken back ([`bezant_core::dissent`]). There a
//! checkpoint may have another root if a ruling had it executed again.

use super::{Check, Event};
use bezant_core::digest::Digest;
use bezant_core::ids::{InstanceId, ReplicaId, Sequence};
use bezant_core::notice::Notice;
use std::collections::{BTreeMap, BTreeSet};

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Roots {
    /// Whether correct replicas may execute a request otherwise. Then they may find that they are wrong.
    dissent: bool,
    /// Whether there are liars as well.
    liars: bool,
    /// The batches that a ruling had executed again: those after the first one, up to the second.
    ruled: BTreeSet<(InstanceId, Sequence, Sequence)>,
    stable: BTreeMap<(InstanceId, Sequence), (ReplicaId, Digest)>,
}

impl Roots {
    /// With `dissent` a correct replica may execute a request otherwise, and find out; with `liars` others may lie
    /// about it.
    pub fn new(dissent: bool, liars: bool) -> Self {
        Self { dissent, liars, ..Self::default() }
    }

    /// Whether liars may have had a stable state taken back.
    fn may_be_taken_back(&self, of: InstanceId, sequence: Sequence) -> bool {
        let covers = |(instance, back, until): &_| *instance == of && (*back < sequence && sequence <= *until);
        self.dissent && self.liars && self.ruled.iter().any(covers)
    }
}

impl Check for Roots {
    fn name(&self) -> &'static str {
        "roots"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Noticed(replica, Notice::Stable { instance, sequence, root }) => {
                let (first, known) = *self.stable.entry((*instance, *sequence)).or_insert((*replica, *root));
                if known != *root && !self.may_be_taken_back(*instance, *sequence) {
                    return Err(format!("at {sequence}, the root is {known:?} at {first} and {root:?} at {replica}"));
                }
            }
            Event::Noticed(_, Notice::Ruled { instance, batch, back, .. }) => {
                self.ruled.insert((*instance, *back, *batch));
            }
            Event::Noticed(_, Notice::Diverged { .. } | Notice::Repaired(_)) if self.dissent => {}
            Event::Noticed(replica, Notice::Diverged { sequence, mine, agreed }) => {
                return Err(format!("{replica} has root {mine:?} at {sequence}; {agreed:?} is certified"));
            }
            Event::Noticed(replica, Notice::Repaired(divergence)) => {
                return Err(format!("{replica} took its own state at {} for wrong", divergence.sequence));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the check says when a second replica has another root than the first, and a ruling came between.
    fn second_root(dissent: bool, liars: bool, ruled: Option<(u64, u64)>) -> Result<(), String> {
        let mut roots = Roots::new(dissent, liars);
        let instance = InstanceId(3);
        let stable = |byte| Notice::Stable { instance, sequence: Sequence(4), root: Digest([byte; 32]) };
        roots.see(0, &Event::Noticed(ReplicaId(0), &stable(1)))?;
        if let Some((back, batch)) = ruled {
            let (back, batch) = (Sequence(back), Sequence(batch));
            roots.see(1, &Event::Noticed(ReplicaId(1), &Notice::Ruled { instance, position: 2, batch, back }))?;
        }
        roots.see(2, &Event::Noticed(ReplicaId(1), &stable(2)))
    }

    #[test]
    fn two_roots_are_excused_only_by_liars_where_a_ruling_had_the_batch_executed_again() {
        assert_eq!(second_root(true, true, Some((0, 5))), Ok(()));
        for (dissent, liars, ruled) in [
            (true, true, None),
            (true, true, Some((4, 5))),
            (true, true, Some((0, 3))),
            (true, false, Some((0, 5))),
            (false, true, Some((0, 5))),
        ] {
            second_root(dissent, liars, ruled).expect_err("two roots at one checkpoint");
        }
    }
}
