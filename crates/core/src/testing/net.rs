//! Replicas, clients and a network that does what the test says.
//!
//! Time stands still unless a test lets it pass. A *round* delivers everything that is in flight, and then tells
//! everybody who received something that the pass is over: so rounds count message delays, and requests that arrive
//! in one round form one batch.

use crate::auth::paper::Paper;
use crate::auth::{Keyring, PublicKeys, SecretKey, Suite};
use crate::checkpoint::Snapshot;
use crate::client::{Client, ClientTimer, Completed, Completion, Read, Submit};
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::ids::{ClientId, IdentityId, InstanceId, Principal, ReplicaId, Timestamp};
use crate::machine::{Destination, Effect, Input, Machine, Outbox};
use crate::message::Request;
use crate::notice::Notice;
use crate::protocols::pbft::{Ordering, PbftMessage};
use crate::registry::{LogRecord, Message, Record, ReplicaTimer};
use crate::rejection::{Account, Rejection};
use crate::replica::{Replica, ReplicaConfig};
use crate::service::Service;
use crate::services::Counter;
use crate::testing::paper_coin::PaperCoin;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;

/// The instance that every test runs in.
pub(crate) const INSTANCE: InstanceId = InstanceId(1);

/// All clients are sessions of this identity.
pub(crate) const IDENTITY: IdentityId = IdentityId(1);
/// The cluster file names this one as well, for somebody who lies.
pub(crate) const OTHER_IDENTITY: IdentityId = IdentityId(2);

/// Message delays after which frames that still lead to others always will.
const ROUNDS_MAX: usize = 10_000;

const CLIENT_SECRET: SecretKey = SecretKey([201; 32]);
const OTHER_SECRET: SecretKey = SecretKey([202; 32]);

/// A replica by its number.
pub(crate) const fn r(id: u8) -> Principal {
    Principal::Replica(ReplicaId(id))
}

/// A client by its number.
pub(crate) const fn c(session: u32) -> Principal {
    Principal::Client(ClientId { identity: IDENTITY, session })
}

/// The first word of a message's description.
pub(crate) fn kind(message: &Message) -> String {
    message.to_string().split(' ').next().unwrap_or_default().to_string()
}

/// A message of PBFT as it travels.
pub(crate) const fn ordering(message: PbftMessage) -> Message {
    Message::Ordering(Ordering { instance: INSTANCE, message })
}

/// A message between two principals.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) from: Principal,
    pub(crate) to: Principal,
    pub(crate) message: Message,
    bytes: Bytes,
}

/// Something that happened, for those who look on.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Delivered(Box<Frame>),
    Noticed(ReplicaId, Notice),
    Completed(Completed),
    /// It starts again without its disk.
    Forgot(ReplicaId),
}

/// Decides which frames are lost.
type Loss = Rc<dyn Fn(&Frame) -> bool>;

/// One replica with what its host would keep for it.
#[derive(Clone, Debug)]
pub(crate) struct Host<S: Service> {
    pub(crate) replica: Replica<S>,
    timers: BTreeMap<ReplicaTimer, Instant>,
    pub(crate) log: Vec<LogRecord>,
    snapshot: Option<Snapshot>,
    pub(crate) notices: Vec<(Instant, Notice)>,
}

impl<S: Service> Host<S> {
    /// Whether it has only its log.
    pub(crate) const fn is_without_snapshot(&self) -> bool {
        self.snapshot.is_none()
    }
}

/// At every so many steps of all replicas the one that made it has its invariants checked. A prime, so that each has
/// its turn.
const STEPS_PER_CHECK: usize = 7;

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Net<S: Service = Counter> {
    pub(crate) now: Instant,
    pub(crate) cluster: Cluster,
    pub(crate) hosts: Vec<Host<S>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) client_keys: Rc<Keyring>,
    other_keys: Rc<Keyring>,
    client_timers: Vec<BTreeMap<ClientTimer, Instant>>,
    pub(crate) in_flight: Vec<Frame>,
    lose: Loss,
    /// Everything that anybody sent, lost or not.
    pub(crate) sent: Vec<Frame>,
    pub(crate) completed: Vec<Completed>,
    pub(crate) events: Vec<Event>,
    /// By how much the clock of each replica is ahead, in microseconds.
    pub(crate) skews: Vec<i64>,
    /// Who crashes, and how many records it writes before that: the next one is lost, and all that should follow it.
    pub(crate) fuses: BTreeMap<usize, usize>,
    /// The records that were lost so.
    pub(crate) lost: Vec<Record>,
    steps: usize,
    make: fn(usize) -> S,
}

