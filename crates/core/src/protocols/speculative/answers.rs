//! Answers of replicas that speculate: Speculation 2 of the [module](super), Quorum 2 of
//! [`crate::protocols::quorum`] and ZLight 3 of [`crate::protocols::zlight`].

use super::speculation::Speculation;
use crate::digest::Digest;
use crate::ids::{ClientId, ReplicaId, Timestamp};
use crate::machine::Destination;
use crate::message::{Outcome, RESULT_BYTES_FULL_MAX, Request};
use crate::protocols::speculative::{Response, Speaker};
use crate::replicas::Replicas;
use crate::service::Service;
use crate::switching::Surroundings;

/// The replica that sends the full result of a request; the others send its digest.
pub(crate) fn designated(replicas: Replicas, client: ClientId, timestamp: Timestamp) -> ReplicaId {
    let n = replicas.n() as u64;
    // Both are numbers of the client's choice.
    ReplicaId(((u64::from(client.session) % n + timestamp.0 % n) % n) as u8)
}

/// What this replica sends of an outcome: all of it, or the digest of a long result that another one sends.
pub(crate) fn abridged(
    replicas: Replicas,
    me: ReplicaId,
    client: ClientId,
    timestamp: Timestamp,
    outcome: &Outcome,
) -> Outcome {
    match outcome {
        Outcome::Done { result, .. }
            if result.len() > RESULT_BYTES_FULL_MAX && designated(replicas, client, timestamp) != me =>
        {
            Outcome::DoneDigest(outcome.digest())
        }
        outcome => outcome.clone(),
    }
}

impl<S: Service> Speculation<S> {
    /// Executes what is logged and answers the clients.
    pub(crate) fn execute_and_respond(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let (instance, replicas) = (self.what.number, self.what.replicas);
        let mut position = self.ledger.estate.position();
        self.execute(s, |s, logged, request, outcome| {
            position += 1;
            let outcome = abridged(replicas, s.me, request.client, request.timestamp, outcome);
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
        s.step("Speculation 2");
        let response = Response::to(self.what.number, request, position, history, outcome.clone());
        s.send(Destination::Client(request.client), response);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::IdentityId;

    /// A client chooses both, and every replica computes with them.
    #[test]
    fn there_is_a_designated_replica_whatever_a_client_calls_itself_and_its_request() {
        let replicas = Replicas::of(4).unwrap();
        for (session, timestamp) in [(1, u64::MAX), (u32::MAX, u64::MAX), (u32::MAX, 0)] {
            let client = ClientId { identity: IdentityId(1), session };
            assert!(replicas.contains(designated(replicas, client, Timestamp(timestamp))));
        }
    }
}
