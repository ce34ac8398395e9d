//! Memory of real replicas under floods: below a bound that is the sum of named constants.
#![cfg(target_os = "linux")]

mod support;

use bezant_core::auth::{Ed25519, Keyring, Suite};
use bezant_core::ids::{ClientId, Principal, ReplicaId};
use bezant_core::wire::{FRAME_BYTES_MAX, Rope, Sink};
use bezant_node::config::ClusterConfig;
use bezant_node::keys;
use bezant_node::net::{CLIENT_BUFFERS_BYTES_MAX, Channel, Event, Hub, HubOptions, Lane, LinkId, Peer};
use bezant_node::replica::memory_max;
use bytes::Bytes;
use std::path::Path;
use std::time::{Duration, Instant};
use support::database::Cluster;
use support::{Running, Scratch, bezant, run, spawn, testnet_with};

/// What is so small that the bound is not far above what floods reach.
const LIMITS: [&str; 9] = [
    "pending_requests_max=1024",
    "pending_bytes_max=4194304",
    "pending_reads_max=1024",
    "sessions_per_identity_max=64",
    "operation_bytes_max=65536",
    "batch_bytes_max=65536",
    "batch_requests_max=64",
    "checkpoint_interval=16",
    "history_interval=32",
];

/// Bytes of the longest result that anybody asks for here.
const RESULT: u64 = 64 << 10;

/// The replica that lies. It may hold what it likes.
const LIAR: usize = 0;
/// What it says in all at least: a fifth of what it does while compilers use both cores.
const LIES_MIN: u64 = 10_000;
/// The replica whose buffers are filled.
const VICTIM: usize = 1;
/// Floods of clients, and for how many seconds each comes alone, and with all others.
const FLOODS: [&str; 6] =
    ["client-flood", "session-flood", "many-sessions", "withhold-body", "malformed", "connect-flood"];
const ALONE: &str = "1";
const TOGETHER: &str = "3";

/// Connections that hold back the end of a frame: more than there is room for with all of the rest.
const HOARDERS: u32 = 240;
/// How long they take at most.
const HOARDING: Duration = Duration::from_secs(15);

/// What the system counts of a process, in bytes.
fn counted(process: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    1_024 * kilobytes.unwrap_or_else(|| panic!("{what} in {status}"))
}

const fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

/// Replicas that are flooded, and what each may take.
struct Flooded {
    cluster: Cluster,
    bound: Vec<u64>,
}

impl Flooded {
    /// The most that each has taken is below its bound. Returns that of the victim.
    #[track_caller]
    fn check(&self, after: &str) -> u64 {
        let took = [0, 1, 2, 3].map(|id| counted(self.cluster.process(id), "VmHWM"));
        println!("after {after:15} {:?} MiB at most", took.map(mib));
        for (id, took) in took.iter().enumerate().filter(|(id, _)| *id != LIAR) {
            assert!(
                *took < self.bound[id],
                "replica {id} took {} of {} MiB after {after}",
                mib(*took),
                mib(self.bound[id])
            );
        }
        took[VICTIM]
    }
}

/// Lets a client of its own attack.
fn attack(file: &str, kind: &str, seconds: &str) -> Running {
    let key = key_of(file, "flooder");
    let arguments = ["attack", "--cluster", file, "--kind", kind, "--seconds", seconds, "--key", &key];
    Running(spawn(&mut bezant(&arguments)))
}

/// The key of a client.
fn key_of(file: &str, client: &str) -> String {
    file.replace("cluster.toml", &format!("{client}.key"))
}

/// A cluster with three clients: one that is to be served, one that floods, and one that hoards. Whoever floods is in
/// quarantine soon, and has no chance to hoard.
fn start(scratch: &Scratch) -> Cluster {
    let mut options = vec!["--protocol", "r-aliph", "--durability", "memory", "--channel", "plain"];
    options.extend(LIMITS.iter().flat_map(|limit| ["--limit", limit]));
    testnet_with(scratch, "net", 4, &options);
    let file = scratch.join("net/cluster.toml");
    let mut cluster = std::fs::read_to_string(&file).unwrap();
    for (id, name) in [(1, "flooder"), (2, "hoarder")] {
        let made = run(&mut bezant(&["client-key", "new", &key_of(&file, name)]), "");
        assert_eq!(made.code, Some(0), "{made:?}");
        let key = made.stdout.trim();
        cluster += &format!("\n[[identity]]\nid = {id}\nname = \"{name}\"\npublic_key = \"{key}\"\n");
    }
    std::fs::write(&file, cluster).unwrap();
    Cluster::run(scratch, "net")
}

/// Many connections of one client, each with the beginning of the longest frame there is.
struct Hoard {
    hub: Hub,
    up: u32,
    closed: u32,
}

