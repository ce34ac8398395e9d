//! Bodies that nobody asked for: requests, batches, entries, nodes and pages, all different and as large as they may
//! be, whoever may or may not want them; and proposals that name by their digests what nobody has.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::batch::{Batch, Entry, Reference};
use bezant_core::checkpoint::TransferMessage;
use bezant_core::digest::{Digest, Domain};
use bezant_core::history::LogEntry;
use bezant_core::ids::{ClientId, IdentityId, InstanceId, Principal, Timestamp};
use bezant_core::message::Request;
use bezant_core::protocols::pbft::{Ordering, PbftMessage, PrePrepare};
use bezant_core::registry::{Incoming, Message};
use bezant_core::service::Proposal;
use bezant_core::switching::{Bodies, Switch, SwitchMessage};
use std::sync::Arc;

/// Messages in a run.
const MESSAGES_MAX: u64 = 4_000;

#[derive(Debug)]
pub(super) struct UnaskedBodies {
    burst: u64,
    left: u64,
    instance: InstanceId,
    /// Proposals of its own to which it adds a request that nobody has, per mille.
    unknown: u64,
}

impl UnaskedBodies {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let burst = *rng.pick(&[1, 5, 20]);
        Self { burst, left: MESSAGES_MAX, instance: InstanceId(1), unknown: *rng.pick(&[0, 100, 700]) }
    }

    fn request(liar: &mut Liar<'_>, instance: InstanceId) -> Request {
        let length =
            *liar.rng.pick(&[0, 1, liar.cluster.limits.inline_bytes_max + 1, liar.cluster.limits.operation_bytes_max]);
        let client =
            ClientId { identity: IdentityId(liar.rng.below(3) as u32), session: liar.rng.below(1 << 20) as u32 };
        let mut operation = vec![0; length];
        operation.extend_from_slice(&liar.rng.next().to_le_bytes());
        Request::new(instance, client, Timestamp(liar.rng.below(1 << 40)), false, operation.into())
    }

    fn body(&self, liar: &mut Liar<'_>) -> Message {
        let instance = self.instance;
        let version = Digest::of(Domain::Trace, &liar.rng.next().to_le_bytes());
        let request = Self::request(liar, instance);
        match liar.rng.below(4) {
            0 => Message::Ordering(Ordering { instance, message: PbftMessage::Body(Box::new(request)) }),
            1 => {
                let batch = Batch::new(Proposal::default(), vec![Entry::Inline(request)]);
                Message::Ordering(Ordering { instance, message: PbftMessage::Batch(Arc::new(batch)) })
            }
            2 => {
                let bodies = Bodies(vec![LogEntry::new(Proposal::default(), request)]);
                Message::Switch(Switch { instance, message: SwitchMessage::Bodies(bodies) })
            }
            _ => {
                let (number, content) = (liar.rng.below(1 << 12) as u32, request.operation);
                Message::Transfer(TransferMessage::Page { version, number, content })
            }
        }
    }
}

impl Behaviour for UnaskedBodies {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        if let Message::Ordering(Ordering { instance, message: PbftMessage::PrePrepare(proposal) }) = message
            && liar.rng.per_mille(self.unknown)
        {
            let PrePrepare { view, sequence, batch } = proposal;
            let mut entries = batch.entries().to_vec();
            let request = Self::request(liar, *instance);
            entries.push(Entry::Reference(Reference::to(&request)));
            let batch = Arc::new(Batch::new(batch.proposal().clone(), entries));
            let lie = PrePrepare { view: *view, sequence: *sequence, batch };
            return liar.order(to, *instance, PbftMessage::PrePrepare(lie));
        }
        liar.say(to, message);
    }

    fn receive(&mut self, _liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        self.instance = self.instance.max(incoming.message.instance().unwrap_or_default());
        true
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        for to in liar.others() {
            for _ in 0..self.burst.min(self.left) {
                let body = self.body(liar);
                liar.say(to, &body);
                self.left -= 1;
            }
        }
    }
}
