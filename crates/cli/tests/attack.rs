//! Every attack that a client can make, and every lie of a replica, on real replicas: none costs others more than time.

mod support;

use bezant_core::auth::{Ed25519, Suite};
use bezant_core::ids::IdentityId;
use bezant_node::config::{ClusterConfig, IdentityEntry};
use bezant_node::keys;
use bezant_sim::byzantine::Adversary;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::database::Cluster;
use support::{Running, Scratch, bezant, run, spawn, testnet_with};

/// How long an attack goes on before we ask for what has to be served meanwhile: it looks for the replicas first.
const HEAD_START: Duration = Duration::from_millis(300);

/// How often an attack that has found nothing to attack yet begins again, and has more time each time.
const ATTEMPTS: u32 = 6;

/// More bytes than a batch holds of an operation itself (`inline_bytes_max`).
const BIG: usize = 1_100;

/// A cluster that names a client more: who attacks is not who has to be served.
fn start(scratch: &Scratch, options: &[&str]) -> Cluster {
    testnet_with(scratch, "net", 4, options);
    let file = scratch.path().join("net/cluster.toml");
    let mut config = ClusterConfig::load(&file).unwrap();
    let secret = keys::generate().unwrap();
    keys::save(&key_of_attacker(&file), &secret).unwrap();
    let id = IdentityId(config.identities.len() as u32);
    config.identities.push(IdentityEntry { id, name: "attacker".to_owned(), public_key: Ed25519.public(&secret) });
    fs::write(&file, config.to_toml()).unwrap();
    Cluster::run(scratch, "net")
}

fn key_of_attacker(cluster: &Path) -> PathBuf {
    cluster.with_file_name("attacker.key")
}

/// An attack under way.
struct Attack<'a> {
    kind: &'a str,
    process: Running,
}

impl<'a> Attack<'a> {
    fn begin(cluster: &str, kind: &'a str) -> Self {
        let words = ["attack", "--cluster", cluster, "--kind", kind, "--while-input", "--seconds", "300", "--json"];
        let mut command = bezant(&words);
        // Who joins has no key that the file names; who takes over has another's.
        if kind == "takeover" {
            let key = Path::new(cluster).with_file_name("another.key");
            if !key.exists() {
                keys::save(&key, &keys::generate().unwrap()).unwrap();
            }
            command.arg("--key").arg(key);
        } else if !joins(kind) {
            command.arg("--key").arg(key_of_attacker(Path::new(cluster)));
        }
        Self { kind, process: Running(spawn(&mut command)) }
    }

    /// It has gone on until now, and ends. Returns how often it did what it does.
    fn end(mut self) -> u64 {
        let kind = self.kind;
        assert!(self.process.0.try_wait().unwrap().is_none(), "{kind} ended by itself");
        let outcome = self.process.finish();
        if outcome.code == Some(1) && outcome.stderr.contains("did nothing") {
            return 0;
        }
        let did: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{kind}: {outcome:?}"));
        let count = ["attacks", "connections"].iter().find_map(|name| did[name].as_u64());
        count.unwrap_or_else(|| panic!("{kind}: {did}"))
    }
}

fn joins(kind: &str) -> bool {
    Adversary::ALL.iter().any(|it| it.label() == kind && it.needs_strangers())
}

/// What `bezant attack --kind` takes.
fn kinds() -> Vec<String> {
    let refused = run(&mut bezant(&["attack", "--kind", "nothing"]), "");
    let listed = refused.stderr.split("[possible values: ").nth(1).and_then(|rest| rest.split(']').next());
    listed.unwrap_or_else(|| panic!("{refused:?}")).split(", ").map(str::to_owned).collect()
}

#[test]
fn while_a_client_does_whatever_it_can_others_are_served() {
    let (joining, others): (Vec<String>, Vec<String>) = kinds().into_iter().partition(|kind| joins(kind));
    assert!(joining.iter().any(|kind| kind == "join-flood"), "{joining:?}");
    assert!(others.iter().any(|kind| kind == "feedback-lies"), "{others:?}");
    serves_under(&others, &["--protocol", "r-aliph"]);
    serves_under(&joining, &["--protocol", "aardvark", "--dynamic-clients"]);
}

fn serves_under(kinds: &[String], options: &[&str]) {
    let scratch = Scratch::new();
    let cluster = start(&scratch, options);
    cluster.sql("create table t(a)");
    let mut rows = 0;
    for kind in kinds {
        let mut acts = |attempt: u32| {
            let attack = Attack::begin(&cluster.file, kind);
            let began = Instant::now();
            // Whoever is served last asked when the attack was well under way, and it still is.
            let mut is_under_way = false;
            while !is_under_way {
                is_under_way = began.elapsed() >= HEAD_START * attempt;
                cluster.sql("insert into t values (1)");
                rows += 1;
            }
            attack.end() > 0
        };
        assert!((1..=ATTEMPTS).any(&mut acts), "{kind} did nothing");
        assert_eq!(cluster.sql("select count(*) from t"), [[rows.to_string()]], "after {kind}");
    }
}

/// Inserts a row, of which all replicas are told at once or one of them, and reads how many there are.
fn insert(cluster: &Cluster, rows: &mut u64, meanwhile: &str) {
    let padding = if rows.is_multiple_of(2) { BIG } else { 0 };
    cluster.sql(&format!("insert into t values (1) -- {}", "-".repeat(padding)));
    *rows += 1;
    assert_eq!(cluster.sql("select count(*) from t"), [[rows.to_string()]], "{meanwhile}");
}

