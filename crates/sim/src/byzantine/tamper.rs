//! A network that changes frames: a flipped bit anywhere, or one kind of message made into another, at random or
//! always what would help the most. It has no keys, so that a MAC that covers every byte gives each change away.

use crate::rng::Rng;
use bytes::Bytes;

/// Where the kind of a message of PBFT stands in a frame: after the message's tag and the instance.
const KIND_AT: usize = 9;
/// The tag of a message of PBFT, and how many kinds it has.
const ORDERING: u8 = 3;
const KINDS: u64 = 13;
/// Pairs of kinds of the same form of which the second counts for more: PREPARE and COMMIT, a question for a batch and
/// the statement that it was decided.
const PROMOTIONS: [(u8, u8); 2] = [(2, 3), (7, 11)];

/// Changes copies of frames.
#[derive(Debug)]
pub struct Tamper {
    rng: Rng,
    /// Frames of which a changed copy is made, per mille.
    often: u64,
    /// Changes all messages of one kind into another, and nothing else.
    promotes: Option<(u8, u8)>,
    /// Frames of which a changed copy was made.
    pub acts: u64,
}

impl Tamper {
    /// Draws how busy the attacker is.
    pub fn new(mut rng: Rng) -> Self {
        let promotes = if rng.coin() { Some(*rng.pick(&PROMOTIONS)) } else { None };
        let often = if promotes.is_some() { 1_000 } else { rng.between(10, 300) };
        Self { rng, often, promotes, acts: 0 }
    }

    /// A changed copy to send along, now and then.
    pub fn copy(&mut self, frame: &Bytes) -> Option<Bytes> {
        if frame.is_empty() || !self.rng.per_mille(self.often) {
            return None;
        }
        let mut copy = frame.to_vec();
        let is_ordering = copy[0] == ORDERING && copy.len() > KIND_AT;
        if let Some((from, to)) = self.promotes {
            if !is_ordering || copy[KIND_AT] != from {
                return None;
            }
            copy[KIND_AT] = to;
        } else if is_ordering && self.rng.coin() {
            copy[KIND_AT] = self.rng.below(KINDS) as u8;
        } else {
            let at = self.rng.below(copy.len() as u64) as usize;
            copy[at] ^= 1 << self.rng.below(8);
        }
        self.acts += 1;
        Some(copy.into())
    }
}
