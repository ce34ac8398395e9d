//! How a request stands with the state: new, executed, or never to be executed.

use super::Estate;
use crate::clients::{Entry, Freshness};
use crate::ids::{ClientId, Timestamp};
use crate::members::Standing;
use crate::message::{Outcome, Refusal, Request};
use crate::service::Service;

impl<S: Service> Estate<S> {
    /// What the client table and the members say about a request.
    pub fn freshness(&self, request: &Request) -> Freshness<'_> {
        if request.client.identity.is_dynamic() {
            match self.members.standing(request, self.meta.time) {
                Standing::Live if !request.is_leave() => {}
                Standing::Live | Standing::Join => return Freshness::New,
                Standing::Last(entry) => return Freshness::Last(entry),
                Standing::Gone(Refusal::StaleTimestamp) => return Freshness::Stale,
                Standing::Gone(refusal) => return Freshness::Gone(refusal),
            }
        }
        self.clients.check(request.client, request.timestamp)
    }

    /// What is answered to a request that must not be executed (any more); `None` if it may be. prac-F26: at execution
    /// it is decided, the same at every replica.
    pub(super) fn settled(&self, request: &Request) -> Option<Outcome> {
        match self.freshness(request) {
            Freshness::New => None,
            Freshness::Last(entry) => Some(entry.outcome.clone()),
            Freshness::Gone(refusal) => Some(Outcome::Refused(refusal)),
            Freshness::Stale => Some(Outcome::Refused(Refusal::StaleTimestamp)),
        }
    }

    /// Whether the session has had this request executed, or a later one, and is still in the table. Other than that a
    /// request is stale, this cannot be news to whoever has logged the same history and executed less of it: there the
    /// session's later request is logged, and not executed yet.
    pub fn repeats(&self, request: &Request) -> bool {
        self.clients.last(request.client).is_some_and(|last| last.timestamp >= request.timestamp)
    }

    /// Whether the request of this number of a client that the cluster file names was executed, or never will be.
    pub fn has_settled(&self, client: ClientId, timestamp: Timestamp) -> bool {
        !matches!(self.clients.check(client, timestamp), Freshness::New)
    }

    /// Whether what a client was answered last will not be undone. Its position tells: batches are counted in each
    /// instance anew, and it may be from an earlier one.
    pub fn is_for_good(&self, entry: &Entry) -> bool {
        self.tentative.as_ref().is_none_or(|tentative| entry.position <= tentative.position)
    }

    /// Whether the request was executed for good, or never will be. What a tentative batch made too late is over as
    /// well: should that be undone, the client asks again.
    pub fn is_over(&self, request: &Request) -> bool {
        match self.freshness(request) {
            Freshness::New => false,
            Freshness::Last(entry) => self.is_for_good(entry),
            Freshness::Gone(_) | Freshness::Stale => true,
        }
    }

    /// Whether some identity has all the sessions that it may have, and whether sessions of one were evicted.
    pub fn crowding(&self) -> (bool, bool) {
        self.clients.crowding()
    }

    /// Whether it was the batch that may still be undone that ended the session of this request.
    pub fn may_have_session(&self, request: &Request) -> bool {
        self.is_tentative() && request.credential().is_some_and(|credential| self.ended.contains(&credential.session))
    }
}
