//! The end of writing to a cluster, and the successor that begins with its state.

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use support::database::{Cluster, rows};
#[cfg(target_os = "linux")]
use support::terminal::Terminal;
use support::{Outcome, Scratch, assert_refused, bezant, json_of, run, wait_until};

fn of(words: &[&str]) -> Outcome {
    run(&mut bezant(words), "")
}

const READ: &str = "select id, balance from accounts order by id";

/// A cluster with three rows, closed, and where that was.
fn closed(scratch: &Scratch) -> (Cluster, Value) {
    let cluster = Cluster::start(scratch, "net", &["--dynamic-clients", "--limit", "view_timeout_ms=1500"]);
    cluster.sql("create table accounts(id integer primary key, balance int)");
    cluster.sql("insert into accounts values (1, 100), (2, 50), (3, 7)");
    let at = json_of(&["close", "--cluster", &cluster.file, "--yes"])["closed"].clone();
    (cluster, at)
}

fn kept() -> Vec<Vec<String>> {
    rows(&[&["1", "100"], &["2", "50"], &["3", "7"]])
}

fn renew(scratch: &Scratch, backup: &str, change: &[&str]) -> Outcome {
    let (file, next) = (scratch.join("net/cluster.toml"), scratch.join("next"));
    of(&[&["backup", "renew", backup, "--cluster", &file, "--dir", &next][..], change].concat())
}

#[test]
fn an_open_cluster_has_no_successor_and_is_closed_by_no_accident() {
    let scratch = Scratch::new();
    let cluster = Cluster::start(&scratch, "net", &["--dynamic-clients"]);
    cluster.sql("create table t(a)");
    let (file, early, stranger) = (&cluster.file, scratch.join("early.backup"), scratch.join("stranger.key"));
    assert_eq!(json_of(&["backup", "create", "--cluster", file, "--to", &early])["closed"], Value::Null);
    assert_refused(&renew(&scratch, &early, &[]), 2, "was not closed before this backup");
    assert!(!Path::new(&scratch.join("next")).exists());
    assert_refused(&of(&["close", "--cluster", file]), 2, "--yes says that it is meant");
    of(&["client-key", "new", &stranger]);
    let joined = of(&["close", "--cluster", file, "--key", &stranger, "--yes"]);
    assert_refused(&joined, 2, "only one that the cluster's file names");
    cluster.sql("insert into t values (1)");
    // Who is named is an administrator until somebody says otherwise.
    let public = of(&["client-key", "show", &scratch.join("net/client.key")]).stdout;
    cluster.sql(&format!("insert into bezant_members values ('{}', 'writer', null)", public.trim()));
    let refused = of(&["close", "--cluster", file, "--yes"]);
    assert_refused(&refused, 1, "only an administrator may close it");
    cluster.sql("insert into t values (2)");
}

#[test]
fn a_closed_cluster_is_read_and_not_written() {
    let scratch = Scratch::new();
    let (cluster, at) = closed(&scratch);
    let file = &cluster.file;
    assert!(at.as_u64().is_some_and(|position| position > 2), "{at}");
    assert_eq!(json_of(&["close", "--cluster", file, "--yes"])["closed"], at, "once");
    let why = "closed for good by its administrator";
    assert_refused(&of(&["sql", "--cluster", file, "insert into accounts values (4, 0)"]), 1, why);
    assert_refused(&of(&["kv", "--cluster", file, "set", "a", "b"]), 1, why);
    let stranger = scratch.join("stranger.key");
    of(&["client-key", "new", &stranger]);
    assert_refused(&of(&["kv", "--cluster", file, "--key", &stranger, "get", "a"]), 1, why);
    assert_eq!(cluster.sql(READ), kept());
    wait_until("that all say so", || {
        let status = run(&mut bezant(&["status", "--cluster", file, "--json"]), "");
        let said: Value = serde_json::from_str(&status.stdout).unwrap();
        status.code == Some(5) && said["replicas"].as_array().unwrap().iter().all(|replica| replica["closed"] == at)
    });
    let said = of(&["status", "--cluster", file]).stdout;
    assert!(said.contains(&format!("nothing can be written: the cluster is closed since request {at}")), "{said}");
}

