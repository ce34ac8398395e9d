//! What replicas of the resilient ring say to one another.

use crate::auth::{Certificate, Claimed, Keyring, Signed};
use crate::batch::Batch;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::history::Boundary;
use crate::ids::{ClientId, InstanceId, Principal};
use crate::protocols::ring_resilient::record::ResilientRecord;
use crate::protocols::speculative;
use crate::protocols::speculative::Certain;
use crate::rejection::Rejection;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::switching::certificate::{Prepared, Stable};
use crate::switching::{Fetch, HistoryRecord};
use crate::{wire_enum, wire_struct};
use alloc::boxed::Box;
use core::fmt;

/// A machine that an instance of this protocol may be a part of.
pub trait Speaker:
    speculative::Speaker<
        Outgoing: From<Resilient> + From<Certain>,
        Timer: From<ResilientTimer>,
        InstanceRecord: From<HistoryRecord> + From<ResilientRecord>,
    >
{
}

impl<
    M: speculative::Speaker<
            Outgoing: From<Resilient> + From<Certain>,
            Timer: From<ResilientTimer>,
            InstanceRecord: From<HistoryRecord> + From<ResilientRecord>,
        >,
> Speaker for M
{
}

/// ORDER: the sequencer's next batch. The first one of an instance is empty: it is about the init history.
#[derive(Clone, Debug)]
pub struct Order {
    /// The position of the first request.
    pub first: u64,
    /// Agreed values and requests; big ones by reference.
    pub batch: Batch,
    /// The sequencer's own PREP, of the history with this batch.
    pub prepare: Claimed<Signed<Prepared>>,
}
wire_struct!(Order { first, batch, prepare });

/// COMM: the sender holds a certificate for this history. It convinces its receiver only, so a MAC will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The history's last position.
    pub position: u64,
    /// Its digest.
    pub history: Digest,
}
wire_struct!(Commit { position, history });

/// STATUS: how far the sender has come. Whoever has more answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether it has logged the sequencer's init history.
    pub opened: bool,
    /// The last position that it has logged.
    pub logged: u64,
    /// The last position for which it holds a certificate.
    pub prepared: Option<u64>,
    /// The last position that it knows to be committed.
    pub committed: Option<u64>,
    /// Its anchor.
    pub anchor: u64,
}
wire_struct!(Status { opened, logged, prepared, committed, anchor });

/// One statement of the resilient ring.
#[derive(Clone, Debug)]
pub enum ResilientMessage {
    /// The sequencer to all others.
    Order(Box<Order>),
    /// A replica to all others.
    Prepare(Claimed<Signed<Prepared>>),
    /// A replica to all others.
    Commit(Commit),
    /// A replica to all others: its state at a checkpoint.
    Checkpoint(Claimed<Signed<Stable>>),
    /// A replica to all others, while it waits for something.
    Status(Status),
    /// A replica to others: it lacks these requests.
    Fetch(Fetch),
    /// A replica to one that is behind: 2f+1 have signed this checkpoint.
    Stable(Claimed<Certificate<Stable>>),
}
wire_enum!(ResilientMessage {
    1 => Order,
    2 => Prepare,
    3 => Commit,
    4 => Checkpoint,
    5 => Status,
    6 => Fetch,
    7 => Stable,
});

/// A statement with the instance that it is about (abs-D1).
#[derive(Clone, Debug)]
pub struct Resilient {
    /// The instance.
    pub instance: InstanceId,
    /// The statement.
    pub message: ResilientMessage,
}
wire_struct!(Resilient { instance, message });

impl fmt::Display for Resilient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, message } = self;
        match message {
            ResilientMessage::Order(order) => {
                let (end, requests) = (order.prepare.claims().position, order.batch.entries().len());
                write!(f, "RING-ORDER {instance} p{}..p{end} with {requests} requests", order.first)
            }
            ResilientMessage::Prepare(signed) => {
                let Prepared { position, history, .. } = signed.claims();
                write!(f, "PREP {instance} of {} p{position} {history:?}", signed.signer())
            }
            ResilientMessage::Commit(Commit { position, history }) => {
                write!(f, "COMM {instance} p{position} {history:?}")
            }
            ResilientMessage::Checkpoint(signed) => {
                let Boundary { position, history, root } = signed.claims().boundary;
                write!(f, "RING-CHECKPOINT {instance} of {} p{position} {history:?} {root:?}", signed.signer())
            }
            ResilientMessage::Status(Status { logged, prepared, committed, anchor, .. }) => {
                let [prepared, committed] = [prepared, committed].map(|position| position.unwrap_or(0));
                write!(f, "RING-STATUS {instance} p{anchor}..p{logged} prepared p{prepared} committed p{committed}")
            }
            ResilientMessage::Stable(certificate) => {
                let Boundary { position, history, .. } = certificate.claims().boundary;
                write!(f, "RING-STABLE {instance} p{position} {history:?}")
            }
            ResilientMessage::Fetch(fetch) => write!(f, "RING-FETCH {instance} {} requests", fetch.0.len()),
        }
    }
}

impl Spoken for Resilient {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    /// All of it, clients' proofs included (abs-P3).
    fn cover(&self) -> Cover {
        Cover::Digest
    }

    fn may_overtake(&self) -> bool {
        false
    }

    /// The requests in an ORDER are checked when it is its turn (Resilient 3).
    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)
    }
}

/// The timers of the resilient ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResilientTimer {
    /// Nothing was executed for too long.
    Patience,
    /// Say again what may have got lost.
    Repeat,
}
