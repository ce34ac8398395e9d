//! After a crash: the log is replayed through the instances that it tells of, and nothing is said meanwhile (S13).
//!
//! Every instance that was opened is opened again, with the bodies that the log has; what was logged in it is logged
//! and executed again; what was said when it stopped is said again, byte by byte. So a replica that restarts from its
//! log is the one that crashed. A state that came from others is in a snapshot with the record that opened the
//! instance. A log that has grown long begins again: in a Backup at a stable checkpoint, in any other instance at an
//! anchor that includes the init history. Others need nothing from below these; what they may still need of an init
//! history stays in the log.

use super::composite::{Composite, Running};
use super::{Amnesia, Part, Protocol};
use crate::auth::Certificate;
use crate::checkpoint::{Checkpoint, Snapshot, Tree};
use crate::cluster::{Cluster, InstanceId, Sequence};
use crate::digest::Digest;
use crate::history::{Log, LogEntry};
use crate::protocols::backup::Backup;
use crate::protocols::pbft::Pbft;
use crate::protocols::quorum::Quorum;
use crate::protocols::speculative::Speculation;
use crate::replica::{InstanceRecord, LogRecord, SnapshotRecord};
use crate::service::Service;
use crate::switching::{AbortHistory, Ledger, Opening, Proof, Surroundings};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// No instance: what runs until the log has opened one.
const BEFORE: InstanceId = InstanceId(0);

/// The one that needs no proof.
const FIRST: InstanceId = InstanceId(1);

impl<S: Service> Composite<S> {
    /// Over a state from a snapshot of a composition of several instances. The log's first record opens the instance.
    pub(super) fn before_replay(protocol: Protocol, ledger: Ledger<S>) -> (Protocol, InstanceId, Running<S>) {
        (protocol, BEFORE, Running::Quorum(Box::new(Quorum::open(BEFORE, false, ledger))))
    }

    /// Replays one record, oldest first. What it makes the machine say is thrown away by the caller.
    pub(crate) fn replay(
        &mut self,
        s: &mut Surroundings<'_, S>,
        restored: Option<&Certificate<Checkpoint>>,
        record: LogRecord,
    ) {
        let LogRecord { instance, record } = record;
        if let InstanceRecord::Opened((proof, entries)) = record {
            // A resilient ring may begin again, with its sequencer's proof.
            let is_again = instance == self.instance
                && s.cluster.part(instance) == Some(Part::RingResilient)
                && self.proof.as_ref() != Some(&proof);
            if instance > self.instance || is_again {
                // The snapshot, if there is one, is of what it began with before.
                self.reopen(s, restored.filter(|_| !is_again), instance, proof, entries);
            }
            return;
        }
        if let InstanceRecord::Abstain(until) = record {
            return self.replay_abstention(s, until);
        }
        if let InstanceRecord::Begun((proof, entries)) = record {
            // Else this log tells everything from before as well.
            if self.instance == BEFORE {
                self.resume(s, instance, proof, entries);
            }
            return;
        }
        if instance != self.instance {
            return;
        }
        match (record, self.running_mut()) {
            (InstanceRecord::Pbft(record), Running::Backup(backup)) => {
                backup.order_mut().replay(s.cluster, s.me, record);
            }
            (InstanceRecord::Inherited(entries), Running::Backup(backup)) => backup.retain(entries),
            // The end of a Backup is reached again by executing; what it says there is the same.
            (_, Running::Backup(_)) => {}
            (record, Running::RingResilient(ring)) => ring.replay(s.cluster, record),
            (record, _) => {
                if let Some(base) = self.base_mut() {
                    base.replay(s.cluster, record);
                }
            }
        }
    }

    /// The log is a new one. It says so before anything else, but the first instance is open by then.
    fn replay_abstention(&mut self, s: &mut Surroundings<'_, S>, until: InstanceId) {
        let news = s.amnesia.replace(Amnesia::until(until)).is_none();
        if !news || self.instance != FIRST {
            return;
        }
        if let Running::Backup(backup) = self.running_mut() {
            return backup.order_mut().lose_log();
        }
        let ledger = self.halt_running();
        self.set_running(Running::Silent(Box::new(ledger)));
    }

    /// A log that has grown long begins again at the anchor of a speculative instance.
    pub(super) fn shorten(&mut self, s: &mut Surroundings<'_, S>) {
        let begun = match self.running_mut() {
            Running::RingResilient(ring) => ring.begin_log(),
            _ => {
                self.base_mut().and_then(Speculation::begin_log).map(|(at, tree, entries)| (at, tree, entries, vec![]))
            }
        };
        let Some((position, tree, entries, more)) = begun else { return };
        let record = InstanceRecord::Begun((self.proof.clone(), entries));
        let records = core::iter::once(record).chain(more);
        let live = records.map(|record| LogRecord { instance: self.instance, record }).collect();
        let snapshot = snapshot_at(self.instance, position, tree);
        s.begin_log(SnapshotRecord { snapshot, live, transferred: false });
    }

