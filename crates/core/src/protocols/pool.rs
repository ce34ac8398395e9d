//! Requests that wait to be ordered: at most one per client, first come first served, bounded in number and bytes, and
//! shared among identities ([`crate::shares`]).
//!
//! **What a replica passes on has a place.** A backup that watches a request leaves its view if the request is not
//! ordered in time. So a correct primary must have room for what is watched, whoever else fills its pool, and whoever's
//! request it is. For every other replica it keeps one place beyond its bounds: a request that this replica has passed
//! on and for which there was no room, or would be none any more, neither needs any nor gives way. A liar's place is
//! its own.
//!
//! **Who reminds has the next turn.** A client with many sessions may ask the primary for all of them, and a backup for
//! the last one first: the backup would wait for the whole queue. So a request that a replica passes on for the second
//! time comes before all others but an INIT, and so does one that has a replica's place. If the primary has another one
//! of the same client, which is no older, that one does: its execution ends both. A backup reminds of what it
//! has watched longest, and of nothing else, and a primary itself of what it has. Turns come in the order in which they
//! were taken, and each replica has one at a time, until the request is executed: so what one reminds of waits for the
//! batches in flight and for fewer than 2n others, however long the queue is, and a liar brings forward one.
//!
//! The place is free again when the request is executed, and not when it is proposed: what is proposed waits on, and
//! comes back when the view ends. So no more than n − 1 requests ever wait beyond the bounds. It is soon enough. What a
//! correct primary has proposed it executes, or it leaves its view in any case; what its state says is over it forgets;
//! and a backup passes on again, time and again, what it has watched longest.
//!
//! **What the system asks needs no room.** An INIT may be longer than all that clients may have waiting, and before it
//! nothing else is ordered. Each replica has one, in its own name, so these are n.

mod invariants;

use crate::cluster::Limits;
use crate::digest::Digest;
use crate::ids::{ClientId, IdentityId, ReplicaId, Timestamp};
use crate::joining::JOINS_PENDING_MAX;
use crate::message::{Request, Vouched};
use crate::rejection::Rejection;
use crate::shares::{Bounds, Room, Shares, owner_of};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

#[derive(Clone, Debug)]
struct Waiting {
    request: Request,
    ticket: u64,
    /// Who has passed it on: the next time it is a reminder. At most n − 1.
    passed_on_by: Vec<ReplicaId>,
}

/// Who comes before the queue.
#[derive(Clone, Copy, Debug)]
struct Turn {
    client: ClientId,
    /// Turns are taken in this order.
    number: u64,
}

/// All that there was of a waiting request.
#[derive(Debug)]
struct Taken {
    waiting: Box<Waiting>,
    is_watched: bool,
    is_unproposed: bool,
    /// Whose place it had, and of whom it had turns.
    place: Option<(ReplicaId, Turn)>,
    turns: Vec<(ReplicaId, Turn)>,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(in crate::protocols) struct Pool {
    /// The newest request of each client that was not executed yet. Boxed: the map moves its entries about.
    waiting: BTreeMap<ClientId, Box<Waiting>>,
    /// The same requests by digest: a batch that refers to one says nothing else of it.
    by_digest: BTreeMap<Digest, ClientId>,
    /// Those that the primary is expected to order in time, in arrival order.
    watched: BTreeMap<u64, ClientId>,
    /// Those not proposed in the current view, in arrival order.
    unproposed: BTreeMap<u64, ClientId>,
    next_ticket: u64,
    next_turn: u64,
    shares: Shares<IdentityId>,
    /// Whose waiting request has the place of what this replica passes on.
    passed_on: BTreeMap<ReplicaId, Turn>,
    /// Whose waiting request this replica has reminded of.
    reminded: BTreeMap<ReplicaId, Turn>,
    /// How many are of clients that the cluster file does not name: half of the places are for the others. And how
    /// many of those ask to join.
    strangers: usize,
    joins: usize,
}

impl Pool {
    /// Adds a request that a replica passes on, or (`None`) its client itself asks; a newer one of the same client
    /// replaces an older one. `Ok(false)`: known already; then a copy from the client itself takes the place of the old
    /// one, whose proof somebody may have spoilt for others.
    pub(in crate::protocols) fn add(
        &mut self,
        request: Request,
        from: Option<ReplicaId>,
        limits: &Limits,
    ) -> Result<bool, Rejection> {
        let client = request.client;
        let added = self.add_or_replace(request, from, limits);
        // What waits in its place, as late or later, frees of it whoever passes it on as well as it would itself.
        let waits = matches!(added, Ok(_) | Err(Rejection::StaleTimestamp | Rejection::ReusedTimestamp));
        if let Some(from) = from.filter(|_| waits && takes_room(client))
            && let Some(waiting) = self.waiting.get_mut(&client)
        {
            if waiting.passed_on_by.contains(&from) {
                self.remind(from, client);
            } else {
                waiting.passed_on_by.push(from);
            }
        }
        added
    }

    /// A replica reminds of a client's waiting request, which has a turn if that replica has none yet.
    pub(in crate::protocols) fn remind(&mut self, from: ReplicaId, client: ClientId) {
        if takes_room(client) && self.waiting.contains_key(&client) && !self.reminded.contains_key(&from) {
            let turn = self.take_turn(client);
            self.reminded.insert(from, turn);
        }
    }

