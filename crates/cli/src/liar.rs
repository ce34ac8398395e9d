//! A replica that can be told to lie, for demonstrations, end-to-end tests, and measurements of what an attack costs.
//!
//! The liar wraps an honest replica and changes what comes to it, what leaves it, or when it acts. The state inside
//! stays right, so that the replica is as good as any other from the moment it is told to be honest again. It counts
//! its lies: an attack that did nothing shows nothing.

mod falsified;
mod lie;

pub(crate) use lie::Lie;

use self::falsified::falsified;
use bezant_core::auth::Keyring;
use bezant_core::checkpoint::{Checkpoint, Snapshot};
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::notice::{Notice, Report};
use bezant_core::registry::{Incoming, Message, Record, ReplicaTimer};
use bezant_core::rejection::{Account, Rejection};
use bezant_core::replica::Replica;
use bezant_core::service::Service;
use bezant_core::time::{Duration, Instant};
use bezant_node::replica::Hosted;
use bezant_sim::byzantine::{self, Adversary, Mind, Voice};
use bezant_sim::rng::Rng;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{thread, time};

/// Messages that are kept back at once: what is more is never said.
const KEPT_MAX: usize = 20_000;
/// Ticks after which a mind is drawn anew that has found nothing to lie about.
const PATIENCE: u64 = 25;
/// Ticks after which any mind is drawn anew: what it remembers grows.
const TURN: u64 = 3_000;
/// What is a tick to others is nothing to a flood: it speaks as often as this, so many times each, which is 24,000
/// messages a second to each replica if its processor gives as much.
const FLOOD_INTERVAL: Duration = Duration(1_000);
const FLOOD_TIMES: u32 = 4;

/// What a replica that misbehaves is told, and how often it did.
#[derive(Debug, Default)]
pub(crate) struct Lying {
    how: Mutex<Option<Lie>>,
    lies: AtomicU64,
}

impl Lying {
    /// To lie like this from now on, or not.
    pub(crate) fn tell(&self, how: Option<Lie>) {
        *self.how.lock().unwrap_or_else(PoisonError::into_inner) = how;
    }

    fn how(&self) -> Option<Lie> {
        *self.how.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lied(&self, times: u64) {
        self.lies.fetch_add(times, Ordering::Relaxed);
    }

    /// How many lies it has told so far.
    pub(crate) fn lies(&self) -> u64 {
        self.lies.load(Ordering::Relaxed)
    }
}

/// The timers of the honest replica, and the liar's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    Honest(ReplicaTimer),
    /// Its mind speaks without being spoken to.
    Tick,
    /// It says what it kept back.
    Late,
}

/// A behaviour of the simulator at work.
#[derive(Debug)]
struct Playing {
    adversary: Adversary,
    mind: Mind,
    ticks: u64,
}

impl Playing {
    fn new(adversary: Adversary, rng: &mut Rng) -> Option<Self> {
        Some(Self { adversary, mind: Mind::new(&[adversary], rng)?.steadfast(), ticks: 0 })
    }

    fn lies(&self) -> u64 {
        self.mind.acts.values().sum()
    }

    /// How often it acts by itself, in a cluster that says where it is so often, and how many times each.
    fn pace(&self, status_interval: Duration) -> (Duration, u32) {
        match self.adversary {
            Adversary::ReplicaFlood => (FLOOD_INTERVAL, FLOOD_TIMES),
            _ => (status_interval, 1),
        }
    }

    fn is_over(&self) -> bool {
        self.ticks >= TURN || (self.ticks >= PATIENCE && self.lies() == 0)
    }
}

/// What a mind says, and after how many microseconds each.
#[derive(Debug, Default)]
struct Said(Vec<(u64, Principal, Message)>);

impl Voice for Said {
    fn say(&mut self, delay: u64, to: Principal, message: &Message) {
        self.0.push((delay, to, message.clone()));
    }
}