fn secret(id: u8) -> SecretKey {
    SecretKey([id + 1; 32])
}

pub(crate) fn keyring(cluster: &Cluster, me: Principal) -> Keyring {
    let secret = match me {
        Principal::Replica(id) => secret(id.0),
        Principal::Client(client) if client.identity == OTHER_IDENTITY => OTHER_SECRET,
        Principal::Client(_) => CLIENT_SECRET,
        Principal::Key(_) => panic!("a stranger has a secret of its own"),
    };
    keyring_of(cluster, me, secret)
}

fn keyring_of(cluster: &Cluster, me: Principal, own: SecretKey) -> Keyring {
    let keys = PublicKeys {
        replicas: (0..cluster.replicas.n() as u8).map(|id| Paper.public(&secret(id))).collect(),
        identities: [(IDENTITY, Paper.public(&CLIENT_SECRET)), (OTHER_IDENTITY, Paper.public(&OTHER_SECRET))].into(),
    };
    let keyring = Keyring::new(&Paper, cluster, me, own, keys).unwrap();
    match me {
        Principal::Replica(id) => {
            let (n, place) = (cluster.replicas.n(), usize::from(id.0));
            let own = PaperCoin::secrets(n, 1).swap_remove(place);
            keyring.with_coin(&PaperCoin, own, PaperCoin::keys(n, 1)).unwrap()
        }
        _ => keyring,
    }
}

impl Net {
    /// Replicas that serve a counter, in hybrid mode, with one client.
    pub(crate) fn new(n: usize, limits: Limits) -> Self {
        Self::with(n, 1, ClientAuth::Hybrid, limits)
    }

    /// Replicas that serve a counter.
    pub(crate) fn with(n: usize, clients: u32, auth: ClientAuth, limits: Limits) -> Self {
        Self::serving(n, clients, auth, limits, |_| Counter::default())
    }
}

/// A cluster of so many replicas.
pub(crate) fn cluster(n: usize, auth: ClientAuth, limits: Limits) -> Cluster {
    Cluster::new([7; 16], n, (n - 1) / 3, auth, limits).unwrap()
}

impl<S: Service> Net<S> {
    /// Replicas that serve what `make` makes for each.
    pub(crate) fn serving(n: usize, clients: u32, auth: ClientAuth, limits: Limits, make: fn(usize) -> S) -> Self {
        Self::of(cluster(n, auth, limits), clients, make)
    }

    /// A cluster that is chosen in full, composition included.
    pub(crate) fn of(cluster: Cluster, clients: u32, make: fn(usize) -> S) -> Self {
        let n = cluster.replicas.n();
        let client_keys = Rc::new(keyring(&cluster, c(0)));
        let other = ClientId { identity: OTHER_IDENTITY, session: 0 };
        let other_keys = Rc::new(keyring(&cluster, Principal::Client(other)));
        let shared = Rc::new(cluster.clone());
        let client = |session| {
            let Principal::Client(id) = c(session) else { unreachable!() };
            Client::new(shared.clone(), client_keys.clone(), id)
        };
        let clients: Vec<Client> = (0..clients).map(client).collect();
        let hosts = (0..n)
            .map(|id| Host {
                replica: Replica::new(config(&cluster, id, false), make(id)).unwrap(),
                timers: BTreeMap::new(),
                log: Vec::new(),
                snapshot: None,
                notices: Vec::new(),
            })
            .collect();
        let mut net = Self {
            now: Instant(1_000_000),
            cluster,
            hosts,
            client_timers: alloc::vec![BTreeMap::new(); clients.len()],
            clients,
            client_keys,
            other_keys,
            in_flight: Vec::new(),
            lose: Rc::new(|_| false),
            sent: Vec::new(),
            completed: Vec::new(),
            events: Vec::new(),
            skews: alloc::vec![0; n],
            fuses: BTreeMap::new(),
            lost: Vec::new(),
            steps: 0,
            make,
        };
        for id in 0..n {
            net.step(id, Input::Start);
        }
        net.settle();
        net.sent.clear();
        net.events.clear();
        net
    }

    /// From now on, these frames are lost, and only these.
    pub(crate) fn lose(&mut self, which: impl Fn(&Frame) -> bool + 'static) {
        self.lose = Rc::new(which);
    }

