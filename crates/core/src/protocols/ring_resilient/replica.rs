//! Ordering, logging and executing: Resilient 1, 2, 3 and 5 of the [module](super).

use super::bodies::has_proof;
use super::message::{Order, ResilientMessage};
use super::state::{EARLY_MAX, Early, RingResilient, Slot};
use crate::auth::Signed;
use crate::batch::{Batch, Entry, Reference};
use crate::clients::Freshness;
use crate::cluster::ClientAuth;
use crate::digest::Digest;
use crate::history::{LogEntry, Logged};
use crate::ids::{InstanceId, Principal, ReplicaId, View};
use crate::machine::Destination;
use crate::message::{Outcome, Request, Vouched, are_of_distinct_clients};
use crate::protocols::ring_resilient::message::Speaker;
use crate::protocols::speculative::{Certain, Response, abridged};
use crate::rejection::Rejection;
use crate::service::{Proposal, Service};
use crate::stop::StopReason;
use crate::switching::certificate::Prepared;
use crate::switching::{HistoryRecord, Surroundings, Switch, SwitchMessage};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

/// For how many times T a replica bears that others are served, and not those whose requests it has passed on.
const FAIR_PATIENCES: u64 = 8;

impl<S: Service> RingResilient<S> {
    /// The first input, and after a restart: the sequencer's first ORDER is about the init history.
    pub(super) fn begin(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        self.progress = s.now;
        if self.opened {
            self.find_slots();
            let certified = self.prepared.as_ref().map(|certificate| certificate.value().position);
            let uncertified: Vec<u64> = self.slots.keys().copied().filter(|end| Some(*end) > certified).collect();
            for end in uncertified {
                self.own_prepare(s, end);
            }
            return self.find_votes(s);
        }
        if self.leads(s) {
            self.open_here(s, None);
        }
    }

    /// Resilient 1.
    pub(super) fn on_request(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, request: Request) {
        s.step("Resilient 1");
        self.take_body(s, from, &request);
        let (client, direct) = (request.client, from.is_client());
        match self.base.ledger.estate.freshness(&request) {
            Freshness::New if self.is_ordered(&request) => {}
            Freshness::New => match self.pool.add(request, from.replica(), &s.cluster.limits) {
                Ok(_) if direct => drop(self.pool.watch(client)),
                Ok(_) => {}
                Err(reason) => s.reject(from, reason),
            },
            Freshness::Last(_) if !direct => {}
            Freshness::Last(entry) if entry.position > self.base.init().0 => {
                let (position, history, outcome) = (entry.position, entry.history, entry.outcome.clone());
                self.answer_again(s, &request, position, history, outcome);
            }
            Freshness::Last(entry) if self.committed.is_some() => {
                let (outcome, (position, history)) = (entry.outcome.clone(), self.base.init());
                self.answer_again(s, &request, position, history, outcome);
            }
            Freshness::Stale if self.committed.is_some() || !direct => s.too_late(from, View(0), &request),
            // Others may have begun with another history, and go on with that.
            Freshness::Last(_) | Freshness::Stale => {
                if self.inherited.len() < s.cluster.limits.pending_requests_max {
                    self.inherited.insert(client, request.timestamp);
                }
            }
            Freshness::Gone(_) => s.reject(from, Rejection::StaleTimestamp),
        }
    }

    /// Resilient 5 and 6: a client asks again. What the anchor includes 2f+1 have executed identically: f+1 that say so
    /// are enough.
    fn answer_again(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        request: &Request,
        position: u64,
        history: Digest,
        outcome: Outcome,
    ) {
        let response = Response::to(self.base.what.number, request, position, history, outcome);
        let is_certain = position <= self.base.ledger.log.anchor().position;
        let client = Destination::Client(request.client);
        if is_certain {
            s.send(client, Certain(response));
        } else {
            s.send(client, response);
        }
        if !is_certain {
            self.doubt_answer(s, position);
        }
    }

    /// The init history is certain: who waits for that is answered.
    pub(super) fn answer_inherited(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        for (client, timestamp) in core::mem::take(&mut self.inherited) {
            let asked = Request::new(self.base.what.number, client, timestamp, false, Bytes::new());
            // After this replica has gone over to another history it may not be there: its client asks again.
            if let Freshness::Last(_) | Freshness::Stale = self.base.ledger.estate.freshness(&asked) {
                self.on_request(s, Principal::Client(client), asked);
            }
        }
    }

    /// Whether its client has logged it, or a later one, in what is not executed yet.
    fn is_ordered(&self, request: &Request) -> bool {
        self.ordered.get(&request.client).is_some_and(|last| *last >= request.timestamp)
    }

    /// Whether it may be logged: it is newer than whatever its client has in the log.
    fn is_new(&self, request: &Request) -> bool {
        matches!(self.base.ledger.estate.freshness(request), Freshness::New) && !self.is_ordered(request)
    }

