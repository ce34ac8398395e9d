//! Frames that are no messages: cut off, with bytes left over, with a length that is not there, with a kind that nobody
//! knows, or noise. A client with a good key sends them over its own links.

use super::ClientBehaviour;
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::message::Request;
use bezant_core::registry::Message;

/// Frames for each request.
const BURST: u64 = 4;
/// Bytes of the longest noise.
const NOISE_MAX: u64 = 2_000;

#[derive(Debug)]
pub(super) struct Malformed;

fn spoilt(rng: &mut Rng, mut frame: Vec<u8>) -> Vec<u8> {
    let at = rng.below(frame.len() as u64) as usize;
    match rng.below(6) {
        0 => frame.truncate(at),
        1 => frame.push(rng.below(256) as u8),
        // A length, wherever it stands.
        2 => frame.splice(at..frame.len().min(at + 4), [0xff, 0xff, 0xff, 0x7f]).for_each(drop),
        3 => frame[0] = rng.below(256) as u8,
        4 => frame[at] ^= 1 << rng.below(8),
        _ => frame = (0..rng.below(NOISE_MAX)).map(|_| rng.below(256) as u8).collect(),
    }
    frame
}

impl ClientBehaviour for Malformed {
    fn frames(&mut self, rng: &mut Rng, keyring: &Keyring, to: ReplicaId, request: &Request) -> Vec<Vec<u8>> {
        let frame = Message::Request(request.clone()).sealed(keyring, Principal::Replica(to));
        (0..BURST).map(|_| spoilt(rng, frame.clone())).collect()
    }
}
