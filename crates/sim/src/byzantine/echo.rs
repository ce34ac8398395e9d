//! A network that delivers frames again, long after: after restarts, lost disks, view changes and switches. It has no
//! keys and changes nothing; a MAC says who spoke, and not when.

use crate::network::ProcessId;
use crate::rng::Rng;
use bytes::Bytes;

/// Frames that it remembers.
const MEMORY_MAX: usize = 600;

/// Keeps copies of frames.
#[derive(Debug)]
pub struct Echo {
    rng: Rng,
    /// Frames with which an old one is delivered, per mille.
    often: u64,
    memory: Vec<(ProcessId, ProcessId, Bytes)>,
    /// Frames delivered again.
    pub acts: u64,
}

impl Echo {
    /// Draws how busy the attacker is.
    pub fn new(mut rng: Rng) -> Self {
        let often = *rng.pick(&[10, 60, 250]);
        Self { rng, often, memory: Vec::new(), acts: 0 }
    }

    /// A frame is under way. Another one, of any link, to be delivered now again.
    pub fn hear(&mut self, from: ProcessId, to: ProcessId, frame: &Bytes) -> Option<(ProcessId, ProcessId, Bytes)> {
        let item = (from, to, frame.clone());
        if self.memory.len() < MEMORY_MAX {
            self.memory.push(item);
        } else if self.rng.per_mille(300) {
            let at = self.rng.below(MEMORY_MAX as u64) as usize;
            self.memory[at] = item;
        }
        if !self.rng.per_mille(self.often) {
            return None;
        }
        self.acts += 1;
        Some(self.rng.pick(&self.memory).clone())
    }
}
