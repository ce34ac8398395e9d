//! A liar that joins: a client of the core like any other, and whatever it asks for passes through the mind of one of
//! the simulator's clients. It joins, asks, leaves, and joins again.

use super::lie::lie;
use super::operations::Operations;
use bezant_core::client::{Client, ClientTimer, Completed, Completion, Read, Submit};
use bezant_core::ids::{InstanceId, ReplicaId};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::members::Admission;
use bezant_core::registry::Message;
use bezant_core::time::{Duration, Instant};
use bezant_core::wire::Wire;
use bezant_perf::raw::RawClient;
use bezant_sim::byzantine::{Adversary, ClientMind};
use bezant_sim::rng::Rng;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;

/// What it asks for between joining and leaving.
const REQUESTS: u32 = 8;
/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long it waits after it was not let in.
const PAUSE: Duration = Duration::from_millis(50);

/// Where it stands.
enum Place {
    Outside(Instant),
    Joining,
    /// And what it has asked for.
    Inside(Admission, u32),
    Leaving,
}

/// See the [module](self).
pub(super) struct Joiner {
    raw: RawClient,
    machine: Client,
    timers: BTreeMap<ClientTimer, Instant>,
    place: Place,
    rng: Rng,
    mind: ClientMind,
    operations: Operations,
    /// What it did.
    attacks: u64,
    /// The latest instance in which anything ended.
    instance: InstanceId,
}

impl Joiner {
    /// One that lies like this, if it is a client.
    pub(super) fn new(raw: RawClient, adversary: Adversary, operations: Operations) -> Option<Self> {
        let machine = Client::stranger(Rc::new(raw.cluster().clone()), Rc::new(raw.keyring().clone()));
        let mut rng = Rng::stream(raw.now().0, "joiner");
        let mind = ClientMind::new(adversary, &mut rng, &BTreeSet::new())?;
        let (timers, place, instance) = (BTreeMap::new(), Place::Outside(Instant(0)), InstanceId(1));
        Some(Self { raw, machine, timers, place, rng, mind, operations, attacks: 0, instance })
    }

    /// What it did.
    pub(super) const fn attacks(&self) -> u64 {
        self.attacks
    }

    /// The latest instance that it has seen.
    pub(super) const fn instance(&self) -> InstanceId {
        self.instance
    }

    pub(super) fn go_on(&mut self, is_over: impl Fn() -> bool) -> io::Result<()> {
        self.drive(|machine, now, out| machine.step(now, Input::Start, out));
        while !is_over() {
            for incoming in self.raw.hear()? {
                self.drive(|machine, now, out| machine.step(now, Input::Message(incoming), out));
            }
            let now = self.raw.now();
            let due: Vec<ClientTimer> = self.timers.iter().filter(|(_, at)| **at <= now).map(|(of, _)| *of).collect();
            for timer in due {
                self.timers.remove(&timer);
                self.drive(|machine, now, out| machine.step(now, Input::Timer(timer), out));
            }
            self.act();
        }
        Ok(())
    }

    /// Joins, asks or leaves, if nothing is under way.
    fn act(&mut self) {
        let now = self.raw.now();
        if self.raw.links_up() == 0 || self.machine.asked().is_some() {
            return;
        }
        let deadline = now + PATIENCE;
        match &mut self.place {
            Place::Outside(at) if *at <= now => {
                self.place = Place::Joining;
                let nonce = std::array::from_fn(|_| self.rng.below(256) as u8);
                self.drive(|machine, now, out| machine.join(now, nonce, Bytes::new(), deadline, out));
            }
            Place::Inside(admission, asked) if *asked == REQUESTS => {
                let admission = *admission;
                self.place = Place::Leaving;
                self.drive(|machine, now, out| machine.leave(now, admission, deadline, out));
            }
            Place::Inside(_, asked) => {
                let operation = self.operations.at((*asked).into());
                *asked += 1;
                let (is_bundle, read_only, read) = (false, false, Read::Quorum);
                let submit = Submit { operation, is_bundle, read_only, read, deadline: Some(deadline) };
                self.drive(|machine, now, out| machine.step(now, Input::Command(submit), out));
            }
            Place::Outside(_) | Place::Joining | Place::Leaving => {}
        }
    }

    fn drive(&mut self, act: impl FnOnce(&mut Client, Instant, &mut Outbox<Client>)) {
        let mut out = Outbox::new();
        act(&mut self.machine, self.raw.now(), &mut out);
        for effect in out.drain() {
            match effect {
                Effect::Persist(never) | Effect::Append(never) => match never {},
                Effect::Send(to, message) => self.send(to, &message),
                Effect::SetTimer(timer, at) => drop(self.timers.insert(timer, at)),
                Effect::CancelTimer(timer) => drop(self.timers.remove(&timer)),
                Effect::Notify(completed) => self.completed(&completed),
            }
        }
    }

    fn completed(&mut self, completed: &Completed) {
        self.instance = self.instance.max(completed.instance);
        let now = self.raw.now();
        let admission = match &completed.result {
            Completion::Done(bytes) => Admission::from_bytes(bytes.clone()).ok(),
            _ => None,
        };
        let is_over = matches!(completed.result, Completion::Ended(_));
        match (&self.place, admission) {
            (Place::Joining, Some(admission)) => {
                self.place = Place::Inside(admission, 0);
                self.machine.enter(now, admission, 0);
            }
            (Place::Joining, None) => self.place = Place::Outside(now + PAUSE),
            (Place::Leaving, _) => self.place = Place::Outside(now),
            (Place::Inside(..), _) if is_over => self.place = Place::Outside(now),
            (Place::Inside(..) | Place::Outside(_), _) => {}
        }
    }

    /// What it asks for passes through its mind.
    fn send(&mut self, to: Destination, message: &Message) {
        let receivers: Vec<ReplicaId> = match to {
            Destination::Replica(id) => vec![id],
            Destination::Replicas => self.raw.cluster().replicas.iter().collect(),
            Destination::Client(_) | Destination::Key(_) => Vec::new(),
        };
        let Message::Request(request) = message else {
            return receivers.into_iter().for_each(|to| _ = self.raw.say(to, message));
        };
        self.attacks += lie(&mut self.raw, &mut self.mind, &mut self.rng, &receivers, request);
    }
}
