//! A replica that says that it has stopped when nobody has asked it to, because of low load (abs-K23), in every
//! instance and again and again; or that never says it has. It also tells clients of instances that are not there yet.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::ids::{InstanceId, Principal};
use bezant_core::registry::Message;
use bezant_core::switching::{AbortReport, Switch, SwitchMessage};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct LowLoadForgery {
    /// Never says that it has stopped.
    stubborn: bool,
    /// Says so without reason, per mille of the ticks.
    often: u64,
    latest: InstanceId,
    /// The last report that its honest machine made.
    report: Option<AbortReport>,
}

impl LowLoadForgery {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { stubborn: rng.per_mille(200), often: rng.between(50, 1_000), latest: InstanceId(0), report: None }
    }
}

impl Behaviour for LowLoadForgery {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        self.latest = self.latest.max(message.instance().unwrap_or_default());
        if let Message::Switch(Switch { instance, message: SwitchMessage::Abort(signed) }) = message {
            self.report = Some(signed.claims().clone());
            if !self.stubborn {
                let signed =
                    Arc::new(liar.keyring.sign(AbortReport { low_load: true, ..signed.claims().clone() }).into());
                let message = SwitchMessage::Abort(signed);
                liar.say(to, &Message::Switch(Switch { instance: *instance, message }));
            }
            return;
        }
        if let Principal::Client(client) = to
            && liar.rng.per_mille(self.often)
        {
            let instance = InstanceId(self.latest.0 + liar.rng.between(1, 9));
            liar.say(to, &Message::Switch(Switch { instance, message: SwitchMessage::Active(client) }));
        }
        liar.say(to, message);
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        let Some(last) = self.report.clone().filter(|_| !self.stubborn) else { return };
        if !liar.rng.per_mille(self.often) {
            return;
        }
        let instance = self.latest;
        let signed = Arc::new(liar.keyring.sign(AbortReport { instance, low_load: true, ..last }).claim());
        for to in liar.others() {
            let message = SwitchMessage::Abort(signed.clone());
            liar.say(to, &Message::Switch(Switch { instance, message }));
        }
    }
}
