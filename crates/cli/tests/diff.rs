//! `bezant diff`, and the demo's liar.

mod support;

use serde_json::{Value, json};
use std::fs;
use support::database::{Cluster, rows};
use support::{Scratch, bezant, run, wait_until};

/// Runs `diff`. Returns its exit code and its answer.
fn diff(cluster: &Cluster) -> (Option<i32>, Value) {
    let outcome = run(&mut bezant(&["diff", "--cluster", &cluster.file, "--json"]), "");
    (outcome.code, serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}")))
}

/// What `diff` says once a replica has found that its state was altered.
fn repaired(cluster: &Cluster) -> Value {
    let mut last = Value::Null;
    wait_until("the repair", || {
        let (code, found) = diff(cluster);
        last = found;
        code == Some(4) && last["records"] != json!([])
    });
    last
}

#[test]
fn a_row_that_was_altered_is_named_and_repaired() {
    for protocol in ["pbft", "aliph"] {
        let scratch = Scratch::new();
        let mut cluster = Cluster::start(&scratch, "net", &["--protocol", protocol]);
        cluster.sql("create table accounts(id integer primary key, owner text, balance int)");
        cluster.sql("insert into accounts values (1, 'ada', 100), (2, 'bob', 50)");
        let (code, same) = diff(&cluster);
        assert_eq!((code, &same["different"], &same["records"]), (Some(0), &json!(false), &json!([])), "{same}");

        cluster.order(2, "lie intruder");
        let read = "select balance from accounts order by id";
        for _ in 0..5 {
            assert_eq!(cluster.sql(read), rows(&[&["100"], &["50"]]), "{protocol}");
        }
        cluster.order(2, "honest");
        let last = repaired(&cluster);
        let record = &last["records"][0];
        assert_eq!(record["replica"], 2, "{last}");
        let expected = json!([{ "table": "accounts", "row": "1", "column": "balance", "mine": "1000100",
            "agreed": "100" }]);
        assert_eq!(record["differences"], expected, "{protocol}: {last}");
        assert_eq!((&last["live"], &last["groups"].as_array().unwrap().len()), (&json!([]), &1), "{last}");
        let places = record["places"].as_array().unwrap();
        assert!(places.iter().any(|place| place["holds"] == "table accounts"), "{record}");
        if protocol == "pbft" {
            // The others may have gone on meanwhile: a later state says nothing about what led to this one.
            let is_comparable = record["repaired_at"] == record["sequence"];
            let cause = if is_comparable { "beside the requests" } else { "unknown" };
            assert_eq!(record["cause"], cause, "{record}");
        }

        // It answers rightly from now on, so that its answer can be the one that is needed.
        cluster.kill(0);
        assert_eq!(cluster.sql(read), rows(&[&["100"], &["50"]]), "{protocol}");
        let status = run(&mut bezant(&["status", "--cluster", &cluster.file, "--json"]), "");
        let status: Value = serde_json::from_str(&status.stdout).unwrap();
        assert_eq!(status["replicas"][2]["divergences"], 1, "{status}");

        // The record survives a restart, with the pages.
        let file = scratch.join("net/replica-2/divergence/1.json");
        let kept: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let pages = kept["pages"].as_array().unwrap();
        assert!(pages.iter().any(|page| page["mine"] != page["agreed"]), "{protocol}");
        cluster.kill(2);
        cluster.restart(0);
        cluster.restart(2);
        let (code, found) = diff(&cluster);
        assert_eq!((code, &found["records"]), (Some(4), &last["records"]));
    }
}

