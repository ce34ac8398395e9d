//! Batches and bodies that are not at hand: what steps 4 and 6 need, and how it is fetched by digest (F22).

use super::message::{PbftMessage, Position};
use super::replica::{Ctx, Pbft};
use crate::cluster::{ReplicaId, Sequence};
use crate::digest::Digest;
use crate::message::{Request, Vouched};
use crate::protocols::batch::{Batch, Entry, Reference};
use crate::protocols::total_order::OrderEffect;
use crate::rejection::Rejection;
use alloc::boxed::Box;
use alloc::sync::Arc;

impl Pbft {
    /// Whether every big request of the batch is at hand; asks for those that are not.
    pub(super) fn gather_bodies(&mut self, context: &mut Ctx<'_>, sequence: Sequence, batch: &Batch) -> bool {
        let mut complete = true;
        for entry in &batch.entries {
            let Entry::Reference(reference) = entry else { continue };
            let waiting = self.pool.find(reference.client, reference.digest);
            if let Some((last, body)) = self.bodies.get_mut(&reference.digest) {
                *last = sequence.max(*last);
                // A body that was fetched may have come with a spoilt proof.
                if let (Vouched::No, Some(request)) = (body.vouched, waiting) {
                    *body = request.clone();
                }
            } else if let Some(request) = waiting.cloned() {
                self.keep_body(sequence, request);
            } else {
                complete = false;
                self.want_body(context, sequence, *reference);
            }
        }
        complete
    }

    pub(super) fn bodies_vouched(&self, batch: &Batch) -> bool {
        batch.entries.iter().all(|entry| match entry {
            Entry::Inline(_) => true,
            Entry::Reference(reference) => {
                self.bodies.get(&reference.digest).is_some_and(|(_, body)| body.vouched != Vouched::No)
            }
        })
    }

    /// Asks for a batch; asked again, of somebody else, at every status time-out.
    pub(super) fn want_batch(&mut self, context: &mut Ctx<'_>, sequence: Sequence, digest: Digest) {
        if self.wanted_batches.contains_key(&digest) || self.batch(digest).is_some() {
            return;
        }
        let ask = self.someone(context, context.cluster.primary(self.view));
        self.wanted_batches.insert(digest, (sequence, ask));
        context.push(OrderEffect::Send(ask, PbftMessage::FetchBatch(Position { sequence, digest })));
    }

    fn want_body(&mut self, context: &mut Ctx<'_>, sequence: Sequence, reference: Reference) {
        if self.wanted_bodies.contains_key(&reference.digest) {
            return;
        }
        let ask = self.someone(context, context.cluster.primary(self.view));
        self.wanted_bodies.insert(reference.digest, (sequence, reference, ask));
        context.push(OrderEffect::Send(ask, PbftMessage::FetchRequest(reference)));
    }

    /// `first`, or the next replica if that is ourselves.
    pub(super) fn someone(&self, context: &Ctx<'_>, first: ReplicaId) -> ReplicaId {
        if first == context.me { context.cluster.next_replica(first) } else { first }
    }

    /// Somebody lacks a batch.
    pub(super) fn on_fetch_batch(&mut self, context: &mut Ctx<'_>, from: ReplicaId, position: Position) {
        if let Some((_, batch)) = self.batches.get(&position.digest) {
            context.push(OrderEffect::Send(from, PbftMessage::Batch(batch.clone())));
        }
    }

    /// A batch that was asked for: its digest says that it is the right one.
    pub(super) fn on_batch(&mut self, context: &mut Ctx<'_>, from: ReplicaId, batch: Arc<Batch>) {
        let Some((sequence, _)) = self.wanted_batches.remove(&batch.digest()) else {
            return context.reject(from, Rejection::Unsolicited);
        };
        self.keep(sequence, &batch);
        for slot in self.slots.values_mut() {
            if let Some(proposed) = &mut slot.proposed
                && proposed.digest == batch.digest()
            {
                proposed.batch = Some(batch.clone());
            }
        }
        self.try_accept(context, sequence);
        self.try_new_view(context);
        self.advance(context);
    }

    /// Somebody lacks the body of a big request.
    pub(super) fn on_fetch_request(&mut self, context: &mut Ctx<'_>, from: ReplicaId, reference: Reference) {
        let held = self.bodies.get(&reference.digest).map(|(_, body)| body);
        if let Some(body) = held.or_else(|| self.pool.find(reference.client, reference.digest)) {
            let body = Box::new(body.clone());
            context.push(OrderEffect::Send(from, PbftMessage::Body(body)));
        }
    }

    /// A body that was asked for. Its digest says that it is the right one; whether it is its client's was checked at
    /// the boundary or is vouched for by f+1 PREPAREs.
    pub(super) fn on_body(&mut self, context: &mut Ctx<'_>, from: ReplicaId, request: Request) {
        // What a batch holds is checked; what it only names must be no other kind of request.
        if request.instance != context.instance {
            return context.reject(from, Rejection::WrongInstance);
        }
        if request.read_only {
            return context.reject(from, Rejection::BadBatch);
        }
        let Some((sequence, ..)) = self.wanted_bodies.remove(&request.digest()) else {
            return context.reject(from, Rejection::Unsolicited);
        };
        self.keep_body(sequence, request);
        self.try_accept(context, sequence);
        self.try_new_view(context);
        self.advance(context);
    }
}
