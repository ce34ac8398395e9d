//! The signed requests of clients that panicked, by whoever brought them: Ring 6 of the [module](super). Each has room
//! of its own, and nobody takes another's.

use crate::cluster::{Cluster, Limits};
use crate::ids::ClientId;
use crate::message::Request;
use crate::rejection::Account;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Signed requests that clients have sent here have this part of what may wait for an entry, in number and in bytes.
/// Those that another replica hands on have as much room again: what a correct one has room for, its entry has room for
/// as well, and no client can take that.
const ROOM_PARTS: usize = 8;

/// The clients of one identity have this part of it.
const IDENTITY_PARTS: usize = 4;

/// A signed request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    /// When it stops, unless it knows by then that every correct replica has executed the request. Of a request that
    /// was handed on, the replica that did so has the timer.
    pub(super) until: Option<Instant>,
    /// When it left this entry for the last time.
    pub(super) left: Option<Instant>,
}

/// What one party has brought: the last request of each client.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    pub(super) asked: BTreeMap<ClientId, Asked>,
    bytes: usize,
}

impl Shelf {
    pub(super) fn forget(&mut self, client: ClientId) {
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
    pub(super) shelves: BTreeMap<Account, Shelf>,
    /// Every correct replica has executed everything up to this position, as this replica has.
    certain: u64,
    /// The number of the last probe, and when it was sent, if it is under way.
    pub(super) probe: (u64, Option<Instant>),
}

impl Panics {
    /// Who has panicked and is not served yet.
    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.shelves.values().flat_map(|shelf| shelf.asked.keys().copied())
    }

    /// Whether this very request is kept, with this very signature, which was found to hold.
    pub(super) fn has_checked(&self, request: &Request) -> bool {
        let of_client = self.shelves.values().filter_map(|shelf| shelf.asked.get(&request.client));
        let proved = |of: &Request| (of.instance, of.digest()) == (request.instance, request.digest());
        let mut same = of_client.filter(|asked| proved(&asked.request));
        same.any(|asked| asked.request.authentication.signature == request.authentication.signature)
    }

    /// A client asks, or a replica hands its request on. A timer that runs already goes on: who panics again and again
    /// must not put off its end (ring-F17). Whether there was room.
    pub(super) fn ask(&mut self, by: Account, request: Request, until: Instant, limits: &Limits) -> bool {
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

    pub(super) fn requests(&self) -> Vec<(Account, Request)> {
        let all = self.shelves.iter().flat_map(|(by, shelf)| shelf.asked.values().map(move |asked| (*by, asked)));
        all.map(|(by, asked)| (by, asked.request.clone())).collect()
    }

    pub(super) fn forget(&mut self, by: Account, client: ClientId) {
        if let Some(shelf) = self.shelves.get_mut(&by) {
            shelf.forget(client);
            self.shelves.retain(|_, shelf| !shelf.asked.is_empty());
        }
    }

    /// When the first timer comes due.
    pub(super) fn until(&self) -> Option<Instant> {
        self.shelves.values().flat_map(|shelf| shelf.asked.values()).filter_map(|asked| asked.until).min()
    }

    /// What is true between steps, where the log is so long.
    pub(super) fn check_invariants(&self, cluster: &Cluster, length: u64) {
        let limits = &cluster.limits;
        assert!(self.certain <= length, "what everybody has this replica has as well (Ring 7)");
        assert!(self.probe.1.is_none() || self.probe.0 > 0, "a probe that is under way has a number");
        let is_direct = |by: &Account| !matches!(by, Account::Replica(_));
        for (by, shelf) in &self.shelves {
            assert!(!shelf.asked.is_empty(), "who has brought nothing has no shelf");
            let bytes: usize = shelf.asked.values().map(|asked| asked.request.operation.len()).sum();
            assert_eq!(shelf.bytes, bytes, "the bytes of all are counted");
            let parts = if is_direct(by) { ROOM_PARTS * IDENTITY_PARTS } else { ROOM_PARTS };
            let most = (limits.pending_requests_max / parts).max(1);
            assert!(shelf.asked.len() <= most, "each keeps to its part of pending_requests_max");
            let is_one = shelf.asked.len() == 1;
            assert!(is_one || bytes <= limits.pending_bytes_max / parts, "each keeps to its part of pending_bytes_max");
            let has_timer = shelf.asked.values().all(|asked| asked.until.is_some() == is_direct(by));
            assert!(has_timer, "whom the client has asked has the timer (Ring 7)");
            assert!(shelf.asked.iter().all(|(client, asked)| asked.request.client == *client), "one of each client");
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{IdentityId, InstanceId, ReplicaId, Timestamp};
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
