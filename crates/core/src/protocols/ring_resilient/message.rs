//! What replicas of the resilient ring say to one another.

use crate::auth::{Certificate, Signed};
use crate::digest::Digest;
use crate::ids::InstanceId;
use crate::protocols::batch::Batch;
use crate::switching::Fetch;
use crate::switching::certificate::{Prepared, Stable};
use crate::{wire_enum, wire_struct};
use alloc::boxed::Box;

/// ORDER: the sequencer's next batch. The first one of an instance is empty: it is about the init history.
#[derive(Clone, Debug)]
pub struct Order {
    /// The position of the first request.
    pub first: u64,
    /// Agreed values and requests; big ones by reference.
    pub batch: Batch,
    /// The sequencer's own PREP, of the history with this batch.
    pub prepare: Signed<Prepared>,
}
wire_struct!(Order { first, batch, prepare });

/// COMM: the sender holds a certificate for this history. It convinces its receiver only, so that a MAC will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The history's last position.
    pub position: u64,
    /// Its digest.
    pub history: Digest,
}
wire_struct!(Commit { position, history });

/// STATUS: how far the sender has come. Whoever has more answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    Prepare(Signed<Prepared>),
    /// A replica to all others.
    Commit(Commit),
    /// A replica to all others: its state at a checkpoint.
    Checkpoint(Signed<Stable>),
    /// A replica to all others, while it waits for something.
    Status(Status),
    /// A replica to others: it lacks these requests.
    Fetch(Fetch),
    /// A replica to one that is behind: 2f+1 have signed this checkpoint.
    Stable(Certificate<Stable>),
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

/// A statement with the instance that it is about (D1).
#[derive(Clone, Debug)]
pub struct Resilient {
    /// The instance.
    pub instance: InstanceId,
    /// The statement.
    pub message: ResilientMessage,
}
wire_struct!(Resilient { instance, message });
