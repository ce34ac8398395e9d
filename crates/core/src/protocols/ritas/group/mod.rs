//! A process that has the layers and nothing else: no service, no clients, no state (thesis, section 4.2).
//!
//! # What it is for
//! Programs that agree on something of their own: on a value, on a bit, on the order of messages. It is a
//! [`Machine`], so that the simulator and the runtime drive it as they drive a replica.
//!
//! # Steps
//! * Group 1. The application calls, and names the instance by a number. Numbers of a layer begin at 0, and leave none
//!   out; calls of one consensus by all processes have the same number.
//! * Group 2. What does not fit into the window of its layer waits, and [`Group::waiting`] says how much that is. The
//!   window begins with the first instance whose result the application has not [taken](Command::Taken): what it does
//!   not look at has a bound.
//! * Group 3. Messages of the atomic broadcast that wait go into a *bundle* together, so many bundles at a time: under
//!   load bundles grow by themselves.
//! * Group 4. What was said in a pass is sent in as few messages as it fits into.
//! * Group 5. What of a process was ordered comes in the order in which that process sent it (`turns.rs`).
//! * Group 6. On a timer: what was heard ([`super::channel`]), and how far this process has come (`history.rs`). Who
//!   hears from f + 1 that they are some rounds ahead says what it has heard at once, and again as soon as it has come
//!   to another round.
//!
//! # Why it is safe
//! Each layer is. A message belongs to one *epoch*, a run of the group: what was said in another is rejected
//! (ritas-F11: a process that begins again with empty hands would contradict itself). A process has no log. Whoever
//! crashes comes back with the whole group, in the next epoch; until then it is one of the f.
//!
//! # Deviations
//! *Bundles*: the thesis broadcasts each message by itself, which costs a reliable broadcast for each.
//! [`GroupOptions::bundles`] switches them off. *Turns*: the thesis orders messages of one process in any way.
//! *Forgetting*: the thesis does not say what is kept for slow processes.
//! Of the atomic broadcast see `history.rs`. Of the other layers the last instances of each are kept, and of each
//! owner, as many as `bounds.rs` says: whoever is further behind is one of the f, too.

mod calls;
mod history;
mod message;
#[cfg(test)]
mod tests;
mod turns;

use super::atomic_broadcast::{Hold, WINDOW};
use super::catching_up::CatchingUp;
use super::message::{Said, Value};
use super::pace::Pace;
use super::path::{Layer, Path};
use super::scope::{self, Scope};
use super::stack::{Outcome, Stack};
use super::statements::packed;
use super::variant::Variant;
use super::vector_consensus::Vector;
use crate::auth::CommonCoin;
use crate::digest::Digest;
use crate::ids::ReplicaId;
use crate::machine::{Destination, Input, Machine, Outbox};
use crate::rejection::Rejection;
use crate::replicas::Replicas;
use crate::time::{Duration, Instant};
use crate::wire::Wire;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
pub use calls::{CALL_ALLOWANCE, Call, Command, GroupEvent, Taken};
use core::convert::Infallible;
pub use history::HISTORY_ROUNDS_MAX;
use history::History;
use message::{BUNDLE_MESSAGES_MAX, Bundle, Part};
pub use message::{GroupMessage, Here, MESSAGE_BYTES_MAX, Speech};
use turns::Turns;

/// Bytes of a bundle, if it has more than one message.
const BUNDLE_BYTES: usize = 256 << 10;

/// Processes of a group. With more of them a process may have more instances to tell of than a SUMMARY has places
/// ([`HEARD_MAX`](super::message::HEARD_MAX)): f liars begin whatever they may.
pub const PROCESSES_MAX: usize = 32;

/// What [`GroupOptions::history_bytes_max`] is as a rule.
pub const HISTORY_BYTES_MAX: usize = 64 << 20;

/// Bundles that are on their way at a time: one in the round that runs, and one for the next.
const BUNDLES: u64 = 2;

/// How a group differs from others. The same at all of its processes, but for the secrets.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// The processes.
    pub replicas: Replicas,
    /// This one.
    pub me: ReplicaId,
    /// The run.
    pub epoch: u64,
    /// What this process tosses its coins with, and nobody else knows.
    pub secret: Digest,
    /// What all toss together, if the variant says so.
    pub coin: Option<CommonCoin>,
    /// How the layers differ from the thesis'.
    pub variant: Variant,
    /// Whether messages of the atomic broadcast go together.
    pub bundles: bool,
    /// How often a process looks whether it has missed anything.
    pub interval: Duration,
    /// Bytes of messages of the atomic broadcast that are kept for processes that have not said that they have them.
    pub history_bytes_max: usize,
}

