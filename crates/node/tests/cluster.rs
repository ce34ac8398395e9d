//! Four replicas and a client in one process, over loopback sockets.

mod support;

use bezant_core::client::{Completion, Read, Submit};
use bezant_core::cluster::{ClientAuth, Cluster};
use bezant_core::ids::ReplicaId;
use bezant_core::message::Refusal;
use bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;
use bezant_core::registry::Record;
use bezant_core::replica::{Replica, ReplicaConfig};
use bezant_core::services::Counter;
use bezant_core::time::Instant;
use bezant_node::client::{
    Call, CallError, Client, ClientOptions, Driver, Finished, Operation, RequestId, connect, run as run_engine,
};
use bezant_node::log;
use bezant_node::net::{Channel, ServiceBuild};
use bezant_node::replica::{Durability, MemoryLog, ReplicaError, ReplicaHandle, ReplicaOptions, Stall, bind, run};
use bytes::Bytes;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use support::{
    Directory, IDENTITY, PATIENCE, client_secret, cluster, eventually, increment, keys, listener, read, replica_keyring,
};

struct Running {
    /// `None`: durability `memory`.
    disk: Option<Directory>,
    cluster: Cluster,
    channel: Channel,
    replica_ports: Vec<SocketAddr>,
    client_ports: Vec<SocketAddr>,
    replicas: Vec<Option<ReplicaHandle>>,
}

impl Running {
    fn start(auth: ClientAuth, channel: Channel) -> Self {
        Self::start_on(None, auth, channel)
    }

    fn start_on(disk: Option<Directory>, auth: ClientAuth, channel: Channel) -> Self {
        let cluster = cluster(1, 4, auth);
        let bound: Vec<_> = (0..4).map(|_| (listener(), listener())).collect();
        let replica_ports = bound.iter().map(|(replicas, _)| replicas.local_addr().unwrap()).collect();
        let client_ports = bound.iter().map(|(_, clients)| clients.local_addr().unwrap()).collect();
        let mut running = Self { disk, cluster, channel, replica_ports, client_ports, replicas: Vec::new() };
        for (id, ports) in bound.into_iter().enumerate() {
            let handle = running.replica(id as u8, ports, false);
            running.replicas.push(Some(handle));
        }
        running
    }

    /// A replica with a log of the test's own making.
    fn replica_with(&self, id: u8, ports: (TcpListener, TcpListener), log: Box<dyn Durability>) -> ReplicaHandle {
        support::replica_with(&self.cluster, id, self.channel, ports, &self.replica_ports, log)
    }

    fn replica(&self, id: u8, ports: (TcpListener, TcpListener), restarted: bool) -> ReplicaHandle {
        let keyring = replica_keyring(&self.cluster, id);
        let mut config = ReplicaConfig {
            cluster: self.cluster.clone(),
            keyring: keyring.clone(),
            lost_log: restarted && self.disk.is_none(),
            genesis: None,
        };
        let (mut snapshot, mut records, mut log): (_, _, Box<dyn Durability>) =
            (None, Vec::new(), Box::new(MemoryLog::default()));
        if let Some(disk) = &self.disk {
            let directory = disk.path().join(id.to_string());
            let identity = log::Identity { cluster: self.cluster.digest(), replica: ReplicaId(id) };
            if !restarted {
                log::initialise(&directory, &identity, &log::Options::default()).unwrap();
            }
            let recovered = log::open(&directory, &identity, &log::Options::default()).unwrap();
            config.lost_log = recovered.lost_log;
            (snapshot, records, log) = (recovered.snapshot, recovered.records, Box::new(recovered.log));
        }
        let options = ReplicaOptions {
            service: ServiceBuild::NONE,
            keyring,
            channel: self.channel,
            levels_clients: false,
            replicas: self.replica_ports.clone().into(),
            replica_listener: ports.0,
            peer_listeners: Vec::new(),
            client_listener: ports.1,
            log,
            on_notice: Box::new(|_| {}),
        };
        let make = move || Replica::recover(config, Counter::default(), snapshot, records);
        run(options, || make().map_err(|error| error.to_string())).unwrap()
    }

    fn kill(&mut self, id: usize) {
        let replica = self.replicas[id].take().unwrap();
        assert_calm(&replica);
        replica.kill().unwrap();
    }

    /// Starts a replica again, from its disk; if it has none, as one that has lost its log.
    fn restart(&mut self, id: usize) {
        let ports = (bind(self.replica_ports[id]).unwrap(), bind(self.client_ports[id]).unwrap());
        self.replicas[id] = Some(self.replica(id as u8, ports, true));
    }

    fn client(&self) -> Client {
        self.client_of(self.cluster.clone())
    }

    fn client_of(&self, cluster: Cluster) -> Client {
        connect(self.client_options(cluster)).unwrap()
    }

    fn client_options(&self, cluster: Cluster) -> ClientOptions {
        ClientOptions {
            cluster,
            replicas: self.client_ports.clone().into(),
            keys: keys(4),
            identity: Some(IDENTITY),
            identification: Bytes::new(),
            secret: client_secret(),
            channel: self.channel,
            connections: 1,
            sessions_per_connection: 16,
            bundle_operations_max: BUNDLE_OPERATIONS_MAX,
            first_session: None,
        }
    }

