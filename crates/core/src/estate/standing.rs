//! How a request stands with the state: new, executed, or never to be executed.

use super::Estate;
use crate::clients::Freshness;
use crate::members::{Standing, is_leave};
use crate::message::Request;
use crate::service::Service;

impl<S: Service> Estate<S> {
    /// What the client table and the members say about a request.
    pub fn freshness(&self, request: &Request) -> Freshness<'_> {
        if request.client.identity.is_dynamic() {
            match self.members.standing(request, self.meta.time) {
                Standing::Live if !is_leave(request.client) => {}
                Standing::Live | Standing::Join => return Freshness::New,
                Standing::Last(entry) => return Freshness::Last(entry),
                Standing::Gone(refusal) => return Freshness::Gone(refusal),
            }
        }
        self.clients.check(request.client, request.timestamp)
    }

    /// Whether the request was executed for good, or never will be. What a tentative batch made too late is over as
    /// well: should that be undone, the client asks again.
    pub fn is_over(&self, request: &Request) -> bool {
        match self.freshness(request) {
            Freshness::New => false,
            Freshness::Last(entry) => !self.is_tentative() || entry.sequence != self.executed(),
            Freshness::Gone(_) | Freshness::Stale => true,
        }
    }

    /// Whether it was the batch that may still be undone that ended the session of this request.
    pub fn may_have_session(&self, request: &Request) -> bool {
        self.is_tentative() && request.credential().is_some_and(|credential| self.ended.contains(&credential.session))
    }
}
