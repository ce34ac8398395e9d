//! The client as a machine: one session, one request outstanding at a time.
//!
//! # Steps
//! * Client 1. An operation becomes a request with the next timestamp and the client's proof. A small one goes to the
//!   primary, a big one to every replica (pbft-F22), a read-only one to every replica. One that is longer than the
//!   cluster takes is refused here: no replica would keep it, or answer.
//! * Client 2. An ordered request is done when 2f+1 replicas gave the same result for the same position, each of them
//!   final or tentative in one and the same view. 2f+1 rather than f+1 because read-only requests must see it
//!   (pbft-F21).
//! * Client 3. A read-only request is done when 2f+1 replicas gave the same result *at the same position*. If they
//!   cannot, because of concurrent writes or of faults, it is asked again as one that is ordered, and is answered as a
//!   query there: linearizable and live. A *local* read goes to one replica, the next one each time, and its answer is
//!   taken for what it is: the word of one, who may lie or lag behind. If it is silent, all are asked, and the first
//!   answer counts. A read of *few* goes to some replicas only, and f+1 equal results are enough, wherever those
//!   replicas stand.
//! * Client 4. A request that waits too long goes to every replica, again and again with growing pauses, until its
//!   deadline. At the deadline the outcome is unknown: it may or may not take effect. Where there is no primary,
//!   whoever was asked first, and did not see to the request in time, is passed over for some: `late.rs`.
//!
//! In a composition of several instances:
//!
//! * Client 5. The request names the instance that the client believes to be active. Quorum is asked at all replicas,
//!   ZLight and Chain at the head, Ring at any entry, a Backup at the primary of its first view.
//! * Client 6. Quorum and ZLight: n equal answers, in result, position and history, commit. A client that has waited
//!   for some multiple of its usual latency asks everybody once more (abs-P12); if that does not help, or two answers
//!   differ, it panics.
//! * Client 7. Chain: the tail's answer with the MACs of all of the last f+1 places commits, or equal answers of all of
//!   them to the repeated request. A limited Backup: 2f+1 equal answers commit. Ring: the exit's answer with the
//!   MACs of the last f+1 positions of its entry's path commits, or n equal answers to the repeated request. It does
//!   not panic but sends its request signed; then f+1 replicas that say that every correct one has executed it commit
//!   it as well.
//! * Client 8. A resilient ring is asked at all replicas, again and again. 2f+1 equal answers, in result, position and
//!   history, commit; or f+1 that say that 2f+1 have signed the state with it: one of those who say so is correct.
//! * Client 9. f+1 replicas that say that a later instance is active convince: the client asks everybody again there,
//!   with the same timestamp, so that the operation is executed at most once. When the only replica that it asked says
//!   so, it asks the others at once.
//!
//! * Client 10. f+1 replicas that say TOO LATE end a call without a result: `unanswered.rs`.
//! * Client 11. A request that was undone because it came after a disputed one ([`crate::dissent`]) has had no effect,
//!   and never will: its operation is asked for again, as a new request.
//! * Client 12. Whoever keeps a long result back is passed over: `late.rs`.
//!
//! What a client machine tells replicas besides, where its cluster is robust: `feedback.rs`.
//!
//! A client that the cluster file does not name joins first: `door.rs`.
//!
//! # Why it is safe
//! Among 2f+1 replies at least f+1 are from correct replicas. If one of them is final the batch is committed; if all
//! are tentative in view v, then f+1 correct replicas prepared it in v, every view change hears of one of them, and
//! the batch stays at its position.

mod call;
mod door;
mod feedback;
mod invariants;
mod joining;
mod late;
mod operation;
mod proof;
mod read;
mod speculation;
mod unanswered;

