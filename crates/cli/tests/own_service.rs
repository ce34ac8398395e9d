//! Replicas of somebody's own service, as the sub-commands meet them: what they would ask might change it.

mod support;

use bezant_core::services::Counter;
use bezant_node::config::{Testnet, testnet};
use bezant_node::host::Running;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use support::{Scratch, bezant, free_ports, run, wait_until};

const DEADLINE: Duration = Duration::from_secs(30);

fn start(scratch: &Scratch) -> Vec<Running> {
    let mut options = Testnet { service: "mine".to_owned(), base_port: free_ports(40), ..Testnet::default() };
    options.limits.checkpoint_interval = 4;
    let folder = scratch.path().join("net");
    testnet(&folder, &options).unwrap();
    let replica = |number| folder.join(format!("replica-{number}"));
    (0..4).map(|number| bezant_node::host(&replica(number), "mine", 1, Counter::default()).unwrap()).collect()
}

#[test]
fn status_asks_a_service_of_somebodys_own_nothing_that_could_change_it() {
    let scratch = Scratch::new();
    let replicas = start(&scratch);
    let file = scratch.join("net/cluster.toml");
    let client = bezant_node::client(Path::new(&file)).unwrap();
    client.execute(Counter::add(7).to_vec().into(), DEADLINE).wait().unwrap();
    let executed = || replicas.iter().map(|replica| replica.status().report.executed.0).max().unwrap();
    wait_until("what is published", || executed() == 1);

    // Not all replicas are linked yet.
    wait_until("health", || {
        let outcome = run(&mut bezant(&["status", "--cluster", &file, "--json"]), "");
        let status: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(status["answering"], Value::Null, "{outcome:?}");
        outcome.code == Some(0) && status["healthy"] == true
    });

    let outcome = run(&mut bezant(&["backup", "create", "--cluster", &file, "--to", &scratch.join("b")]), "");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("a service of somebody's own"), "{outcome:?}");
    // What is published is at most 100 ms old.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(executed(), 1, "nothing else was ordered");

    drop(client);
    replicas.into_iter().for_each(|replica| replica.stop().unwrap());
}

#[test]
fn what_would_send_operations_of_another_service_is_refused_and_those_of_this_one_are_measured() {
    let scratch = Scratch::new();
    let replicas = start(&scratch);
    let file = scratch.join("net/cluster.toml");
    let executed = || replicas.iter().map(|replica| replica.status().report.executed.0).max().unwrap();
    for arguments in [
        &["kv", "--cluster", &file, "count"][..],
        &["sql", "--cluster", &file, "select 1"],
        &["gateway", "--cluster", &file, "--redis", "127.0.0.1:0"],
        &["attack", "--cluster", &file, "--seconds", "1"],
        &["bench", "--cluster", &file, "--seconds", "1"],
    ] {
        let outcome = run(&mut bezant(arguments), "");
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains("the replicas serve \"mine 1\""), "{arguments:?}: {outcome:?}");
    }
    for command in ["attack", "bench"] {
        let outcome = run(&mut bezant(&[command, "--cluster", &file, "--seconds", "1"]), "");
        assert!(outcome.stderr.contains("give with --operation what to ask it for"), "{command}: {outcome:?}");
    }
    assert_eq!(executed(), 0, "nothing was ordered");

    let (one, two) = ("0100000000000000", "0200000000000000");
    let bench = ["bench", "--cluster", &file, "--seconds", "1", "--clients", "1", "--json", "--warmup", "0"];
    let outcome = run(bezant(&bench).args(["--operation", one, "--operation", two, "--outstanding", "1"]), "");
    let figures: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"));
    assert_eq!((&figures["workload"], &figures["request_bytes"]), (&"given".into(), &8.into()));
    let client = bezant_node::client(Path::new(&file)).unwrap();
    let sum = client.query(Counter::READ.into(), DEADLINE).wait().unwrap();
    // In turn, one at a time: as many of one as of the other, or one more.
    let (sum, ops) = (u64::from_le_bytes(sum.as_ref().try_into().unwrap()), figures["ops"].as_u64().unwrap());
    assert!(ops > 0 && sum >= ops / 2 * 3 && sum % 3 != 2, "{ops} operations, {sum}");

    drop(client);
    replicas.into_iter().for_each(|replica| replica.stop().unwrap());
}

#[test]
fn a_service_of_somebodys_own_is_attacked_with_operations_of_its_own() {
    let scratch = Scratch::new();
    let replicas = start(&scratch);
    let file = scratch.join("net/cluster.toml");
    let attack = ["attack", "--cluster", &file, "--seconds", "1", "--kind", "client-flood", "--json"];
    let seven = ["--operation", "0700000000000000"];
    let outcome = run(bezant(&attack).args(seven), "");
    let did: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"));
    assert!(did["attacks"].as_u64().is_some_and(|attacks| attacks > 0), "{did}");
    let client = bezant_node::client(Path::new(&file)).unwrap();
    let sum = client.query(Counter::READ.into(), DEADLINE).wait().unwrap();
    let sum = u64::from_le_bytes(sum.as_ref().try_into().unwrap());
    assert!(sum > 0 && sum.is_multiple_of(7), "{sum}: nothing but what was given is executed");

    // A body that is no longer than this goes with its batch.
    let kind = ["attack", "--cluster", &file, "--seconds", "1", "--kind", "withhold-body"];
    let outcome = run(bezant(&kind).args(seven), "");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("more than 1024 bytes (inline_bytes_max)"), "{outcome:?}");

    drop(client);
    replicas.into_iter().for_each(|replica| replica.stop().unwrap());
}

#[test]
fn what_asks_the_admin_port_only_serves_every_service() {
    let scratch = Scratch::new();
    let replicas = start(&scratch);
    let file = scratch.join("net/cluster.toml");
    let client = bezant_node::client(Path::new(&file)).unwrap();
    for _ in 0..5 {
        client.execute(Counter::add(1).to_vec().into(), DEADLINE).wait().unwrap();
    }
    let backup = scratch.join("b");
    wait_until("a checkpoint", || {
        let create = ["backup", "create", "--cluster", &file, "--last", "--to", &backup];
        run(&mut bezant(&create), "").code == Some(0)
    });
    let outcome = run(&mut bezant(&["backup", "verify", &backup, "--cluster", &file]), "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let diff = run(&mut bezant(&["diff", "--cluster", &file, "--last"]), "");
    assert_eq!(diff.code, Some(0), "{diff:?}");
    drop(client);
    replicas.into_iter().for_each(|replica| replica.stop().unwrap());
}

#[test]
fn a_replica_of_somebodys_own_service_is_not_for_this_program() {
    let scratch = Scratch::new();
    drop(start(&scratch).into_iter().map(|replica| replica.stop().unwrap()).collect::<Vec<_>>());
    let outcome = run(&mut bezant(&["replica", "--dir", &scratch.join("net/replica-0")]), "");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    let told = "`service = \"mine\"`, and this program serves \"sql\", \"kv\", \"null\", \"counter\": start";
    assert!(outcome.stderr.contains(told), "{outcome:?}");
}
