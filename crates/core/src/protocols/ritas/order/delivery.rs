//! From payloads to batches: Order 2 to 6.

use super::super::atomic_broadcast::{Hold, Standing};
use super::super::message::Value;
use super::super::path::{Id, Path};
use super::super::stack::Outcome;
use super::payload::{Payload, vouch};
use super::record::{Delivered, RitasRecord};
use super::replica::{Arrived, Ctx, PAYLOADS_IN_FLIGHT, Ritas};
use crate::auth::Certificate;
use crate::batch::{Batch, Entry, Ordered};
use crate::checkpoint::{Checkpoint, Evidence};
use crate::digest::{Digest, Domain};
use crate::ids::{ClientId, Sequence, Timestamp, View};
use crate::message::Request;
use crate::protocols::total_order::{Delivery, OrderEffect};
use crate::rejection::Rejection;
use crate::service::Proposal;
use crate::time::Instant;
use crate::wire::Wire;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

impl Ritas {
    /// Order 2. What waits goes into a payload, unless enough of them are on their way. A second one is not smaller
    /// than the first: what a payload costs, however small, is most of the work. Who may not speak of its own passes
    /// on what it is asked.
    pub(super) fn propose(&mut self, context: &mut Ctx<'_>) {
        loop {
            let on_their_way = self.stack.on_their_way(Path::atomic_broadcast(), context.me);
            let waiting = self.pool.unproposed();
            let may = match on_their_way {
                0 => waiting > 0 || self.owes_round,
                1..PAYLOADS_IN_FLIGHT => waiting > 0 && waiting >= self.last_proposed,
                _ => false,
            };
            if !may {
                return;
            }
            let (cluster, keyring) = (context.cluster, context.keyring);
            let requests = self.pool.next_batch(&context.cluster.limits, |batch| vouch(cluster, keyring, batch));
            if self.silence.is_some() {
                let next = self.replicas.next(context.me);
                context.out.extend(requests.into_iter().map(|request| OrderEffect::Forward(next, request)));
                continue;
            }
            if requests.is_empty() && waiting > 0 {
                continue;
            }
            self.broadcast(context, requests);
        }
    }

    fn broadcast(&mut self, context: &mut Ctx<'_>, requests: Vec<Request>) {
        context.step("Order 2");
        self.owes_round = false;
        self.last_proposed = requests.len();
        let seed = context.keyring.seed(&(self.instance, (self.round(), self.delivered)).to_bytes());
        let payload = Payload { time: context.now, seed, requests };
        let value = Value(Bytes::from(payload.to_bytes()));
        // One whose number had another payload in an earlier life never comes.
        if self.chosen.len() as u64 >= PAYLOADS_IN_FLIGHT {
            self.chosen.pop_front();
        }
        self.chosen.push_back(value.clone());
        let outcomes =
            self.act(context.me, context.steps, |stack, scope| stack.order(scope, Path::atomic_broadcast(), value));
        self.learn(context, outcomes.expect("fewer are on their way than the window has"));
    }

    /// What the stack has come to. Nothing of it reaches anybody before what it rests on is on disk.
    pub(super) fn learn(&mut self, context: &mut Ctx<'_>, outcomes: Vec<Outcome>) {
        self.persist(context);
        self.outcomes.extend(outcomes);
        // What one of them leads to comes after those that are there already.
        if core::mem::replace(&mut self.is_learning, true) {
            return;
        }
        while let Some(outcome) = self.outcomes.pop_front() {
            match outcome {
                Outcome::Message(_, id, value) => self.on_payload(context, id, value),
                Outcome::Ordered(_, id, _) => {
                    // What cannot be read nobody has listed.
                    self.ordered.extend(self.arrived.remove(&id).map(|arrived| arrived.payload));
                }
                Outcome::Reached(_, standing) => self.on_reached(context, standing),
                Outcome::Delivered(..) | Outcome::Bit(..) | Outcome::Agreed(..) | Outcome::Vector(..) => {
                    unreachable!("an order has one atomic broadcast, and nothing besides")
                }
            }
        }
        self.is_learning = false;
    }

