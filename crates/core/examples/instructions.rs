//! The core under load, on one thread, without sockets, disks or a clock: what `cargo xtask instructions` counts.
//!
//! Replicas and an engine of clients take turns in an order that is drawn from a fixed seed. At its turn each opens all
//! that waits for it, as the loop of a host does in one pass, and seals what it says for each receiver. So every run is
//! the same to the instruction, and batches, replies and checkpoints come about as in a cluster. Each party has its
//! turns in a function of its own while it counts, [`counted_0`] and its like and [`counted_clients`]: a profiler that
//! knows what was spent below each of them needs nothing else.

use bezant_core::auth::{Ed25519, Keyring, PublicKeys, SecretKey, Suite, Tag};
use bezant_core::client::{Client, ClientTimer, Completion, Read, Submit};
use bezant_core::cluster::{ClientAuth, Cluster, Limits};
use bezant_core::ids::{ClientId, IdentityId, Principal, ReplicaId};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::registry::{Message, ReplicaTimer};
use bezant_core::replica::{Replica, ReplicaConfig};
use bezant_core::schedule::Quota;
use bezant_core::services::Null;
use bezant_core::time::{Duration, Instant};
use bezant_core::wire::Rope;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::rc::Rc;

/// All clients are sessions of this identity.
const IDENTITY: IdentityId = IdentityId(1);
/// Operations before it counts, for each session: client tables are full by then.
const WARM_UP: usize = 10;
/// What passes between two turns.
const TURN: Duration = Duration(20);

/// A frame, and who sent it.
type Frame = (Principal, Bytes);

/// A replica, as its host has it.
struct Seat {
    replica: Replica<Null>,
    timers: BTreeMap<ReplicaTimer, Instant>,
}

/// A session of the engine.
struct Session {
    client: Client,
    timers: BTreeMap<ClientTimer, Instant>,
}

/// See the [module](self).
struct Load {
    now: Instant,
    cluster: Rc<Cluster>,
    keyring: Rc<Keyring>,
    seats: Vec<Seat>,
    sessions: Vec<Session>,
    idle: Vec<usize>,
    /// What waits for each replica, and for the clients.
    inboxes: Vec<Vec<Frame>>,
    operation: Bytes,
    /// Operations that are still to be asked for.
    left: usize,
    done: usize,
    outbox: Outbox<Replica<Null>>,
    client_outbox: Outbox<Client>,
    encoded: Rope,
    tags: Vec<Option<Tag>>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [protocol, auth, f, sessions, bytes, operations] = words.as_slice() else {
        eprintln!("usage: instructions PROTOCOL mac|signature|hybrid F SESSIONS BYTES OPERATIONS");
        return ExitCode::from(2);
    };
    let parsed = (|| {
        let auth = match auth.as_str() {
            "mac" => ClientAuth::Mac,
            "signature" => ClientAuth::Signature,
            "hybrid" => ClientAuth::Hybrid,
            _ => return None,
        };
        let numbers = (f.parse().ok()?, sessions.parse().ok()?, bytes.parse().ok()?, operations.parse::<usize>().ok()?);
        Some((protocol.parse().ok()?, auth, numbers))
    })();
    let Some((protocol, auth, (f, sessions, bytes, operations))) = parsed else {
        eprintln!("no such load: {}", words.join(" "));
        return ExitCode::from(2);
    };
    let cluster = Cluster::new([7; 16], 3 * f + 1, f, auth, Limits::default());
    // A schedule that begins with a Backup is counted in it.
    let quota = Quota::Fixed(u64::from(u32::MAX));
    let Ok(cluster) = cluster.map(|cluster| Cluster { quota, ..cluster.with_protocol(protocol) }) else {
        eprintln!("no cluster has so many replicas");
        return ExitCode::from(2);
    };
    let mut load = Load::new(cluster, sessions, Bytes::from(vec![0; bytes]));
    load.run(WARM_UP * sessions as usize, Load::turn);
    load.run(operations, Load::counted_turn);
    println!("{operations} operations");
    ExitCode::SUCCESS
}

