//! A replica's part: Chain 2 and 3 of the [module](super).

use super::message::{ChainMessage, ChainReply, ReplyStatement, Speaker, results_digest};
use super::topology::Topology;
use crate::auth::Authenticator;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, Principal, ReplicaId, Timestamp, View};
use crate::machine::Destination;
use crate::message::{Outcome, Request};
use crate::notice::Report;
use crate::protocols::speculative::{
    AHEAD_MAX, Ahead, Load, Queue, Speculation, SpeculativeTimer, Standing, as_its_speculation, weight,
};
use crate::rejection::Rejection;
use crate::schedule::Specification;
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::{Abortable, Heard, Ledger, Steps, Surroundings};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

/// See the [module](super).
#[derive(Clone, Debug)]
pub(crate) struct Chain<S> {
    pub(crate) base: Speculation<S>,
    pub(super) topology: Topology,
    /// This replica's place.
    pub(super) place: usize,
    pub(super) queue: Queue,
    pub(super) early: Ahead<ChainMessage>,
    /// Whether something has come along the chain: then all before this place began with the same history.
    pub(super) confirmed: bool,
    /// Who asked before that for the answer to which request of the init history: they are answered then, from the
    /// client table.
    pub(super) inherited: BTreeMap<ClientId, Timestamp>,
    load: Load,
}

/// Why a replica stops that executed otherwise than the one before it.
const OTHER_RESULTS: StopReason = StopReason::OtherResults;

/// What the places from f on know about a batch after executing it.
struct Executed {
    history: Digest,
    outcome: Outcome,
    position: u64,
    request: usize,
}

impl<S: Service> Chain<S> {
    /// An instance that begins with what the ledger holds.
    pub(crate) fn open(what: Specification, me: ReplicaId, ledger: Ledger<S>) -> Self {
        let topology = Topology::new(what.replicas, what.head);
        let (base, place) = (Speculation::open(what, ledger), topology.place(me));
        Self {
            base,
            topology,
            place,
            queue: Queue::default(),
            early: Ahead::default(),
            confirmed: false,
            inherited: BTreeMap::new(),
            load: Load::new(what.watches_load),
        }
    }

    /// The first input.
    pub(crate) fn start(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        self.base.start(s);
        self.confirmed |= self.base.has_logged();
        self.pass_on_init(s);
        self.load.start(s, self.base.is_stopped());
    }

    /// Chain 2, first half; and the last f+1 places answer what is in the history.
    pub(crate) fn on_request(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, request: Request) {
        if self.base.is_stopped() {
            return;
        }
        match self.base.standing(s, &request) {
            Standing::New if self.place == 0 => {
                s.step("Chain 2");
                // With another number of MACs than there are receivers it would stop the chain further on.
                let is_whole = self.client_tags(&request).iter().len() == self.topology.client_receivers().count();
                let reason = if is_whole { None } else { Some(Rejection::UnauthenticRequest) };
                if let Some(reason) = reason.or_else(|| self.queue.push(s.now, &s.cluster.limits, request).err()) {
                    s.reject(from, reason);
                }
            }
            // Whoever began with another history than the head's must not vouch for it (abs-S1).
            Standing::Done { .. } if self.topology.is_last(self.place) && !self.confirmed => {
                if self.inherited.len() < s.cluster.limits.pending_requests_max {
                    self.inherited.insert(request.client, request.timestamp);
                }
            }
            Standing::Done { position, history, outcome } if self.topology.is_last(self.place) => {
                self.base.respond(s, &request, position, history, &outcome);
            }
            Standing::Done { .. } => self.pass_on_init(s),
            Standing::New => {}
            Standing::Stale => s.too_late(from, View(0), &request),
        }
    }

    /// Chain 2: the init history travels like a batch, of nothing, as long as nothing else has (abs-L4): so that
    /// what is in it can be answered.
    fn pass_on_init(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if self.place != 0 || self.base.is_stopped() || self.base.has_logged() || self.base.what.number.0 == 1 {
            return;
        }
        s.step("Chain 2");
        let mut message = self.batch(s, Vec::new());
        message.history = self.base.ledger.log.history();
        self.finish_empty(s, message);
    }

    /// Something has come along the chain: what waited for that is answered. A client that has asked for something
    /// else since waits no more.
    fn confirm(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        self.confirmed = true;
        for (client, timestamp) in core::mem::take(&mut self.inherited) {
            let asked = Request::new(self.base.what.number, client, timestamp, false, Bytes::new());
            if let Standing::Done { position, history, outcome } = self.base.standing(s, &asked) {
                self.base.respond(s, &asked, position, history, &outcome);
            }
        }
    }

