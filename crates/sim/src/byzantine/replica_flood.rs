//! Floods: well-formed messages about views, batches and checkpoints far in the future, more than anybody asked for.

use super::{Behaviour, Liar};
use bezant_core::batch::Batch;
use bezant_core::checkpoint::Checkpoint;
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{InstanceId, Principal, Sequence, View};
use bezant_core::protocols::pbft::{Ordering, PbftMessage, Position, PrePrepare, Status, ViewChange, Vote};
use bezant_core::registry::{Incoming, Message};
use std::sync::Arc;

/// Messages to each replica at each tick.
const BURST: usize = 6;

#[derive(Debug, Default)]
pub(super) struct ReplicaFlood {
    /// The one that its own machine speaks of: of those before it nobody listens to anything.
    latest: InstanceId,
    /// That it has left for: who leaves for a later one each time has to be heard each time.
    view: View,
}

/// Something about this instance.
fn invent(liar: &mut Liar<'_>, instance: InstanceId, left_for: &mut View) -> PbftMessage {
    let far = *liar.rng.pick(&[1, 2, 7, 100, 1 << 20, 1 << 40, u64::MAX - 1]);
    let view = View(liar.rng.below(far));
    let sequence = Sequence(liar.rng.below(far));
    let digest = Digest::of(Domain::Trace, &liar.rng.next().to_le_bytes());
    let vote = Vote { view, sequence, digest };
    match liar.rng.below(9) {
        0 => PbftMessage::Prepare(vote),
        1 | 2 => PbftMessage::Commit(vote),
        3 => PbftMessage::PrePrepare(PrePrepare { view, sequence, batch: Arc::new(Batch::null()) }),
        4 => PbftMessage::Decided(Position { sequence, digest }),
        5 => PbftMessage::FetchBatch(Position { sequence, digest }),
        6 => {
            let (changing, abstaining, failing) = (liar.rng.coin(), liar.rng.coin(), liar.rng.coin());
            PbftMessage::Status(Status {
                view,
                changing,
                stable: sequence,
                committed: sequence,
                begun: view,
                way: digest,
                abstaining,
                failing,
            })
        }
        7 => {
            let value = Checkpoint { instance, sequence, ruled: Sequence(0), root: digest };
            let stable = bezant_core::auth::Claimed::certified(value, Vec::new());
            *left_for = View(left_for.0 + 1 + liar.rng.below(3));
            let change = ViewChange { view: *left_for, stable, prepared: Vec::new(), pre_prepared: Vec::new() };
            PbftMessage::ViewChange(Box::new(liar.keyring.sign(change).into()))
        }
        _ => PbftMessage::Batch(Arc::new(Batch::null())),
    }
}

impl Behaviour for ReplicaFlood {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        self.latest = self.latest.max(message.instance().unwrap_or_default());
        liar.say(to, message);
    }

    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        // Answers every vote with one for the next positions.
        if let Message::Ordering(Ordering { instance, message: PbftMessage::Prepare(vote) }) = &*incoming.message {
            let ahead = Vote { sequence: Sequence(vote.sequence.0 + liar.rng.below(40)), ..*vote };
            liar.order(incoming.from, *instance, PbftMessage::Commit(ahead));
        }
        true
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        let latest = self.latest.max(InstanceId(1));
        for to in liar.others() {
            for _ in 0..BURST {
                let message = invent(liar, latest, &mut self.view);
                let instance = InstanceId(latest.0 + liar.rng.below(50) / 49);
                liar.order(to, instance, message);
            }
            if liar.rng.per_mille(200) {
                let sequence = Sequence(liar.rng.below(1000) * liar.cluster.limits.checkpoint_interval);
                let root = Digest::of(Domain::Trace, &sequence.0.to_le_bytes());
                let signed = liar.keyring.sign(Checkpoint { instance: latest, sequence, ruled: Sequence(0), root });
                liar.say(to, &Message::Checkpoint(Box::new(signed.into())));
            }
        }
    }
}
