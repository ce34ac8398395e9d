//! Lies in a view change: properly signed VIEW-CHANGEs that hide what was prepared, or claim what never was: a batch
//! with a request that no client made. Whoever believes the claim gets the batch, and backups do not check again what
//! a new view has chosen.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use crate::store::{self, ServiceKind};
use crate::workload::Action;
use bezant_core::batch::{Batch, Entry};
use bezant_core::ids::{ClientId, InstanceId, Principal, Sequence, Timestamp, View};
use bezant_core::message::Request;
use bezant_core::protocols::pbft::{Claim, Ordering, PbftMessage, ViewChange};
use bezant_core::registry::{Incoming, Message};
use bezant_core::service::Proposal;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct ViewChangeLiar {
    /// Also as the primary of a new view, it chooses other batches than its evidence forces.
    unfaithful: bool,
    /// The lie that it always tells; `None`: another one each time.
    favourite: Option<u64>,
    /// The batch that it made up.
    forged: Arc<Batch>,
}

/// How many lies it knows.
const LIES: u64 = 6;

impl ViewChangeLiar {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let favourite = rng.below(LIES);
        let client = ClientId::default();
        let operation = store::encode(ServiceKind::Kv, 0, Action::Delete, 0);
        let request = Request::new(InstanceId(1), client, Timestamp(crate::clock::EPOCH), false, operation);
        let forged = Arc::new(Batch::new(Proposal::default(), vec![Entry::Inline(request)]));
        Self { unfaithful: rng.coin(), favourite: rng.coin().then_some(favourite), forged }
    }

    fn twist(&self, rng: &mut Rng, change: &ViewChange, liar_window: u64) -> ViewChange {
        let mut lie = change.clone();
        let stable = lie.stable.claims().sequence;
        let invented = self.forged.digest();
        match self.favourite.unwrap_or_else(|| rng.below(LIES)) {
            0 => lie.prepared.clear(),
            1 => lie.pre_prepared.clear(),
            2 => drop(lie.prepared.pop()),
            3 => {
                // Claims that a batch of its own invention prepared in the latest view, everywhere.
                let view = View(change.view.0.saturating_sub(1));
                let claim = |n| Claim { sequence: Sequence(stable.0 + n), digest: invented, view };
                lie.prepared = (1..=rng.between(1, liar_window)).map(claim).collect();
                lie.pre_prepared.clone_from(&lie.prepared);
            }
            4 => {
                for claim in lie.prepared.iter_mut().chain(&mut lie.pre_prepared) {
                    claim.view = View(claim.view.0 + 1);
                }
            }
            _ => {
                // Says of what others prepared that it was pre-prepared with another digest.
                for claim in &mut lie.prepared {
                    claim.digest = invented;
                }
            }
        }
        lie.prepared.dedup_by_key(|claim| claim.sequence);
        lie.pre_prepared.sort_unstable();
        lie.pre_prepared.dedup();
        lie
    }
}

impl Behaviour for ViewChangeLiar {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        if let Message::Ordering(Ordering { instance, message: PbftMessage::ViewChange(signed) }) = message
            && signed.signer() == liar.me
        {
            let lie = self.twist(liar.rng, signed.claims(), liar.cluster.window());
            let signed = liar.keyring.sign(lie);
            return liar.order(to, *instance, PbftMessage::ViewChange(Box::new(signed.into())));
        }
        if self.unfaithful
            && let Message::Ordering(Ordering { instance, message: PbftMessage::NewView(signed) }) = message
            && signed.signer() == liar.me
        {
            let mut lie = signed.claims().clone();
            lie.chosen.pop();
            lie.chosen.push(self.forged.digest());
            let signed = liar.keyring.sign(lie);
            return liar.order(to, *instance, PbftMessage::NewView(Arc::new(signed.into())));
        }
        liar.say(to, message);
    }

    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        if let Message::Ordering(Ordering { instance, message: PbftMessage::FetchBatch(position) }) = &*incoming.message
            && position.digest == self.forged.digest()
        {
            liar.order(incoming.from, *instance, PbftMessage::Batch(self.forged.clone()));
        }
        true
    }
}
