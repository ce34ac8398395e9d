//! A replica's part: Ring 2 to 5 of the [module](super).

use super::flow::Flow;
use super::held::{Executed, Held, UNDER_WAY_MAX, WINDOW};
use super::message::{Accepted, Body, RingMessage, RingReply, RingReplyStatement, Stamp};
use super::path::Path;
use super::state::RingFast;
use super::tags::{add_strikes, add_tags, check, client_tags, strike_and_trim};
use crate::digest::Digest;
use crate::ids::{Principal, ReplicaId, View};
use crate::machine::Destination;
use crate::message::{Request, Vouched};
use crate::protocols::ring_fast::message::Speaker;
use crate::protocols::speculative::{AHEAD_BYTES_MAX, Standing};
use crate::rejection::Rejection;
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::Surroundings;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Messages ahead of the log that are kept for each replica, and messages that wait at the sequencer for room in the
/// log: as many as may be under way, and again as many.
pub(super) const EARLY_MAX: usize = 2 * UNDER_WAY_MAX;

/// Bytes of operations that make a batch of at least two requests full. It leaves although others are under way: with
/// more in it, headers and MACs would cost hardly less. And it gets no more: a replica passes on what it has got whole,
/// so that few great batches leave some links without work while they wait for others.
const FULL_BYTES: usize = 16 << 10;

impl<S: Service> RingFast<S> {
    /// Ring 2, first half; and whoever has the request in its history answers again.
    pub(super) fn on_request(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, mut request: Request) {
        if self.base.is_stopped() {
            return;
        }
        let panics = request.authentication.signature.is_some();
        if panics && self.panics.has_checked(&request) {
            // Clients that panic do so again and again, and others hand it on: when nothing goes on there are many.
            request.vouched = Vouched::Signature;
        } else if panics {
            Request::vouch_signatures(core::iter::once(&mut request), s.cluster, s.keyring);
            if request.vouched != Vouched::Signature {
                return s.reject(from, Rejection::UnauthenticRequest);
            }
        }
        match self.base.standing(s, &request) {
            Standing::New => {
                if panics {
                    return self.on_panic(s, from, request);
                }
                // One that is sent to everybody is the second attempt.
                let is_sent_to_all = request.authentication.tags.iter().len() == self.base.what.replicas.n();
                let Request { client, timestamp, .. } = request;
                let entry = Path::entry_for(self.base.what.replicas, client, timestamp, u64::from(is_sent_to_all));
                if entry != s.me {
                    if from.is_client() && !is_sent_to_all {
                        // It asks another one than it should, perhaps because it wants to be nearer.
                        s.reject(from, Rejection::WrongEntry);
                    }
                    return;
                }
                s.step("Ring 2");
                if let Err(reason) = self.queue.push(s.now, &s.cluster.limits, request) {
                    s.reject(from, reason);
                }
            }
            Standing::Done { position, history, outcome } => {
                if panics && from.is_client() && !self.keep_panic(s, from, &request) {
                    s.reject(from, Rejection::Overload);
                }
                self.base.respond(s, &request, position, history, &outcome);
            }
            Standing::Stale => s.too_late(from, View(0), &request),
        }
    }

    /// What leaves an entry, before its MACs.
    pub(super) const fn first_message(&self, entry: ReplicaId, body: Body) -> RingMessage {
        RingMessage {
            instance: self.base.what.number,
            entry,
            body,
            strikes: Vec::new(),
            stamp: None,
            tags: Vec::new(),
            reply_tags: Vec::new(),
        }
    }

    /// Ring 2: bytes of the next batch, if it is full.
    fn full_bytes(&self) -> usize {
        FULL_BYTES.max(2 * self.queue.first_bytes())
    }

    /// Ring 2: whether the next batch may leave this entry.
    fn may_begin(&self, s: &Surroundings<'_, impl Speaker>) -> bool {
        let limits = &s.cluster.limits;
        let (batches, bytes) = self.batches.under_way(s.me, s.now, limits.client_retry);
        let has_room = match self.queue.bytes() >= self.full_bytes() {
            true => batches < UNDER_WAY_MAX && bytes < WINDOW * limits.batch_bytes_max,
            false => batches < WINDOW,
        };
        !self.queue.is_empty() && has_room && (batches == 0 || self.flow.has_credit(limits, WINDOW))
    }

