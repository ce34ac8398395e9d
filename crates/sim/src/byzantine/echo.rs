//! A network that delivers frames again, long after: after restarts, lost disks, view changes and switches. It has no
//! keys and changes nothing; a MAC says who spoke, and not when. Whoever says something gets an old answer as often as
//! anybody an old frame of any link.

use crate::network::ProcessId;
use crate::rng::Rng;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Frames of one kind that it remembers, on each link.
const MEMORY_MAX: usize = 8;

/// Which frames are alike: a link, the kind of the message, and the kind within its protocol.
type Kind = (ProcessId, ProcessId, u8, u8);

/// Where a frame has the kind within a protocol, after its own kind and the instance.
const INNER_KIND: usize = 9;

/// Keeps copies of frames.
#[derive(Debug)]
pub struct Echo {
    rng: Rng,
    /// Frames with which an old one is delivered, per mille.
    often: u64,
    memory: BTreeMap<Kind, Vec<Bytes>>,
    /// Frames delivered again.
    pub acts: u64,
}

impl Echo {
    /// Draws how busy the attacker is.
    pub fn new(mut rng: Rng) -> Self {
        let often = *rng.pick(&[10, 60, 250]);
        Self { rng, often, memory: BTreeMap::new(), acts: 0 }
    }

    /// A frame is under way. Another one, of any link, to be delivered now again.
    pub fn hear(&mut self, from: ProcessId, to: ProcessId, frame: &Bytes) -> Option<(ProcessId, ProcessId, Bytes)> {
        let byte = |at: usize| frame.get(at).copied().unwrap_or_default();
        let alike = self.memory.entry((from, to, byte(0), byte(INNER_KIND))).or_default();
        if alike.len() < MEMORY_MAX {
            alike.push(frame.clone());
        } else if self.rng.per_mille(300) {
            alike[self.rng.below(MEMORY_MAX as u64) as usize] = frame.clone();
        }
        if !self.rng.per_mille(self.often) {
            return None;
        }
        let answers = (to, from, 0, 0)..=(to, from, u8::MAX, u8::MAX);
        let answers: Vec<Kind> = self.memory.range(answers).map(|(kind, _)| *kind).collect();
        let kind = if answers.is_empty() || self.rng.coin() {
            let at = self.rng.below(self.memory.len() as u64) as usize;
            *self.memory.keys().nth(at)?
        } else {
            *self.rng.pick(&answers)
        };
        self.acts += 1;
        Some((kind.0, kind.1, self.rng.pick(&self.memory[&kind]).clone()))
    }
}
