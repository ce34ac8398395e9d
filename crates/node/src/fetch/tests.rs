//! Checkpoints as third parties read them: from admin ports, and from files.

use crate::admin::{self, AdminServer, Board, Info, pieces};
use crate::backup::{self, BackupError};
use crate::config::{ClusterConfig, Testnet, testnet};
use crate::divergence::Archive;
use crate::fetch::{self, FetchError, Source};
use crate::keys;
use crate::replica::{Shelf, Status};
use bezant_core::auth::{Certificate, Ed25519, Keyring};
use bezant_core::checkpoint::{Checkpoint, Evidence, Snapshot, Tree};
use bezant_core::ids::{InstanceId, Principal, ReplicaId, Sequence};
use bytes::Bytes;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A cluster's files, removed at the end.
struct Files {
    directory: PathBuf,
    config: ClusterConfig,
}

impl Files {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("bezant-checkpoints-{}-{number}", std::process::id()));
        let config = testnet(&directory.join("net"), &Testnet::default()).unwrap();
        Self { directory, config }
    }

    fn evidence(&self, value: Checkpoint, signers: &[u8]) -> Evidence {
        let sign = |&number: &u8| {
            let secret = keys::load(&self.directory.join(format!("net/replica-{number}/key"))).unwrap();
            let me = Principal::Replica(ReplicaId(number));
            let keyring =
                Keyring::new(&Ed25519, &self.config.to_cluster(), me, secret, self.config.public_keys()).unwrap();
            keyring.sign(value)
        };
        Evidence::Certified(Certificate::tally(signers.iter().map(sign), 1))
    }

    fn snapshot(&self, sequence: u64, signers: &[u8]) -> Snapshot {
        let tree = tree(sequence as u8);
        let value =
            Checkpoint { instance: InstanceId(1), sequence: Sequence(sequence), ruled: Sequence(0), root: tree.root() };
        Snapshot { evidence: self.evidence(value, signers), tree }
    }

    /// A replica's admin port with these checkpoints.
    fn serve(&self, replica: u8, snapshots: impl IntoIterator<Item = Snapshot>) -> (AdminServer, Source) {
        let shelf = Arc::new(Shelf::default());
        snapshots.into_iter().for_each(|snapshot| shelf.put_certain(snapshot));
        let info = Info {
            cluster_name: String::new(),
            cluster: self.config.to_cluster().digest(),
            replica: ReplicaId(replica),
            service: crate::net::ServiceBuild::new("counter 1"),
            n: 4,
            f: 1,
            checkpoint_interval: 128,
            host: String::new(),
            version: "0",
        };
        let archive = Arc::new(Archive::open(&self.directory));
        let board = Board::of_status(info, Arc::new(Status::default().into())).with(Some(shelf), archive);
        let server = admin::serve(TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(board)).unwrap();
        let source = Source { replica: ReplicaId(replica), admin: server.address() };
        (server, source)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).unwrap();
    }
}

/// Pages all over the tree, more of them than one request asks for.
fn tree(seed: u8) -> Tree {
    let mut tree = Tree::new();
    for number in 0..300 {
        let content = vec![seed.wrapping_add(number as u8); 100 + number as usize];
        tree.set(number * 4_099 % (1 << 24), Some(Bytes::from(content)));
    }
    tree.set(1 << 23, Some(Bytes::from(vec![seed; 1 << 20])));
    tree.seal();
    tree
}

