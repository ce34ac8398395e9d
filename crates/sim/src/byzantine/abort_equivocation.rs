//! Abort reports that differ from receiver to receiver (abs-K6), claim positions and lengths that nobody had (abs-K20),
//! or copy what somebody else reported, so that one group of replicas can prove one history and another group another.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::digest::{Digest, Domain};
use bezant_core::history::Boundary;
use bezant_core::ids::{InstanceId, Principal};
use bezant_core::registry::{Incoming, Message};
use bezant_core::switching::{AbortReport, Certificates, Switch, SwitchMessage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reports of others that it remembers.
const MEMORY_MAX: usize = 16;

/// Reports of one instance that it answers. Three liars would otherwise answer one another for ever.
const ANSWERS_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct AbortEquivocation {
    heard: Vec<AbortReport>,
    answered: BTreeMap<InstanceId, usize>,
    /// It only copies what others said, per mille of its lies.
    copies: u64,
}

/// Another report than the one that is true. A wrong root depends on the true one alone, so that liars agree on it.
pub(super) fn twist(rng: &mut Rng, report: &AbortReport, bound: u64) -> AbortReport {
    let mut lie = report.clone();
    if !lie.certificates.is_empty() && rng.coin() {
        return uncertify(rng, lie);
    }
    let invented = |number: u64| Digest::of(Domain::Trace, &number.to_le_bytes());
    match rng.below(10) {
        0 => lie.digests.clear(),
        1 => lie.digests.truncate(rng.below(lie.digests.len() as u64 + 1) as usize),
        2 => lie.digests.push(invented(rng.below(4))),
        3 => lie.digests.reverse(),
        4 => lie.digests.extend((0..rng.between(1, 3 * bound)).map(invented)),
        5 => {
            let far = *rng.pick(&[1, 2, bound, 1 << 20, 1 << 40, u64::MAX - 3, u64::MAX]);
            lie.anchor.position = lie.anchor.position.saturating_add(far);
        }
        6 => lie.anchor.root = Digest::of(Domain::Trace, &lie.anchor.root.0),
        7 => lie.boundaries.clear(),
        8 => {
            // The whole log as certain: one end, and nothing that leads to it.
            let history = lie.digests.iter().fold(lie.anchor.history, |history, digest| history.chain(*digest));
            let position = lie.anchor.position + lie.digests.len() as u64;
            lie.anchor = Boundary { position, history, root: Digest::of(Domain::Trace, &history.0) };
            (lie.digests, lie.boundaries) = (Vec::new(), Vec::new());
        }
        _ => {
            // An end that is true, with a state that is not.
            let root = invented(7);
            lie.boundaries.iter_mut().for_each(|boundary| boundary.root = root);
        }
    }
    lie
}

/// A report with its certificates withheld, spoilt, or beside another list than theirs.
fn uncertify(rng: &mut Rng, mut lie: AbortReport) -> AbortReport {
    let length = lie.digests.len();
    match rng.below(7) {
        0 => lie.certificates = Certificates::default(),
        1 => lie.certificates.prepared = None,
        2 => lie.certificates.stable = None,
        3 => {
            // As if nothing had been ordered, or only a little.
            lie.certificates = Certificates::default();
            lie.digests.truncate(rng.below(length as u64 + 1) as usize);
        }
        4 => {
            // A true end, and nothing that leads to it.
            let skipped = rng.below(length as u64 + 1) as usize;
            let history =
                lie.digests[..skipped].iter().fold(lie.anchor.history, |history, digest| history.chain(*digest));
            let position = lie.anchor.position + skipped as u64;
            lie.anchor = Boundary { position, history, root: Digest::of(Domain::Trace, &history.0) };
            lie.digests.drain(..skipped);
            lie.certificates.stable = None;
        }
        5 => {
            // Too few have signed, and one of them twice.
            if let Some(prepared) = &mut lie.certificates.prepared {
                prepared.signatures_mut().pop();
                let again = prepared.signatures().last().copied();
                prepared.signatures_mut().extend(again);
            }
        }
        _ => {
            // Signatures of something else.
            lie.digests.push(Digest::of(Domain::Trace, b"never"));
            let history = lie.digests.iter().fold(lie.anchor.history, |history, digest| history.chain(*digest));
            if let Some(prepared) = &mut lie.certificates.prepared {
                prepared.claims_mut().position += 1;
                prepared.claims_mut().history = history;
            }
        }
    }
    lie
}

impl AbortEquivocation {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { heard: Vec::new(), answered: BTreeMap::new(), copies: rng.below(1_001) }
    }

    fn report(&self, rng: &mut Rng, own: &AbortReport, bound: u64) -> AbortReport {
        let mut of_instance = self.heard.iter().filter(|report| report.instance == own.instance);
        let count = of_instance.clone().count() as u64;
        if count > 0 && rng.per_mille(self.copies) {
            return of_instance.nth(rng.below(count) as usize).cloned().unwrap_or_else(|| own.clone());
        }
        twist(rng, own, bound)
    }

    fn say(&self, liar: &mut Liar<'_>, to: Principal, own: &AbortReport) {
        let lie = self.report(liar.rng, own, liar.cluster.history_bound());
        let (instance, signed) = (lie.instance, Arc::new(liar.keyring.sign(lie).into()));
        liar.say(to, &Message::Switch(Switch { instance, message: SwitchMessage::Abort(signed) }));
    }
}

impl Behaviour for AbortEquivocation {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        match message {
            Message::Switch(Switch { message: SwitchMessage::Abort(signed), .. }) => {
                self.say(liar, to, signed.claims());
            }
            _ => liar.say(to, message),
        }
    }

    /// Who has said what decides which lie is of use: it speaks as soon as it hears the first report.
    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        if let Message::Switch(Switch { message: SwitchMessage::Abort(signed), .. }) = &*incoming.message {
            if self.heard.len() == MEMORY_MAX {
                self.heard.remove(0);
            }
            self.heard.push(signed.claims().clone());
            let answered = self.answered.entry(signed.claims().instance).or_default();
            *answered += 1;
            if *answered > ANSWERS_MAX {
                return true;
            }
            for to in liar.others() {
                if liar.rng.coin() {
                    self.say(liar, to, signed.claims());
                }
            }
        }
        true
    }
}