    /// Ring 2, second half.
    pub(super) fn pass_end(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if !self.base.is_stopped() {
            self.send_signed(s);
        }
        let limits = &s.cluster.limits;
        while !self.base.is_stopped() && self.may_begin(s) {
            let since = self.queue.since().unwrap_or(s.now);
            // One that is longer would never find room in a log.
            let mut requests = self.queue.take_bytes(limits, limits.history_interval, self.full_bytes());
            requests.retain(|request| self.base.standing(s, request) == Standing::New);
            if !requests.is_empty() {
                self.watch.note_wait(s.now - since);
                self.send_batch(s, requests);
            }
        }
        if !self.base.is_stopped() {
            self.serve_panics(s);
        }
    }

    /// Ring 2: a batch leaves this entry.
    pub(super) fn send_batch(&mut self, s: &mut Surroundings<'_, impl Speaker>, mut requests: Vec<Request>) {
        assert!(!requests.is_empty(), "a batch has requests");
        s.step("Ring 2");
        let path = self.path(s.me);
        for request in &mut requests {
            request.authentication.tags = client_tags(self.base.what.replicas, &path, request);
        }
        let body = Body::Requests(requests.clone());
        let batch = body.digest();
        self.flow.send(Flow::bytes(&requests));
        self.batches.keep(s.now, &s.cluster.limits, s.me, batch, requests);
        let message = self.first_message(s.me, body);
        self.pass_on(s, Accepted { path, position: 0, batch, message });
    }

    /// Ring 3, first half: what authenticates the message.
    pub(super) fn on_ring(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        mut message: RingMessage,
    ) {
        if self.base.is_stopped() {
            return;
        }
        let is_probe = matches!(message.body, Body::Probe(_));
        let path = match is_probe {
            true => Path::of_probe(self.base.what.replicas, self.base.what.head, message.entry),
            false => self.path(message.entry),
        };
        let position = path.offset(s.me) + usize::from(message.body.pass()) * self.base.what.replicas.n();
        let is_place = self.base.what.replicas.contains(message.entry) && position > 0 && position <= path.last();
        if !is_place || from != path.at(position - 1) {
            return s.reject(Principal::Replica(from), Rejection::WrongSender);
        }
        let batch = message.body.digest();
        let held = self.batches.find(message.entry, batch);
        let requests = match &message.body {
            Body::Requests(requests) => Some(requests.len()),
            Body::Probe(_) => Some(0),
            Body::Digest(_) | Body::DigestAgain(_) => held.map(|held| held.requests.len()),
        };
        let Some(requests) = requests else {
            return s.reject(Principal::Replica(from), Rejection::Unsolicited);
        };
        if !message.has_shape(&path, position, requests) || !message.has_client_tags(&path, position) {
            return s.reject(Principal::Replica(from), Rejection::Malformed);
        }
        if message.stamp.is_none() && position > path.stamp() {
            // It has the number already, and checks that the others mean the same one.
            let is_same = |held: &&Held| held.executed.len() + message.strikes.len() == held.requests.len();
            message.stamp = held.filter(is_same).and_then(|held| held.stamp.clone());
            if message.stamp.is_none() {
                return s.reject(Principal::Replica(from), Rejection::Unsolicited);
            }
        }
        let good = |maker| check(s, &path, batch, &message, maker, position);
        if !good(position - 1) {
            // Not what the predecessor sent: a stop would let anybody on the way stop the ring (abs-P3).
            return s.reject(Principal::Replica(from), Rejection::BadMac);
        }
        if !path.predecessors(position).all(|maker| maker == position - 1 || good(maker)) {
            return self.base.stop(s, StopReason::BadMac, false);
        }
        if let Body::Requests(requests) = &mut message.body {
            strike_and_trim(s, &path, position, requests, &mut message.strikes);
            if message.strikes.len() == requests.len() {
                return;
            }
            if position <= path.stamp() && self.batches.is_too_much(s.now, &s.cluster.limits, message.entry, requests) {
                return s.reject(Principal::Replica(message.entry), Rejection::Overload);
            }
            self.flow.come_by(s.now, Flow::bytes(requests), self.base.what.replicas.n() - 1);
            self.batches.keep(s.now, &s.cluster.limits, message.entry, batch, requests.clone());
        }
        if position == path.exit() + 1
            && !is_probe
            && let Some(held) = self.batches.find(s.me, batch)
        {
            let left = held.since;
            self.watch.note(s.now - left);
            self.flow.come_back(left);
        }
        let accepted = Accepted { path, position, batch, message };
        if is_probe { self.accept_probe(s, accepted) } else { self.accept(s, accepted) }
    }

