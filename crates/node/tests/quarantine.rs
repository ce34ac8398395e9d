//! Replicas over loopback sockets, and one among them that sends them nothing but what is of no use.

mod support;

use bezant_core::auth::Claimed;
use bezant_core::checkpoint::Checkpoint;
use bezant_core::cluster::{ClientAuth, Cluster};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{InstanceId, Principal, ReplicaId, Sequence, View};
use bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;
use bezant_core::protocols::pbft::{Ordering as Ordered, PbftMessage, ViewChange};
use bezant_core::registry::Message;
use bezant_node::client::{ClientOptions, connect};
use bezant_node::net::{Cause, Channel, Hub, HubOptions, Lane, Peer};
use bezant_node::replica::{MemoryLog, ReplicaHandle};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{
    IDENTITY, client_secret, cluster, eventually, increment, keys, listener, read, replica_keyring, replica_with,
};

const LIAR: ReplicaId = ReplicaId(3);

/// What the liar sends next to somebody.
type Invention = Box<dyn FnMut(ReplicaId) -> Vec<u8> + Send>;

/// Sends that to all others, as fast as they take it.
fn flood(
    mut hub: Hub,
    ports: Vec<SocketAddr>,
    mut invent: Invention,
    stop: Arc<AtomicBool>,
) -> std::thread::JoinHandle<usize> {
    std::thread::spawn(move || {
        let dial = |(id, port)| (ReplicaId(id), hub.dial(port, ReplicaId(id), Peer::Replica(LIAR)).unwrap());
        let links: Vec<_> = (0..).zip(ports).map(dial).collect();
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..if hub.pending() < 1 << 20 { 100 } else { 0 } {
                for (to, link) in &links {
                    hub.send(*link, Lane::Usual, &invent(*to).into(), &[]);
                }
                sent += 1;
            }
            hub.flush();
            hub.poll(Some(Duration::from_millis(1))).unwrap();
            while hub.next_event().is_some() {}
        }
        sent
    })
}

/// Whom a replica holds in quarantine, and why.
fn quarantined(replica: &ReplicaHandle) -> Vec<(Option<Principal>, Cause)> {
    replica.status().quarantined.iter().map(|it| (it.party, it.cause)).collect()
}

/// Replicas know who floods them and why, and go on with the others.
fn the_others_go_on(cluster: &Cluster, invent: Invention, cause: Cause) {
    let bound: Vec<_> = (0..4).map(|_| (listener(), listener())).collect();
    let of_replicas: Vec<_> = bound.iter().map(|(replicas, _)| replicas.local_addr().unwrap()).collect();
    let of_clients: Vec<_> = bound.iter().map(|(_, clients)| clients.local_addr().unwrap()).collect();
    let replica =
        |(id, ports)| replica_with(cluster, id, Channel::Plain, ports, &of_replicas, Box::new(MemoryLog::default()));
    let replicas: Vec<_> = (0..LIAR.0).zip(bound).map(replica).collect();
    let hub = Hub::new(HubOptions::new(replica_keyring(cluster, LIAR.0), Channel::Plain)).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let liar = flood(hub, of_replicas[..3].to_vec(), invent, Arc::clone(&stop));

    let expected = [(Some(Principal::Replica(LIAR)), cause)];
    eventually("everybody sees it", || replicas.iter().all(|replica| quarantined(replica) == expected));
    let client = connect(ClientOptions {
        cluster: cluster.clone(),
        replicas: of_clients.into(),
        keys: keys(4),
        identity: Some(IDENTITY),
        secret: client_secret(),
        identification: Bytes::new(),
        channel: Channel::Plain,
        connections: 1,
        sessions_per_connection: 16,
        bundle_operations_max: BUNDLE_OPERATIONS_MAX,
        first_session: None,
    })
    .unwrap();
    increment(&client, 1_000);
    assert_eq!(read(&client), 1_000);
    assert!(replicas.iter().all(|replica| quarantined(replica) == expected), "and nobody else");
    let views: Vec<_> = replicas.iter().map(|replica| replica.status().report.view.0).collect();
    assert_eq!(views, [0; 3], "nobody lost its view");
    stop.store(true, Ordering::Relaxed);
    assert!(liar.join().unwrap() > 1_000);
}

#[test]
fn a_replica_that_sends_garbage_is_in_quarantine_and_the_others_go_on() {
    let garbage = Box::new(|_| vec![0xff; 200]);
    the_others_go_on(&cluster(1, 4, ClientAuth::Mac), garbage, Cause::FailedVerifications);
}

/// Each of them is right, and for a later view than the last: it has to be checked.
#[test]
fn a_replica_that_leaves_for_ever_later_views_is_in_quarantine_and_the_others_go_on() {
    let cluster = cluster(1, 4, ClientAuth::Mac);
    let keyring = replica_keyring(&cluster, LIAR.0);
    let instance = InstanceId(1);
    let mut view = View(0);
    let leave = move |to| {
        view.0 += 1;
        let root = Digest::of(Domain::Trace, &[]);
        let first = Checkpoint { instance, sequence: Sequence(0), ruled: Sequence(0), root };
        let stable = Claimed::certified(first, Vec::new());
        let change = ViewChange { view, stable, prepared: Vec::new(), pre_prepared: Vec::new() };
        let message = PbftMessage::ViewChange(Box::new(keyring.sign(change).into()));
        Message::Ordering(Ordered { instance, message }).sealed(&keyring, Principal::Replica(to))
    };
    the_others_go_on(&cluster, Box::new(leave), Cause::Signatures);
}
