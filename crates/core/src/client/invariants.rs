//! What is true of a client between steps.

use super::Client;
use super::call::Call;
use crate::ids::{ClientId, InstanceId, Principal};

impl Client {
    /// Asserts what is true of this client between steps, whatever replicas say. In debug builds each step ends with
    /// it.
    ///
    /// # Panics
    /// If something is not.
    pub fn check_invariants(&self) {
        let cluster = &self.cluster;
        assert!(self.instance >= InstanceId(1), "the first instance is 1");
        assert_eq!(self.asked, cluster.specification(self.instance), "what is asked is what the schedule says");
        let is_named = matches!(self.keyring.me(), Principal::Client(of) if of.identity == self.id.identity);
        assert!(is_named || self.credential.is_some(), "who is not named shows its key and session");
        assert!(self.call.is_none() || self.joining.is_none(), "one request at a time");
        assert!(self.active.keys().all(|id| cluster.replicas.contains(*id)), "replicas say which instance is active");
        assert!(self.differed.keys().all(|id| cluster.replicas.contains(*id)), "replicas differ");
        assert!(self.differed.values().all(|times| *times > 0), "only who differed is counted");
        let believed = self.active.values().filter(|claim| **claim > self.instance).count();
        assert!(believed <= cluster.replicas.faults(), "f+1 that name a later instance convince (step 9)");
        self.memory.check_invariants(cluster);
        self.check_joining();
        if let Some(call) = &self.call {
            self.check_call(call);
            call.check_invariants(self.asked.replicas);
        }
    }

    /// Door 1.
    fn check_joining(&self) {
        let Some(joining) = &self.joining else { return };
        assert!(self.credential.is_some(), "whoever is named need not join");
        assert!(joining.stamps.len() < self.cluster.replicas.strong(), "who has 2f+1 cookies asks for no more");
        assert!(joining.stamps.iter().all(|(id, stamp)| stamp.replica == *id), "one cookie of each replica");
        assert!(self.retry_at.is_some(), "it asks for cookies again");
        assert!(self.deadline_at.is_some(), "it gives up at last");
    }

    /// The request that is outstanding is this client's, and is not waited for in vain.
    fn check_call(&self, call: &Call) {
        let ClientId { identity, .. } = self.id;
        assert_eq!(call.request.client, self.id, "a client asks in its own name");
        assert_eq!(call.request.instance, self.instance, "it asks the instance that it takes for the active one");
        let is_counted = call.request.timestamp <= self.last_timestamp || identity.is_joining();
        assert!(is_counted, "a timestamp is used once");
        assert_eq!(call.request.credential(), self.credential, "key and session are those of the client");
        let asks_again = self.retry_at.is_some_and(|at| at <= call.retry_at);
        assert!(asks_again, "everybody is asked in time (Client 4)");
        let gives_up = call.deadline.is_none_or(|deadline| self.deadline_at.is_some_and(|at| at <= deadline));
        assert!(gives_up, "it gives up at its deadline (Client 4)");
    }
}
