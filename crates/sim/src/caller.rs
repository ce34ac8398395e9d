//! Hosts a client and makes its calls, honest or not.

mod bundles;
mod closing;
mod errand;
mod reporting;
mod signing;

use crate::byzantine::{Acts, ClientMind, Said};
use crate::checks::Event;
use crate::clock::Clock;
use crate::network::ProcessId;
use crate::rng::Rng;
use crate::stage::{Occurrence, Stage};
use crate::store::{self, ServiceKind};
use crate::workload::{Action, Answer, Call, LIARS_KEYS, Plan};
use bezant_core::auth::Keyring;
use bezant_core::client::{Client, ClientTimer, Completed, Completion, Reporter};
use bezant_core::digest::Digest;
use bezant_core::ids::{ClientId, Principal, ReplicaId, Timestamp};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::members::Admission;
use bezant_core::message::Refusal;
use bezant_core::registry::Message;
use bezant_core::time::{Duration, Instant};
use bezant_core::wire::Wire;
use bytes::Bytes;
use errand::Errand;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Microseconds before a client tries again that may not join yet: places become free after some seconds.
const REFUSED_PAUSE: u64 = 500_000;

/// Where a client stands that has to join.
#[derive(Debug, Default)]
struct Stranger {
    place: Place,
    joins: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
    #[default]
    Outside,
    Joining,
    Inside(Admission),
    Leaving,
}

/// A client in its host.
#[derive(Debug)]
pub struct Caller {
    /// Its place in the world.
    pub process: ProcessId,
    keyring: Rc<Keyring>,
    machine: Client,
    mind: Option<ClientMind>,
    clock: Clock,
    plan: Plan,
    service: ServiceKind,
    /// With it the number of a call draws what a service of somebody else's is asked for: something else in each run.
    salt: u64,
    rng: Rng,
    timers: BTreeMap<ClientTimer, u64>,
    settings: u64,
    /// What it tells replicas besides, where they want to know; and when it is to look again whether it should.
    reporter: Option<Reporter>,
    report_at: Option<u64>,
    /// Calls still to be made in this phase.
    left: u64,
    /// Number and content of the open calls: one, or those of a bundle.
    open: Vec<(u64, Call)>,
    calls: u64,
    /// What it last read or wrote: makes compare-and-set succeed now and then.
    last_seen: Option<u64>,
    /// Whether it reads every key once instead of drawing calls.
    inspects: bool,
    outbox: Outbox<Client>,
    /// Where it stands, if nobody has named it.
    stranger: Option<Stranger>,
    /// Draws whether it asks again what ended without its knowing, if it ever does; and the last call that did.
    asks_again: Option<Rng>,
    unknown: Option<Unknown>,
    /// Whether it closes the cluster, and how far that is.
    errand: Option<Errand>,
    /// How long its requests wait for others to be signed together with them, in microseconds.
    signs_within: Option<u64>,
    /// Whether its open call began when the cluster was closed already.
    begun_closed: bool,
    /// Calls answered.
    pub answered: u64,
}

/// Writes that were asked for together and ended, and nobody knows how.
#[derive(Clone, Debug)]
struct Unknown {
    calls: Vec<(u64, Call)>,
    /// What it was sent as.
    id: (ClientId, Timestamp),
}

impl Caller {
    /// A client that has not called yet.
    pub fn new(
        process: ProcessId,
        machine: Client,
        keyring: Rc<Keyring>,
        mind: Option<ClientMind>,
        clock: Clock,
        (plan, service): (Plan, ServiceKind),
        rng: Rng,
    ) -> Self {
        let left = plan.requests;
        let stranger = matches!(keyring.me(), Principal::Key(_)).then(Stranger::default);
        let reporter = Reporter::new(machine.cluster(), machine.id());
        let salt = rng.clone().next();
        Self {
            process,
            keyring,
            machine,
            mind,
            clock,
            plan,
            service,
            salt,
            rng,
            timers: BTreeMap::new(),
            settings: 0,
            reporter,
            report_at: None,
            left,
            open: Vec::new(),
            calls: 0,
            last_seen: None,
            inspects: false,
            outbox: Outbox::new(),
            stranger,
            asks_again: None,
            unknown: None,
            errand: None,
            signs_within: None,
            begun_closed: false,
            answered: 0,
        }
    }

    /// The same, now and then asking again.
    #[must_use]
    pub fn asking_again(self, rng: Rng) -> Self {
        Self { asks_again: Some(rng), ..self }
    }

    /// Its name.
    pub fn id(&self) -> ClientId {
        self.machine.id()
    }

