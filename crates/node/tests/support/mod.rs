//! Keys, clusters and clients for the tests.
#![allow(dead_code)] // every test binary uses its own part

use bezant_core::auth::{Ed25519, Keyring, PublicKeys, SecretKey, Suite};
use bezant_core::cluster::{ClientAuth, Cluster, Limits};
use bezant_core::ids::{ClientId, IdentityId, Principal, PublicKey, ReplicaId};
use bezant_core::replica::{Replica, ReplicaConfig};
use bezant_core::services::Counter;
use bezant_node::client::Client;
use bezant_node::net::{Channel, ServiceBuild};
use bezant_node::replica::{Durability, ReplicaHandle, ReplicaOptions, run};
use bytes::Bytes;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) const IDENTITY: IdentityId = IdentityId(7);

/// Somebody else.
pub(crate) const OTHER: IdentityId = IdentityId(8);

pub(crate) fn replica_secret(id: u8) -> SecretKey {
    SecretKey([id + 1; 32])
}

pub(crate) fn client_secret() -> SecretKey {
    secret_of(IDENTITY)
}

fn secret_of(identity: IdentityId) -> SecretKey {
    SecretKey([200 + identity.0 as u8; 32])
}

fn public(secret: &SecretKey) -> PublicKey {
    Ed25519.public(secret)
}

pub(crate) fn keys(n: u8) -> PublicKeys {
    PublicKeys {
        replicas: (0..n).map(|id| public(&replica_secret(id))).collect(),
        identities: [IDENTITY, OTHER].map(|identity| (identity, public(&secret_of(identity)))).into(),
    }
}

pub(crate) fn cluster(name: u8, n: usize, auth: ClientAuth) -> Cluster {
    Cluster::new([name; 16], n, (n - 1) / 3, auth, Limits::default()).unwrap()
}

pub(crate) fn replica_keyring(cluster: &Cluster, id: u8) -> Keyring {
    let me = Principal::Replica(ReplicaId(id));
    Keyring::new(&Ed25519, cluster, me, replica_secret(id), keys(cluster.replicas.n() as u8)).unwrap()
}

pub(crate) fn client_keyring(cluster: &Cluster) -> Keyring {
    keyring_of(cluster, IDENTITY)
}

pub(crate) fn keyring_of(cluster: &Cluster, identity: IdentityId) -> Keyring {
    let me = Principal::Client(ClientId { identity, session: 0 });
    Keyring::new(&Ed25519, cluster, me, secret_of(identity), keys(cluster.replicas.n() as u8)).unwrap()
}

/// A listener on a loopback address that no other process uses, so that a replica finds its port free again when it
/// restarts.
pub(crate) fn listener() -> TcpListener {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    TcpListener::bind((std::net::Ipv4Addr::new(127, 1 + high % 100, middle, low.max(1)), 0)).unwrap()
}

/// A replica of the counter that begins anew, with these ports for replicas and clients. It finds the replicas there.
pub(crate) fn replica_with(
    cluster: &Cluster,
    id: u8,
    channel: Channel,
    (replica_listener, client_listener): (TcpListener, TcpListener),
    replicas: &[SocketAddr],
    log: Box<dyn Durability>,
) -> ReplicaHandle {
    let keyring = replica_keyring(cluster, id);
    let config = ReplicaConfig { cluster: cluster.clone(), keyring: keyring.clone(), lost_log: false, genesis: None };
    let options = ReplicaOptions {
        service: ServiceBuild::NONE,
        keyring,
        channel,
        levels_clients: false,
        replicas: replicas.to_vec().into(),
        replica_listener,
        peer_listeners: Vec::new(),
        client_listener,
        log,
        on_notice: Box::new(|_| {}),
    };
    run(options, || Replica::new(config, Counter::default()).map_err(|error| error.to_string())).unwrap()
}

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Adds one so often, all at once, and waits for all answers.
pub(crate) fn increment(client: &Client, times: usize) {
    let calls: Vec<_> =
        (0..times).map(|_| client.execute(Bytes::copy_from_slice(&Counter::add(1)), PATIENCE)).collect();
    for call in calls {
        call.wait().unwrap();
    }
}

/// The counter.
pub(crate) fn read(client: &Client) -> u64 {
    let value = client.query(Bytes::from_static(Counter::READ), PATIENCE).wait().unwrap();
    u64::from_le_bytes(value.as_ref().try_into().unwrap())
}

/// Waits until it is true.
pub(crate) fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An empty directory that no other test uses and that goes away with the test.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bezant-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
