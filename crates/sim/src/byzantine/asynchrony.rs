//! A network that is slower than every timer, and delays most what would bring somebody ahead (ritas-A6). It loses
//! nothing: who waits for frames and not for time goes on.
//!
//! It begins where other runs have a good network. Every frame between replicas takes longer than a time-out may
//! become. Those of the replica that has said most of late come last, since that one is ahead; and each half of the
//! replicas hears its own side first, so that they do not come to think alike. What it holds back is bounded by what it
//! delivers meanwhile, and not by a time that anybody knows.

use crate::network::{CLIENTS, ProcessId};
use crate::rng::Rng;

/// Frames after which it looks again who is ahead.
const FRAMES: u64 = 150;

/// Delays frames.
#[derive(Debug)]
pub struct Asynchrony {
    rng: Rng,
    /// The least that a frame takes longer, in microseconds: more than any time-out.
    least: u64,
    /// Frames of each replica, since it looked.
    said: [u64; CLIENTS],
    frames: u64,
    ahead: ProcessId,
    /// Bit per replica: which half it is in.
    half: u64,
    /// Frames that it has delayed.
    pub acts: u64,
}

impl Asynchrony {
    /// A network where nothing is in time for a time-out of so many microseconds.
    pub fn new(mut rng: Rng, timeout_max: u64) -> Self {
        let (ahead, half) = (rng.below(4) as usize, rng.next());
        Self { rng, least: 2 * timeout_max, said: [0; CLIENTS], frames: 0, ahead, half, acts: 0 }
    }

    /// The longest that a frame takes longer, in microseconds.
    pub const fn most(timeout_max: u64) -> u64 {
        10 * timeout_max
    }

    /// How much longer a frame takes.
    pub fn hold(&mut self, from: ProcessId, to: ProcessId) -> u64 {
        if from >= CLIENTS || to >= CLIENTS {
            return 0;
        }
        self.acts += 1;
        self.frames += 1;
        self.said[from] += 1;
        if self.frames >= FRAMES {
            let most = self.said.iter().max().copied();
            self.ahead = self.said.iter().position(|said| Some(*said) == most).unwrap_or_default();
            (self.said, self.frames, self.half) = ([0; CLIENTS], 0, self.rng.next());
        }
        let is_across = (self.half >> from ^ self.half >> to) & 1 == 1;
        let parts = 2 + 2 * u64::from(is_across) + 4 * u64::from(from == self.ahead);
        self.least * parts / 2 + self.rng.below(self.least)
    }
}
