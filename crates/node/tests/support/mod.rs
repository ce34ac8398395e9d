//! Keys and clusters for the tests.
#![allow(dead_code)] // every test binary uses its own part

use bezant_core::auth::{Ed25519, Keyring, PublicKey, PublicKeys, SecretKey, Suite};
use bezant_core::cluster::{ClientAuth, ClientId, Cluster, IdentityId, Limits, ReplicaId};
use bezant_core::machine::Principal;
use std::net::TcpListener;

pub(crate) const IDENTITY: IdentityId = IdentityId(7);

pub(crate) fn replica_secret(id: u8) -> SecretKey {
    SecretKey([id + 1; 32])
}

pub(crate) fn client_secret() -> SecretKey {
    SecretKey([200; 32])
}

fn public(secret: &SecretKey) -> PublicKey {
    Ed25519.public(secret)
}

pub(crate) fn keys(n: u8) -> PublicKeys {
    PublicKeys {
        replicas: (0..n).map(|id| public(&replica_secret(id))).collect(),
        identities: [(IDENTITY, public(&client_secret()))].into(),
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
    let me = Principal::Client(ClientId { identity: IDENTITY, session: 0 });
    Keyring::new(&Ed25519, cluster, me, client_secret(), keys(cluster.n as u8)).unwrap()
}

pub(crate) fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}
