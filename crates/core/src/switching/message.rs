//! What is said about instances rather than within one.

use super::report::{AbortReport, ClaimedProof};
use crate::auth::{Claimed, Keyring, Signable, Signed};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::history::{Boundary, LogEntry};
use crate::ids::{ClientId, InstanceId, Principal, Timestamp};
use crate::rejection::Rejection;
use crate::schedule::Part;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::time::Instant;
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::{wire_enum, wire_struct};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// Digests asked for in one FETCH.
pub const FETCH_MAX: usize = 512;

/// PANIC: a client's request was not answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panic {
    /// Whose request.
    pub client: ClientId,
    /// Which request.
    pub timestamp: Timestamp,
}
wire_struct!(Panic { client, timestamp });

/// FEEDBACK: how much waits of all the sessions of a client machine ([`crate::compositions::robust`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The first of these sessions: it names the machine.
    pub machine: ClientId,
    /// How many requests have waited for their answers, on average since it last said so: in thousandths.
    pub load: u32,
    /// What has waited longest, and since before that: session and timestamp.
    pub oldest: Option<(u32, Timestamp)>,
}
wire_struct!(Feedback { machine, load, oldest });

impl Feedback {
    /// How many times as long as elsewhere a machine takes to say it while this runs, and a replica to miss a machine
    /// that says nothing. Nobody judges a Backup, and to be told costs a replica as much as a request.
    pub(crate) fn slowdown(running: Part) -> u64 {
        if running.is_backup() { 4 } else { 1 }
    }
}

/// RETURNED: in this instance the signer hears all replicas ([`crate::compositions::presence`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Which instance.
    pub instance: InstanceId,
}
wire_struct!(Returned { instance });

impl Signable for Returned {
    const KIND: u8 = 21;
}

/// FETCH: the sender lacks these entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch(
    /// Their digests, at most [`FETCH_MAX`].
    pub Vec<Digest>,
);

impl Wire for Fetch {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.0, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.list(FETCH_MAX)?))
    }
}

/// BODIES: entries that were asked for.
#[derive(Clone, Debug)]
pub struct Bodies(
    /// The entries; their digests say which they are.
    pub Vec<LogEntry>,
);

impl Wire for Bodies {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.0, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.list(FETCH_MAX)?))
    }
}

/// One statement about an instance.
#[derive(Clone, Debug)]
pub enum SwitchMessage {
    /// A client to every replica.
    Panic(Panic),
    /// A replica to a client: the instance named runs here. f+1 of these convince.
    Active(ClientId),
    /// A replica to every other: it has stopped in the instance.
    Abort(Arc<Claimed<Signed<AbortReport>>>),
    /// A replica to others: the instance runs here, and this proves that it may.
    Init(Arc<ClaimedProof>),
    /// A replica to another: it runs the instance named and nothing later.
    Behind(()),
    /// A replica to another.
    Fetch(Fetch),
    /// The answer.
    Bodies(Bodies),
    /// A replica to every other: its state at a checkpoint (LCS).
    Checkpoint(Boundary),
    /// The answer to one who still says what is certain here: the same statement, which needs no answer.
    Anchor(Boundary),
    /// A replica to every other: it lost its log, and asked at this time by its clock where they are.
    Lost(Instant),
    /// The answer to the question of that time: this replica is in the instance named.
    Here(Instant),
    /// A client machine to every replica: what of it waits.
    Feedback(Feedback),
    /// A replica to every other: it works in the instance.
    Present(()),
    /// A replica to every other: it hears all replicas in the instance.
    Returned(Box<Claimed<Signed<Returned>>>),
}
wire_enum!(SwitchMessage {
    1 => Panic,
    2 => Active,
    3 => Abort,
    4 => Init,
    5 => Behind,
    6 => Fetch,
    7 => Bodies,
    8 => Checkpoint,
    9 => Anchor,
    10 => Lost,
    11 => Here,
    12 => Feedback,
    13 => Present,
    14 => Returned,
});

impl SwitchMessage {
    /// Whether it says what is true in this status interval, and is said again in the next one.
    pub(crate) const fn is_of_an_interval(&self) -> bool {
        matches!(self, Self::Present(()) | Self::Returned(_))
    }
}

/// A statement with the instance that it is about (abs-D1).
#[derive(Clone, Debug)]
pub struct Switch {
    /// The instance.
    pub instance: InstanceId,
    /// The statement.
    pub message: SwitchMessage,
}
wire_struct!(Switch { instance, message });

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, message } = self;
        match message {
            SwitchMessage::Panic(panic) => write!(f, "PANIC {instance} {} {}", panic.client, panic.timestamp),
            SwitchMessage::Feedback(said) => write!(f, "FEEDBACK {instance} {} load {}", said.machine, said.load),
            SwitchMessage::Active(client) => write!(f, "ACTIVE {instance} to {client}"),
            SwitchMessage::Abort(signed) => {
                let report = &signed.claims();
                write!(f, "ABORT {instance} of {} p{}..p{}", signed.signer(), report.anchor.position, report.end())
            }
            SwitchMessage::Init(proof) => write!(f, "INIT {instance} with {} reports", proof.reports.len()),
            SwitchMessage::Present(()) => write!(f, "PRESENT {instance}"),
            SwitchMessage::Returned(signed) => write!(f, "RETURNED {instance} says {}", signed.signer()),
            SwitchMessage::Behind(()) => write!(f, "BEHIND {instance}"),
            SwitchMessage::Fetch(fetch) => write!(f, "FETCH {instance} {} entries", fetch.0.len()),
            SwitchMessage::Bodies(bodies) => write!(f, "BODIES {instance} {} entries", bodies.0.len()),
            SwitchMessage::Lost(question) => write!(f, "LOST {instance} at {}", question.0),
            SwitchMessage::Here(question) => write!(f, "HERE {instance} to {}", question.0),
            SwitchMessage::Anchor(b) => write!(f, "ANCHOR {instance} p{} {:?} {:?}", b.position, b.history, b.root),
            SwitchMessage::Checkpoint(b) => write!(f, "LCS {instance} p{} {:?} {:?}", b.position, b.history, b.root),
        }
    }
}

impl Spoken for Switch {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        match self.message {
            SwitchMessage::Active(client) => Some(client),
            SwitchMessage::Panic(_)
            | SwitchMessage::Abort(_)
            | SwitchMessage::Init(_)
            | SwitchMessage::Behind(())
            | SwitchMessage::Fetch(_)
            | SwitchMessage::Bodies(_)
            | SwitchMessage::Checkpoint(_)
            | SwitchMessage::Anchor(_)
            | SwitchMessage::Lost(_)
            | SwitchMessage::Here(_)
            | SwitchMessage::Feedback(_)
            | SwitchMessage::Present(())
            | SwitchMessage::Returned(_) => None,
        }
    }

    fn cover(&self) -> Cover {
        Cover::Digest
    }

    fn may_overtake(&self) -> bool {
        false
    }

    /// A client says PANIC and FEEDBACK, of its own sessions; all else replicas say.
    fn admit(&mut self, from: Principal, cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        match (&self.message, from) {
            (SwitchMessage::Panic(panic), Principal::Client(client)) if panic.client.identity == client.identity => {
                Ok(())
            }
            (SwitchMessage::Feedback(said), Principal::Client(client)) if said.machine.identity == client.identity => {
                match cluster.protocol.is_robust() {
                    true if said.load > 0 || said.oldest.is_none() => Ok(()),
                    true => Err(Rejection::Malformed),
                    false => Err(Rejection::Unsolicited),
                }
            }
            (_, from) => from_replica(from),
        }
    }
}
