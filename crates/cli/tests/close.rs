//! The end of writing to a cluster, and the successor that begins with its state.

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use support::database::{Cluster, rows};
#[cfg(target_os = "linux")]
use support::terminal::Terminal;
use support::{Outcome, Scratch, bezant, run, wait_until};

fn of(words: &[&str]) -> Outcome {
    run(&mut bezant(words), "")
}

#[track_caller]
fn json_of(words: &[&str]) -> Value {
    let outcome = run(bezant(words).arg("--json"), "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[track_caller]
fn assert_refused(outcome: &Outcome, code: i32, said: &str) {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    assert!(outcome.stderr.contains(said) && outcome.stdout.is_empty(), "{outcome:?}");
}

#[test]
fn a_closed_cluster_goes_on_as_its_successor() {
    let scratch = Scratch::new();
    let cluster = Cluster::start(&scratch, "net", &["--dynamic-clients", "--limit", "view_timeout_ms=1500"]);
    let file = cluster.file.clone();
    cluster.sql("create table accounts(id integer primary key, balance int)");
    cluster.sql("insert into accounts values (1, 100), (2, 50)");
    let (early, last, next) = (scratch.join("early.backup"), scratch.join("last.backup"), scratch.join("next"));
    let renew = |backup: &str, change: &[&str]| {
        of(&[&["backup", "renew", backup, "--cluster", &file, "--dir", &next][..], change].concat())
    };

    // Before it is closed it has no successor, and it is not closed by accident.
    json_of(&["backup", "create", "--cluster", &file, "--to", &early]);
    assert_refused(&renew(&early, &[]), 2, "was not closed before this backup");
    assert_refused(&of(&["close", "--cluster", &file]), 2, "--yes says that it is meant");
    let stranger = scratch.join("stranger.key");
    of(&["client-key", "new", &stranger]);
    let joined = of(&["close", "--cluster", &file, "--key", &stranger, "--yes"]);
    assert_refused(&joined, 2, "only one that the cluster's file names");
    cluster.sql("insert into accounts values (3, 7)");

    let closed = json_of(&["close", "--cluster", &file, "--yes"])["closed"].clone();
    assert!(closed.as_u64().is_some_and(|position| position > 3), "{closed}");
    assert_eq!(json_of(&["close", "--cluster", &file, "--yes"])["closed"], closed, "once");
    let write = of(&["sql", "--cluster", &file, "insert into accounts values (4, 0)"]);
    assert_refused(&write, 1, "closed for good by its administrator");
    assert_refused(&of(&["kv", "--cluster", &file, "set", "a", "b"]), 1, "closed for good by its administrator");
    let late = of(&["kv", "--cluster", &file, "--key", &stranger, "--deadline", "20", "get", "a"]);
    assert_refused(&late, 1, "closed for good by its administrator");
    let read = "select id, balance from accounts order by id";
    let kept = rows(&[&["1", "100"], &["2", "50"], &["3", "7"]]);
    assert_eq!(cluster.sql(read), kept);
    wait_until("that all say so", || {
        let status = run(&mut bezant(&["status", "--cluster", &file, "--json"]), "");
        let said: Value = serde_json::from_str(&status.stdout).unwrap();
        status.code == Some(5) && said["replicas"].as_array().unwrap().iter().all(|replica| replica["closed"] == closed)
    });
    let said = of(&["status", "--cluster", &file]).stdout;
    assert!(said.contains(&format!("nothing can be written: the cluster is closed since request {closed}")), "{said}");

    let made = json_of(&["backup", "create", "--cluster", &file, "--to", &last]);
    assert_eq!((&made["closed"], &made["tables"][0]["rows"]), (&closed, &Value::from(3)));
    let impossible = renew(&last, &["--limit", "operation_bytes_max=8388608", "--limit", "batch_bytes_max=1024"]);
    assert_eq!((impossible.code, Path::new(&next).exists()), (Some(2), false), "{impossible:?}");
    let ready = renew(&last, &["--limit", "checkpoint_interval=64"]);
    assert!(ready.code == Some(0) && ready.stdout.contains("cp -p OLD/replica-N/key"), "{ready:?}");
    assert_refused(&renew(&last, &[]), 2, "is not empty");
    let (old_file, new_file) =
        (fs::read_to_string(&file).unwrap(), fs::read_to_string(scratch.join("next/cluster.toml")).unwrap());
    for (line, change) in [
        ("cluster_id", true),
        ("checkpoint_interval", true),
        ("genesis_root", true),
        ("public_key", false),
        ("view_timeout_ms", false),
        ("address", false),
        ("dynamic_clients", false),
    ] {
        let lines = |text: &str| text.lines().filter(|it| it.contains(line)).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&old_file) != lines(&new_file), change, "{line}");
    }

    // A replica without its two files does not start, and says what it misses.
    assert_refused(&of(&["replica", "--dir", &scratch.join("next/replica-0")]), 2, "node.toml");
    drop(cluster);
    for name in ["key", "node.toml"] {
        for id in 0..4 {
            fs::copy(
                scratch.join(&format!("net/replica-{id}/{name}")),
                scratch.join(&format!("next/replica-{id}/{name}")),
            )
            .unwrap();
        }
    }
    fs::copy(scratch.join("net/client.key"), scratch.join("next/client.key")).unwrap();
    let successor = Cluster::run(&scratch, "next");
    assert_eq!(successor.sql(read), kept);
    successor.sql("insert into accounts values (4, 0)");
    let stale = run(&mut bezant(&["backup", "verify", &last, "--cluster", &successor.file]), "");
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
    assert!(made["closed"].is_u64() && made["tables"][0]["rows"] == 1 || made["tables"][1]["rows"] == 1, "{made}");
}