    /// An empty batch has come as far as this place.
    fn finish_empty(&mut self, s: &mut Surroundings<'_, impl Speaker>, mut message: ChainMessage) {
        assert!(!self.base.has_logged(), "the init history goes along the chain before anything else (abs-L4)");
        self.confirm(s);
        if self.topology.executes(self.place) {
            message.results = results_digest(&[], self.base.ledger.estate.effects());
        }
        self.add_tags(s, &mut message);
        if self.place < self.topology.tail() {
            let next = self.topology.at(self.place + 1);
            s.send(Destination::Replica(next), message);
        }
    }

    fn batch(&self, s: &Surroundings<'_, impl Speaker>, requests: Vec<Request>) -> ChainMessage {
        ChainMessage {
            instance: self.base.what.number,
            first: self.base.ledger.log.length() + 1,
            proposal: self.base.propose(s),
            requests,
            history: Digest::ZERO,
            results: Digest::ZERO,
            tags: Vec::new(),
            reply_tags: Vec::new(),
        }
    }

    /// Chain 2, second half; and what was passed on is executed now.
    pub(crate) fn pass_end(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        while self.place == 0 && !self.queue.is_empty() && self.base.may_log(s, 1) {
            let room = self.base.room(s);
            let mut requests = self.queue.take(&s.cluster.limits, room);
            requests.retain(|request| self.base.standing(s, request) == Standing::New);
            if requests.is_empty() {
                continue;
            }
            for request in &mut requests {
                // Only the first f+1 places are meant; one sent to all carries more.
                request.authentication.tags = self.client_tags(request);
            }
            s.step("Chain 2");
            let message = self.batch(s, requests);
            self.log_and_pass_on(s, message, None);
        }
        self.base.execute(s, |_, _, _, _| ());
    }

    /// A client's MACs for the first f+1 places, as it sent them to the head or to everybody.
    fn client_tags(&self, request: &Request) -> Authenticator {
        let tags = &request.authentication.tags;
        if tags.iter().len() == self.topology.tail() + 1 && self.topology.tail() > 0 {
            let at = |place| tags.get(self.topology.at(place).0 as usize);
            self.topology.client_receivers().filter_map(at).collect()
        } else {
            tags.clone()
        }
    }

    /// Chain 3, first half.
    pub(crate) fn on_chain(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, message: ChainMessage) {
        if self.base.is_stopped() {
            return;
        }
        if self.place == 0 || from != self.topology.at(self.place - 1) {
            return s.reject(Principal::Replica(from), Rejection::WrongSender);
        }
        let previous = self.place - 1;
        if !message.has_shape(&self.topology, previous) {
            return s.reject(Principal::Replica(from), Rejection::Malformed);
        }
        if !self.check(s, &message, previous) {
            // Not what the predecessor sent: a stop would let anybody on the way stop the chain (abs-P3).
            return s.reject(Principal::Replica(from), Rejection::BadMac);
        }
        let next = self.base.ledger.log.length() + 1;
        if message.requests.is_empty() {
            return self.on_empty(s, message, next);
        }
        let window = 2 * s.cluster.history_bound();
        if message.first < next || message.first > next + window {
            return s.reject(Principal::Replica(from), Rejection::OutsideWindow);
        }
        if !self.early.keep(message.first, weight(&message.requests), message, AHEAD_MAX) {
            return s.reject(Principal::Replica(from), Rejection::Overload);
        }
        self.take_early(s);
    }

    /// Chain 3 for the init history.
    fn on_empty(&mut self, s: &mut Surroundings<'_, impl Speaker>, message: ChainMessage, next: u64) {
        if message.first != next || self.base.has_logged() {
            return;
        }
        s.step("Chain 3");
        let others: Vec<usize> =
            self.topology.predecessors(self.place).filter(|maker| *maker + 1 < self.place).collect();
        if !others.into_iter().all(|maker| self.check(s, &message, maker)) {
            return self.base.stop(s, StopReason::BadMac, false);
        }
        if message.history != self.base.ledger.log.history() {
            return self.base.stop(s, StopReason::OtherBeginning, false);
        }
        let effects = self.base.ledger.estate.effects();
        if self.topology.compares(self.place) && message.results != results_digest(&[], effects) {
            return self.base.stop(s, OTHER_RESULTS, false);
        }
        self.finish_empty(s, message);
    }

