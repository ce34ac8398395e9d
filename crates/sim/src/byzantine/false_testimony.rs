//! What a replica says that it executed, and did not: other effects for each that listens, from any request on, for
//! blocks that do not exist; and rulings that follow from that.

use super::{Behaviour, Liar};
use bezant_core::auth::{Claimed, Signed};
use bezant_core::digest::{Digest, Domain};
use bezant_core::dissent::{List, Ruling, Testimony};
use bezant_core::ids::Principal;
use bezant_core::message::Request;
use bezant_core::registry::{Incoming, Message};
use std::collections::BTreeMap;

/// Testimonies of others that it remembers.
const MEMORY_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct FalseTestimony {
    heard: BTreeMap<(u8, bool), Claimed<Signed<Testimony>>>,
}

/// The same with other effects from some request on, or fewer, or more.
fn falsified(liar: &mut Liar<'_>, testimony: &Testimony) -> Testimony {
    let mut lie = testimony.clone();
    let length = lie.effects.len() as u64;
    let from = liar.rng.below(length + 1) as usize;
    match liar.rng.below(6) {
        0 => lie.effects.truncate(from),
        1 => lie.effects.push(Digest::ZERO),
        2 => lie.scope.block = lie.scope.block.map(|block| block + 1),
        3 => lie.scope.position += 1,
        _ => {
            // The same lie from every liar now and then: only then can it reach a threshold.
            let salt = if liar.rng.coin() { 0 } else { liar.rng.below(100) as u8 };
            for effects in lie.effects.iter_mut().skip(from) {
                *effects = Digest::of_parts(Domain::Trace, &[&effects.0, &[salt]]);
            }
        }
    }
    lie
}

impl FalseTestimony {
    /// A ruling out of whatever was said, true or not.
    fn rule(&self, liar: &mut Liar<'_>) {
        let mut list: Vec<Claimed<Signed<Testimony>>> =
            self.heard.values().filter(|_| liar.rng.coin()).cloned().collect();
        let Some(first) = list.first().map(|signed| signed.claims().clone()) else { return };
        let own = falsified(liar, &first);
        list.push(liar.keyring.sign(own).into());
        list.sort_by_key(Claimed::signer);
        list.dedup_by_key(|signed| signed.signer());
        let ruling = if liar.rng.coin() { Ruling::Disputed(List(list)) } else { Ruling::Unsettled(List(list)) };
        let instance = first.scope.base.instance;
        let request = Request::ruling(instance, liar.me, first.scope.ruled, &ruling);
        for to in liar.others() {
            liar.say(to, &Message::Request(request.clone()));
        }
    }
}

impl Behaviour for FalseTestimony {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let Message::Testimony(signed) = message else { return liar.say(to, message) };
        let lie = falsified(liar, signed.claims());
        let signed = liar.keyring.sign(lie);
        liar.say(to, &Message::Testimony(Box::new(signed.into())));
    }

    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        let Message::Testimony(signed) = &*incoming.message else { return true };
        if self.heard.len() < MEMORY_MAX {
            self.heard.insert((signed.signer().0, signed.claims().scope.block.is_some()), (**signed).clone());
        }
        for to in liar.others() {
            let lie = falsified(liar, signed.claims());
            let lie = liar.keyring.sign(lie);
            liar.say(to, &Message::Testimony(Box::new(lie.into())));
        }
        self.rule(liar);
        true
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        let Some(known) = self.heard.values().next().cloned() else { return };
        for to in liar.others() {
            let lie = falsified(liar, known.claims());
            let lie = liar.keyring.sign(lie);
            liar.say(to, &Message::Testimony(Box::new(lie.into())));
        }
        self.rule(liar);
    }
}
