//! Agreement: at one position all correct replicas execute the same batch, after the same history.

use super::{Check, Event};
use bezant_core::digest::Digest;
use bezant_core::ids::{InstanceId, ReplicaId, Sequence};
use bezant_core::notice::Notice;
use std::collections::BTreeMap;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Agreement {
    /// What was executed first at each position, and by whom.
    executed: BTreeMap<(InstanceId, Sequence), (ReplicaId, Digest, Digest)>,
}

impl Check for Agreement {
    fn name(&self) -> &'static str {
        "agreement"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        let Event::Noticed(replica, Notice::Executed { instance, sequence, digest, history, .. }) = event else {
            return Ok(());
        };
        let (first, batch, after) =
            self.executed.entry((*instance, *sequence)).or_insert((*replica, *digest, *history));
        if batch != digest {
            return Err(format!("at {sequence}, {first} executed {batch:?} and {replica} executed {digest:?}"));
        }
        if after != history {
            return Err(format!("after {sequence}, the history is {after:?} at {first} and {history:?} at {replica}"));
        }
        Ok(())
    }
}