fn secret(of: u8) -> SecretKey {
    SecretKey([of + 1; 32])
}

impl Load {
    fn new(cluster: Cluster, sessions: u32, operation: Bytes) -> Self {
        let n = cluster.replicas.n();
        let keys = PublicKeys {
            replicas: (0..n as u8).map(|id| Ed25519.public(&secret(id))).collect(),
            identities: [(IDENTITY, Ed25519.public(&secret(200)))].into(),
        };
        let keyring = |me, secret| Keyring::new(&Ed25519, &cluster, me, secret, keys.clone()).expect("its keys");
        let seat = |id: u8| {
            let keyring = keyring(Principal::Replica(ReplicaId(id)), secret(id));
            let config = ReplicaConfig { cluster: cluster.clone(), keyring, lost_log: false, genesis: None };
            let replica = Replica::new(config, Null::default()).expect("a new replica needs nothing");
            Seat { replica, timers: BTreeMap::new() }
        };
        let seats: Vec<Seat> = (0..n as u8).map(seat).collect();
        let engine = Rc::new(keyring(Principal::Client(ClientId { identity: IDENTITY, session: 0 }), secret(200)));
        let shared = Rc::new(cluster.clone());
        let session = |session| {
            let id = ClientId { identity: IDENTITY, session };
            Session { client: Client::new(Rc::clone(&shared), Rc::clone(&engine), id), timers: BTreeMap::new() }
        };
        let mut load = Self {
            now: Instant(1_000_000),
            cluster: Rc::clone(&shared),
            keyring: Rc::clone(&engine),
            seats,
            sessions: (0..sessions).map(session).collect(),
            idle: (0..sessions as usize).collect(),
            inboxes: vec![Vec::new(); n + 1],
            operation,
            left: 0,
            done: 0,
            outbox: Outbox::new(),
            client_outbox: Outbox::new(),
            encoded: Rope::new(),
            tags: Vec::new(),
        };
        for id in 0..n {
            load.step(id, Input::Start);
        }
        for session in 0..load.sessions.len() {
            load.step_client(session, Input::Start);
        }
        load
    }

    /// Turns until so many operations are done.
    fn run(&mut self, operations: usize, turn: fn(&mut Self, usize)) {
        let (end, mut drawn) = (self.done + operations, 1_u64);
        self.left = operations;
        while self.done < end {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.now += TURN;
            turn(self, (drawn >> 33) as usize % self.inboxes.len());
        }
    }

    fn turn(&mut self, party: usize) {
        match party < self.seats.len() {
            true => self.replica_turn(party),
            false => self.client_turn(),
        }
    }

    fn counted_turn(&mut self, party: usize) {
        match party {
            _ if party == self.seats.len() => counted_clients(self),
            0 => counted_0(self),
            1 => counted_1(self),
            2 => counted_2(self),
            3 => counted_3(self),
            4 => counted_4(self),
            5 => counted_5(self),
            6 => counted_6(self),
            _ => self.turn(party),
        }
    }

    fn replica_turn(&mut self, id: usize) {
        for (from, frame) in std::mem::take(&mut self.inboxes[id]) {
            if let Some(incoming) = self.seats[id].replica.open(frame, from) {
                self.step(id, Input::Message(incoming));
            }
        }
        let now = self.now;
        let due: Vec<_> = self.seats[id].timers.iter().filter(|(_, at)| **at <= now).map(|(timer, _)| *timer).collect();
        for timer in due {
            self.seats[id].timers.remove(&timer);
            self.step(id, Input::Timer(timer));
        }
        self.step(id, Input::PassEnd);
    }

    fn step(&mut self, id: usize, input: Input<Replica<Null>>) {
        let mut outbox = std::mem::take(&mut self.outbox);
        self.seats[id].replica.step(self.now, input, &mut outbox);
        for effect in outbox.drain() {
            match effect {
                Effect::Send(to, message) => self.send(Principal::Replica(ReplicaId(id as u8)), to, &message),
                Effect::SetTimer(timer, at) => _ = self.seats[id].timers.insert(timer, at),
                Effect::CancelTimer(timer) => _ = self.seats[id].timers.remove(&timer),
                Effect::Persist(_) | Effect::Append(_) | Effect::Notify(_) => {}
            }
        }
        self.outbox = outbox;
    }

