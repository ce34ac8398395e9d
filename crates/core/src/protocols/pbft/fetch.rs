//! Batches and bodies that are not at hand: what PBFT 4 and 6 need, and how it is fetched by digest (pbft-F22).

use super::message::{PbftMessage, Position};
use super::replica::{Ctx, Pbft};
use crate::batch::{Batch, Reference};
use crate::digest::Digest;
use crate::ids::{ReplicaId, Sequence};
use crate::message::{Request, Vouched};
use crate::protocols::total_order::OrderEffect;
use crate::rejection::Rejection;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

impl Pbft {
    /// Whether every big request of the batch is at hand; asks for those that are not.
    pub(super) fn gather_bodies(&mut self, context: &mut Ctx<'_>, sequence: Sequence, batch: &Batch) -> bool {
        let mut missing = BTreeSet::new();
        for reference in batch.references() {
            let waiting = self.pool.find(reference.digest);
            if let Some((last, body)) = self.bodies.get_mut(&reference.digest) {
                *last = sequence.max(*last);
                // A body that was fetched may have come with a spoilt proof.
                if let (Vouched::No, Some(request)) = (body.vouched, waiting) {
                    *body = request.clone();
                }
                if reference.fits(body) {
                    continue;
                }
            } else if let Some(request) = waiting.filter(|request| reference.fits(request)).cloned() {
                self.keep_body(sequence, request);
                continue;
            } else {
                self.want_body(context, sequence, *reference);
            }
            missing.insert(reference.digest);
        }
        let complete = missing.is_empty();
        if !complete || self.slots.contains_key(&sequence) {
            self.slots.entry(sequence).or_default().missing = missing;
        }
        complete
    }

    /// The requests of a batch whose bodies are all here, in its order.
    pub(super) fn requests<'a>(&'a self, batch: &'a Batch) -> impl Iterator<Item = &'a Request> {
        batch.entries().iter().map(|entry| entry.inline().unwrap_or_else(|| &self.bodies[&entry.digest()].1))
    }

    /// Goes on asking for bodies whose proofs do not convince this replica: whoever sent them may have spoilt those, as
    /// no digest covers them. Until a better copy comes, f+1 PREPAREs of others will do.
    pub(super) fn want_better_bodies(&mut self, context: &mut Ctx<'_>, sequence: Sequence, batch: &Batch) {
        for reference in batch.references() {
            if self.bodies.get(&reference.digest).is_some_and(|(_, body)| body.vouched == Vouched::No) {
                self.want_body(context, sequence, *reference);
                self.slots.entry(sequence).or_default().missing.insert(reference.digest);
            }
        }
    }

    /// Asks for a batch; asked again, of somebody else, at every status time-out.
    pub(super) fn want_batch(&mut self, context: &mut Ctx<'_>, sequence: Sequence, digest: Digest) {
        if let Some((last, _)) = self.wanted_batches.get_mut(&digest) {
            *last = sequence.max(*last);
            return;
        }
        if self.batch(digest).is_some() {
            return;
        }
        let ask = self.someone(context, self.replicas.primary(self.view));
        self.wanted_batches.insert(digest, (sequence, ask));
        context.push(OrderEffect::Send(ask, PbftMessage::FetchBatch(Position { sequence, digest })));
    }

    fn want_body(&mut self, context: &mut Ctx<'_>, sequence: Sequence, reference: Reference) {
        if let Some((last, known, _)) = self.wanted_bodies.get_mut(&reference.digest) {
            *last = sequence.max(*last);
            // One of them is wrong, if they are not equal.
            known.length = reference.length.max(known.length);
            return;
        }
        let ask = self.someone(context, self.replicas.primary(self.view));
        self.wanted_bodies.insert(reference.digest, (sequence, reference, ask));
        context.push(OrderEffect::Send(ask, PbftMessage::FetchRequest(reference.digest)));
    }

    /// `first`, or the next replica if that is ourselves.
    pub(super) fn someone(&self, context: &Ctx<'_>, first: ReplicaId) -> ReplicaId {
        if first == context.me { self.replicas.next(first) } else { first }
    }

