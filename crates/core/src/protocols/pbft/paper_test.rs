//! The paper's sentences as tests: four replicas, one client, a network that does what the test says.

use crate::auth::{Ed25519, Keyring, PublicKeys, SecretKey, Suite};
use crate::client::{Client, Completed, Completion, Submit};
use crate::cluster::{ClientAuth, ClientId, Cluster, IdentityId, Limits, ReplicaId};
use crate::compositions::Protocol;
use crate::machine::{Destination, Effect, Input, Instant, Machine, Outbox, Principal};
use crate::message::Message;
use crate::replica::{Notice, Record, Replica, ReplicaConfig, ReplicaTimer};
use crate::services::Counter;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec::Vec;
use bytes::Bytes;

const CLIENT: ClientId = ClientId { identity: IdentityId(1), session: 0 };

/// A network that delivers in order and at once, but for what `drops` says.
struct Net {
    now: Instant,
    replicas: Vec<Replica<Counter>>,
    timers: Vec<BTreeMap<ReplicaTimer, Instant>>,
    client: Client,
    client_timers: BTreeMap<crate::client::ClientTimer, Instant>,
    wires: VecDeque<(Principal, Principal, Bytes)>,
    dropped: fn(Principal, Principal) -> bool,
    notices: Vec<Vec<Notice>>,
    records: Vec<Vec<crate::replica::LogRecord>>,
    completed: Vec<Completed>,
    frames: u64,
}

fn secret(n: u8) -> SecretKey {
    SecretKey([n + 1; 32])
}

fn keys(n: usize) -> PublicKeys {
    PublicKeys {
        replicas: (0..n as u8).map(|id| Ed25519.public(&secret(id))).collect(),
        identities: [(IdentityId(1), Ed25519.public(&secret(200)))].into(),
    }
}

fn keyring(cluster: &Cluster, me: Principal) -> Keyring {
    let secret = match me {
        Principal::Replica(id) => secret(id.0),
        Principal::Client(_) => secret(200),
    };
    Keyring::new(&Ed25519, cluster, me, secret, keys(cluster.n)).unwrap()
}

impl Net {
    fn new(n: usize, limits: Limits) -> Self {
        let cluster = Cluster::new([7; 16], n, (n - 1) / 3, ClientAuth::Hybrid, limits).unwrap();
        let replicas = cluster
            .replicas()
            .map(|id| {
                let keyring = keyring(&cluster, Principal::Replica(id));
                let config =
                    ReplicaConfig { cluster: cluster.clone(), keyring, protocol: Protocol::Pbft, lost_log: false };
                Replica::new(config, Counter::default()).unwrap()
            })
            .collect();
        let client_keys = keyring(&cluster, Principal::Client(CLIENT));
        let mut net = Self {
            now: Instant(1_000_000),
            replicas,
            timers: alloc::vec![BTreeMap::new(); n],
            client: Client::new(Rc::new(cluster), Rc::new(client_keys), CLIENT),
            client_timers: BTreeMap::new(),
            wires: VecDeque::new(),
            dropped: |_, _| false,
            notices: alloc::vec![Vec::new(); n],
            records: alloc::vec![Vec::new(); n],
            completed: Vec::new(),
            frames: 0,
        };
        for id in 0..n {
            net.step(id, Input::Start);
        }
        net
    }

    fn step(&mut self, id: usize, input: Input<Replica<Counter>>) {
        let mut out = Outbox::new();
        self.replicas[id].step(self.now, input, &mut out);
        let me = Principal::Replica(ReplicaId(id as u8));
        for effect in out.drain().collect::<Vec<_>>() {
            match effect {
                Effect::Send(to, message) => self.send(me, to, &message),
                Effect::SetTimer(timer, at) => drop(self.timers[id].insert(timer, at)),
                Effect::CancelTimer(timer) => drop(self.timers[id].remove(&timer)),
                Effect::Notify(notice) => self.notices[id].push(notice),
                Effect::Persist(Record::Log(record)) => self.records[id].push(record),
                Effect::Persist(Record::Snapshot(_)) => {}
            }
        }
    }

    fn send(&mut self, from: Principal, to: Destination, message: &Message) {
        let n = self.replicas.len() as u8;
        let receivers: Vec<Principal> = match to {
            Destination::Replica(id) => alloc::vec![Principal::Replica(id)],
            Destination::Client(id) => alloc::vec![Principal::Client(id)],
            Destination::Replicas => {
                (0..n).map(|id| Principal::Replica(ReplicaId(id))).filter(|p| *p != from).collect()
            }
        };
        for to in receivers {
            let keyring = match from {
                Principal::Replica(id) => self.replicas[id.0 as usize].keyring().clone(),
                Principal::Client(_) => keyring(self.replicas[0].cluster(), from),
            };
            if !(self.dropped)(from, to) {
                self.wires.push_back((from, to, message.sealed(&keyring, to).into()));
            }
        }
    }

    fn client(&mut self, input: Input<Client>) {
        let mut out = Outbox::new();
        self.client.step(self.now, input, &mut out);
        for effect in out.drain().collect::<Vec<_>>() {
            match effect {
                Effect::Send(to, message) => self.send(Principal::Client(CLIENT), to, &message),
                Effect::SetTimer(timer, at) => drop(self.client_timers.insert(timer, at)),
                Effect::CancelTimer(timer) => drop(self.client_timers.remove(&timer)),
                Effect::Notify(completed) => self.completed.push(completed),
                Effect::Persist(never) => match never {},
            }
        }
    }