/// How long a replica lies in one way.
const LASTS: Duration = Duration::from_millis(300);

/// How often what found nothing to lie about is tried: which part runs at that moment is a matter of time.
const PASSES: usize = 3;

/// How often what has to find something is tried on one cluster, and on how many: in a new one replica 0 is primary.
const PASSES_MAX: usize = 8;
const CLUSTERS_MAX: usize = 4;
/// And for how long at least on each: on a busy machine whoever attacks needs seconds to begin.
const PATIENCE: Duration = Duration::from_secs(8);

/// Every part that there is: whatever a lie is about comes up sooner or later.
const EVERY_PART: &str = "backup(pbft), ring-fast, zlight, chain, quorum, backup(aardvark)";

/// The first Backup is long enough for the lies that are about one.
const BACKUP_REQUESTS: &str = "512";

/// After how many requests there is a state that can be fetched.
const CHECKPOINT_INTERVAL: u64 = 16;

/// The lies that a robust cluster has to stand, in this order: replica 0 is the first primary until one of the later
/// ones costs it its place. What else a robust cluster has to stand is a client's.
const HAVE_TO_BE_TOLD: [Adversary; 8] = [
    Adversary::ProcessingDelay,
    Adversary::SlowByEpsilon,
    Adversary::Equivocate,
    Adversary::WithholdBody,
    Adversary::LyingSnapshot,
    Adversary::ReplicaFlood,
    Adversary::Censor,
    Adversary::LowLoadForgery,
];

/// A cluster, how many rows its clients have inserted, and how many lies its replica 0 has told.
struct Lied {
    name: &'static str,
    cluster: Cluster,
    /// It goes after the cluster.
    _scratch: Scratch,
    rows: u64,
    told: u64,
}

impl Lied {
    fn start(name: &'static str) -> Self {
        let scratch = Scratch::new();
        let interval = format!("checkpoint_interval={CHECKPOINT_INTERVAL}");
        let options = ["--protocol", name, "--backup-requests", BACKUP_REQUESTS, "--limit", &interval];
        let cluster = start(&scratch, &options);
        cluster.sql("create table t(a)");
        Self { name, cluster, _scratch: scratch, rows: 0, told: 0 }
    }

    /// Replica 0 lies so for a while, in which a client is served. Returns whether it found something to lie about.
    fn tells(&mut self, lie: Adversary) -> bool {
        // Who was honest for a moment draws anew how to lie.
        insert(&self.cluster, &mut self.rows, "honest");
        self.cluster.order(0, &format!("lie {lie}"));
        let began = Instant::now();
        while began.elapsed() < LASTS {
            insert(&self.cluster, &mut self.rows, lie.label());
        }
        let told = self.cluster.order(0, "honest");
        std::mem::replace(&mut self.told, told) < told
    }

    /// Replica 0 finds something to lie about in this way.
    fn has_to_tell(&mut self, lie: Adversary) {
        let told = (0..CLUSTERS_MAX).any(|attempt| {
            if attempt > 0 {
                *self = Self::start(self.name);
            }
            self.tells_soon(lie)
        });
        assert!(told, "{}: {lie} did nothing", self.name);
    }

    /// The same within a few passes, in which there is an occasion for it.
    fn tells_soon(&mut self, lie: Adversary) -> bool {
        let file = self.cluster.file.clone();
        // A body that nobody else has is asked for. So is the state, by who has missed much.
        let attack = (lie == Adversary::WithholdBody).then(|| Attack::begin(&file, lie.label()));
        if lie == Adversary::LyingSnapshot {
            self.leave_behind(3);
        }
        let began = Instant::now();
        let mut passes = (0..).take_while(|pass| *pass < PASSES_MAX || began.elapsed() < PATIENCE);
        let told = passes.any(|_| self.tells(lie));
        // From now on nobody is faulty but the liar.
        if lie == Adversary::LyingSnapshot {
            self.cluster.settle();
        }
        if let Some(attack) = attack {
            assert!(attack.end() > 0 || !told, "no body was withheld");
        }
        told
    }

    /// A replica is away for so long that the others no longer have what was ordered since, only the state.
    fn leave_behind(&mut self, replica: usize) {
        self.cluster.kill(replica);
        for _ in 0..2 * CHECKPOINT_INTERVAL {
            insert(&self.cluster, &mut self.rows, "one is away");
        }
        self.cluster.restart(replica);
    }
}

#[test]
fn however_a_replica_lies_clients_are_served() {
    serves_despite("pbft");
}

#[test]
fn however_a_replica_of_a_composition_lies_clients_are_served() {
    serves_despite(EVERY_PART);
}

fn serves_despite(name: &'static str) {
    let mut lied = Lied::start(name);
    let lies = Adversary::against(name.parse().unwrap());
    let lies: Vec<_> = lies.into_iter().filter(|lie| lie.corrupts_replicas() && *lie != Adversary::Twins).collect();
    let most = lies.len() * 2 / 3;
    let (mut named, mut idle): (Vec<_>, Vec<_>) = lies.into_iter().partition(|lie| HAVE_TO_BE_TOLD.contains(lie));
    named.sort_by_key(|lie| HAVE_TO_BE_TOLD.iter().position(|it| it == lie));
    named.into_iter().for_each(|lie| lied.has_to_tell(lie));
    for _ in 0..PASSES {
        idle.retain(|lie| !lied.tells(*lie));
        if idle.len() < most {
            break;
        }
    }
    // Who is no primary now, or has nobody who joins, finds nothing to lie about.
    assert!(idle.len() < most, "{name}: {idle:?} did nothing");
}
