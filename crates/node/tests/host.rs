//! Hosting a service of one's own from a replica's folder, and what an author may get wrong.

mod support;

use bezant_core::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Service};
use bezant_core::services::Counter;
use bezant_node::Error;
use bezant_node::config::{Testnet, testnet};
use bezant_node::net::{CloseReason, LinkRefusal};
use bezant_node::replica::ReplicaError;
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use support::{Directory, PATIENCE, eventually, listener};

/// Files of a single replica for this service. Its folder, and the cluster's file.
fn alone(directory: &Directory, service: &str) -> (PathBuf, PathBuf) {
    let folder = directory.path().join("net");
    // All at once, so that they differ.
    let bound = [listener(), listener(), listener()];
    let addresses = vec![bound.each_ref().map(|port| port.local_addr().unwrap().to_string().parse().unwrap())];
    let options = Testnet { replicas: 1, service: service.to_owned(), addresses, ..Testnet::default() };
    testnet(&folder, &options).unwrap();
    (folder.join("replica-0"), folder.join("cluster.toml"))
}

fn refused(directory: &Path, name: &str) -> String {
    bezant_node::host(directory, name, 1, Counter::default()).unwrap_err().to_string()
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let directory = Directory::new("host-restart");
    let (home, file) = alone(&directory, "mine");
    let running = bezant_node::host(&home, "mine", 1, Counter::default()).unwrap();
    let client = bezant_node::client(&file).unwrap();
    assert_eq!(client.execute(Counter::add(7).to_vec().into(), PATIENCE).wait().unwrap().as_ref(), 7u64.to_le_bytes());
    running.kill().unwrap();
    let running = bezant_node::host(&home, "mine", 1, Counter::default()).unwrap();
    assert_eq!(client.query(Counter::READ.into(), PATIENCE).wait().unwrap().as_ref(), 7u64.to_le_bytes());
    running.stop().unwrap();
}

#[test]
fn another_service_a_bad_name_and_another_folder_are_told_apart() {
    let directory = Directory::new("host-names");
    let (home, file) = alone(&directory, "mine");
    assert!(refused(&home, "yours").contains("`service = \"mine\"`, and this program serves \"yours\""));
    assert!(refused(&home, "My Service").contains("must be a word of 1 to 28 of a-z"));
    assert!(refused(home.parent().unwrap(), "mine").contains("give that of one replica"));
    std::fs::remove_file(file.with_file_name("client.key")).unwrap();
    assert!(bezant_node::client(&file).unwrap_err().is_usage());
}

/// A service with the mistake that ends a replica.
#[derive(Debug)]
struct Panics;

impl Service for Panics {
    fn execute(&mut self, operation: &[u8], _agreed: &Agreed) -> Bytes {
        Bytes::copy_from_slice(&operation[..1])
    }
    fn query(&self, _operation: &[u8], _asker: &Asker) -> Result<Bytes, NotReadOnly> {
        Err(NotReadOnly)
    }
    fn save(&mut self, _write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {}
    fn load(&mut self, _pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        Ok(())
    }
}

#[test]
fn a_service_that_panics_ends_its_replica_with_an_error() {
    let directory = Directory::new("host-panic");
    let (home, file) = alone(&directory, "panics");
    let running = bezant_node::host(&home, "panics", 1, Panics).unwrap();
    let client = bezant_node::client(&file).unwrap();
    assert_eq!(client.execute("x".into(), PATIENCE).wait().unwrap(), "x");
    drop(client.execute(Bytes::new(), PATIENCE));
    let (_leave, left) = mpsc::channel();
    let error = running.until(&left).unwrap_err();
    assert!(matches!(error, Error::Replica(ReplicaError::Panicked)), "{error:?}");
    assert!(error.to_string().contains("its service panicked"));
}

/// Replica 1 listens for replica 3 at an address of its own, which only replica 3 is told.
#[test]
fn two_replicas_may_have_a_link_over_addresses_of_their_own() {
    let directory = Directory::new("host-peers");
    let folder = directory.path().join("net");
    let bound: Vec<_> = (0..13).map(|_| listener()).collect();
    let ports: Vec<_> = bound.iter().map(|port| port.local_addr().unwrap()).collect();
    let address = |number: usize| ports[number].to_string().parse().unwrap();
    let addresses = (0..4).map(|id| [0, 1, 2].map(|port| address(3 * id + port))).collect();
    testnet(&folder, &Testnet { replicas: 4, service: "mine".to_owned(), addresses, ..Testnet::default() }).unwrap();
    let add = |id: usize, text: String| {
        let file = folder.join(format!("replica-{id}/node.toml"));
        std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + &text).unwrap();
    };
    add(1, format!("[[peer]]\nreplica = 3\nlisten = \"{}\"\n", ports[12]));
    drop(bound);
    let start = |id: usize| bezant_node::host(&folder.join(format!("replica-{id}")), "mine", 1, Counter::default());
    let first: Vec<_> = (0..3).map(|id| start(id).unwrap()).collect();
    let is_linked = |running: &bezant_node::host::Running, with: u8| {
        running.status().peers.iter().any(|peer| peer.replica.0 == with && peer.connected)
    };
    let last = start(3).unwrap();
    let refused = CloseReason::RefusedByPeer(LinkRefusal::WrongParty);
    eventually("it is refused at the usual port", || {
        is_linked(&first[2], 3) && last.status().peers.iter().any(|peer| peer.last_end == Some(refused))
    });
    assert!(!is_linked(&first[1], 3));
    last.stop().unwrap();
    add(3, format!("[[peer]]\nreplica = 1\ndial = \"{}\"\n", ports[12]));
    let last = start(3).unwrap();
    eventually("it is linked with all", || first.iter().all(|running| is_linked(running, 3)));
    let client = bezant_node::client(&folder.join("cluster.toml")).unwrap();
    assert_eq!(client.execute(Counter::add(7).to_vec().into(), PATIENCE).wait().unwrap().as_ref(), 7u64.to_le_bytes());
    for running in first.into_iter().chain([last]) {
        running.stop().unwrap();
    }
    add(3, "[[peer]]\nreplica = 9\nlisten = \"127.0.0.1:1\"\n".to_owned());
    let error = start(3).unwrap_err().to_string();
    assert!(error.contains("[[peer]] names replica 9, and cluster.toml has 4"), "{error}");
}
