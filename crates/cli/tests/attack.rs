//! Every attack that a client can make, and every lie of a replica, on real replicas: none costs others more than time.

mod support;

use bezant_sim::byzantine::Adversary;
use std::time::{Duration, Instant};
use support::database::Cluster;
use support::{Scratch, bezant, json_of, run};

/// What `bezant attack --kind` takes.
fn kinds() -> Vec<String> {
    let refused = run(&mut bezant(&["attack", "--kind", "nothing"]), "");
    let listed = refused.stderr.split("[possible values: ").nth(1).and_then(|rest| rest.split(']').next());
    listed.unwrap_or_else(|| panic!("{refused:?}")).split(", ").map(str::to_owned).collect()
}

#[test]
fn whatever_a_client_does_others_are_served() {
    let joins = |kind: &String| Adversary::ALL.iter().any(|it| it.label() == kind && it.needs_strangers());
    let (joining, others): (Vec<String>, Vec<String>) = kinds().into_iter().partition(|kind| joins(kind));
    assert!(joining.iter().any(|kind| kind == "join-flood"), "{joining:?}");
    assert!(others.iter().any(|kind| kind == "feedback-lies"), "{others:?}");
    serves_under(&others, &["--protocol", "r-aliph"]);
    serves_under(&joining, &["--protocol", "aardvark", "--dynamic-clients"]);
}

fn serves_under(kinds: &[String], options: &[&str]) {
    let scratch = Scratch::new();
    let cluster = Cluster::start(&scratch, "net", options);
    cluster.sql("create table t(a)");
    for (before, kind) in kinds.iter().enumerate() {
        let attack = ["attack", "--cluster", &cluster.file, "--kind", kind, "--seconds", "1"];
        let did = json_of(&attack);
        let count = ["attacks", "connections"].iter().find_map(|name| did[name].as_u64());
        assert!(count.is_some_and(|count| count > 0), "{kind}: {did}");
        cluster.sql("insert into t values (1)");
        let rows = cluster.sql("select count(*) from t");
        assert_eq!(rows, [[(before + 1).to_string()]], "after {kind}");
    }
}

/// How long a replica lies in one way.
const LASTS: Duration = Duration::from_millis(300);

/// How often what found nothing to lie about is tried: which part runs at that moment is a matter of time.
const PASSES: usize = 3;

/// Every part that there is: whatever a lie is about comes up sooner or later.
const EVERY_PART: &str = "backup(pbft), ring-fast, zlight, chain, quorum, backup(aardvark)";

/// Replica 0 lies so for a while, in which a client is served. Returns how many lies it has told so far, of any kind.
fn tells(cluster: &mut Cluster, lie: Adversary, rows: &mut u64) -> u64 {
    cluster.order(0, &format!("lie {lie}"));
    let began = Instant::now();
    while began.elapsed() < LASTS {
        cluster.sql("insert into t values (1)");
        *rows += 1;
        assert_eq!(cluster.sql("select count(*) from t"), [[rows.to_string()]], "{lie}");
    }
    cluster.order(0, "honest")
}

#[test]
fn however_a_replica_lies_clients_are_served() {
    for name in ["pbft", EVERY_PART] {
        let scratch = Scratch::new();
        let mut cluster = Cluster::start(&scratch, "net", &["--protocol", name]);
        cluster.sql("create table t(a)");
        let lies = Adversary::against(name.parse().unwrap());
        let lies: Vec<Adversary> =
            lies.into_iter().filter(|lie| lie.corrupts_replicas() && *lie != Adversary::Twins).collect();
        let (mut rows, mut told, mut idle) = (0, 0, lies.clone());
        let most = lies.len() * 2 / 3;
        for _ in 0..PASSES {
            idle.retain(|lie| {
                let before = core::mem::replace(&mut told, tells(&mut cluster, *lie, &mut rows));
                told == before
            });
            if idle.len() < most {
                break;
            }
        }
        // Who is no primary now, or has nobody who joins or fetches, finds nothing to lie about.
        assert!(idle.len() < most, "{name}: {idle:?} did nothing");
    }
}
