//! What the binary says to right and wrong arguments, without any cluster.

mod support;

use std::os::unix::fs::PermissionsExt;
use support::{Scratch, bezant, run};

#[track_caller]
fn assert_refused(arguments: &[&str], code: i32, said: &str) {
    let outcome = run(&mut bezant(arguments), "");
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    assert!(outcome.stderr.contains(said), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
}

#[track_caller]
fn stdout_of(arguments: &[&str]) -> String {
    let outcome = run(&mut bezant(arguments), "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.stdout
}

#[test]
fn the_version_is_told_in_both_forms() {
    assert!(stdout_of(&["version"]).starts_with(concat!("bezant ", env!("CARGO_PKG_VERSION"))));
    let json: serde_json::Value = serde_json::from_str(&stdout_of(&["version", "--json"])).unwrap();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    // A clone knows what it is; an archive says that it does not.
    match json["commit"].as_str() {
        Some(commit) => assert!(stdout_of(&["version"]).contains(&commit[..12]) && json["changed"].is_boolean()),
        None => assert!(stdout_of(&["version"]).contains("of an unknown commit")),
    }
}

#[test]
fn every_sub_command_explains_itself_with_an_example() {
    for command in [
        "demo",
        "testnet",
        "replica",
        "kv",
        "status",
        "gateway",
        "sim",
        "bench",
        "attack",
        "config",
        "client-key",
        "version",
        "completions",
    ] {
        let help = stdout_of(&[command, "--help"]);
        assert!(help.contains("Example") && help.contains(&format!("bezant {command}")), "{help}");
    }
}

#[test]
fn keys_are_explained_and_misspelt_ones_are_guessed() {
    assert!(stdout_of(&["config", "explain", "durability"]).contains("\"sync\""));
    assert!(stdout_of(&["config", "explain"]).lines().count() > 20);
    assert_refused(&["config", "explain", "durabilty"], 1, "Did you mean `durability`?");
}

#[test]
fn unknown_flags_and_values_out_of_range_are_errors_of_usage() {
    assert_refused(&["demo", "--replcas", "4"], 2, "--replicas");
    assert_refused(&["demo", "--replicas", "0"], 2, "1..=16");
    assert_refused(&["testnet", "--dir", "x", "--base-port", "65536"], 2, "65536");
    assert_refused(&["demo", "--protocol", "raft"], 2, "there are pbft aardvark ritas quorum zlight chain");
    assert_refused(&["demo", "--protocol", "quorum, chain"], 2, "nothing commits while a replica is down");
    assert_refused(&["demo", "--protocol", "ring", "--replicas", "3"], 2, "at least four replicas");
    assert_refused(&["gateway", "--cluster", "x", "--redis", "here"], 2, "nor a path with a `/`, such as ./here");
    assert_refused(&["gateway", "--cluster", "x", "--postgres", "/run:0"], 2, "0 is no port");
    assert_refused(&["gateway", "--cluster", "x", "--redis", &format!("/{:0200}", 0)], 2, "has room for 107");
    assert_refused(&["gateway", "--cluster", "x", "--postgres", "/run"], 2, "x: cannot be read");
    for port in ["--redis", "--postgres"] {
        assert_refused(&["gateway", "--cluster", "x", port, "0.0.0.0:0"], 2, "say --open-to-network");
        assert_refused(&["gateway", "--cluster", "x", port, "0.0.0.0:0", "--open-to-network"], 2, "x: cannot be read");
    }
}

#[test]
fn a_password_comes_from_a_file_of_its_own() {
    let scratch = Scratch::new();
    let file = scratch.join("password");
    let refused = |content: &str, mode: u32, said: &str| {
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let listen = ["gateway", "--cluster", "x", "--redis", "127.0.0.1:0", "--password-file", &file];
        assert_refused(&listen, 2, said);
    };
    refused("secret\n", 0o644, "others can read or change it: type `chmod 600");
    refused("\n", 0o600, "printable characters of ASCII");
    refused("one\ntwo\n", 0o600, "printable characters of ASCII");
    refused(&"x".repeat(10_000), 0o600, "printable characters of ASCII");
    refused("secret\n", 0o600, "x: cannot be read");
    let open = ["gateway", "--cluster", "x", "--postgres", "0.0.0.0:0", "--password-file", &file];
    assert_refused(&open, 2, "nothing is encrypted");
    assert_refused(
        &["gateway", "--cluster", "x", "--redis", "127.0.0.1:0", "--password-file", "y"],
        2,
        "there is no file y",
    );
    let half = ["gateway", "--cluster", "x", "--redis", "127.0.0.1:0", "--tls-certificate", "c.pem"];
    assert_refused(&half, 2, "--tls-key");
    let both = [&half[..], &["--tls-key", &file]].concat();
    assert_refused(&both, 2, "c.pem: No such file");
}

#[test]
fn missing_files_are_named() {
    let scratch = Scratch::new();
    let cluster = scratch.join("cluster.toml");
    assert_refused(&["kv", "--cluster", &cluster, "get", "a"], 2, &cluster);
    assert_refused(&["replica", "--dir", &scratch.join("nowhere")], 2, "node.toml");
}

#[test]
fn a_simulation_runs_and_tells_figures() {
    let arguments = ["sim", "--protocol", "pbft", "--seeds", "0..2", "--adversary", "none", "--json"];
    let json: serde_json::Value = serde_json::from_str(&stdout_of(&arguments)).unwrap();
    assert_eq!((&json["protocol"], &json["violations"]), (&"pbft".into(), &0.into()));
    assert_eq!((&json["n"], &json["f"]), (&4.into(), &1.into()));
}

#[test]
fn a_simulation_has_as_many_replicas_as_are_asked_for() {
    let told = stdout_of(&["sim", "--replicas", "6", "--seeds", "0..2"]);
    assert!(told.starts_with("all, n = 6, f = 1: 2 scenarios, 0 violations"), "{told}");
    assert_refused(&["sim", "--replicas", "4", "--f", "2"], 2, "at least 3·2+1 = 7 are needed");
    let told = stdout_of(&["sim", "--replicas", "5", "--protocol", "aliph", "--seeds", "0..2"]);
    assert!(told.starts_with("all, n = 5, f = 1: 2 scenarios, 0 violations"), "{told}");
    assert_refused(
        &["sim", "--replicas", "3", "--f", "0", "--protocol", "ring"],
        2,
        "a ring has at least four replicas",
    );
    assert_refused(&["sim", "--replicas", "40"], 2, "too many for the simulator");
}

#[test]
fn a_lie_to_which_nobody_listens_is_not_tried() {
    let refused = |protocol, adversary, why| {
        assert_refused(&["sim", "--protocol", protocol, "--adversary", adversary, "--seeds", "0..2"], 2, why);
    };
    refused("pbft", "feedback-lies", "feedback-lies needs instances that are measured by robust Backups, and pbft has");
    refused("aardvark", "panic-storm", "panic-storm needs instances that end");
    refused("pbft", "slow-hop", "slow-hop needs one of these parts: ring-fast");
    refused("aliph", "join-flood", "join-flood needs clients that may join");
}

#[test]
fn an_attack_says_what_it_lacks_and_what_comes_to_nothing() {
    let scratch = Scratch::new();
    let file = scratch.join("net/cluster.toml");
    stdout_of(&["testnet", "--dir", &scratch.join("net"), "--dynamic-clients", "--protocol", "pbft"]);
    let attack = |kind, more: &[&str]| {
        let words = ["attack", "--cluster", &file, "--seconds", "1", "--kind", kind];
        run(&mut bezant(&[&words, more].concat()), "")
    };
    support::assert_refused(&attack("takeover", &[]), 2, "takeover speaks with another's key");
    support::assert_refused(&attack("withhold-body", &["--league", "4"]), 2, "the replicas are 0 to 3");
    // No replica runs here.
    support::assert_refused(&attack("feedback-lies", &[]), 1, "What it says is dropped");
    let told = attack("partial-macs", &[]);
    assert!(!told.stderr.contains("dropped") && told.stderr.contains("did nothing"), "{told:?}");
}

#[test]
fn a_reader_that_leaves_is_no_reason_to_complain() {
    let mut child = support::Running(support::spawn(&mut bezant(&["config", "explain"])));
    drop(child.0.stdout.take());
    let status = child.wait();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.0.stderr.take().unwrap(), &mut said).unwrap();
    assert!(said.is_empty() && status.code().is_some_and(|code| code <= 1), "{status} {said}");
}

#[test]
fn completions_know_the_sub_commands() {
    assert!(stdout_of(&["completions", "bash"]).contains("gateway"));
}

#[test]
fn keys_are_made_once_and_only_their_public_half_is_shown() {
    let scratch = Scratch::new();
    let file = scratch.join("key");
    let public = stdout_of(&["client-key", "new", &file]);
    let secret = std::fs::read_to_string(&file).unwrap();
    assert_ne!(public, secret);
    assert_eq!(stdout_of(&["client-key", "show", &file]), public);
    assert_refused(&["client-key", "new", &file], 1, "never overwritten");
    assert_eq!(stdout_of(&["key", "show", &file]), public, "the name that it had before");
}

#[test]
fn a_cluster_that_cannot_be_is_refused() {
    let scratch = Scratch::new();
    let dir = scratch.join("net");
    assert_refused(&["testnet", "--dir", &dir, "--replicas", "3", "--f", "1"], 2, "3·1+1 = 4");
    assert_refused(&["testnet", "--dir", &dir, "--base-port", "65530"], 2, "port");
    assert_refused(&["testnet", "--dir", &dir, "--replicas", "3"], 2, "f = 0");
    assert_refused(&["testnet", "--dir", &dir, "--replicas", "1"], 2, "--f 0 says that none is meant to");
    assert!(!std::path::Path::new(&dir).exists());
    let meant = stdout_of(&["testnet", "--dir", &scratch.join("meant"), "--replicas", "3", "--f", "0"]);
    assert!(meant.starts_with("n = 3, f = 0: no replica may lie or crash."), "{meant}");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(scratch.join("net/mine"), "").unwrap();
    assert_refused(&["testnet", "--dir", &dir], 2, "not empty");
}
