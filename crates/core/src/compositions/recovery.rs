//! After a crash: the log is replayed through the instances that it tells of, and nothing is said meanwhile (abs-S13).
//!
//! Every instance that was opened is opened again, with the bodies that the log has; what was logged in it is logged
//! and executed again; what was said when it stopped is said again, byte by byte. So a replica that restarts from its
//! log is the one that crashed. A state that came from others is in a snapshot with the record that opened the
//! instance. A log that has grown long begins again: in a Backup at a stable checkpoint, in any other instance at an
//! anchor that includes the init history. Others need nothing from below these; what they may still need of an init
//! history stays in the log.

use super::composite::Composite;
use super::running::Running;
use crate::checkpoint::Evidence;
use crate::compositions::resumed::{FIRST, reload, snapshot_at};
use crate::history::LogEntry;
use crate::ids::{InstanceId, Sequence};
use crate::registry::{Instance, InstanceRecord, LogRecord, SnapshotRecord, Speaker};
use crate::service::Service;
use crate::switching::{Amnesia, Begun, ClaimedProof, HistoryRecord, Ledger, Opening, Proof, Surroundings};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// No instance: what runs until the log has opened one.
const BEFORE: InstanceId = InstanceId(0);

impl<S: Service> Composite<S> {
    /// Over a state from a snapshot of a composition of several instances. The log's first record opens the instance.
    pub(super) fn before_replay(ledger: Ledger<S>) -> (InstanceId, Running<S>) {
        (BEFORE, Running::Silent(Box::new(ledger)))
    }

    /// Replays one record, oldest first. What it makes the machine say is thrown away by the caller.
    pub(crate) fn replay(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        restored: Option<&Evidence>,
        record: LogRecord,
    ) {
        let LogRecord { instance, record } = record;
        if let InstanceRecord::History(HistoryRecord::Bodies(entries)) = record {
            return self.keep_bodies(instance, entries);
        }
        if let InstanceRecord::History(HistoryRecord::Opened(proof)) = record {
            // A resilient ring may begin again, with its sequencer's proof.
            let is_again = instance == self.what.number
                && self.what.part.certifies()
                && !self.proof.as_ref().is_some_and(|own| own.is(&proof));
            if instance > self.what.number || is_again {
                // The snapshot, if there is one, is of what it began with before.
                self.reopen(s, restored.filter(|_| !is_again), instance, proof.recalled());
            }
            return;
        }
        if let InstanceRecord::History(HistoryRecord::Abstain(until)) = record {
            return self.replay_abstention(s, until);
        }
        if let InstanceRecord::History(HistoryRecord::Begun(begun)) = record {
            // Else this log tells everything from before as well.
            if self.what.number == BEFORE {
                self.resume(s, instance, begun);
            }
            return;
        }
        if instance != self.what.number {
            return;
        }
        let record = match record {
            InstanceRecord::History(HistoryRecord::Named(digests)) => {
                let entries = self.ledger().log.find(&digests);
                assert_eq!(entries.len(), digests.len(), "the bodies were written first");
                HistoryRecord::Logged(entries).into()
            }
            record => record,
        };
        if let Some(instance) = self.running_mut().open_mut() {
            instance.replay(s.cluster, s.me, record);
        }
    }

    /// Bodies that another record names, or that others may have to fetch. Perhaps of an instance that is opened next:
    /// this one may still have to come to its end, and may drop what it keeps there.
    fn keep_bodies(&mut self, instance: InstanceId, entries: Vec<LogEntry>) {
        if instance > self.what.number {
            self.bodies.extend(entries);
            return;
        }
        match self.running_mut() {
            Running::Opening(opening) => opening.1.log.retain(entries),
            Running::Silent(ledger) => ledger.log.retain(entries),
            Running::Open(instance) => instance.retain(entries),
        }
    }