    /// Whether its calls count.
    pub fn is_honest(&self) -> bool {
        self.mind.is_none()
    }

    /// What it did as a liar.
    pub fn acts(&self) -> Acts {
        self.mind.iter().map(|mind| (mind.label(), mind.acts)).collect()
    }

    /// Whether all its calls of this phase have ended.
    pub const fn is_done(&self) -> bool {
        self.open.is_empty() && self.left == 0 && !matches!(self.errand, Some(Errand::Asked))
    }

    /// What it waits for, for a person.
    pub fn waits_for(&self) -> String {
        let open = self.open.iter().map(|(_, call)| format!(", {:?} open", call.action));
        format!("{} has {} calls to make{}", self.id(), self.left, open.collect::<String>())
    }

    /// Plans the first call.
    pub fn start(&mut self, stage: &mut Stage) {
        self.step(stage, Input::Start);
        self.pause(stage);
        self.plan_tick(stage);
    }

    /// The second phase: a few more calls, without long pauses and without deadlines.
    pub fn second_phase(&mut self, stage: &mut Stage) {
        let idle = self.is_done();
        self.left += self.plan.more;
        self.plan.think /= 20;
        self.plan.deadlines = (0, 0);
        if idle {
            self.pause(stage);
        }
    }

    /// Reads every key once: what was acknowledged must still be there.
    pub fn inspect(&mut self, stage: &mut Stage) {
        self.inspects = true;
        self.left = self.plan.keys;
        self.pause(stage);
    }

    fn pause(&mut self, stage: &mut Stage) {
        if self.left > 0 {
            let pause = self.rng.below(self.plan.think + 1);
            stage.plan(stage.now + pause, Occurrence::Call(self.process));
        }
    }

    /// Makes the next call.
    pub fn call(&mut self, stage: &mut Stage) {
        if self.left == 0 || !self.open.is_empty() || !self.may_ask(stage) {
            return;
        }
        if let Some(unknown) = self.unknown.take() {
            return self.ask_again(stage, unknown);
        }
        self.left -= 1;
        if self.errand.is_some() {
            return self.close(stage);
        }
        self.open = self.draw(stage);
        for (number, call) in &mut self.open {
            if self.mind.is_none() {
                let Call { key, action, .. } = *call;
                stage.checks.see(stage.now, &Event::Invoked { call: *number, key, action });
            } else {
                call.key |= LIARS_KEYS;
            }
            stage.note(self.process, 6, || format!("calls {:?} on key {}", call.action, call.key));
        }
        self.begun_closed = stage.checks.closed.is_some();
        let submit = self.submit(stage);
        self.step(stage, Input::Command(submit));
    }

    /// Asks for the outcome of a call that it does not know: it is one operation still. It may have left and come back
    /// since.
    fn ask_again(&mut self, stage: &mut Stage, unknown: Unknown) {
        let Unknown { calls, id } = unknown;
        for (number, call) in &calls {
            stage.note(self.process, 10, || format!("asks {:?} on key {} again", call.action, call.key));
            if self.is_honest() {
                stage.checks.see(stage.now, &Event::AskedAgain(*number));
            }
        }
        self.open = calls;
        self.begun_closed = false;
        let (now, submit) = (self.now(stage), self.submit(stage));
        self.drive(stage, |machine, out| machine.ask_again(now, id, submit, out));
    }

    /// Keeps in mind what ended, to ask it again before anything else.
    fn remember(&mut self, calls: Vec<(u64, Call)>, completed: &Completed) {
        let is_unknown = matches!(completed.result, Completion::Unknown | Completion::Ended(_));
        let asks = self.asks_again.as_mut().is_some_and(Rng::coin);
        let writes = calls.iter().any(|(_, call)| !call.action.is_read());
        if asks && is_unknown && self.left > 0 && writes {
            self.unknown = Some(Unknown { calls, id: (completed.client, completed.timestamp) });
        }
    }

    /// Whether it may ask now. Somebody who has to join first does so, and somebody who has may leave.
    fn may_ask(&mut self, stage: &mut Stage) -> bool {
        let Some(stranger) = &mut self.stranger else { return true };
        let now = self.clock.read(stage.now);
        let forever = now + Duration(1 << 40);
        match stranger.place {
            Place::Inside(admission) if self.rng.per_mille(self.plan.leaves) => {
                stranger.place = Place::Leaving;
                self.drive(stage, |machine, out| machine.leave(now, admission, forever, out));
                false
            }
            Place::Inside(_) => true,
            Place::Joining | Place::Leaving => false,
            Place::Outside => {
                stranger.place = Place::Joining;
                stranger.joins += 1;
                let mut nonce = [0; 16];
                nonce[..8].copy_from_slice(&(self.process as u64).to_le_bytes());
                nonce[8..].copy_from_slice(&stranger.joins.to_le_bytes());
                self.drive(stage, |machine, out| machine.join(now, nonce, Bytes::new(), forever, out));
                false
            }
        }
    }

