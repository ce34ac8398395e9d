//! Requests that wait at a head until it may log them.

use crate::cluster::{ClientId, Limits};
use crate::machine::Instant;
use crate::message::Request;
use crate::rejection::Rejection;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

/// See the [module](self). At most one request of each client, and as many in all as [`Limits`] says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// Each with when it came.
    requests: VecDeque<(Instant, Request)>,
    clients: BTreeSet<ClientId>,
    bytes: usize,
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
        self.bytes
    }

    /// Those of the first of them; 0 if there is none.
    pub(crate) fn first_bytes(&self) -> usize {
        self.requests.front().map_or(0, |(_, request)| request.operation.len())
    }

    /// When the first of them came.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.requests.front().map(|(since, _)| *since)
    }

    /// Adds a request.
    ///
    /// # Errors
    /// [`Rejection::Duplicate`] if one of this client waits, [`Rejection::Overload`] if too much does.
    pub(crate) fn push(&mut self, now: Instant, limits: &Limits, request: Request) -> Result<(), Rejection> {
        if self.requests.len() >= limits.pending_requests_max
            || self.bytes + request.operation.len() > limits.pending_bytes_max
        {
            return Err(Rejection::Overload);
        }
        if !self.clients.insert(request.client) {
            return Err(Rejection::Duplicate);
        }
        self.bytes += request.operation.len();
        self.requests.push_back((now, request));
        Ok(())
    }

    /// The next batch: at most `most` requests, within the bounds of a batch.
    pub(crate) fn take(&mut self, limits: &Limits, most: u64) -> Vec<Request> {
        self.take_bytes(limits, most, limits.batch_bytes_max)
    }

    /// The same, with at most so many bytes of operations; a single request may have more.
    pub(crate) fn take_bytes(&mut self, limits: &Limits, most: u64, bytes_max: usize) -> Vec<Request> {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(limits.batch_requests_max);
        let bytes_max = bytes_max.min(limits.batch_bytes_max);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some((_, next)) = self.requests.front() {
            bytes += next.operation.len();
            if batch.len() >= most || (bytes > bytes_max && !batch.is_empty()) {
                break;
            }
            self.bytes -= next.operation.len();
            self.clients.remove(&next.client);
            batch.extend(self.requests.pop_front().map(|(_, request)| request));
        }
        batch
    }

    /// Whose requests wait.
    pub(crate) fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.clients.iter().copied()
    }
}
