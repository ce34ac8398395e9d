//! Lightweight checkpoints said to some only, or with other digests, or echoed to whoever says one (abs-K7, abs-S3):
//! one replica may take as certain what others never hear of.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::digest::{Digest, Domain};
use bezant_core::history::Boundary;
use bezant_core::ids::Principal;
use bezant_core::registry::{Incoming, Message};
use bezant_core::switching::{Switch, SwitchMessage};

#[derive(Debug)]
pub(super) struct SelectiveCheckpoint {
    /// Bit per replica: who hears the truth.
    favoured: u64,
    /// Says to everybody what it wants to hear.
    echoes: bool,
    /// The others hear lies; otherwise they hear nothing.
    lies: bool,
}

impl SelectiveCheckpoint {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { favoured: rng.next(), echoes: rng.coin(), lies: rng.coin() }
    }
}

impl Behaviour for SelectiveCheckpoint {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let (Principal::Replica(id), Message::Switch(Switch { instance, message: said })) = (to, message) else {
            return liar.say(to, message);
        };
        let (SwitchMessage::Checkpoint(boundary) | SwitchMessage::Anchor(boundary)) = said else {
            return liar.say(to, message);
        };
        if self.favoured >> id.0 & 1 == 1 {
            return liar.say(to, message);
        }
        if !self.lies {
            return;
        }
        let Boundary { position, history, root } = *boundary;
        let lie = match liar.rng.below(4) {
            0 => Boundary { position, history, root: Digest::of(Domain::Trace, &root.0) },
            1 => Boundary { position, history: Digest::of(Domain::Trace, &history.0), root },
            2 => Boundary { position: position + liar.cluster.limits.history_interval, history, root },
            _ => Boundary { position: u64::MAX, history, root },
        };
        let message = SwitchMessage::Checkpoint(lie);
        liar.say(to, &Message::Switch(Switch { instance: *instance, message }));
    }

    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        // Two liars would echo each other for ever.
        if self.echoes
            && !matches!(incoming.from, Principal::Replica(id) if liar.liars.contains(&id))
            && let Message::Switch(Switch { instance, message: SwitchMessage::Checkpoint(boundary) }) =
                &*incoming.message
        {
            let message = SwitchMessage::Checkpoint(*boundary);
            liar.say(incoming.from, &Message::Switch(Switch { instance: *instance, message }));
        }
        true
    }
}
