//! Validity and exactly once: what is executed was asked for by a client, and executed no more than once.
//!
//! The check keeps its own client table: it walks through the executed batches in order, knows which of each batch's
//! requests a correct replica must have executed, and so what its history must be.

use super::{Check, Event};
use bezant_core::cluster::{ClientId, Sequence, Timestamp};
use bezant_core::digest::Digest;
use bezant_core::protocols::batch::{Batch, Entry};
use bezant_core::replica::Notice;
use std::collections::BTreeMap;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Validity {
    issued: BTreeMap<Digest, (ClientId, Timestamp)>,
    /// The digests of the requests in each batch that was ever seen.
    batches: BTreeMap<Digest, Vec<Digest>>,
    last: BTreeMap<ClientId, Timestamp>,
    /// The history after each position, from 1.
    histories: Vec<Digest>,
}

impl Validity {
    /// Executes the next batch on the model.
    fn advance(&mut self, sequence: Sequence, digest: Digest) -> Result<(), String> {
        let mut history = self.histories.last().copied().unwrap_or(Digest::ZERO);
        if digest == Batch::null().digest() {
            self.histories.push(history);
            return Ok(());
        }
        let Some(requests) = self.batches.get(&digest) else {
            return Err(format!("the batch {digest:?} executed at {sequence} was never proposed by anybody"));
        };
        for request in requests {
            let Some((client, timestamp)) = self.issued.get(request) else {
                return Err(format!("at {sequence}, request {request:?} was executed that no client made"));
            };
            let last = self.last.entry(*client).or_default();
            if *timestamp > *last {
                *last = *timestamp;
                history = history.chain(*request);
            }
        }
        self.histories.push(history);
        Ok(())
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
                let digests = || batch.entries.iter().map(Entry::digest).collect();
                self.batches.entry(batch.digest()).or_insert_with(digests);
            }
            Event::Noticed(replica, Notice::Executed { sequence, digest, history, .. }) => {
                let executed = Sequence(self.histories.len() as u64);
                if *sequence > executed.next() {
                    return Err(format!("{replica} executed {sequence} while nobody had executed {}", executed.next()));
                }
                if *sequence == executed.next() {
                    self.advance(*sequence, *digest)?;
                }
                if self.histories[sequence.0 as usize - 1] != *history {
                    return Err(format!("at {sequence}, {replica} did not execute each request once, in order"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
