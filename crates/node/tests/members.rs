//! Clients that the cluster file does not name, over loopback sockets: they join, work, are replaced and leave; floods
//! of bad JOINs and stolen names disturb nobody.

mod support;

use bezant_core::auth::{Ed25519, Keyring, SecretKey, Suite};
use bezant_core::cluster::{ClientAuth, Cluster, Limits};
use bezant_core::ids::{IdentityId, InstanceId, Principal, ReplicaId, Timestamp};
use bezant_core::joining::{Credential, Join, SessionId, Stamp};
use bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;
use bezant_core::message::{Refusal, Request};
use bezant_core::registry::Message;
use bezant_core::services::Counter;
use bezant_core::time::Duration as Span;
use bezant_core::wire::Wire;
use bezant_node::client::{CallError, Client, ClientOptions, connect};
use bezant_node::net::{Channel, CloseReason, Event, Hub, HubOptions, Lane, LinkRefusal, Peer};
use bezant_node::replica::{MemoryLog, ReplicaHandle};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{IDENTITY, PATIENCE, client_secret, eventually, increment, keys, listener, read, replica_with};

struct Running {
    cluster: Cluster,
    channel: Channel,
    ports: Vec<SocketAddr>,
    replicas: Vec<ReplicaHandle>,
}

fn cluster(takeover_ms: u64) -> Cluster {
    let limits = Limits { takeover_interval: Span::from_millis(takeover_ms), members_max: 8, ..Limits::default() };
    Cluster::new([1; 16], 4, 1, ClientAuth::Hybrid, limits).unwrap()
}

impl Running {
    fn start(cluster: Cluster, channel: Channel) -> Self {
        let bound: Vec<_> = (0..4).map(|_| (listener(), listener())).collect();
        let of_replicas: Vec<_> = bound.iter().map(|(replicas, _)| replicas.local_addr().unwrap()).collect();
        let ports = bound.iter().map(|(_, clients)| clients.local_addr().unwrap()).collect();
        let replica = |(id, ports)| {
            replica_with(&cluster, id as u8, channel, ports, &of_replicas, Box::new(MemoryLog::default()))
        };
        let replicas = bound.into_iter().enumerate().map(replica).collect();
        Self { cluster, channel, ports, replicas }
    }

    fn client(&self, identity: Option<IdentityId>, secret: SecretKey) -> Client {
        connect(ClientOptions {
            cluster: self.cluster.clone(),
            replicas: self.ports.clone().into(),
            keys: keys(4),
            identity,
            secret,
            identification: Bytes::new(),
            channel: self.channel,
            connections: 1,
            sessions_per_connection: 16,
            bundle_operations_max: BUNDLE_OPERATIONS_MAX,
            first_session: None,
        })
        .unwrap()
    }

    fn stranger(&self, secret: u8) -> Client {
        self.client(None, SecretKey([secret; 32]))
    }

    fn members(&self, id: usize) -> usize {
        self.replicas[id].status().report.members
    }
}

fn add(client: &Client, patience: Duration) -> Result<Bytes, CallError> {
    client.execute(Bytes::copy_from_slice(&Counter::add(1)), patience).wait()
}

#[test]
fn strangers_join_work_leave_and_come_back() {
    let running = Running::start(cluster(10_000).with_dynamic_clients(), Channel::Tls);
    let (first, second) = (running.stranger(31), running.stranger(32));
    increment(&first, 100);
    increment(&second, 100);
    assert_eq!(read(&first), 200);
    let named = running.client(Some(IDENTITY), client_secret());
    increment(&named, 10);
    eventually("all replicas count two members", || (0..4).all(|id| running.members(id) == 2));
    drop(first);
    eventually("one has left", || (0..4).all(|id| running.members(id) == 1));
    let again = running.stranger(31);
    increment(&again, 1);
    assert_eq!(read(&second), 211);
    drop((again, second));
    eventually("all have left", || (0..4).all(|id| running.members(id) == 0));
}

#[test]
fn whoever_takes_over_waits_and_the_other_is_told() {
    let running = Running::start(cluster(700).with_dynamic_clients(), Channel::Plain);
    let first = running.stranger(31);
    increment(&first, 1);
    let second = running.stranger(31);
    assert_eq!(add(&second, Duration::from_millis(300)), Err(CallError::NotAdmitted(Refusal::TooSoon)));
    increment(&second, 1);
    assert_eq!(add(&first, PATIENCE), Err(CallError::SessionOver(Refusal::TakenOver)));
    assert_eq!(add(&first, PATIENCE), Err(CallError::NotAdmitted(Refusal::TakenOver)), "it does not fight back");
    assert_eq!(read(&second), 2);
    drop(first);
    increment(&second, 1);
    eventually("the session is the second one's", || (0..4).all(|id| running.members(id) == 1));
}

#[test]
fn a_full_cluster_says_so() {
    let running = Running::start(cluster(10_000).with_dynamic_clients(), Channel::Plain);
    let members: Vec<_> = (0..8).map(|number| running.stranger(50 + number)).collect();
    members.iter().for_each(|member| increment(member, 1));
    let late = running.stranger(90);
    assert_eq!(add(&late, Duration::from_millis(1_500)), Err(CallError::NotAdmitted(Refusal::Full)));
    assert_eq!(read(&members[3]), 8);
}