use crate::auth::Keyring;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, Sequence, Timestamp, View};
use crate::joining::{CookieMessage, Credential};
use crate::machine::{Destination, Input, Machine, Outbox};
use crate::message::{Firmness, Form, Manner, Outcome, Refusal, Reply, Request};
use crate::registry::{ClientMemory, Incoming, Message};
use crate::schedule::Specification;
use crate::switching::{Switch, SwitchMessage};
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use bytes::Bytes;
use call::{Call, Gist, Verdict};
use core::convert::Infallible;
pub use feedback::Reporter;
use joining::Joining;
pub use operation::{Answer, Completed, Completion, Read, Submit};

/// The pause before a request is sent again grows by doubling, up to this factor of `Limits::client_retry`.
const RETRY_DOUBLINGS_MAX: u32 = 4;

/// A client's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientTimer {
    /// Time to send the request to everybody.
    Retry,
    /// Time to give up.
    Deadline,
}

/// What was accepted last: late replies are compared with it.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    timestamp: Timestamp,
    sequence: Sequence,
    gist: Gist,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Client {
    cluster: Rc<Cluster>,
    keyring: Rc<Keyring>,
    id: ClientId,
    /// Key and session, if the cluster file does not name this client.
    credential: Option<Credential>,
    /// Whether its host signs requests, those of several sessions together.
    host_signs: bool,
    /// What it does to join, while it does.
    joining: Option<Joining>,
    instance: InstanceId,
    /// What that is.
    asked: Specification,
    /// The view that the last replies named: where the primary is believed to be.
    view: View,
    last_timestamp: Timestamp,
    /// Until when it signs although the mode does not ask for it.
    signs_until: Instant,
    /// Which instance each replica says is active.
    active: BTreeMap<ReplicaId, InstanceId>,
    /// How long requests take in instances that may abort, smoothed.
    usual_latency: Duration,
    /// What it remembers for the protocols that it asks.
    memory: ClientMemory,
    call: Option<Call>,
    accepted: Option<Accepted>,
    differed: BTreeMap<ReplicaId, u64>,
    /// When each timer is set for; they are set once and looked at when they come due, not moved with every request.
    retry_at: Option<Instant>,
    deadline_at: Option<Instant>,
}

impl Client {
    /// A session of the identity whose keys these are.
    pub fn new(cluster: Rc<Cluster>, keyring: Rc<Keyring>, id: ClientId) -> Self {
        let asked = cluster.specification(InstanceId(1));
        let view = asked.view;
        Self {
            cluster,
            keyring,
            id,
            credential: None,
            host_signs: false,
            joining: None,
            instance: InstanceId(1),
            asked,
            view,
            last_timestamp: Timestamp(0),
            signs_until: Instant(0),
            active: BTreeMap::new(),
            usual_latency: Duration(0),
            memory: ClientMemory::default(),
            call: None,
            accepted: None,
            differed: BTreeMap::new(),
            retry_at: None,
            deadline_at: None,
        }
    }

    /// The same, for a host that signs: a request that is to be signed leaves without a signature, each time that it
    /// does. The host signs all of a pass together ([`Request::sign_all`]), before they go: those of several sessions
    /// with the same keys, too. A request of which [`Request::lacks_signature`] says nothing goes as it is.
    #[must_use]
    pub fn signed_by_host(self) -> Self {
        Self { host_signs: true, ..self }
    }

    /// Who this is.
    pub const fn id(&self) -> ClientId {
        self.id
    }

    /// Whom replicas know it as.
    pub fn party(&self) -> Principal {
        match self.keyring.me() {
            Principal::Client(_) => Principal::Client(self.id),
            me => me,
        }
    }

    /// Whom it asks.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Its keys.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// The number of the request that is outstanding, if one is.
    pub fn asked(&self) -> Option<Timestamp> {
        self.call.as_ref().map(|call| call.request.timestamp)
    }

    /// Whether a request is outstanding.
    pub const fn is_busy(&self) -> bool {
        self.call.is_some() || self.joining.is_some()
    }

    /// How often each replica gave a result that 2f+1 others contradicted.
    pub const fn differed(&self) -> &BTreeMap<ReplicaId, u64> {
        &self.differed
    }

