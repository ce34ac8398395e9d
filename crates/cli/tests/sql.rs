//! `bezant sql`, as scripts and people use it.

mod support;

use rusqlite::Connection;
use rustix::process::Signal;
use std::fs;
use support::{Outcome, Running, Scratch, bezant, run, settle, spawn, testnet};

/// Replicas that run, and how to ask them.
struct Server {
    scratch: Scratch,
    replicas: Vec<Running>,
}

impl Server {
    fn start(replicas: u16) -> Self {
        let scratch = Scratch::new();
        testnet(&scratch, "net", replicas);
        let start = |number| {
            Running(spawn(&mut bezant(&["replica", "--dir", &scratch.join(&format!("net/replica-{number}"))])))
        };
        Self { replicas: (0..replicas).map(start).collect(), scratch }
    }

    fn ask(&self, flags: &[&str], input: &str) -> Outcome {
        run(bezant(&["sql", "--cluster", &self.scratch.join("net/cluster.toml")]).args(flags), input)
    }

    /// What a script prints, if all goes well.
    #[track_caller]
    fn script(&self, text: &str) -> String {
        let outcome = self.ask(&[], text);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout
    }

    #[track_caller]
    fn assert_refused(&self, text: &str, code: i32, said: &str) {
        let outcome = self.ask(&[text], "");
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(outcome.stderr.contains(said), "{outcome:?}");
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn one_shot_scripts_and_forms() {
    let server = Server::start(1);
    assert_eq!(server.ask(&["create table t(a integer primary key, b)"], "").code, Some(0));
    assert_eq!(server.script("insert into t\nvalues (1, 'x;\ny');; select b from t; select 2 as two"), "x;\ny\n2\n");
    let json = server.ask(&["--json", "select 9007199254740993 as big, 1 as a, 2 as a, x'00ff' as b, null as n"], "");
    assert_eq!(json.stdout, "[{\"big\":\"9007199254740993\",\"a\":1,\"a\":2,\"b\":\"00ff\",\"n\":null}]\n");
    assert_eq!(
        server.ask(&["--json", "insert into t(b) values (0)"], "").stdout,
        "{\"changes\":1,\"last_insert_rowid\":2}\n"
    );
    assert_eq!(server.ask(&["--csv", "select * from t"], "").stdout, "a,b\n1,\"x;\ny\"\n2,0\n");
    assert_eq!(server.script(".mode line\n.nullvalue nil\nselect null as n, 1 as one;"), "  n = nil\none = 1\n");
    assert_eq!(server.script(".headers on\nselect 1 as a, 2 as b;\n.headers off\nvalues (3);"), "a|b\n1|2\n3\n");
    assert_eq!(
        server.script("create view v as select 1;\ncreate index i on t(b);\n.tables\n.indexes\n.tables v%"),
        "t\nv\ni\nv\n"
    );
    assert_eq!(server.script(".schema t"), "CREATE TABLE t(a integer primary key, b);\nCREATE INDEX i on t(b);\n");
    assert!(server.script(".status").contains("n = 1"));
}

#[test]
fn a_transaction_is_sent_as_one() {
    let server = Server::start(1);
    let text =
        "create table t(a integer primary key);\nbegin;\ninsert into t values (1);\nselect count(*) from t;\ncommit;";
    assert_eq!(server.script(text), "1\n");
    assert_eq!(server.script("begin transaction; delete from t; rollback; select count(*) from t;"), "1\n");
    let failed =
        server.ask(&[], "begin; insert into t values (2); insert into t values (1); end; select count(*) from t;");
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), "1\n"), "{failed:?}");
    assert!(failed.stderr.contains("UNIQUE constraint failed: t.a (statement 2 of 2; none was done)"), "{failed:?}");
    server.assert_refused("begin; delete from t", 1, "the input ends within a transaction");
    server.assert_refused("commit", 1, "no transaction");
    assert_eq!(server.script("select count(*) from t"), "1\n");
}

