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
    let outcome = run(bezant(&["bench", "--compare", "unreplicated", "--json", "--dir", &dir]).args(arguments), "");
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
