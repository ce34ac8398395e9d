//! The client's part in instances that may abort, and its way from one to the next: steps 5 to 8 of the
//! [module](super).

use super::Client;
use super::call::{Gist, Key};
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, Sequence, Timestamp};
use crate::machine::{Destination, Outbox};
use crate::message::Outcome;
use crate::protocols::chain::{ChainReply, Topology};
use crate::protocols::ring_fast::{PaceMessage, Path, RingPace, RingReply};
use crate::protocols::speculative::Response;
use crate::registry::Message;
use crate::schedule::Part;
use crate::switching::{Panic, Switch, SwitchMessage};
use crate::time::{Duration, Instant};

/// The least patience of a client, as a part of `Limits::client_retry`: a busy machine may pause for some milliseconds.
const PATIENCE_PARTS: u64 = 5;

/// How many times its usual latency a client waits.
const PATIENCE_FACTOR: u64 = 8;

impl Client {
    pub(super) fn part(&self) -> Option<Part> {
        self.cluster.part(self.instance)
    }

    /// T: how long to wait before asking again, and then before panicking (abs-P12).
    pub(super) fn patience(&self) -> Duration {
        let most = self.cluster.limits.client_retry;
        match self.part() {
            Some(Part::Backup | Part::RingResilient) | None => most,
            Some(_) if self.usual_latency == Duration(0) => most,
            Some(part) => {
                let own = Duration(PATIENCE_FACTOR * self.usual_latency.0);
                let of_others = self.fairness.patience(&self.cluster).filter(|_| part == Part::RingFast);
                Duration(of_others.map_or(own, |others| others.min(own)).0.clamp(most.0 / PATIENCE_PARTS, most.0))
            }
        }
    }

    pub(super) fn note_latency(&mut self, latency: Duration) {
        self.usual_latency = Duration((7 * self.usual_latency.0 + latency.0) / 8);
    }

    fn topology(&self) -> Option<Topology> {
        let schedule = self.cluster.protocol.schedule()?;
        Some(Topology::new(&self.cluster, schedule.head(self.cluster.n, self.instance)))
    }

    /// Step 5: where the request goes first.
    pub(super) fn first_receivers(&self, timestamp: Timestamp, everybody: bool) -> Destination {
        match (self.part(), self.cluster.protocol.schedule()) {
            (Some(Part::Quorum | Part::RingResilient), _) => Destination::Replicas,
            (Some(Part::ZLight | Part::Chain), Some(schedule)) => {
                Destination::Replica(schedule.head(self.cluster.n, self.instance))
            }
            (Some(Part::RingFast), _) => Destination::Replica(Path::entry_for(&self.cluster, self.id, timestamp, 0)),
            _ if everybody => Destination::Replicas,
            _ => Destination::Replica(self.cluster.primary(self.view)),
        }
    }

    /// The entry of a ring that is asked first.
    fn entry(&self, timestamp: Timestamp) -> Option<ReplicaId> {
        (self.part() == Some(Part::RingFast)).then(|| Path::entry_for(&self.cluster, self.id, timestamp, 0))
    }

    /// The next timestamp whose entry is not passed over: see [`super::fairness`].
    pub(super) fn at_fair_entry(&self, first: Timestamp) -> Timestamp {
        let candidates = (0..self.cluster.n as u64).map(|later| Timestamp(first.0 + later));
        let is_fair = |at: &Timestamp| self.entry(*at).is_none_or(|entry| !self.fairness.passes_over(entry));
        candidates.into_iter().find(is_fair).unwrap_or(first)
    }

    /// D1 of [`super::fairness`].
    pub(super) fn ask_for_delays(&mut self, out: &mut Outbox<Self>) {
        if self.part() == Some(Part::RingFast) && self.fairness.begin() {
            let (instance, message) = (self.instance, PaceMessage::Ask(self.id));
            out.send(Destination::Replicas, Message::RingPace(RingPace { instance, message }));
        }
    }

    /// The answer.
    pub(super) fn on_pace(&mut self, from: ReplicaId, pace: &RingPace) {
        if let PaceMessage::Delay(delay) = &pace.message
            && (pace.instance, delay.client) == (self.instance, self.id)
        {
            self.fairness.note_delay(from, Duration(delay.microseconds));
        }
    }

