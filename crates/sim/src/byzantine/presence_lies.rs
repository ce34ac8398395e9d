//! Lies about who is there: a replica that is there for some of the others and comes and goes for them, that calls
//! anybody silent, and that hears all whoever is missing, and wants a Backup to end for it.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::ids::{InstanceId, Principal};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::switching::{AbortReport, Returned, Switch, SwitchMessage};
use bezant_core::time::Instant;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct PresenceLies {
    /// Bit per replica: for whom it is there.
    there: u64,
    /// Ticks at which that changes, per mille.
    fickle: u64,
    /// Ticks at which it has returned, per mille.
    eager: u64,
    instance: InstanceId,
}

impl PresenceLies {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let fickle = *rng.pick(&[0, 100, 500]);
        Self { there: rng.next(), fickle, eager: rng.between(0, 1_000), instance: InstanceId(1) }
    }
}

impl Behaviour for PresenceLies {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        self.instance = self.instance.max(message.instance().unwrap_or_default());
        match (message, to) {
            (Message::Switch(Switch { message: SwitchMessage::Present(()), .. }), Principal::Replica(to))
                if self.there >> to.0 & 1 == 0 => {}
            (Message::Switch(Switch { instance, message: SwitchMessage::Abort(signed) }), _) => {
                let some = liar.rng.next();
                let silent = liar.cluster.replicas.iter().filter(|id| some >> id.0 & 1 == 1).collect();
                let lie = AbortReport { silent, ..signed.claims().clone() };
                let message = SwitchMessage::Abort(Arc::new(liar.keyring.sign(lie).into()));
                liar.say(to, &Message::Switch(Switch { instance: *instance, message }));
            }
            _ => liar.say(to, message),
        }
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        if liar.rng.per_mille(self.fickle) {
            self.there = liar.rng.next();
        }
        if !liar.rng.per_mille(self.eager) {
            return;
        }
        let instance = InstanceId(self.instance.0 + *liar.rng.pick(&[0, 0, 0, 1, 1 << 40]));
        let returned = liar.keyring.sign(Returned { instance });
        for to in liar.others() {
            let message = SwitchMessage::Returned(Box::new(returned.claim()));
            liar.say(to, &Message::Switch(Switch { instance, message }));
            let (me, at) = (liar.me, Instant(liar.rng.next()));
            let end = Request::end_of_stay(instance, me, at, vec![returned.clone()]);
            liar.say(to, &Message::Request(end));
        }
    }
}