    /// Whether the MAC that the replica at `maker` made for this one is good.
    fn check(&self, s: &Surroundings<'_, impl Speaker>, message: &ChainMessage, maker: usize) -> bool {
        let index = self.topology.carried(self.place - 1).position(|pair| pair == (maker, self.place));
        let statement = message.statement(&self.topology, maker);
        let maker = Principal::Replica(self.topology.at(maker));
        index.is_some_and(|index| s.keyring.check(maker, &statement, &message.tags[index]))
    }

    /// Takes the batches whose turn it is; also after a checkpoint has made room.
    pub(crate) fn take_early(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        loop {
            let next = self.base.ledger.log.length() + 1;
            let may_log = |message: &ChainMessage| self.base.may_log(s, message.requests.len());
            let Some(message) = self.early.take_if(next, may_log) else { return };
            s.step("Chain 3");
            if let Some(objection) = self.objection(s, &message) {
                return self.base.stop(s, objection, false);
            }
            let claimed = (message.history, message.results);
            self.log_and_pass_on(s, message, Some(claimed));
        }
    }

    /// Chain 3: everything but the direct predecessor's MAC, which was good.
    fn objection(&mut self, s: &mut Surroundings<'_, impl Speaker>, message: &ChainMessage) -> Option<StopReason> {
        let others = self.topology.predecessors(self.place).filter(|maker| *maker + 1 < self.place);
        for maker in others.collect::<Vec<_>>() {
            if !self.check(s, message, maker) {
                return Some(StopReason::BadMac);
            }
        }
        if self.topology.client_receivers().contains(&self.place) {
            let good = |request: &Request| {
                let tag = request.authentication.tags.get(0);
                tag.is_some_and(|tag| request.is_from_client(s.keyring, &tag))
            };
            if !message.requests.iter().all(good) {
                return Some(StopReason::Unauthentic);
            }
        }
        self.base.objection(s, &message.proposal, &message.requests)
    }

    /// Chain 3, second half, and Chain 2. `claimed` is what the predecessor says about history and results.
    fn log_and_pass_on(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        mut message: ChainMessage,
        claimed: Option<(Digest, Digest)>,
    ) {
        self.load.note(message.requests.iter().map(|request| request.client));
        let before = self.base.ledger.log.length();
        assert_eq!(message.first, before + 1, "batches are logged in their order");
        for request in &message.requests {
            self.base.log(s, message.proposal.clone(), request.clone());
        }
        message.history = self.base.ledger.log.history();
        if claimed.is_some_and(|(history, _)| history != message.history) {
            // Nothing was said about these entries yet.
            self.base.forget_after(before);
            return self.base.stop(s, StopReason::OtherHistory, false);
        }
        self.base.persist(s, before);
        let mut executed = Vec::new();
        if self.topology.executes(self.place) {
            executed = self.execute(s);
            assert_eq!(executed.len(), message.requests.len(), "all before the batch was executed before");
            let digests: Vec<Digest> = executed.iter().map(|done| done.outcome.digest()).collect();
            message.results = results_digest(&digests, self.base.ledger.estate.effects());
            if self.topology.compares(self.place) && claimed.is_some_and(|(_, results)| results != message.results) {
                return self.base.stop(s, OTHER_RESULTS, false);
            }
            if self.topology.is_last(self.place) {
                self.add_reply_tags(s, &mut message, &executed, &digests);
            }
        }
        // After that: looking for an answer executes whatever its client has in the log.
        self.confirm(s);
        self.add_tags(s, &mut message);
        if self.place < self.topology.tail() {
            let next = self.topology.at(self.place + 1);
            return s.send(Destination::Replica(next), message);
        }
        self.reply(s, &message, executed);
    }

    fn execute(&mut self, s: &mut Surroundings<'_, impl Speaker>) -> Vec<Executed> {
        let mut executed = Vec::new();
        let mut position = self.base.ledger.estate.position();
        self.base.execute(s, |_, logged, _, outcome| {
            position += 1;
            let request = executed.len();
            executed.push(Executed { history: logged.history, outcome: outcome.clone(), position, request });
        });
        executed
    }