/// As with an order, and after all that its log had.
#[test]
fn a_replica_that_starts_with_an_intruder_has_a_row_altered() {
    let scratch = Scratch::new();
    let mut cluster = Cluster::start(&scratch, "net", &["--protocol", "pbft"]);
    cluster.sql("create table accounts(id integer primary key, owner text, balance int)");
    cluster.sql("insert into accounts values (1, 'ada', 100), (2, 'bob', 50)");
    cluster.settle();
    cluster.kill(2);
    cluster.restart_with(2, &["--lie", "intruder"]);
    for _ in 0..5 {
        assert_eq!(cluster.sql("select balance from accounts order by id"), rows(&[&["100"], &["50"]]));
    }
    cluster.order(2, "honest");
    let last = repaired(&cluster);
    let difference = &last["records"][0]["differences"][0];
    assert_eq!((&difference["mine"], &difference["agreed"]), (&json!("1000100"), &json!("100")), "{last}");
}

#[test]
fn the_demo_names_the_altered_row() {
    let script = "create table t(id integer primary key, a text, b int);\n\
        insert into t values (1, 'x', 5), (2, 'y', 6);\n\
        diff\nlie 2\nselect b from t;\ndiff\nhonest 2\nselect b from t;\nquit\n";
    let outcome = run(&mut bezant(&["demo"]), script);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    let lines: Vec<_> = outcome.stdout.lines().collect();
    assert!(lines[0].starts_with("Now replicas 0, 1, 2, 3 have the same state"), "{outcome:?}");
    assert!(lines[1].starts_with("replica 2 lying: ") && lines[2..4] == ["5", "6"], "{lines:?}");
    assert!(lines[4].starts_with("Replica 2 had another state than the others"), "{outcome:?}");
    assert_eq!(lines[5], "  table t, row 1, column b: it had 1000005, the others 5");
    // A read that was ordered, because a replica was late, shows in the history what the altered state gave.
    let explained = ["it was changed beside them", "The first difference is in batches"];
    assert!(explained.iter().any(|why| lines[7].contains(why)), "{outcome:?}");
    let [before, honest, rest @ ..] = &lines[lines.len() - 4..] else { panic!("{outcome:?}") };
    assert!(before.starts_with("Now replicas 0, 1, 2, 3 have the same state"), "{outcome:?}");
    assert!(honest.starts_with("replica 2 honest"), "{outcome:?}");
    assert_eq!(rest, ["5", "6"]);
}

#[test]
fn without_tables_it_is_a_value_of_a_key() {
    // The first comparison waits until replica 2, too, has what it will alter.
    let outcome = run(&mut bezant(&["demo"]), "set color blue\ndiff\nlie 2\nget color\ndiff\nquit\n");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    assert!(outcome.stdout.contains("\n  key color: it had a lie, the others blue\n"), "{outcome:?}");
}

/// A snapshot that rotted is not used. With the operator's word the replica fetches the state from the others.
#[test]
fn a_damaged_snapshot_is_refused_and_replaced_by_the_others_state() {
    let scratch = Scratch::new();
    let mut cluster = Cluster::start(&scratch, "net", &["--limit", "checkpoint_interval=64"]);
    cluster.sql("create table t(a)");
    cluster.kill(2);
    cluster.sql("insert into t values ('kept')");
    assert_eq!(diff(&cluster).0, Some(0), "three replicas have a checkpoint without it");
    assert_eq!(diff(&cluster).0, Some(0));
    assert_eq!(diff(&cluster).0, Some(0));
    cluster.restart(2);
    let dir = scratch.join("net/replica-2");
    let snapshot = || {
        let files = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        files.into_iter().find(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("snapshot-") && name.ends_with(".bin")
        })
    };
    wait_until("the state that it missed", || {
        diff(&cluster);
        snapshot().is_some()
    });
    cluster.kill(2);
    let path = snapshot().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let refused = run(&mut bezant(&["replica", "--dir", &dir]), "");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("is damaged at byte") && refused.stderr.contains("--recover-lost-log"));
    cluster.restart_with(2, &["--recover-lost-log"]);
    wait_until("the repair", || {
        let (code, found) = diff(&cluster);
        code == Some(0) && found["groups"][0]["replicas"] == json!([0, 1, 2, 3])
    });
}
