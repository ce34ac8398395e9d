//! A primary that proposes references: to what nobody has, to one request at several positions of the window, to more
//! bytes than a batch may have, and in a Backup before the INIT; and a client that gives requests to it only, so that
//! it has something to refer to. It serves what it refers to, and what others propose, late or never, with proofs that
//! it has spoilt, or as if it were of another instance.

use super::forge::reproved;
use super::{Behaviour, ClientBehaviour, Liar};
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::batch::{Batch, Entry, Reference};
use bezant_core::cluster::Cluster;
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{ClientId, InstanceId, Principal, ReplicaId, Sequence, Timestamp, View};
use bezant_core::message::Request;
use bezant_core::protocols::pbft::{Ordering, PbftMessage, PrePrepare};
use bezant_core::registry::{Incoming, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Requests and batches that it remembers.
const MEMORY_MAX: usize = 256;
/// Instances after the present one for which its client asks.
const AHEAD: u64 = 3;

/// The lying replica's part.
#[derive(Debug)]
pub(super) struct References {
    /// Proposals with which it lies, per mille.
    often: u64,
    /// Which lies it knows, as bits.
    kinds: u64,
    /// Positions after that of an honest proposal to which it goes on.
    reach: u64,
    /// Bit per replica: who hears its lies.
    audience: u64,
    /// Answers in which proofs or the instance are changed, and answers that it does not give, per mille.
    spoilt: u64,
    silent: u64,
    /// Big requests and batches.
    requests: Vec<Request>,
    batches: BTreeMap<Digest, Arc<Batch>>,
    /// What it proposes in place of an honest proposal.
    told: BTreeMap<(InstanceId, View, Sequence), Vec<PrePrepare>>,
}

impl References {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self {
            often: *rng.pick(&[200, 1_000]),
            kinds: rng.between(1, 7),
            reach: *rng.pick(&[0, 3, u64::MAX, u64::MAX]),
            audience: if rng.coin() { u64::MAX } else { rng.next() },
            spoilt: *rng.pick(&[0, 300, 1_000]),
            silent: *rng.pick(&[0, 0, 300]),
            requests: Vec::new(),
            batches: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    /// The requests of an instance.
    fn of_instance(&self, instance: InstanceId) -> Vec<&Request> {
        self.requests.iter().filter(|request| request.instance == instance).collect()
    }

    /// The entries of batches for so many positions.
    fn entries(&self, liar: &mut Liar<'_>, instance: InstanceId, positions: u64) -> Vec<Vec<Entry>> {
        let known = self.of_instance(instance);
        let refer = |request: &&Request| Entry::Reference(Reference::to(request));
        let one = known.get(liar.rng.below(known.len().max(1) as u64) as usize).map(refer);
        let kinds: Vec<u64> = (0..3).filter(|kind| self.kinds >> kind & 1 == 1).collect();
        let kind = *liar.rng.pick(&kinds);
        let limits = &liar.cluster.limits;
        let mut next = 0;
        let mut entries = Vec::new();
        for _ in 0..positions {
            entries.push(match (kind, &one) {
                (0, Some(one)) => vec![one.clone()],
                (1, Some(_)) => {
                    // The next ones, each of another client.
                    let mut clients = BTreeSet::new();
                    let from = next;
                    let fitting = known.iter().cycle().skip(from).take(known.len()).take_while(|request| {
                        clients.insert(request.client) && clients.len() <= limits.batch_requests_max
                    });
                    let batch: Vec<Entry> = fitting.map(refer).collect();
                    next += batch.len();
                    batch
                }
                _ => {
                    let digest = Digest::of(Domain::Trace, &liar.rng.next().to_le_bytes());
                    vec![Entry::Reference(Reference { digest, length: limits.operation_bytes_max as u32 })]
                }
            });
        }
        entries
    }

    /// What is said in place of a proposal; nothing, if it is honest.
    fn lies(&self, liar: &mut Liar<'_>, instance: InstanceId, honest: &PrePrepare) -> Vec<PrePrepare> {
        if !liar.rng.per_mille(self.often) {
            return Vec::new();
        }
        let positions = 1 + self.reach.min(liar.cluster.window() - 1);
        let places = (0..positions).map(|ahead| Sequence(honest.sequence.0 + ahead));
        let batches = self.entries(liar, instance, positions).into_iter();
        let batches = batches.map(|entries| Arc::new(Batch::new(honest.batch.proposal().clone(), entries)));
        places.zip(batches).map(|(sequence, batch)| PrePrepare { view: honest.view, sequence, batch }).collect()
    }

    fn remember(&mut self, batch: &Arc<Batch>) {
        if self.batches.len() < MEMORY_MAX {
            self.batches.insert(batch.digest(), batch.clone());
        }
    }

    /// A batch with the same digest and other proofs, or of another instance.
    fn reproved(rng: &mut Rng, batch: &Batch) -> Batch {
        let change = |entry: &Entry| match entry {
            Entry::Inline(request) => Entry::Inline(reproved(rng, request.clone())),
            Entry::Reference(reference) => Entry::Reference(*reference),
        };
        let entries = batch.entries().iter().map(change).collect();
        Batch::new(batch.proposal().clone(), entries)
    }

    /// Its answer to somebody who lacks something.
    fn answer(&self, liar: &mut Liar<'_>, instance: InstanceId, question: &PbftMessage) -> Option<PbftMessage> {
        let spoils = liar.rng.per_mille(self.spoilt);
        match question {
            PbftMessage::FetchRequest(digest) => {
                let fits = |request: &&Request| request.digest() == *digest && request.instance == instance;
                let request = self.requests.iter().find(fits)?.clone();
                Some(PbftMessage::Body(Box::new(if spoils { reproved(liar.rng, request) } else { request })))
            }
            PbftMessage::FetchBatch(position) => {
                let batch = self.batches.get(&position.digest)?;
                Some(PbftMessage::Batch(if spoils { Arc::new(Self::reproved(liar.rng, batch)) } else { batch.clone() }))
            }
            _ => None,
        }
    }
}

impl Behaviour for References {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let (Principal::Replica(id), Message::Ordering(Ordering { instance, message: said })) = (to, message) else {
            return liar.say(to, message);
        };
        let PbftMessage::PrePrepare(proposal) = said else { return liar.say(to, message) };
        self.remember(&proposal.batch);
        let place = (*instance, proposal.view, proposal.sequence);
        if !self.told.contains_key(&place) {
            let lies = self.lies(liar, *instance, proposal);
            lies.iter().for_each(|lie| self.remember(&lie.batch));
            self.told.insert(place, lies);
        }
        let lies = &self.told[&place];
        if lies.is_empty() || self.audience >> id.0 & 1 == 0 {
            return liar.say(to, message);
        }
        for lie in lies {
            liar.order(to, *instance, PbftMessage::PrePrepare(lie.clone()));
        }
    }

    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        match &*incoming.message {
            Message::Request(request) => {
                let is_big = request.operation.len() > liar.cluster.limits.inline_bytes_max && !request.read_only;
                if is_big && self.requests.len() < MEMORY_MAX {
                    self.requests.push(request.clone());
                }
            }
            Message::Ordering(Ordering { message: PbftMessage::PrePrepare(proposal), .. }) => {
                self.remember(&proposal.batch);
            }
            Message::Ordering(Ordering {
                instance,
                message: message @ (PbftMessage::FetchRequest(_) | PbftMessage::FetchBatch(_)),
            }) => {
                if liar.rng.per_mille(self.silent) {
                    return false;
                }
                if let Some(message) = self.answer(liar, *instance, message) {
                    let delay = *liar.rng.pick(&[0, 0, 5_000]);
                    liar.say_later(delay, incoming.from, &Message::Ordering(Ordering { instance: *instance, message }));
                    return false;
                }
            }
            _ => {}
        }
        true
    }
}