    fn executed(&self, id: usize) -> u64 {
        self.replicas[id].as_ref().unwrap().status().report.executed.0
    }
}

/// Whatever such a cluster goes through, no correct replica and no correct client is held for one that is not.
impl Drop for Running {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.replicas.iter().flatten().for_each(assert_calm);
        }
    }
}

fn assert_calm(replica: &ReplicaHandle) {
    let net = replica.status().net;
    assert_eq!((net.replicas.quarantines, net.clients.quarantines), (0, 0));
}

/// A log on a disk that takes nothing, until it fails for good.
#[derive(Default)]
struct Stuck {
    records: u64,
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
    broken: Arc<AtomicBool>,
}

impl Durability for Stuck {
    fn set_wake(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.wake = Some(wake);
    }
    fn append(&mut self, _record: &Record) {
        self.records += 1;
    }
    fn start_sync(&mut self) {}
    fn position(&self) -> u64 {
        self.records
    }
    fn durable(&self) -> u64 {
        0
    }
    fn stall(&self) -> Option<Stall> {
        let broken = self.broken.load(Ordering::Relaxed);
        Some(if broken { Stall::Broken("EIO".into()) } else { Stall::Full("ENOSPC".into()) })
    }
    fn syncs(&self) -> u64 {
        0
    }
    fn bytes(&self) -> u64 {
        0
    }
    fn close(self: Box<Self>) -> Result<(), Stall> {
        Ok(())
    }
}