#[test]
fn where_nobody_may_join_strangers_are_refused_at_the_door() {
    let running = Running::start(cluster(0), Channel::Plain);
    let open = Running { cluster: cluster(0).with_dynamic_clients(), ports: running.ports.clone(), ..running };
    let error = add(&open.stranger(31), Duration::from_millis(1_500)).unwrap_err();
    assert_eq!(error, CallError::NotSent, "another cluster: its digest says who may join");
    let mut hub = stranger_hub(&open.cluster, 31);
    let key = hub.1;
    hub.0.dial(open.ports[0], ReplicaId(0), Peer::Stranger(key)).unwrap();
    assert_eq!(end_of(&mut hub.0), Some(CloseReason::RefusedByPeer(LinkRefusal::ForeignCluster)));
}

fn stranger_hub(cluster: &Cluster, secret: u8) -> (Hub, bezant_core::ids::PublicKey) {
    let secret = SecretKey([secret; 32]);
    let key = Ed25519.public(&secret);
    let keyring = Keyring::new(&Ed25519, cluster, Principal::Key(key), secret, keys(4)).unwrap();
    (Hub::new(HubOptions::new(keyring, Channel::Plain)).unwrap(), key)
}

/// How the only link of a hub ends; `None` if it comes up.
fn end_of(hub: &mut Hub) -> Option<CloseReason> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        hub.poll(Some(Duration::from_millis(20))).unwrap();
        while let Some(event) = hub.next_event() {
            match event {
                Event::Down(_, reason) => return Some(reason),
                Event::Up(..) => return None,
                Event::Frame(..) => {}
            }
        }
        hub.flush();
    }
    panic!("the link neither comes up nor ends");
}

/// prac-A19 on sockets: nobody gets a link in the name of a key that he does not hold.
#[test]
fn a_stolen_key_name_is_refused() {
    let running = Running::start(cluster(10_000).with_dynamic_clients(), Channel::Plain);
    let victim = Ed25519.public(&SecretKey([31; 32]));
    let (mut thief, own) = stranger_hub(&running.cluster, 66);
    thief.dial(running.ports[0], ReplicaId(0), Peer::Stranger(victim)).unwrap();
    // The replica answers in a way that only the holder of the key can check.
    assert_eq!(end_of(&mut thief), Some(CloseReason::Refused(LinkRefusal::BadProof)));
    thief.dial(running.ports[0], ReplicaId(0), Peer::Stranger(own)).unwrap();
    assert_eq!(end_of(&mut thief), None);
}

/// JOINs as only a liar writes them: cookies of his own making, of one replica, of nobody.
fn garbage(keyring: &Keyring, cluster: &Cluster, number: u64) -> Vec<u8> {
    let Principal::Key(key) = keyring.me() else { unreachable!() };
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    let credential = Credential { key, session: SessionId(nonce) };
    let time = bezant_core::time::Instant(u64::MAX - number);
    let signature = keyring.sign_bytes(6, &number.to_le_bytes());
    let stamp = |id| Stamp { replica: ReplicaId(id), time, signature };
    let stamps = (0..1 + (number % 3) as u8).map(stamp).collect();
    let join = Join { identification: Bytes::new(), stamps };
    let operation = join.to_bytes().into();
    let client = credential.joining();
    let request = Request::of_stranger(InstanceId(1), client, credential, Timestamp(number), false, operation);
    Message::Request(request.authenticate(cluster, keyring)).to_bytes()
}

/// The JOIN flood of prac-A19 on sockets: four keys send bad JOINs, and requests in the name of others, as fast as the
/// links take them, while honest clients go on.
#[test]
fn a_flood_of_bad_joins_stops_nobody() {
    let running = Running::start(cluster(10_000).with_dynamic_clients(), Channel::Plain);
    let stop = Arc::new(AtomicBool::new(false));
    let attackers: Vec<_> = (0..4u8)
        .map(|attacker| {
            let (mut hub, key) = stranger_hub(&running.cluster, 120 + attacker);
            let (ports, cluster, stop) = (running.ports.clone(), running.cluster.clone(), Arc::clone(&stop));
            std::thread::spawn(move || {
                let secret = SecretKey([120 + attacker; 32]);
                let keyring = Keyring::new(&Ed25519, &cluster, Principal::Key(key), secret, keys(4)).unwrap();
                // Signing takes the attacker longer than sending: the same bad requests again and again.
                let frames: Vec<_> = (1..200).map(|number| garbage(&keyring, &cluster, number)).collect();
                let port = usize::from(attacker);
                let link = hub.dial(ports[port], ReplicaId(attacker), Peer::Stranger(key)).unwrap();
                let mut sent = 0u64;
                for frame in frames.iter().cycle() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    hub.send(link, Lane::Usual, &frame.to_vec().into(), &[]);
                    sent += 1;
                    if sent.is_multiple_of(100) {
                        hub.flush();
                        hub.poll(Some(Duration::from_millis(1))).unwrap();
                        while hub.next_event().is_some() {}
                    }
                }
                sent
            })
        })
        .collect();
    let named = running.client(Some(IDENTITY), client_secret());
    increment(&named, 500);
    let stranger = running.stranger(31);
    increment(&stranger, 200);
    stop.store(true, Ordering::Relaxed);
    let sent: u64 = attackers.into_iter().map(|attacker| attacker.join().unwrap()).sum();
    assert!(sent > 1_000, "{sent} bad requests were sent");
    assert_eq!(read(&named), 700);
    eventually("one member, and none by fraud", || (0..4).all(|id| running.members(id) == 1));
    let views: Vec<_> = running.replicas.iter().map(|replica| replica.status().report.view.0).collect();
    assert_eq!(views, [0; 4], "nobody lost its view");
}