    const fn take_turn(&mut self, client: ClientId) -> Turn {
        self.next_turn += 1;
        Turn { client, number: self.next_turn }
    }

    fn add_or_replace(
        &mut self,
        request: Request,
        from: Option<ReplicaId>,
        limits: &Limits,
    ) -> Result<bool, Rejection> {
        let (client, direct) = (request.client, from.is_none());
        if let Some(old) = self.waiting.get_mut(&client) {
            if old.request.timestamp > request.timestamp {
                return Err(Rejection::StaleTimestamp);
            }
            if old.request.timestamp == request.timestamp {
                if old.request.digest() != request.digest() {
                    return Err(Rejection::ReusedTimestamp);
                }
                if direct && old.request.vouched != Vouched::Signature {
                    old.request = request;
                }
                return Ok(false);
            }
        }
        // Who asks for something else keeps what the other had, and whoever has reminded of that the turn: otherwise it
        // could have the primary never come to what the others have of it.
        let old = self.take(client);
        let mut place = old.as_ref().filter(|old| old.is_unproposed).and_then(|old| old.place);
        if place.is_none()
            && let Err(reason) = self.make_room(client, request.operation.len(), direct, limits)
        {
            let Some(from) = from.filter(|from| !self.passed_on.contains_key(from)) else {
                old.into_iter().for_each(|old| self.put(old));
                return Err(reason);
            };
            place = Some((from, self.take_turn(client)));
        }
        let (ticket, passed_on_by, turns) = match old.filter(|old| old.is_unproposed) {
            Some(old) => (old.waiting.ticket, old.waiting.passed_on_by, old.turns),
            None => {
                self.next_ticket += 1;
                (self.next_ticket - 1, Vec::new(), Vec::new())
            }
        };
        let waiting = Box::new(Waiting { request, ticket, passed_on_by });
        self.put(Taken { waiting, is_watched: false, is_unproposed: true, place, turns });
        Ok(true)
    }

    /// Room for one more, in the place of the newest requests of whoever has most, if it need be. What a replica has
    /// passed on does not give way, but has that replica's place if it is free.
    fn make_room(&mut self, client: ClientId, bytes: usize, direct: bool, limits: &Limits) -> Result<(), Rejection> {
        if !takes_room(client) {
            return Ok(());
        }
        self.make_room_for_stranger(client, direct, limits)?;
        let mut bounds = Bounds { number: limits.pending_requests_max, bytes: limits.pending_bytes_max };
        if self.shares.room(owner_of(client), bytes, bounds) == Room::Free {
            return Ok(());
        }
        let kept = self.passed_on.values().map(|turn| self.waiting[&turn.client].request.operation.len());
        bounds.number += self.passed_on.len();
        bounds.bytes += kept.sum::<usize>();
        loop {
            let owner = match self.shares.room(owner_of(client), bytes, bounds) {
                Room::Free => return Ok(()),
                Room::InPlaceOf(owner) => owner,
                Room::None => return Err(Rejection::Overload),
            };
            let mut newest = self.unproposed.values().rev();
            let given = newest.find(|of| owner_of(**of) == owner && !self.has_place(**of)).copied();
            let given = given.ok_or(Rejection::Overload)?;
            let waiting = &self.waiting[&given];
            match waiting.passed_on_by.iter().find(|from| !self.passed_on.contains_key(from)).copied() {
                Some(place) => {
                    bounds.number += 1;
                    bounds.bytes += waiting.request.operation.len();
                    let turn = self.take_turn(given);
                    self.passed_on.insert(place, turn);
                }
                None => self.remove(given),
            }
        }
    }

    /// Whether the client's waiting request has a replica's place.
    fn has_place(&self, client: ClientId) -> bool {
        self.passed_on.values().any(|turn| turn.client == client)
    }

    /// Clients that the cluster file does not name have a part of the places, at least one. A JOIN that comes from its
    /// client takes the place of the oldest that nobody watches: what others pass on may never be ordered.
    fn make_room_for_stranger(&mut self, client: ClientId, direct: bool, limits: &Limits) -> Result<(), Rejection> {
        if !client.identity.is_dynamic() {
            return Ok(());
        }
        let is_crowded = self.is_crowded(client, limits);
        let strangers_max = (limits.pending_requests_max / 2).max(1);
        if self.strangers - usize::from(is_crowded) >= strangers_max {
            return Err(Rejection::Overload);
        }
        if !is_crowded {
            return Ok(());
        }
        let joining = self.waiting.range(ClientId { identity: IdentityId::JOINING, session: 0 }..);
        let of_clients = joining.filter(|(waiting, _)| waiting.identity.is_joining());
        let unwatched = of_clients.filter(|(_, waiting)| !self.watched.contains_key(&waiting.ticket));
        let unwatched = unwatched.filter(|(client, _)| !self.has_place(**client));
        let oldest = unwatched.min_by_key(|(_, waiting)| waiting.ticket).map(|(client, _)| *client);
        self.remove(oldest.filter(|_| direct).ok_or(Rejection::Overload)?);
        Ok(())
    }

    /// Whether all the places for JOINs are taken, and this would be one more.
    pub(in crate::protocols) fn is_crowded(&self, client: ClientId, limits: &Limits) -> bool {
        let joins_max = (limits.pending_requests_max / 8).clamp(1, JOINS_PENDING_MAX);
        client.identity.is_joining() && self.joins >= joins_max
    }