#[test]
fn pages_are_read_and_checked_and_a_liar_only_delays() {
    let files = Files::new();
    let good = files.snapshot(8, &[0, 1, 2]);
    // The liar shows the same certificate, and gives other pages.
    let lie = Snapshot { evidence: good.evidence.clone(), tree: tree(9) };
    let (_liar, first) = files.serve(0, [lie]);
    let (_honest, second) = files.serve(1, [files.snapshot(4, &[0, 1, 3]), good.clone()]);
    let nobody = Source { replica: ReplicaId(2), admin: ([127, 0, 0, 1], 1).into() };
    let mut last = 0;
    let read = fetch::fetch(&files.config, &[nobody, first, second], &mut |bytes| last = bytes).unwrap();
    assert_eq!((read.evidence.checkpoint(), read.tree.root()), (good.evidence.checkpoint(), good.tree.root()));
    assert_eq!(last, good.tree.bytes());
    match fetch::fetch(&files.config, &[first], &mut |_| ()) {
        Err(FetchError::Incomplete(whose)) => assert!(whose[0].1.contains("it lies"), "{whose:?}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(fetch::fetch(&files.config, &[nobody], &mut |_| ()), Err(FetchError::NoAnswer(_))));

    // With a version here that differs in little, only that is asked for.
    let mut base = good.tree.clone();
    base.set(5, Some(Bytes::from_static(b"mine alone")));
    base.set(1 << 23, Some(Bytes::from_static(b"other")));
    base.seal();
    let read = fetch::fetch_difference(second, good.tree.root(), &base, &mut |_| ()).unwrap();
    assert_eq!(read.root(), good.tree.root());
}

#[test]
fn a_checkpoint_is_certain_with_the_signatures_of_a_correct_replica_among_them() {
    let files = Files::new();
    let (config, snapshot) = (&files.config, |signers: &[u8]| files.snapshot(8, signers));
    // Each replica has its own signature only: together they are enough, one is not.
    let (_a, a) = files.serve(0, [snapshot(&[0])]);
    let (_b, b) = files.serve(1, [snapshot(&[1])]);
    let read = fetch::fetch(config, &[a, b], &mut |_| ()).unwrap();
    assert_eq!(read.evidence.certificate().unwrap().signers().len(), 2);
    let alone = fetch::fetch(config, &[a], &mut |_| ());
    assert_eq!(alone.unwrap_err(), FetchError::NotCertain { signatures: 1, needed: 2 });
    // One who claims to have others' signatures has none, and spoils nobody's.
    let mut forged = snapshot(&[3]);
    let mut claim = forged.evidence.claim();
    let own = claim.signatures()[0].1;
    *claim.signatures_mut() = [0, 1, 3].map(|id| (ReplicaId(id), own)).to_vec();
    forged.evidence = Evidence::Certified(claim.believed().clone());
    let (_c, c) = files.serve(3, [forged]);
    let alone = fetch::fetch(config, &[c], &mut |_| ());
    assert_eq!(alone.unwrap_err(), FetchError::NotCertain { signatures: 1, needed: 2 });
    let read = fetch::fetch(config, &[c, a, b], &mut |_| ()).unwrap();
    assert_eq!(read.evidence.certificate().unwrap().signers().len(), 3);
    let (_d, d) = files.serve(2, []);
    assert_eq!(fetch::fetch(config, &[d], &mut |_| ()).unwrap_err(), FetchError::NoCheckpoint);
}

/// An admin port before which somebody stands who passes so many requests for the list of checkpoints on, and answers
/// nothing afterwards.
fn says_what_it_has_so_often(behind: SocketAddr, times: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let left = AtomicUsize::new(times);
    std::thread::spawn(move || {
        for mut here in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 8192];
            let Ok(count) = here.read(&mut request) else { continue };
            let asks = request.starts_with(b"GET /checkpoint");
            if asks && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() {
                continue;
            }
            let mut there = TcpStream::connect(behind).unwrap();
            there.write_all(&request[..count]).unwrap();
            let mut answer = Vec::new();
            there.read_to_end(&mut answer).unwrap();
            let _ = here.write_all(&answer);
        }
    });
    address
}

/// A correct replica shows a newer checkpoint and is then too busy to show it again; a liar shows an older one.
#[test]
fn what_is_read_never_goes_backwards() {
    let files = Files::new();
    let (config, certain) = (&files.config, |sequence| files.snapshot(sequence, &[0, 1, 2]));
    let held = certain(8);
    let here = Some((held.evidence.checkpoint(), &held.tree));
    let (_later, later) = files.serve(1, [certain(16)]);
    let (_liar, liar) = files.serve(3, [certain(4)]);
    let busy = Source { admin: says_what_it_has_so_often(later.admin, 1), ..later };
    let read = fetch::fetch_newer(config, &[busy, liar], here).unwrap().unwrap();
    assert_eq!(read.sequence(), Sequence(16));
    assert_eq!(read.tree.root(), tree(16).root());
    assert!(fetch::fetch_newer(config, &[busy, liar], here).unwrap().is_none(), "the liar alone shows nothing newer");
    let nothing = fetch::fetch_newer(config, &[liar], None).unwrap().unwrap();
    assert_eq!(nothing.sequence(), Sequence(4), "who has nothing cannot know better");
}

/// A server that does what it is told with the connections that it gets.
fn server(serve: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(serve));
    address
}

