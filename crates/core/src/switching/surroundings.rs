//! What surrounds an instance during one step.

use crate::auth::Keyring;
use crate::cluster::{Cluster, InstanceId, ReplicaId, View};
use crate::compositions::Amnesia;
use crate::machine::{Instant, Outbox, Principal};
use crate::message::{Message, Reply, Request};
use crate::rejection::{Rejection, Rejections};
use crate::replica::{InstanceRecord, LogRecord, Record, Replica, SnapshotRecord};
use crate::service::Service;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// See the [module](self).
#[derive(Debug)]
pub struct Surroundings<'a, S: Service> {
    /// The time.
    pub now: Instant,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Our keys.
    pub keyring: &'a Keyring,
    /// Who we are.
    pub me: ReplicaId,
    /// What was not accepted, by sender.
    pub rejections: &'a mut Rejections,
    /// Bytes logged since the last snapshot.
    pub log_bytes: &'a mut u64,
    /// What this replica knows about an earlier log, if it lost one in a composition of several instances.
    pub(crate) amnesia: &'a mut Option<Amnesia>,
    /// What is to be done.
    pub out: &'a mut Outbox<Replica<S>>,
}

impl<S: Service> Surroundings<'_, S> {
    /// Counts something that was not accepted.
    pub fn reject(&mut self, from: Principal, reason: Rejection) {
        self.rejections.add(from, self.keyring.keys(), reason);
    }

    /// A request came that must not be executed any more. Its client is told over its own link, so that it does not
    /// wait for ever: see step 10 of [`crate::client`]. That costs no more than a reply.
    pub(crate) fn too_late(&mut self, from: Principal, view: View, request: &Request) {
        self.reject(from, Rejection::StaleTimestamp);
        if from.is_client() {
            self.out.send(request.asker(), Message::Reply(Reply::too_late(view, request)));
        }
    }

    /// Makes a record of an instance durable before anything that follows leaves.
    pub fn persist(&mut self, instance: InstanceId, record: InstanceRecord) {
        let record = self.counted(instance, record);
        self.out.persist(record);
    }

    /// The same of several: the last one makes the others durable as well.
    pub fn persist_all(&mut self, instance: InstanceId, mut records: Vec<InstanceRecord>) {
        let last = records.pop();
        records.into_iter().for_each(|record| self.append(instance, record));
        last.into_iter().for_each(|record| self.persist(instance, record));
    }

    /// Logs a record of an instance for which nothing waits.
    pub fn append(&mut self, instance: InstanceId, record: InstanceRecord) {
        let record = self.counted(instance, record);
        self.out.append(record);
    }

    fn counted(&mut self, instance: InstanceId, record: InstanceRecord) -> Record {
        let record = LogRecord { instance, record };
        *self.log_bytes += record.encoded_length() as u64;
        Record::Log(record)
    }

    /// Begins the log again with a snapshot. It goes on saying that an earlier one is lost. Nothing waits for a
    /// snapshot of this replica's own state: until it is durable the log before it says the same.
    pub fn begin_log(&mut self, mut record: SnapshotRecord) {
        let instance = record.snapshot.certificate.value.instance;
        let abstain = self.amnesia.as_ref().map(|amnesia| LogRecord { instance, record: amnesia.record() });
        record.live.splice(0..0, abstain);
        *self.log_bytes = 0;
        let transferred = record.transferred;
        let record = Record::Snapshot(Box::new(record));
        if transferred { self.out.persist(record) } else { self.out.append(record) }
    }

    /// Whether a snapshot is due.
    pub const fn log_is_long(&self) -> bool {
        *self.log_bytes > self.cluster.limits.log_bytes_per_snapshot
    }
}
