//! REPLY: what a replica answers to a client.

use super::{Outcome, Refusal, Request};
use crate::auth::Keyring;
use crate::cluster::Cluster;
use crate::ids::{ClientId, InstanceId, Principal, Sequence, Timestamp, View};
use crate::rejection::Rejection;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::wire::{Reader, Sink, Wire, WireError};
use crate::wire_struct;
use core::fmt;

/// Results up to this size are sent in full by every replica: a digest would not be shorter.
pub const RESULT_BYTES_FULL_MAX: usize = 32;

/// How firm a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Firmness {
    /// Executed when prepared: 2f+1 equal ones of one view make it final.
    Tentative,
    /// Executed when committed.
    Final,
    /// The answer to a read-only query on a state with nothing tentative in it.
    Read,
}

impl Wire for Firmness {
    fn encode(&self, out: &mut impl Sink) {
        out.push(match self {
            Self::Tentative => 0,
            Self::Final => 1,
            Self::Read => 2,
        });
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::Tentative),
            1 => Ok(Self::Final),
            2 => Ok(Self::Read),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// REPLY: the answer of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The instance that answers.
    pub instance: InstanceId,
    /// The view in which it was executed; tentative replies of different views do not add up.
    pub view: View,
    /// The batch in which it was executed; for reads, the last batch that the state contains; 0 if it is refused by a
    /// state, and not in a batch.
    pub sequence: Sequence,
    /// Whose request.
    pub client: ClientId,
    /// Which request.
    pub timestamp: Timestamp,
    /// How firm.
    pub firmness: Firmness,
    /// What came of it.
    pub outcome: Outcome,
}
wire_struct!(Reply { instance, view, sequence, client, timestamp, firmness, outcome });

impl Reply {
    /// TOO LATE: the sender's state, and no position in it, shows that a request must not be executed any more. See
    /// [`crate::client`], Client 10.
    pub const fn too_late(view: View, request: &Request) -> Self {
        let Request { instance, client, timestamp, .. } = *request;
        let outcome = Outcome::Refused(Refusal::StaleTimestamp);
        Self { instance, view, sequence: Sequence(0), client, timestamp, firmness: Firmness::Final, outcome }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { view, sequence, client, timestamp, firmness, outcome, .. } = self;
        write!(f, "REPLY {firmness:?} {view} {sequence} {client} {timestamp} ")?;
        outcome.fmt(f)
    }
}

impl Spoken for Reply {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        Some(self.client)
    }

    fn cover(&self) -> Cover {
        Cover::Whole
    }

    fn may_overtake(&self) -> bool {
        false
    }

    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)
    }
}
