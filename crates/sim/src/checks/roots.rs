//! Stable checkpoints: one root per position, and no correct replica ever finds that its own state is another.

use super::{Check, Event};
use bezant_core::digest::Digest;
use bezant_core::ids::{InstanceId, ReplicaId, Sequence};
use bezant_core::notice::Notice;
use std::collections::BTreeMap;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Roots {
    /// Whether correct replicas may execute a request otherwise. Then they may find that they are wrong.
    dissent: bool,
    stable: BTreeMap<(InstanceId, Sequence), (ReplicaId, Digest)>,
}

impl Roots {
    /// With `dissent` a correct replica may execute a request otherwise, and find out.
    pub fn new(dissent: bool) -> Self {
        Self { dissent, ..Self::default() }
    }
}

impl Check for Roots {
    fn name(&self) -> &'static str {
        "roots"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Noticed(replica, Notice::Stable { instance, sequence, root }) => {
                let (first, known) = self.stable.entry((*instance, *sequence)).or_insert((*replica, *root));
                if known != root {
                    return Err(format!("at {sequence}, the root is {known:?} at {first} and {root:?} at {replica}"));
                }
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
