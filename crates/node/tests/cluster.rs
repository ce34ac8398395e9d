//! Four replicas and a client in one process, over loopback sockets.

mod support;

use bezant_core::cluster::{ClientAuth, Cluster};
use bezant_core::compositions::Protocol;
use bezant_core::replica::{Replica, ReplicaConfig};
use bezant_core::services::Counter;
use bezant_node::client::{Client, ClientOptions, connect};
use bezant_node::net::Channel;
use bezant_node::replica::{MemoryLog, ReplicaHandle, ReplicaOptions, bind, run};
use bytes::Bytes;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use support::{IDENTITY, client_secret, cluster, keys, listener, replica_keyring};

const PATIENCE: Duration = Duration::from_secs(30);

struct Running {
    cluster: Cluster,
    channel: Channel,
    replica_ports: Vec<SocketAddr>,
    client_ports: Vec<SocketAddr>,
    replicas: Vec<Option<ReplicaHandle>>,
}

impl Running {
    fn start(auth: ClientAuth, channel: Channel) -> Self {
        let cluster = cluster(1, 4, auth);
        let bound: Vec<_> = (0..4).map(|_| (listener(), listener())).collect();
        let replica_ports = bound.iter().map(|(replicas, _)| replicas.local_addr().unwrap()).collect();
        let client_ports = bound.iter().map(|(_, clients)| clients.local_addr().unwrap()).collect();
        let mut running = Self { cluster, channel, replica_ports, client_ports, replicas: Vec::new() };
        for (id, (replica_listener, client_listener)) in bound.into_iter().enumerate() {
            let handle = running.replica(id as u8, replica_listener, client_listener, false);
            running.replicas.push(Some(handle));
        }
        running
    }

    fn replica(
        &self,
        id: u8,
        replica_listener: std::net::TcpListener,
        client_listener: std::net::TcpListener,
        lost_log: bool,
    ) -> ReplicaHandle {
        let keyring = replica_keyring(&self.cluster, id);
        let options = ReplicaOptions {
            keyring: keyring.clone(),
            channel: self.channel,
            replicas: self.replica_ports.clone(),
            replica_listener,
            client_listener,
            log: Box::new(MemoryLog::default()),
            on_notice: Box::new(|_| {}),
        };
        let config = ReplicaConfig { cluster: self.cluster.clone(), keyring, protocol: Protocol::Pbft, lost_log };
        run(options, move || Replica::new(config, Counter::default()).map_err(|error| error.to_string())).unwrap()
    }

    fn kill(&mut self, id: usize) {
        self.replicas[id].take().unwrap().kill().unwrap();
    }

    /// Starts a replica again that has lost what it had in memory.
    fn restart(&mut self, id: usize) {
        let listeners = (bind(self.replica_ports[id]).unwrap(), bind(self.client_ports[id]).unwrap());
        self.replicas[id] = Some(self.replica(id as u8, listeners.0, listeners.1, true));
    }

    fn client(&self) -> Client {
        self.client_of(self.cluster.clone())
    }

    fn client_of(&self, cluster: Cluster) -> Client {
        connect(ClientOptions {
            cluster,
            replicas: self.client_ports.clone(),
            keys: keys(4),
            identity: IDENTITY,
            secret: client_secret(),
            channel: self.channel,
            connections: 1,
            sessions_per_connection: 16,
            first_session: None,
        })
        .unwrap()
    }

    fn executed(&self, id: usize) -> u64 {
        self.replicas[id].as_ref().unwrap().status().report.executed.0
    }
}

fn increment(client: &Client, times: usize) {
    let calls: Vec<_> =
        (0..times).map(|_| client.execute(Bytes::copy_from_slice(&Counter::add(1)), PATIENCE)).collect();
    for call in calls {
        call.wait().unwrap();
    }
}

fn read(client: &Client) -> u64 {
    let value = client.query(Bytes::from_static(Counter::READ), PATIENCE).wait().unwrap();
    u64::from_le_bytes(value.as_ref().try_into().unwrap())
}

fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn survives_a_crash_and_a_restart(auth: ClientAuth, channel: Channel) {
    let mut running = Running::start(auth, channel);
    let client = running.client();
    increment(&client, 1000);
    assert_eq!(read(&client), 1000);
    running.kill(2);
    increment(&client, 1000);
    running.restart(2);
    increment(&client, 1000);
    assert_eq!(read(&client), 3000);
    // The restarted replica learns what it missed, for which it needs a checkpoint that is newer than its crash.
    eventually("replica 2 has caught up", || {
        increment(&client, 100);
        running.executed(2) + 200 > running.executed(0)
    });
    for handle in running.replicas.into_iter().flatten() {
        handle.stop().unwrap();
    }
}

#[test]
fn three_thousand_operations_over_a_crash_and_a_restart_with_macs() {
    survives_a_crash_and_a_restart(ClientAuth::Mac, Channel::Plain);
}

#[test]
fn three_thousand_operations_over_a_crash_and_a_restart_hybrid_over_tls() {
    survives_a_crash_and_a_restart(ClientAuth::Hybrid, Channel::Tls);
}

#[test]
fn the_primary_dies_and_every_call_is_still_answered() {
    let mut running = Running::start(ClientAuth::Mac, Channel::Plain);
    let client = running.client();
    increment(&client, 100);
    running.kill(0);
    increment(&client, 100);
    assert_eq!(read(&client), 200);
}

#[test]
fn a_client_of_another_cluster_is_told_so() {
    let running = Running::start(ClientAuth::Mac, Channel::Plain);
    let client = running.client_of(cluster(9, 4, ClientAuth::Mac));
    let call = client.execute(Bytes::copy_from_slice(&Counter::add(1)), Duration::from_millis(1500));
    let error = call.wait().unwrap_err().to_string();
    assert!(error.contains("it refused us: the other side belongs to another cluster"), "{error}");
}

#[test]
fn futures_complete_as_well() {
    use std::future::Future;
    use std::task::{Context, Poll, Wake, Waker};

    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let running = Running::start(ClientAuth::Signature, Channel::Plain);
    let client = running.client();
    let waker = Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
    let mut call = std::pin::pin!(client.execute(Bytes::copy_from_slice(&Counter::add(5)), PATIENCE));
    loop {
        match call.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return assert_eq!(result.unwrap().as_ref(), 5u64.to_le_bytes()),
            Poll::Pending => std::thread::park_timeout(PATIENCE),
        }
    }
}

#[test]
fn hostile_bytes_on_every_port_disturb_nobody() {
    use std::io::Write;
    let running = Running::start(ClientAuth::Mac, Channel::Plain);
    let client = running.client();
    let ports: Vec<SocketAddr> = running.replica_ports.iter().chain(&running.client_ports).copied().collect();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let until = std::sync::Arc::clone(&stop);
    let attacker = std::thread::spawn(move || {
        let mut random = [0; 512];
        let mut open = std::collections::VecDeque::new();
        while !until.load(std::sync::atomic::Ordering::Relaxed) {
            getrandom::fill(&mut random).unwrap();
            for port in &ports {
                let Ok(mut socket) = std::net::TcpStream::connect(port) else { continue };
                let _ = socket.write_all(&random);
                open.push_back(socket);
            }
            open.drain(..open.len().saturating_sub(200));
        }
    });
    increment(&client, 2000);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    attacker.join().unwrap();
    assert_eq!(read(&client), 2000);
}