    /// Whose requests wait.
    pub(in crate::protocols) fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.waiting.keys().copied()
    }

    /// Forgets the client's waiting request.
    pub(in crate::protocols) fn remove(&mut self, client: ClientId) {
        drop(self.take(client));
    }

    /// The same, and returns all that there was of it.
    fn take(&mut self, client: ClientId) -> Option<Taken> {
        let waiting = self.waiting.remove(&client)?;
        let of_client = |turns: &mut BTreeMap<ReplicaId, Turn>| {
            let taken: Vec<_> =
                turns.iter().filter(|(_, turn)| turn.client == client).map(|(id, turn)| (*id, *turn)).collect();
            turns.retain(|_, turn| turn.client != client);
            taken
        };
        let (place, turns) = (of_client(&mut self.passed_on).pop(), of_client(&mut self.reminded));
        let is_watched = self.watched.remove(&waiting.ticket).is_some();
        let is_unproposed = self.unproposed.remove(&waiting.ticket).is_some();
        self.by_digest.remove(&waiting.request.digest());
        if takes_room(client) {
            self.shares.remove(owner_of(client), waiting.request.operation.len());
        }
        self.strangers -= usize::from(client.identity.is_dynamic());
        self.joins -= usize::from(client.identity.is_joining());
        Some(Taken { waiting, is_watched, is_unproposed, place, turns })
    }

    /// There is room for it, and nothing of its client waits.
    fn put(&mut self, taken: Taken) {
        let Taken { waiting, is_watched, is_unproposed, place, turns } = taken;
        let client = waiting.request.client;
        self.passed_on.extend(place);
        self.reminded.extend(turns);
        if is_watched {
            self.watched.insert(waiting.ticket, client);
        }
        if is_unproposed {
            self.unproposed.insert(waiting.ticket, client);
        }
        self.by_digest.insert(waiting.request.digest(), client);
        if takes_room(client) {
            self.shares.add(owner_of(client), waiting.request.operation.len());
        }
        self.strangers += usize::from(client.identity.is_dynamic());
        self.joins += usize::from(client.identity.is_joining());
        self.waiting.insert(client, waiting);
    }

    /// The client's request with this timestamp, and all older ones, need not be ordered any more. Whether one waited.
    pub(in crate::protocols) fn executed(&mut self, client: ClientId, timestamp: Timestamp) -> bool {
        let waited = self.waiting.get(&client).is_some_and(|waiting| waiting.request.timestamp <= timestamp);
        if waited {
            self.remove(client);
        }
        waited
    }

    /// The same for all that `is_over` says.
    pub(in crate::protocols) fn forget(&mut self, is_over: &dyn Fn(&Request) -> bool) {
        let over = self.waiting.iter().filter(|(_, waiting)| is_over(&waiting.request));
        let over: Vec<ClientId> = over.map(|(client, _)| *client).collect();
        for client in over {
            self.remove(client);
        }
    }

    /// A waiting request by digest.
    pub(in crate::protocols) fn find(&self, digest: Digest) -> Option<&Request> {
        self.by_digest.get(&digest).map(|client| &self.waiting[client].request)
    }

    /// From now on the primary is expected to order this client's request in time. Whether it was not so far.
    pub(in crate::protocols) fn watch(&mut self, client: ClientId) -> bool {
        let ticket = self.waiting.get(&client).map(|waiting| waiting.ticket);
        ticket.is_some_and(|ticket| self.watched.insert(ticket, client).is_none())
    }

    /// The client's waiting request.
    pub(in crate::protocols) fn get_mut(&mut self, client: ClientId) -> Option<&mut Request> {
        self.waiting.get_mut(&client).map(|waiting| &mut waiting.request)
    }

    /// The watched request that has waited longest, proposed or not.
    pub(in crate::protocols) fn oldest_watched(&self) -> Option<(ClientId, Timestamp)> {
        let client = self.watched.values().next()?;
        Some((*client, self.waiting[client].request.timestamp))
    }

    /// Whether this very request still waits.
    pub(in crate::protocols) fn waits(&self, client: ClientId, timestamp: Timestamp) -> bool {
        self.waiting.get(&client).is_some_and(|waiting| waiting.request.timestamp == timestamp)
    }

    pub(in crate::protocols) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(in crate::protocols) fn has_unproposed(&self) -> bool {
        !self.unproposed.is_empty()
    }

    /// How many requests are not proposed in the current view.
    pub(in crate::protocols) fn unproposed(&self) -> usize {
        self.unproposed.len()
    }

    /// The one that has waited longest of those not proposed in the current view, with its ticket.
    pub(in crate::protocols) fn oldest_unproposed(&self) -> Option<(u64, &Request)> {
        self.unproposed.first_key_value().map(|(ticket, client)| (*ticket, &self.waiting[client].request))
    }

    /// The ticket of the next request that comes. Tickets grow.
    pub(in crate::protocols) const fn next_ticket(&self) -> u64 {
        self.next_ticket
    }

    /// Whether one is watched and not proposed in the current view.
    pub(in crate::protocols) fn has_watched_to_propose(&self) -> bool {
        self.watched.keys().any(|ticket| self.unproposed.contains_key(ticket))
    }

    /// A new view begins: nothing is proposed in it yet, and whatever is watched is passed on once more.
    pub(in crate::protocols) fn forget_proposals(&mut self) {
        self.waiting.values_mut().for_each(|waiting| waiting.passed_on_by.clear());
        self.unproposed = self.waiting.iter().map(|(client, waiting)| (waiting.ticket, *client)).collect();
    }

