//! The answers of replicas that speculate, as they travel.

use crate::auth::Keyring;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, Principal, Timestamp};
use crate::message::{Outcome, Request};
use crate::rejection::Rejection;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::wire::{Reader, Sink, Wire, WireError};
use crate::wire_struct;
use core::fmt;

/// RESP: a speculative answer. n equal ones, one of them with the result in full, commit the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The instance that answers.
    pub instance: InstanceId,
    /// Whose request.
    pub client: ClientId,
    /// Which request.
    pub timestamp: Timestamp,
    /// Its position in the history, or the init history's end.
    pub position: u64,
    /// The history's digest there.
    pub history: Digest,
    /// What came of it.
    pub outcome: Outcome,
}

wire_struct!(Response { instance, client, timestamp, position, history, outcome });

impl Response {
    /// The answer of an instance to a request.
    pub(crate) const fn to(
        instance: InstanceId,
        request: &Request,
        position: u64,
        history: Digest,
        outcome: Outcome,
    ) -> Self {
        let Request { client, timestamp, .. } = *request;
        Self { instance, client, timestamp, position, history, outcome }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, client, timestamp, position, history, outcome } = self;
        write!(f, "RESP {instance} p{position} {history:?} {client} {timestamp} {outcome}")
    }
}

impl Spoken for Response {
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

/// CERTAIN: the answer of a replica that knows it for good: every correct one has executed the request, or 2f+1 have.
/// f+1 equal ones commit it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certain(
    /// The answer.
    pub Response,
);

impl Wire for Certain {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(Wire::decode(reader)?))
    }
}

impl fmt::Display for Certain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Response { instance, client, timestamp, position, history, outcome } = &self.0;
        write!(f, "CERTAIN {instance} p{position} {history:?} {client} {timestamp} {outcome}")
    }
}

impl Spoken for Certain {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.0.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        Some(self.0.client)
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