/// The only timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupTimer {
    /// Time to say what this process lacks.
    Channel,
}

/// A process of a group. See the [module](self).
#[derive(Clone, Debug)]
pub struct Group {
    options: GroupOptions,
    stack: Stack,
    /// What the stack wants done, and has not been carried out.
    effects: Vec<scope::Effect>,
    /// What is to be said at the end of the pass: to all, and to one.
    said: Vec<Said>,
    told: BTreeMap<ReplicaId, Vec<Said>>,
    /// What waits for the window of its layer; of the atomic broadcast, what waits for a bundle.
    waiting: BTreeMap<Layer, BTreeMap<Path, Call>>,
    unordered: VecDeque<Bytes>,
    /// What waits, with an allowance for each call.
    waiting_bytes: usize,
    pace: Pace,
    catching_up: CatchingUp,
    history: History,
    turns: Turns,
    /// Bytes that the round which is just being delivered has delivered so far.
    delivered_bytes: usize,
    is_left_behind: bool,
    /// What was said last of how far this process has come.
    told_here: Here,
}

impl Group {
    /// A process that has not done anything.
    pub fn new(options: GroupOptions) -> Self {
        let mut stack = Stack::new(options.secret, options.variant);
        stack.arm(options.secret, options.coin.clone());
        Self {
            stack,
            effects: Vec::new(),
            said: Vec::new(),
            told: BTreeMap::new(),
            waiting: BTreeMap::new(),
            unordered: VecDeque::new(),
            waiting_bytes: 0,
            pace: Pace::default(),
            catching_up: CatchingUp::default(),
            history: History::new(&options.replicas, options.history_bytes_max),
            turns: Turns::new(&options.replicas),
            delivered_bytes: 0,
            is_left_behind: false,
            told_here: Here { round: 0, kept: 0 },
            options,
        }
    }

    /// Bytes of what the application has asked for and is not begun, with [`CALL_ALLOWANCE`] for each call: whoever
    /// calls waits while this is too much.
    pub const fn waiting(&self) -> usize {
        self.waiting_bytes
    }

    /// How many instances there are.
    pub fn instances(&self) -> usize {
        self.stack.len()
    }

