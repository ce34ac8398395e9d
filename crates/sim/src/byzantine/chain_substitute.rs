//! A replica in the middle of a chain that forwards something else than it got, with its own MACs to match (abs-K5,
//! abs-S1).
//!
//! It also prepares for that: it gives the replicas after it another proof of how the last instance ended, made of the
//! same honest reports and another lie of its own, so that they begin with a history that its predecessors do not
//! have.

use super::split_order::forged;
use super::{Behaviour, Liar, ring_forger};
use crate::rng::Rng;
use bezant_core::auth::{Claimed, Signed};
use bezant_core::digest::{Digest, Domain};
use bezant_core::history::LogEntry;
use bezant_core::ids::{InstanceId, Principal, ReplicaId};
use bezant_core::protocols::chain::{ChainMessage, Topology};
use bezant_core::protocols::ring_fast::{Body, RingMessage};
use bezant_core::registry::{Incoming, Message};
use bezant_core::schedule::Part;
use bezant_core::switching::{AbortReport, CheckedReport, Proof, Switch, SwitchMessage};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct ChainSubstitute {
    /// What others reported of the last instance that stopped.
    heard: BTreeMap<ReplicaId, Claimed<Signed<AbortReport>>>,
    stopped: InstanceId,
    /// The history that the places after it were made to begin the instance with, and have by now.
    fed: Option<(InstanceId, Digest)>,
    /// What it passed on last: instance, next position, history.
    passed: (InstanceId, u64, Digest),
    /// Other lies, per mille.
    often: u64,
}

/// The history with a batch.
fn with_batch(history: Digest, message: &ChainMessage) -> Digest {
    let entries = message.requests.iter().map(|request| LogEntry::new(message.proposal.clone(), request.clone()));
    entries.fold(history, |history, entry| history.chain(entry.digest()))
}

/// This replica's own MACs, made anew for what the message says now. `None` where it is no place of a chain.
pub(super) fn authenticate(liar: &Liar<'_>, message: &mut ChainMessage) -> Option<()> {
    let topology = Topology::new(liar.cluster.replicas, liar.cluster.specification(message.instance).head);
    let place = topology.place(liar.me);
    let statement = message.statement(&topology, place);
    for (index, (maker, receiver)) in topology.carried(place).enumerate() {
        if maker == place {
            *message.tags.get_mut(index)? = liar.keyring.tag(Principal::Replica(topology.at(receiver)), &statement);
        }
    }
    Some(())
}

impl ChainSubstitute {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let often = *rng.pick(&[0, 100, 400]);
        Self { heard: BTreeMap::new(), stopped: InstanceId(0), fed: None, passed: Default::default(), often }
    }

    /// Proves, to those after it, what one of the others reported.
    fn feed(&mut self, liar: &mut Liar<'_>) {
        let next = InstanceId(self.stopped.0 + 1);
        let what = liar.cluster.specification(next);
        if !matches!(what.part, Part::Chain | Part::RingFast) {
            return;
        }
        let mut copied: Vec<_> = self.heard.values().map(|signed| signed.claims().clone()).collect();
        copied.sort_by_key(|report| report.digests.len());
        let Some(lie) = copied.get(liar.rng.below(copied.len() as u64) as usize) else { return };
        let own = liar.keyring.sign(lie.clone()).into();
        let reports: Vec<_> = self.heard.values().chain([&own]).map(CheckedReport::believed).collect();
        let ended = liar.cluster.specification(self.stopped);
        let Some(proof) = Proof::assemble(&ended, reports.iter()) else { return };
        let Some(history) = proof.abort_history(&ended) else { return };
        self.fed = Some((next, history.history()));
        let topology = Topology::new(liar.cluster.replicas, what.head);
        let place = topology.place(liar.me);
        let message = SwitchMessage::Init(proof.claim());
        let message = Message::Switch(Switch { instance: next, message });
        for after in place + 1..=topology.tail() {
            liar.say(Principal::Replica(topology.at(after)), &message);
        }
    }

    /// As if the batch followed the history that those after it have, where a ring is concerned.
    fn go_round(&mut self, liar: &mut Liar<'_>, to: Principal, ring: &RingMessage) {
        let mut lie = ring.clone();
        if let (Some((_, history)), Body::Requests(requests), Some(stamp)) = (&mut self.fed, &lie.body, &mut lie.stamp)
        {
            let entries = requests.iter().map(|request| LogEntry::new(stamp.proposal.clone(), request.clone()));
            *history = entries.fold(*history, |history, entry| history.chain(entry.digest()));
            stamp.history = *history;
        }
        if let Some((path, position)) = ring_forger::place(liar, &lie, to) {
            ring_forger::authenticate(liar, &path, position, &mut lie, true);
        }
        liar.say(to, &Message::Ring(lie));
    }

    fn forward(&mut self, liar: &mut Liar<'_>, chain: &ChainMessage) -> ChainMessage {
        let mut lie = chain.clone();
        if let Some((instance, history)) = &mut self.fed
            && *instance == lie.instance
        {
            *history = with_batch(*history, &lie);
            lie.history = *history;
        } else if liar.rng.per_mille(self.often) {
            match liar.rng.below(6) {
                0 => lie.history = Digest::of(Domain::Trace, &lie.history.0),
                1 => lie.results = Digest::of(Domain::Trace, &lie.results.0),
                2 => lie.first += 1,
                3 => lie.requests.reverse(),
                4 if self.passed.0 == lie.instance && self.passed.1 == lie.first => {
                    // Requests of its own invention, and a history that fits.
                    lie.requests = lie.requests.iter().map(forged).collect();
                    lie.history = with_batch(self.passed.2, &lie);
                }
                _ => lie.proposal.seed = Digest::of(Domain::Trace, &lie.proposal.seed.0),
            }
        }
        // Only a chain's own places forward.
        let _ = authenticate(liar, &mut lie);
        lie
    }
}

impl Behaviour for ChainSubstitute {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        if let Message::Ring(ring) = message
            && self.fed.is_some_and(|(instance, _)| instance == ring.instance)
        {
            return self.go_round(liar, to, ring);
        }
        if let Message::Chain(chain) = message {
            let lie = self.forward(liar, chain);
            self.passed = (lie.instance, lie.first + lie.requests.len() as u64, lie.history);
            return liar.say(to, &Message::Chain(lie));
        }
        liar.say(to, message);
    }

    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        if let Message::Switch(Switch { message: SwitchMessage::Abort(signed), .. }) = &*incoming.message
            && signed.claims().instance >= self.stopped
        {
            if signed.claims().instance > self.stopped {
                self.stopped = signed.claims().instance;
                self.heard.clear();
            }
            self.heard.insert(signed.signer(), (**signed).clone());
            // As soon as it is possible: the honest proof must come second.
            if self.heard.len() + 1 == liar.cluster.replicas.strong() {
                self.feed(liar);
            }
        }
        true
    }
}