    /// The client's waiting request is to be proposed once more.
    pub(in crate::protocols) fn propose_again(&mut self, client: ClientId) {
        if let Some(waiting) = self.waiting.get(&client) {
            self.unproposed.insert(waiting.ticket, client);
        }
    }

    /// This request is part of a proposal of the current view.
    pub(in crate::protocols) fn proposed(&mut self, digest: Digest) {
        if let Some(client) = self.by_digest.get(&digest) {
            self.unproposed.remove(&self.waiting[client].ticket);
        }
    }

    /// The ticket of the one to be proposed next.
    fn next_turn(&self) -> Option<u64> {
        let waits = |ticket: &u64| self.unproposed.contains_key(ticket);
        // Nobody accepts anything before the INIT, nor anything but rulings at the end of a window.
        // An END comes after these, and before what clients ask: it must not stand there alone, and has a short turn.
        let turn = |waiting: &Waiting| (waiting.request.is_end_of_stay(), waiting.ticket);
        let of_system = self.of_system().map(turn).filter(|(_, ticket)| waits(ticket)).min().map(|(_, ticket)| ticket);
        let turns = self.reminded.values().chain(self.passed_on.values());
        let turns = turns.map(|turn| (turn.number, self.waiting[&turn.client].ticket));
        let ahead = turns.filter(|(_, ticket)| waits(ticket)).min().map(|(_, ticket)| ticket);
        let first = of_system.or(ahead);
        first.or_else(|| self.unproposed.keys().next().copied())
    }

    /// Whether a ruling waits to be proposed.
    pub(in crate::protocols) fn has_ruling_to_propose(&self, is_over: &dyn Fn(&Request) -> bool) -> bool {
        self.rulings(is_over).any(|waiting| self.unproposed.contains_key(&waiting.ticket))
    }

    /// Whether a ruling waits, proposed or not.
    pub(in crate::protocols) fn has_ruling(&self, is_over: &dyn Fn(&Request) -> bool) -> bool {
        self.rulings(is_over).next().is_some()
    }

    fn rulings<'a>(&'a self, is_over: &'a dyn Fn(&Request) -> bool) -> impl Iterator<Item = &'a Waiting> {
        self.of_system().filter(|waiting| waiting.request.is_ruling() && !is_over(&waiting.request))
    }

    /// What the system itself asks for.
    fn of_system(&self) -> impl Iterator<Item = &Waiting> {
        let first = ClientId { identity: IdentityId::SYSTEM, session: 0 };
        self.waiting.range(first..).map(|(_, waiting)| &**waiting)
    }

    /// Takes the next requests for a batch: up to the limits, at least one if any waits. Each operation of a bundle
    /// counts, for it is executed by itself. What a batch refers to counts
    /// as what stands in it: others have to hold it for as long. They stay in the pool, as proposed, until they are
    /// executed; those that `vouch` leaves unconvinced are dropped.
    pub(in crate::protocols) fn next_batch(
        &mut self,
        limits: &Limits,
        vouch: impl FnOnce(&mut [Request]),
    ) -> Vec<Request> {
        self.next_of(limits, limits.batch_requests_max, vouch)
    }

    /// The same, with at most so many requests.
    pub(in crate::protocols) fn next_of(
        &mut self,
        limits: &Limits,
        most: usize,
        vouch: impl FnOnce(&mut [Request]),
    ) -> Vec<Request> {
        let mut batch = Vec::with_capacity(self.unproposed.len().min(limits.batch_requests_max));
        let (mut bytes, mut operations) = (0, 0);
        while let Some(ticket) = self.next_turn() {
            let request = &self.waiting[&self.unproposed[&ticket]].request;
            bytes += request.operation.len();
            operations += request.operation_count();
            let is_long = bytes > limits.batch_bytes_max || operations > limits.batch_requests_max;
            if !batch.is_empty() && (is_long || batch.len() >= most) {
                break;
            }
            batch.push(request.clone());
            self.unproposed.remove(&ticket);
        }
        assert!(batch.len() <= limits.batch_requests_max.min(most).max(1), "a batch has as many requests as it may");
        vouch(&mut batch);
        batch.retain(|request| {
            let vouched = request.vouched != Vouched::No;
            if !vouched {
                self.remove(request.client);
            }
            vouched
        });
        batch
    }

    /// All watched requests that are [for primaries](is_for_primaries), in arrival order.
    pub(in crate::protocols) fn to_pass_on<'a>(&'a self, limits: &'a Limits) -> impl Iterator<Item = &'a Request> {
        self.iter_watched().filter(|request| is_for_primaries(request, limits))
    }

    /// The client's waiting request, if it is watched and [for primaries](is_for_primaries).
    pub(in crate::protocols) fn watched_to_pass_on(&self, client: ClientId, limits: &Limits) -> Option<&Request> {
        let waiting = self.waiting.get(&client).filter(|waiting| self.watched.contains_key(&waiting.ticket))?;
        Some(&waiting.request).filter(|request| is_for_primaries(request, limits))
    }

    /// All watched requests, in arrival order.
    pub(in crate::protocols) fn iter_watched(&self) -> impl Iterator<Item = &Request> {
        self.watched.values().map(|client| &self.waiting[client].request)
    }
}

