//! What a [pool](super) believes of itself.

use super::{Pool, Turn, Waiting, takes_room};
use crate::cluster::{Cluster, Limits};
use crate::ids::{ClientId, IdentityId, ReplicaId};

impl Pool {
    /// What is true between steps.
    pub(in crate::protocols) fn check_invariants(&self, cluster: &Cluster) {
        self.check_tickets(cluster);
        self.check_room(&cluster.limits);
        let count = |is: fn(IdentityId) -> bool| self.waiting.keys().filter(|client| is(client.identity)).count();
        assert_eq!(self.strangers, count(IdentityId::is_dynamic), "who is not named is counted");
        assert_eq!(self.joins, count(IdentityId::is_joining), "JOINs are counted");
        let of_system = count(|identity| identity == IdentityId::SYSTEM);
        assert!(of_system <= 3 * cluster.replicas.n(), "an INIT, a ruling and an END of each replica");
    }

    /// Each request that waits is known by its client, its ticket and its digest.
    fn check_tickets(&self, cluster: &Cluster) {
        assert_eq!(self.by_digest.len(), self.waiting.len(), "each request has a digest of its own");
        for (client, waiting) in &self.waiting {
            assert_eq!(self.by_digest.get(&waiting.request.digest()), Some(client), "its digest finds it");
            assert!(waiting.ticket < self.next_ticket, "tickets come in their order");
            assert!(waiting.passed_on_by.len() < cluster.replicas.n().max(2), "each other replica passes it on");
        }
        let waits = |(ticket, client): (&u64, &ClientId)| self.waiting.get(client).map(|of| of.ticket) == Some(*ticket);
        assert!(self.watched.iter().all(waits), "what is watched waits");
        assert!(self.unproposed.iter().all(waits), "what is not proposed waits");
        let of_replica = |(id, turn): (&ReplicaId, &Turn)| {
            let is_taken = turn.number <= self.next_turn && self.waiting.contains_key(&turn.client);
            cluster.replicas.contains(*id) && takes_room(turn.client) && is_taken
        };
        assert!(self.passed_on.iter().all(of_replica), "a place is free again when its request is gone");
        assert!(self.reminded.iter().all(of_replica), "so is a turn");
    }

    /// No more waits than may, but for what each replica has passed on.
    pub(super) fn check_room(&self, limits: &Limits) {
        let taking = || self.waiting.iter().filter(|(client, _)| takes_room(**client)).map(|(_, of)| of);
        let bytes = |of: &Waiting| of.request.operation.len();
        let (number, sum) = (taking().count(), taking().map(|of| bytes(of)).sum::<usize>());
        self.shares.check_invariants(number, sum);
        let kept: usize = self.passed_on.values().map(|turn| bytes(&self.waiting[&turn.client])).sum();
        assert!(number <= limits.pending_requests_max + self.passed_on.len(), "pending_requests_max, and the places");
        assert!(sum <= limits.pending_bytes_max + kept, "pending_bytes_max, and what has the places");
    }
}