    /// Resilient 2: the sequencer orders what waits, while few batches are under way.
    pub(super) fn order(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        while self.leads(s) && !self.base.is_stopped() && self.opened && self.pool.has_unproposed() {
            let executed = self.base.ledger.estate.executed().0;
            let in_flight = self.slots.range(executed + 1..).count() as u64;
            let length = self.base.ledger.log.length();
            let room = self.base.room(s).min(self.last() - length);
            if room == 0 || in_flight >= s.cluster.limits.batches_in_flight_max {
                return;
            }
            let most = usize::try_from(room).unwrap_or(usize::MAX);
            let signed = s.cluster.client_auth != ClientAuth::Mac;
            let (cluster, keyring) = (s.cluster, s.keyring);
            let requests = self.pool.next_of(&cluster.limits, most, |batch| {
                if signed {
                    // The others must be able to check it as well (pbft-F20).
                    Request::vouch_signatures(batch.iter_mut(), cluster, keyring);
                    for request in batch.iter_mut().filter(|request| request.vouched != Vouched::Signature) {
                        request.vouched = Vouched::No;
                    }
                }
            });
            let (new, over): (Vec<_>, Vec<_>) = requests.into_iter().partition(|request| self.is_new(request));
            // What is logged leaves when it is executed; the rest never would.
            let over = over.into_iter().filter(|request| !self.is_ordered(request));
            over.collect::<Vec<_>>().iter().for_each(|request| self.pool.remove(request.client));
            let requests = new;
            if requests.is_empty() {
                continue;
            }
            let proposal = self.base.propose(s);
            s.step("Resilient 2");
            let end = length + requests.len() as u64;
            self.log(s, proposal, requests);
            if let Some(order) = self.order_at(s, end) {
                self.send(s, Destination::Replicas, ResilientMessage::Order(Box::new(order)));
            }
            self.try_prepare(s, end);
        }
    }

    /// The ORDER for a batch that this replica, the sequencer, has logged.
    pub(super) fn order_at(&mut self, s: &Surroundings<'_, impl Speaker>, end: u64) -> Option<Order> {
        let prepare = self.own_prepare(s, end)?;
        let slot = self.slots.get(&end)?;
        let by_value =
            |request: &&Request| has_proof(request) && request.operation.len() <= s.cluster.limits.inline_bytes_max;
        let entry = |request: &Request| match Some(request).filter(by_value) {
            Some(request) => Entry::Inline(request.clone()),
            None => Entry::Reference(Reference::to(request)),
        };
        let entries: Vec<Entry> = slot.requests.iter().map(entry).collect();
        let first = end + 1 - entries.len() as u64;
        assert!(first > self.base.init().0, "an ORDER begins above the init history");
        Some(Order { first, batch: Batch::new(slot.proposal.clone(), entries), prepare: prepare.into() })
    }

    /// Resilient 3: the sequencer's next batch.
    pub(super) fn on_order(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, order: Order) {
        let Prepared { instance, position, history } = *order.prepare.claims();
        let count = order.batch.entries().len() as u64;
        if from != self.base.what.head || order.prepare.signer() != from {
            return s.reject(Principal::Replica(from), Rejection::WrongSender);
        }
        let limits = &s.cluster.limits;
        let is_short = order.batch.entries().len() <= limits.batch_requests_max
            && order.batch.inline_bytes() <= limits.batch_bytes_max.max(limits.inline_bytes_max);
        let follows = order.first.checked_add(count).is_some_and(|next| next.checked_sub(1) == Some(position));
        if instance != self.base.what.number || !follows || !is_short {
            return s.reject(Principal::Replica(from), Rejection::BadBatch);
        }
        let log = &self.base.ledger.log;
        if self.opened && position <= log.length() {
            // Said again; or not quite.
            let known = log.history_at(position);
            if known.is_some_and(|known| known != history) && s.keyring.verify(order.prepare).is_some() {
                s.reject(Principal::Replica(from), Rejection::Equivocation);
            }
            return;
        }
        let window = log.length() + 2 * s.cluster.history_bound();
        // What comes sooner takes the place of what comes later: else who is far behind keeps only what is new.
        let last = self.early.last_key_value().map(|(last, _)| *last);
        let is_full = self.early.len() >= EARLY_MAX && last.is_some_and(|last| last <= position);
        if position > window || is_full || self.early.contains_key(&position) {
            return s.reject(Principal::Replica(from), Rejection::OutsideWindow);
        }
        let Order { first, mut batch, prepare } = order;
        let Some(prepare) = s.keyring.verify(prepare) else {
            return s.reject(Principal::Replica(from), Rejection::BadSignature);
        };
        // Last of all: it may cost a signature for each request.
        batch.vouch(s.cluster, s.keyring);
        self.early.insert(position, Early { first, batch, prepare });
        if self.early.len() > EARLY_MAX {
            self.early.pop_last();
        }
        self.take_early(s);
    }