/// Whether a backup passes it on. Each replica has an INIT of its own, and of long ones the primary's is enough.
pub(super) fn is_for_primaries(request: &Request, limits: &Limits) -> bool {
    !request.is_system() || request.operation.len() <= limits.inline_bytes_max
}

/// Whether its requests count. The system's own are one for each replica, and as long as a message may be.
fn takes_room(client: ClientId) -> bool {
    client.identity != IdentityId::SYSTEM
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{IdentityId, InstanceId};
    use crate::message::bundle;
    use alloc::vec;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn request(session: u32, timestamp: u64, size: usize) -> Request {
        request_of(1, session, timestamp, size)
    }

    fn request_of(identity: u32, session: u32, timestamp: u64, size: usize) -> Request {
        let client = ClientId { identity: IdentityId(identity), session };
        let operation = Bytes::from(alloc::vec![7; size]);
        let mut request = Request::new(InstanceId(1), client, Timestamp(timestamp), false, operation);
        request.vouched = Vouched::Mac;
        request
    }

    #[test]
    fn a_batch_takes_all_that_waits_up_to_the_limits_in_order_of_arrival() {
        let limits = Limits { batch_requests_max: 3, batch_bytes_max: 100, ..Limits::default() };
        let mut pool = Pool::default();
        for session in 0..5 {
            assert_eq!(pool.add(request(session, 1, 30), None, &limits), Ok(true));
        }
        let sessions = |batch: Vec<Request>| batch.iter().map(|r| r.client.session).collect::<Vec<_>>();
        assert_eq!(sessions(pool.next_batch(&limits, |_| ())), [0, 1, 2]);
        assert_eq!(sessions(pool.next_batch(&limits, |_| ())), [3, 4]);
        assert!(pool.next_batch(&limits, |_| ()).is_empty());
        pool.executed(ClientId { identity: IdentityId(1), session: 0 }, Timestamp(1));
        pool.forget_proposals();
        assert_eq!(sessions(pool.next_batch(&limits, |_| ())), [1, 2, 3]);
    }

    /// Each is executed by itself: a batch of bundles takes as long as one of as many requests.
    #[test]
    fn operations_of_bundles_count_in_a_batch() {
        let limits = Limits { batch_requests_max: 5, ..Limits::default() };
        let mut pool = Pool::default();
        for (session, operations) in [(0, 2), (1, 3), (2, 1), (3, 9), (4, 1)] {
            let client = ClientId { identity: IdentityId(1), session };
            let mut request = match operations {
                1 => Request::new(InstanceId(1), client, Timestamp(1), false, Bytes::new()),
                _ => {
                    let bundle = bundle::pack(&vec![Bytes::new(); operations]);
                    Request::new(InstanceId(1), client, Timestamp(1), false, bundle).as_bundle()
                }
            };
            request.vouched = Vouched::Mac;
            assert_eq!(pool.add(request, None, &limits), Ok(true));
        }
        let mut sessions = || pool.next_batch(&limits, |_| ()).iter().map(|r| r.client.session).collect::<Vec<_>>();
        assert_eq!([sessions(), sessions(), sessions(), sessions()], [vec![0, 1], vec![2], vec![3], vec![4]]);
    }

    /// What backups refuse in a batch, no correct primary puts there.
    #[test]
    fn a_batch_counts_the_bytes_of_what_it_only_refers_to() {
        let limits = Limits { inline_bytes_max: 10, batch_bytes_max: 100, ..Limits::default() };
        let mut pool = Pool::default();
        for (session, size) in [(0, 60), (1, 40), (2, 40), (3, 300), (4, 1)] {
            assert_eq!(pool.add(request(session, 1, size), None, &limits), Ok(true));
        }
        let mut next = || pool.next_batch(&limits, |_| ()).iter().map(|r| r.client.session).collect::<Vec<_>>();
        assert_eq!([next(), next(), next(), next()], [vec![0, 1], vec![2], vec![3], vec![4]]);
    }

    #[test]
    fn a_request_is_found_by_its_digest_as_long_as_it_waits() {
        let limits = Limits::default();
        let mut pool = Pool::default();
        let (old, new) = (request(1, 1, 9), request(1, 2, 9));
        assert_eq!(pool.add(old.clone(), None, &limits), Ok(true));
        assert_eq!(pool.find(old.digest()).map(|found| found.timestamp), Some(Timestamp(1)));
        assert_eq!(pool.add(new.clone(), None, &limits), Ok(true));
        assert!(pool.find(old.digest()).is_none());
        pool.executed(new.client, new.timestamp);
        assert!(pool.find(new.digest()).is_none() && pool.by_digest.is_empty());
    }

    #[test]
    fn memory_is_bounded_and_a_client_waits_with_one_request() {
        let limits = Limits { pending_requests_max: 2, pending_bytes_max: 50, ..Limits::default() };
        let mut pool = Pool::default();
        assert_eq!(pool.add(request(1, 5, 30), None, &limits), Ok(true));
        assert_eq!(pool.add(request(2, 5, 30), None, &limits), Err(Rejection::Overload));
        assert_eq!(pool.add(request(1, 4, 1), None, &limits), Err(Rejection::StaleTimestamp));
        assert_eq!(pool.add(request(1, 5, 29), None, &limits), Err(Rejection::ReusedTimestamp));
        assert_eq!(pool.add(request(1, 6, 10), None, &limits), Ok(true));
        assert_eq!(pool.len(), 1);
    }

    /// How many requests of each of the identities 1 to 3 wait.
    fn held(pool: &Pool) -> [usize; 3] {
        [1, 2, 3].map(|identity| pool.clients().filter(|client| client.identity.0 == identity).count())
    }

    #[test]
    fn whoever_holds_most_gives_way_to_whoever_holds_less() {
        let limits = Limits { pending_requests_max: 6, pending_bytes_max: 60, ..Limits::default() };
        let mut pool = Pool::default();
        let mut add = |identity, session, size| pool.add(request_of(identity, session, 1, size), None, &limits);
        assert!((0..6).all(|session| add(1, session, 1) == Ok(true)), "as long as nobody else asks it has all");
        assert_eq!(add(1, 6, 1), Err(Rejection::Overload));
        assert!((0..3).all(|session| add(2, session, 1) == Ok(true)));
        assert_eq!(add(2, 3, 1), Err(Rejection::Overload), "no more than the others have");
        assert!((0..2).all(|session| add(3, session, 1) == Ok(true)));
        assert_eq!(add(1, 7, 1), Err(Rejection::Overload));
        assert_eq!(held(&pool), [2, 2, 2]);
        let sessions: Vec<u32> =
            pool.next_batch(&limits, |_| ()).iter().map(|request| request.client.session).collect();
        assert_eq!(sessions, [0, 1, 0, 1, 0, 1], "what came last gave way");
        let mut pool = Pool::default();
        let mut add = |identity, session, size| pool.add(request_of(identity, session, 1, size), None, &limits);
        assert!((0..2).all(|session| add(1, session, 30) == Ok(true)));
        assert!((0..3).all(|session| add(2, session, 10) == Ok(true)));
        assert_eq!(held(&pool), [1, 3, 0], "bytes are shared as well");
    }

    #[test]
    fn what_is_proposed_gives_way_to_nobody() {
        let limits = Limits { pending_requests_max: 2, ..Limits::default() };
        let mut pool = Pool::default();
        assert!((0..2).all(|session| pool.add(request(session, 1, 1), None, &limits) == Ok(true)));
        assert_eq!(pool.next_batch(&limits, |_| ()).len(), 2);
        assert_eq!(pool.add(request_of(2, 0, 1, 1), None, &limits), Err(Rejection::Overload));
    }

    #[test]
    fn the_first_that_a_replica_passes_on_has_a_place_however_full_the_pool_is() {
        let limits = Limits { pending_requests_max: 1, ..Limits::default() };
        let mut pool = Pool::default();
        let (one, other) = (Some(ReplicaId(1)), Some(ReplicaId(2)));
        assert_eq!(pool.add(request(0, 1, 1), None, &limits), Ok(true));
        assert_eq!(pool.add(request(1, 1, 1), one, &limits), Ok(true));
        assert_eq!(pool.add(request(2, 1, 1), one, &limits), Err(Rejection::Overload), "one place for each");
        assert_eq!(pool.add(request(2, 1, 1), other, &limits), Ok(true));
        assert_eq!(pool.add(request_of(2, 0, 1, 1), None, &limits), Ok(true));
        assert_eq!(held(&pool), [2, 1, 0], "what was not passed on gave way");
        pool.next_batch(&limits, |_| ());
        assert_eq!(pool.add(request(3, 1, 1), one, &limits), Err(Rejection::Overload), "what is proposed waits on");
        pool.executed(request(1, 1, 1).client, Timestamp(1));
        assert_eq!(pool.add(request(3, 1, 1), one, &limits), Ok(true), "what is executed does not");
        assert_eq!(pool.add(request(3, 2, 1), one, &limits), Ok(true), "the next takes the place of the last");
    }

    #[test]
    fn what_a_replica_reminds_of_has_the_next_turn() {
        let limits = Limits { batch_requests_max: 1, ..Limits::default() };
        let mut pool = Pool::default();
        let (one, other) = (Some(ReplicaId(1)), Some(ReplicaId(2)));
        assert!((0..9).all(|session| pool.add(request(session, 1, 1), None, &limits) == Ok(true)));
        // What is passed on once waits like everything else, by however many; what is passed on twice does not. A
        // second turn of the same replica comes when its first is executed.
        for (session, from) in [(8, one), (8, other), (7, one), (7, one), (6, one), (6, one), (5, other), (5, other)] {
            assert_eq!(pool.add(request(session, 1, 1), from, &limits), Ok(false));
        }
        let next = |pool: &mut Pool| pool.next_batch(&limits, |_| ())[0].client.session;
        assert_eq!([(); 3].map(|()| next(&mut pool)), [7, 5, 0], "in the order in which turns were taken");
        pool.executed(request(7, 1, 1).client, Timestamp(1));
        assert_eq!(pool.add(request(6, 1, 1), one, &limits), Ok(false));
        // The primary has a turn like everybody else, and no second one before its first is executed.
        pool.remind(ReplicaId(0), request(4, 1, 1).client);
        pool.remind(ReplicaId(0), request(3, 1, 1).client);
        assert_eq!([(); 3].map(|()| next(&mut pool)), [6, 4, 1]);
        // In a new view everything is passed on anew, once.
        pool.forget_proposals();
        pool.executed(request(6, 1, 1).client, Timestamp(1));
        assert_eq!(pool.add(request(8, 1, 1), one, &limits), Ok(false));
        assert_eq!([(); 3].map(|()| next(&mut pool)), [5, 4, 0]);
    }

    /// Who gives the primary another request than a backup has of it does not have the backup wait for the queue.
    #[test]
    fn what_a_replica_reminds_of_brings_forward_what_waits_in_its_place() {
        let limits = Limits { batch_requests_max: 1, ..Limits::default() };
        let mut pool = Pool::default();
        assert!((0..9).all(|session| pool.add(request(session, 2, 1), None, &limits) == Ok(true)));
        let next = |pool: &mut Pool| pool.next_batch(&limits, |_| ())[0].client.session;
        // An older one, and another one of the same number.
        for (copy, why) in
            [(request(8, 1, 1), Rejection::StaleTimestamp), (request(7, 2, 3), Rejection::ReusedTimestamp)]
        {
            let session = copy.client.session;
            assert_eq!(pool.add(copy.clone(), Some(ReplicaId(1)), &limits), Err(why));
            assert_ne!(pool.clone().next_batch(&limits, |_| ())[0].client.session, session, "it waits its turn");
            assert_eq!(pool.add(copy, Some(ReplicaId(1)), &limits), Err(why));
            assert_eq!(next(&mut pool), session);
            pool.executed(request(session, 2, 1).client, Timestamp(2));
        }
        assert_eq!(pool.add(request(6, 1, 1), None, &limits), Err(Rejection::StaleTimestamp));
        assert_eq!(pool.add(request(6, 1, 1), None, &limits), Err(Rejection::StaleTimestamp));
        assert_eq!(next(&mut pool), 0, "its client reminds of nothing");
        // However often it asks for something newer, before the reminder and after.
        for timestamp in [3, 4] {
            assert_eq!(pool.add(request(5, timestamp, 1), None, &limits), Ok(true));
            assert_eq!(pool.add(request(5, 1, 1), Some(ReplicaId(1)), &limits), Err(Rejection::StaleTimestamp));
        }
        assert_eq!(pool.add(request(5, 5, 1), None, &limits), Ok(true));
        assert_eq!(next(&mut pool), 5);
    }

    /// The same where the pool is full, by number and by bytes: what there is no room for drives nothing out.
    #[test]
    fn who_asks_for_more_than_there_is_room_for_keeps_what_waits() {
        let limits = Limits { pending_requests_max: 2, pending_bytes_max: 20, ..Limits::default() };
        let mut pool = Pool::default();
        let (one, other) = (Some(ReplicaId(1)), Some(ReplicaId(2)));
        assert!((0..2).all(|session| pool.add(request(session, 1, 5), None, &limits) == Ok(true)));
        assert_eq!(pool.add(request(2, 1, 5), one, &limits), Ok(true), "it has the replica's place");
        pool.watch(request(1, 1, 5).client);
        for timestamp in 2..9 {
            assert_eq!(pool.add(request(2, timestamp, 5), None, &limits), Ok(true), "and keeps it");
            assert_eq!(pool.add(request(1, timestamp, 16), None, &limits), Err(Rejection::Overload));
        }
        assert!(pool.waits(request(1, 1, 5).client, Timestamp(1)) && pool.has_watched_to_propose());
        assert_eq!(pool.add(request(3, 1, 5), one, &limits), Err(Rejection::Overload), "one place for each");
        assert_eq!(pool.add(request(1, 9, 16), other, &limits), Ok(true), "another replica has a place for it");
        pool.check_room(&limits);
        let sessions: Vec<u32> = pool.next_batch(&limits, |_| ()).iter().map(|of| of.client.session).collect();
        assert_eq!(sessions, [2, 1, 0], "those with places come first");
    }

    #[test]
    fn a_join_that_a_replica_has_passed_on_gives_way_to_no_other() {
        let limits = Limits { pending_requests_max: 8, ..Limits::default() };
        let mut pool = Pool::default();
        let join = |number: u32| request_of(IdentityId::JOINING.0 | number, 0, 1, 1);
        assert_eq!(pool.add(join(1), None, &limits), Ok(true));
        pool.watch(join(1).client);
        assert_eq!(pool.add(join(2), Some(ReplicaId(1)), &limits), Ok(true), "it has the replica's place");
        assert_eq!(pool.add(join(3), None, &limits), Err(Rejection::Overload));
        assert!(pool.waits(join(1).client, Timestamp(1)) && pool.waits(join(2).client, Timestamp(1)));
    }

    #[test]
    fn what_a_replica_has_passed_on_does_not_give_way() {
        let limits = Limits { pending_requests_max: 10, pending_bytes_max: 100, ..Limits::default() };
        let mut pool = Pool::default();
        let mut add = |identity, session, size| pool.add(request_of(identity, session, 1, size), None, &limits);
        assert!(
            [(1, 0, 10), (1, 1, 20), (2, 0, 26), (3, 0, 26)].map(|(id, session, size)| add(id, session, size))
                == [Ok(true); 4]
        );
        for session in [0, 1] {
            assert_eq!(
                pool.add(request(session, 1, 10 + 10 * session as usize), Some(ReplicaId(2)), &limits),
                Ok(false)
            );
        }
        // The first identity has most. Its newest request has the place now, and the other one gives way.
        assert_eq!(pool.add(request_of(4, 0, 1, 39), None, &limits), Ok(true));
        assert_eq!(held(&pool), [1, 1, 1]);
        assert!(pool.has_place(request(1, 1, 20).client));
        assert_eq!(pool.add(request(1, 1, 20), Some(ReplicaId(2)), &limits), Ok(false));
        pool.check_room(&limits);
        assert_eq!(pool.next_batch(&limits, |_| ())[0].client.session, 1);
    }

    /// Nobody accepts anything before an INIT.
    #[test]
    fn an_init_comes_before_what_a_replica_reminds_of() {
        let limits = Limits { batch_requests_max: 1, ..Limits::default() };
        let mut pool = Pool::default();
        for request in [request(0, 1, 1), request_of(IdentityId::SYSTEM.0, 0, 1, 100)] {
            assert_eq!(pool.add(request, None, &limits), Ok(true));
        }
        for _ in 0..2 {
            assert_eq!(pool.add(request(0, 1, 1), Some(ReplicaId(1)), &limits), Ok(false));
        }
        let mut next = || pool.next_batch(&limits, |_| ())[0].client.identity;
        assert_eq!([next(), next()], [IdentityId::SYSTEM, IdentityId(1)]);
    }

    #[test]
    fn what_several_replicas_pass_on_takes_one_place() {
        let limits = Limits { pending_requests_max: 1, ..Limits::default() };
        let mut pool = Pool::default();
        let mut add = |session, from: Option<u8>| pool.add(request(session, 1, 1), from.map(ReplicaId), &limits);
        assert_eq!([add(0, None), add(1, Some(1)), add(1, Some(2))], [Ok(true), Ok(true), Ok(false)]);
        assert_eq!(add(2, Some(3)), Ok(true));
        assert_eq!(add(3, None), Err(Rejection::Overload));
        pool.executed(request(1, 1, 1).client, Timestamp(1));
        assert!(
            [1, 2].into_iter().all(|id| pool.add(request(3 + id, 1, 1), Some(ReplicaId(id as u8)), &limits).is_ok())
        );
        assert_eq!(pool.len(), 1 + 3);
    }

    proptest! {
        /// Whatever is passed on, proposed, executed, and comes back: n − 1 wait beyond the bounds, of any size.
        #[test]
        fn no_more_wait_beyond_the_bounds_than_other_replicas_pass_on(
            steps in proptest::collection::vec((0_u8..7, 0_u8..4, 1_u32..4, 0_u32..8, 1_usize..20), 1..200)
        ) {
            let limits = Limits {
                pending_requests_max: 4,
                pending_bytes_max: 40,
                batch_requests_max: 2,
                ..Limits::default()
            };
            let (mut pool, mut last) = (Pool::default(), None);
            for (timestamp, (step, from, identity, session, size)) in (1..).zip(steps) {
                let request = request_of(identity, session, timestamp, size);
                let from = Some(ReplicaId(from)).filter(|from| from.0 > 0);
                match step {
                    0..3 => {
                        last = Some(request.clone());
                        _ = pool.add(request, from, &limits);
                    }
                    6 => _ = last.clone().map(|last| pool.add(last, from, &limits)),
                    3 => _ = pool.next_batch(&limits, |_| ()),
                    4 => _ = pool.executed(request.client, request.timestamp),
                    _ => pool.forget_proposals(),
                }
                assert!(pool.len() <= 4 + 3, "{} wait", pool.len());
                assert!(pool.shares.bytes() <= 40 + 3 * 19, "{} bytes wait", pool.shares.bytes());
            }
        }
    }

    /// Otherwise it could keep others' copies of its first request from ever being ordered.
    #[test]
    fn who_asks_for_something_else_keeps_its_place() {
        let limits = Limits::default();
        let mut pool = Pool::default();
        for request in [request(0, 1, 7), request(1, 1, 7), request(0, 2, 7)] {
            assert_eq!(pool.add(request, None, &limits), Ok(true));
        }
        let first = pool.next_of(&limits, 1, |requests| requests[0].vouched = Vouched::Mac);
        assert_eq!(first.first().map(|request| (request.client.session, request.timestamp)), Some((0, Timestamp(2))));
        assert_eq!(pool.add(request(0, 3, 7), None, &limits), Ok(true));
        assert_eq!(pool.oldest_unproposed().map(|(_, request)| request.client.session), Some(1), "that was proposed");
    }

    #[test]
    fn what_the_system_asks_needs_no_room_and_takes_none() {
        let limits = Limits { pending_requests_max: 2, pending_bytes_max: 8, ..Limits::default() };
        let mut pool = Pool::default();
        assert_eq!(pool.add(request(0, 1, 7), None, &limits), Ok(true));
        for replica in 0..4 {
            let init = request_of(IdentityId::SYSTEM.0, replica, 1, 100);
            assert_eq!(pool.add(init, Some(ReplicaId(1)), &limits), Ok(true));
        }
        assert_eq!(pool.add(request(1, 1, 1), None, &limits), Ok(true));
        assert_eq!(pool.add(request(2, 1, 1), None, &limits), Err(Rejection::Overload));
        assert_eq!(pool.add(request(2, 1, 1), Some(ReplicaId(1)), &limits), Ok(true), "its place is free");
    }

    #[test]
    fn who_joins_has_a_place_however_few_there_are() {
        let limits = Limits { pending_requests_max: 1, ..Limits::default() };
        let mut joining = request(1, 5, 30);
        joining.client.identity = IdentityId::JOINING;
        assert_eq!(Pool::default().add(joining, None, &limits), Ok(true));
    }
}