/// The lying client's part: big requests for the liars only, of this instance and of those after it.
#[derive(Debug)]
pub(super) struct ForReferences {
    liars: BTreeSet<ReplicaId>,
    burst: u32,
    next: u32,
}

impl ForReferences {
    pub(super) fn new(rng: &mut Rng, liars: &BTreeSet<ReplicaId>) -> Self {
        Self { liars: liars.clone(), burst: *rng.pick(&[2, 8, 48, 96]), next: 0 }
    }
}

impl ClientBehaviour for ForReferences {
    fn also(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        keyring: &Keyring,
        request: &Request,
    ) -> Vec<(ReplicaId, Message)> {
        let limits = &cluster.limits;
        let ahead = if cluster.protocol.hands_on() { AHEAD } else { 0 };
        let mut said = Vec::new();
        for _ in 0..self.burst {
            self.next += 1;
            let client = ClientId { session: self.next % 8, ..request.client };
            let instance = InstanceId(request.instance.0 + rng.below(1 + ahead));
            let mut operation = request.operation.to_vec();
            operation.resize(limits.operation_bytes_max, 0);
            let timestamp = Timestamp(request.timestamp.0 + u64::from(self.next));
            let big = Request::new(instance, client, timestamp, false, operation.into());
            let big = big.authenticate(cluster, keyring);
            said.extend(self.liars.iter().map(|to| (*to, Message::Request(big.clone()))));
        }
        self.burst = self.burst.min(2);
        said
    }
}
