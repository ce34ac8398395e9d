//! Backups, exports and restored clusters, as an operator makes them.

mod support;

use rusqlite::Connection;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use support::database::{Cluster, rows};
use support::{Scratch, assert_refused, bezant, free_ports, json_of, run};

fn files(scratch: &Scratch) -> Vec<String> {
    let names = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn a_backup_has_what_was_acknowledged_and_makes_a_new_cluster() {
    let scratch = Scratch::new();
    let cluster = Cluster::start(&scratch, "net", &[]);
    cluster.sql("create table accounts(id integer primary key, owner text, balance int)");
    cluster.sql("insert into accounts values (1, 'ada', 100), (2, 'bob', 50)");
    let (file, backup) = (&cluster.file, scratch.join("a.backup"));
    let made = json_of(&["backup", "create", "--cluster", file, "--to", &backup]);
    assert_eq!(made["tables"], json!([{"name": "accounts", "rows": 2}, {"name": "bezant_members", "rows": 0}]));
    // f+1 are enough; who asks early finds no more.
    assert!(made["signers"].as_array().unwrap().len() >= 2, "{made}");
    assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);

    // A checkpoint as it is, from one replica alone, has no later row.
    cluster.sql("insert into accounts values (3, 'eve', 7)");
    cluster.settle();
    let last = scratch.join("last.backup");
    let older = json_of(&["backup", "create", "--cluster", file, "--to", &last, "--last", "--replica", "2"]);
    assert_eq!(older["tables"][0]["rows"], 2);
    let again = run(&mut bezant(&["backup", "create", "--cluster", file, "--to", &backup]), "");
    assert_refused(&again, 2, "exists: choose another name");

    // Live, and from the folder of a stopped replica.
    let (live, plain, offline) =
        (scratch.join("live.sqlite"), scratch.join("plain.sqlite"), scratch.join("off.sqlite"));
    assert_eq!(json_of(&["export", "--cluster", file, "--to", &live])["tables"][0]["rows"], 3);
    json_of(&["export", "--cluster", file, "--backup", &backup, "--to", &plain]);
    let dir = scratch.join("net/replica-1");
    assert_refused(&run(&mut bezant(&["export", "--dir", &dir, "--to", &offline]), ""), 1, "in use");
    cluster.settle();
    drop(cluster);
    json_of(&["export", "--dir", &dir, "--to", &offline]);
    for (path, expected) in [(&live, 3), (&plain, 2), (&offline, 3)] {
        let database = Connection::open(path).unwrap();
        let check: String = database.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
        let count: i64 = database.query_row("select count(*) from accounts", [], |row| row.get(0)).unwrap();
        assert_eq!((check.as_str(), count), ("ok", expected), "{path}");
    }

    // Nothing runs any more, and the backup is as good as before.
    let file = scratch.join("net/cluster.toml");
    assert_eq!(json_of(&["backup", "verify", &backup, "--cluster", &file])["root"], made["root"]);
    let (new, port) = (scratch.join("new"), free_ports(40).to_string());
    let restore = ["backup", "restore", &backup, "--cluster", &file, "--dir", &new, "--base-port", &port];
    json_of(&restore);
    assert_refused(&run(&mut bezant(&restore), ""), 2, "is not empty");
    let restored = Cluster::run(&scratch, "new");
    let read = "select id, owner, balance from accounts order by id";
    assert_eq!(restored.sql(read), rows(&[&["1", "ada", "100"], &["2", "bob", "50"]]));
    restored.sql("update accounts set balance = balance - 1 where id = 2");
    let made = json_of(&["backup", "create", "--cluster", &restored.file, "--to", &scratch.join("b.backup")]);
    assert_eq!(made["tables"][0]["rows"], 2);
    let foreign = run(&mut bezant(&["backup", "verify", &backup, "--cluster", &restored.file]), "");
    assert_refused(&foreign, 2, "is of another cluster");
}