    fn client_turn(&mut self) {
        let replies = self.inboxes.last_mut().map(std::mem::take).unwrap_or_default();
        for (from, frame) in replies {
            let Ok(incoming) = Message::open(frame, from, &self.cluster, &self.keyring) else { continue };
            let Some(client) = incoming.message.addressee() else { continue };
            self.step_client(client.session as usize, Input::Message(incoming));
        }
        for session in 0..self.sessions.len() {
            let now = self.now;
            let due = self.sessions[session].timers.iter().find(|(_, at)| **at <= now).map(|(timer, _)| *timer);
            if let Some(timer) = due {
                self.sessions[session].timers.remove(&timer);
                self.step_client(session, Input::Timer(timer));
            }
        }
        while self.left > 0
            && let Some(session) = self.idle.pop()
        {
            self.left -= 1;
            let operation = self.operation.clone();
            let submit = Submit { operation, is_bundle: false, read_only: false, read: Read::Quorum, deadline: None };
            self.step_client(session, Input::Command(submit));
        }
    }

    fn step_client(&mut self, session: usize, input: Input<Client>) {
        let mut outbox = std::mem::take(&mut self.client_outbox);
        self.sessions[session].client.step(self.now, input, &mut outbox);
        let me = self.keyring.me();
        for effect in outbox.drain() {
            match effect {
                Effect::Send(to, message) => self.send(me, to, &message),
                Effect::SetTimer(timer, at) => _ = self.sessions[session].timers.insert(timer, at),
                Effect::CancelTimer(timer) => _ = self.sessions[session].timers.remove(&timer),
                Effect::Notify(completed) => {
                    assert!(matches!(completed.result, Completion::Done(_)), "{completed:?}");
                    self.done += 1;
                    self.idle.push(session);
                }
                Effect::Persist(never) | Effect::Append(never) => match never {},
            }
        }
        self.client_outbox = outbox;
    }

    /// Encodes once, and seals for each receiver.
    fn send(&mut self, from: Principal, to: Destination, message: &Message) {
        let receivers: Vec<Principal> = match to {
            Destination::Replica(id) => vec![Principal::Replica(id)],
            Destination::Client(id) => vec![Principal::Client(id)],
            Destination::Replicas => {
                self.cluster.replicas.iter().map(Principal::Replica).filter(|id| *id != from).collect()
            }
            Destination::Key(_) => Vec::new(),
        };
        let keyring = match from {
            Principal::Replica(id) => self.seats[id.0 as usize].replica.keyring(),
            _ => &self.keyring,
        };
        let (encoded, tags) = (&mut self.encoded, &mut self.tags);
        tags.clear();
        message.seal(keyring, receivers.iter().copied(), encoded, |_, tag| tags.push(tag));
        let mut flat = Vec::new();
        let common = encoded.whole(&mut flat);
        for (receiver, tag) in receivers.iter().zip(tags) {
            let frame = Bytes::from([common, tag.as_ref().map_or(&[][..], |tag| tag.as_bytes())].concat());
            let inbox = receiver.replica().map_or(self.inboxes.len() - 1, |id| id.0 as usize);
            self.inboxes[inbox].push((from, frame));
        }
    }
}

/// The turns of a party while it counts, never inlined, so that a profile names them.
macro_rules! party {
    ($name:ident, $id:literal) => {
        #[inline(never)]
        fn $name(load: &mut Load) {
            load.replica_turn($id);
            // A jump instead of a call would leave nothing of this function in the profile.
            black_box(load);
        }
    };
}
party!(counted_0, 0);
party!(counted_1, 1);
party!(counted_2, 2);
party!(counted_3, 3);
party!(counted_4, 4);
party!(counted_5, 5);
party!(counted_6, 6);

/// The same of all clients.
#[inline(never)]
fn counted_clients(load: &mut Load) {
    load.client_turn();
    black_box(load);
}
