//! What a replica does for clients that panic: Ring 6 to 8 of the [module](super).

use super::held::{UNDER_WAY_MAX, WINDOW, most_bytes};
use super::message::{Accepted, Body, Probe, Stamp};
use super::path::Path;
use super::state::RingFast;
use crate::ids::{Principal, ReplicaId};
use crate::machine::Destination;
use crate::message::Request;
use crate::protocols::ring_fast::message::{RingTimer, Speaker};
use crate::protocols::speculative::{Certain, Response, Standing};
use crate::rejection::{Account, Rejection};
use crate::replicas::Replicas;
use crate::service::{Proposal, Service};
use crate::stop::StopReason;
use crate::switching::{Ledger, Surroundings};
use crate::time::Duration;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// How long a client that panicked has to be served, in times `client_retry`: 4n + f delays must fit (ring-F13).
const PATIENCE_FACTOR: u64 = 2;

/// The attempt that a signed request is: it decides the entry.
const SIGNED_ATTEMPT: u64 = 2;

/// Batches that this entry has under way when those of signed requests wait: they have as much room again as others.
/// It is half of what others accept. The same holds for their bytes, counted in the longest requests that there may be:
/// whoever panics last has no time to wait until those before it have gone around one by one.
const SIGNED_UNDER_WAY_MAX: usize = 2 * UNDER_WAY_MAX;

impl<S: Service> RingFast<S> {
    /// Ring 6: a signed request that is new. Its entry takes it from where it is kept; whoever else has it from its
    /// client hands it on.
    pub(super) fn on_panic(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, request: Request) {
        s.step("Ring 6");
        let entry = Self::signed_entry(self.base.what.replicas, &request);
        if entry != s.me && !from.is_client() {
            return s.reject(from, Rejection::WrongEntry);
        }
        if !self.keep_panic(s, from, &request) {
            return s.reject(from, Rejection::Overload);
        }
        if entry != s.me {
            // It may have come to nobody else.
            s.send(Destination::Replica(entry), request);
        }
    }

    /// Keeps a signed request. Whether there is room for it.
    pub(super) fn keep_panic(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: Principal,
        request: &Request,
    ) -> bool {
        let limits = &s.cluster.limits;
        let until = s.now + Duration(PATIENCE_FACTOR * limits.client_retry.0);
        let by = Account::of(from, s.keyring.keys());
        let has_room = self.panics.ask(by, request.clone(), until, limits);
        if let Some(first) = self.panics.until() {
            s.set_timer(RingTimer::Panic, first);
        }
        has_room
    }

    fn signed_entry(replicas: Replicas, request: &Request) -> ReplicaId {
        Path::entry_for(replicas, request.client, request.timestamp, SIGNED_ATTEMPT)
    }

    /// Ring 6: the signed requests whose entry this is leave; again if they are new after so long. They wait in no
    /// queue, where another request of their client could be in their place, with MACs that hold for this replica only;
    /// nor for batches that are under way, which may have died of such MACs.
    pub(super) fn send_signed(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let limits = &s.cluster.limits;
        loop {
            let (batches, bytes) = self.batches.under_way(s.me, s.now, limits.client_retry);
            if batches >= SIGNED_UNDER_WAY_MAX || bytes >= 2 * WINDOW * most_bytes(limits) {
                return;
            }
            let requests = self.signed_batch(s);
            if requests.is_empty() {
                return;
            }
            s.step("Ring 6");
            self.send_batch(s, requests);
        }
    }

    fn signed_batch(&mut self, s: &mut Surroundings<'_, impl Speaker>) -> Vec<Request> {
        let limits = &s.cluster.limits;
        let most = usize::try_from(limits.history_interval).unwrap_or(usize::MAX).min(limits.batch_requests_max);
        let (mut batch, mut clients, mut bytes, mut operations) = (Vec::new(), BTreeSet::new(), 0, 0);
        let Self { base, panics, .. } = self;
        for asked in panics.shelves.values_mut().flat_map(|shelf| shelf.asked.values_mut()) {
            let is_under_way = asked.left.is_some_and(|left| s.now - left < limits.client_retry);
            if is_under_way
                || Self::signed_entry(base.what.replicas, &asked.request) != s.me
                || !clients.insert(asked.request.client)
            {
                continue;
            }
            bytes += asked.request.operation.len();
            operations += asked.request.operation_count();
            let is_long = bytes > limits.batch_bytes_max || operations > limits.batch_requests_max;
            if batch.len() >= most || is_long && !batch.is_empty() {
                break;
            }
            if base.standing(s, &asked.request) == Standing::New {
                asked.left = Some(s.now);
                batch.push(asked.request.clone());
            }
        }
        batch
    }

    /// Ring 7: tells the clients that panicked what is certain, and asks how far the others are where it is not.
    pub(super) fn serve_panics(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let mut unknown = false;
        for (by, request) in self.panics.requests() {
            let client = request.client;
            match self.base.standing(s, &request) {
                Standing::New => {}
                // Whoever has handed it on looks after it.
                Standing::Done { .. } if matches!(by, Account::Replica(_)) => self.panics.forget(by, client),
                Standing::Stale => self.panics.forget(by, client),
                Standing::Done { position, history, outcome } if self.panics.is_certain(position) => {
                    s.step("Ring 7");
                    let response = Response::to(self.base.what.number, &request, position, history, outcome);
                    s.send(Destination::Client(client), Certain(response));
                    self.panics.forget(by, client);
                }
                Standing::Done { .. } => unknown = true,
            }
        }
        if unknown && let Some(number) = self.panics.next_probe(s.now, s.cluster.limits.client_retry) {
            s.step("Ring 7");
            let path = Path::of_probe(self.base.what.replicas, self.base.what.head, s.me);
            let body = Body::Probe(Probe { number, pass: 0 });
            let accepted =
                Accepted { path, position: 0, batch: body.digest(), message: self.first_message(s.me, body) };
            self.pass_on(s, accepted);
        }
    }

    /// Ring 8: the time of a client that panicked is over.
    pub(super) fn on_panic_timeout(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        self.serve_panics(s);
        match self.panics.until() {
            Some(until) if until <= s.now => {
                s.step("Ring 8");
                self.base.stop(s, StopReason::Unserved, false);
            }
            Some(until) => s.set_timer(RingTimer::Panic, until),
            None => {}
        }
    }

    /// Ring 7: who executes at this position answers for having what the sequencer has; and the entry, when it comes
    /// back, knows that everybody does.
    pub(super) fn accept_probe(&mut self, s: &mut Surroundings<'_, impl Speaker>, mut accepted: Accepted) {
        s.step("Ring 7");
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