#[test]
fn a_replica_whose_log_is_stuck_says_nothing_and_ends_when_it_fails() {
    let mut running = Running::start(ClientAuth::Mac, Channel::Plain);
    running.kill(3);
    let broken = Arc::new(AtomicBool::new(false));
    let log = Box::new(Stuck { broken: Arc::clone(&broken), ..Stuck::default() });
    let ports = (bind(running.replica_ports[3]).unwrap(), bind(running.client_ports[3]).unwrap());
    let stuck = running.replica_with(3, ports, log);
    let client = running.client();
    increment(&client, 500);
    eventually("it has something to say", || stuck.status().held > 0);
    let status = stuck.status();
    assert_eq!(status.net.clients.frames_out, 0, "{status:?}");
    assert!(matches!(status.stall, Some(Stall::Full(_))));
    broken.store(true, Ordering::Relaxed);
    assert!(matches!(stuck.join(), Err(ReplicaError::Log(Stall::Broken(_)))));
    increment(&client, 100);
    assert_eq!(read(&client), 600);
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
    for handle in std::mem::take(&mut running.replicas).into_iter().flatten() {
        assert_calm(&handle);
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
fn all_replicas_are_killed_at_once_and_come_back_with_every_acknowledged_operation() {
    let mut running = Running::start_on(Some(Directory::new("cluster")), ClientAuth::Mac, Channel::Plain);
    let client = running.client();
    for round in 1..=3 {
        increment(&client, 500);
        (0..4).for_each(|id| running.kill(id));
        (0..4).for_each(|id| running.restart(id));
        assert_eq!(read(&client), 500 * round);
    }
    increment(&client, 1);
    eventually("the log is synced", || running.replicas[0].as_ref().unwrap().status().syncs > 0);
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

/// The first ones wait until all connections are made.
#[test]
fn what_waits_together_leaves_together_and_each_has_its_own_result() {
    let running = Running::start(ClientAuth::Hybrid, Channel::Plain);
    let client = running.client();
    let add = |amount| client.execute(Bytes::copy_from_slice(&Counter::add(amount)), PATIENCE);
    let calls: Vec<Call> = (0..10).map(|place| add(1 << (4 * place))).collect();
    let queries: Vec<Call> = (0..3).map(|_| client.query(Bytes::from_static(Counter::READ), PATIENCE)).collect();
    let writes_as_queries = client.query(Bytes::copy_from_slice(&Counter::add(1)), PATIENCE);
    let mut sum = 0_u64;
    for (place, call) in calls.into_iter().enumerate() {
        sum += 1 << (4 * place);
        assert_eq!(call.wait().unwrap().as_ref(), sum.to_le_bytes(), "in the order in which they were asked for");
    }
    assert!(queries.into_iter().all(|query| query.wait().is_ok()));
    assert_eq!(writes_as_queries.wait(), Err(CallError::Rejected(Refusal::NotReadOnly)), "and only this one");
    assert_eq!(read(&client), sum);
    std::thread::sleep(Duration::from_millis(300));
    let status = client.status();
    assert_eq!(status.operations, 15);
    assert!(status.requests < status.operations, "{} requests", status.requests);
}

/// Asks for so many increments at once, each in a request of its own.
struct Increments {
    left: u64,
    ended: Arc<AtomicU64>,
}

impl Driver for Increments {
    fn next(&mut self, _now: Instant) -> Option<Operation> {
        self.left = self.left.checked_sub(1)?;
        let operation = Bytes::copy_from_slice(&Counter::add(1));
        let submit = Submit { operation, is_bundle: false, read_only: false, read: Read::Quorum, deadline: None };
        Some(Operation { token: self.left, submit })
    }
    fn on_finished(&mut self, finished: Finished) {
        assert!(matches!(finished.completed.result, Completion::Done(_)));
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// The first ones wait until all connections are made: all leave in one pass, and so do most answers come.
#[test]
fn what_many_sessions_ask_for_in_one_pass_is_signed_together() {
    for auth in [ClientAuth::Hybrid, ClientAuth::Signature] {
        let running = Running::start(auth, Channel::Plain);
        let cluster = running.cluster.clone();
        let options = running.client_options(cluster);
        let options = ClientOptions { sessions_per_connection: 200, bundle_operations_max: 1, ..options };
        let ended = Arc::new(AtomicU64::new(0));
        let engine = run_engine(options, Increments { left: 200, ended: Arc::clone(&ended) }).unwrap();
        eventually("all are answered", || ended.load(Ordering::Relaxed) == 200);
        eventually("the status is published", || engine.status().requests == 200);
        let made = engine.status().counters.signatures_made.get();
        assert!((1..40).contains(&made), "{made} signatures");
        let checked = running.replicas[0].as_ref().unwrap().status().counters.signatures_checked.get();
        assert!((1..40).contains(&checked), "{checked} signatures checked by the primary");
        engine.stop().unwrap();
    }
}

/// The deadline of one is none for the others, and whoever was told that an outcome is unknown can ask for it later.
#[test]
fn operations_of_one_request_end_at_their_own_deadlines() {
    let mut running = Running::start_on(Some(Directory::new("cluster")), ClientAuth::Mac, Channel::Plain);
    let client = running.client();
    increment(&client, 1);
    running.kill(1);
    running.kill(3);
    let add = |deadline| client.execute(Bytes::copy_from_slice(&Counter::add(1)), deadline);
    let before = client.status().requests;
    // Its engine wakes for one of them, and may find more.
    let calls: Vec<Call> = [300, 400, 60_000, 60_000].map(|span| add(Duration::from_millis(span))).into();
    let mut calls = calls.into_iter();
    let ids: Vec<RequestId> = calls
        .by_ref()
        .take(2)
        .map(|call| match call.wait() {
            Err(CallError::Unknown { id, .. }) => id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_ne!(ids[0], ids[1]);
    running.restart(1);
    let counted = |result: Bytes| u64::from_le_bytes(result.as_ref().try_into().unwrap());
    let mut results: Vec<u64> = calls.map(|call| counted(call.wait().unwrap())).collect();
    results.extend(ids.iter().map(|id| counted(client.ask_again(*id, PATIENCE).wait().unwrap())));
    results.sort_unstable();
    assert_eq!(results, [2, 3, 4, 5], "each is executed once");
    assert_eq!(client.ask_again(ids[0], PATIENCE).wait(), Err(CallError::Forgotten));
    assert_eq!(read(&client), 5);
    std::thread::sleep(Duration::from_millis(300));
    assert!(client.status().requests > before);
}

#[test]
fn without_enough_replicas_a_call_ends_as_unknown_says_what_each_replica_did_and_can_be_asked_again() {
    let mut running = Running::start_on(Some(Directory::new("cluster")), ClientAuth::Mac, Channel::Plain);
    let client = running.client();
    increment(&client, 1);
    running.kill(1);
    running.kill(3);
    let call = client.execute(Bytes::copy_from_slice(&Counter::add(1)), Duration::from_millis(300));
    let Err(CallError::Unknown { id, replicas }) = call.wait() else { panic!() };
    let said = |id: u8| replicas.iter().find(|(replica, _)| *replica == ReplicaId(id)).unwrap().1.clone();
    assert!(said(0).contains("connected") || said(0).contains("add up"), "{replicas:?}");
    assert!(said(3).starts_with("not connected: "), "{replicas:?}");
    running.restart(1);
    let result = client.ask_again(id, PATIENCE).wait().unwrap();
    assert_eq!(result.as_ref(), 2u64.to_le_bytes());
    let result = client.ask_again(id, PATIENCE).wait();
    assert_eq!(result, Err(CallError::Forgotten));
    assert_eq!(read(&client), 2);
}

#[test]
fn what_is_not_read_only_is_no_query() {
    let running = Running::start(ClientAuth::Mac, Channel::Plain);
    let client = running.client();
    let call = client.query(Bytes::copy_from_slice(&Counter::add(1)), PATIENCE);
    assert_eq!(call.wait(), Err(CallError::Rejected(Refusal::NotReadOnly)));
    assert_eq!(read(&client), 0);
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
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let running = Running::start(ClientAuth::Signature, Channel::Plain);
    let client = running.client();
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
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
    let stop = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&stop);
    let attacker = std::thread::spawn(move || {
        let mut random = [0; 512];
        let mut open = std::collections::VecDeque::new();
        while !until.load(Ordering::Relaxed) {
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
    stop.store(true, Ordering::Relaxed);
    attacker.join().unwrap();
    assert_eq!(read(&client), 2000);
}
