//! What a replica does for clients that panic: steps R6 to R8 of the [module](super).

use super::message::{Body, Probe, Stamp};
use super::path::Path;
use super::replica::{Accepted, RingFast};
use crate::cluster::{ClientId, IdentityId};
use crate::machine::{Destination, Duration, Instant, Principal};
use crate::message::{Message, Request};
use crate::protocols::speculative::{Response, Standing};
use crate::rejection::Rejection;
use crate::replica::ReplicaTimer;
use crate::service::{Proposal, Service};
use crate::shares::{Bounds, Room, Shares, owner_of};
use crate::switching::Surroundings;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How long a client that panicked has to be served, in times `client_retry`: 4n + f delays must fit (F13).
const PATIENCE_FACTOR: u64 = 2;

/// A signed request, for which this replica has a timer.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    /// When it stops, unless it knows by then that every correct replica has executed the request.
    until: Instant,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Panics {
    /// At most one of each client, shared among identities ([`crate::shares`]).
    asked: BTreeMap<ClientId, Asked>,
    shares: Shares<IdentityId>,
    /// Every correct replica has executed everything up to this position, as this replica has.
    certain: u64,
    /// The number of the last probe, and when it was sent, if it is under way.
    probe: (u64, Option<Instant>),
}

impl Panics {
    /// A client asks. A timer that runs already goes on: who panics again and again must not put off its end (F17).
    /// Whether there was room.
    pub(super) fn ask(&mut self, request: Request, until: Instant, bounds: Bounds) -> bool {
        let (client, bytes) = (request.client, request.operation.len());
        if self.asked.get(&client).is_some_and(|asked| asked.request.timestamp >= request.timestamp) {
            return true;
        }
        self.forget(client);
        loop {
            match self.shares.room(owner_of(client), bytes, bounds) {
                Room::Free => break,
                Room::InPlaceOf(owner) => {
                    let of_owner = self.asked.iter().filter(|(client, _)| owner_of(**client) == owner);
                    let newest = of_owner.max_by_key(|(_, asked)| asked.until).map(|(client, _)| *client);
                    self.forget(newest.expect("whoever gives way has something"));
                }
                Room::None => return false,
            }
        }
        self.shares.add(owner_of(client), bytes);
        self.asked.insert(client, Asked { request, until });
        true
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.asked.values().map(|asked| asked.request.clone()).collect()
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        if let Some(asked) = self.asked.remove(&client) {
            self.shares.remove(owner_of(client), asked.request.operation.len());
        }
    }

    /// When the first timer comes due.
    pub(super) fn until(&self) -> Option<Instant> {
        self.asked.values().map(|asked| asked.until).min()
    }

    pub(super) const fn is_certain(&self, position: u64) -> bool {
        position <= self.certain
    }

    /// The number of a probe that is to be sent now, unless one is under way. One that takes too long is lost.
    pub(super) fn next_probe(&mut self, now: Instant, patience: Duration) -> Option<u64> {
        if self.probe.1.is_some_and(|since| now - since < patience) {
            return None;
        }
        self.probe = (self.probe.0 + 1, Some(now));
        Some(self.probe.0)
    }

    /// A probe has come back and says that all have come up to here. Whether it was the one that is under way.
    pub(super) fn came_back(&mut self, number: u64, position: u64) -> bool {
        let expected = self.probe.1.is_some() && self.probe.0 == number;
        if expected {
            self.probe.1 = None;
            self.certain = self.certain.max(position);
        }
        expected
    }
}

impl<S: Service> RingFast<S> {
    /// R6: a client's signed request. Whether there is room for it.
    pub(super) fn on_panic(&mut self, s: &mut Surroundings<'_, S>, request: &Request) -> bool {
        let limits = &s.cluster.limits;
        let until = s.now + Duration(PATIENCE_FACTOR * limits.client_retry.0);
        let bounds = Bounds { number: limits.pending_requests_max, bytes: limits.pending_bytes_max };
        let has_room = self.panics.ask(request.clone(), until, bounds);
        if let Some(first) = self.panics.until() {
            s.out.set_timer(ReplicaTimer::Panic, first);
        }
        has_room
    }

