//! `bezant demo`, driven through its standard input.

mod support;

use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use support::{Running, Scratch, bezant, free_ports, run, spawn, wait_until};

/// What the demo says of a replica that it has told to lie.
const LYING: &str = "replica 3 lying: wrong answers to clients (`status` names it), wrong votes for checkpoints and a \
    value altered in its state (`diff` names the row)";

#[test]
fn a_crash_and_a_liar_change_no_answer_and_the_liar_is_named() {
    play("pbft");
}

/// Both faults come in the first Backup, which the crash leads to.
#[test]
fn a_crash_and_a_liar_change_no_answer_of_aliph() {
    let replica = &play("aliph")["replicas"][0];
    assert_eq!((&replica["instance"], &replica["part"]), (&3.into(), &"backup(pbft)".into()), "{replica}");
    assert_eq!((&replica["switches"], &replica["switch_reason"]), (&2.into(), &"a client panicked".into()));
}

/// Tells a demo what to do. Returns its status while replica 3 lies.
fn play(protocol: &str) -> serde_json::Value {
    let script = "set color blue\nget color\nkill 2\nset color green\nget color\nrestart 2\nget color\nlie 3\n\
        set color red\nget color\nstatus --json\nhonest 3\nget color # after a comment\nquit\n";
    let outcome = run(&mut bezant(&["demo", "--protocol", protocol]), script);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines: Vec<_> = outcome.stdout.lines().collect();
    let expected = ["ok", "blue", "replica 2 killed", "ok", "green", "replica 2 running", "green", LYING, "ok"];
    assert_eq!(lines[..9], expected);
    assert_eq!(lines[9], "red");
    let status: serde_json::Value = serde_json::from_str(lines[10]).unwrap();
    assert_eq!(status["at_fault"], serde_json::json!([3]), "{status}");
    assert_eq!(status["replicas"].as_array().unwrap().len(), 4);
    assert!(lines[11].starts_with("replica 3 honest after "), "{outcome:?}");
    assert!(lines[11].contains(" lies: its state may still be altered until"), "{outcome:?}");
    assert_eq!(lines[12..], ["red"]);
    assert_eq!(outcome.stderr, "");
    status
}

/// An intruder was at three of four, at one of them once, at the next twice, and so on: more than f, and no two alike.
/// Answers that do not depend on it go on for a window, and nothing that is written is certain.
#[test]
fn where_all_states_differ_nothing_is_said_to_be_well() {
    let mut script = "create table t(a);\ninsert into t values (1);\n".to_owned();
    for (replica, times) in [(1, 1), (2, 2), (3, 3)] {
        for _ in 0..times {
            script += &format!("lie {replica}\nset k v\nhonest {replica}\n");
        }
    }
    script += &"set k v\n".repeat(140);
    let outcome = run(&mut bezant(&["demo"]), &(script + "status --json\n"));
    let status: serde_json::Value = serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&status["answering"], &status["healthy"]), (&true.into(), &false.into()), "{outcome:?}");
    assert!(status["stuck"].as_str().unwrap().contains("does not become stable"), "{status}");
}

/// Tables, a file of real shape, a statement over several lines, a transaction; between them a crash and a liar.
#[test]
fn sql_is_spoken_first_and_survives_a_crash_and_a_liar() {
    let scratch = Scratch::new();
    let rows: String = (1..=2_500).map(|n| format!("{n},\"name, {n}\",{}\r\n", n % 7)).collect();
    std::fs::write(scratch.join("t.csv"), format!("id,name,kind\r\n{rows}")).unwrap();
    let script = format!(
        "create table planets(name text primary key, moons integer);\n\
         insert into planets values ('Mars', 2), ('Jupiter', 95);\n\
         select *\n  from planets -- a comment;\n  order by moons desc;\n.import --csv {} t\nkill 2\n\
         select count(*), sum(kind) from t;\nset select 7\nbegin;\ninsert into planets values ('Earth', 1);\n\
         select sum(moons) from planets;\ncommit;\nrestart 2\nlie 3\nselect name from t where id = 2500;\n\
         get select\nselec 1;\nselect count(*) from planets",
        scratch.join("t.csv")
    );
    let outcome = run(&mut bezant(&["demo"]), &script);
    let lines: Vec<_> = outcome.stdout.lines().collect();
    let sum: u32 = (1..=2_500).map(|n| n % 7).sum();
    let aggregates = format!("2500|{sum}");
    let expected = [
        "Jupiter|95",
        "Mars|2",
        "replica 2 killed",
        &aggregates,
        "ok",
        "98",
        "replica 2 running",
        LYING,
        "name, 2500",
        "7",
        "3",
    ];
    assert_eq!(lines, expected, "{outcome:?}");
    assert_eq!(outcome.stderr, "2500 rows imported\nbezant: near \"selec\": syntax error\n  selec 1;\n  ^\n");
    assert_eq!(outcome.code, Some(1));
}