    fn submit(&mut self, now: Instant, submit: Submit, out: &mut Outbox<Self>) {
        assert!(self.call.is_none(), "one request at a time; the host keeps a queue");
        if submit.operation.len() > self.cluster.limits.operation_bytes_max {
            // No replica would answer it: what it will not even keep, it need not count under anybody's name.
            let refused = Completion::Refused(Refusal::TooLarge);
            return out.notify(self.over(self.last_timestamp, refused, Duration(0)));
        }
        // Where instances may abort, reads are ordered (abs-S12).
        let read_only = submit.read_only && !self.asked.hands_on();
        let manner = match submit.read_only {
            true if read_only => Manner::Query,
            true => Manner::OrderedQuery,
            false => Manner::Ordered,
        };
        let request = self.request(now, Form { manner, is_bundle: submit.is_bundle }, submit.operation);
        let read = if read_only { submit.read.within(&self.cluster) } else { Read::Quorum };
        out.step("Client 1");
        self.ask_besides(out);
        match read {
            Read::Quorum => self.transmit(&request, out),
            Read::Few(_) | Read::One => self.transmit_to(read, &request, out),
        }
        self.wait(request, now, submit.deadline, out);
        self.call.iter_mut().for_each(|call| call.read = read);
    }

    /// Asks for the outcome of an earlier request that ended as [`Completion::Unknown`]: the same operation, read-only
    /// if it was before, under the same timestamp, so that it is executed at most once. Under another session, after
    /// joining again, it would be another request: it is not sent, and ends as [`Completion::Ended`].
    ///
    /// # Panics
    /// If a request is outstanding.
    pub fn ask_again(&mut self, now: Instant, id: (ClientId, Timestamp), submit: Submit, out: &mut Outbox<Self>) {
        assert!(self.call.is_none(), "one request at a time; the host keeps a queue");
        let (client, timestamp) = id;
        if client != self.id {
            let ended = self.over(timestamp, Completion::Ended(Refusal::NoSession), Duration(0));
            return out.notify(Completed { client, ..ended });
        }
        self.last_timestamp = self.last_timestamp.max(timestamp);
        let manner = if submit.read_only { Manner::OrderedQuery } else { Manner::Ordered };
        let form = Form { manner, is_bundle: submit.is_bundle };
        let request = self.prove(now, self.compose(timestamp, form, submit.operation));
        let everywhere = match self.part().is_resilient() {
            true => request.clone(),
            false => request.clone().authenticate_for_all(&self.cluster, &self.keyring),
        };
        out.send(Destination::Replicas, Message::Request(everywhere));
        self.wait(request, now, submit.deadline, out);
    }

    fn wait(&mut self, request: Request, now: Instant, deadline: Option<Instant>, out: &mut Outbox<Self>) {
        assert!(!self.is_busy(), "one request at a time");
        let patience = self.patience();
        self.set_retry(now + patience, out);
        if let Some(at) = deadline {
            self.set_deadline(at, out);
        }
        self.call = Some(Call::new(request, now, deadline, patience));
    }

    fn next_timestamp(&mut self, now: Instant) -> Timestamp {
        let first = Timestamp(now.0.max(self.last_timestamp.0 + 1));
        let timestamp = self.memory.fair_timestamp(self.part(), &self.asking(), first);
        assert!(timestamp > self.last_timestamp, "a timestamp is used once");
        self.last_timestamp = timestamp;
        timestamp
    }

    /// A request of this client, without proof yet.
    fn compose(&self, timestamp: Timestamp, form: Form, operation: Bytes) -> Request {
        Request::in_form(self.instance, self.id, self.credential, timestamp, form, operation)
    }

    /// Client 1.
    fn transmit(&self, request: &Request, out: &mut Outbox<Self>) {
        let to = self.first_receivers(request);
        if self.asked.hands_on() {
            out.step("Client 5");
            self.half().asks().into_iter().for_each(|step| out.step(step));
        }
        out.send(to, Message::Request(request.clone()));
    }