    /// R7: tells the clients that panicked what is certain, and asks how far the others are where it is not.
    pub(super) fn look_after_panics(&mut self, s: &mut Surroundings<'_, S>) {
        let mut unknown = false;
        for request in self.panics.requests() {
            match self.base.standing(s, &request) {
                Standing::New => {}
                Standing::Stale => self.panics.forget(request.client),
                Standing::Done { position, history, outcome } if self.panics.is_certain(position) => {
                    let Request { client, timestamp, .. } = request;
                    let instance = self.base.instance;
                    let response = Response { instance, client, timestamp, position, history, outcome };
                    s.out.send(Destination::Client(client), Message::RingCertain(response));
                    self.panics.forget(client);
                }
                Standing::Done { .. } => unknown = true,
            }
        }
        if unknown && let Some(number) = self.panics.next_probe(s.now, s.cluster.limits.client_retry) {
            let path = Path::of_probe(s.cluster, self.sequencer, s.me);
            let body = Body::Probe(Probe { number, pass: 0 });
            let accepted =
                Accepted { path, position: 0, batch: body.digest(), message: self.first_message(s.me, body) };
            self.pass_on(s, accepted);
        }
    }

    /// R8: the time of a client that panicked is over.
    pub(super) fn on_panic_timeout(&mut self, s: &mut Surroundings<'_, S>) {
        self.look_after_panics(s);
        match self.panics.until() {
            Some(until) if until <= s.now => self.base.stop(s, "a client that panicked was not served", false),
            Some(until) => s.out.set_timer(ReplicaTimer::Panic, until),
            None => {}
        }
    }

    /// R7: who executes at this position answers for having what the sequencer has; and the entry, when it comes back,
    /// knows that everybody does.
    pub(super) fn accept_probe(&mut self, s: &mut Surroundings<'_, S>, mut accepted: Accepted) {
        let Accepted { path, position, message, .. } = &mut accepted;
        let from = Principal::Replica(path.at(*position - 1));
        let log = &self.base.ledger.log;
        if *position == path.stamp() {
            let (first, history) = (log.length() + 1, log.history());
            message.stamp = Some(Stamp { first, proposal: Proposal::default(), history });
            return self.pass_on(s, accepted);
        }
        let end = message.stamp.as_ref().map_or(0, |stamp| stamp.first.saturating_sub(1));
        if *position == path.last() {
            if let Body::Probe(Probe { number, .. }) = message.body
                && !self.panics.came_back(number, end)
            {
                s.reject(from, Rejection::Unsolicited);
            }
        } else if !path.executes(*position) {
            self.pass_on(s, accepted);
        } else if end > log.length() {
            self.probes.insert(path.at(0), accepted);
        } else if end < log.anchor().position
            || log.history_at(end) == message.stamp.as_ref().map(|stamp| stamp.history)
        {
            self.pass_on(s, accepted);
        } else {
            s.reject(from, Rejection::OutsideWindow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{InstanceId, Timestamp};
    use bytes::Bytes;

    #[test]
    fn panics_are_bounded_in_number_and_bytes_and_shared_among_identities() {
        let bounds = Bounds { number: 4, bytes: 100 };
        let mut panics = Panics::default();
        let mut ask = |identity, session, timestamp, bytes: usize| {
            let client = ClientId { identity: IdentityId(identity), session };
            let operation = Bytes::from(alloc::vec![7; bytes]);
            let request = Request::new(InstanceId(1), client, Timestamp(timestamp), false, operation);
            panics.ask(request, Instant(timestamp), bounds)
        };
        assert!((0..4).all(|session| ask(1, session, 1, 1)));
        assert!(!ask(1, 4, 1, 1));
        assert!(ask(1, 0, 2, 5), "a newer one in the place of an older one");
        assert!(ask(2, 0, 1, 10), "another identity in the place of what came last");
        assert!(!ask(2, 1, 1, 90));
        let waiting = panics.requests().into_iter().map(|request| (request.client.identity.0, request.client.session));
        assert_eq!(waiting.collect::<Vec<_>>(), [(1, 1), (1, 2), (1, 3), (2, 0)]);
    }
}