/// When a mind acts.
enum Moment<'a> {
    /// Its honest replica would say this.
    Sends(Principal, &'a Message),
    /// This came, and it takes it or not.
    Receives(&'a Incoming, &'a mut bool),
    Ticks,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Liar<S: Service> {
    honest: Replica<S>,
    me: BTreeSet<ReplicaId>,
    lying: Arc<Lying>,
    playing: Option<Playing>,
    rng: Rng,
    /// Whether something has come in this pass.
    heard: bool,
    said: Said,
    /// What is said later, in the order in which it will be.
    kept: BTreeMap<(Instant, u64), (Principal, Message)>,
    /// How much was kept so far.
    number: u64,
    outbox: Outbox<Replica<S>>,
}

impl<S: Service> Liar<S> {
    /// A replica that lies as it is told.
    pub(crate) fn new(honest: Replica<S>, lying: Arc<Lying>) -> Self {
        let me = BTreeSet::from_iter(match honest.keyring().me() {
            Principal::Replica(me) => Some(me),
            Principal::Client(_) | Principal::Key(_) => None,
        });
        Self {
            honest,
            me,
            lying,
            playing: None,
            rng: Rng::stream(0, "honest"),
            heard: false,
            said: Said::default(),
            kept: BTreeMap::new(),
            number: 0,
            outbox: Outbox::new(),
        }
    }

    /// Changes its mind if it has been told to.
    fn obey(&mut self, now: Instant, lie: Option<Lie>) {
        let told = match lie {
            Some(Lie::Simulated(adversary)) => Some(adversary),
            Some(Lie::Intruder) | None => None,
        };
        let plays = self.playing.as_ref().map(|playing| playing.adversary);
        if told != plays || self.playing.as_ref().is_some_and(Playing::is_over) {
            let mut rng = Rng::stream(now.0, "lie");
            self.playing = told.and_then(|adversary| Playing::new(adversary, &mut rng));
            self.rng = rng;
        }
    }

    /// Lets the mind act, if there is one, and says what it wants to be said.
    fn act(&mut self, now: Instant, moment: Moment<'_>, out: &mut Outbox<Self>) {
        let Some(playing) = &mut self.playing else { return };
        let (honest, before) = (&self.honest, playing.lies());
        let (keyring, cluster) = (honest.keyring(), honest.cluster());
        let mut liar = byzantine::Liar::new(keyring, cluster, &mut self.rng, &self.me, &mut self.said);
        match moment {
            Moment::Sends(to, message) => playing.mind.send(&mut liar, to, message),
            Moment::Receives(incoming, takes) => *takes = playing.mind.receive(&mut liar, incoming),
            Moment::Ticks => playing.mind.tick(&mut liar),
        }
        self.lying.lied(playing.lies() - before);
        for (delay, to, message) in std::mem::take(&mut self.said.0) {
            if delay == 0 {
                self.say(to, message, out);
            } else if self.kept.len() < KEPT_MAX {
                self.number += 1;
                self.kept.insert((now + Duration(delay), self.number), (to, message));
                self.set_late(out);
            }
        }
    }

    /// Nobody talks to himself.
    fn say(&self, to: Principal, message: Message, out: &mut Outbox<Self>) {
        let to = match to {
            Principal::Replica(to) if self.me.contains(&to) => return,
            Principal::Replica(to) => Destination::Replica(to),
            Principal::Client(to) => Destination::Client(to),
            Principal::Key(to) => Destination::Key(to),
        };
        out.push(Effect::Send(to, message));
    }

    fn set_late(&self, out: &mut Outbox<Self>) {
        if let Some((&(at, _), _)) = self.kept.first_key_value() {
            out.push(Effect::SetTimer(Timer::Late, at));
        }
    }

    fn say_late(&mut self, now: Instant, out: &mut Outbox<Self>) {
        while let Some(entry) = self.kept.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, message) = entry.remove();
            self.say(to, message, out);
        }
        self.set_late(out);
    }

    fn tick(&mut self, now: Instant, out: &mut Outbox<Self>) {
        let usual = self.honest.cluster().limits.status_interval;
        let (interval, times) = self.playing.as_mut().map_or((usual, 1), |playing| {
            playing.ticks += 1;
            playing.pace(usual)
        });
        for _ in 0..times {
            self.act(now, Moment::Ticks, out);
        }
        out.push(Effect::SetTimer(Timer::Tick, now + interval));
    }

    /// A pass is over. One that stalls looks later at what comes next.
    fn stall(&mut self) {
        let heard = std::mem::take(&mut self.heard);
        let Some(playing) = self.playing.as_mut().filter(|_| heard) else { return };
        if let Some(stall) = playing.mind.stall(self.honest.cluster()) {
            self.lying.lied(1);
            thread::sleep(time::Duration::from_micros(stall));
        }
    }

    /// What the honest replica says leaves as it is, or as the liar likes it.
    fn leave(&mut self, now: Instant, lie: Option<Lie>, (to, message): (Destination, Message), out: &mut Outbox<Self>) {
        if lie == Some(Lie::Intruder) {
            let said = falsified(&message, self.honest.keyring());
            self.lying.lied(u64::from(said.is_some()));
            return out.push(Effect::Send(to, said.unwrap_or(message)));
        }
        if self.playing.is_none() {
            return out.push(Effect::Send(to, message));
        }
        let receivers: Vec<Principal> = match to {
            Destination::Replica(to) => vec![Principal::Replica(to)],
            Destination::Client(to) => vec![Principal::Client(to)],
            Destination::Key(to) => vec![Principal::Key(to)],
            Destination::Replicas => {
                let all = self.honest.cluster().replicas.iter();
                all.filter(|to| !self.me.contains(to)).map(Principal::Replica).collect()
            }
        };
        for to in receivers {
            self.act(now, Moment::Sends(to, &message), out);
        }
    }
}

