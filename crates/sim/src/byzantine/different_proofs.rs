//! Different proofs of how an instance ended, each valid: made of the reports that it heard, of different ones for
//! different replicas, and of another report of its own in each. They arrive before anybody else's proof is complete,
//! so that correct replicas begin the next instance from different histories and checkpoints.

use super::abort_equivocation::twist;
use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::auth::{Claimed, Signed};
use bezant_core::ids::{InstanceId, Principal, ReplicaId};
use bezant_core::registry::{Incoming, Message};
use bezant_core::switching::{AbortReport, CheckedReport, Proof, Switch, SwitchMessage};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct DifferentProofs {
    heard: BTreeMap<ReplicaId, Claimed<Signed<AbortReport>>>,
    stopped: InstanceId,
    /// Reports of its own that are neither its own nor another's, per mille.
    twisted: u64,
    /// Bodies that it withholds, per mille.
    withheld: u64,
}

impl DifferentProofs {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let (twisted, withheld) = (*rng.pick(&[0, 200, 700]), *rng.pick(&[0, 500, 1_000]));
        Self { heard: BTreeMap::new(), stopped: InstanceId(0), twisted, withheld }
    }

    /// What it says that it had: what another had, or what nobody had.
    fn own(&self, liar: &mut Liar<'_>) -> Option<Claimed<Signed<AbortReport>>> {
        let reports: Vec<_> = self.heard.values().collect();
        let model = reports.get(liar.rng.below(reports.len() as u64) as usize)?.claims();
        let bound = liar.cluster.history_bound();
        let value = if liar.rng.per_mille(self.twisted) { twist(liar.rng, model, bound) } else { model.clone() };
        Some(liar.keyring.sign(value).into())
    }

    fn prove(&self, liar: &mut Liar<'_>, to: Principal) {
        let next = InstanceId(self.stopped.0 + 1);
        let what = liar.cluster.specification(self.stopped);
        let mut reports: Vec<Claimed<Signed<AbortReport>>> =
            self.heard.values().filter(|report| report.signer() != liar.me).cloned().collect();
        liar.rng.shuffle(&mut reports);
        reports.truncate(liar.cluster.replicas.strong() - 1);
        reports.extend(self.own(liar));
        reports.sort_by_key(Claimed::signer);
        let reports: Vec<_> = reports.iter().map(CheckedReport::believed).collect();
        let Some(proof) = Proof::assemble(&what, reports.iter()) else { return };
        let message = SwitchMessage::Init(proof.claim());
        liar.say(to, &Message::Switch(Switch { instance: next, message }));
    }
}

impl Behaviour for DifferentProofs {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        match message {
            Message::Switch(Switch { message: SwitchMessage::Bodies(_), .. }) if liar.rng.per_mille(self.withheld) => {}
            Message::Switch(Switch { instance, message: SwitchMessage::Abort(_) }) if *instance == self.stopped => {
                let Some(own) = self.own(liar) else { return liar.say(to, message) };
                let message = SwitchMessage::Abort(Arc::new(own));
                liar.say(to, &Message::Switch(Switch { instance: *instance, message }));
            }
            message => liar.say(to, message),
        }
    }

    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        if let Message::Switch(Switch { message: SwitchMessage::Abort(signed), .. }) = &*incoming.message
            && signed.claims().instance >= self.stopped
        {
            if signed.claims().instance > self.stopped {
                self.stopped = signed.claims().instance;
                self.heard.clear();
            }
            let is_news = self.heard.insert(signed.signer(), (**signed).clone()).is_none();
            if is_news && self.heard.len() + 1 >= liar.cluster.replicas.strong() {
                for to in liar.others() {
                    self.prove(liar, to);
                }
            }
        }
        true
    }
}
