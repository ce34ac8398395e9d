//! `bezant bench`, for real but briefly: figures, and nothing left behind.

mod support;

use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use support::{Running, Scratch, bezant, run, spawn};

#[test]
fn protocols_take_turns_and_nothing_is_left_behind() {
    let scratch = Scratch::new();
    let dir = scratch.join("");
    let arguments = ["--clients", "2", "--outstanding", "3", "--warmup", "0", "--seconds", "1", "--auth", "mac"];
    let begin = ["bench", "--compare", "unreplicated", "--bundle", "1", "--json", "--dir", &dir];
    let outcome = run(bezant(&begin).args(arguments), "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines: Vec<Value> = outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [pbft, unreplicated] = lines.as_slice() else { panic!("{outcome:?}") };
    for (line, protocol, n) in [(pbft, "pbft", 4), (unreplicated, "unreplicated", 1)] {
        assert_eq!((line["protocol"].as_str(), line["n"].as_u64()), (Some(protocol), Some(n)));
        assert!(line["ops"].as_u64().unwrap() > 0, "{line}");
    }
    // The request's MAC and that of the reply; it takes four replicas more than four times as many.
    assert_eq!(unreplicated["macs_per_op"], 2.0);
    assert!(pbft["macs_per_op"].as_f64().unwrap() >= 8.0, "{pbft}");
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let dir = scratch.join("");
    let mut bench = Running(spawn(&mut bezant(&["bench", "--seconds", "600", "--dir", &dir])));
    let mut said = String::new();
    BufReader::new(bench.0.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    bench.signal(Signal::INT);
    assert_eq!(bench.wait().code(), Some(130));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn too_many_requests_under_way_are_an_error_of_usage() {
    let outcome = run(&mut bezant(&["bench", "--clients", "4096", "--outstanding", "3"]), "");
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("at most 8192"), "{outcome:?}");
}

#[test]
fn there_may_be_more_replicas_than_faults_need() {
    let scratch = Scratch::new();
    let arguments = ["--replicas", "5", "--clients", "2", "--warmup", "0", "--seconds", "1", "--json"];
    let outcome = run(bezant(&["bench", "--dir", &scratch.join("")]).args(arguments), "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let line: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&line["n"], &line["f"]), (&5.into(), &1.into()));
    assert!(line["ops"].as_u64().unwrap() > 0, "{line}");
    for (arguments, why) in [
        (&["bench", "--replicas", "6", "--f", "2"][..], "at least 3·2+1 = 7"),
        (&["bench", "--replicas", "3", "--f", "0", "--compare", "ring"], "ring with n = 3, f = 0: a ring has at least"),
        (&["bench", "compare", "--replicas", "6", "--f", "1,2"], "at least 3·2+1 = 7"),
        (&["bench", "compare", "--replicas", "5", "--figure", "all"], "cannot be used with"),
        (&["bench", "matrix", "--replicas", "3", "--protocols", "pbft", "--append", "none"], "at least 3·1+1 = 4"),
        (&["bench", "--replicas", "0"], "1..=64"),
    ] {
        let outcome = run(&mut bezant(arguments), "");
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(why) && outcome.stdout.is_empty(), "{outcome:?}");
    }
}

#[test]
fn a_common_coin_is_dealt_and_named() {
    let scratch = Scratch::new();
    let arguments = ["--protocol", "pbft", "--compare", "ritas", "--coin", "common", "--clients", "2"];
    let arguments = [&arguments[..], &["--rounds", "1", "--warmup", "0", "--seconds", "1"]].concat();
    let outcome = run(bezant(&["bench", "--json", "--dir", &scratch.join("")]).args(arguments), "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines: Vec<Value> = outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let coins: Vec<_> =
        lines.iter().map(|line| (line["protocol"].as_str().unwrap(), line["coin"].as_str().unwrap())).collect();
    assert_eq!(coins, [("pbft", "none"), ("ritas", "common")], "{lines:?}");
    assert!(lines.iter().all(|line| line["ops"].as_u64().unwrap() > 0), "{lines:?}");
    for (arguments, why) in [
        (&["bench", "--coin", "common"][..], "only ritas and backup(ritas) toss coins, and not pbft"),
        (&["bench", "compare", "--protocols", "ritas,pbft:coin=common"], "toss coins, and not pbft"),
        (&["bench", "--suite", "--coin", "local"], "cannot be used with"),
        (&["bench", "--cluster", "none", "--coin", "common"], "cannot be used with"),
    ] {
        let outcome = run(&mut bezant(arguments), "");
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(why) && outcome.stdout.is_empty(), "{outcome:?}");
    }
}

#[test]
fn clients_join_and_are_answered() {
    let scratch = Scratch::new();
    let arguments = ["--joined", "--clients", "3", "--outstanding", "2", "--warmup", "0", "--seconds", "1", "--json"];
    let outcome = run(bezant(&["bench", "--dir", &scratch.join("")]).args(arguments), "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let line: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&line["joined"], &line["clients"], &line["outstanding"]), (&true.into(), &3.into(), &2.into()));
    assert!(line["ops"].as_u64().unwrap() > 0, "{line}");
}

#[test]
fn joining_needs_pbft_and_signatures() {
    for (arguments, why) in [
        (&["bench", "--joined", "--protocol", "aliph"][..], "under pbft and aardvark only"),
        (&["bench", "--joined", "--compare", "unreplicated"], "under pbft and aardvark only"),
        (&["bench", "--joined", "--auth", "mac"], "has to sign"),
        (&["bench", "--joined", "--outstanding", "65"], "at most 64 requests"),
        (&["bench", "compare", "--protocols", "pbft:joined"], "has to sign"),
    ] {
        let outcome = run(&mut bezant(arguments), "");
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(why), "{outcome:?}");
    }
}

/// `bench compare` in a folder of its own, for its clusters and its results.
fn compare(arguments: &[&str]) -> (Scratch, support::Outcome) {
    let scratch = Scratch::new();
    let (dir, out) = (scratch.join(""), scratch.join("out"));
    let outcome = run(bezant(&["bench", "compare", "--dir", &dir, "--out", &out]).args(arguments), "");
    (scratch, outcome)
}

fn read(scratch: &Scratch, name: &str) -> String {
    std::fs::read_to_string(scratch.join("out") + "/" + name).unwrap()
}

#[test]
fn a_comparison_has_ratios_data_a_picture_and_a_page() {
    let (scratch, outcome) = compare(&[
        "--protocols",
        "unreplicated,pbft",
        "--clients",
        "1,3",
        "--rounds",
        "2",
        "--seconds",
        "0.2",
        "--warmup",
        "0.05",
        "--json",
    ]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines: Vec<Value> = outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Four metrics at two points for two protocols.
    assert_eq!(lines.len(), 16, "{outcome:?}");
    let pbft = lines.iter().find(|line| line["metric"] == "replica CPU µs/op" && line["protocol"] == "pbft").unwrap();
    assert!(pbft["ratio"]["median"].as_f64().unwrap() > 1.0, "four replicas cost more than one: {pbft}");
    assert_eq!((&pbft["divided_by"], &pbft["rounds"]), (&"unreplicated".into(), &2.into()));
    let csv = read(&scratch, "custom.csv");
    assert_eq!(csv.lines().count(), 1 + 2 * 2 * 2, "{csv}");
    assert!(read(&scratch, "custom.svg").starts_with("<svg"));
    let page = read(&scratch, "README.md");
    assert!(page.contains("Rounds in turns: 2") && page.contains("| clients | unreplicated | pbft |"), "{page}");
    // Nothing is left of the clusters.
    assert_eq!(std::fs::read_dir(scratch.join("")).unwrap().count(), 1);
}

#[test]
fn clusters_take_turns_in_slices() {
    let (scratch, outcome) = compare(&[
        "--protocols",
        "unreplicated,pbft,aliph",
        "--clients",
        "3",
        "--rounds",
        "1",
        "--seconds",
        "0.4",
        "--slices",
        "4",
    ]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let csv = read(&scratch, "custom.csv");
    let rows = columns(&csv, ["seconds", "ops", "replica_cpu_us_per_op"]);
    assert_eq!(rows.len(), 3, "{csv}");
    for row in rows {
        let [seconds, ops, cpu] = row.map(|cell| cell.parse::<f64>().unwrap());
        assert!((0.4..3.0).contains(&seconds), "four slices of a tenth of a second: {csv}");
        assert!(ops > 0.0 && cpu > 0.0, "{csv}");
    }
    let page = read(&scratch, "README.md");
    assert!(page.contains(" --slices 4") && page.contains("in 4 slices that take turns"), "{page}");
    assert_eq!(std::fs::read_dir(scratch.join("")).unwrap().count(), 1, "nothing is left of the clusters");
    for (arguments, why) in [
        (&["--slices", "4", "--figure", "figure-14"][..], "--slices is for steady loads"),
        (&["--slices", "4", "--attack", "client-flood"], "cannot be used with"),
        (&["--slices", "4", "--netns"], "cannot be used with"),
        (&["--slices", "0"], "1..=100"),
    ] {
        let outcome = run(bezant(&["bench", "compare"]).args(arguments), "");
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(why), "{outcome:?}");
    }
}

#[test]
fn a_replica_that_is_down_for_a_while_does_not_stop_the_others() {
    for fault in ["stop", "kill"] {
        let (scratch, outcome) = compare(&[
            "--figure",
            "figure-14",
            "--protocols",
            "pbft",
            "--rounds",
            "1",
            "--scale",
            "0.1",
            "--fault",
            fault,
        ]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let csv = read(&scratch, "figure-14.csv");
        let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
        let events: Vec<_> = (0..rows.len()).filter(|row| rows[*row][5] == "1").collect();
        let [gone, back] = events[..] else { panic!("two events: {csv}") };
        let ops: u64 = rows[gone + 1..back].iter().map(|row| row[3].parse::<u64>().unwrap()).sum();
        assert!(back - gone >= 9 && ops > 0, "three of four replicas answer for a second: {csv}");
    }
}

#[test]
fn a_robust_protocol_is_measured_before_an_attack_and_under_it() {
    let aardvark = "aardvark:auth=hybrid";
    let row = ["--figure", "table-4", "--fault", "client-flood", "--protocols", aardvark, "--clients", "4,9"];
    let (scratch, outcome) =
        compare(&[&row[..], &["--rounds", "1", "--scale", "0.1", "--seconds", "0.5", "--json"]].concat());
    assert_eq!(outcome.code, Some(0), "an attack that does nothing fails: {outcome:?}");
    let lines: Vec<Value> = outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let value = |metric: &str| lines.iter().find(|line| line["metric"] == metric).unwrap()["value"]["median"].as_f64();
    assert!(value("op/s without the attack").unwrap() > 0.0, "{outcome:?}");
    assert!(value("op/s under it, once adapted").is_some(), "{outcome:?}");
    let csv = read(&scratch, "table-4.csv");
    let events = columns(&csv, ["attack", "clients", "protocol", "event"]).into_iter().filter(|row| row[3] == "1");
    let begins = ["4", "9"].map(|clients| ["client-flood", clients, aardvark, "1"].map(str::to_owned));
    assert_eq!(events.collect::<Vec<_>>(), begins, "one begins in each run: {csv}");
    assert!(read(&scratch, "README.md").contains("| `aardvark` under `client-flood`, divided by"), "{csv}");
}

#[test]
fn whoever_joins_to_attack_finds_a_cluster_that_lets_it() {
    let one_order =
        ["bench", "--protocol", "aardvark", "--attack", "join-flood", "--clients", "4", "--outstanding", "1"];
    let outcome = run(bezant(&one_order).args(["--warmup", "0", "--seconds", "1", "--json"]), "");
    assert_eq!(outcome.code, Some(0), "an attack that does nothing fails: {outcome:?}");
    let line: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert!(line["ops"].as_u64().unwrap() > 0, "{line}");
    let row = ["--figure", "other-attacks", "--fault", "join-flood", "--protocols", "r-aliph:auth=hybrid"];
    let (_, outcome) = compare(&[&row[..], &["--rounds", "1"]].concat());
    assert!(!outcome.stderr.contains("failed"), "nobody joins it, so nothing is measured: {outcome:?}");
}

#[test]
fn bursts_send_exactly_their_requests() {
    let (scratch, outcome) =
        compare(&["--figure", "figure-15", "--protocols", "pbft,unreplicated", "--rounds", "1", "--scale", "0.005"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let csv = read(&scratch, "figure-15.csv");
    for protocol in ["pbft", "unreplicated"] {
        let rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>()).filter(|row| row[1] == protocol);
        let ops: u64 = rows.map(|row| row[3].parse::<u64>().unwrap()).sum();
        assert_eq!(ops, 1050, "{csv}");
    }
}

#[test]
fn a_switch_takes_some_time_whatever_is_missing() {
    let (scratch, outcome) = compare(&["--figure", "figure-5", "--protocols", "aliph,quorum:k=1", "--rounds", "1"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let csv = read(&scratch, "figure-5.csv");
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 2 * 2 * 6, "{csv}");
    for row in &rows {
        let [told, all] = [4, 5].map(|column: usize| row[column].parse::<u64>().unwrap());
        assert!(told > 0 && told <= all, "{csv}");
    }
    assert_eq!(rows.iter().filter(|row| row[1..4] == ["quorum:k=1", "250", "30"]).count(), 1, "{csv}");
}

#[test]
fn what_cannot_be_compared_is_an_error_of_usage() {
    for (arguments, said) in [
        (["--figure", "figure-99", "--rounds", "1"], "figure-99"),
        (["--figure", "table-2", "--clients", "3"], "omit --clients"),
        (["--figure", "ritas-speed", "--clients", "3"], "omit --clients"),
        (["--figure", "figure-14", "--protocols", "pbft,unreplicated"], "no replica that could be down"),
        (["--protocols", "pbft,pbft", "--rounds", "1"], "there twice"),
        (["--figure", "figure-5", "--protocols", "pbft"], "from Quorum"),
        (["--protocols", "pbft,[quorum, chain]", "--rounds", "1"], "needs a backup(pbft)"),
        (["--seconds", "0", "--rounds", "1"], "0.001"),
    ] {
        let outcome = run(bezant(&["bench", "compare"]).args(arguments), "");
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(said), "{outcome:?}");
    }
}

/// The lines of an experiment's data as the columns of these names.
fn columns<const N: usize>(csv: &str, names: [&str; N]) -> Vec<[String; N]> {
    let split = |line: &str| -> Vec<String> { line.split(',').map(str::to_owned).collect() };
    let head = split(csv.lines().next().unwrap());
    let places = names.map(|name| head.iter().position(|column| column == name).unwrap());
    csv.lines().skip(1).map(|line| places.map(|place| split(line)[place].clone())).collect()
}

#[test]
fn what_is_switched_off_costs_more() {
    let figure = "practicality-table-1";
    let brief = ["--rounds", "1", "--seconds", "0.4", "--warmup", "0.1"];
    let (scratch, outcome) = compare(&[&["--figure", figure, "--protocols", "pbft:auth=mac"], &brief[..]].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let csv = read(&scratch, "practicality-table-1.csv");
    let cells = columns(&csv, ["variant", "busiest_replica_bytes_out_per_op", "macs_per_op"]);
    let number = |variant: &str, column: usize| -> f64 {
        cells.iter().find(|row| row[0] == variant).unwrap()[column].parse().unwrap()
    };
    // The primary passes a body of 1 kB to three others; big ones it sends to who missed it only.
    for batches in ["batches", "one by one"] {
        let [inline, big] = ["inline", "big"].map(|size| number(&format!("{size} + {batches}"), 1));
        assert!(inline > 3.0 * 1024.0 && inline > big + 500.0, "{csv}");
    }
    // A request of its own needs all MACs of a batch, of which twelve clients have few each.
    assert!(number("big + one by one", 2) > 1.5 * number("big + batches", 2), "{csv}");
    assert!(read(&scratch, "practicality-table-1.svg").contains("inline + one by one"));
}

#[test]
fn votes_are_inserted_by_clients_that_joined() {
    let protocols = "pbft:auth=signature,pbft:auth=signature:joined";
    let (scratch, outcome) = compare(&[
        "--figure",
        "practicality-figure-3",
        "--protocols",
        protocols,
        "--rounds",
        "1",
        "--seconds",
        "1",
        "--warmup",
        "0.3",
    ]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let csv = read(&scratch, "practicality-figure-3.csv");
    let cells = columns(&csv, ["protocol", "variant", "durability", "workload", "joined"]);
    let row = |durability: &str, variant: &str, joined: bool| {
        let protocol = if joined { "pbft:auth=signature:joined" } else { "pbft:auth=signature" };
        [protocol, variant, durability, "sql-vote", if joined { "true" } else { "false" }].map(str::to_owned)
    };
    for (durability, variant) in
        [("sync", "big + sync"), ("sync", "inline + sync"), ("memory", "big + memory"), ("memory", "inline + memory")]
    {
        for joined in [false, true] {
            assert!(cells.contains(&row(durability, variant, joined)), "{csv}");
        }
    }
    let page = read(&scratch, "README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("of too few rounds for an interval"), "{page}");
    assert!(page.contains("durability as named, plain, authentication as named"), "{page}");
}
