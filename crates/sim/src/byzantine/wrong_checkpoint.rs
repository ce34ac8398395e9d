//! Wrong checkpoints: properly signed, for a root that the liar does not have, or for a batch it did not execute.

use super::{Behaviour, Liar};
use bezant_core::checkpoint::Checkpoint;
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{Principal, Sequence};
use bezant_core::registry::Message;

#[derive(Debug)]
pub(super) struct WrongCheckpoint;

impl Behaviour for WrongCheckpoint {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let Message::Checkpoint(signed) = message else { return liar.say(to, message) };
        let Checkpoint { instance, sequence, ruled, root } = *signed.claims();
        let interval = liar.cluster.limits.checkpoint_interval;
        // The same lie from every liar: only then can it reach a threshold that is too low.
        let lie = match liar.rng.below(3) {
            0 => Checkpoint { instance, sequence, ruled, root: Digest::of(Domain::Trace, &root.0) },
            1 => Checkpoint { instance, sequence: Sequence(sequence.0 + interval), ruled, root },
            _ => Checkpoint { instance, sequence: Sequence(sequence.0 + 100 * interval), ruled, root },
        };
        let signed = liar.keyring.sign(lie);
        liar.say(to, &Message::Checkpoint(Box::new(signed.into())));
    }
}
