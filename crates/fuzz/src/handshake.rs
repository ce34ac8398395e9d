//! One handshake between two honest sides, and a network that reads, changes, repeats and invents frames, but has no
//! key.

use crate::{CLIENT, Sound, four, keyring};
use bezant_core::auth::Keyring;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_node::net::handshake::{Expect, HANDSHAKE_BYTES_MAX, Handshake, Progress};
use bezant_node::net::{LinkRefusal, Peer};
use bytes::Bytes;

/// Frames that the network remembers, to repeat them; the first are those of an earlier handshake.
const REMEMBERED_MAX: usize = 64;
/// Who is dialled.
const ACCEPTOR: ReplicaId = ReplicaId(0);

struct Side {
    keyring: Keyring,
    handshake: Handshake,
    /// It has sent a frame that proves who it is.
    has_spoken: bool,
    /// Whom it takes the other side for.
    done: Option<Peer>,
}

/// Both sides and the network.
pub struct World {
    /// The initiator and the acceptor.
    sides: [Side; 2],
    /// Who they are.
    peers: [Peer; 2],
    /// Whether both name the same channel.
    same_channel: bool,
    /// The last frame to each side.
    on_the_way: [Vec<u8>; 2],
    remembered: Vec<Vec<u8>>,
}

impl World {
    /// The initiator has dialled. Bits of `choice`: 0: it is a client, not a replica; 1: the two sides are at the ends
    /// of different channels, as if somebody sat between them.
    pub fn new(choice: u8) -> Self {
        let earlier = Self::dialled(choice & 1, [3, 4]).finish();
        Self { remembered: earlier, ..Self::dialled(choice, [1, 2]) }
    }

    fn dialled(choice: u8, nonces: [u8; 2]) -> Self {
        let cluster = four();
        let (me, who, expect) = if choice & 1 == 0 {
            let id = ReplicaId(1);
            (Principal::Replica(id), Peer::Replica(id), Expect::HigherReplica(ACCEPTOR))
        } else {
            let who = Peer::Client { identity: CLIENT.identity, first: 0, sessions: 16 };
            (Principal::Client(CLIENT), who, Expect::AnyClient)
        };
        let peers = [who, Peer::Replica(ACCEPTOR)];
        let same_channel = choice & 2 == 0;
        let side = |at: usize, me, expect| {
            let keyring = keyring(&Sound, &cluster, me);
            let mut handshake = Handshake::new(&keyring, peers[at], expect, [nonces[at]; 32]);
            handshake.bind(vec![if same_channel { 0 } else { at as u8 }]);
            Side { keyring, handshake, has_spoken: false, done: None }
        };
        let sides = [side(0, me, Expect::Replica(ACCEPTOR)), side(1, Principal::Replica(ACCEPTOR), expect)];
        let hello = sides[0].handshake.hello();
        Self { sides, peers, same_channel, on_the_way: [Vec::new(), hello], remembered: Vec::new() }
    }

    /// Everything arrives as it was sent. All frames.
    fn finish(mut self) -> Vec<Vec<u8>> {
        for to in [1, 0, 1, 0] {
            let frame = self.on_the_way[to].clone();
            self.remember(&frame);
            self.deliver(to, frame);
        }
        self.remembered
    }

    fn remember(&mut self, frame: &[u8]) {
        if self.remembered.len() < REMEMBERED_MAX {
            self.remembered.push(frame.to_vec());
        }
    }

    /// What the network does, step by step. A step's first byte says to whom a frame goes (bit 0) and which: the last
    /// one to that side, that one with a byte changed, any earlier one, or one of the network's own making.
    ///
    /// # Panics
    /// If a side accepts what it must not, or sends more than a frame may hold.
    pub fn play(&mut self, script: &[u8]) {
        let mut bytes = script.iter().copied();
        while let Some(step) = bytes.next() {
            let mut byte = || bytes.next().unwrap_or_default();
            let to = usize::from(step & 1);
            let mut frame = self.on_the_way[to].clone();
            match step / 2 % 4 {
                0 => {}
                1 => {
                    let (at, change) = (usize::from(byte()), byte());
                    if let Some(changed) = frame.get_mut(at) {
                        *changed ^= change;
                    }
                }
                2 => frame.clone_from(&self.remembered[usize::from(byte()) % self.remembered.len()]),
                _ => {
                    let length = usize::from(byte());
                    frame = bytes.by_ref().take(length).collect();
                }
            }
            self.deliver(to, frame);
        }
    }

    /// The network hands a frame to a side, which must neither believe nor say too much. A side that has ended hears
    /// nothing more: its connection is closed, or carries other frames.
    fn deliver(&mut self, to: usize, frame: Vec<u8>) {
        let side = &mut self.sides[to];
        if side.done.is_some() {
            return;
        }
        let answer = match side.handshake.receive(Bytes::from(frame), &side.keyring) {
            Progress::Reply(answer) => {
                side.has_spoken = true;
                Some(answer)
            }
            Progress::Done(peer, answer) => {
                side.done = Some(peer);
                answer
            }
            Progress::Refused(reason, answer) => {
                // That one says what the side runs.
                assert!(reason == LinkRefusal::OtherService || answer == Handshake::refuse(reason));
                assert!(LinkRefusal::ALL.contains(&reason));
                Some(answer)
            }
            Progress::RefusedByPeer(_) | Progress::OtherService(_) => None,
        };
        if let Some(answer) = answer {
            assert!(answer.len() <= HANDSHAKE_BYTES_MAX, "{} bytes in a frame of the handshake", answer.len());
            self.remember(&answer);
            self.on_the_way[1 - to] = answer;
        }
        self.check();
    }

    /// A side believes only whoever proved himself to it, now, over this channel. That the initiator has spoken means
    /// that it took the acceptor's proof.
    fn check(&self) {
        let [initiator, acceptor] = &self.sides;
        if initiator.has_spoken {
            assert!(self.same_channel && acceptor.has_spoken, "a proof that nobody gave in this handshake");
        }
        for (at, side) in self.sides.iter().enumerate() {
            if let Some(peer) = side.done {
                assert_eq!(peer, self.peers[1 - at]);
                assert!(initiator.has_spoken, "side {at} took a proof that nobody gave in this handshake");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last frame to this side, as it is.
    const TO_INITIATOR: u8 = 0;
    const TO_ACCEPTOR: u8 = 1;
    const HONEST: [u8; 4] = [TO_ACCEPTOR, TO_INITIATOR, TO_ACCEPTOR, TO_INITIATOR];

    fn done(choice: u8, script: &[u8]) -> [bool; 2] {
        let mut world = World::new(choice);
        world.play(script);
        world.sides.each_ref().map(|side| side.done.is_some())
    }

    /// Scripts of the fuzzer are of use only if they get somewhere.
    #[test]
    fn a_script_without_malice_ends_with_both_sides_convinced() {
        for choice in [0, 1] {
            assert_eq!(done(choice, &HONEST), [true, true]);
        }
    }

    #[test]
    fn between_two_channels_nobody_is_convinced() {
        assert_eq!(done(2, &HONEST), [false, false]);
    }

    #[test]
    fn a_handshake_that_is_said_again_convinces_nobody() {
        // HELLO, ANSWER, PROOF and READY of the earlier one, each to its side.
        assert_eq!(done(0, &[5, 0, 4, 1, 5, 2, 4, 3]), [false, false]);
    }
}
