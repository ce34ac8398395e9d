//! Four replicas of a service, some clients and a network that loses nothing, in virtual time. Disks never fail, so
//! that what is written to them need not be kept.

use bezant_core::auth::paper::Paper;
use bezant_core::auth::{Keyring, PublicKeys, SecretKey, Suite};
use bezant_core::client::{Client, ClientTimer, Completed, Read, Submit};
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, IdentityId, Principal};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::notice::Notice;
use bezant_core::registry::{Message, ReplicaTimer};
use bezant_core::replica::{Replica, ReplicaConfig};
use bezant_core::service::Service;
use bezant_core::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// How long a frame is under way.
const DELAY: Duration = Duration::from_millis(1);

/// A frame on its way.
struct Frame {
    arrives: Instant,
    from: Principal,
    to: Principal,
    bytes: Bytes,
}

/// See the [module](self).
pub(crate) struct World<S: Service> {
    pub(crate) now: Instant,
    pub(crate) replicas: Vec<Replica<S>>,
    /// What the replicas told their hosts.
    pub(crate) notices: Vec<Vec<Notice>>,
    /// What came of the calls of each client.
    pub(crate) completed: Vec<Vec<Completed>>,
    cluster: Rc<Cluster>,
    clients: Vec<Client>,
    /// In the order in which they arrive.
    frames: VecDeque<Frame>,
    replica_timers: BTreeMap<(usize, ReplicaTimer), Instant>,
    client_timers: BTreeMap<(usize, ClientTimer), Instant>,
}

const fn replica(id: usize) -> Principal {
    Principal::Replica(bezant_core::ids::ReplicaId(id as u8))
}

/// Each client is the only session of an identity of its own.
const fn client(id: usize) -> ClientId {
    ClientId { identity: IdentityId(id as u32), session: 0 }
}

fn keyring(cluster: &Cluster, clients: usize, me: Principal) -> Keyring {
    let secret_of_replica = |id: usize| SecretKey([1 + id as u8; 32]);
    let secret_of_client = |id: usize| SecretKey([101 + id as u8; 32]);
    let secret = match me {
        Principal::Replica(id) => secret_of_replica(usize::from(id.0)),
        Principal::Client(id) => secret_of_client(id.identity.0 as usize),
        Principal::Key(_) => unreachable!("the cluster names every client"),
    };
    let identity = |id| (client(id).identity, Paper.public(&secret_of_client(id)));
    let keys = PublicKeys {
        replicas: (0..cluster.replicas.n()).map(|id| Paper.public(&secret_of_replica(id))).collect(),
        identities: (0..clients).map(identity).collect(),
    };
    Keyring::new(&Paper, cluster, me, secret, keys).expect("the keys belong together")
}

impl<S: Service> World<S> {
    /// Replicas that serve what `make` makes for each, and have started.
    pub(crate) fn new(cluster: Cluster, clients: usize, make: impl Fn() -> S) -> Self {
        let cluster = Rc::new(cluster);
        let replica = |id| {
            let keyring = keyring(&cluster, clients, replica(id));
            let config = ReplicaConfig { cluster: (*cluster).clone(), keyring, lost_log: false, genesis: None };
            Replica::new(config, make()).expect("nothing is wrong with nothing")
        };
        let caller = |id| {
            let keyring = keyring(&cluster, clients, Principal::Client(client(id)));
            Client::new(cluster.clone(), Rc::new(keyring), client(id))
        };
        let mut world = Self {
            now: Instant(1_000_000),
            replicas: (0..cluster.replicas.n()).map(replica).collect(),
            notices: vec![Vec::new(); cluster.replicas.n()],
            completed: vec![Vec::new(); clients],
            clients: (0..clients).map(caller).collect(),
            frames: VecDeque::new(),
            replica_timers: BTreeMap::new(),
            client_timers: BTreeMap::new(),
            cluster,
        };
        (0..world.replicas.len()).for_each(|id| world.step_replica(id, Input::Start));
        world
    }

    /// A client begins a call.
    pub(crate) fn submit(&mut self, id: usize, operation: Vec<u8>) {
        let submit = Submit {
            operation: operation.into(),
            is_bundle: false,
            read_only: false,
            read: Read::Quorum,
            deadline: None,
        };
        self.step_client(id, Input::Command(submit));
    }