    /// Ring 3, second half: what the message's place on its path asks for.
    fn accept(&mut self, s: &mut Surroundings<'_, impl Speaker>, accepted: Accepted) {
        s.step("Ring 3");
        let Accepted { path, position, .. } = accepted;
        let from = Principal::Replica(path.at(position - 1));
        if position == path.stamp() {
            let waiting: usize = self.unstamped.iter().map(Accepted::weight).sum();
            if self.unstamped.len() >= EARLY_MAX * self.base.what.replicas.n() || waiting > AHEAD_BYTES_MAX {
                return s.reject(from, Rejection::Overload);
            }
            self.unstamped.push_back(accepted);
            return self.take(s);
        }
        let Some(stamp) = accepted.message.stamp.as_ref().filter(|_| path.executes(position)) else {
            return self.pass_on(s, accepted);
        };
        let next = self.base.ledger.log.length() + 1;
        let first = stamp.first;
        if first < next || first > next + 2 * s.cluster.history_bound() {
            return s.reject(from, Rejection::OutsideWindow);
        }
        if !self.early.keep(first, accepted.weight(), accepted, EARLY_MAX * self.base.what.replicas.n()) {
            return s.reject(from, Rejection::Overload);
        }
        self.take(s);
    }

    /// Takes the messages whose turn it is; also after a checkpoint has made room.
    pub(super) fn take(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        while let Some(accepted) = self.next(s) {
            let is_stamped = accepted.message.stamp.is_some();
            let accepted = if is_stamped { Some(accepted) } else { self.stamp(s, accepted) };
            if let Some(accepted) = accepted {
                self.log_and_pass_on(s, accepted, is_stamped);
            }
        }
        if !self.base.is_stopped() {
            core::mem::take(&mut self.probes).into_values().for_each(|probe| self.accept_probe(s, probe));
        }
    }

    fn next(&mut self, s: &Surroundings<'_, impl Speaker>) -> Option<Accepted> {
        let has_room = |accepted: &Accepted| {
            let held = self.batches.find(accepted.message.entry, accepted.batch);
            let requests = held.map_or(0, |held| held.requests.len() - accepted.message.strikes.len());
            self.base.may_log(s, requests)
        };
        let next = self.base.ledger.log.length() + 1;
        if let Some(accepted) = self.early.take_if(next, has_room) {
            return Some(accepted);
        }
        if self.unstamped.front().is_some_and(has_room) { self.unstamped.pop_front() } else { None }
    }

    /// Ring 4: the sequencer strikes what may not be logged, and gives the rest the next positions.
    fn stamp(&mut self, s: &mut Surroundings<'_, impl Speaker>, mut accepted: Accepted) -> Option<Accepted> {
        let Accepted { position, batch, message, .. } = &mut accepted;
        let requests = self.batches.find(message.entry, *batch)?.requests.clone();
        let mut clients = BTreeSet::new();
        let live: Vec<usize> = message.live(requests.len()).collect();
        let mut refused = Vec::new();
        for at in live.iter().copied() {
            let request = &requests[at];
            if !self.base.may_be_logged(s, request) || !clients.insert(request.client) {
                refused.push(at);
            }
        }
        if refused.len() == live.len() {
            return None;
        }
        add_strikes(&mut message.strikes, *position, refused);
        let first = self.base.ledger.log.length() + 1;
        let proposal = self.base.propose(s);
        message.stamp = Some(Stamp { first, proposal, history: Digest::ZERO, effects: Digest::ZERO });
        Some(accepted)
    }

