//! Bounded memory: whatever a correct replica holds has a bound, and stays below it.
use super::{Check, Event, Held};
use bezant_core::cluster::Cluster;
use std::collections::BTreeMap;

/// See the [module](self).
#[derive(Debug)]
pub struct Memory {
    most: BTreeMap<String, Held>,
}

impl Memory {
    /// The bounds of this cluster.
    pub const fn new(_cluster: &Cluster) -> Self {
        Self { most: BTreeMap::new() }
    }
}

impl Check for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        if let Event::Holds(_, holdings) = event {
            for (path, held) in holdings.collections() {
                let most = self.most.entry(path).or_default();
                most.entries = most.entries.max(held.entries);
                most.bytes = most.bytes.max(held.bytes);
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        if std::env::var_os("HOLD").is_some() {
            for (path, held) in &self.most {
                eprintln!("HELD {path} {} {}", held.entries, held.bytes);
            }
        }
        Ok(())
    }
}