/// The state that a restored cluster begins with is a parameter of it: no replica runs without it, or with another.
#[test]
fn a_restored_replica_needs_the_state_that_the_cluster_began_with() {
    let scratch = Scratch::new();
    let cluster = Cluster::start(&scratch, "net", &["--protocol", "aliph"]);
    cluster.sql("create table t(a)");
    cluster.sql("insert into t values ('kept')");
    let backup = scratch.join("a.backup");
    json_of(&["backup", "create", "--cluster", &cluster.file, "--to", &backup]);
    let port = free_ports(40).to_string();
    let restore = ["--base-port", &port, "--protocol", "aliph"];
    let new = scratch.join("new");
    json_of(&[&["backup", "restore", &backup, "--cluster", &cluster.file, "--dir", &new][..], &restore].concat());
    drop(cluster);
    let (mine, other) = (scratch.join("new/replica-3/genesis.bin"), scratch.join("new/replica-0/genesis.bin"));
    let start = || run(&mut bezant(&["replica", "--dir", &scratch.join("new/replica-3")]), "");
    fs::remove_file(&mine).unwrap();
    assert_refused(&start(), 1, "copy the file from another replica's folder");
    let mut damaged = fs::read(&other).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&mine, damaged).unwrap();
    assert_refused(&start(), 1, "is damaged");
    fs::copy(&backup, &mine).unwrap();
    assert_refused(&start(), 1, "is of another cluster");
    fs::copy(&other, &mine).unwrap();
    let restored = Cluster::run(&scratch, "new");
    assert_eq!(restored.sql("select a from t"), rows(&[&["kept"]]));
}

#[test]
fn what_is_no_backup_is_refused() {
    let scratch = Scratch::new();
    let cluster = Cluster::start(&scratch, "net", &[]);
    let (file, backup) = (&cluster.file, scratch.join("a.backup"));
    json_of(&["backup", "create", "--cluster", file, "--to", &backup]);
    let whole = fs::read(&backup).unwrap();
    let damaged = scratch.join("damaged.backup");
    let verify = |bytes: &[u8]| {
        fs::write(&damaged, bytes).unwrap();
        run(&mut bezant(&["backup", "verify", &damaged, "--cluster", file]), "")
    };
    for length in [0, 1, 63, 64, whole.len() / 2, whole.len() - 1] {
        assert_refused(&verify(&whole[..length]), 1, "is damaged at byte");
    }
    for foreign in [&b"-- a dump\n"[..], b"SQLite format 3\0", &[0; 4096]] {
        assert_refused(&verify(foreign), 1, "is neither a backup nor a replica's snapshot");
    }
    for place in (0..whole.len()).step_by(whole.len() / 16) {
        let mut flipped = whole.clone();
        flipped[place] ^= 1 << (place % 8);
        let outcome = verify(&flipped);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "byte {place}: {outcome:?}");
        let new = scratch.join("new");
        let restore = run(&mut bezant(&["backup", "restore", &damaged, "--cluster", file, "--dir", &new]), "");
        assert_eq!((restore.code, fs::exists(&new).unwrap()), (Some(1), false), "{restore:?}");
    }
    assert_refused(&verify(&[&whole[..], b"more"].concat()), 1, "is damaged");
    let missing = run(&mut bezant(&["backup", "verify", &scratch.join("none"), "--cluster", file]), "");
    assert_refused(&missing, 1, "cannot be read");
}

/// A file that cannot grow stands for a disk that is full.
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let cluster = Cluster::start(&scratch, "net", &[]);
    cluster.sql("create table t(a)");
    cluster.sql("insert into t values (randomblob(20000))");
    let before = files(&scratch);
    let to = scratch.join("a");
    for command in [["backup", "create"].as_slice(), &["export"]] {
        let words = [command, &["--cluster", &cluster.file, "--to", &to]].concat();
        let limited = "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"";
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(limited).arg(env!("CARGO_BIN_EXE_bezant")).args(words);
        assert_refused(&run(&mut shell, ""), 1, "cannot be written, nothing is left of it");
        assert_eq!(files(&scratch), before);
    }
}
