//! Proofs that prove nothing (abs-K21): too few reports, made up in the name of others, of another instance, with
//! signatures that belong to something else; sent as INIT to whoever has not begun yet, and ordered as INIT in a
//! Backup.

use super::{Behaviour, Liar};
use bezant_core::auth::{Claimed, Signed};
use bezant_core::batch::{Batch, Entry};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{InstanceId, Principal};
use bezant_core::message::Request;
use bezant_core::protocols::pbft::{Ordering, PbftMessage, PrePrepare};
use bezant_core::registry::{Incoming, Message};
use bezant_core::switching::{AbortReport, ClaimedProof, Switch, SwitchMessage};
use std::sync::Arc;

/// Reports of others that it remembers.
const MEMORY_MAX: usize = 24;

#[derive(Debug, Default)]
pub(super) struct BogusProof {
    heard: Vec<Claimed<Signed<AbortReport>>>,
    latest: InstanceId,
}

impl BogusProof {
    fn proof(&self, liar: &mut Liar<'_>) -> Option<ClaimedProof> {
        let model = self.heard.get(liar.rng.below(self.heard.len() as u64 + 1) as usize)?;
        let mut lie = model.claims().clone();
        let far = *liar.rng.pick(&[0, 1, 1 << 40, u64::MAX - 1]);
        match liar.rng.below(4) {
            0 => lie.instance = self.latest,
            1 => lie.digests.clear(),
            2 => lie.anchor.position = lie.anchor.position.saturating_add(far),
            _ => lie.digests.push(Digest::of(Domain::Trace, &far.to_le_bytes())),
        }
        let own = Claimed::from(liar.keyring.sign(lie.clone()));
        let mut reports: Vec<Claimed<Signed<AbortReport>>> = Vec::new();
        for signer in liar.cluster.replicas.iter().take(liar.cluster.replicas.strong()) {
            let known = self.heard.iter().rev().find(|signed| signed.signer() == signer).filter(|_| liar.rng.coin());
            reports.push(match known {
                _ if signer == liar.me => own.clone(),
                Some(signed) => signed.clone(),
                // In another's name, with the liar's signature.
                None => Claimed::signed(lie.clone(), signer, own.signature()),
            });
        }
        if liar.rng.per_mille(300) {
            reports.truncate(liar.cluster.replicas.weak());
        }
        Some(ClaimedProof { reports })
    }
}

impl Behaviour for BogusProof {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        self.latest = self.latest.max(message.instance().unwrap_or_default());
        if let Message::Ordering(Ordering { instance, message: PbftMessage::PrePrepare(proposal) }) = message
            && liar.rng.per_mille(200)
            && let Some(proof) = self.proof(liar)
        {
            let mut entries = proposal.batch.entries().to_vec();
            entries.insert(0, Entry::Inline(Request::init(*instance, liar.me, &proof)));
            let batch = Arc::new(Batch::new(proposal.batch.proposal().clone(), entries));
            let PrePrepare { view, sequence, .. } = *proposal;
            return liar.order(to, *instance, PbftMessage::PrePrepare(PrePrepare { view, sequence, batch }));
        }
        liar.say(to, message);
    }

    fn receive(&mut self, _liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        if let Message::Switch(Switch { message: SwitchMessage::Abort(signed), .. }) = &*incoming.message {
            if self.heard.len() == MEMORY_MAX {
                self.heard.remove(0);
            }
            self.heard.push((**signed).clone());
        }
        true
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        for to in liar.others() {
            let Some(proof) = self.proof(liar) else { continue };
            let ahead = liar.rng.below(3);
            let instance = if liar.rng.coin() { InstanceId(proof.instance().0.saturating_add(1)) } else { self.latest };
            let instance = InstanceId(instance.0.saturating_add(ahead).max(1));
            let message = if liar.rng.coin() {
                Message::Switch(Switch { instance, message: SwitchMessage::Init(Arc::new(proof)) })
            } else {
                Message::Request(Request::init(instance, liar.me, &proof))
            };
            liar.say(to, &message);
        }
    }
}