#[test]
fn an_answer_that_comes_byte_by_byte_ends_in_time() {
    let trickle = server(|mut stream| {
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let begin = Instant::now();
    assert!(admin::get(trickle, "/status").is_err());
    assert!(begin.elapsed() < Duration::from_secs(7), "{:?}", begin.elapsed());
}

/// Right pieces, one at a time, would keep a reader for as long as there are pages.
#[test]
fn who_gives_less_than_it_could_is_left() {
    let files = Files::new();
    let good = files.snapshot(8, &[0, 1, 2]);
    let (_honest, honest) = files.serve(1, [good.clone()]);
    let miser = server(move |mut stream| {
        let mut request = [0; 8192];
        let count = stream.read(&mut request).unwrap();
        let request = String::from_utf8_lossy(&request[..count]).into_owned();
        let path = request.split(' ').nth(1).unwrap();
        let body = admin::get(honest.admin, path).unwrap();
        let body = match pieces::messages(body.clone().into()) {
            Some(pieces) if path.starts_with("/state/") => bezant_core::wire::Wire::to_bytes(&pieces[0]),
            _ => body,
        };
        let _ = stream.write_all(&[b"HTTP/1.1 200 OK\r\n\r\n", &body[..]].concat());
    });
    let first = Source { replica: ReplicaId(0), admin: miser };
    match fetch::fetch(&files.config, &[first], &mut |_| ()) {
        Err(FetchError::Incomplete(whose)) => assert!(whose[0].1.contains("something else"), "{whose:?}"),
        other => panic!("{other:?}"),
    }
    let read = fetch::fetch(&files.config, &[first, honest], &mut |_| ()).unwrap();
    assert_eq!(read.tree.root(), good.tree.root());
}

#[test]
fn requests_that_are_none_are_refused() {
    let files = Files::new();
    let (_server, source) = files.serve(0, [files.snapshot(8, &[0, 1, 2])]);
    for asked in ["/state/zz", "/state/0", "/state/05", &format!("/state/{}", "01".repeat(3_000))] {
        let answer = admin::get(source.admin, asked).unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), "not a list of requests for pieces of a state\n", "{asked}");
    }
    assert_eq!(admin::get(source.admin, "/state/").unwrap(), b"");
    assert_eq!(admin::ask(source.admin, "/divergences"), Ok(serde_json::json!([])));
}

#[test]
fn every_flipped_bit_of_a_backup_is_found() {
    let files = Files::new();
    let mut snapshot = files.snapshot(8, &[0, 1, 2]);
    let mut small = Tree::new();
    small.load_pages([(0, Bytes::from_static(b"some rows")), (7, Bytes::from_static(b"more"))]);
    small.seal();
    let value = Checkpoint { root: small.root(), ..*snapshot.evidence.checkpoint() };
    snapshot = Snapshot { evidence: files.evidence(value, &[0, 2]), tree: small };
    let path = files.directory.join("a.backup");
    backup::write(&path, &files.config, ReplicaId(2), &snapshot).unwrap();
    let whole = fs::read(&path).unwrap();
    assert_eq!(backup::read(&path, &files.config).unwrap().tree.root(), snapshot.tree.root());
    let again = backup::write(&path, &files.config, ReplicaId(2), &snapshot);
    assert!(matches!(again, Err(BackupError::Exists(_))));
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, flipped).unwrap();
        assert!(backup::read(&path, &files.config).is_err(), "bit {bit}");
    }
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(backup::read(&path, &files.config).is_err(), "{length} bytes");
    }
}

#[test]
fn a_backup_with_too_few_signatures_is_not_trusted() {
    let files = Files::new();
    let path = files.directory.join("a.backup");
    backup::write(&path, &files.config, ReplicaId(2), &files.snapshot(8, &[2])).unwrap();
    assert!(matches!(backup::read(&path, &files.config), Err(BackupError::NotCertain(_))));
    let other = Files::new();
    assert!(matches!(backup::read(&path, &other.config), Err(BackupError::Foreign(_))));
    // Keys are no parameters: a cluster file with other keys for the same cluster does not trust it either.
    let signed = files.directory.join("b.backup");
    backup::write(&signed, &files.config, ReplicaId(2), &files.snapshot(8, &[0, 1, 2])).unwrap();
    let mut config = files.config.clone();
    config.replicas = other.config.replicas.clone();
    assert!(matches!(backup::read(&signed, &config), Err(BackupError::NotCertain(_))));
}