    /// Ring 4: logs, executes and passes on.
    fn log_and_pass_on(&mut self, s: &mut Surroundings<'_, impl Speaker>, mut accepted: Accepted, is_claimed: bool) {
        let Accepted { batch, message, .. } = &mut accepted;
        let Some(held) = self.batches.find(message.entry, *batch) else { return };
        s.step("Ring 4");
        let live: Vec<usize> = message.live(held.requests.len()).collect();
        let stamp = message.stamp.as_mut().expect("only what has a number is logged");
        let requests: Vec<Request> = live.iter().map(|at| held.requests[*at].clone()).collect();
        if is_claimed && let Some(objection) = self.base.objection(s, &stamp.proposal, &requests) {
            return self.base.stop(s, objection, false);
        }
        self.load.note(requests.iter().map(|request| request.client));
        let before = self.base.ledger.log.length();
        assert_eq!(stamp.first, before + 1, "batches are logged in the order of their numbers");
        for request in requests {
            self.base.log(s, stamp.proposal.clone(), request);
        }
        let history = self.base.ledger.log.history();
        if is_claimed && stamp.history != history {
            // Nothing was said about these entries yet.
            self.base.forget_after(before);
            return self.base.stop(s, StopReason::OtherHistoryOfSequencer, false);
        }
        stamp.history = history;
        self.base.persist(s, before);
        let mut executed = Vec::with_capacity(live.len());
        let mut position = before;
        self.base.execute(s, |_, logged, _, outcome| {
            let request = live[(position - before) as usize];
            position += 1;
            executed.push(Executed { request, position, history: logged.history, outcome: outcome.clone() });
        });
        assert_eq!(executed.len(), live.len(), "all before the batch was executed before");
        let stamp = message.stamp.as_mut().expect("only what has a number is logged");
        let effects = self.base.ledger.estate.effects();
        if is_claimed && stamp.effects != effects {
            return self.base.stop(s, StopReason::OtherResultsOfSequencer, false);
        }
        stamp.effects = effects;
        let held = self.batches.find_mut(message.entry, *batch).expect("it was just there");
        held.executed = executed;
        held.stamp.clone_from(&accepted.message.stamp);
        self.pass_on(s, accepted);
    }

    /// Ring 3 and 5: this replica's MACs, and the message goes on, or the answers to the clients.
    pub(super) fn pass_on(&mut self, s: &mut Surroundings<'_, impl Speaker>, accepted: Accepted) {
        let Accepted { path, position, batch, mut message } = accepted;
        assert!(position <= path.last(), "the way ends at its last position");
        let has_number = position < path.stamp() || message.stamp.is_some();
        assert!(has_number, "whatever has passed the sequencer has a number");
        let is_probe = matches!(message.body, Body::Probe(_));
        if path.is_last(position) {
            s.step("Ring 5");
            self.add_reply_tags(s, &path, position, batch, &mut message);
        }
        if position == path.last() {
            self.reply(s, &path, batch, &message);
        } else {
            match &mut message.body {
                Body::Probe(probe) => probe.pass = path.pass(position),
                body => match path.pass(position) {
                    0 => {}
                    1 => *body = Body::Digest(batch),
                    _ => *body = Body::DigestAgain(batch),
                },
            }
            add_tags(s, &path, position, batch, &mut message);
            if !path.is_told(position + 1) {
                message.stamp = None;
            }
            s.send(Destination::Replica(path.at(position + 1)), message);
        }
        if !is_probe && !path.comes_again(position) {
            self.batches.forget(path.at(0), batch);
        }
    }

    /// Ring 5: this replica's MACs for the clients, behind those of the positions before.
    fn add_reply_tags(
        &self,
        s: &Surroundings<'_, impl Speaker>,
        path: &Path,
        position: usize,
        batch: Digest,
        message: &mut RingMessage,
    ) {
        let Some(held) = self.batches.find(message.entry, batch) else { return };
        let before = path.reply_tags(position) - 1;
        let mut tags = Vec::with_capacity(held.executed.len() * (before + 1));
        for (index, done) in held.executed.iter().enumerate() {
            let request = &held.requests[done.request];
            let statement = statement(message, request, done);
            tags.extend_from_slice(&message.reply_tags[index * before..(index + 1) * before]);
            tags.push(s.keyring.tag(Principal::Client(request.client), &statement.bytes()));
        }
        assert_eq!(tags.len(), held.executed.len() * path.reply_tags(position), "the next position counts them");
        message.reply_tags = tags;
    }

    /// Ring 5: the last position answers.
    fn reply(&self, s: &mut Surroundings<'_, impl Speaker>, path: &Path, batch: Digest, message: &RingMessage) {
        let Some(held) = self.batches.find(message.entry, batch) else { return };
        let each = path.reply_tags(path.last());
        for (index, done) in held.executed.iter().enumerate() {
            let Request { client, timestamp, .. } = held.requests[done.request];
            let reply = RingReply {
                instance: message.instance,
                entry: message.entry,
                client,
                timestamp,
                position: done.position,
                history: done.history,
                outcome: done.outcome.clone(),
                tags: message.reply_tags[index * each..(index + 1) * each].to_vec(),
            };
            s.send(Destination::Client(client), reply);
        }
    }
}

/// What a client is told about a request.
fn statement(message: &RingMessage, request: &Request, done: &Executed) -> RingReplyStatement {
    RingReplyStatement {
        instance: message.instance,
        entry: message.entry,
        client: request.client,
        timestamp: request.timestamp,
        position: done.position,
        history: done.history,
        outcome: done.outcome.digest(),
    }
}
