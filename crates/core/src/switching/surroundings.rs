//! What surrounds an instance during one step.

use super::amnesia::Amnesia;
use super::message::Switch;
use super::record::{HistoryRecord, LogRecord, Record, Recorded, SnapshotRecord};
use crate::auth::Keyring;
use crate::checkpoint::TransferMessage;
use crate::cluster::Cluster;
use crate::ids::{InstanceId, Principal, ReplicaId, View};
use crate::machine::{Destination, Machine, Outbox, Step};
use crate::message::{Reply, Request};
use crate::notice::Notice;
use crate::rejection::{Rejection, Rejections};
use crate::replicas::ReplicaSet;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A machine that an instance may be a part of: it says, logs and waits for what every instance does. Each protocol
/// asks for more, in its own folder.
pub trait Speaker:
    Machine<
        Outgoing: From<Request> + From<Reply> + From<Switch> + From<TransferMessage>,
        Timer: From<OpeningTimer>,
        Notice = Notice,
        Record = Record<Self::InstanceRecord>,
    >
{
    /// What its instances must not forget.
    type InstanceRecord: Recorded;
}

/// An init history: ask again for what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpeningTimer;

/// See the [module](self).
#[derive(Debug)]
pub struct Surroundings<'a, M: Speaker> {
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
    /// Whom this replica has not heard of for a while.
    pub(crate) silent: ReplicaSet,
    /// What is to be done.
    pub out: &'a mut Outbox<M>,
}

impl<M: Speaker> Surroundings<'_, M> {
    /// Takes a numbered step.
    #[inline]
    pub fn step(&mut self, step: Step) {
        self.out.step(step);
    }

    /// Sends what somebody says.
    pub fn send<T>(&mut self, to: Destination, said: T)
    where
        M::Outgoing: From<T>,
    {
        self.out.send(to, said.into());
    }

    /// Arms a timer, replacing an earlier setting.
    pub fn set_timer<T>(&mut self, timer: T, at: Instant)
    where
        M::Timer: From<T>,
    {
        self.out.set_timer(timer.into(), at);
    }

    /// Disarms a timer.
    pub fn cancel_timer<T>(&mut self, timer: T)
    where
        M::Timer: From<T>,
    {
        self.out.cancel_timer(timer.into());
    }

    /// Counts something that was not accepted.
    pub fn reject(&mut self, from: Principal, reason: Rejection) {
        self.rejections.add(from, self.keyring.keys(), reason);
    }

    /// A request came that must not be executed any more. Its client is told over its own link, so that it does not
    /// wait for ever: see Client 10 of [`crate::client`]. That costs no more than a reply.
    pub(crate) fn too_late(&mut self, from: Principal, view: View, request: &Request) {
        self.reject(from, Rejection::StaleTimestamp);
        if from.is_client() {
            self.send(request.asker(), Reply::too_late(view, request));
        }
    }

    /// Makes a record of an instance durable before anything that follows leaves.
    pub fn persist<R>(&mut self, instance: InstanceId, record: R)
    where
        M::InstanceRecord: From<R>,
    {
        let record = self.counted(instance, record);
        self.out.persist(record);
    }

    /// The same of several: the last one makes the others durable as well.
    pub fn persist_all(&mut self, instance: InstanceId, mut records: Vec<HistoryRecord>) {
        let last = records.pop();
        records.into_iter().for_each(|record| self.append(instance, record));
        last.into_iter().for_each(|record| self.persist(instance, record));
    }

    /// Logs a record of an instance for which nothing waits.
    pub fn append<R>(&mut self, instance: InstanceId, record: R)
    where
        M::InstanceRecord: From<R>,
    {
        let record = self.counted(instance, record);
        self.out.append(record);
    }

    fn counted<R>(&mut self, instance: InstanceId, record: R) -> Record<M::InstanceRecord>
    where
        M::InstanceRecord: From<R>,
    {
        let record = LogRecord { instance, record: M::InstanceRecord::from(record) };
        *self.log_bytes += record.record.log_bytes() as u64;
        Record::Log(record)
    }

    /// Begins the log again with a snapshot. It goes on saying that an earlier one is lost. Nothing waits for a
    /// snapshot of this replica's own state: until it is durable the log before it says the same.
    pub fn begin_log(&mut self, mut record: SnapshotRecord<M::InstanceRecord>) {
        assert!(record.snapshot.is_consistent(), "a log begins with the state that it names");
        let instance = record.snapshot.evidence.checkpoint().instance;
        let abstain = self.amnesia.as_ref().map(|amnesia| LogRecord { instance, record: amnesia.record().into() });
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
