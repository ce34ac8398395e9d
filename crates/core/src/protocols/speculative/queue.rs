//! Requests that wait until a replica may take them: at a head, or for a state that may answer them.

use crate::cluster::Limits;
use crate::ids::{ClientId, IdentityId};
use crate::message::Request;
use crate::rejection::Rejection;
use crate::shares::{Bounds, Room, Shares, owner_of};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The most requests in one ORDER or CHAIN message.
pub(crate) const BATCH_MAX: usize = 4_096;

/// See the [module](self). At most one request of each client, its newest, and as many in all as [`Limits`] says,
/// shared among identities ([`crate::shares`]).
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// By ticket, in order of arrival, each with when it came. Boxed: the map moves its entries about.
    requests: BTreeMap<u64, Box<(Instant, Request)>>,
    clients: BTreeMap<ClientId, u64>,
    next_ticket: u64,
    shares: Shares<IdentityId>,
}

impl Queue {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Bytes of the operations that wait.
    pub(crate) const fn bytes(&self) -> usize {
        self.shares.bytes()
    }

    /// Those of the first of them; 0 if there is none.
    pub(crate) fn first_bytes(&self) -> usize {
        self.requests.values().next().map_or(0, |first| first.1.operation.len())
    }

    /// When the first of them came.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.requests.values().next().map(|first| first.0)
    }

    /// Adds a request, in the place of an older one of its client.
    ///
    /// # Errors
    /// [`Rejection::Duplicate`] if this one of its client waits, or a newer one; [`Rejection::Overload`] if too much
    /// does.
    pub(crate) fn push(&mut self, now: Instant, limits: &Limits, request: Request) -> Result<(), Rejection> {
        self.push_within(now, Bounds::of_waiting(limits), request)
    }

    /// The same, within these bounds.
    pub(crate) fn push_within(&mut self, now: Instant, bounds: Bounds, request: Request) -> Result<(), Rejection> {
        let (client, bytes) = (request.client, request.operation.len());
        if let Some(ticket) = self.clients.get(&client).copied() {
            if self.requests[&ticket].1.timestamp >= request.timestamp {
                return Err(Rejection::Duplicate);
            }
            self.remove(ticket);
        }
        loop {
            match self.shares.room(owner_of(client), bytes, bounds) {
                Room::Free => break,
                Room::InPlaceOf(owner) => {
                    let mut newest = self.requests.iter().rev();
                    let given = newest.find(|(_, waiting)| owner_of(waiting.1.client) == owner);
                    let (ticket, _) = given.expect("whoever gives way has something");
                    self.remove(*ticket);
                }
                Room::None => return Err(Rejection::Overload),
            }
        }
        self.shares.add(owner_of(client), bytes);
        self.clients.insert(client, self.next_ticket);
        self.requests.insert(self.next_ticket, Box::new((now, request)));
        self.next_ticket += 1;
        Ok(())
    }

    fn remove(&mut self, ticket: u64) -> Option<Request> {
        let (_, request) = *self.requests.remove(&ticket)?;
        self.clients.remove(&request.client);
        self.shares.remove(owner_of(request.client), request.operation.len());
        Some(request)
    }

    /// The next batch: at most `most` requests, within the bounds of a batch.
    pub(crate) fn take(&mut self, limits: &Limits, most: u64) -> Vec<Request> {
        self.take_bytes(limits, most, limits.batch_bytes_max)
    }

    /// The same, with at most so many bytes of operations; a single request may have more.
    pub(crate) fn take_bytes(&mut self, limits: &Limits, most: u64, bytes_max: usize) -> Vec<Request> {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(limits.batch_requests_max).min(BATCH_MAX);
        let bytes_max = bytes_max.min(limits.batch_bytes_max);
        let (mut batch, mut bytes, mut operations) = (Vec::new(), 0, 0);
        while let Some((&ticket, next)) = self.requests.first_key_value() {
            bytes += next.1.operation.len();
            operations += next.1.operation_count();
            let is_long = bytes > bytes_max || operations > limits.batch_requests_max;
            if batch.len() >= most || (is_long && !batch.is_empty()) {
                break;
            }
            batch.extend(self.remove(ticket));
        }
        assert!(batch.len() <= most, "a batch has as many requests as it may");
        batch
    }

    /// The one that has waited longest.
    pub(crate) fn take_first(&mut self) -> Option<Request> {
        let (ticket, _) = self.requests.first_key_value()?;
        self.remove(*ticket)
    }

    /// What is true between steps, within these bounds.
    pub(crate) fn check_invariants(&self, bounds: Bounds) {
        let bytes = self.requests.values().map(|waiting| waiting.1.operation.len()).sum();
        self.shares.check_invariants(self.requests.len(), bytes);
        assert!(self.requests.len() <= bounds.number, "at most {} wait", bounds.number);
        assert!(bytes <= bounds.bytes, "at most {} bytes wait", bounds.bytes);
        assert_eq!(self.clients.len(), self.requests.len(), "one request of each client waits");
        let client = |ticket| self.requests.get(ticket).map(|waiting| waiting.1.client);
        assert!(self.clients.iter().all(|(of, ticket)| client(ticket) == Some(*of)), "a client finds its request");
        assert!(self.requests.keys().all(|ticket| *ticket < self.next_ticket), "tickets come in their order");
    }

    /// Whose requests wait.
    pub(crate) fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.clients.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{InstanceId, Timestamp};
    use bytes::Bytes;

    fn request(identity: u32, session: u32, timestamp: u64, size: usize) -> Request {
        let client = ClientId { identity: IdentityId(identity), session };
        Request::new(InstanceId(1), client, Timestamp(timestamp), false, Bytes::from(alloc::vec![7; size]))
    }

    #[test]
    fn identities_share_a_full_queue() {
        let limits = Limits { pending_requests_max: 4, pending_bytes_max: 40, ..Limits::default() };
        let mut queue = Queue::default();
        let mut push = |identity, session, size| queue.push(Instant(1), &limits, request(identity, session, 1, size));
        assert!((0..4).all(|session| push(1, session, 1) == Ok(())), "as long as nobody else asks it has all");
        assert!((0..2).all(|session| push(2, session, 1) == Ok(())));
        assert_eq!(push(2, 2, 1), Err(Rejection::Overload), "no more than the other has");
        assert_eq!(push(1, 4, 1), Err(Rejection::Overload));
        assert_eq!(push(3, 0, 10), Ok(()));
        assert_eq!((queue.len(), queue.bytes()), (4, 13));
        let take = || queue.take_first().map(|request| (request.client.identity.0, request.client.session));
        let taken: Vec<_> = core::iter::from_fn(take).collect();
        assert_eq!(taken, [(1, 0), (1, 1), (2, 0), (3, 0)], "what came last gave way");
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    /// Whatever the cluster's file says: nobody could read a longer one.
    #[test]
    fn a_batch_is_no_longer_than_a_message_may_be() {
        let limits = Limits { batch_requests_max: 2 * BATCH_MAX, ..Limits::default() };
        let mut queue = Queue::default();
        for session in 0..BATCH_MAX as u32 + 1 {
            assert_eq!(queue.push(Instant(1), &limits, request(1, session, 1, 1)), Ok(()));
        }
        assert_eq!(queue.take(&limits, u64::MAX).len(), BATCH_MAX);
    }

    #[test]
    fn the_newest_request_of_a_client_waits() {
        let limits = Limits::default();
        let mut queue = Queue::default();
        assert_eq!(queue.push(Instant(1), &limits, request(1, 0, 5, 3)), Ok(()));
        assert_eq!(queue.push(Instant(2), &limits, request(1, 0, 5, 3)), Err(Rejection::Duplicate));
        assert_eq!(queue.push(Instant(3), &limits, request(1, 0, 4, 3)), Err(Rejection::Duplicate));
        assert_eq!(queue.push(Instant(4), &limits, request(1, 0, 6, 2)), Ok(()));
        assert_eq!((queue.len(), queue.bytes(), queue.since()), (1, 2, Some(Instant(4))));
        assert_eq!(queue.take(&limits, 9).len(), 1);
        assert!(queue.is_empty() && queue.bytes() == 0);
    }
}
