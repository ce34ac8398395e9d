//! The requests of an ORDER that do not stand in it, or stand there without a proof that convinces: Resilient 3 of the
//! [module](super).
//!
//! Whoever restarts has the requests that it has logged, and not their proofs any more: those are in no log. It gives
//! them as they are to who lacks them, and who gets them logs them when f+1 have signed the history with them
//! ([`RingResilient::is_vouched_for`]).

use super::message::ResilientMessage;
use super::state::RingResilient;
use crate::batch::Entry;
use crate::digest::Digest;
use crate::history::LogEntry;
use crate::ids::{Principal, ReplicaId};
use crate::machine::Destination;
use crate::message::{Request, Vouched};
use crate::protocols::ring_resilient::message::Speaker;
use crate::rejection::Rejection;
use crate::service::Service;
use crate::switching::{Bodies, FETCH_MAX, Fetch, Surroundings, Switch, SwitchMessage};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Bytes of operations in the answer to one FETCH, unless a single one is longer.
const FETCHED_BYTES_MAX: usize = 1 << 20;

/// Whether it carries a proof, good or bad.
pub(super) fn has_proof(request: &Request) -> bool {
    request.authentication.signature.is_some() || request.authentication.tags.iter().len() > 0
}

impl<S: Service> RingResilient<S> {
    /// The requests of an ORDER that are not logged yet, once all of them are here and known to be their clients'.
    pub(super) fn requests_of(&mut self, s: &mut Surroundings<'_, impl Speaker>, end: u64) -> Option<Vec<Request>> {
        let order = self.early.get(&end)?;
        let logged = (self.base.ledger.log.length() + 1).saturating_sub(order.first) as usize;
        let entries = || order.batch.entries().iter().skip(logged);
        let (mut found, mut missing) = (Vec::with_capacity(order.batch.entries().len()), Vec::new());
        for entry in entries() {
            let digest = entry.digest();
            let inline = |is_proved| entry.inline().filter(|request| (request.vouched != Vouched::No) == is_proved);
            let kept = || self.bodies.get(&digest).and_then(Option::as_ref);
            match inline(true).or_else(|| self.pool.find(digest)).or_else(kept).or_else(|| inline(false)) {
                Some(request) => found.push(request),
                None => missing.push(digest),
            }
        }
        let is_proved = |request: &&Request| request.vouched != Vouched::No;
        let unproved: Vec<Digest> =
            found.iter().filter(|found| !is_proved(found)).map(|found| found.digest()).collect();
        if missing.is_empty() && (unproved.is_empty() || self.is_vouched_for(s, order.prepare.value())) {
            return Some(found.into_iter().cloned().collect());
        }
        let wanted: Vec<Digest> = missing.into_iter().chain(unproved).collect();
        // Of the next ORDER and no other: what was asked for others that came to nothing is waited for no more.
        let of_order: BTreeSet<Digest> = entries().map(Entry::digest).collect();
        self.bodies.retain(|digest, _| of_order.contains(digest));
        let is_news = wanted.iter().any(|digest| !self.bodies.contains_key(digest));
        wanted.iter().for_each(|digest| _ = self.bodies.entry(*digest).or_insert(None));
        if is_news {
            self.fetch(s, Destination::Replica(self.base.what.head));
        }
        None
    }

    /// A request of the next ORDER has come. One with a proof takes the place of one without. No correct sequencer has
    /// ordered more of them than may wait.
    pub(super) fn take_body(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, request: &Request) {
        let digest = request.digest();
        let is_wanted = match self.bodies.get(&digest) {
            None => false,
            Some(None) => true,
            Some(Some(kept)) => kept.vouched == Vouched::No && request.vouched != Vouched::No,
        };
        if !is_wanted {
            return;
        }
        let others = self.bodies.iter().filter(|(known, _)| **known != digest).filter_map(|(_, body)| body.as_ref());
        let kept: usize = others.map(|body| body.operation.len()).sum();
        if kept + request.operation.len() > s.cluster.limits.pending_bytes_max {
            return s.reject(from, Rejection::Overload);
        }
        self.bodies.insert(digest, Some(request.clone()));
        self.take_early(s);
    }

    /// Requests without a proof, of somebody who has logged them.
    pub(crate) fn on_bodies(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, bodies: Bodies) {
        if self.base.is_stopped() {
            return;
        }
        for entry in bodies.0 {
            self.take_body(s, Principal::Replica(from), &entry.asked_in(self.base.what.number));
        }
        self.arm_timers(s);
    }

    /// Asks for requests that are missing, or here without a proof.
    pub(super) fn fetch(&self, s: &mut Surroundings<'_, impl Speaker>, from: Destination) {
        let lacks = |body: &Option<Request>| body.as_ref().is_none_or(|body| body.vouched == Vouched::No);
        let missing = self.bodies.iter().filter(|(_, body)| lacks(body)).map(|(digest, _)| *digest);
        let missing: Vec<_> = missing.take(FETCH_MAX).collect();
        if !missing.is_empty() {
            self.send(s, from, ResilientMessage::Fetch(Fetch(missing)));
        }
    }

    /// Somebody lacks requests that are logged here.
    pub(super) fn on_fetch(&self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, fetch: &Fetch) {
        let wanted: BTreeSet<_> = fetch.0.iter().collect();
        let (mut bytes, mut bare) = (0, Vec::new());
        let slots = self.slots.values();
        let logged = slots.flat_map(|slot| slot.requests.iter().map(move |request| (&slot.proposal, request)));
        for (proposal, request) in logged.filter(|(_, request)| wanted.contains(&request.digest())) {
            if bytes > 0 && bytes + request.operation.len() > FETCHED_BYTES_MAX {
                break;
            }
            bytes += request.operation.len();
            if has_proof(request) {
                s.send(Destination::Replica(from), request.clone());
            } else if bare.len() < FETCH_MAX {
                bare.push(LogEntry::new(proposal.clone(), request.clone()));
            }
        }
        if !bare.is_empty() {
            let message = SwitchMessage::Bodies(Bodies(bare));
            let instance = self.base.what.number;
            s.send(Destination::Replica(from), Switch { instance, message });
        }
    }
}