    /// Where the instance began: position and history.
    pub(super) fn init(&self, cluster: &Cluster) -> (u64, Digest) {
        let history = self.proof.as_ref().and_then(|proof| proof.abort_history(cluster));
        history.map_or_else(<(u64, Digest)>::default, |history| (history.position, history.history()))
    }

    /// Over the state at an anchor, from a snapshot, what was logged above it.
    fn resume(
        &mut self,
        s: &mut Surroundings<'_, S>,
        instance: InstanceId,
        proof: Option<Arc<Proof>>,
        entries: Vec<LogEntry>,
    ) {
        let mut ledger = self.halt_running();
        ledger.estate.anchor_at(Sequence(ledger.log.anchor().position));
        (self.instance, self.proof) = (instance, proof);
        let init = self.init(s.cluster);
        let speaks = Amnesia::lets_speak(s.amnesia, instance);
        self.set_running(Self::instance(s.cluster, s.me, instance, ledger, speaks));
        if matches!(self.running(), Running::Silent(_)) {
            return;
        }
        if let Running::RingResilient(ring) = self.running_mut() {
            ring.resume_after(init);
            if !entries.is_empty() {
                ring.replay(s.cluster, InstanceRecord::Logged(entries));
            }
            return;
        }
        let base = self.base_mut().expect("the log of a Backup begins with what its order needs");
        base.resume_after(init);
        base.replay(s.cluster, InstanceRecord::Logged(entries));
    }

    fn reopen(
        &mut self,
        s: &mut Surroundings<'_, S>,
        restored: Option<&Certificate<Checkpoint>>,
        instance: InstanceId,
        proof: Arc<Proof>,
        entries: Vec<LogEntry>,
    ) {
        let Some(history) = proof.abort_history(s.cluster) else { return };
        if let Running::Backup(backup) = self.running_mut() {
            // Its batches are in the log: the state at its end is where this instance begins.
            backup.start(s);
        }
        let mut ledger = self.halt_running();
        self.instance = instance;
        self.proof = Some(proof);
        let restored = restored.filter(|certificate| certificate.value.instance == instance);
        let speaks = Amnesia::lets_speak(s.amnesia, instance);
        if s.cluster.part(instance) == Some(Part::Backup) {
            // Others may still have to fetch them.
            entries.into_iter().for_each(|entry| ledger.log.retain(entry));
            let mut running = Self::instance(s.cluster, s.me, instance, ledger, speaks);
            if let Running::Backup(backup) = &mut running {
                backup.begin_with(self.proof.clone());
                if let Some(certificate) = restored {
                    resume_backup(backup, certificate.clone());
                }
            }
            return self.set_running(running);
        }
        let mut opening = if restored.is_some() {
            reload(s.cluster, &history, &mut ledger, entries);
            None
        } else {
            entries.into_iter().for_each(|entry| ledger.log.retain(entry));
            Some(Opening::new(s, instance, history, &ledger))
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
                Self::instance(s.cluster, s.me, instance, ledger, speaks)
            }
        });
    }
}

/// Whether a log that begins with this snapshot says first which instance it is of. The first of all needs no proof,
/// but a log begins again in it with the entries above an anchor, unless it is a Backup.
pub(super) fn tells_its_opening(cluster: &Cluster, at: &Certificate<Checkpoint>) -> bool {
    let Some(schedule) = cluster.protocol.schedule() else { return false };
    at.value.instance != FIRST || schedule.part(FIRST) != Part::Backup
}

/// A Backup over a state of its own.
pub(super) fn resume_backup<S: Service>(backup: &mut Backup<Pbft, S>, certificate: Certificate<Checkpoint>) {
    if certificate.value.sequence > Sequence(0) {
        backup.order_mut().restored(certificate.clone());
    }
    backup.resume_at(certificate);
}

/// A state that no certificate of 2f+1 names: what follows in the log says why it may be taken.
pub(super) fn snapshot_at(instance: InstanceId, position: u64, tree: Tree) -> Snapshot {
    let value = Checkpoint { instance, sequence: Sequence(position), root: tree.root() };
    Snapshot { certificate: Certificate { value, signatures: Vec::new() }, tree }
}

/// The init history over a state that was fetched in the middle of it. All of it is executed, as it was when the
/// instance was opened: who does not know what is in its history would take it for new.
fn reload<S: Service>(cluster: &Cluster, history: &AbortHistory, ledger: &mut Ledger<S>, entries: Vec<LogEntry>) {
    let base = history.boundaries.last().map_or(history.anchor, |boundary| *boundary);
    ledger.estate.anchor_at(Sequence(base.position));
    ledger.log = Log::new(history.anchor);
    for entry in entries {
        ledger.log.push(entry);
    }
    ledger.catch_up(cluster, |_, _, _| ());
    history.boundaries.iter().for_each(|boundary| ledger.log.learn(*boundary));
}