    /// Looks whether this is the end of joining or leaving, and goes on.
    fn moved(&mut self, stage: &mut Stage, completed: &Completed) -> bool {
        let Some(stranger) = &mut self.stranger else { return false };
        stranger.place = match (stranger.place, &completed.result) {
            (Place::Joining, Completion::Done(bytes)) => match Admission::from_bytes(bytes.clone()) {
                Ok(admission) => {
                    let now = self.clock.read(stage.now);
                    self.machine.enter(now, admission, 0);
                    Place::Inside(admission)
                }
                Err(_) => Place::Outside,
            },
            (Place::Joining | Place::Leaving, _) => Place::Outside,
            (_, Completion::Ended(_)) => {
                stranger.place = Place::Outside;
                return false;
            }
            _ => return false,
        };
        let what = || format!("{:?} ends with {:?}", stranger.place, completed.result);
        stage.note(self.process, 8, what);
        stage.checks.watch.evidence.full_members |= u64::from(completed.result == Completion::Refused(Refusal::Full));
        match completed.result {
            // Nobody joins any more.
            Completion::Refused(Refusal::Closed) if stage.checks.closing => self.left = 0,
            Completion::Refused(_) if self.left > 0 => {
                stage.plan(stage.now + REFUSED_PAUSE, Occurrence::Call(self.process));
            }
            _ => self.pause(stage),
        }
        true
    }

    /// Whether its identity has more sessions than the client table holds: a request may come too late then, and where
    /// an instance may abort its client learns no more than that.
    fn may_be_evicted(&self, stage: &Stage) -> bool {
        let sessions = self.plan.clients.div_ceil(self.plan.identities) as usize + usize::from(stage.checks.closing);
        self.mind.is_some() || sessions > stage.cluster.limits.sessions_per_identity_max
    }

    fn now(&self, stage: &Stage) -> Instant {
        self.clock.read(stage.now)
    }

    /// A frame arrived.
    pub fn frame(&mut self, stage: &mut Stage, from: Principal, frame: Bytes) {
        stage.arrived(from, self.process, &frame);
        if let Ok(incoming) = Message::open(frame, from, &stage.cluster, &self.keyring) {
            self.step(stage, Input::Message(incoming));
        }
    }

    /// A timer may have come due.
    pub fn timer(&mut self, stage: &mut Stage, timer: ClientTimer, setting: u64) {
        if self.timers.get(&timer) == Some(&setting) {
            self.timers.remove(&timer);
            self.step(stage, Input::Timer(timer));
        }
    }

    /// A liar may speak unasked.
    pub fn tick(&mut self, stage: &mut Stage) {
        let now = self.now(stage);
        let Some(mind) = &mut self.mind else { return };
        let said = mind.tick(now, &stage.cluster, &self.keyring);
        for (to, message) in said {
            say(stage, self.process, &self.keyring, to, &message);
        }
        self.plan_tick(stage);
    }

    fn plan_tick(&self, stage: &mut Stage) {
        if let Some(pause) = self.mind.as_ref().and_then(|mind| mind.pause(&stage.cluster)) {
            stage.plan(stage.now + pause, Occurrence::Tick(self.process));
        }
    }

    fn step(&mut self, stage: &mut Stage, input: Input<Client>) {
        let now = self.now(stage);
        self.drive(stage, |machine, out| machine.step(now, input, out));
    }

    fn drive(&mut self, stage: &mut Stage, act: impl FnOnce(&mut Client, &mut Outbox<Client>)) {
        let mut outbox = std::mem::take(&mut self.outbox);
        if stage.trace.is_readable() {
            outbox.listen_to_steps();
        }
        let asked = self.machine.asked().is_some();
        act(&mut self.machine, &mut outbox);
        self.note_waiting(stage, asked);
        stage.stepped(self.process, outbox.take_steps());
        if self.is_honest() {
            self.machine.check_invariants();
        }
        for effect in outbox.drain() {
            match effect {
                Effect::Persist(never) | Effect::Append(never) => match never {},
                Effect::Send(to, message) => self.send(stage, to, &message),
                Effect::SetTimer(timer, at) => {
                    self.settings += 1;
                    self.timers.insert(timer, self.settings);
                    let (process, setting) = (self.process, self.settings);
                    stage.plan(self.clock.when(at, stage.now), Occurrence::ClientTimer { process, timer, setting });
                }
                Effect::CancelTimer(timer) => drop(self.timers.remove(&timer)),
                Effect::Notify(completed) => self.completed(stage, &completed),
            }
        }
        self.outbox = outbox;
        self.report(stage);
    }