    /// Takes the ORDERs whose turn it is; also after a checkpoint has made room.
    pub(super) fn take_early(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        while let Some((&end, order)) = self.early.first_key_value() {
            let log = &self.base.ledger.log;
            let first = order.first;
            if !self.opened {
                if order.batch.is_null() && (end, order.prepare.value().history) == self.base.init() {
                    let order = self.early.remove(&end).expect("just seen");
                    self.open_here(s, Some(order.prepare));
                    continue;
                }
                if end > self.base.init().0 && !order.batch.is_null() {
                    return;
                }
                self.early.remove(&end);
                self.ask_for_init(s);
                continue;
            }
            if end <= log.length() {
                self.early.remove(&end);
                continue;
            }
            // Who has gone on from a checkpoint may have a part of it: the rest is about the same history, or refused.
            if first > log.length() + 1 || end > log.anchor().position + s.cluster.history_bound() {
                return;
            }
            let Some(requests) = self.requests_of(s, end) else { return };
            let Early { batch, prepare, .. } = self.early.remove(&end).expect("just seen");
            if let Some(reason) = self.objection(s, batch.proposal(), &requests, prepare.value()) {
                return s.reject(Principal::Replica(self.base.what.head), reason);
            }
            s.step("Resilient 3");
            self.log(s, batch.proposal().clone(), requests);
            self.vote(s, end, prepare);
        }
    }

    /// Why a batch may not be logged.
    fn objection(
        &self,
        s: &Surroundings<'_, impl Speaker>,
        proposal: &Proposal,
        requests: &[Request],
        claim: &Prepared,
    ) -> Option<Rejection> {
        let skew = s.cluster.limits.clock_skew_max;
        let is_fresh = proposal.time <= s.now + skew && proposal.time + skew >= s.now;
        if !is_fresh && !self.is_vouched_for(s, claim) {
            return Some(Rejection::BadAgreedValue);
        }
        if !are_of_distinct_clients(requests.iter()) {
            return Some(Rejection::BadBatch);
        }
        let mut history = self.base.ledger.log.history();
        for request in requests {
            let allowed = request.instance == self.base.what.number
                && !request.read_only
                && !request.is_system()
                && request.operation.len() <= s.cluster.limits.operation_bytes_max;
            let repeats = self.is_ordered(request) || self.base.ledger.estate.repeats(request);
            if !allowed || repeats {
                return Some(Rejection::BadBatch);
            }
            history = history.chain(LogEntry::new(proposal.clone(), request.clone()).digest());
        }
        if requests.is_empty() || claim.position > self.last() {
            return Some(Rejection::BadBatch);
        }
        (history != claim.history).then_some(Rejection::DigestMismatch)
    }

    /// Resilient 3: from here on this replica has one history up to there. What follows speaks of it.
    fn log(&mut self, s: &mut Surroundings<'_, impl Speaker>, proposal: Proposal, requests: Vec<Request>) {
        assert!(!self.base.is_stopped(), "nothing is logged after the report");
        assert!(self.opened, "the first ORDER is about the init history (Resilient 2)");
        assert!(!requests.is_empty(), "every other ORDER has requests");
        let log = &mut self.base.ledger.log;
        let before = log.length();
        for request in &requests {
            log.push(LogEntry::new(proposal.clone(), request.clone()));
            self.ordered.insert(request.client, request.timestamp);
            self.pool.proposed(request.digest());
        }
        let (end, history) = (log.length(), log.history());
        self.base.persist(s, before);
        self.bodies.clear();
        self.slots.insert(end, Slot { history, proposal, requests, prepares: BTreeMap::new() });
    }

    /// The first ORDER: this replica sticks to the init history that it has. With the sequencer's PREP, or as the
    /// sequencer.
    fn open_here(&mut self, s: &mut Surroundings<'_, impl Speaker>, prepare: Option<Signed<Prepared>>) {
        assert!(self.may_begin_again(), "a replica sticks to the init history that it has signed (Resilient 2)");
        let (end, history) = self.base.init();
        self.opened = true;
        s.persist(self.base.what.number, HistoryRecord::Logged(Vec::new()));
        self.find_slots();
        self.slots.entry(end).or_insert_with(|| Slot {
            history,
            proposal: Proposal::default(),
            requests: Vec::new(),
            prepares: BTreeMap::new(),
        });
        match prepare {
            Some(prepare) => self.vote(s, end, prepare),
            None => {
                if let Some(order) = self.order_at(s, end) {
                    self.send(s, Destination::Replicas, ResilientMessage::Order(Box::new(order)));
                }
                self.try_prepare(s, end);
            }
        }
    }