#[test]
fn a_schedule_of_ones_own_runs() {
    let outcome = run(&mut bezant(&["demo", "--protocol", "chain, backup(pbft)"]), "set a 1\nget a\nstatus\n");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines: Vec<_> = outcome.stdout.lines().collect();
    assert_eq!(lines[..2], ["ok", "1"]);
    assert!(lines[2].contains("runs"), "{outcome:?}");
}

#[test]
fn whatever_goes_wrong_is_the_exit_code() {
    let outcome =
        run(&mut bezant(&["demo", "--json"]), "paint it black\nkill 7\nrestart 9\nlie\nset a 1\nincr a\nget b\n");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(outcome.stdout, "{\"done\":true}\n{\"value\":2}\n{\"value\":null}\n");
    assert!(outcome.stderr.contains("paint"), "{outcome:?}");
    assert!(outcome.stderr.contains("there is no replica 7: they are 0 to 3."), "{outcome:?}");
    assert!(!outcome.stderr.contains("Usage"), "{outcome:?}");
}

/// Also one that has been started again: who lied is gone with its process.
#[test]
fn who_does_not_lie_is_not_made_honest() {
    let outcome = run(&mut bezant(&["demo"]), "honest 3\nlie 3 politely\nlie 3 silent\nrestart 3\nhonest 3\n");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let refused = "bezant: replica 3 does not lie: `lie 3` has it do so.";
    let lines: Vec<_> = outcome.stderr.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[2]), (3, refused, refused), "{outcome:?}");
    assert!(lines[1].contains("'politely'") && lines[1].contains("intruder, equivocate, silent"), "{outcome:?}");
}

#[test]
fn one_unreplicated_server_is_a_demo_as_well() {
    let outcome = run(&mut bezant(&["demo", "--protocol", "unreplicated"]), "set a 1\nget a\n");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "ok\n1\n"), "{outcome:?}");
}

#[test]
fn redis_clients_see_the_same_values() {
    let port = free_ports(1);
    let mut demo = Running(spawn(&mut bezant(&["demo", "--redis", &port.to_string()])));
    let mut stdin = demo.0.stdin.take().unwrap();
    let mut stdout = BufReader::new(demo.0.stdout.take().unwrap());
    writeln!(stdin, "set color blue").unwrap();
    stdout.read_line(&mut String::new()).unwrap();
    let mut redis = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    redis.write_all(b"GET color\r\nSET color green\r\nQUIT\r\n").unwrap();
    let mut replies = String::new();
    redis.read_to_string(&mut replies).unwrap();
    assert_eq!(replies, "$4\r\nblue\r\n+OK\r\n+OK\r\n");
    writeln!(stdin, "get color").unwrap();
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "green\n");
    assert!(demo.wait().success());
}

#[test]
fn a_port_in_use_is_named_and_nothing_is_left_behind() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let scratch = Scratch::new();
    let outcome = run(bezant(&["demo", "--redis", &port]).env("TMPDIR", scratch.path()), "");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{outcome:?}");
    assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
}

#[test]
fn ctrl_c_removes_folder_and_processes() {
    let scratch = Scratch::new();
    let mut demo = Running(spawn(bezant(&["demo"]).env("TMPDIR", scratch.path())));
    let mut stdout = BufReader::new(demo.0.stdout.take().unwrap());
    writeln!(demo.0.stdin.as_mut().unwrap(), "set a 1").unwrap();
    stdout.read_line(&mut String::new()).unwrap();
    let folder = scratch.path().read_dir().unwrap().next().unwrap().unwrap().path();
    let keys = "net/cluster.toml";
    let cluster = std::fs::read_to_string(folder.join(keys)).unwrap();
    demo.signal(Signal::INT);
    assert_eq!(demo.wait().code(), Some(130));
    assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
    assert_all_down(&cluster);
}

#[test]
fn a_demo_that_is_killed_leaves_no_process_behind() {
    let scratch = Scratch::new();
    let mut demo = Running(spawn(bezant(&["demo"]).env("TMPDIR", scratch.path())));
    let mut stdout = BufReader::new(demo.0.stdout.take().unwrap());
    writeln!(demo.0.stdin.as_mut().unwrap(), "set a 1").unwrap();
    stdout.read_line(&mut String::new()).unwrap();
    let folder: PathBuf = scratch.path().read_dir().unwrap().next().unwrap().unwrap().path();
    let cluster = std::fs::read_to_string(folder.join("net/cluster.toml")).unwrap();
    demo.signal(Signal::KILL);
    demo.wait();
    assert_all_down(&cluster);
}

/// Nobody listens at any of the addresses in the cluster's file any more.
fn assert_all_down(cluster: &str) {
    let addresses: Vec<&str> =
        cluster.lines().filter(|line| line.contains("_address")).filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(addresses.len(), 12);
    wait_until("ending the replicas", || {
        addresses.iter().all(|address| std::net::TcpStream::connect(address).is_err())
    });
}