    /// This replica's MACs for the clients, behind those of the places before.
    fn add_reply_tags(
        &self,
        s: &Surroundings<'_, impl Speaker>,
        message: &mut ChainMessage,
        executed: &[Executed],
        digests: &[Digest],
    ) {
        let before = self.topology.reply_tags(self.place) - 1;
        let mut tags = Vec::with_capacity(executed.len() * (before + 1));
        for (done, digest) in executed.iter().zip(digests) {
            let Request { client, timestamp, .. } = message.requests[done.request];
            let statement = ReplyStatement {
                instance: message.instance,
                client,
                timestamp,
                position: done.position,
                history: done.history,
                outcome: *digest,
            };
            tags.extend_from_slice(&message.reply_tags[done.request * before..(done.request + 1) * before]);
            tags.push(s.keyring.tag(Principal::Client(client), &statement.bytes()));
        }
        assert_eq!(tags.len(), executed.len() * self.topology.reply_tags(self.place), "the next place counts them");
        message.reply_tags = tags;
    }

    /// The MACs that go on: those of others for places still to come, then this replica's own.
    fn add_tags(&self, s: &Surroundings<'_, impl Speaker>, message: &mut ChainMessage) {
        let mut tags = Vec::new();
        if self.place > 0 {
            let carried = self.topology.carried(self.place - 1).zip(&message.tags);
            tags.extend(carried.filter(|((_, receiver), _)| *receiver > self.place).map(|(_, tag)| *tag));
        }
        let keep = self.topology.client_tags(self.place);
        for request in &mut message.requests {
            let tags = request.authentication.tags.clone();
            // As many as there should be: the head and `has_shape` have counted them.
            request.authentication.tags = tags.iter().skip(tags.iter().len() - keep).collect();
        }
        let statement = message.statement(&self.topology, self.place);
        for place in self.topology.successors(self.place) {
            tags.push(s.keyring.tag(Principal::Replica(self.topology.at(place)), &statement));
        }
        debug_assert_eq!(tags.len(), self.topology.carried(self.place).count(), "the next place counts them");
        message.tags = tags;
    }

    /// The tail answers.
    fn reply(&self, s: &mut Surroundings<'_, impl Speaker>, message: &ChainMessage, executed: Vec<Executed>) {
        let each = self.topology.reply_tags(self.place);
        for done in executed {
            let Request { client, timestamp, .. } = message.requests[done.request];
            let reply = ChainReply {
                instance: message.instance,
                client,
                timestamp,
                position: done.position,
                history: done.history,
                outcome: done.outcome,
                tags: message.reply_tags[done.request * each..(done.request + 1) * each].to_vec(),
            };
            s.send(Destination::Client(client), reply);
        }
    }
}

impl<S: Service> Abortable for Chain<S> {
    type Service = S;
    type Message = ChainMessage;
    type Timer = SpeculativeTimer;

    as_its_speculation!();

    fn waiting_clients(&self) -> Vec<ClientId> {
        self.queue.clients().chain(self.base.unconfirmed_clients()).collect()
    }

    fn describe(&self, report: &mut Report) {
        report.requests_executed = self.base.requests_logged();
        report.pending_requests = self.queue.len();
    }

    fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        self.check_state(cluster, me);
    }
}

impl<S: Service, M: Speaker> Steps<M> for Chain<S> {
    fn start(&mut self, s: &mut Surroundings<'_, M>) {
        Self::start(self, s);
    }

    fn message(&mut self, s: &mut Surroundings<'_, M>, from: Principal, message: Heard<Self::Message>) {
        match (message, from) {
            (Heard::Request(request), from) if !request.read_only => self.on_request(s, from, request),
            (Heard::Own(message), Principal::Replica(from)) => self.on_chain(s, from, message),
            (Heard::Switch(switch), Principal::Replica(from)) => {
                self.base.on_switch(s, from, &switch);
                self.take_early(s);
            }
            (_, from) => s.reject(from, Rejection::WrongSender),
        }
    }

    fn timer(&mut self, s: &mut Surroundings<'_, M>, timer: Self::Timer) {
        match timer {
            SpeculativeTimer::Checkpoint => self.base.on_checkpoint_timeout(s),
            SpeculativeTimer::LowLoad => self.load.judge(s, &mut self.base),
        }
    }

    fn pass_end(&mut self, s: &mut Surroundings<'_, M>) {
        Self::pass_end(self, s);
    }

    fn panicked(&mut self, s: &mut Surroundings<'_, M>) {
        self.base.stop(s, StopReason::Panicked, false);
    }

    fn stop(&mut self, s: &mut Surroundings<'_, M>, reason: StopReason, low_load: bool) {
        self.base.stop(s, reason, low_load);
    }
}