    /// From now on, these replicas neither send nor receive anything; everybody else does.
    pub(crate) fn isolate(&mut self, replicas: &'static [u8]) {
        self.lose(|frame| {
            let is_isolated = |party| matches!(party, Principal::Replica(id) if replicas.contains(&id.0));
            is_isolated(frame.from) || is_isolated(frame.to)
        });
    }

    /// From now on, nothing is lost.
    pub(crate) fn heal(&mut self) {
        self.lose(|_| false);
    }

    /// The keys of a principal.
    pub(crate) fn keyring(&self, of: Principal) -> &Keyring {
        match of {
            Principal::Replica(id) => self.hosts[id.0 as usize].replica.keyring(),
            Principal::Client(client) if client.identity == OTHER_IDENTITY => &self.other_keys,
            Principal::Client(_) => &self.client_keys,
            Principal::Key(_) => {
                let client = self.clients.iter().find(|client| client.party() == of);
                client.expect("a stranger of this net").keyring()
            }
        }
    }

    /// One more client, which the cluster file does not name; by its number.
    pub(crate) fn stranger(&mut self, secret: u8) -> usize {
        let secret = SecretKey([secret; 32]);
        let me = Principal::Key(Paper.public(&secret));
        let keyring = Rc::new(keyring_of(&self.cluster, me, secret));
        self.clients.push(Client::stranger(Rc::new(self.cluster.clone()), keyring));
        self.client_timers.push(BTreeMap::new());
        self.clients.len() - 1
    }

    /// A client's request for an instance, with its proof, which its machine did not make.
    pub(crate) fn request(&self, instance: InstanceId, session: u32, timestamp: u64, operation: &[u8]) -> Request {
        let Principal::Client(client) = c(session) else { unreachable!() };
        let operation = Bytes::copy_from_slice(operation);
        let request = Request::new(instance, client, Timestamp(timestamp), false, operation);
        request.authenticate(&self.cluster, &self.client_keys)
    }

    /// Lets somebody say something that its machine did not say. It is never lost.
    pub(crate) fn forge(&mut self, from: Principal, to: Principal, message: Message) {
        let bytes = message.sealed(self.keyring(from), to).into();
        self.in_flight.push(Frame { from, to, message, bytes });
    }

    fn send(&mut self, from: Principal, to: Destination, message: &Message) {
        let receivers: Vec<Principal> = match to {
            Destination::Replica(id) => alloc::vec![Principal::Replica(id)],
            Destination::Client(id) => alloc::vec![Principal::Client(id)],
            Destination::Key(key) => alloc::vec![Principal::Key(key)],
            Destination::Replicas => {
                self.cluster.replicas.iter().map(Principal::Replica).filter(|id| *id != from).collect()
            }
        };
        for to in receivers {
            let bytes = message.sealed(self.keyring(from), to).into();
            let frame = Frame { from, to, message: message.clone(), bytes };
            self.sent.push(frame.clone());
            if !(self.lose)(&frame) {
                self.in_flight.push(frame);
            }
        }
    }