    fn settle(&mut self) {
        while let Some((from, to, frame)) = self.wires.pop_front() {
            self.frames += 1;
            match to {
                Principal::Replica(id) => {
                    let id = id.0 as usize;
                    if let Some(incoming) = self.replicas[id].open(frame, from) {
                        self.step(id, Input::Message(incoming));
                        self.step(id, Input::PassEnd);
                    }
                }
                Principal::Client(_) => {
                    let cluster = self.replicas[0].cluster().clone();
                    let keys = keyring(&cluster, to);
                    let incoming = Message::open(frame, from, &cluster, &keys).unwrap();
                    self.client(Input::Message(incoming));
                }
            }
        }
    }

    /// Lets time pass: fires what comes due, in order of time.
    fn pass(&mut self, span: u64) {
        let end = Instant(self.now.0 + span);
        loop {
            let replica = (0..self.replicas.len())
                .flat_map(|id| self.timers[id].iter().map(move |(timer, at)| (*at, id, *timer)))
                .min();
            let client = self.client_timers.iter().map(|(timer, at)| (*at, *timer)).min();
            match (replica, client) {
                (replica, Some((at, timer))) if at <= end && replica.is_none_or(|(first, ..)| at <= first) => {
                    self.client_timers.remove(&timer);
                    self.now = self.now.max(at);
                    self.client(Input::Timer(timer));
                }
                (Some((at, id, timer)), _) if at <= end => {
                    self.timers[id].remove(&timer);
                    self.now = self.now.max(at);
                    self.step(id, Input::Timer(timer));
                    self.step(id, Input::PassEnd);
                }
                _ => break,
            }
            self.settle();
        }
        self.now = end;
    }

    fn add(&mut self, amount: u64) -> Option<Completion> {
        self.call(Bytes::copy_from_slice(&Counter::add(amount)), false)
    }

    fn read(&mut self) -> Option<Completion> {
        self.call(Bytes::from_static(Counter::READ), true)
    }

    fn call(&mut self, operation: Bytes, read_only: bool) -> Option<Completion> {
        self.now.0 += 10;
        let submit = Submit { operation, read_only, deadline: None };
        self.client(Input::Command(submit));
        self.settle();
        self.completed.pop().map(|completed| completed.result)
    }
}

fn done(value: u64) -> Option<Completion> {
    Some(Completion::Done(Bytes::copy_from_slice(&value.to_le_bytes())))
}

#[test]
fn the_normal_case_needs_no_timer() {
    let mut net = Net::new(4, Limits::default());
    assert_eq!(net.add(2), done(2));
    assert_eq!(net.add(3), done(5));
    assert_eq!(net.read(), done(5));
    for notices in &net.notices {
        let executed = notices.iter().filter(|notice| matches!(notice, Notice::Executed { .. })).count();
        assert_eq!(executed, 2, "{notices:?}");
    }
}

#[test]
fn a_silent_primary_costs_one_view_and_no_request() {
    let mut net = Net::new(4, Limits::default());
    assert_eq!(net.add(1), done(1));
    net.dropped = |from, to| [from, to].contains(&Principal::Replica(ReplicaId(0)));
    assert_eq!(net.add(1), None);
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(2));
    assert_eq!(net.replicas[1].report().view.0, 1);
    assert_eq!(net.add(1), done(3));
    net.dropped = |_, _| false;
    net.pass(2_000_000);
    assert_eq!(net.replicas[0].report().executed, net.replicas[1].report().executed);
    assert_eq!(net.replicas[0].report().view.0, 1);
}

#[test]
fn a_replica_that_missed_everything_fetches_the_state() {
    let mut net = Net::new(4, Limits { checkpoint_interval: 4, ..Limits::default() });
    net.dropped = |from, to| [from, to].contains(&Principal::Replica(ReplicaId(3)));
    for _ in 0..21 {
        net.add(1).unwrap();
    }
    assert_eq!(net.replicas[0].report().stable.0, 20);
    net.dropped = |_, _| false;
    net.pass(5_000_000);
    assert_eq!(net.replicas[3].report().executed.0, 21);
    assert_eq!(net.replicas[3].report().history, net.replicas[0].report().history);
    assert!(net.notices[3].iter().any(|notice| matches!(notice, Notice::Transfer { done: true, .. })));
}

#[test]
fn a_restarted_cluster_has_every_acknowledged_request() {
    let mut net = Net::new(4, Limits::default());
    for _ in 0..5 {
        net.add(1).unwrap();
    }
    let cluster = net.replicas[0].cluster().clone();
    for id in 0..4usize {
        let keyring = keyring(&cluster, Principal::Replica(ReplicaId(id as u8)));
        let config = ReplicaConfig { cluster: cluster.clone(), keyring, protocol: Protocol::Pbft, lost_log: false };
        let log = net.records[id].clone();
        net.replicas[id] = Replica::recover(config, Counter::default(), None, log).unwrap();
        net.timers[id].clear();
    }
    for id in 0..4 {
        net.step(id, Input::Start);
    }
    net.settle();
    net.pass(3_000_000);
    assert_eq!(net.add(1), done(6));
}
