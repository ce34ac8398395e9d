//! Connections that end in something on the way: it goes silent, takes what comes, and keeps both sockets open.

mod support;

use bezant_core::cluster::{ClientAuth, Cluster};
use bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;
use bezant_core::schedule::Protocol;
use bezant_node::client::{ClientOptions, connect};
use bezant_node::net::Channel;
use bezant_node::replica::MemoryLog;
use bytes::Bytes;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{IDENTITY, client_secret, cluster, increment, keys, listener, read, replica_with};

/// How long nothing may be answered after every connection went silent at once: the links' patience and a handshake,
/// with much room for slow machines.
const SERVICE_GAP_MAX: Duration = Duration::from_secs(20);

/// Passes connections on. Those that were made when `silences` was less than it is now carry nothing any more.
fn middle(to: SocketAddr, silences: &Arc<AtomicU64>) -> SocketAddr {
    let listener = listener();
    let (address, silences) = (listener.local_addr().unwrap(), Arc::clone(silences));
    std::thread::spawn(move || {
        for here in listener.incoming().map_while(Result::ok) {
            let Ok(there) = TcpStream::connect(to) else { continue };
            let made = silences.load(Ordering::SeqCst);
            let ways = [(here.try_clone().unwrap(), there.try_clone().unwrap()), (there, here)];
            for (mut from, mut to) in ways {
                let silences = Arc::clone(&silences);
                std::thread::spawn(move || {
                    let mut buffer = [0; 16 << 10];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        let is_silent = silences.load(Ordering::SeqCst) > made;
                        if !is_silent && to.write_all(&buffer[..count]).is_err() {
                            return;
                        }
                    }
                });
            }
        }
    });
    address
}

fn survives(protocol: Protocol) {
    let cluster = Cluster { protocol, ..cluster(1, 4, ClientAuth::Hybrid) };
    let silences = Arc::default();
    let bound: Vec<_> = (0..4).map(|_| (listener(), listener())).collect();
    let through = |listener: &TcpListener| middle(listener.local_addr().unwrap(), &silences);
    let peers: Vec<_> = bound.iter().map(|(peers, _)| through(peers)).collect();
    let clients: Vec<_> = bound.iter().map(|(_, clients)| through(clients)).collect();
    let replicas = (0..)
        .zip(bound)
        .map(|(id, ports)| replica_with(&cluster, id, Channel::Tls, ports, &peers, Box::new(MemoryLog::default())));
    let replicas: Vec<_> = replicas.collect();
    let client = connect(ClientOptions {
        cluster,
        replicas: clients.into(),
        keys: keys(4),
        identity: Some(IDENTITY),
        identification: Bytes::new(),
        secret: client_secret(),
        channel: Channel::Tls,
        connections: 1,
        sessions_per_connection: 4,
        bundle_operations_max: BUNDLE_OPERATIONS_MAX,
        first_session: None,
    })
    .unwrap();
    increment(&client, 100);
    for round in 1..=2 {
        silences.fetch_add(1, Ordering::SeqCst);
        let begin = Instant::now();
        increment(&client, 1);
        assert!(begin.elapsed() < SERVICE_GAP_MAX, "round {round}: {:?}", begin.elapsed());
        increment(&client, 99);
    }
    assert_eq!(read(&client), 300);
    drop(client);
    replicas.into_iter().for_each(|replica| replica.kill().unwrap());
}

#[test]
fn pbft_goes_on_after_every_connection_went_silent() {
    survives(Protocol::Pbft);
}

#[test]
fn aliph_goes_on_after_every_connection_went_silent() {
    survives(Protocol::Aliph);
}
