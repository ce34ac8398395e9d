//! What a replica does for clients that panic: steps R6 to R8 of the [module](super).

use super::held::UNDER_WAY_MAX;
use super::message::{Accepted, Body, Probe, Stamp};
use super::path::Path;
use super::replica::{RingFast, WINDOW};
use crate::cluster::Limits;
use crate::ids::{ClientId, Principal, ReplicaId};
use crate::machine::Destination;
use crate::message::Request;
use crate::protocols::speculative::{Certain, Response, Standing};
use crate::registry::Message;
use crate::rejection::{Account, Rejection};
use crate::replica::ReplicaTimer;
use crate::service::{Proposal, Service};
use crate::switching::{Ledger, Surroundings};
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How long a client that panicked has to be served, in times `client_retry`: 4n + f delays must fit (F13).
const PATIENCE_FACTOR: u64 = 2;

/// The attempt that a signed request is: it decides the entry.
const SIGNED_ATTEMPT: u64 = 2;

/// Signed requests that clients have sent here have this part of what may wait for an entry, in number and in bytes.
/// Those that another replica hands on have as much room again: what a correct one has room for, its entry has room for
/// as well, and no client can take that.
const ROOM_PARTS: usize = 8;

/// The clients of one identity have this part of it.
const IDENTITY_PARTS: usize = 4;

/// Batches that this entry has under way when those of signed requests wait: they have as much room again as others.
/// It is half of what others accept.
const SIGNED_UNDER_WAY_MAX: usize = 2 * UNDER_WAY_MAX;

/// A signed request.
#[derive(Clone, Debug)]
struct Asked {
    request: Request,
    /// When it stops, unless it knows by then that every correct replica has executed the request. Of a request that
    /// was handed on, the replica that did so has the timer.
    until: Option<Instant>,
    /// When it left this entry for the last time.
    left: Option<Instant>,
}

/// What one party has brought: the last request of each client.
#[derive(Clone, Debug, Default)]
struct Shelf {
    asked: BTreeMap<ClientId, Asked>,
    bytes: usize,
}

impl Shelf {
    fn forget(&mut self, client: ClientId) {
        self.bytes -= self.asked.remove(&client).map_or(0, |asked| asked.request.operation.len());
    }
}

