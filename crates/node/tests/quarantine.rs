//! Replicas over loopback sockets, and one among them that sends them nothing but garbage.

mod support;

use bezant_core::cluster::ClientAuth;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;
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

/// Sends frames that are no message to all others, as fast as they take them.
fn flood(mut hub: Hub, ports: Vec<SocketAddr>, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<usize> {
    std::thread::spawn(move || {
        let dial = |(id, port)| hub.dial(port, ReplicaId(id), Peer::Replica(LIAR)).unwrap();
        let links: Vec<_> = (0..).zip(ports).map(dial).collect();
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..if hub.pending() < 1 << 20 { 1_000 } else { 0 } {
                links.iter().for_each(|link| _ = hub.send(*link, Lane::Usual, &vec![0xff; 200].into(), &[]));
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

#[test]
fn a_replica_that_sends_garbage_is_in_quarantine_and_the_others_go_on() {
    let cluster = cluster(1, 4, ClientAuth::Mac);
    let bound: Vec<_> = (0..4).map(|_| (listener(), listener())).collect();
    let of_replicas: Vec<_> = bound.iter().map(|(replicas, _)| replicas.local_addr().unwrap()).collect();
    let of_clients: Vec<_> = bound.iter().map(|(_, clients)| clients.local_addr().unwrap()).collect();
    let replica =
        |(id, ports)| replica_with(&cluster, id, Channel::Plain, ports, &of_replicas, Box::new(MemoryLog::default()));
    let replicas: Vec<_> = (0..LIAR.0).zip(bound).map(replica).collect();
    let hub = Hub::new(HubOptions::new(replica_keyring(&cluster, LIAR.0), Channel::Plain)).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let liar = flood(hub, of_replicas[..3].to_vec(), Arc::clone(&stop));

    let expected = [(Some(Principal::Replica(LIAR)), Cause::FailedVerifications)];
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