impl<S: Service> Machine for Liar<S> {
    type Incoming = Incoming;
    type Outgoing = Message;
    type Timer = Timer;
    type Command = <Replica<S> as Machine>::Command;
    type Notice = Notice;
    type Record = Record;

    fn step(&mut self, now: Instant, input: Input<Self>, out: &mut Outbox<Self>) {
        let lie = self.lying.how();
        self.obey(now, lie);
        let input = match input {
            Input::Start => {
                self.tick(now, out);
                Input::Start
            }
            Input::Message(message) => {
                self.heard = true;
                let mut takes = true;
                self.act(now, Moment::Receives(&message, &mut takes), out);
                if !takes {
                    return;
                }
                Input::Message(message)
            }
            Input::Timer(Timer::Honest(timer)) => Input::Timer(timer),
            Input::Timer(Timer::Tick) => return self.tick(now, out),
            Input::Timer(Timer::Late) => return self.say_late(now, out),
            Input::Command(command) => Input::Command(command),
            Input::PassEnd => {
                self.stall();
                Input::PassEnd
            }
        };
        self.honest.step(now, input, &mut self.outbox);
        let mut effects = std::mem::take(&mut self.outbox);
        for effect in effects.drain() {
            match effect {
                Effect::Send(to, message) => self.leave(now, lie, (to, message), out),
                Effect::Persist(record) => out.push(Effect::Persist(record)),
                Effect::Append(record) => out.push(Effect::Append(record)),
                Effect::SetTimer(timer, at) => out.push(Effect::SetTimer(Timer::Honest(timer), at)),
                Effect::CancelTimer(timer) => out.push(Effect::CancelTimer(Timer::Honest(timer))),
                Effect::Notify(notice) => out.push(Effect::Notify(notice)),
            }
        }
        self.outbox = effects;
    }
}

impl<S: Service + 'static> Hosted for Liar<S> {
    fn open(&mut self, frame: Bytes, from: Principal) -> Option<Incoming> {
        self.honest.open(frame, from)
    }

    fn reject(&mut self, from: Principal, reason: Rejection) {
        self.honest.reject(from, reason);
    }

    fn recent_rejections(&mut self) -> Vec<(Account, Rejection)> {
        self.honest.recent_rejections()
    }

    fn keyring(&self) -> &Keyring {
        self.honest.keyring()
    }

    fn report(&self) -> Report {
        self.honest.report()
    }

    fn certain_checkpoint(&self, known: Option<&Checkpoint>) -> Option<Snapshot> {
        self.honest.certain_checkpoint(known)
    }

    fn newest_checkpoint(&self) -> Snapshot {
        self.honest.newest_checkpoint()
    }
}