impl Hoard {
    fn begin(file: &str, replica: usize) -> Self {
        let config = ClusterConfig::load(Path::new(file)).unwrap();
        let secret = keys::load(Path::new(&key_of(file, "hoarder"))).unwrap();
        let identity = config.identity_of(&Ed25519.public(&secret)).unwrap().id;
        let me = Principal::Client(ClientId { identity, session: 0 });
        let keyring = Keyring::new(&Ed25519, &config.to_cluster(), me, secret, config.public_keys()).unwrap();
        let mut hub = Hub::new(HubOptions::new(keyring, Channel::Plain)).unwrap();
        let address = config.replicas[replica].client_address.resolve().unwrap();
        for first in 0..HOARDERS {
            let who = Peer::Client { identity, first: 1_000 + first, sessions: 1 };
            hub.dial(address, ReplicaId(replica as u8), who).unwrap();
        }
        let mut hoard = Self { hub, up: 0, closed: 0 };
        let mut frame = Rope::new();
        frame.share(&Bytes::from(vec![7; FRAME_BYTES_MAX - 64]));
        let began = Instant::now();
        // What the system takes is read, and nobody writes the rest.
        while began.elapsed() < HOARDING
            && (hoard.up < HOARDERS || hoard.hub.pending() > HOARDERS as usize * FRAME_BYTES_MAX / 10)
        {
            for link in hoard.listen() {
                hoard.hub.send(link, Lane::Usual, &frame, &[]);
            }
            hoard.hub.flush();
        }
        let left = mib(hoard.hub.pending() as u64);
        println!(
            "{} connections, {} closed, {left} MiB kept back, after {:?}",
            hoard.up,
            hoard.closed,
            began.elapsed()
        );
        assert_eq!(hoard.up, HOARDERS, "all were let in");
        hoard
    }

    /// Hears what has become of the connections. Returns those that are new.
    fn listen(&mut self) -> Vec<LinkId> {
        self.hub.poll(Some(Duration::from_millis(5))).unwrap();
        let mut new = Vec::new();
        while let Some(event) = self.hub.next_event() {
            match event {
                Event::Up(link, _) => new.push(link),
                Event::Down(..) => self.closed += 1,
                Event::Frame(..) => {}
            }
        }
        self.up += new.len() as u32;
        new
    }
}

#[test]
fn floods_take_no_more_memory_than_the_bounds_say() {
    let scratch = Scratch::new();
    let cluster = start(&scratch);
    cluster.sql("create table t(a)");
    (0..20).for_each(|_| drop(cluster.sql("insert into t values (1)")));
    let config = ClusterConfig::load(Path::new(&cluster.file)).unwrap();
    let (identities, connections) = (config.identities.len() as u64, u64::from(HOARDERS) + 16);
    let terms = memory_max(&config.to_cluster(), identities, connections, RESULT);
    terms.iter().for_each(|(name, bytes)| println!("{:>5} MiB  {name}", mib(*bytes)));
    let sum: u64 = terms.iter().map(|(_, bytes)| bytes).sum();
    let quiet: Vec<u64> = (0..4).map(|id| counted(cluster.process(id), "VmRSS")).collect();
    println!(
        "{:>5} MiB  in all; before the floods {:?} MiB",
        mib(sum),
        quiet.iter().map(|it| mib(*it)).collect::<Vec<_>>()
    );
    let bound: Vec<u64> = quiet.iter().map(|quiet| quiet + sum).collect();
    let mut flooded = Flooded { cluster, bound };

    flooded.cluster.order(LIAR, "lie replica-flood");
    for kind in FLOODS {
        assert!(attack(&flooded.cluster.file, kind, ALONE).wait().success(), "{kind}");
        flooded.check(kind);
    }
    let mut hoard = Hoard::begin(&flooded.cluster.file, VICTIM);
    flooded.check("hoard");
    let floods = FLOODS.map(|kind| attack(&flooded.cluster.file, kind, TOGETHER));
    for mut flood in floods {
        assert!(flood.wait().success());
    }
    let lies = flooded.cluster.order(LIAR, "honest");
    println!("{lies} frames of a replica's flood");
    assert!(lies > LIES_MIN, "{lies} frames are no flood");
    let most = flooded.check("all together");
    hoard.listen();
    let closed = hoard.closed;
    println!("{} % of the bound; {closed} connections gave way", 100 * most / flooded.bound[VICTIM]);
    assert!(closed > 0, "the buffers were full");
    assert!(most > CLIENT_BUFFERS_BYTES_MAX as u64 * 3 / 4, "and they are what it takes");
    flooded.cluster.sql("insert into t values (1)");
}
