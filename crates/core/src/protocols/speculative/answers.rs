//! Answers of replicas that speculate: steps L2 and Q2, and Z3 of ZLight.

use super::Speculation;
use crate::auth::Keyring;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, Timestamp};
use crate::machine::Destination;
use crate::message::{Outcome, RESULT_BYTES_FULL_MAX, Request};
use crate::protocols::speculative::Speaker;
use crate::rejection::Rejection;
use crate::service::Service;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::switching::Surroundings;
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

/// The replica that sends the full result of a request; the others send its digest.
pub(crate) fn designated(cluster: &Cluster, client: ClientId, timestamp: Timestamp) -> ReplicaId {
    let n = cluster.n as u64;
    // Both are numbers of the client's choice.
    ReplicaId(((u64::from(client.session) % n + timestamp.0 % n) % n) as u8)
}

/// What this replica sends of an outcome: all of it, or the digest of a long result that another one sends.
pub(crate) fn abridged(
    cluster: &Cluster,
    me: ReplicaId,
    client: ClientId,
    timestamp: Timestamp,
    outcome: &Outcome,
) -> Outcome {
    match outcome {
        Outcome::Done { result, .. }
            if result.len() > RESULT_BYTES_FULL_MAX && designated(cluster, client, timestamp) != me =>
        {
            Outcome::DoneDigest(outcome.digest())
        }
        outcome => outcome.clone(),
    }
}

impl<S: Service> Speculation<S> {
    /// Executes what is logged and answers the clients.
    pub(crate) fn execute_and_respond(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let instance = self.instance;
        let mut position = self.ledger.estate.position();
        self.execute(s, |s, logged, request, outcome| {
            position += 1;
            let outcome = abridged(s.cluster, s.me, request.client, request.timestamp, outcome);
            let response = Response::to(instance, request, position, logged.history, outcome);
            s.send(Destination::Client(request.client), response);
        });
    }

    /// Answers a request that is in the history.
    pub(crate) fn respond(
        &self,
        s: &mut Surroundings<'_, impl Speaker>,
        request: &Request,
        position: u64,
        history: Digest,
        outcome: &Outcome,
    ) {
        let response = Response::to(self.instance, request, position, history, outcome.clone());
        s.send(Destination::Client(request.client), response);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::IdentityId;

    /// A client chooses both, and every replica computes with them.
    #[test]
    fn there_is_a_designated_replica_whatever_a_client_calls_itself_and_its_request() {
        let cluster = Cluster::of([0; 16], 4).unwrap();
        for (session, timestamp) in [(1, u64::MAX), (u32::MAX, u64::MAX), (u32::MAX, 0)] {
            let client = ClientId { identity: IdentityId(1), session };
            assert!(cluster.contains(designated(&cluster, client, Timestamp(timestamp))));
        }
    }
}