    /// Steps 6: a speculative answer.
    pub(super) fn on_response(&mut self, now: Instant, from: ReplicaId, response: Response, out: &mut Outbox<Self>) {
        let part = self.part();
        let topology = self.topology();
        let Some(call) = self.call.as_mut().filter(|call| call.request.timestamp == response.timestamp) else { return };
        if response.client != self.id || response.instance != self.instance {
            return;
        }
        let vouchers: &dyn Fn(ReplicaId) -> bool = match (part, &topology) {
            (Some(Part::Quorum | Part::ZLight | Part::RingFast | Part::RingResilient), _) => &|_| true,
            // Step 7: a repeated answer. Those of exactly the last f+1 places count.
            (Some(Part::Chain), Some(topology)) => &|id| topology.is_last(topology.place(id)),
            _ => return,
        };
        if !vouchers(from) {
            return;
        }
        call.responses.insert(from, response);
        if part == Some(Part::RingResilient) {
            return self.on_final_response(now, out);
        }
        let needed = self.cluster.replicas().filter(|id| vouchers(*id)).count();
        let statement = |response: &Response| (response.position, response.history, response.outcome.digest());
        let Some(first) = call.responses.values().next().map(statement) else { return };
        if call.responses.values().any(|response| statement(response) != first) {
            // They will never be equal.
            return self.panic(now, out);
        }
        let (position, history, _) = first;
        let full = call.responses.values().map(|response| &response.outcome);
        let full = full.into_iter().find(|outcome| outcome.is_whole()).cloned();
        if let (Some(outcome), true) = (full, call.responses.len() == needed) {
            let vouchers = call.responses.keys().fold(0, |bits, id| bits | 1 << id.0);
            self.settle(now, Settled { position, history, outcome, vouchers }, out);
        }
    }

    /// Step 8: f+1 equal answers of a resilient ring. One of them is a correct replica's, which has executed what 2f+1
    /// hold certificates for; those that differ mean nothing.
    fn on_final_response(&mut self, now: Instant, out: &mut Outbox<Self>) {
        let Some(call) = &self.call else { return };
        let statement = |response: &Response| (response.position, response.history, response.outcome.digest());
        let equal = |to: &Response| {
            let responses = call.responses.iter();
            responses
                .filter(|(_, other)| statement(other) == statement(to))
                .fold(0u64, |bits, (id, _)| bits | 1 << id.0)
        };
        let whole = call.responses.values().filter(|response| response.outcome.is_whole());
        let agreed = whole.map(|response| (response, equal(response)));
        let agreed = agreed.into_iter().find(|(_, bits)| bits.count_ones() as usize >= self.cluster.strong());
        let Some((Response { position, history, outcome, .. }, vouchers)) = agreed else { return };
        let settled = Settled { position: *position, history: *history, outcome: outcome.clone(), vouchers };
        self.settle(now, settled, out);
    }

    /// Step 7: the tail's answer.
    pub(super) fn on_chain_reply(&mut self, now: Instant, reply: ChainReply, out: &mut Outbox<Self>) {
        let waits = self.call.as_ref().is_some_and(|call| call.request.timestamp == reply.timestamp);
        if !waits || reply.client != self.id || reply.instance != self.instance || self.part() != Some(Part::Chain) {
            return;
        }
        let Some(topology) = self.topology() else { return };
        let statement = reply.statement();
        let bytes = statement.bytes();
        let last = (0..=topology.tail()).filter(|place| topology.is_last(*place));
        let vouched = reply.outcome.is_whole()
            && reply.tags.len() == topology.reply_tags(topology.tail())
            && last
                .zip(&reply.tags)
                .all(|(place, tag)| self.keyring.check(Principal::Replica(topology.at(place)), &bytes, tag));
        if vouched {
            let (position, history) = (statement.position, statement.history);
            let last = (0..=topology.tail()).filter(|place| topology.is_last(*place));
            let vouchers = last.fold(0, |bits, place| bits | 1 << topology.at(place).0);
            self.settle(now, Settled { position, history, outcome: reply.outcome, vouchers }, out);
        }
    }

    /// Step 7: the exit's answer.
    pub(super) fn on_ring_reply(&mut self, now: Instant, reply: RingReply, out: &mut Outbox<Self>) {
        let waits = self.call.as_ref().is_some_and(|call| call.request.timestamp == reply.timestamp);
        let Some(schedule) = self.cluster.protocol.schedule() else { return };
        let ours = reply.client == self.id && reply.instance == self.instance && self.cluster.contains(reply.entry);
        if !waits || !ours || self.part() != Some(Part::RingFast) {
            return;
        }
        let path = Path::new(&self.cluster, schedule.head(self.cluster.n, self.instance), reply.entry);
        let bytes = reply.statement().bytes();
        let vouched = reply.outcome.is_whole()
            && reply.tags.len() == self.cluster.weak()
            && path
                .vouchers()
                .zip(&reply.tags)
                .all(|(id, tag)| self.keyring.check(Principal::Replica(id), &bytes, tag));
        if vouched {
            let RingReply { position, history, outcome, .. } = reply;
            let vouchers = path.vouchers().fold(0, |bits, id| bits | 1 << id.0);
            self.settle(now, Settled { position, history, outcome, vouchers }, out);
        }
    }

