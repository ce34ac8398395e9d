//! Validity and exactly once: what is executed was asked for by a client before, and executed no more than once in its
//! history.
//!
//! The check keeps every history that a correct replica had, as a tree: each digest with the one before it and the
//! request between them. Within an instance that orders batches it keeps a client table of its own and walks through
//! the batches, and so knows what every history must be. It does not know who has joined: of the requests of clients
//! that nobody has named, those were executed that make the history what the first replica says it is, and then these
//! must make sense ([`super::sessions`]).
//!
//! Whose a request is, and which, is what its client made. What a batch says beside a digest is not looked at: whoever
//! proposes may write there what it likes.

use super::sessions::{Sessions, Stranger, TooSoon};
use super::table::Table;
use super::{Check, Event};
use bezant_core::auth::Signature;
use bezant_core::batch::{Batch, Entry};
use bezant_core::cluster::Cluster;
use bezant_core::digest::Digest;
use bezant_core::ids::{ClientId, InstanceId, Sequence, Timestamp};
use bezant_core::joining::CookieMessage;
use bezant_core::message::{Firmness, Outcome, Refusal};
use bezant_core::notice::Notice;
use bezant_core::registry::Message;
use std::collections::{BTreeMap, BTreeSet};

/// An instance that orders batches.
#[derive(Debug, Default)]
struct Ordered {
    table: Table,
    /// The history after each batch, from 0: the init history.
    histories: Vec<Digest>,
    sessions: Sessions,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Validity {
    /// Whether an instance that orders batches may end in the middle of one.
    may_end: bool,
    /// Sessions of an identity that the client table holds.
    sessions_max: usize,
    issued: BTreeMap<Digest, (ClientId, Timestamp)>,
    /// The digests of the requests in each batch that was ever seen.
    batches: BTreeMap<Digest, Vec<Digest>>,
    /// Histories: the one before, and the request.
    tree: BTreeMap<Digest, (Digest, ClientId, Timestamp)>,
    instances: BTreeMap<InstanceId, Ordered>,
    strangers: BTreeMap<Digest, Stranger>,
    /// Cookies that correct replicas gave.
    given: BTreeSet<Signature>,
    too_soon: TooSoon,
}

impl Validity {
    /// Of a cluster.
    pub fn new(cluster: &Cluster) -> Self {
        let (may_end, sessions_max) = (cluster.protocol.hands_on(), cluster.limits.sessions_per_identity_max);
        Self { may_end, sessions_max, ..Self::default() }
    }

    fn issued(&self, request: Digest) -> Result<(ClientId, Timestamp), String> {
        self.issued
            .get(&request)
            .copied()
            .ok_or_else(|| format!("request {request:?} was executed that no client made"))
    }

    /// The last request of a client in a history.
    fn last(&self, mut history: Digest, client: ClientId) -> Option<Timestamp> {
        while let Some((before, other, timestamp)) = self.tree.get(&history) {
            if *other == client {
                return Some(*timestamp);
            }
            history = *before;
        }
        None
    }

    /// The client table after a history. What is logged and is stale when it is executed has a place in the history,
    /// and no effect.
    fn table(&self, mut history: Digest) -> Table {
        let mut executed = Vec::new();
        while let Some((before, client, timestamp)) = self.tree.get(&history) {
            executed.push((*client, *timestamp));
            history = *before;
        }
        let mut table = Table::new(self.sessions_max);
        for (client, timestamp) in executed.into_iter().rev() {
            if table.is_new(client, timestamp) {
                table.record(client, timestamp);
            }
        }
        table
    }

    /// Whether the history has this request, or a later one of its session, and the client table knows so. Once the
    /// session is evicted nobody does who has logged as much and executed less: the request may then be logged again,
    /// and is refused when it is executed ([`Self::table`]).
    fn repeats(&self, before: Digest, client: ClientId, timestamp: Timestamp) -> bool {
        self.last(before, client).is_some_and(|last| last >= timestamp)
            && self.table(before).last(client).is_some_and(|last| last >= timestamp)
    }

    /// A replica that speculates has executed one request more.
    fn logged(&mut self, request: Digest, before: Digest, history: Digest) -> Result<(), String> {
        let (client, timestamp) = self.issued(request)?;
        if self.tree.contains_key(&history) {
            return Ok(());
        }
        if self.repeats(before, client, timestamp) {
            return Err(format!("{client} {timestamp} was executed, and is executed again at {history:?} (abs-A4)"));
        }
        self.tree.insert(history, (before, client, timestamp));
        Ok(())
    }

    /// Of the requests of a batch, those that lead to this history. Whether a stranger's was executed is guessed.
    fn executed_of(
        &self,
        requests: &[Digest],
        table: &Table,
        executed: &[Digest],
        (before, after): (Digest, Digest),
    ) -> Option<Vec<Digest>> {
        let Some((request, rest)) = requests.split_first() else {
            return (before == after).then(|| executed.to_vec());
        };
        if self.may_end && before == after {
            return Some(executed.to_vec());
        }
        let without = || self.executed_of(rest, table, executed, (before, after));
        let Some(&(client, timestamp)) = self.issued.get(request) else { return without() };
        if !table.is_new(client, timestamp) && !client.identity.is_joining() {
            return without();
        }
        let mut then = table.clone();
        then.record(client, timestamp);
        let executed_too = [executed, &[*request]].concat();
        let with = self.executed_of(rest, &then, &executed_too, (before.chain(*request), after));
        if client.identity.is_dynamic() { with.or_else(without) } else { with }
    }

