//! Commit, abort and init order: what was committed in an instance is in every history with which a later one begins,
//! and commits of one instance are prefixes of one another.
//!
//! Time does not matter: a commit may become known long after the next instance has begun, and must still be a prefix
//! of its init history.

use super::{Check, Event};
use bezant_core::digest::Digest;
use bezant_core::ids::{InstanceId, ReplicaId};
use bezant_core::notice::Notice;
use std::collections::BTreeMap;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Inheritance {
    /// Each history and the one before it.
    before: BTreeMap<Digest, Digest>,
    /// The last history of each instance that orders batches.
    latest: BTreeMap<InstanceId, Digest>,
    commits: Vec<(InstanceId, Digest)>,
    inits: Vec<(InstanceId, ReplicaId, Digest)>,
}

impl Inheritance {
    fn is_prefix(&self, prefix: Digest, of: Digest) -> bool {
        let mut history = of;
        loop {
            if history == prefix || prefix == Digest::ZERO {
                return true;
            }
            match self.before.get(&history) {
                Some(before) => history = *before,
                None => return false,
            }
        }
    }

    fn committed(&mut self, instance: InstanceId, history: Digest) -> Result<(), String> {
        for (of, known) in self.commits.iter().filter(|(of, _)| *of == instance) {
            if !self.is_prefix(*known, history) && !self.is_prefix(history, *known) {
                return Err(format!("{known:?} and {history:?} are both committed in {of} (commit order)"));
            }
        }
        self.commits.push((instance, history));
        for (later, replica, init) in self.inits.iter().filter(|(later, ..)| *later > instance) {
            if !self.is_prefix(history, *init) {
                return Err(format!(
                    "{history:?} is committed in {instance}, and {replica} began {later} with {init:?} without it"
                ));
            }
        }
        Ok(())
    }

    fn begun(&mut self, instance: InstanceId, replica: ReplicaId, history: Digest) -> Result<(), String> {
        for (earlier, commit) in self.commits.iter().filter(|(earlier, _)| *earlier < instance) {
            if !self.is_prefix(*commit, history) {
                return Err(format!(
                    "{replica} begins {instance} with {history:?}, without {commit:?}, which is committed in {earlier}"
                ));
            }
        }
        self.inits.push((instance, replica, history));
        Ok(())
    }
}

impl Check for Inheritance {
    fn name(&self) -> &'static str {
        "inheritance"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Committed { instance, history } => self.committed(*instance, *history),
            Event::Noticed(replica, Notice::Begun { instance, history, .. }) => {
                self.latest.entry(*instance).or_insert(*history);
                self.begun(*instance, *replica, *history)
            }
            Event::Noticed(_, Notice::Logged { before, entries, .. }) => {
                let mut before = *before;
                for (_, history) in entries {
                    self.before.insert(*history, before);
                    before = *history;
                }
                Ok(())
            }
            Event::Noticed(_, Notice::Executed { instance, history, .. }) => {
                let latest = self.latest.entry(*instance).or_insert(Digest::ZERO);
                if *history != Digest::ZERO && !self.before.contains_key(history) && history != latest {
                    self.before.insert(*history, *latest);
                    *latest = *history;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