    pub(crate) fn step(&mut self, id: usize, input: Input<Replica<S>>) {
        let mut out = Outbox::new();
        let skew = self.skews[id];
        self.hosts[id].replica.step(Instant(self.now.0.saturating_add_signed(skew)), input, &mut out);
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_PER_CHECK) {
            self.hosts[id].replica.check_invariants();
        }
        for effect in out.drain().collect::<Vec<_>>() {
            if let Effect::Persist(record) | Effect::Append(record) = &effect
                && let Some(left) = self.fuses.get_mut(&id)
            {
                if *left == 0 {
                    self.fuses.remove(&id);
                    self.lost.push(record.clone());
                    return self.restart(id, false);
                }
                *left -= 1;
            }
            let host = &mut self.hosts[id];
            match effect {
                Effect::Send(to, message) => self.send(r(id as u8), to, &message),
                Effect::SetTimer(timer, at) => {
                    let at = Instant(at.0.saturating_add_signed(-skew));
                    host.timers.insert(timer, at);
                }
                Effect::CancelTimer(timer) => drop(host.timers.remove(&timer)),
                Effect::Notify(notice) => {
                    host.notices.push((self.now, notice.clone()));
                    self.events.push(Event::Noticed(ReplicaId(id as u8), notice));
                }
                Effect::Persist(Record::Log(record)) | Effect::Append(Record::Log(record)) => host.log.push(record),
                Effect::Persist(Record::Snapshot(record)) | Effect::Append(Record::Snapshot(record)) => {
                    host.log = record.live;
                    host.snapshot = Some(record.snapshot);
                }
            }
        }
    }

    pub(crate) fn step_client(&mut self, session: usize, input: Input<Client>) {
        self.drive_client(session, |client, now, out| client.step(now, input, out));
    }

    /// Lets a client do something.
    pub(crate) fn drive_client(&mut self, session: usize, act: impl FnOnce(&mut Client, Instant, &mut Outbox<Client>)) {
        let mut out = Outbox::new();
        act(&mut self.clients[session], self.now, &mut out);
        let me = self.clients[session].party();
        for effect in out.drain().collect::<Vec<_>>() {
            match effect {
                Effect::Send(to, message) => self.send(me, to, &message),
                Effect::SetTimer(timer, at) => drop(self.client_timers[session].insert(timer, at)),
                Effect::CancelTimer(timer) => drop(self.client_timers[session].remove(&timer)),
                Effect::Notify(completed) => {
                    self.completed.push(completed.clone());
                    self.events.push(Event::Completed(completed));
                }
                Effect::Persist(never) | Effect::Append(never) => match never {},
            }
        }
    }

    /// Delivers one frame, without the end of a pass.
    pub(crate) fn deliver(&mut self, frame: Frame) {
        let Frame { from, to, message, bytes } = frame.clone();
        self.events.push(Event::Delivered(Box::new(frame)));
        match to {
            Principal::Replica(id) => {
                if let Some(incoming) = self.hosts[id.0 as usize].replica.open(bytes, from) {
                    self.step(id.0 as usize, Input::Message(incoming));
                }
            }
            client => {
                let receivers = (0..self.clients.len()).filter(|at| self.clients[*at].party() == client);
                for at in receivers.collect::<Vec<_>>() {
                    let opened = Message::open(bytes.clone(), from, &self.cluster, self.clients[at].keyring());
                    let incoming = opened.unwrap_or_else(|reason| panic!("{from:?} to {to:?}: {message}: {reason}"));
                    self.step_client(at, Input::Message(incoming));
                }
            }
        }
    }

    /// Delivers these frames, then ends the pass at every replica that received one. How many there were.
    pub(crate) fn deliver_all(&mut self, frames: Vec<Frame>) -> usize {
        let count = frames.len();
        let mut receivers = BTreeSet::new();
        for frame in frames {
            receivers.insert(frame.to);
            self.deliver(frame);
        }
        for receiver in receivers {
            if let Principal::Replica(id) = receiver {
                self.step(id.0 as usize, Input::PassEnd);
            }
        }
        count
    }

    /// One message delay: delivers everything that is in flight now.
    pub(crate) fn round(&mut self) -> usize {
        let frames = core::mem::take(&mut self.in_flight);
        self.deliver_all(frames)
    }

    /// Rounds until nothing is in flight. How many.
    pub(crate) fn settle(&mut self) -> usize {
        (0..ROUNDS_MAX).find(|_| self.round() == 0).expect("somebody talks without end")
    }

    /// Lets time pass, in microseconds: fires what comes due, in order of time, and settles after each.
    pub(crate) fn pass(&mut self, span: u64) {
        let end = Instant(self.now.0 + span);
        while self.fire_before(end) {
            self.settle();
        }
        self.now = end;
    }

    /// Fires the first timer, if it comes due by then.
    pub(crate) fn fire_before(&mut self, end: Instant) -> bool {
        let of_hosts = self.hosts.iter().enumerate();
        let replica =
            of_hosts.flat_map(|(id, host)| host.timers.iter().map(move |(timer, at)| (*at, id, *timer))).min();
        let of_clients = self.client_timers.iter().enumerate();
        let client = of_clients.flat_map(|(id, timers)| timers.iter().map(move |(timer, at)| (*at, id, *timer))).min();
        match (replica, client) {
            (replica, Some((at, id, timer))) if at <= end && replica.is_none_or(|(first, ..)| at <= first) => {
                self.client_timers[id].remove(&timer);
                self.now = self.now.max(at);
                self.step_client(id, Input::Timer(timer));
                true
            }
            (Some((at, id, timer)), _) if at <= end => {
                self.hosts[id].timers.remove(&timer);
                self.now = self.now.max(at);
                self.step(id, Input::Timer(timer));
                self.step(id, Input::PassEnd);
                true
            }
            _ => false,
        }
    }

    /// A replica crashes and starts again from its disk. `lost_log`: the disk is new, and the operator says so.
    pub(crate) fn restart(&mut self, id: usize, lost_log: bool) {
        let make = self.make;
        let config = config(&self.cluster, id, lost_log);
        let host = &mut self.hosts[id];
        if lost_log {
            (host.log, host.snapshot) = (Vec::new(), None);
            self.events.push(Event::Forgot(ReplicaId(id as u8)));
        }
        host.timers.clear();
        host.replica =
            Replica::recover(config, make(id), host.snapshot.clone().map(Into::into), host.log.clone()).unwrap();
        self.in_flight.retain(|frame| frame.to != r(id as u8));
        self.step(id, Input::Start);
    }

    /// A client begins a call.
    pub(crate) fn submit(&mut self, session: usize, operation: &[u8], read_only: bool) {
        self.now.0 += 10;
        let submit = Submit {
            operation: Bytes::copy_from_slice(operation),
            is_bundle: false,
            read_only,
            read: Read::Quorum,
            deadline: None,
        };
        self.step_client(session, Input::Command(submit));
    }

    /// A client's call, as far as it gets without time passing.
    pub(crate) fn call(&mut self, operation: &[u8], read_only: bool) -> Option<Completion> {
        self.submit(0, operation, read_only);
        self.settle();
        self.completed.pop().map(|completed| completed.result)
    }

    /// The first client adds to the counter, if that is what is served.
    pub(crate) fn add(&mut self, amount: u64) -> Option<Completion> {
        self.call(&Counter::add(amount), false)
    }

    /// A client adds to the counter, and waits for so many tenths of a second at most.
    pub(crate) fn add_within(&mut self, tenths: usize, client: usize, amount: u64) -> Option<Completion> {
        self.submit(client, &Counter::add(amount), false);
        for _ in 0..tenths {
            self.pass(100_000);
            if let Some(completed) = self.completed.pop() {
                return Some(completed.result);
            }
        }
        None
    }

    /// The first client asks one replica for the counter, and waits for a while.
    pub(crate) fn read_local(&mut self) -> Option<Completion> {
        let operation = Bytes::copy_from_slice(Counter::READ);
        let submit = Submit { operation, is_bundle: false, read_only: true, read: Read::One, deadline: None };
        self.step_client(0, Input::Command(submit));
        self.pass(1_000_000);
        self.completed.pop().map(|completed| completed.result)
    }

    /// The first client reads the counter.
    pub(crate) fn read(&mut self) -> Option<Completion> {
        self.call(Counter::READ, true)
    }

    /// Frames of this kind that this principal sent so far, lost or not.
    pub(crate) fn said(&self, from: Principal, what: &str) -> Vec<&Frame> {
        self.sent.iter().filter(|frame| frame.from == from && kind(&frame.message) == what).collect()
    }

    /// How often a replica rejected something of this sender, all sessions of a client's identity together, for this
    /// reason.
    pub(crate) fn rejected(&self, at: usize, from: Principal, reason: Rejection) -> u64 {
        let replica = &self.hosts[at].replica;
        let account = Account::of(from, replica.keyring().keys());
        replica.report().rejections.iter().filter(|(of, _)| *of == account).map(|(_, counts)| counts.of(reason)).sum()
    }

    /// Whether a replica told its host something like this.
    pub(crate) fn noticed(&self, at: usize, what: impl Fn(&Notice) -> bool) -> bool {
        self.hosts[at].notices.iter().any(|(_, notice)| what(notice))
    }

    /// The last batch that each replica executed for good.
    pub(crate) fn executed(&self) -> Vec<u64> {
        self.hosts.iter().map(|host| host.replica.report().executed.0).collect()
    }

    /// The view of each replica.
    pub(crate) fn views(&self) -> Vec<u64> {
        self.hosts.iter().map(|host| host.replica.report().view.0).collect()
    }
}

fn config(cluster: &Cluster, id: usize, lost_log: bool) -> ReplicaConfig {
    let keyring = keyring(cluster, r(id as u8));
    ReplicaConfig { cluster: cluster.clone(), keyring, lost_log, genesis: None }
}

/// The completion of a counter's operation with this result.
pub(crate) fn done(value: u64) -> Option<Completion> {
    Some(Completion::Done(Bytes::copy_from_slice(&value.to_le_bytes())))
}
