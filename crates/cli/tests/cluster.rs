//! A cluster as an operator runs it: files, replicas as processes, and what they refuse.

mod support;

use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use support::{Outcome, Running, Scratch, bezant, run, spawn, testnet, testnet_with, wait_until};

fn replica(scratch: &Scratch, folder: &str) -> Outcome {
    run(&mut bezant(&["replica", "--dir", &scratch.join(folder)]), "")
}

#[track_caller]
fn assert_refused(outcome: &Outcome, code: i32, said: &str) {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    let errors: Vec<_> = outcome.stderr.lines().filter(|line| line.starts_with("bezant: ")).collect();
    assert!(errors.len() == 1 && errors[0].contains(said), "{outcome:?}");
}

#[test]
fn four_replicas_serve_a_shell_and_end_in_order() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 4);
    let start = |number: usize| {
        Running(spawn(&mut bezant(&["replica", "--dir", &scratch.join(&format!("net/replica-{number}"))])))
    };
    let mut replicas: Vec<_> = (0..4).map(start).collect();
    let cluster = scratch.join("net/cluster.toml");
    let kv = |words: &[&str]| run(bezant(&["kv", "--cluster", &cluster]).args(words), "");
    assert_eq!(kv(&["set", "a", "-1"]).stdout, "ok\n");
    assert_eq!(kv(&["get", "a"]).stdout, "-1\n");
    let missing = kv(&["get", "b"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""));
    assert_eq!(kv(&["cas", "a", "0", "5"]).code, Some(1));

    let script = "set b 'two words'\ncas a -1 5\nincr a 2\nrange\ndel a b\ncount\nfly\nincr a x\n";
    let shell = run(&mut bezant(&["kv", "--cluster", &cluster]), script);
    assert_eq!(shell.stdout, "ok\nok\n7\na\t7\nb\ttwo words\n2\n0\n");
    assert_eq!(shell.code, Some(2), "{shell:?}");

    let status = |code: i32| {
        let outcome = run(&mut bezant(&["status", "--cluster", &cluster, "--json"]), "");
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        serde_json::from_str::<serde_json::Value>(&outcome.stdout).unwrap()
    };
    wait_until("all replicas are ready", || run(&mut bezant(&["status", "--cluster", &cluster]), "").code == Some(0));
    let all = status(0);
    assert_eq!(all["healthy"], true);
    assert!(all["replicas"].as_array().unwrap().iter().all(|replica| replica["state"] == "healthy"), "{all}");
    replicas[1].signal(Signal::TERM);
    assert_eq!(replicas[1].wait().code(), Some(0));
    let three = status(1);
    assert_eq!(three["stuck"], serde_json::Value::Null, "one may be down");
    assert_eq!((&three["answering"], &three["replicas"][1]["up"]), (&true.into(), &false.into()));
    assert_eq!(three["replicas"][1]["state"], "unreachable");
    assert!(three["replicas"][1]["advice"].as_str().unwrap().contains("Start"));
    for replica in &mut replicas[2..] {
        replica.signal(Signal::TERM);
        assert_eq!(replica.wait().code(), Some(0));
    }
    let one = status(5);
    assert!(one["stuck"].as_str().unwrap().contains("no 3 of 4 replicas agree"));
    assert_eq!(one["replicas"][0]["state"], "cut_off", "{one}");
    // Nobody can tell any more: one replica is no quorum.
    let unknown = kv(&["--deadline", "1", "set", "a", "2"]);
    assert_refused(&unknown, 3, "outcome unknown");
    assert_refused(&kv(&["--deadline", "1", "get", "a"]), 1, "not enough equal answers");
}

#[test]
fn a_name_that_nobody_knows_costs_its_own_replica_only() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 4);
    let cluster = scratch.join("net/cluster.toml");
    let text = fs::read_to_string(&cluster).unwrap();
    let (others, last) = text.split_at(text.find("id = 3").unwrap());
    fs::write(&cluster, others.to_owned() + &last.replace("127.0.0.1", "nobody.invalid")).unwrap();
    let start = |number: usize| {
        Running(spawn(&mut bezant(&["replica", "--dir", &scratch.join(&format!("net/replica-{number}"))])))
    };
    let _replicas: Vec<_> = (0..3).map(start).collect();
    let set = run(&mut bezant(&["kv", "--cluster", &cluster, "set", "a", "1"]), "");
    assert_eq!((set.code, &*set.stdout), (Some(0), "ok\n"), "{set:?}");
    let status = run(&mut bezant(&["status", "--cluster", &cluster]), "");
    assert_eq!(status.code, Some(1), "{status:?}");
    assert!(status.stdout.contains("replica 3, unreachable: its address does not resolve."), "{status:?}");
    assert_refused(&replica(&scratch, "net/replica-3"), 1, "nobody.invalid");
}

