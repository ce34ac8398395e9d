//! Four replicas from the files of a testnet, with their logs on the disk: killed one by one and all at once, they
//! keep what they acknowledged.

mod support;

use bezant_core::auth::{Ed25519, Keyring};
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;
use bezant_core::replica::{Replica, ReplicaConfig};
use bezant_core::services::Counter;
use bezant_node::client::{Client, ClientOptions, connect};
use bezant_node::config::{ClusterConfig, NodeConfig, Testnet, testnet};
use bezant_node::log::disk::{Disk, DiskFile, RealDisk};
use bezant_node::net::{Channel, ServiceBuild};
use bezant_node::replica::{ReplicaHandle, ReplicaOptions, Stall, bind, run};
use bezant_node::{keys, log};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use support::{Directory, eventually, increment, read};

/// A base port of which every port that a testnet of four needs is free at the moment, and that no other test of this
/// process has been given. All are below those that the system gives to outgoing connections.
fn free_base_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let start = 10_000 + (std::process::id() % 250) as u16 * 80;
    loop {
        let step = TAKEN.fetch_add(1, Ordering::Relaxed);
        assert!(step < 50, "no free ports");
        let base = start + step * 40;
        if (0..4).all(|id| (0..3).all(|port| is_free(base + 10 * id + port))) {
            return base;
        }
    }
}

struct Net {
    directory: Directory,
    config: ClusterConfig,
    replicas: Vec<Option<ReplicaHandle>>,
}

fn log_options() -> log::Options {
    log::Options { allocation_bytes: 1 << 20, reserve_bytes: 0, ..log::Options::default() }
}

impl Net {
    fn start(name: &str) -> Self {
        let directory = Directory::new(name);
        let mut options =
            Testnet { base_port: free_base_port(), channel: bezant_node::config::Channel::Plain, ..Testnet::default() };
        options.log = log_options();
        // Small, so that snapshots are taken and logs cut while the test runs.
        options.limits.checkpoint_interval = 16;
        options.limits.log_bytes_per_snapshot = 64 << 10;
        let config = testnet(directory.path(), &options).unwrap();
        let mut net = Self { directory, config, replicas: (0..4).map(|_| None).collect() };
        (0..4).for_each(|id| net.open(id, false));
        net
    }

    fn home(&self, id: u8) -> PathBuf {
        self.directory.path().join(format!("replica-{id}"))
    }

    /// Starts a replica with what its log says.
    fn open(&mut self, id: u8, is_lost: bool) {
        self.open_on(id, is_lost, &log_options());
    }

    /// The same with a disk of one's own.
    fn open_on(&mut self, id: u8, is_lost: bool, log_options: &log::Options) {
        let node = NodeConfig::load(&self.home(id).join("node.toml")).unwrap();
        let entry = self.config.replica(ReplicaId(id)).unwrap();
        let cluster = self.config.to_cluster();
        let me = Principal::Replica(node.replica);
        let secret = keys::load(&node.key).unwrap();
        let keyring = Keyring::new(&Ed25519, &cluster, me, secret, self.config.public_keys()).unwrap();
        let identity = log::Identity { cluster: cluster.digest(), replica: node.replica };
        let found = log::open(&node.directory, &identity, log_options).unwrap();
        assert_eq!(found.lost_log, is_lost);
        let options = ReplicaOptions {
            service: ServiceBuild::NONE,
            keyring: keyring.clone(),
            channel: Channel::Plain,
            levels_clients: false,
            replicas: self.config.replicas.iter().map(|replica| replica.peer_address.resolve().unwrap()).collect(),
            replica_listener: bind(entry.peer_address.resolve().unwrap()).unwrap(),
            peer_listeners: Vec::new(),
            client_listener: bind(entry.client_address.resolve().unwrap()).unwrap(),
            log: Box::new(found.log),
            on_notice: Box::new(|_| {}),
        };
        let config = ReplicaConfig { cluster, keyring, lost_log: found.lost_log, genesis: None };
        let (snapshot, records) = (found.snapshot, found.records);
        let recover = move || {
            Replica::recover(config, Counter::default(), snapshot, records).map_err(|error| format!("{error:?}"))
        };
        self.replicas[usize::from(id)] = Some(run(options, recover).unwrap());
    }

    fn kill(&mut self, id: u8) {
        self.replicas[usize::from(id)].take().unwrap().kill().unwrap();
    }