    fn send(&mut self, stage: &mut Stage, to: Destination, message: &Message) {
        let cluster = stage.cluster.clone();
        let receivers: Vec<_> = match to {
            Destination::Replica(id) => vec![id],
            Destination::Replicas => cluster.replicas.iter().collect(),
            Destination::Client(_) | Destination::Key(_) => Vec::new(),
        };
        let Message::Request(request) = message else {
            for to in receivers.into_iter().map(Principal::Replica) {
                let frame = message.sealed(&self.keyring, to);
                stage.post(self.process, to, frame.into());
            }
            return;
        };
        let Some(mind) = &mut self.mind else { return self.issue(stage, receivers, request) };
        for (to, said) in mind.issue(&mut self.rng, &cluster, &self.keyring, &receivers, request) {
            match said {
                Said::Message(message) => say(stage, self.process, &self.keyring, to, &message),
                Said::Frame(frame) => stage.post(self.process, Principal::Replica(to), frame.into()),
            }
        }
    }

    fn completed(&mut self, stage: &mut Stage, completed: &Completed) {
        if self.moved(stage, completed) || self.has_closed(stage, completed) {
            return;
        }
        let calls = std::mem::take(&mut self.open);
        if calls.is_empty() {
            let what = format!("{} was told the end of a call that it had not made", self.id());
            return stage.checks.fail("client", stage.now, what);
        }
        self.answered += 1;
        if self.is_honest() && completed.history != Digest::ZERO {
            let Completed { instance, history, .. } = *completed;
            stage.checks.see(stage.now, &Event::Committed { instance, history });
        }
        match Self::singles(&completed.result, calls.len()) {
            Some(results) => {
                for (&(number, call), result) in calls.iter().zip(&results) {
                    self.ended(stage, (number, call), result, completed);
                }
            }
            // A liar may have asked for something else.
            None if !self.is_honest() => {}
            None => {
                let what = format!("{} has a bundle answered as none", self.id());
                return stage.checks.fail("client", stage.now, what);
            }
        }
        self.remember(calls, completed);
        self.pause(stage);
    }

    /// One of the calls that were asked for together has ended.
    fn ended(&mut self, stage: &mut Stage, (number, call): (u64, Call), result: &Completion, completed: &Completed) {
        let is_over = call.deadline.is_some_and(|span| completed.latency >= Duration(span));
        let answer = match result {
            Completion::Done(result) => Some(store::decode(self.service, call.action, result)),
            Completion::Unknown if !is_over && !self.may_be_evicted(stage) => {
                let what = format!("{} gave {:?} up before its deadline", self.id(), call.action);
                return stage.checks.fail("client", stage.now, what);
            }
            // It may have been executed under a later request's feet: nobody knows.
            Completion::Ended(_) | Completion::TooLate(_) | Completion::Unknown => None,
            Completion::Refused(Refusal::Disputed) if stage.checks.dissent => Some(Answer::Refused),
            Completion::Refused(Refusal::Closed) if stage.checks.closing => Some(Answer::Refused),
            Completion::Refused(refusal) => {
                let what = format!("{} had {:?} refused: {refusal:?}", self.id(), call.action);
                return stage.checks.fail("client", stage.now, what);
            }
        };
        match (call.action, answer) {
            (_, Some(Answer::Value(seen))) => self.last_seen = seen,
            (Action::Set(value) | Action::SetFor(value, _), Some(Answer::Done)) => self.last_seen = Some(value),
            _ => {}
        }
        self.judge_closed(stage, call, completed);
        stage.note(self.process, 7, || format!("{:?} on key {} answers {answer:?}", call.action, call.key));
        if self.is_honest() {
            stage.checks.see(stage.now, &Event::Answered(number, answer));
        }
    }
}

/// A liar says something.
fn say(stage: &mut Stage, process: ProcessId, keyring: &Keyring, to: ReplicaId, message: &Message) {
    if let Message::Request(request) = message {
        stage.checks.see(stage.now, &Event::Issued(request));
    }
    let to = Principal::Replica(to);
    stage.post(process, to, message.sealed(keyring, to).into());
}
