//! After a crash. What was logged is what was signed: the log tells all that this replica must stand by.

use super::state::{RingResilient, Slot};
use crate::cluster::Cluster;
use crate::history::LogEntry;
use crate::protocols::ring_resilient::record::ResilientRecord;
use crate::service::Service;
use crate::switching::HistoryRecord;
use crate::switching::certificate::Stable;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

impl<S: Service> RingResilient<S> {
    /// Replays a record of this instance.
    pub(super) fn replay_history(&mut self, cluster: &Cluster, record: HistoryRecord) {
        match record {
            HistoryRecord::Logged(entries) => {
                self.opened = true;
                for entry in entries {
                    self.ordered.insert(entry.request.client, entry.request.timestamp);
                    self.base.ledger.log.push(entry);
                }
            }
            HistoryRecord::Stable(certificate) => {
                let certificate = certificate.recalled();
                let Stable { instance, boundary, .. } = *certificate.value();
                let ledger = &mut self.base.ledger;
                // Checkpoints that clients asked for are not logged: where others have signed one, it is taken again.
                if ledger.takes_again(cluster, boundary) {
                    ledger.anchor_at(boundary);
                    ledger.certify(certificate.clone());
                    self.stable = Some(certificate).filter(|_| instance == self.base.what.number);
                }
            }
            record @ HistoryRecord::Stopped(_) => self.base.replay(cluster, record),
            _ => {}
        }
    }

    /// The same, of what only a resilient ring logs.
    pub(crate) fn replay_own(&mut self, cluster: &Cluster, record: ResilientRecord) {
        match record {
            ResilientRecord::Prepared(certificate) => self.prepared = Some(certificate.recalled()),
            ResilientRecord::Committed(position) => self.replay_commit(cluster, position),
        }
    }

    /// What was executed is executed again, with its checkpoints.
    fn replay_commit(&mut self, cluster: &Cluster, position: u64) {
        let last = self.last();
        let ledger = &mut self.base.ledger;
        let position = position.min(ledger.log.length());
        while ledger.estate.executed().0 < position {
            let at = ledger.estate.executed().0 + 1;
            let logged = ledger.log.at(at).cloned().expect("committed is what is logged");
            ledger.estate.execute_entry(cluster, &logged, |_, _| ());
            let request = &logged.entry.request;
            if self.ordered.get(&request.client) == Some(&request.timestamp) {
                self.ordered.remove(&request.client);
            }
            if at.is_multiple_of(cluster.limits.history_interval) || at == last {
                ledger.checkpoint();
            }
        }
        self.committed = self.committed.max(Some(position));
    }

    /// The batches that are logged. Each has a proposal of its own, because the seed depends on its position.
    pub(super) fn find_slots(&mut self) {
        let log = &self.base.ledger.log;
        let (begin, history) = self.base.init();
        let mut slots: BTreeMap<u64, Slot> = BTreeMap::new();
        // Who goes on from a checkpoint there may have signed something else; and that one needs no more signatures.
        if log.anchor().position < begin || log.anchor().position == begin && self.stable.is_none() {
            let slot = Slot { history, ..Slot::default() };
            slots.insert(begin, slot);
        }
        let first = begin.max(log.anchor().position);
        let mut batch: Vec<&LogEntry> = Vec::new();
        let mut logged = (first + 1..).zip(log.after(first)).peekable();
        while let Some((position, last)) = logged.next() {
            batch.push(&last.entry);
            let proposal = &last.entry.proposal;
            if logged.peek().is_some_and(|(_, next)| next.entry.proposal == *proposal) {
                continue;
            }
            let requests = batch.drain(..).map(|entry| entry.asked_in(self.base.what.number)).collect();
            let slot = Slot { history: last.history, proposal: proposal.clone(), requests, ..Slot::default() };
            slots.insert(position, slot);
        }
        self.slots = slots;
    }

    /// What the log on disk needs above the state at the anchor, when it may begin there: see
    /// [`crate::protocols::speculative::Speculation::begin_log`].
    pub(crate) fn records_at_anchor<R>(&self) -> Vec<R>
    where
        R: From<HistoryRecord> + From<ResilientRecord>,
    {
        let opened = self.opened.then(|| HistoryRecord::Logged(Vec::new()).into());
        let prepared = self.prepared.clone().map(|certificate| ResilientRecord::Prepared(certificate.into()).into());
        let committed = self.committed.map(|position| ResilientRecord::Committed(position).into());
        let stable = self.base.ledger.certificate().cloned();
        let stable = stable.map(|certificate| HistoryRecord::Stable(certificate.into()).into());
        opened.into_iter().chain(prepared).chain(committed).chain(stable).collect()
    }
}
