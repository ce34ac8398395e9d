//! Keys and clusters for the tests.
#![allow(dead_code)] // every test binary uses its own part

use bezant_core::auth::{Ed25519, Keyring, PublicKey, PublicKeys, SecretKey, Suite};
use bezant_core::cluster::{ClientAuth, ClientId, Cluster, IdentityId, Limits, ReplicaId};
use bezant_core::machine::Principal;
use std::net::TcpListener;

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
    Keyring::new(&Ed25519, cluster, me, replica_secret(id), keys(cluster.n as u8)).unwrap()
}

pub(crate) fn client_keyring(cluster: &Cluster) -> Keyring {
    keyring_of(cluster, IDENTITY)
}

pub(crate) fn keyring_of(cluster: &Cluster, identity: IdentityId) -> Keyring {
    let me = Principal::Client(ClientId { identity, session: 0 });
    Keyring::new(&Ed25519, cluster, me, secret_of(identity), keys(cluster.n as u8)).unwrap()
}

/// A listener on a loopback address that no other process uses, so that a replica finds its port free again when it
/// restarts.
pub(crate) fn listener() -> TcpListener {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    TcpListener::bind((std::net::Ipv4Addr::new(127, 1 + high % 100, middle, low.max(1)), 0)).unwrap()
}