    /// Lets things happen until something holds, or for so long. Whether it holds.
    pub(crate) fn until(&mut self, patience: Duration, mut holds: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + patience;
        while !holds(self) {
            if self.now > end || !self.next_event() {
                return false;
            }
        }
        true
    }

    /// The next thing happens, if there is one.
    fn next_event(&mut self) -> bool {
        let frame = self.frames.front().map(|frame| frame.arrives);
        let of_replica = self.replica_timers.iter().map(|(timer, at)| (*at, *timer)).min();
        let of_client = self.client_timers.iter().map(|(timer, at)| (*at, *timer)).min();
        let times = [frame, of_replica.map(|(at, _)| at), of_client.map(|(at, _)| at)];
        let Some(at) = times.into_iter().flatten().min() else { return false };
        self.now = self.now.max(at);
        if frame == Some(at) {
            self.arrive();
        } else if let Some((_, (id, timer))) = of_replica.filter(|(due, _)| *due == at) {
            self.replica_timers.remove(&(id, timer));
            self.step_replica(id, Input::Timer(timer));
        } else if let Some((_, (id, timer))) = of_client {
            self.client_timers.remove(&(id, timer));
            self.step_client(id, Input::Timer(timer));
        }
        true
    }

    fn arrive(&mut self) {
        let Some(Frame { from, to, bytes, .. }) = self.frames.pop_front() else { return };
        match to {
            Principal::Replica(id) => {
                let id = usize::from(id.0);
                if let Some(incoming) = self.replicas[id].open(bytes, from) {
                    self.step_replica(id, Input::Message(incoming));
                }
            }
            Principal::Client(id) => {
                let id = id.identity.0 as usize;
                let opened = Message::open(bytes, from, &self.cluster, self.clients[id].keyring());
                self.step_client(id, Input::Message(opened.expect("nobody lies")));
            }
            Principal::Key(_) => unreachable!("the cluster names every client"),
        }
    }

    /// One input, and the end of a pass.
    fn step_replica(&mut self, id: usize, input: Input<Replica<S>>) {
        for input in [input, Input::PassEnd] {
            let mut out = Outbox::new();
            self.replicas[id].step(self.now, input, &mut out);
            for effect in out.drain() {
                match effect {
                    Effect::Send(to, message) => self.send(replica(id), to, &message),
                    Effect::SetTimer(timer, at) => _ = self.replica_timers.insert((id, timer), at),
                    Effect::CancelTimer(timer) => _ = self.replica_timers.remove(&(id, timer)),
                    Effect::Notify(notice) => self.notices[id].push(notice),
                    Effect::Persist(_) | Effect::Append(_) => {}
                }
            }
        }
    }

    fn step_client(&mut self, id: usize, input: Input<Client>) {
        let mut out = Outbox::new();
        self.clients[id].step(self.now, input, &mut out);
        for effect in out.drain() {
            match effect {
                Effect::Send(to, message) => self.send(Principal::Client(client(id)), to, &message),
                Effect::SetTimer(timer, at) => _ = self.client_timers.insert((id, timer), at),
                Effect::CancelTimer(timer) => _ = self.client_timers.remove(&(id, timer)),
                Effect::Notify(completed) => self.completed[id].push(completed),
                Effect::Persist(never) | Effect::Append(never) => match never {},
            }
        }
    }

    fn send(&mut self, from: Principal, to: Destination, message: &Message) {
        let receivers: Vec<Principal> = match to {
            Destination::Replica(id) => vec![Principal::Replica(id)],
            Destination::Client(id) => vec![Principal::Client(id)],
            Destination::Key(key) => vec![Principal::Key(key)],
            Destination::Replicas => {
                self.cluster.replicas.iter().map(Principal::Replica).filter(|id| *id != from).collect()
            }
        };
        let arrives = self.now + DELAY;
        for to in receivers {
            let keyring = match from {
                Principal::Replica(id) => self.replicas[usize::from(id.0)].keyring(),
                Principal::Client(id) => self.clients[id.identity.0 as usize].keyring(),
                Principal::Key(_) => unreachable!("the cluster names every client"),
            };
            let bytes = message.sealed(keyring, to).into();
            self.frames.push_back(Frame { arrives, from, to, bytes });
        }
    }
}