    /// Executes the next batch of an instance on the model. The last batch may be cut short: `until` is where.
    fn advance(&mut self, instance: InstanceId, digest: Digest, until: Digest) -> Result<(), String> {
        let mut ordered = self.instances.remove(&instance).unwrap_or_default();
        let mut history = ordered.histories.last().copied().unwrap_or(Digest::ZERO);
        if digest != Batch::null().digest() {
            let Some(requests) = self.batches.get(&digest).cloned() else {
                return Err(format!("the batch {digest:?} was never proposed by anybody"));
            };
            let of_strangers =
                |request| self.issued.get(request).is_some_and(|(client, _)| client.identity.is_dynamic());
            let strange = requests.iter().any(of_strangers);
            let executed =
                strange.then(|| self.executed_of(&requests, &ordered.table, &[], (history, until))).flatten();
            for request in requests {
                // The system's own requests are no part of a history. If anything else is that nobody made, the history
                // will be another one.
                let Some(&(client, timestamp)) = self.issued.get(&request) else { continue };
                if client.identity.is_dynamic() {
                    let executed = executed.as_ref().is_some_and(|executed| executed.contains(&request));
                    let Some(stranger) = self.strangers.get(&request).filter(|_| executed) else { continue };
                    let at = (instance, Sequence(ordered.histories.len() as u64));
                    ordered.sessions.executed(stranger, at, &self.given, &self.too_soon)?;
                }
                if self.may_end && history == until {
                    continue;
                }
                // A JOIN that was refused may be executed again.
                if ordered.table.is_new(client, timestamp) || client.identity.is_joining() {
                    ordered.table.record(client, timestamp);
                    let before = history;
                    history = history.chain(request);
                    self.tree.insert(history, (before, client, timestamp));
                }
            }
        }
        ordered.histories.push(history);
        self.instances.insert(instance, ordered);
        Ok(())
    }

    fn executed(
        &mut self,
        instance: InstanceId,
        sequence: Sequence,
        digest: Digest,
        history: Digest,
    ) -> Result<(), String> {
        if self.instances.is_empty() {
            self.begin(InstanceId(1), Digest::ZERO);
        }
        let known = self.instances.get(&instance).map_or(0, |ordered| ordered.histories.len() as u64);
        if sequence.0 > known {
            return Err(format!("{sequence} was executed while nobody had executed {}", Sequence(known)));
        }
        if sequence.0 == known {
            self.advance(instance, digest, history).map_err(|what| format!("at {sequence}, {what}"))?;
        }
        if self.instances[&instance].histories[sequence.0 as usize] != history {
            let batch = self.batches.get(&digest).into_iter().flatten().map(|request| self.issued.get(request));
            return Err(format!(
                "at {sequence} not each request of {:?} was executed once, in order",
                batch.collect::<Vec<_>>()
            ));
        }
        Ok(())
    }

    fn begin(&mut self, instance: InstanceId, history: Digest) {
        if !self.instances.contains_key(&instance) {
            // Those who have joined are members in the next instance as well.
            let mut ended = self.instances.values().rev().filter(|ordered| ordered.histories.last() == Some(&history));
            let sessions = ended.next().map(|ordered| ordered.sessions.clone()).unwrap_or_default();
            let table = self.table(history);
            self.instances.insert(instance, Ordered { table, histories: vec![history], sessions });
        }
    }
}

impl Check for Validity {
    fn name(&self) -> &'static str {
        "validity"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Issued(request) => {
                self.issued.entry(request.digest()).or_insert((request.client, request.timestamp));
                if let Some(stranger) = Stranger::of(request) {
                    self.strangers.insert(request.digest(), stranger);
                }
            }
            Event::Batch(batch) => {
                let digests = || batch.entries().iter().map(Entry::digest).collect();
                self.batches.entry(batch.digest()).or_insert_with(digests);
            }
            Event::Said(_, Message::Cookie(CookieMessage::Given(given))) => drop(self.given.insert(given.signature)),
            Event::Said(_, Message::Reply(reply))
                if reply.outcome == Outcome::Refused(Refusal::TooSoon) && reply.firmness == Firmness::Final =>
            {
                let refused = (reply.instance, reply.sequence);
                let at = self.too_soon.entry((reply.client, reply.timestamp)).or_insert(refused);
                *at = refused.min(*at);
            }
            Event::Noticed(replica, notice) => match notice {
                Notice::Executed { instance, sequence, digest, history, .. } => {
                    self.executed(*instance, *sequence, *digest, *history)
                        .map_err(|what| format!("{replica}: {what}"))?;
                }
                Notice::Logged { before, entries, .. } => {
                    let mut before = *before;
                    for (request, history) in entries {
                        self.logged(*request, before, *history).map_err(|what| format!("{replica}: {what}"))?;
                        before = *history;
                    }
                }
                Notice::Begun { instance, history, .. } => self.begin(*instance, *history),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }
}