#[test]
fn mistakes_have_a_place_a_hint_and_an_exit_code() {
    let server = Server::start(1);
    server.assert_refused("select 1,\n 2 frm t where", 1, "\n   2 frm t where\n");
    server.assert_refused("attach 'x' as y", 1, "ATTACH, DETACH and VACUUM are not allowed");
    server.assert_refused("select nowhere; select 2", 1, "no such column: nowhere");
    server.assert_refused(".mode upside-down", 2, "upside-down");
    server.assert_refused(".import none.csv t", 2, "cannot read none.csv");
    server.assert_refused(".read none.sql", 2, "cannot read none.sql");
    let path = server.scratch.join("self.sql");
    fs::write(&path, format!(".read {path}\n")).unwrap();
    server.assert_refused(&format!(".read {path}"), 2, "that is too many");
    let long = format!("select '{}'", "x".repeat(3 << 20));
    let outcome = server.ask(&[], &long);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("a statement has more than"), "{outcome:?}");
}

#[test]
fn an_import_says_where_it_stopped_and_goes_on_there() {
    let server = Server::start(1);
    let file = server.scratch.join("t.csv");
    let row = |n: u32| if n == 1_700 { "x,dup\n".to_owned() } else { format!("{n},\"a \"\"b\"\"\n{n}\"\n") };
    fs::write(&file, format!("n,text\n{}", (1..=3_000).map(row).collect::<String>())).unwrap();
    server.script("create table t(n integer primary key, text);");
    let outcome = server.ask(&[&format!(".import --skip 1 {file} t")], "");
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("row 1701 of the file: datatype mismatch"), "{outcome:?}");
    assert!(outcome.stderr.contains("1000 rows imported. Row 1001 of the file is the last that is in; --skip 1001"));
    assert_eq!(server.script("select count(*), max(n) from t"), "1000|1000\n");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("x,dup", "1700,ok")).unwrap();
    let rest = server.ask(&[&format!(".import --skip 1001 {file} t")], "");
    assert_eq!((rest.code, rest.stderr.as_str()), (Some(0), "2000 rows imported\n"), "{rest:?}");
    assert_eq!(server.script("select count(*), max(n), text from t where n <> 1700"), "2999|3000|a \"b\"\n3000\n");

    fs::write(&file, "a\tb\ta\n1\t2\t3\n4\n5\t6\t7\t8\n").unwrap();
    let uneven = server.ask(&[&format!(".import --separator tab {file} u")], "");
    assert!(
        uneven.stderr.contains("3 rows imported; 1 had too few values, and NULL instead; 1 had too many"),
        "{uneven:?}"
    );
    assert_eq!(server.script(".headers on\nselect * from u"), "a_1|b|a_3\n1|2|3\n4||\n5|6|7\n");
}

#[test]
fn a_dump_loads_in_an_ordinary_sqlite() {
    let server = Server::start(1);
    server.script(
        "create table a(id integer primary key autoincrement, t text, b blob, r real, \"odd \"\"name\" any,
             g int generated always as (id * 2) stored);
         insert into a(t, b, r, \"odd \"\"name\") values ('it''s; x', x'00ff', 1e300, 7),
             (char(0) || 'z', null, -9e999, 'q'), ('ü\nnew', zeroblob(3), 0.1, 9223372036854775807);
         delete from a where id = 2;
         create table w(k text, n int, v, primary key (n desc, k)) without rowid;
         insert into w values ('a', 1, 2), ('b', 1, 3), ('a', 0, null);
         create table shadowed(rowid text, _rowid_ text, oid text);
         insert into shadowed values ('x', 'y', 'z'), ('x', 'y', 'w');
         create view v as select id from a;
         create index i on a(t);
         create trigger g after insert on w begin update w set v = 1 where k = 'zz'; end;
         create table large(n integer primary key, text);
         with recursive c(n) as (values (1) union all select n + 1 from c where n < 10000)
             insert into large select n, printf('%0300d', n) from c;",
    );
    let plain = Connection::open_in_memory().unwrap();
    plain.execute_batch(&server.script(".dump")).unwrap();
    let queries = [
        "select group_concat(id || quote(t) || quote(b) || quote(r) || quote(\"odd \"\"name\") || g) from a",
        "select group_concat(k || n || quote(v)) from w",
        "select group_concat(oid) from (select oid from shadowed order by 1)",
        "select count(*) || sum(n) || sum(text) from large",
        "select group_concat(quote(seq)) from sqlite_sequence",
        "select group_concat(name) from (select name from sqlite_schema where name not like 'bezant%' order by 1)",
    ];
    for query in queries {
        let here: String = plain.query_row(query, [], |row| row.get(0)).unwrap();
        assert_eq!(server.script(query), format!("{here}\n"), "{query}");
    }
}

