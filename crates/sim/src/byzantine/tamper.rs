//! A network that changes frames: a flipped bit anywhere, or one kind of message made into another. It has no keys, so
//! that a MAC that covers every byte gives each change away.

use crate::rng::Rng;
use bytes::Bytes;

/// Where the kind of a message of PBFT stands in a frame: after the message's tag and the instance.
const KIND_AT: usize = 9;
/// The tag of a message of PBFT, and how many kinds it has.
const ORDERING: u8 = 3;
const KINDS: u64 = 13;

/// Changes copies of frames.
#[derive(Debug)]
pub struct Tamper {
    rng: Rng,
    /// Frames of which a changed copy is made, per mille.
    often: u64,
}

impl Tamper {
    /// Draws how busy the attacker is.
    pub const fn new(mut rng: Rng) -> Self {
        let often = rng.between(10, 300);
        Self { rng, often }
    }

    /// A changed copy to send along, now and then.
    pub fn copy(&mut self, frame: &Bytes) -> Option<Bytes> {
        if frame.is_empty() || !self.rng.per_mille(self.often) {
            return None;
        }
        let mut copy = frame.to_vec();
        if copy[0] == ORDERING && copy.len() > KIND_AT && self.rng.coin() {
            copy[KIND_AT] = self.rng.below(KINDS) as u8;
        } else {
            let at = self.rng.below(copy.len() as u64) as usize;
            copy[at] ^= 1 << self.rng.below(8);
        }
        Some(copy.into())
    }
}