#[test]
fn a_closed_cluster_goes_on_as_its_successor() {
    let scratch = Scratch::new();
    let (cluster, at) = closed(&scratch);
    let (file, last) = (cluster.file.clone(), scratch.join("last.backup"));
    let made = json_of(&["backup", "create", "--cluster", &file, "--to", &last]);
    assert_eq!((&made["closed"], &made["tables"][0]["rows"]), (&at, &Value::from(3)));
    let impossible = renew(&scratch, &last, &["--limit", "operation_bytes_max=8388608"]);
    assert_eq!((impossible.code, Path::new(&scratch.join("next")).exists()), (Some(2), false), "{impossible:?}");
    let ready = renew(&scratch, &last, &["--limit", "checkpoint_interval=64"]);
    assert!(ready.code == Some(0) && ready.stdout.contains("cp -p OLD/replica-N/key"), "{ready:?}");
    assert_refused(&renew(&scratch, &last, &[]), 2, "is not empty");
    let [old, new] = ["net", "next"].map(|dir| fs::read_to_string(scratch.join(dir) + "/cluster.toml").unwrap());
    let changed = |word: &str| {
        let lines = |text: &str| text.lines().filter(|it| it.contains(word)).map(str::to_owned).collect::<Vec<_>>();
        assert!(!lines(&new).is_empty(), "{word}");
        lines(&old) != lines(&new)
    };
    assert!(["cluster_id", "checkpoint_interval", "genesis_root"].into_iter().all(changed), "{new}");
    assert!(!["public_key", "view_timeout_ms", "address", "dynamic_clients"].into_iter().any(changed), "{new}");

    // A replica without its two files does not start, and says what it misses.
    assert_refused(&of(&["replica", "--dir", &scratch.join("next/replica-0")]), 2, "node.toml");
    drop(cluster);
    let keys = (0..4).flat_map(|id| ["key", "node.toml"].map(|name| format!("replica-{id}/{name}")));
    for name in keys.chain(["client.key".to_owned()]) {
        fs::copy(scratch.join("net/") + &name, scratch.join("next/") + &name).unwrap();
    }
    let successor = Cluster::run(&scratch, "next");
    assert_eq!(successor.sql(READ), kept());
    successor.sql("insert into accounts values (4, 0)");
    let stale = of(&["backup", "verify", &last, "--cluster", &successor.file]);
    assert_refused(&stale, 2, "is of another cluster");
    // Nobody takes it for the old one.
    assert_ne!(of(&["kv", "--cluster", &file, "--deadline", "2", "get", "a"]).code, Some(0));
    wait_until("that the successor is well", || of(&["status", "--cluster", &successor.file]).code == Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_person_is_asked_before_a_cluster_is_closed() {
    let scratch = Scratch::new();
    let cluster = Cluster::start(&scratch, "net", &["--protocol", "aliph"]);
    cluster.sql("create table t(a)");
    let close = |answer: &str| {
        let mut terminal = Terminal::start(&scratch, &["close", "--cluster", &cluster.file]);
        terminal.expect("that cannot be taken back");
        terminal.expect("[y/N]");
        terminal.press(&format!("{answer}\r"));
        (terminal.end(), terminal.text)
    };
    let (code, said) = close("");
    assert!(code == Some(1) && said.contains("it is as it was"), "{said}");
    cluster.sql("insert into t values (1)");
    let (code, said) = close("y");
    assert!(code == Some(0) && said.contains("bezant backup renew"), "{said}");
    let write = of(&["sql", "--cluster", &cluster.file, "insert into t values (2)"]);
    assert_refused(&write, 1, "closed for good");
    let last = scratch.join("last.backup");
    let made = json_of(&["backup", "create", "--cluster", &cluster.file, "--to", &last]);
    let rows: Vec<_> = made["tables"].as_array().unwrap().iter().map(|table| table["rows"].clone()).collect();
    assert!(made["closed"].is_u64() && rows.contains(&Value::from(1)), "{made}");
}