#[test]
fn status_ends_in_time_although_nobody_answers() {
    let scratch = Scratch::new();
    let base = testnet(&scratch, "net", 4);
    // Connections are taken, and nothing ever comes.
    let silent: Vec<_> = (0..4)
        .flat_map(|replica| (0..3).map(move |port| base + 10 * replica + port))
        .map(|port| std::net::TcpListener::bind(("127.0.0.1", port)).unwrap())
        .collect();
    let start = Instant::now();
    let outcome = run(&mut bezant(&["status", "--cluster", &scratch.join("net/cluster.toml"), "--json"]), "");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    let status: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    for replica in status["replicas"].as_array().unwrap() {
        assert_eq!(replica["state"], "unreachable");
        assert!(replica["why"].as_str().unwrap().contains("no answer"), "{replica}");
    }
    drop(silent);
}

#[test]
fn a_folder_serves_one_process() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 1);
    let mut first = Running(spawn(&mut bezant(&["replica", "--dir", &scratch.join("net/replica-0")])));
    let cluster = scratch.join("net/cluster.toml");
    assert_eq!(run(&mut bezant(&["kv", "--cluster", &cluster, "set", "a", "1"]), "").stdout, "ok\n");
    assert_refused(&replica(&scratch, "net/replica-0"), 1, "in use by another process");
    first.signal(Signal::INT);
    assert!(first.wait().success());
}

#[test]
fn a_port_in_use_is_named() {
    let scratch = Scratch::new();
    let base = testnet(&scratch, "net", 1);
    let _listener = std::net::TcpListener::bind(("127.0.0.1", base + 1)).unwrap();
    assert_refused(&replica(&scratch, "net/replica-0"), 1, &format!("cannot listen on 127.0.0.1:{}", base + 1));
}

#[test]
fn a_folder_of_another_cluster_is_refused() {
    let scratch = Scratch::new();
    testnet(&scratch, "one", 1);
    testnet(&scratch, "two", 1);
    fs::copy(scratch.join("two/cluster.toml"), scratch.join("one/cluster.toml")).unwrap();
    assert_refused(&replica(&scratch, "one/replica-0"), 2, "another cluster");
    let cluster = scratch.join("one/cluster.toml");
    assert_refused(&run(&mut bezant(&["kv", "--cluster", &cluster, "get", "a"]), ""), 2, "--key");
}

#[test]
fn a_log_of_another_cluster_is_refused() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 1);
    let file = scratch.join("net/cluster.toml");
    let text = fs::read_to_string(&file).unwrap();
    let id = text.lines().find_map(|line| line.strip_prefix("cluster_id = ")).unwrap();
    let other = "\"00112233445566778899aabbccddeeff\"";
    fs::write(&file, text.replace(id, other)).unwrap();
    assert_refused(&replica(&scratch, "net/replica-0"), 1, "another cluster.toml");
}

#[test]
fn status_says_why_the_others_refuse_a_replica() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 4);
    let node = scratch.join("net/replica-3/node.toml");
    let text = fs::read_to_string(&node).unwrap();
    fs::write(&node, text.replace("service = \"sql\"", "service = \"kv\"")).unwrap();
    let start = |number: usize| {
        Running(spawn(&mut bezant(&["replica", "--dir", &scratch.join(&format!("net/replica-{number}"))])))
    };
    let _replicas: Vec<_> = (0..4).map(start).collect();
    let cluster = scratch.join("net/cluster.toml");
    let mut last = serde_json::Value::Null;
    wait_until("replica 3 to be refused", || {
        let outcome = run(&mut bezant(&["status", "--cluster", &cluster, "--json"]), "");
        last = serde_json::from_str(&outcome.stdout).unwrap();
        let states: Vec<_> =
            last["replicas"].as_array().unwrap().iter().filter_map(|replica| replica["state"].as_str()).collect();
        states == ["healthy", "healthy", "healthy", "cut_off"]
            && last["replicas"][3]["why"].as_str().unwrap().contains("all must run the same build")
    });
    assert_eq!((&last["healthy"], &last["stuck"]), (&false.into(), &serde_json::Value::Null));
}

#[test]
fn whoever_comes_with_another_file_is_told_of_once_with_the_reason_and_what_to_do() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 1);
    let mut replica = Running(spawn(&mut bezant(&["replica", "--dir", &scratch.join("net/replica-0")])));
    let cluster = scratch.join("net/cluster.toml");
    let get = |file: &str| run(&mut bezant(&["kv", "--cluster", file, "--deadline", "1", "get", "a"]), "");
    wait_until("the replica serves", || get(&cluster).code == Some(1) && get(&cluster).stderr.is_empty());
    let other = scratch.join("net/other.toml");
    let text = fs::read_to_string(&cluster).unwrap();
    fs::write(&other, text + "\n[limits]\ncheckpoint_interval = 64\n").unwrap();
    // It dials again and again.
    assert!(get(&other).stderr.contains("not enough equal answers"));
    replica.signal(Signal::TERM);
    assert!(replica.wait().success());
    let mut log = String::new();
    replica.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("connection-refused")).collect();
    assert!(lines.len() == 1 && lines[0].contains("foreign_cluster"), "{log}");
    assert!(lines[0].contains("127.0.0.1") && lines[0].contains("give it this cluster's cluster.toml"), "{log}");
}