    /// The log is a new one. It says so before anything else, but the first instance is open by then.
    fn replay_abstention(&mut self, s: &mut Surroundings<'_, impl Speaker>, until: InstanceId) {
        let news = s.amnesia.replace(Amnesia::until(until)).is_none();
        if !news || self.what.number != FIRST {
            return;
        }
        if self.running_mut().open_mut().is_some_and(Instance::lose_log) {
            return;
        }
        let ledger = self.halt_running(s.cluster);
        self.set_running(Running::Silent(Box::new(ledger)));
    }

    /// A log that has grown long begins again at the anchor of a speculative instance.
    pub(super) fn shorten(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let proof = self.proof.as_ref().map(Proof::claim);
        let Some(instance) = self.running_mut().open_mut() else { return };
        let Some((position, tree, records)) = instance.begin_log(proof) else { return };
        let live = records.into_iter().map(|record| LogRecord { instance: self.what.number, record }).collect();
        let snapshot = snapshot_at(self.what.number, position, tree);
        s.begin_log(SnapshotRecord { snapshot, live, transferred: false });
    }

    /// Over the state at an anchor, from a snapshot, what was logged above it.
    fn resume(&mut self, s: &mut Surroundings<'_, impl Speaker>, instance: InstanceId, begun: Begun) {
        let Begun { proof, init, above } = begun;
        let mut ledger = self.halt_running(s.cluster);
        ledger.estate.anchor_at(Sequence(ledger.log.anchor().position));
        ledger.log.retain(core::mem::take(&mut self.bodies));
        let entries = ledger.log.find(&above);
        assert_eq!(entries.len(), above.len(), "the bodies were written first");
        (self.what, self.proof) = (self.specify(s.cluster, instance), proof.map(ClaimedProof::recalled));
        let speaks = Amnesia::lets_speak(s.amnesia, instance);
        self.set_running(Running::at(s.cluster, s.me, self.what, ledger, speaks));
        if let Some(instance) = self.running_mut().open_mut() {
            instance.resume(s.cluster, init, entries);
        }
    }

    fn reopen(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        restored: Option<&Evidence>,
        instance: InstanceId,
        proof: Proof,
    ) {
        let ended = self.specify(s.cluster, proof.instance());
        let Some(history) = proof.abort_history(&ended) else { return };
        if self.what.part.is_backup() {
            // Its batches are in the log: the state at its end is where this instance begins.
            self.running_mut().open_mut().into_iter().for_each(|backup| backup.start(s));
        }
        let mut ledger = self.halt_running(s.cluster);
        ledger.log.retain(core::mem::take(&mut self.bodies));
        self.what = self.specify(s.cluster, instance);
        self.proof = Some(proof);
        let restored = restored.filter(|evidence| evidence.checkpoint().instance == instance);
        let speaks = Amnesia::lets_speak(s.amnesia, instance);
        let what = self.what;
        if what.part.is_backup() {
            let mut running = Running::at(s.cluster, s.me, what, ledger, speaks);
            if let Running::Open(backup) = &mut running {
                self.proof.iter().for_each(|proof| backup.begin_with(proof.clone()));
                restored.into_iter().for_each(|evidence| backup.restored(evidence.clone()));
            }
            return self.set_running(running);
        }
        let mut opening = if restored.is_some() {
            reload(s.cluster, instance, &history, &mut ledger);
            None
        } else {
            Some(Opening::new(s, instance, history, &ledger).again())
        };
        if let Some(opening) = opening.take_if(|opening| opening.is_done()) {
            opening.finish(s, &mut ledger);
        }
        self.set_running(match opening {
            // The log does not have all of it, which only happens if its snapshot is gone: fetch it again.
            Some(opening) => Running::Opening(Box::new((opening, ledger))),
            None => {
                if ledger.log.length() > ledger.log.anchor().position {
                    ledger.checkpoint();
                }
                Running::at(s.cluster, s.me, what, ledger, speaks)
            }
        });
    }
}
