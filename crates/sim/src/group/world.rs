//! The run: frames are delivered one by one, in an order that the seed decides, until every correct process has come
//! to everything that it asked for.

use super::checks::{Answers, check};
use super::scenario::{GroupOptions, GroupScenario, Turn};
use crate::byzantine::{Acts, Adversary, Liar, Mind, Voice, add_acts};
use crate::checks::Violation;
use crate::panics;
use crate::paper_coin::PaperCoin;
use crate::rng::Rng;
use crate::world::{SUITE, coin_keys, public_keys, secret};
use bezant_core::auth::Keyring;
use bezant_core::cluster::{ClientAuth, Cluster, Coin, Limits};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{InstanceId, Principal, ReplicaId};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::protocols::ritas::binary_consensus::STEPS;
use bezant_core::protocols::ritas::group::{Call, Command, Group, GroupMessage, GroupTimer, HISTORY_BYTES_MAX, Speech};
use bezant_core::protocols::ritas::message::{Said, Statement};
use bezant_core::protocols::ritas::order::{Agreement, RitasMessage};
use bezant_core::protocols::ritas::path::{Layer, Path};
use bezant_core::protocols::ritas::variant::Variant;
use bezant_core::registry::{Incoming, Message};
use bezant_core::replicas::Replicas;
use bezant_core::schedule::Protocol;
use bezant_core::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Deliveries after which a run that has not ended never will.
const DELIVERIES_MAX: u64 = 3_000_000;
/// Deliveries between two intervals of the channel, for each process; or fewer, when nothing is on its way.
const INTERVAL: u64 = 60;
/// Intervals after the end in which everybody may still contradict what was found; and the most of them in which what
/// came of a liar reaches all whom it has to reach.
const AFTER: u64 = 6;
const AFTER_MAX: u64 = 400;
/// Deliveries for each process in which correct ones have said all that they have to, once nobody asks for anything.
const LAST_WORDS: u64 = 20_000;
/// The run of the group.
const EPOCH: u64 = 1;
/// The instance in which liars believe that they are.
const INSTANCE: InstanceId = InstanceId(1);

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct GroupVerdict {
    /// What was wrong.
    pub violations: Vec<Violation>,
    /// Frames delivered.
    pub deliveries: u64,
    /// Broadcasts and decisions that correct processes came to.
    pub answers: u64,
    /// What the liars did.
    pub acts: Acts,
    /// In how many rounds correct processes came to how many decisions of binary consensus, by coin and network.
    pub rounds: Rounds,
}

/// See [`GroupVerdict::rounds`].
pub type Rounds = BTreeMap<(&'static str, &'static str), BTreeMap<u64, u64>>;

/// One process; of twins there are two with the same identity.
struct Process {
    id: ReplicaId,
    machine: Group,
    /// Of a liar: its mind, and what it lies with.
    mind: Option<Mind>,
    keyring: Keyring,
    rng: Rng,
    /// Who hears it, and whom it hears: a bit for each process.
    hears: u64,
    is_dirty: bool,
    is_down: bool,
}

struct Frame {
    from: usize,
    to: usize,
    message: GroupMessage,
}

struct World {
    scenario: GroupScenario,
    cluster: Cluster,
    processes: Vec<Process>,
    answers: Answers,
    /// The rounds of each binary consensus that each process has begun; and whether it has decided.
    begun: BTreeMap<(ReplicaId, Path), (u64, bool)>,
    rounds: BTreeMap<u64, u64>,
    frames: Vec<Frame>,
    /// The first that was not delivered, where they are delivered in order.
    first: usize,
    rng: Rng,
    deliveries: u64,
    now: Instant,
}

/// What a liar says becomes frames of its group.
struct Mouth<'a> {
    said: &'a mut Vec<(ReplicaId, GroupMessage)>,
}

impl Voice for Mouth<'_> {
    fn say(&mut self, _delay: u64, to: Principal, message: &Message) {
        if let (Principal::Replica(to), Message::Agreement(Agreement { instance, message })) = (to, message)
            && let RitasMessage::Said(statements) = message
        {
            let epoch = if *instance == INSTANCE { EPOCH } else { instance.0 };
            self.said.push((to, GroupMessage { epoch, speech: Speech::Said(statements.clone()) }));
        }
    }
}