#[test]
fn a_local_read_needs_one_replica_and_says_what_it_is_worth() {
    let mut server = Server::start(4);
    assert_eq!(server.script("create table t(a); insert into t values (7); select * from t;"), "7\n");
    let local = ["--deadline", "5", "--read", "local", "select * from t"];
    // One replica may be behind.
    settle(&server.scratch.join("net/cluster.toml"));
    let outcome = server.ask(&local, "");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "7\n"), "{outcome:?}");
    assert!(outcome.stderr.starts_with("bezant: UNVERIFIED:"), "{outcome:?}");
    let ordered = server.ask(&["--read", "local", "select random() is not null"], "");
    assert_eq!((ordered.stdout.as_str(), ordered.stderr.as_str()), ("1\n", ""), "time and randomness are agreed");
    settle(&server.scratch.join("net/cluster.toml"));
    for replica in &mut server.replicas[..3] {
        replica.signal(Signal::KILL);
        replica.wait();
    }
    assert_eq!(server.ask(&local, "").stdout, "7\n");
    let read = server.ask(&["--deadline", "1", "select * from t"], "");
    assert_eq!(read.code, Some(1), "{read:?}");
    let write = server.ask(&["--deadline", "1", "delete from t"], "");
    assert_eq!(write.code, Some(3), "{write:?}");
    assert!(write.stderr.contains("read before you write again"), "{write:?}");
}

/// A checkpoint is the whole proof: one replica that has it is enough, and nobody has to be up besides.
#[test]
fn a_snapshot_read_is_as_old_as_the_checkpoint_and_proved_by_it() {
    let mut server = Server::start(4);
    assert_eq!(server.script("create table t(a); insert into t values (7);"), "");
    let snapshot = ["--read", "snapshot", "select * from t"];
    let early = server.ask(&snapshot, "");
    assert_eq!(early.code, Some(1), "{early:?}");
    assert!(early.stderr.contains("there is no checkpoint yet"), "{early:?}");
    let cluster = server.scratch.join("net/cluster.toml");
    let export = ["export", "--cluster", &cluster, "--to", &server.scratch.join("plain.sqlite")];
    assert_eq!(run(&mut bezant(&export), "").code, Some(0), "which has a checkpoint taken");
    assert_eq!(server.ask(&["insert into t values (8)"], "").code, Some(0));
    let read = server.ask(&snapshot, "");
    assert_eq!((read.stdout.as_str(), read.stderr.as_str()), ("7\n", ""), "what was written since is not in it");
    let ordered = server.ask(&["--read", "snapshot", "select random() is not null"], "");
    assert_eq!(ordered.stdout, "1\n", "{ordered:?}");
    for replica in &mut server.replicas[1..] {
        replica.signal(Signal::KILL);
        replica.wait();
    }
    let read = server.ask(&snapshot, "");
    assert_eq!((read.stdout.as_str(), read.stderr.as_str()), ("7\n", ""), "{read:?}");
}