    /// Resilient 3: says that the batch is logged.
    fn vote(&mut self, s: &mut Surroundings<'_, impl Speaker>, end: u64, of_sequencer: Signed<Prepared>) {
        if let Some(own) = self.own_prepare(s, end) {
            self.send(s, Destination::Replicas, ResilientMessage::Prepare(own.into()));
        }
        if let Some(slot) = self.slots.get_mut(&end) {
            slot.prepares.insert(of_sequencer.signer(), of_sequencer);
        }
        self.try_prepare(s, end);
    }

    /// This replica began with another init history than the sequencer: it asks for what proves that one.
    pub(super) fn ask_for_init(&self, s: &mut Surroundings<'_, impl Speaker>) {
        if let Some(before) = self.base.what.number.0.checked_sub(1).filter(|before| *before > 0) {
            let behind = Switch { instance: InstanceId(before), message: SwitchMessage::Behind(()) };
            s.send(Destination::Replica(self.base.what.head), behind);
        }
    }

    /// Resilient 5: what is committed is executed and answered.
    pub(super) fn execute(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let committed = self.committed.unwrap_or(0);
        while self.base.ledger.estate.executed().0 < committed {
            let position = self.base.ledger.estate.executed().0 + 1;
            let logged = self.base.ledger.log.at(position).cloned().expect("committed is what is logged");
            self.execute_one(s, position, &logged);
            if position.is_multiple_of(s.cluster.limits.history_interval) || position == self.last() {
                self.take_checkpoint(s);
            }
        }
    }

    fn execute_one(&mut self, s: &mut Surroundings<'_, impl Speaker>, position: u64, logged: &Logged) {
        let mut outcome = Outcome::DoneDigest(logged.digest);
        let is_new = self.base.ledger.estate.execute_entry(s.cluster, logged, |_, result| outcome = result.clone());
        let Request { client, timestamp, .. } = logged.entry.request;
        self.pool.executed(client, timestamp);
        if self.ordered.get(&client) == Some(&timestamp) {
            self.ordered.remove(&client);
        }
        if is_new {
            // Nobody is served by what must not be executed: a sequencer that orders nothing else does not stay.
            self.requests_executed += 1;
            self.progress = s.now;
        }
        let response = Response {
            instance: self.base.what.number,
            client,
            timestamp,
            position,
            history: logged.history,
            outcome: abridged(self.base.what.replicas, s.me, client, timestamp, &outcome),
        };
        s.send(Destination::Client(client), response);
    }

    /// Resilient 7: T has passed.
    pub(super) fn on_impatience(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        self.is_patient = false;
        while let Some((client, _)) = self.pool.oldest_watched() {
            let Some(request) = self.pool.get_mut(client) else { return };
            if s.cluster.client_auth != ClientAuth::Mac {
                // Only a request that a correct sequencer must accept may cost it the instance (pbft-F20).
                Request::vouch_signatures(core::iter::once(&mut *request), s.cluster, s.keyring);
                if request.vouched != Vouched::Signature {
                    self.pool.remove(client);
                    continue;
                }
            }
            let is_new = matches!(self.base.ledger.estate.freshness(request), Freshness::New);
            if !is_new {
                self.pool.remove(client);
                continue;
            }
            return self.stop_unless_progress(s, StopReason::RequestWaited);
        }
        if !self.inherited.is_empty() {
            self.stop_unless_progress(s, StopReason::InitNotOrdered);
        } else if self.has_uncommitted() {
            self.stop_unless_progress(s, StopReason::Uncommitted);
        } else if self.is_full() {
            // T runs while anything is waited for: what came before was something else.
            self.stop_unless_progress(s, StopReason::QuotaWithoutCheckpoint);
        }
    }

    /// Whether something is logged and not executed: who restarts knows no more who waits for it.
    pub(super) fn has_uncommitted(&self) -> bool {
        self.base.ledger.log.length() > self.base.ledger.estate.executed().0
    }

    /// As long as something is executed, others are served, and the quota brings the end. But that may be far off: who
    /// serves one request in every T, and never those of some, does not stay for it.
    fn stop_unless_progress(&mut self, s: &mut Surroundings<'_, impl Speaker>, reason: StopReason) {
        let until = self.progress + self.patience;
        if until <= s.now {
            self.halt_here(s, reason);
        } else if self.is_passed_over(s.now) {
            self.halt_here(s, StopReason::PassedOver);
        } else {
            self.wait(s, until - s.now);
        }
    }

    /// Whether something waits that this replica has passed on to the sequencer long ago.
    fn is_passed_over(&mut self, now: Instant) -> bool {
        let (since, passed_on) = &mut self.passed_on;
        passed_on.retain(|(client, timestamp)| self.pool.waits(*client, *timestamp));
        !passed_on.is_empty() && now - *since >= Duration(self.patience.0.saturating_mul(FAIR_PATIENCES))
    }
}