    /// Order 3.
    fn on_payload(&mut self, context: &mut Ctx<'_>, id: Id, value: Value) {
        // What its log or others remember of an earlier life it checks again: it may have been somebody else's.
        let chosen =
            (id.sender == context.me).then(|| self.chosen.iter().position(|chosen| *chosen == value)).flatten();
        let is_chosen = chosen.and_then(|at| self.chosen.remove(at)).is_some();
        let payload = Payload::from_bytes(value.0).ok();
        let Some(mut payload) = payload else {
            return context.reject(id.sender, Rejection::Malformed);
        };
        let checks = (context.cluster, context.keyring);
        let is_sound = payload.is_sound(checks, context.instance, is_chosen);
        if !is_sound {
            context.reject(id.sender, Rejection::BadBatch);
        }
        self.arrived.insert(id, Arrived { payload, is_sound, is_listed: false });
        self.vouch_for(context, id);
    }

    fn vouch_for(&mut self, context: &mut Ctx<'_>, id: Id) {
        let may_be_listed = |arrived: &&mut Arrived| arrived.is_sound && !arrived.is_listed;
        let Some(arrived) = self.arrived.get_mut(&id).filter(may_be_listed) else { return };
        let is_in_time = arrived.payload.time <= context.now + context.cluster.limits.clock_skew_max;
        let has_init = || arrived.payload.requests.iter().any(Request::is_system);
        if !is_in_time || self.awaits_init && !has_init() {
            return;
        }
        context.step("Order 3");
        arrived.is_listed = true;
        let root = Path::atomic_broadcast();
        let outcomes = self.act(context.me, context.steps, |stack, scope| stack.vouch(scope, root, id));
        if self.stack.lists(root, id) {
            self.leave_to_others(id);
        }
        self.learn(context, outcomes);
    }

    /// Order 3. What is listed comes to be ordered: no payload of this replica has to carry it too. A client that asks
    /// all would take the place of n payloads otherwise.
    fn leave_to_others(&mut self, listed: Id) {
        let requests = &self.arrived[&listed].payload.requests;
        requests.iter().for_each(|request| self.pool.proposed(request.digest()));
    }

    /// Order 3, for those that could not be listed when they came.
    pub(super) fn vouch_for_arrived(&mut self, context: &mut Ctx<'_>) {
        let waiting: Vec<Id> = self.arrived.iter().filter(|(_, at)| !at.is_listed).map(|(id, _)| *id).collect();
        waiting.into_iter().for_each(|id| self.vouch_for(context, id));
    }

    /// Order 4.
    fn on_reached(&mut self, context: &mut Ctx<'_>, standing: Standing) {
        context.step("Order 4");
        let payloads = core::mem::take(&mut self.ordered);
        let batch = Arc::new(self.batch_of(payloads));
        let delivered = Delivered { sequence: self.delivered.next(), batch, standing };
        self.delivered = delivered.sequence;
        self.batches.insert(delivered.sequence, delivered.clone());
        context.push(OrderEffect::Persist(RitasRecord::Delivered(delivered.clone())));
        self.hand_over(context, &delivered);
        self.rest_after(context, &delivered.batch);
        self.try_to_speak_again(context);
    }

    /// Order 4. Of each client the newest request: older ones, which liars may repeat as often as they like, would take
    /// its place, and lead to nothing.
    fn batch_of(&mut self, payloads: Vec<Payload>) -> Batch {
        let time = payloads.iter().map(|payload| payload.time).max().unwrap_or(Instant(0));
        let seeds: Vec<&[u8]> = payloads.iter().map(|payload| &payload.seed.0[..]).collect();
        let seed = Digest::of_parts(Domain::Seed, &seeds);
        let requests = payloads.into_iter().flat_map(|payload| payload.requests);
        let (first, rest): (Vec<Request>, Vec<Request>) = requests.partition(Request::is_system);
        let mut newest: BTreeMap<ClientId, Timestamp> = BTreeMap::new();
        for Request { client, timestamp, .. } in first.iter().chain(&rest) {
            let known = newest.entry(*client).or_insert(*timestamp);
            *known = (*known).max(*timestamp);
        }
        let mut entries = Vec::with_capacity(newest.len());
        for request in first.into_iter().chain(rest) {
            let (client, timestamp) = (request.client, request.timestamp);
            if newest.get(&client) == Some(&timestamp) {
                newest.remove(&client);
                entries.push(Entry::Inline(request));
            } else if self.pool.waits(client, timestamp) {
                // Another request of its client has its place in the batch.
                self.pool.propose_again(client);
            }
        }
        match entries.is_empty() {
            true => Batch::null(),
            false => Batch::new(Proposal { time, seed }, entries),
        }
    }

