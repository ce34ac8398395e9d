//! The client's part in instances that may abort, and its way from one to the next: Client 5 to 8 of the
//! [module](super).

use super::call::{Gist, Key};
use super::{Client, Completion};
use crate::ids::{ClientId, InstanceId, ReplicaId, Sequence};
use crate::machine::{Destination, Outbox, Step};
use crate::message::Request;
use crate::protocols::speculative::{Asking, ClientHalf, Complaint, Response, Settled, Verdict};
use crate::registry::{ClientMemory, Message, half_of, settled};
use crate::schedule::{Part, Specification};
use crate::switching::{Panic, Switch, SwitchMessage};
use crate::time::{Duration, Instant};

/// The least patience of a client, as a part of `Limits::client_retry`: a busy machine may pause for some milliseconds.
const PATIENCE_PARTS: u64 = 5;

/// How many times its usual latency a client waits.
const PATIENCE_FACTOR: u64 = 8;

impl Client {
    pub(super) const fn part(&self) -> Part {
        self.asked.part
    }

    /// The half of the protocol that is asked.
    pub(super) fn half(&self) -> &'static dyn ClientHalf {
        half_of(self.part())
    }

    /// Where this client asks.
    pub(super) const fn asking(&self) -> Asking {
        let Specification { replicas, head, .. } = self.asked;
        Asking { replicas, client: self.id, instance: self.instance, head, view: self.view }
    }

    /// T: how long to wait before asking again, and then before panicking (abs-P12).
    pub(super) fn patience(&self) -> Duration {
        let most = self.cluster.limits.client_retry;
        if self.part().is_resilient() || self.usual_latency == Duration(0) {
            return most;
        }
        let own = Duration(PATIENCE_FACTOR * self.usual_latency.0);
        let of_others = self.memory.patience(self.part(), self.asked.replicas);
        Duration(of_others.map_or(own, |others| others.min(own)).0.clamp(most.0 / PATIENCE_PARTS, most.0))
    }

    pub(super) fn note_latency(&mut self, latency: Duration) {
        self.usual_latency = Duration((7 * self.usual_latency.0 + latency.0) / 8);
    }

    /// Client 1 and 5: where the request goes first.
    pub(super) fn first_receivers(&self, request: &Request) -> Destination {
        let everybody = request.read_only || request.operation.len() > self.cluster.limits.inline_bytes_max;
        self.half().first(&self.asking(), request.timestamp, everybody)
    }

    /// Whether one replica alone is asked first.
    pub(super) fn asks_one(&self, request: &Request) -> bool {
        matches!(self.first_receivers(request), Destination::Replica(_))
    }

    /// Another request begins: what everybody is asked besides.
    pub(super) fn ask_besides(&mut self, out: &mut Outbox<Self>) {
        if let Some(question) = self.recall(|memory, client| memory.begin(client.part(), &client.asking())) {
            out.send(Destination::Replicas, question);
        }
    }

    /// Lets its memory look at where the client is.
    fn recall<R>(&mut self, act: impl FnOnce(&mut ClientMemory, &Self) -> R) -> R {
        let mut memory = core::mem::take(&mut self.memory);
        let said = act(&mut memory, self);
        self.memory = memory;
        said
    }

    /// The step with which a call ends.
    pub(super) fn accepting(&self, request: &Request, result: &Completion) -> Step {
        match result {
            Completion::TooLate(_) => "Client 10",
            _ if request.read_only => "Client 3",
            _ if !self.asked.hands_on() => "Client 2",
            _ => self.half().ends(),
        }
    }

    /// Client 6: a speculative answer.
    pub(super) fn on_response(&mut self, now: Instant, from: ReplicaId, response: Response, out: &mut Outbox<Self>) {
        let ours = response.client == self.id && response.instance == self.instance;
        if !ours || !self.half().counts(&self.asking(), from) {
            return;
        }
        let Some(call) = self.call.as_mut().filter(|call| call.request.timestamp == response.timestamp) else { return };
        call.responses.insert(from, response);
        let Some(call) = &self.call else { return };
        match self.half().weigh(&self.asking(), &call.responses) {
            Verdict::Open => {}
            Verdict::Settled(settled) => self.settle(now, settled, out),
            Verdict::Hopeless => self.panic(now, out),
        }
    }

    /// Client 6 and 7: what only the protocol that is asked says.
    pub(super) fn on_own(&mut self, now: Instant, from: ReplicaId, message: Message, out: &mut Outbox<Self>) {
        self.recall(|memory, client| memory.hear(&client.asking(), from, &message));
        let Some(waits_for) = self.call.as_ref().map(|call| call.request.timestamp) else { return };
        if let Some(settled) = settled(self.part(), &self.asking(), &self.keyring, waits_for, message) {
            self.settle(now, settled, out);
        }
    }

    /// Client 7 and 8: a replica of a ring says that every correct one has executed the request, or that 2f+1 have. Of
    /// f+1 that say the same one is correct.
    pub(super) fn on_certain(&mut self, now: Instant, from: ReplicaId, response: Response, out: &mut Outbox<Self>) {
        let ours = response.client == self.id && response.instance == self.instance;
        let is_believed = self.half().believes_certain();
        let Some(call) = self.call.as_mut().filter(|call| call.request.timestamp == response.timestamp) else { return };
        if !ours || !is_believed {
            return;
        }
        call.certain.insert(from, response.clone());
        let equal = call.certain.iter().filter(|(_, other)| **other == response).map(|(id, _)| *id);
        let vouchers = equal.fold(0_u64, |bits, id| bits | 1 << id.0);
        if response.outcome.is_whole() && vouchers.count_ones() as usize >= self.asked.replicas.weak() {
            let Response { position, history, outcome, .. } = response;
            self.settle(now, Settled { position, history, outcome, vouchers }, out);
        }
    }

    fn settle(&mut self, now: Instant, settled: Settled, out: &mut Outbox<Self>) {
        self.half().accepts().into_iter().for_each(|step| out.step(step));
        if let Some(call) = &self.call {
            let latency = now - call.asked;
            // Its time, and not whether others were asked: somebody who lies may have been the reason for that.
            let in_time = match call.attempts {
                0 => Some(true),
                _ => Some(false).filter(|_| latency >= call.patience),
            };
            let timestamp = call.request.timestamp;
            self.recall(|memory, client| memory.end(client.part(), &client.asking(), timestamp, in_time));
            self.note_latency(latency);
        }
        let key = Key { sequence: Sequence(settled.position), gist: Gist::of(&settled.outcome) };
        self.complete(now, key, settled.vouchers, settled.history, Some(settled.outcome), out);
    }

    /// Client 6: T has passed. The first time everybody is asked, then the client panics.
    pub(super) fn on_impatience(&mut self, now: Instant, out: &mut Outbox<Self>) {
        let patience = self.patience();
        let Some(call) = &mut self.call else { return };
        out.step("Client 6");
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
        let (patience, complaint) = (self.patience(), self.half().complaint());
        let Some(call) = self.call.as_mut().filter(|call| !call.panicked) else { return };
        call.panicked = true;
        call.attempts = call.attempts.max(1);
        call.retry_at = now + patience;
        let said: Option<Message> = match complaint {
            Complaint::Signed => {
                let request = call.request.clone().authenticate_for_all(&self.cluster, &self.keyring);
                Some(request.sign(&self.keyring).into())
            }
            Complaint::Panic => {
                out.step("Switch 1");
                let panic = Panic { client: self.id, timestamp: call.request.timestamp };
                Some(Switch { instance: self.instance, message: SwitchMessage::Panic(panic) }.into())
            }
            Complaint::Nothing => None,
        };
        if let Some(said) = said {
            out.send(Destination::Replicas, said);
        }
        // The timer may be set for a time when it had more patience.
        self.set_retry(now + patience, out);
    }

    /// Client 9: a replica says which instance is active. f+1 of them convince.
    pub(super) fn on_active(
        &mut self,
        now: Instant,
        from: ReplicaId,
        instance: InstanceId,
        client: ClientId,
        out: &mut Outbox<Self>,
    ) {
        if client != self.id || !self.asked.hands_on() {
            return;
        }
        let known = self.active.entry(from).or_default();
        // Once in each instance: who says it again, of ever later ones, has not been borne out by the others.
        let is_news = *known <= self.instance && instance > self.instance;
        *known = instance.max(*known);
        let proved = self.asked.replicas.reached(self.active.values().copied());
        let Some(proved) = proved.filter(|proved| *proved > self.instance) else {
            return self.ask_others(now, is_news, out);
        };
        out.step("Client 9");
        assert!(proved > self.instance, "an instance that was left is over");
        (self.instance, self.asked) = (proved, self.cluster.specification(proved));
        self.view = self.asked.view;
        self.active.retain(|_, claim| *claim > proved);
        self.ask_in_new_instance(now, out);
    }

    /// One replica says that a later instance is active. That proves nothing; but if only one was asked, the others can
    /// say so as well, and the client need not wait until its patience is at an end.
    fn ask_others(&mut self, now: Instant, is_news: bool, out: &mut Outbox<Self>) {
        let asked_one = self.call.as_ref().is_some_and(|call| self.asks_one(&call.request));
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
        let request = self.prove(now, call.request.clone().asked_in(self.instance));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Read, Submit};
    use crate::cluster::{ClientAuth, Cluster, Limits};
    use crate::digest::Digest;
    use crate::ids::Principal;
    use crate::machine::{Effect, Input, Machine};
    use crate::message::Outcome;
    use crate::protocols::ring_fast::Path;
    use crate::schedule::{Order, Protocol, Schedule};
    use crate::testing::net;
    use alloc::collections::BTreeMap;
    use alloc::rc::Rc;
    use alloc::vec::Vec;
    use bytes::Bytes;

    /// A ring answers each request a millisecond after it was asked, and one liar says of ever later instances that
    /// they are active whenever one of the first two replicas is the entry. How often each entry was asked, and how
    /// often everybody was.
    fn asked_while_a_liar_names_instances() -> (BTreeMap<ReplicaId, usize>, usize) {
        let protocol = Protocol::Schedule(Schedule::new(&[Part::RingFast, Part::Backup(Order::Pbft)]).unwrap());
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
                Input::Command(Submit {
                    operation,
                    is_bundle: false,
                    read_only: false,
                    read: Read::Quorum,
                    deadline: None,
                }),
                &mut out,
            );
            let timestamp = client.call.as_ref().unwrap().request.timestamp;
            let entry = Path::entry_for(cluster.replicas, id, timestamp, 0);
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