    /// Somebody lacks a batch.
    pub(super) fn on_fetch_batch(&mut self, context: &mut Ctx<'_>, from: ReplicaId, position: Position) {
        if let Some((_, batch)) = self.batches.get(&position.digest) {
            context.push(OrderEffect::Send(from, PbftMessage::Batch(batch.clone())));
        }
    }

    /// A batch that was asked for. Its digest says that it is the right one; only the instance and the clients' proofs
    /// may be false. What was decided or chosen needs no proofs.
    pub(super) fn on_batch(&mut self, context: &mut Ctx<'_>, from: ReplicaId, batch: Arc<Batch>) {
        let digest = batch.digest();
        if !self.wanted_batches.contains_key(&digest) {
            return context.reject(from, Rejection::Unsolicited);
        }
        if let Err(reason) = self.check_batch(context, &batch) {
            return context.reject(from, reason);
        }
        let Some((last, _)) = self.wanted_batches.remove(&digest) else { return };
        self.keep(last, &batch);
        let mut proposed_at = Vec::new();
        for (&sequence, slot) in &mut self.slots {
            if let Some(proposed) = slot.proposed.as_mut().filter(|proposed| proposed.digest == digest) {
                proposed.batch = Some(batch.clone());
                proposed_at.push(sequence);
            }
        }
        for sequence in proposed_at {
            // It may have been asked for because of another position only.
            self.keep(sequence, &batch);
            self.try_accept(context, sequence);
        }
        self.try_new_view(context);
        self.advance(context);
    }

    /// Somebody lacks the body of a big request.
    pub(super) fn on_fetch_request(&mut self, context: &mut Ctx<'_>, from: ReplicaId, digest: Digest) {
        let held = self.bodies.get(&digest).map(|(_, body)| body);
        if let Some(body) = held.or_else(|| self.pool.find(digest)) {
            let body = Box::new(body.clone());
            context.push(OrderEffect::Send(from, PbftMessage::Body(body)));
        }
    }

    /// A body that was asked for. Its digest says that it is the right one; whether it is its client's is checked, or
    /// vouched for by f+1 PREPAREs. Whether an INIT proves something is the same for everybody.
    pub(super) fn on_body(&mut self, context: &mut Ctx<'_>, from: ReplicaId, mut request: Request) {
        // What a batch holds is checked; what it only names must be no other kind of request.
        if request.instance != context.instance {
            return context.reject(from, Rejection::WrongInstance);
        }
        if !request.may_be_ordered(&context.cluster.limits, context.instance) {
            return context.reject(from, Rejection::BadBatch);
        }
        let digest = request.digest();
        let Some(&(last, reference, asked)) = self.wanted_bodies.get(&digest) else {
            return context.reject(from, Rejection::Unsolicited);
        };
        // Whoever serves it does not know what the reference says: that is not its fault.
        if request.operation.len() > reference.length as usize {
            return context.reject(from, Rejection::Unsolicited);
        }
        request.vouch(context.cluster, context.keyring);
        let convinces = request.vouched != Vouched::No;
        if !convinces && (request.is_system() || self.bodies.contains_key(&digest)) {
            return context.reject(from, Rejection::UnauthenticRequest);
        }
        self.keep_body(last, request);
        if !convinces {
            // It will do if others vouch for it. Until then a better copy is wanted.
            self.wanted_bodies.insert(digest, (last, reference, asked));
        }
        self.go_on_with(context, digest);
    }

    /// A body came that was wanted, at one position or at several. What is decided at a position, or chosen for a new
    /// view, may be another batch than the one proposed to this replica, and `missing` be about that one: so whoever
    /// waits for any body looks again.
    pub(super) fn go_on_with(&mut self, context: &mut Ctx<'_>, body: Digest) {
        let mut complete = Vec::new();
        for (&sequence, slot) in &mut self.slots {
            if slot.missing.remove(&body) && (slot.missing.is_empty() || slot.committed.is_some()) {
                complete.push(sequence);
            }
        }
        for sequence in complete {
            self.try_accept(context, sequence);
        }
        self.try_new_view(context);
        self.advance(context);
    }
}