    /// Steps 7 and 8: a replica of a ring says that every correct one has executed the request, or that 2f+1 have. Of
    /// f+1 that say the same one is correct.
    pub(super) fn on_certain(&mut self, now: Instant, from: ReplicaId, response: Response, out: &mut Outbox<Self>) {
        let ours = response.client == self.id && response.instance == self.instance;
        let is_ring = matches!(self.part(), Some(Part::RingFast | Part::RingResilient));
        let Some(call) = self.call.as_mut().filter(|call| call.request.timestamp == response.timestamp) else { return };
        if !ours || !is_ring {
            return;
        }
        call.certain.insert(from, response.clone());
        let alike = call.certain.iter().filter(|(_, other)| **other == response).map(|(id, _)| *id);
        let vouchers = alike.fold(0_u64, |bits, id| bits | 1 << id.0);
        if response.outcome.is_whole() && vouchers.count_ones() as usize >= self.cluster.weak() {
            let Response { position, history, outcome, .. } = response;
            self.settle(now, Settled { position, history, outcome, vouchers }, out);
        }
    }

    fn settle(&mut self, now: Instant, settled: Settled, out: &mut Outbox<Self>) {
        if let Some(call) = &self.call {
            let latency = now - call.asked;
            // Its time, and not whether others were asked: somebody who lies may have been the reason for that.
            let in_time = match call.attempts {
                0 => Some(true),
                _ => Some(false).filter(|_| latency >= call.patience),
            };
            if let (Some(entry), Some(in_time)) = (self.entry(call.request.timestamp), in_time) {
                self.fairness.end(&self.cluster, entry, in_time);
            }
            self.note_latency(latency);
        }
        let key = Key { sequence: Sequence(settled.position), gist: Gist::of(&settled.outcome) };
        self.complete(now, key, settled.vouchers, settled.history, Some(settled.outcome), out);
    }

    /// Step 6: T has passed. The first time everybody is asked, then the client panics.
    pub(super) fn on_impatience(&mut self, now: Instant, out: &mut Outbox<Self>) {
        let patience = self.patience();
        let Some(call) = &mut self.call else { return };
        call.attempts += 1;
        call.retry_at = now + patience;
        if call.attempts > 1 {
            call.panicked = false;
            return self.panic(now, out);
        }
        let request = call.request.clone().authenticate_for_all(&self.cluster, &self.keyring);
        out.send(Destination::Replicas, Message::Request(request));
    }

    fn panic(&mut self, now: Instant, out: &mut Outbox<Self>) {
        let (patience, part) = (self.patience(), self.part());
        let Some(call) = self.call.as_mut().filter(|call| !call.panicked) else { return };
        call.panicked = true;
        call.attempts = call.attempts.max(1);
        call.retry_at = now + patience;
        if part == Some(Part::RingFast) {
            let request = call.request.clone().authenticate_for_all(&self.cluster, &self.keyring).sign(&self.keyring);
            return out.send(Destination::Replicas, Message::Request(request));
        }
        let panic = Panic { client: self.id, timestamp: call.request.timestamp };
        let message = SwitchMessage::Panic(panic);
        out.send(Destination::Replicas, Message::Switch(Switch { instance: self.instance, message }));
    }

    /// Step 9: a replica says which instance is active. f+1 of them convince.
    pub(super) fn on_active(
        &mut self,
        now: Instant,
        from: ReplicaId,
        instance: InstanceId,
        client: ClientId,
        out: &mut Outbox<Self>,
    ) {
        if client != self.id || self.cluster.protocol.schedule().is_none() {
            return;
        }
        let known = self.active.entry(from).or_default();
        // Once in each instance: who says it again, of ever later ones, has not been borne out by the others.
        let is_news = *known <= self.instance && instance > self.instance;
        *known = instance.max(*known);
        let mut claims: alloc::vec::Vec<InstanceId> = self.active.values().copied().collect();
        claims.sort_by_key(|claim| core::cmp::Reverse(*claim));
        let proved = claims.get(self.cluster.f).copied().filter(|proved| *proved > self.instance);
        let Some(proved) = proved else { return self.ask_others(now, is_news, out) };
        self.instance = proved;
        self.view = self.first_view();
        self.active.retain(|_, claim| *claim > proved);
        self.ask_in_new_instance(now, out);
    }

    /// One replica says that a later instance is active. That proves nothing; but if only one was asked, the others can
    /// say so as well, and the client need not wait until its patience is at an end.
    fn ask_others(&mut self, now: Instant, is_news: bool, out: &mut Outbox<Self>) {
        let asked_one = matches!(self.first_receivers(self.last_timestamp, false), Destination::Replica(_));
        if let Some(call) = self.call.as_mut().filter(|call| is_news && asked_one && call.attempts == 0) {
            call.retry_at = now;
            self.on_retry(now, out);
        }
    }