/// When a liar's mind is asked.
enum Moment<'a> {
    /// Its machine wants to say this.
    Send(Principal, &'a Message),
    /// Somebody says this.
    Receive(&'a Incoming),
    /// Time went by.
    Tick,
}

/// Runs one.
pub fn run(options: &GroupOptions) -> GroupVerdict {
    let verdict = || World::new(GroupScenario::draw(options)).run();
    panics::judge(verdict, |verdict| GroupVerdict { violations: verdict.violations, ..GroupVerdict::default() })
}

/// What the second of two twins calls, when the first calls this.
fn twisted(call: Call) -> Call {
    let twist = |bytes: Bytes| Bytes::from([&bytes[..], b"'"].concat());
    match call {
        Call::Bit(number, bit) => Call::Bit(number, !bit),
        Call::Reliable(number, bytes) => Call::Reliable(number, twist(bytes)),
        Call::Echo(number, bytes) => Call::Echo(number, twist(bytes)),
        Call::Value(number, bytes) => Call::Value(number, twist(bytes)),
        Call::Vector(number, bytes) => Call::Vector(number, twist(bytes)),
        Call::Order(bytes) => Call::Order(twist(bytes)),
    }
}

impl World {
    fn new(scenario: GroupScenario) -> Self {
        let GroupOptions { n, f, seed, .. } = scenario.options;
        // Of a run's own: common coins are tossed in the cluster's name.
        let id = u128::from(seed).to_le_bytes();
        let cluster = Cluster::new(id, n, f, ClientAuth::Hybrid, Limits::default()).expect("there is such a group");
        let cluster = cluster.with_protocol(Protocol::Ritas);
        let mut rng = Rng::stream(seed, "world of a group");
        let mut processes: Vec<Process> = Vec::new();
        for id in (0..n as u8).map(ReplicaId) {
            let is_liar = scenario.liars.contains(&id);
            let twins = is_liar && scenario.adversary == Some(Adversary::Twins);
            let halves = if twins { rng.next() } else { u64::MAX };
            processes.push(Process::new(&scenario, &cluster, id, halves));
            if twins {
                // Some hear both.
                processes.push(Process::new(&scenario, &cluster, id, !halves | rng.next() & rng.next()));
            }
        }
        let answers = Answers::new(n);
        let (begun, rounds, frames, now) = (BTreeMap::new(), BTreeMap::new(), Vec::new(), Instant(0));
        Self { scenario, cluster, processes, answers, begun, rounds, frames, first: 0, rng, deliveries: 0, now }
    }

    fn run(mut self) -> GroupVerdict {
        (0..self.processes.len()).for_each(|at| self.step(at, Input::Start));
        let mut calls = std::mem::take(&mut self.scenario.calls).into_iter().peekable();
        let expected: Vec<_> = calls.clone().collect();
        let correct = self.scenario.correct();
        let (mut intervals, mut after) = (0, 0);
        while (after < AFTER || after < AFTER_MAX && self.answers.differ(&correct)) && self.deliveries < DELIVERIES_MAX
        {
            while let Some((_, id, call)) = calls.next_if(|(at, ..)| *at <= self.deliveries || self.frames.is_empty()) {
                self.call(id, &call);
            }
            self.crash();
            let interval = INTERVAL * self.processes.len() as u64;
            if self.is_idle() || self.deliveries >= (intervals + 1) * interval {
                intervals = self.deliveries / interval;
                let is_done = calls.peek().is_none() && self.answers.are_complete(&expected, &correct);
                after = if is_done { after + 1 } else { 0 };
                self.interval();
            } else {
                self.deliver();
            }
        }
        let acts = self.processes.iter().filter_map(|process| process.mind.as_ref());
        let mut sum = Acts::new();
        acts.for_each(|mind| add_acts(&mut sum, &mind.acts));
        if self.scenario.adversary == Some(Adversary::Twins) {
            *sum.entry(Adversary::Twins.label()).or_default() += 1;
        }
        let mut violations = check(&self.scenario, &expected, &self.answers, self.deliveries);
        if violations.is_empty() && !self.comes_to_rest(&correct) {
            let what = "the correct processes talk without end".into();
            violations.push(Violation { check: "storm", at: self.deliveries, what });
        }
        let coin = if self.scenario.coin == Coin::Common { "common coin" } else { "local coins" };
        let rounds = Rounds::from([((coin, self.scenario.turn.label()), self.rounds)]);
        let answers = self.answers.count(&correct);
        GroupVerdict { violations, deliveries: self.deliveries, answers, acts: sum, rounds }
    }

    /// Whether what these say to one another comes to an end when the others are gone.
    fn comes_to_rest(&mut self, correct: &[ReplicaId]) -> bool {
        for process in self.processes.iter_mut().filter(|process| !correct.contains(&process.id)) {
            (process.mind, process.is_down) = (None, true);
        }
        let limit = self.deliveries + LAST_WORDS * self.processes.len() as u64;
        while !self.is_idle() && self.deliveries < limit {
            self.deliver();
        }
        self.is_idle()
    }

    fn is_idle(&self) -> bool {
        self.first >= self.frames.len() && self.processes.iter().all(|process| !process.is_dirty)
    }

    fn call(&mut self, id: ReplicaId, call: &Call) {
        let mut call = call.clone();
        for at in (0..self.processes.len()).filter(|at| self.processes[*at].id == id).collect::<Vec<_>>() {
            self.step(at, Input::Command(Command::Call(call.clone())));
            call = twisted(call);
        }
    }

    fn crash(&mut self) {
        for process in &mut self.processes {
            process.is_down |= self.scenario.crashes.get(&process.id).is_some_and(|at| *at <= self.deliveries);
        }
    }

    /// An interval of the channel, at everybody.
    fn interval(&mut self) {
        self.now += Duration::from_millis(100);
        for at in 0..self.processes.len() {
            self.step(at, Input::Timer(GroupTimer::Channel));
            self.lie(at, Moment::Tick);
            self.end_pass(at);
        }
    }

    /// The place of the frame that is next.
    fn next(&mut self) -> usize {
        let length = self.frames.len() as u64;
        match self.scenario.turn {
            Turn::First => self.first,
            Turn::Any => self.rng.below(length) as usize,
            Turn::Starve(starved) => {
                let at = self.rng.below(length) as usize;
                let Frame { from, to, .. } = &self.frames[at];
                let is_starved = starved >> from & 1 == 1 || starved >> to & 1 == 1;
                if is_starved && self.rng.per_mille(950) { self.rng.below(length) as usize } else { at }
            }
            Turn::Behind => {
                let drawn = [self.rng.below(length) as usize, self.rng.below(length) as usize];
                let ahead = |at: &usize| self.answers.of(self.processes[self.frames[*at].to].id).len();
                drawn.into_iter().min_by_key(ahead).expect("there are two")
            }
        }
    }

    fn deliver(&mut self) {
        if self.first >= self.frames.len() {
            let dirty = (0..self.processes.len()).filter(|at| self.processes[*at].is_dirty).collect::<Vec<_>>();
            return dirty.into_iter().for_each(|at| self.end_pass(at));
        }
        let at = self.next();
        let Frame { from, to, message } = if self.scenario.turn == Turn::First {
            self.first += 1;
            let Frame { from, to, message } = &self.frames[self.first - 1];
            Frame { from: *from, to: *to, message: message.clone() }
        } else {
            self.frames.swap_remove(at)
        };
        if self.first > 1 << 12 {
            self.frames.drain(..std::mem::take(&mut self.first));
        }
        self.deliveries += 1;
        let sender = self.processes[from].id;
        if !self.hear(to, sender, &message) {
            return;
        }
        self.step(to, Input::Message((sender, message)));
        if self.rng.per_mille(self.scenario.pass) {
            self.end_pass(to);
        }
    }

    /// A liar looks at what comes. Whether its machine hears it.
    fn hear(&mut self, to: usize, sender: ReplicaId, message: &GroupMessage) -> bool {
        let (Some(_), Speech::Said(said)) = (&self.processes[to].mind, &message.speech) else { return true };
        let message = RitasMessage::Said(said.clone());
        let message = Message::Agreement(Agreement { instance: INSTANCE, message });
        let author = self.processes.iter().find(|process| process.id == sender).expect("somebody sent it");
        let receiver = &self.processes[to];
        let frame = message.sealed(&author.keyring, Principal::Replica(receiver.id));
        let incoming = Message::open(frame.into(), Principal::Replica(sender), &self.cluster, &receiver.keyring);
        let incoming = incoming.expect("what a process says can be read");
        self.lie(to, Moment::Receive(&incoming))
    }

    fn end_pass(&mut self, at: usize) {
        self.processes[at].is_dirty = false;
        self.step(at, Input::PassEnd);
    }

    fn step(&mut self, at: usize, input: Input<Group>) {
        let process = &mut self.processes[at];
        if process.is_down {
            process.is_dirty = false;
            return;
        }
        let is_end = matches!(input, Input::PassEnd);
        let (mut out, mut taken) = (Outbox::new(), Vec::new());
        process.machine.step(self.now, input, &mut out);
        process.is_dirty |= !is_end;
        let (id, is_liar) = (process.id, process.mind.is_some());
        for effect in out.drain() {
            match effect {
                Effect::Send(Destination::Replica(to), message) => self.send(at, to, message),
                Effect::Send(_, message) => {
                    for to in self.cluster.replicas.iter().filter(|to| *to != id) {
                        self.send(at, to, message.clone());
                    }
                }
                Effect::Notify(event) => {
                    taken.extend(event.taken());
                    if !is_liar {
                        self.answers.add(id, event);
                    }
                }
                _ => {}
            }
        }
        for taken in taken {
            self.step(at, Input::Command(Command::Taken(taken)));
        }
    }

    /// What an honest process sends is sent; a liar's mind decides about statements.
    fn send(&mut self, from: usize, to: ReplicaId, message: GroupMessage) {
        match message.speech {
            Speech::Said(said) if self.processes[from].mind.is_some() => {
                let message = RitasMessage::Said(said);
                let message = Message::Agreement(Agreement { instance: INSTANCE, message });
                self.lie(from, Moment::Send(Principal::Replica(to), &message));
            }
            _ => {
                self.count_rounds(from, &message);
                self.post(from, to, &message);
            }
        }
    }

    /// How many rounds of a binary consensus a process has begun when it decides.
    fn count_rounds(&mut self, from: usize, message: &GroupMessage) {
        let (id, Speech::Said(said)) = (self.processes[from].id, &message.speech) else { return };
        for Said { path, statement } in &said.0 {
            let Some(at) = path.ways().find(|way| way.last().layer() == Layer::Binary) else { continue };
            let known = self.begun.entry((id, at)).or_default();
            let is_own = path.last().layer() == Layer::By && path.last().number() == u64::from(id.0);
            match (path.number(Layer::Step), path.number(Layer::Toss), statement) {
                (Some(step), ..) if is_own => known.0 = known.0.max(step / STEPS + 1),
                (_, Some(round), _) => known.0 = known.0.max(round + 1),
                (None, None, Statement::Decide(_)) if !std::mem::replace(&mut known.1, true) => {
                    *self.rounds.entry(known.0).or_default() += 1;
                }
                _ => {}
            }
        }
    }

    /// A liar's mind does what it likes. Whether its machine hears what comes.
    fn lie(&mut self, at: usize, moment: Moment<'_>) -> bool {
        let process = &mut self.processes[at];
        let Some(mind) = &mut process.mind else { return true };
        let mut said = Vec::new();
        let mut mouth = Mouth { said: &mut said };
        let mut liar = Liar::new(&process.keyring, &self.cluster, &mut process.rng, &self.scenario.liars, &mut mouth);
        let hears = match moment {
            Moment::Tick => {
                mind.tick(&mut liar);
                true
            }
            Moment::Receive(incoming) => mind.receive(&mut liar, incoming),
            Moment::Send(to, message) => {
                mind.send(&mut liar, to, message);
                true
            }
        };
        for (to, message) in said {
            self.post(at, to, &message);
        }
        hears
    }

    fn post(&mut self, from: usize, to: ReplicaId, message: &GroupMessage) {
        let sender = self.processes[from].id;
        for at in 0..self.processes.len() {
            let receiver = &self.processes[at];
            let they_hear = self.processes[from].hears >> to.0 & 1 == 1 && receiver.hears >> sender.0 & 1 == 1;
            if receiver.id != to || receiver.is_down || !they_hear {
                continue;
            }
            let copies = match () {
                () if self.rng.per_mille(self.scenario.loss) => 0,
                () if self.rng.per_mille(self.scenario.duplication) => 2,
                () => 1,
            };
            for _ in 0..copies {
                self.frames.push(Frame { from, to: at, message: message.clone() });
            }
        }
    }
}

impl Process {
    fn new(scenario: &GroupScenario, cluster: &Cluster, id: ReplicaId, hears: u64) -> Self {
        let GroupOptions { n, f, seed, .. } = scenario.options;
        let mut rng = Rng::stream(seed ^ (u64::from(id.0) + 1) << 40, "process");
        let replicas = Replicas::new(n, f).expect("there is such a group");
        let keyring =
            Keyring::new(&SUITE, cluster, Principal::Replica(id), secret(1, u32::from(id.0)), public_keys(n, &[]));
        let keyring =
            keyring.and_then(|keyring| keyring.with_coin(&PaperCoin, secret(4, u32::from(id.0)), coin_keys(n)));
        let keyring = keyring.expect("the keys belong together");
        let machine = Group::new(bezant_core::protocols::ritas::group::GroupOptions {
            replicas,
            me: id,
            epoch: EPOCH,
            secret: Digest::of_parts(Domain::Trace, &[&seed.to_le_bytes(), &[id.0]]),
            variant: Variant { repeats: scenario.repeats, coin: scenario.coin, ..Variant::default() },
            coin: keyring.common_coin(b"group").filter(|_| scenario.coin == Coin::Common),
            bundles: scenario.bundles,
            interval: Duration::from_millis(100),
            history_bytes_max: HISTORY_BYTES_MAX,
        });
        let adversary = scenario.adversary.filter(|_| scenario.liars.contains(&id));
        let mind = adversary.and_then(|adversary| Mind::new(&[adversary], &mut rng));
        Self { id, machine, mind, keyring, rng, hears, is_dirty: false, is_down: false }
    }
}