    fn set_retry(&mut self, at: Instant, out: &mut Outbox<Self>) {
        if self.retry_at.is_none_or(|set| at < set) {
            self.retry_at = Some(at);
            out.set_timer(ClientTimer::Retry, at);
        }
    }

    fn set_deadline(&mut self, at: Instant, out: &mut Outbox<Self>) {
        if self.deadline_at.is_none_or(|set| at < set) {
            self.deadline_at = Some(at);
            out.set_timer(ClientTimer::Deadline, at);
        }
    }

    fn on_reply(&mut self, now: Instant, from: ReplicaId, reply: Reply, out: &mut Outbox<Self>) {
        if reply.client != self.id || reply.instance != self.instance {
            return;
        }
        let Specification { part, .. } = self.asked;
        let gives_way = self.asked.hands_on() && !part.is_backup();
        let Some(call) = self.call.as_mut().filter(|call| call.request.timestamp == reply.timestamp) else {
            return self.on_late_reply(from, &reply);
        };
        let over = matches!(&reply.outcome, Outcome::Refused(refusal) if refusal.ends_session());
        if over && call.attempts == 0 {
            // One replica says so: what do the others say?
            call.attempts = 1;
            out.send(Destination::Replicas, Message::Request(call.request.clone()));
        }
        call.add(from, reply);
        let verdict = match gives_way {
            // A Backup that hands on orders reads (abs-S12), and answers tentatively (Backup 11).
            false => call.verdict(self.asked.replicas),
            // That it is too late.
            true => call.final_verdict(self.asked.replicas),
        };
        match verdict {
            Verdict::Open => {}
            Verdict::Owed if part.is_resilient() => self.wait_for_whole(now, out),
            Verdict::Owed => {}
            Verdict::Accepted(_) if !part.is_resilient() => {
                out.step("Client 10");
                self.give_up(now, out);
            }
            Verdict::Accepted(key) => {
                let vouchers = call.vouchers(&key);
                self.complete(now, key, vouchers, Digest::ZERO, None, out);
            }
            Verdict::Hopeless => self.fall_back(now, out),
        }
    }

    /// A reply that came after the result was accepted still tells whether its sender agrees.
    fn on_late_reply(&mut self, from: ReplicaId, reply: &Reply) {
        if let Some(accepted) = self.accepted
            && accepted.timestamp == reply.timestamp
            && accepted.sequence == reply.sequence
            && accepted.gist != Gist::of(&reply.outcome)
        {
            *self.differed.entry(from).or_default() += 1;
        }
    }

    /// Client 2, 3, 6 and 7: enough replicas agree.
    fn complete(
        &mut self,
        now: Instant,
        key: call::Key,
        vouchers: u64,
        history: Digest,
        outcome: Option<Outcome>,
        out: &mut Outbox<Self>,
    ) {
        let Some(call) = self.call.take() else { return };
        let result = outcome.map_or_else(|| call.result(&key), |outcome| Completion::of(&outcome));
        if result == Completion::Refused(Refusal::Undone) && !call.request.client.identity.is_joining() {
            out.step("Client 11");
            return self.ask_anew(now, call, out);
        }
        out.step(self.accepting(&call.request, &result));
        let timestamp = call.request.timestamp;
        // The word of one replica, or of a few, is no measure for the others.
        let is_measure = call.read == Read::Quorum;
        if is_measure && call.attempts == 0 {
            self.note_in_time(&call.request, &key);
        }
        self.view = call.view_of(&key).filter(|_| is_measure).unwrap_or(self.view);
        self.accepted = is_measure.then_some(Accepted { timestamp, sequence: key.sequence, gist: key.gist });
        let mut answers = Vec::new();
        if is_measure && call.anybody_differs(&key) {
            answers = call.answers(self.asked.replicas, Some(&key));
            for (replica, answer) in &answers {
                if *answer == Answer::Differed {
                    *self.differed.entry(*replica).or_default() += 1;
                }
            }
        }
        let latency = now - call.submitted;
        let (client, instance, sequence) = (self.id, self.instance, key.sequence);
        out.notify(Completed { client, timestamp, result, instance, sequence, history, vouchers, answers, latency });
    }