    fn client(&self) -> Client {
        let secret = keys::load(&self.directory.path().join("client.key")).unwrap();
        connect(ClientOptions {
            cluster: self.config.to_cluster(),
            replicas: self.config.replicas.iter().map(|entry| entry.client_address.resolve().unwrap()).collect(),
            keys: self.config.public_keys(),
            identity: Some(self.config.identities[0].id),
            identification: bytes::Bytes::new(),
            secret,
            channel: Channel::Plain,
            connections: 1,
            sessions_per_connection: 16,
            bundle_operations_max: BUNDLE_OPERATIONS_MAX,
            first_session: None,
        })
        .unwrap()
    }

    fn has_snapshot(&self, id: u8) -> bool {
        has_snapshot(&self.home(id))
    }

    fn executed(&self, id: u8) -> u64 {
        self.replicas[usize::from(id)].as_ref().unwrap().status().report.executed.0
    }
}

fn has_snapshot(home: &Path) -> bool {
    let names = std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().file_name());
    names.into_iter().any(|name| name.to_str().is_some_and(|name| name.starts_with("snapshot-")))
}

/// The file system, full while the switch is on.
#[derive(Clone, Debug, Default)]
struct FullDisk(Arc<AtomicBool>);

impl FullDisk {
    fn space(&self) -> io::Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Disk for FullDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.space()?;
        Ok(Box::new(FullFile(RealDisk.create(path)?, self.clone())))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(FullFile(RealDisk.open(path)?, self.clone())))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(path)
    }
}

#[derive(Debug)]
struct FullFile(Box<dyn DiskFile>, FullDisk);

impl DiskFile for FullFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.1.space()?;
        self.0.write_at(bytes, offset)
    }
    fn allocate(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.1.space()?;
        self.0.allocate(offset, bytes)
    }
    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.0.truncate(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}

#[test]
fn a_replica_whose_disk_is_full_says_so_and_catches_up_when_there_is_room() {
    let mut net = Net::start("full");
    let client = net.client();
    increment(&client, 50);
    net.kill(3);
    let disk = FullDisk::default();
    net.open_on(3, false, &log::Options { disk: Arc::new(disk.clone()), ..log_options() });
    increment(&client, 50);
    disk.0.store(true, Ordering::SeqCst);
    increment(&client, 200);
    let stall = |net: &Net| net.replicas[3].as_ref().unwrap().status().stall;
    eventually("replica 3 has no room", || matches!(stall(&net), Some(Stall::Full(_))));
    let told = stall(&net).unwrap().to_string();
    assert!(told.contains(net.home(3).file_name().unwrap().to_str().unwrap()), "{told}");
    assert_eq!(read(&client), 300, "the others go on");
    disk.0.store(false, Ordering::SeqCst);
    eventually("replica 3 goes on by itself", || stall(&net).is_none());
    eventually("and has caught up", || {
        increment(&client, 10);
        net.executed(3) + 16 > net.executed(0)
    });
}

#[test]
fn a_cluster_that_is_killed_at_once_keeps_what_it_acknowledged() {
    let mut net = Net::start("all");
    let client = net.client();
    let mut expected = 0;
    for round in 0..3 {
        increment(&client, 400);
        expected += 400;
        (0..4).for_each(|id| net.kill(id));
        (0..4).for_each(|id| net.open(id, false));
        assert_eq!(read(&net.client()), expected, "round {round}");
    }
    eventually("logs are cut", || {
        increment(&client, 100);
        (0..4).all(|id| net.has_snapshot(id))
    });
}

#[test]
fn a_replica_that_is_killed_again_and_again_catches_up_from_its_log() {
    let mut net = Net::start("one");
    let client = net.client();
    let mut expected = 0;
    for victim in [1, 2, 3, 0] {
        increment(&client, 200);
        net.kill(victim);
        increment(&client, 200);
        net.open(victim, false);
        increment(&client, 200);
        expected += 600;
        assert_eq!(read(&client), expected, "after replica {victim} was killed");
        eventually("the victim has caught up", || net.executed(victim) + 16 > net.executed((victim + 1) % 4));
    }
}

#[test]
fn a_replica_that_lost_its_log_learns_and_says_so() {
    let mut net = Net::start("lost");
    let client = net.client();
    increment(&client, 400);
    net.kill(3);
    let home = net.home(3);
    for entry in std::fs::read_dir(&home).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("log-") || name.starts_with("snapshot-") {
            std::fs::remove_file(&path).unwrap();
        }
    }
    let identity = log::Identity { cluster: net.config.to_cluster().digest(), replica: ReplicaId(3) };
    assert!(matches!(log::open(&home, &identity, &log_options()), Err(log::OpenError::LogLost { .. })));
    assert!(log::replace_lost(&home, &identity, &log_options()).unwrap());
    net.open(3, true);
    let mut expected = 400;
    eventually("replica 3 has learnt the state", || {
        increment(&client, 100);
        expected += 100;
        net.executed(3) > 0
    });
    assert_eq!(read(&client), expected);
}