#[test]
fn a_wiped_folder_is_refused() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 4);
    let home = scratch.path().join("net/replica-0");
    for entry in home.read_dir().unwrap().map(Result::unwrap) {
        if entry.file_name().to_str().unwrap().ends_with(".bin") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    assert_refused(&replica(&scratch, "net/replica-0"), 1, "--recover-lost-log");
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 1);
    let key = scratch.join("net/replica-0/key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert_refused(&replica(&scratch, "net/replica-0"), 2, "chmod 600");
    let client = scratch.join("net/client.key");
    fs::set_permissions(&client, fs::Permissions::from_mode(0o640)).unwrap();
    let cluster = scratch.join("net/cluster.toml");
    assert_refused(&run(&mut bezant(&["kv", "--cluster", &cluster, "get", "a"]), ""), 2, "chmod 600");
}

#[test]
fn unknown_keys_in_files_are_named_with_their_line() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 1);
    let file = scratch.join("net/replica-0/node.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("durability", "durabilty")).unwrap();
    assert_refused(&replica(&scratch, "net/replica-0"), 2, "did you mean `durability`?");
}

#[test]
fn a_client_with_a_new_key_and_the_cluster_file_joins_and_works() {
    let scratch = Scratch::new();
    testnet_with(&scratch, "net", 4, &["--dynamic-clients"]);
    let start = |number: usize| {
        Running(spawn(&mut bezant(&["replica", "--dir", &scratch.join(&format!("net/replica-{number}"))])))
    };
    let _replicas: Vec<_> = (0..4).map(start).collect();
    // Nothing but the file and a key.
    let cluster = scratch.join("cluster.toml");
    fs::copy(scratch.join("net/cluster.toml"), &cluster).unwrap();
    let key = scratch.join("new.key");
    assert_eq!(run(&mut bezant(&["client-key", "new", &key]), "").code, Some(0));
    let kv = |words: &[&str]| run(bezant(&["kv", "--cluster", &cluster, "--key", &key]).args(words), "");
    let denied = kv(&["set", "a", "b"]);
    assert!(denied.code != Some(0) && denied.stderr.contains("does not let this key join"), "{denied:?}");
    // An administrator, whom the file names, says who may.
    let public = run(&mut bezant(&["client-key", "show", &key]), "").stdout;
    let grant = format!("insert into bezant_members values ('{}', 'writer', 'new')", public.trim());
    let admin = scratch.join("net/cluster.toml");
    let granted = run(&mut bezant(&["sql", "--cluster", &admin, &grant]), "");
    assert_eq!(granted.code, Some(0), "{granted:?}");
    let set = kv(&["set", "a", "b"]);
    assert_eq!(set.stdout, "ok\n", "{set:?}");
    let get = kv(&["get", "a"]);
    assert_eq!(get.stdout, "b\n", "{get:?}");
    wait_until("that both have left, at every replica", || {
        let status = run(&mut bezant(&["status", "--cluster", &admin, "--json"]), "");
        let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
        status["replicas"].as_array().unwrap().iter().all(|replica| replica["members"] == 0)
    });
}

#[test]
fn protocols_that_cannot_let_clients_join_say_so() {
    let scratch = Scratch::new();
    let dir = scratch.join("net");
    for (flag, value, said) in [("--protocol", "aliph", "pbft"), ("--auth", "mac", "signed")] {
        let mut command = bezant(&["testnet", "--dir", &dir, "--dynamic-clients", flag, value]);
        assert_refused(&run(&mut command, ""), 2, said);
    }
}

#[test]
fn limits_are_given_when_a_cluster_is_made_and_must_go_together() {
    let scratch = Scratch::new();
    testnet_with(&scratch, "net", 1, &["--limit", "checkpoint_interval=64", "--limit", "view_timeout_ms=500"]);
    let file = fs::read_to_string(scratch.join("net/cluster.toml")).unwrap();
    assert!(file.contains("[limits]\ncheckpoint_interval = 64\nview_timeout_ms = 500\n"), "{file}");
    let dir = scratch.join("other");
    for (limit, said) in [
        ("view_timeout_ms=60000", "must not exceed `view_timeout_max_ms`"),
        ("checkpoint_interval=0", "from 1 to 65536"),
        ("interval=1", "there is no limit `interval`"),
    ] {
        let outcome = run(&mut bezant(&["testnet", "--dir", &dir, "--limit", limit]), "");
        assert!(outcome.code == Some(2) && outcome.stderr.contains(said), "{outcome:?}");
    }
    assert!(!std::path::Path::new(&dir).exists());
}
