//! Validity and exactly once: what is executed was asked for by a client before, and executed no more than once in its
//! history.
//!
//! The check keeps every history that a correct replica had, as a tree: each digest with the one before it and the
//! request between them. Within an instance that orders batches it keeps a client table of its own and walks through
//! the batches, and so knows what every history must be.

use super::{Check, Event};
use bezant_core::cluster::{ClientId, Cluster, InstanceId, Sequence, Timestamp};
use bezant_core::digest::Digest;
use bezant_core::protocols::batch::{Batch, Entry};
use bezant_core::replica::Notice;
use std::collections::BTreeMap;

/// An instance that orders batches.
#[derive(Debug, Default)]
struct Ordered {
    last: BTreeMap<ClientId, Timestamp>,
    /// The history after each batch, from 0: the init history.
    histories: Vec<Digest>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Validity {
    /// Whether an instance that orders batches may end in the middle of one.
    may_end: bool,
    issued: BTreeMap<Digest, (ClientId, Timestamp)>,
    /// The digests of the requests in each batch that was ever seen.
    batches: BTreeMap<Digest, Vec<(ClientId, Digest)>>,
    /// Histories: the one before, and the request.
    tree: BTreeMap<Digest, (Digest, ClientId, Timestamp)>,
    instances: BTreeMap<InstanceId, Ordered>,
}

impl Validity {
    /// Of a cluster.
    pub fn new(cluster: &Cluster) -> Self {
        Self { may_end: cluster.protocol.schedule().is_some(), ..Self::default() }
    }

    fn issued(&self, request: Digest) -> Result<(ClientId, Timestamp), String> {
        self.issued
            .get(&request)
            .copied()
            .ok_or_else(|| format!("request {request:?} was executed that no client made"))
    }

    /// The last request of each client in a history.
    fn table(&self, mut history: Digest) -> BTreeMap<ClientId, Timestamp> {
        let mut table: BTreeMap<ClientId, Timestamp> = BTreeMap::new();
        while let Some((before, client, timestamp)) = self.tree.get(&history) {
            table.entry(*client).or_insert(*timestamp);
            history = *before;
        }
        table
    }

    /// A replica that speculates has executed one request more.
    fn logged(&mut self, request: Digest, before: Digest, history: Digest) -> Result<(), String> {
        let (client, timestamp) = self.issued(request)?;
        if self.tree.contains_key(&history) {
            return Ok(());
        }
        if self.table(before).get(&client).is_some_and(|last| *last >= timestamp) {
            return Err(format!("{client} {timestamp} was executed, and is executed again at {history:?} (A4)"));
        }
        self.tree.insert(history, (before, client, timestamp));
        Ok(())
    }

    /// Executes the next batch of an instance on the model. The last batch may be cut short: `until` is where.
    fn advance(&mut self, instance: InstanceId, digest: Digest, until: Digest) -> Result<(), String> {
        let mut ordered = self.instances.remove(&instance).unwrap_or_default();
        let mut history = ordered.histories.last().copied().unwrap_or(Digest::ZERO);
        if digest != Batch::null().digest() {
            let Some(requests) = self.batches.get(&digest).cloned() else {
                return Err(format!("the batch {digest:?} was never proposed by anybody"));
            };
            for (client, request) in requests {
                if client.identity == bezant_core::message::SYSTEM || (self.may_end && history == until) {
                    continue;
                }
                let (client, timestamp) = self.issued(request)?;
                let last = ordered.last.entry(client).or_default();
                if timestamp > *last {
                    *last = timestamp;
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
            return Err(format!("at {sequence} not each request was executed once, in order"));
        }
        Ok(())
    }

    fn begin(&mut self, instance: InstanceId, history: Digest) {
        let last = self.table(history);
        self.instances.entry(instance).or_insert_with(|| Ordered { last, histories: vec![history] });
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
            }
            Event::Batch(batch) => {
                let digests = || batch.entries.iter().map(|entry| (entry.client(), Entry::digest(entry))).collect();
                self.batches.entry(batch.digest()).or_insert_with(digests);
            }
            Event::Noticed(replica, notice) => match notice {
                Notice::Executed { instance, sequence, digest, history, .. } => {
                    self.executed(*instance, *sequence, *digest, *history)
                        .map_err(|what| format!("{replica}: {what}"))?;
                }
                Notice::Logged { request, before, history, .. } => {
                    self.logged(*request, *before, *history).map_err(|what| format!("{replica}: {what}"))?;
                }
                Notice::Begun { instance, history, .. } => self.begin(*instance, *history),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }
}