/// Whether a part of what may wait for an entry has room for another request of so many bytes, beside so many requests
/// and bytes. There is always room for one.
fn has_room((requests, bytes): (usize, usize), length: usize, part: usize, limits: &Limits) -> bool {
    requests == 0 || requests < limits.pending_requests_max / part && bytes + length <= limits.pending_bytes_max / part
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Panics {
    /// By who brought it: an identity's clients, or a replica.
    shelves: BTreeMap<Account, Shelf>,
    /// Every correct replica has executed everything up to this position, as this replica has.
    certain: u64,
    /// The number of the last probe, and when it was sent, if it is under way.
    probe: (u64, Option<Instant>),
}

impl Panics {
    /// A client asks, or a replica hands its request on. A timer that runs already goes on: who panics again and again
    /// must not put off its end (F17). Whether there was room.
    fn ask(&mut self, by: Account, request: Request, until: Instant, limits: &Limits) -> bool {
        let Request { client, timestamp, .. } = request;
        let is_handed_on = matches!(by, Account::Replica(_));
        let is_direct = |of: &Account| !matches!(of, Account::Replica(_));
        // What the client itself has brought need not be kept twice.
        let counts = |of: &Account| *of == by || is_handed_on && is_direct(of);
        let is_known =
            |shelf: &Shelf| shelf.asked.get(&client).is_some_and(|asked| asked.request.timestamp >= timestamp);
        if self.shelves.iter().any(|(of, shelf)| counts(of) && is_known(shelf)) {
            return true;
        }
        self.forget(by, client);
        let length = request.operation.len();
        let sum = |of: &dyn Fn(&Account) -> bool| {
            let shelves = self.shelves.iter().filter(|(account, _)| of(account));
            shelves.fold((0, 0), |sum, (_, shelf)| (sum.0 + shelf.asked.len(), sum.1 + shelf.bytes))
        };
        let own = sum(&|of| *of == by);
        let room = match is_handed_on {
            true => has_room(own, length, ROOM_PARTS, limits),
            false => {
                has_room(sum(&is_direct), length, ROOM_PARTS, limits)
                    && has_room(own, length, ROOM_PARTS * IDENTITY_PARTS, limits)
            }
        };
        if room {
            let shelf = self.shelves.entry(by).or_default();
            shelf.bytes += length;
            let until = (!is_handed_on).then_some(until);
            shelf.asked.insert(client, Asked { request, until, left: None });
        }
        room
    }

    fn requests(&self) -> Vec<(Account, Request)> {
        let all = self.shelves.iter().flat_map(|(by, shelf)| shelf.asked.values().map(move |asked| (*by, asked)));
        all.map(|(by, asked)| (by, asked.request.clone())).collect()
    }

    fn forget(&mut self, by: Account, client: ClientId) {
        if let Some(shelf) = self.shelves.get_mut(&by) {
            shelf.forget(client);
            self.shelves.retain(|_, shelf| !shelf.asked.is_empty());
        }
    }

    /// When the first timer comes due.
    fn until(&self) -> Option<Instant> {
        self.shelves.values().flat_map(|shelf| shelf.asked.values()).filter_map(|asked| asked.until).min()
    }

    const fn is_certain(&self, position: u64) -> bool {
        position <= self.certain
    }

    /// The number of a probe that is to be sent now, unless one is under way. One that takes too long is lost.
    fn next_probe(&mut self, now: Instant, patience: Duration) -> Option<u64> {
        if self.probe.1.is_some_and(|since| now - since < patience) {
            return None;
        }
        self.probe = (self.probe.0 + 1, Some(now));
        Some(self.probe.0)
    }

    /// A probe has come back and says that all have come up to here. Whether it was the one that is under way.
    fn came_back(&mut self, number: u64, position: u64) -> bool {
        let expected = self.probe.1.is_some() && self.probe.0 == number;
        if expected {
            self.probe.1 = None;
            self.certain = self.certain.max(position);
        }
        expected
    }
}

impl<S: Service> RingFast<S> {
    /// Whose requests it has perhaps not answered.
    pub(crate) fn waiting_clients(&self) -> impl Iterator<Item = ClientId> {
        let signed = self.panics.shelves.values().flat_map(|shelf| shelf.asked.keys().copied());
        self.queue().clients().chain(self.base.unconfirmed_clients()).chain(signed)
    }

    /// R6: a signed request that is new. Its entry takes it from where it is kept; whoever else has it from its client
    /// hands it on.
    pub(super) fn on_panic(&mut self, s: &mut Surroundings<'_, S>, from: Principal, request: Request) {
        let entry = Self::signed_entry(s, &request);
        if entry != s.me && !from.is_client() {
            return s.reject(from, Rejection::WrongEntry);
        }
        if !self.keep_panic(s, from, &request) {
            return s.reject(from, Rejection::Overload);
        }
        if entry != s.me {
            // It may have come to nobody else.
            s.out.send(Destination::Replica(entry), Message::Request(request));
        }
    }

    /// Keeps a signed request. Whether there is room for it.
    pub(super) fn keep_panic(&mut self, s: &mut Surroundings<'_, S>, from: Principal, request: &Request) -> bool {
        let limits = &s.cluster.limits;
        let until = s.now + Duration(PATIENCE_FACTOR * limits.client_retry.0);
        let by = Account::of(from, s.keyring.keys());
        let has_room = self.panics.ask(by, request.clone(), until, limits);
        if let Some(first) = self.panics.until() {
            s.out.set_timer(ReplicaTimer::Panic, first);
        }
        has_room
    }

    fn signed_entry(s: &Surroundings<'_, S>, request: &Request) -> ReplicaId {
        Path::entry_for(s.cluster, request.client, request.timestamp, SIGNED_ATTEMPT)
    }

    /// R6: the signed requests whose entry this is leave; again if they are new after so long. They wait in no queue,
    /// where another request of their client could be in their place, with MACs that hold for this replica only; nor
    /// for batches that are under way, which may have died of such MACs.
    pub(super) fn send_signed(&mut self, s: &mut Surroundings<'_, S>) {
        let limits = &s.cluster.limits;
        loop {
            let (batches, bytes) = self.batches.under_way(s.me, s.now, limits.client_retry);
            if batches >= SIGNED_UNDER_WAY_MAX || bytes >= 2 * WINDOW * limits.batch_bytes_max {
                return;
            }
            let requests = self.signed_batch(s);
            if requests.is_empty() {
                return;
            }
            self.send_batch(s, requests);
        }
    }

    fn signed_batch(&mut self, s: &mut Surroundings<'_, S>) -> Vec<Request> {
        let limits = &s.cluster.limits;
        let most = usize::try_from(limits.history_interval).unwrap_or(usize::MAX).min(limits.batch_requests_max);
        let (mut batch, mut clients, mut bytes) = (Vec::new(), BTreeSet::new(), 0);
        let Self { base, panics, .. } = self;
        for asked in panics.shelves.values_mut().flat_map(|shelf| shelf.asked.values_mut()) {
            let is_under_way = asked.left.is_some_and(|left| s.now - left < limits.client_retry);
            if is_under_way || Self::signed_entry(s, &asked.request) != s.me || !clients.insert(asked.request.client) {
                continue;
            }
            bytes += asked.request.operation.len();
            if batch.len() >= most || bytes > limits.batch_bytes_max && !batch.is_empty() {
                break;
            }
            if base.standing(s, &asked.request) == Standing::New {
                asked.left = Some(s.now);
                batch.push(asked.request.clone());
            }
        }
        batch
    }

    /// R7: tells the clients that panicked what is certain, and asks how far the others are where it is not.
    pub(super) fn look_after_panics(&mut self, s: &mut Surroundings<'_, S>) {
        let mut unknown = false;
        for (by, request) in self.panics.requests() {
            let client = request.client;
            match self.base.standing(s, &request) {
                Standing::New => {}
                // Whoever has handed it on looks after it.
                Standing::Done { .. } if matches!(by, Account::Replica(_)) => self.panics.forget(by, client),
                Standing::Stale => self.panics.forget(by, client),
                Standing::Done { position, history, outcome } if self.panics.is_certain(position) => {
                    let response = Response::to(self.base.instance, &request, position, history, outcome);
                    s.out.send(Destination::Client(client), Message::RingCertain(Certain(response)));
                    self.panics.forget(by, client);
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
            let (first, history, effects) = (log.length() + 1, log.history(), self.base.ledger.estate.effects());
            message.stamp = Some(Stamp { first, proposal: Proposal::default(), history, effects });
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
        } else if end < log.anchor().position || self.has_all_of(message.stamp.as_ref()) {
            self.pass_on(s, accepted);
        } else {
            s.reject(from, Rejection::OutsideWindow);
        }
    }

    /// Whether this replica had the same history and state at the end of what the sequencer has.
    fn has_all_of(&self, stamp: Option<&Stamp>) -> bool {
        let Some(Stamp { first, history, effects, .. }) = stamp else { return false };
        let (end, Ledger { estate, log, .. }) = (first.saturating_sub(1), &self.base.ledger);
        log.history_at(end) == Some(*history) && estate.effects_at(end) == Some(*effects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{IdentityId, InstanceId, Timestamp};
    use bytes::Bytes;

    const SOON: Instant = Instant(5);

    fn request(identity: u32, session: u32, length: usize) -> Request {
        let client = ClientId { identity: IdentityId(identity), session };
        Request::new(InstanceId(1), client, Timestamp(1), false, Bytes::from(alloc::vec![7; length]))
    }

    /// How many requests of so many bytes a party finds room for.
    fn fits(panics: &mut Panics, by: Account, identity: u32, length: usize, limits: &Limits) -> usize {
        (0..200).filter(|session| panics.ask(by, request(identity, *session, length), SOON, limits)).count()
    }

    #[test]
    fn signed_requests_are_bounded_in_number_and_in_bytes() {
        let limits = Limits { pending_requests_max: 320, pending_bytes_max: 32_000, ..Limits::default() };
        let clients = |identity| Account::Clients(IdentityId(identity));
        let mut panics = Panics::default();
        let sum: Vec<usize> = (1..6).map(|id| fits(&mut panics, clients(id), id, 1, &limits)).collect();
        assert_eq!(sum, [10, 10, 10, 10, 0], "a part for each identity, within that for all");
        let mut panics = Panics::default();
        assert_eq!(fits(&mut panics, clients(1), 1, 400, &limits), 2);
        assert_eq!(fits(&mut panics, Account::Replica(ReplicaId(1)), 2, 400, &limits), 10);
        assert_eq!(fits(&mut panics, Account::Replica(ReplicaId(2)), 3, 1, &limits), 40);
        let mut panics = Panics::default();
        assert_eq!(fits(&mut panics, clients(1), 1, 1 << 20, &limits), 1, "there is room for one of any size");
        panics.forget(clients(1), request(1, 0, 0).client);
        assert_eq!(fits(&mut panics, clients(1), 1, 1, &limits), 10);
    }

    /// What its client has brought is not kept again for each replica that hands it on, nor has it another timer.
    #[test]
    fn what_is_here_already_is_not_kept_twice() {
        let limits = Limits::default();
        let mut panics = Panics::default();
        assert!(panics.ask(Account::Replica(ReplicaId(1)), request(1, 1, 9), SOON, &limits));
        assert_eq!(panics.until(), None, "who has handed it on has the timer");
        assert!(panics.ask(Account::Clients(IdentityId(1)), request(1, 1, 9), SOON, &limits));
        assert_eq!(panics.until(), Some(SOON));
        assert!(panics.ask(Account::Replica(ReplicaId(2)), request(1, 1, 9), SOON, &limits));
        assert_eq!(panics.requests().len(), 2);
    }
}