    /// The same request again, with the same timestamp, for another instance. It goes to everybody: if the instance
    /// inherited it, whoever has to answer it does so at once, and not when the client's patience is at an end
    /// (abs-S4).
    fn ask_in_new_instance(&mut self, now: Instant, out: &mut Outbox<Self>) {
        let Some(mut call) = self.call.take() else { return };
        let crate::message::Request { client, timestamp, operation, .. } = call.request.clone();
        let request = crate::message::Request::new(self.instance, client, timestamp, false, operation)
            .authenticate(&self.cluster, &self.keyring);
        let everywhere = request.clone().authenticate_for_all(&self.cluster, &self.keyring);
        out.send(Destination::Replicas, Message::Request(everywhere));
        let patience = self.patience();
        call.order_instead(request, now);
        (call.retry_at, call.patience) = (now + patience, patience);
        call.asked = now;
        call.attempts = 0;
        self.call = Some(call);
        self.set_retry(now + patience, out);
    }

    /// The view in which a Backup begins; its primary is asked first.
    pub(super) fn first_view(&self) -> crate::ids::View {
        self.cluster.first_view(self.instance)
    }
}

/// What was accepted in an instance that may abort.
pub(super) struct Settled {
    pub(super) position: u64,
    pub(super) history: Digest,
    pub(super) outcome: Outcome,
    /// Whose word it is, as in [`Completed::vouchers`](super::Completed::vouchers).
    pub(super) vouchers: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Read, Submit};
    use crate::cluster::{ClientAuth, Cluster, Limits};
    use crate::machine::{Effect, Input, Machine};
    use crate::schedule::{Protocol, Schedule};
    use crate::testing::net;
    use alloc::collections::BTreeMap;
    use alloc::rc::Rc;
    use alloc::vec::Vec;
    use bytes::Bytes;

    /// A ring answers each request a millisecond after it was asked, and one liar says of ever later instances that
    /// they are active whenever one of the first two replicas is the entry. How often each entry was asked, and how
    /// often everybody was.
    fn asked_while_a_liar_names_instances() -> (BTreeMap<ReplicaId, usize>, usize) {
        let protocol = Protocol::Schedule(Schedule::new(&[Part::RingFast, Part::Backup]).unwrap());
        let cluster = Rc::new(Cluster { protocol, ..net::cluster(4, ClientAuth::Hybrid, Limits::default()) });
        let Principal::Client(id) = net::c(0) else { unreachable!() };
        let mut client = Client::new(Rc::clone(&cluster), Rc::new(net::keyring(&cluster, net::c(0))), id);
        let (mut asked, mut everybody, mut now) = (BTreeMap::new(), 0, Instant(1_000_000));
        for number in 1..=400 {
            now.0 += 1_001;
            let mut out = Outbox::new();
            let operation = Bytes::from_static(b"x");
            client.step(
                now,
                Input::Command(Submit { operation, read_only: false, read: Read::Quorum, deadline: None }),
                &mut out,
            );
            let timestamp = client.call.as_ref().unwrap().request.timestamp;
            let entry = Path::entry_for(&cluster, id, timestamp, 0);
            *asked.entry(entry).or_insert(0) += 1;
            if entry.0 < 2 {
                client.on_active(now, ReplicaId(3), InstanceId(1 + number), id, &mut out);
            }
            let sent: Vec<Effect<Client>> = out.drain().collect();
            let is_request =
                |effect: &&Effect<Client>| matches!(effect, Effect::Send(Destination::Replicas, Message::Request(_)));
            everybody += sent.iter().filter(is_request).count();
            now.0 += 1_000;
            for from in [0, 2] {
                let (instance, outcome) = (InstanceId(1), Outcome::read(Bytes::from_static(b"y")));
                let (position, history) = (number, Digest::ZERO);
                let response = Response { instance, client: id, timestamp, position, history, outcome };
                client.on_certain(now, ReplicaId(from), response, &mut out);
            }
            assert!(client.call.is_none(), "it is served");
        }
        (asked, everybody)
    }

    #[test]
    fn a_liar_that_names_instances_makes_no_entry_look_slow() {
        let (asked, _) = asked_while_a_liar_names_instances();
        assert!(asked.len() == 4 && asked.values().all(|times| *times == 100), "{asked:?}");
    }

    #[test]
    fn a_liar_that_names_instances_makes_a_client_ask_everybody_once() {
        assert_eq!(asked_while_a_liar_names_instances().1, 1);
    }
}