    fn act<T>(&mut self, out: &mut Outbox<Self>, act: impl FnOnce(&mut Stack, &mut Scope<'_>) -> T) -> T {
        let GroupOptions { replicas, me, variant, .. } = self.options;
        let (repeats, silence, steps) = (variant.repeats, None, out.steps());
        act(&mut self.stack, &mut Scope { replicas, me, repeats, silence, out: &mut self.effects, steps })
    }

    /// Group 1.
    fn call(&mut self, out: &mut Outbox<Self>, call: Call) {
        assert!(call.bytes() <= MESSAGE_BYTES_MAX, "the host checks what is called");
        out.step("Group 1");
        self.waiting_bytes += call.weight();
        if let Call::Order(bytes) = call {
            return self.unordered.push_back(bytes);
        }
        let path = call.path();
        // Of two calls with one number the second counts, if the first has not begun.
        let replaced = self.waiting.entry(path.last().layer()).or_default().insert(path, call);
        self.waiting_bytes -= replaced.map_or(0, |call| call.weight());
        self.begin(out);
    }

    /// Group 2.
    fn begin(&mut self, out: &mut Outbox<Self>) {
        while let Some((path, call)) = self.next_with_room() {
            out.step("Group 2");
            self.waiting_bytes -= call.weight();
            let outcomes = self.act(out, |stack, scope| match call {
                Call::Reliable(_, bytes) | Call::Echo(_, bytes) => stack.broadcast(scope, path, Value(bytes)),
                Call::Bit(_, bit) => stack.propose_bit(scope, path, bit),
                Call::Value(_, bytes) | Call::Vector(_, bytes) => stack.propose(scope, path, Value(bytes)),
                Call::Order(_) => unreachable!("it waits for a bundle"),
            });
            self.learn(out, outcomes);
        }
    }

    fn next_with_room(&mut self) -> Option<(Path, Call)> {
        let (stack, &GroupOptions { replicas, me, .. }) = (&self.stack, &self.options);
        let has_room = |(path, call): (&Path, &Call)| {
            let is_broadcast = matches!(call, Call::Reliable(..) | Call::Echo(..));
            stack.has_come_to(&replicas, if is_broadcast { path.by(me) } else { *path })
        };
        self.waiting.values_mut().find(|calls| calls.first_key_value().is_some_and(has_room))?.pop_first()
    }

    /// Group 3.
    fn bundle(&mut self, out: &mut Outbox<Self>) {
        let at_a_time = if self.options.bundles { BUNDLES } else { WINDOW };
        while !self.unordered.is_empty()
            && self.stack.on_their_way(Path::atomic_broadcast(), self.options.me) < at_a_time
        {
            let (mut parts, mut bytes) = (Vec::new(), 0);
            while let Some(next) = self.unordered.front() {
                bytes += next.len();
                let is_full = bytes > BUNDLE_BYTES || !self.options.bundles || parts.len() >= BUNDLE_MESSAGES_MAX;
                if is_full && !parts.is_empty() {
                    break;
                }
                parts.extend(self.unordered.pop_front().map(Part));
            }
            self.waiting_bytes -= parts.iter().map(|part| part.0.len() + CALL_ALLOWANCE).sum::<usize>();
            out.step("Group 3");
            let value = Value(Bytes::from(Bundle(parts).to_bytes()));
            let outcomes = self.act(out, |stack, scope| stack.order(scope, Path::atomic_broadcast(), value));
            self.learn(out, outcomes.expect("fewer are on their way than the window has"));
        }
    }

    /// What the stack has come to.
    fn learn(&mut self, out: &mut Outbox<Self>, outcomes: Vec<Outcome>) {
        let mut outcomes = VecDeque::from(outcomes);
        self.carry_out(out);
        while let Some(outcome) = outcomes.pop_front() {
            match outcome {
                Outcome::Delivered(path, value) => {
                    let owner = path.owner(&self.options.replicas).expect("broadcasts have owners");
                    let of = path.parent().expect("an owner is of something").last();
                    let event = if of.layer() == Layer::Echo { GroupEvent::Echo } else { GroupEvent::Reliable };
                    out.notify(event(owner, of.number(), value.0));
                }
                Outcome::Bit(path, bit) => out.notify(GroupEvent::Bit(path.last().number(), bit)),
                Outcome::Agreed(path, value) => {
                    out.notify(GroupEvent::Value(path.last().number(), value.map(|value| value.0)));
                }
                Outcome::Vector(path, value) => {
                    let vector = Vector::from_bytes(value.0).map(|vector| vector.0).unwrap_or_default();
                    let vector = vector.into_iter().map(|value| value.map(|value| value.0)).collect();
                    out.notify(GroupEvent::Vector(path.last().number(), vector));
                }
                Outcome::Message(root, id, value) => {
                    // What cannot be read no correct process lists.
                    if Bundle::from_bytes(value.0).is_ok() {
                        outcomes.extend(self.act(out, |stack, scope| stack.vouch(scope, root, id)));
                        self.carry_out(out);
                    } else {
                        out.notify(GroupEvent::Rejected(id.sender, Rejection::Malformed));
                    }
                }
                Outcome::Ordered(_, id, value) => {
                    self.delivered_bytes += value.0.len();
                    out.step("Group 5");
                    let bundle = Bundle::from_bytes(value.0).expect("a correct process has listed it");
                    for Part(bytes) in self.turns.take(id, bundle).into_iter().flat_map(|Bundle(parts)| parts) {
                        out.notify(GroupEvent::Ordered(id.sender, bytes));
                    }
                }
                Outcome::Reached(_, standing) => {
                    self.history.reached(standing, core::mem::take(&mut self.delivered_bytes));
                    outcomes.extend(self.forget(out));
                }
            }
        }
    }

    /// What nobody needs any more.
    fn forget(&mut self, out: &mut Outbox<Self>) -> Vec<Outcome> {
        let Some(standing) = self.history.forget(&self.options.replicas, self.options.me) else { return Vec::new() };
        let outcomes = self.act(out, |stack, scope| stack.forget_before(scope, Path::atomic_broadcast(), &standing));
        self.carry_out(out);
        outcomes
    }

    fn carry_out(&mut self, out: &mut Outbox<Self>) {
        for effect in core::mem::take(&mut self.effects) {
            match effect {
                scope::Effect::Say(said) => {
                    if said.statement.binds() {
                        self.pace.moved();
                    }
                    self.said.push(said);
                }
                scope::Effect::Tell(to, said) => self.told.entry(to).or_default().push(said),
                // There is no log.
                scope::Effect::Keep(_) => {}
                scope::Effect::Reject(from, reason) => out.notify(GroupEvent::Rejected(from, reason)),
            }
        }
    }

    fn send(&self, out: &mut Outbox<Self>, to: Destination, speech: Speech) {
        out.send(to, GroupMessage { epoch: self.options.epoch, speech });
    }

    /// Group 4.
    fn speak(&mut self, out: &mut Outbox<Self>) {
        for statements in packed(core::mem::take(&mut self.said)) {
            out.step("Group 4");
            self.send(out, Destination::Replicas, Speech::Said(statements));
        }
        for (to, said) in core::mem::take(&mut self.told) {
            for statements in packed(said) {
                self.send(out, Destination::Replica(to), Speech::Said(statements));
            }
        }
    }

    fn hear(&mut self, out: &mut Outbox<Self>, from: ReplicaId, message: GroupMessage) {
        if message.epoch != self.options.epoch {
            return out.notify(GroupEvent::Rejected(from, Rejection::WrongInstance));
        }
        match message.speech {
            Speech::Said(statements) => {
                for said in statements.0 {
                    self.catching_up.note(from, &said, self.round());
                    let outcomes = self.act(out, |stack, scope| stack.hear(scope, from, said));
                    self.learn(out, outcomes);
                }
            }
            Speech::Summary(summary) => {
                let Some(room) = self.catching_up.room(from) else {
                    return out.notify(GroupEvent::Rejected(from, Rejection::Overload));
                };
                let said = self.act(out, |stack, scope| stack.on_summary(scope, from, &summary, room));
                self.catching_up.answered(from, said);
                self.carry_out(out);
            }
            Speech::Here(here) => {
                self.history.hear(from, here);
                let outcomes = self.forget(out);
                self.learn(out, outcomes);
                let is_left_behind = self.history.is_left_behind(&self.options.replicas, self.round());
                if is_left_behind && !core::mem::replace(&mut self.is_left_behind, true) {
                    out.notify(GroupEvent::LeftBehind);
                }
            }
        }
    }

    /// The round of the atomic broadcast that this process is in.
    fn round(&self) -> u64 {
        self.stack.standing(Path::atomic_broadcast()).map_or(0, |standing| standing.round)
    }

    /// Group 6.
    fn on_channel_timeout(&mut self, now: Instant, out: &mut Outbox<Self>) {
        out.set_timer(GroupTimer::Channel, now + self.options.interval);
        out.step("Group 6");
        let here = Here { round: self.stack.needs_from(Path::atomic_broadcast()), kept: self.history.kept() };
        self.catching_up.interval();
        let is_due = self.pace.interval((self.round(), self.stack.len()));
        if is_due || core::mem::replace(&mut self.told_here, here) != here {
            self.send(out, Destination::Replicas, Speech::Here(here));
        }
        if is_due {
            self.say_what_is_lacking(out);
        }
    }

    /// Group 6.
    fn say_what_is_lacking(&mut self, out: &mut Outbox<Self>) {
        let summaries = self.act(out, |stack, scope| stack.tick(scope, true));
        self.carry_out(out);
        for (to, summary) in summaries {
            self.send(out, Destination::Replica(to), Speech::Summary(Box::new(summary)));
        }
    }

    /// Group 6.
    fn catch_up(&mut self, out: &mut Outbox<Self>) {
        let here = self.round();
        if self.catching_up.asks(&self.options.replicas, here) {
            self.say_what_is_lacking(out);
        }
    }
}

impl Machine for Group {
    type Incoming = (ReplicaId, GroupMessage);
    type Outgoing = GroupMessage;
    type Timer = GroupTimer;
    type Command = Command;
    type Notice = GroupEvent;
    type Record = Infallible;

    fn step(&mut self, now: Instant, input: Input<Self>, out: &mut Outbox<Self>) {
        match input {
            Input::Start => out.set_timer(GroupTimer::Channel, now + self.options.interval),
            Input::Message((from, message)) => self.hear(out, from, message),
            Input::Timer(GroupTimer::Channel) => self.on_channel_timeout(now, out),
            Input::Command(Command::Call(call)) => self.call(out, call),
            Input::Command(Command::Taken(taken)) => {
                self.stack.taken(taken.path());
                self.begin(out);
            }
            Input::Command(Command::Hold(is_held)) => {
                let hold = if is_held { Hold::Deliveries } else { Hold::Nothing };
                let outcomes = self.act(out, |stack, scope| stack.hold(scope, Path::atomic_broadcast(), hold));
                self.learn(out, outcomes);
            }
            Input::PassEnd => {
                self.begin(out);
                self.bundle(out);
                self.catch_up(out);
                self.speak(out);
            }
        }
    }
}