    /// Hands over once more what follows a batch.
    pub(super) fn deliver_again(&self, context: &mut Ctx<'_>, after: Sequence) {
        self.batches.range(after.next()..).for_each(|(_, delivered)| self.hand_over(context, delivered));
    }

    /// Hands a batch to the execution.
    fn hand_over(&self, context: &mut Ctx<'_>, delivered: &Delivered) {
        let Delivered { sequence, batch, standing } = delivered;
        let standing = Some((self.instance, standing.clone()).to_bytes().into());
        let ordered =
            Ordered { sequence: *sequence, view: View(0), batch: batch.clone(), bodies: Vec::new(), standing };
        context.push(OrderEffect::Deliver(Delivery::Final(ordered)));
    }

    /// Order 5.
    pub(super) fn hold_if_far(&mut self, context: &mut Ctx<'_>) {
        let cluster = context.cluster;
        let ahead = self.delivered.0.saturating_sub(self.low_water_mark().0);
        let has_place = ahead < cluster.window_of_requests() || ahead < cluster.window() && self.awaits_ruling(context);
        let is_far = !has_place;
        if core::mem::replace(&mut self.is_held, is_far) == is_far {
            return;
        }
        context.step("Order 5");
        let hold = if is_far { Hold::Rounds } else { Hold::Nothing };
        let outcomes =
            self.act(context.me, context.steps, |stack, scope| stack.hold(scope, Path::atomic_broadcast(), hold));
        self.learn(context, outcomes);
    }

    /// Order 5. Whether a ruling waits, without which no checkpoint may become stable any more: the last places of the
    /// window are for these.
    fn awaits_ruling(&self, context: &Ctx<'_>) -> bool {
        let is_ruling = |request: &Request| request.is_ruling() && !(context.is_over)(request);
        let listed = self.arrived.values().filter(|arrived| arrived.is_listed);
        self.pool.has_ruling(context.is_over) || listed.flat_map(|of| &of.payload.requests).any(is_ruling)
    }

    pub(super) fn raise_low_water_mark(&mut self, certificate: &Certificate<Checkpoint>) {
        if certificate.value().sequence > self.low_water_mark() {
            self.stable = Evidence::Certified(certificate.clone());
        }
    }

    /// Order 6.
    pub(super) fn forget_what_is_stable(&mut self, context: &mut Ctx<'_>) {
        context.step("Order 6");
        let low = self.low_water_mark();
        let standing = self.batches.get(&low).map(|delivered| delivered.standing.clone());
        self.batches = self.batches.split_off(&low.next());
        if let Some(standing) = standing {
            let outcomes = self.act(context.me, context.steps, |stack, scope| {
                stack.forget_before(scope, Path::atomic_broadcast(), &standing)
            });
            self.learn(context, outcomes);
        }
    }

    /// Order 6. The state is that at a stable checkpoint: the atomic broadcast goes on from there.
    pub(super) fn move_to(&mut self, context: &mut Ctx<'_>, standing: Standing) {
        context.step("Order 6");
        self.ordered.clear();
        self.chosen.clear();
        self.rest = None;
        self.arrived.retain(|id, _| !standing.has(*id));
        let outcomes = self.act(context.me, context.steps, |stack, scope| {
            let mut outcomes = stack.resume_at(scope, Path::atomic_broadcast(), standing.clone());
            outcomes.extend(stack.forget_before(scope, Path::atomic_broadcast(), &standing));
            outcomes
        });
        self.learn(context, outcomes);
        self.try_to_speak_again(context);
    }
}