    /// Client 3: the read cannot be answered by enough equal replies; order it instead.
    fn fall_back(&mut self, now: Instant, out: &mut Outbox<Self>) {
        out.step("Client 3");
        if let Some(call) = self.call.take() {
            self.ask_anew(now, call, out);
        }
    }

    /// The same operation as a new request, to be ordered.
    fn ask_anew(&mut self, now: Instant, mut call: Call, out: &mut Outbox<Self>) {
        let Form { manner, is_bundle } = call.request.form();
        let manner = match manner {
            Manner::Query | Manner::OrderedQuery => Manner::OrderedQuery,
            Manner::Ordered => Manner::Ordered,
        };
        let request = self.request(now, Form { manner, is_bundle }, call.request.operation.clone());
        self.transmit(&request, out);
        call.order_instead(request, now);
        let at = call.retry_at;
        self.call = Some(call);
        // The timer may be set for what backed off before.
        self.set_retry(at, out);
    }

    /// Client 4.
    fn on_retry(&mut self, now: Instant, out: &mut Outbox<Self>) {
        self.retry_at = None;
        let base = self.cluster.limits.client_retry;
        if self.joining.is_some() {
            return self.ask_for_cookies(now, out);
        }
        if let Some(at) = self.call.as_ref().map(|call| call.retry_at).filter(|at| now < *at) {
            return self.set_retry(at, out);
        }
        self.pass_over_who_is_late(now, out);
        let is_ordered = self.call.as_ref().is_some_and(|call| call.read != Read::One && !call.request.read_only);
        if is_ordered && self.asked.part.is_resilient() {
            self.sign_for_a_while(now);
        }
        let Some(call) = &mut self.call else { return };
        if call.read == Read::One {
            call.retry_at = now + base;
            out.send(Destination::Replicas, Message::Request(call.request.clone()));
        } else if call.request.read_only {
            self.fall_back(now, out);
        } else if !self.asked.part.is_resilient() {
            self.on_impatience(now, out);
        } else {
            out.step("Client 4");
            call.attempts += 1;
            call.retry_at = now + base.doubled(call.attempts.min(RETRY_DOUBLINGS_MAX), Duration(u64::MAX));
            out.send(Destination::Replicas, Message::Request(call.request.clone()));
        }
        let at = self.call.as_ref().map_or(now + base, |call| call.retry_at);
        self.set_retry(at, out);
    }
}

impl Machine for Client {
    type Incoming = Incoming;
    type Outgoing = Message;
    type Timer = ClientTimer;
    type Command = Submit;
    type Notice = Completed;
    type Record = Infallible;

    fn step(&mut self, now: Instant, input: Input<Self>, out: &mut Outbox<Self>) {
        match input {
            Input::Start | Input::PassEnd => {}
            Input::Message(Incoming { from: Principal::Replica(from), message }) => match message.into_inner() {
                Message::Cookie(CookieMessage::Given(given)) => self.on_cookie(now, from, given, out),
                Message::Reply(reply) => self.on_reply(now, from, reply, out),
                Message::Response(response) => self.on_response(now, from, response, out),
                Message::RingCertain(certain) => self.on_certain(now, from, certain.0, out),
                Message::Switch(Switch { instance, message: SwitchMessage::Active(client) }) => {
                    self.on_active(now, from, instance, client, out);
                }
                message => self.on_own(now, from, message, out),
            },
            Input::Message(_) => {}
            Input::Timer(ClientTimer::Retry) => self.on_retry(now, out),
            Input::Timer(ClientTimer::Deadline) => self.on_deadline(now, out),
            Input::Command(submit) => self.submit(now, submit, out),
        }
        if cfg!(debug_assertions) {
            self.check_invariants();
        }
    }
}

impl Firmness {
    /// Whether a reply of this firmness answers an ordered request.
    const fn is_ordered(self) -> bool {
        !matches!(self, Self::Read)
    }
}
