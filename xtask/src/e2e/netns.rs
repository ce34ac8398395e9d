//! The network laboratory of `bezant bench --netns`: links have the rate that was asked for, bytes go where Chain sends
//! them, and nothing is left behind, however it ends.

use super::running::Running;
use crate::failure::{Failure, Result, ensure};
use crate::process::{self, output_of, program, wait_until};
use crate::tools;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LOG: &str = "e2e-netns";
/// Where `ip` keeps namespaces.
const NAMESPACES: &str = "/run/netns";
/// Of each link, in bits per second.
const RATE: f64 = 10_000_000.0;
/// How long building the laboratory, or taking it down, may take.
const BUILD_MAX: Duration = Duration::from_secs(30);
/// How long a whole measurement may take.
const MEASURE_MAX: Duration = Duration::from_secs(90);
/// How a command ends that a signal interrupted.
const INTERRUPTED: i32 = 130;
/// Headers and acknowledgements come on top of requests of 16 KiB.
const REQUEST_BYTES: &str = "16384";
/// Requests under way: more than the links hold, so that all of them are busy.
const CLIENTS: &str = "8";

/// Why this machine cannot have a laboratory; `None` if it can.
pub(crate) fn obstacle() -> Option<String> {
    if !tools::is_root() {
        return Some("it needs root".to_owned());
    }
    let name = format!("bezant-check-{}", std::process::id());
    let made = output_of(&mut program("ip", &["netns", "add", &name]));
    output_of(&mut program("ip", &["netns", "del", &name])).ok();
    made.err().map(|failure| format!("root may not make network namespaces here: {failure}"))
}

/// One laboratory that is killed, one that is interrupted, and one that is used and finds the first one's remains.
pub(crate) fn run(binary: &Path) -> Result<String> {
    let killed = start(binary)?;
    let killed_id = killed.id();
    killed.kill()?;
    ensure(!namespaces_of(killed_id).is_empty(), || "a killed laboratory removed itself: it was not built".into())?;

    let mut interrupted = start(binary)?;
    let id = interrupted.id();
    ensure(namespaces_of(killed_id).is_empty(), || "what a killed laboratory left behind is still there".into())?;
    // In the middle of the measurement, with replicas in their namespaces.
    std::thread::sleep(Duration::from_secs(7));
    ensure(!interrupted.has_ended()?, || "it ended by itself".into())?;
    output_of(&mut program("kill", &["-INT", &id.to_string()]))?;
    let status = interrupted.finish(BUILD_MAX)?;
    ensure(status.code() == Some(INTERRUPTED), || format!("an interrupted measurement ended with {status}"))?;
    ensure_gone(id, "after an interrupt")?;

    let told = check(&measured(binary, "2")?)?;
    check_pairs(&measured(binary, "peers")?)?;
    let left = namespaces("bezant-lab-").into_iter().filter(|name| !is_of_a_process(name)).count();
    ensure(left == 0, || format!("{left} namespaces of processes that have ended are there"))?;
    Ok(told)
}

/// What a short measurement gives.
fn measured(binary: &Path, lans: &str) -> Result<Value> {
    let flags = ["--seconds", "4", "--warmup", "2", "--json"];
    let (output, status) = process::recorded(LOG, MEASURE_MAX, bench(binary, lans).args(flags))?;
    ensure(status.is_some_and(|status| status.success()), || "the measurement failed: see the log".into())?;
    let line = output.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(line).map_err(|_| Failure::new("the measurement gave no JSON"))
}

/// The measurement, but for its duration.
fn bench(binary: &Path, lans: &str) -> Command {
    let mut command = program(&binary.to_string_lossy(), &["bench", "--netns", "--rate", "10mbit", "--lans", lans]);
    command.args(["--protocol", "chain", "--auth", "mac", "--request", REQUEST_BYTES]);
    command.args(["--clients", CLIENTS, "--outstanding", "1"]);
    command
}

/// A measurement that takes long, as soon as its whole network is there.
fn start(binary: &Path) -> Result<Running> {
    let running = Running::start(LOG, bench(binary, "2").args(["--seconds", "60"]))?;
    let id = running.id();
    wait_until("the laboratory has its namespaces", BUILD_MAX, || namespaces_of(id).len() == 6)?;
    Ok(running)
}

/// What must be so, and in words what was measured.
fn check(figures: &Value) -> Result<String> {
    let goodput = figures["link_goodput_bits_per_s"].as_f64().unwrap_or(0.0) / RATE;
    ensure((0.90..=0.96).contains(&goodput), || format!("a link carries {goodput:.3} of its rate"))?;
    let share = figures["request_goodput_per_link"].as_f64().unwrap_or(0.0);
    ensure((0.5..=1.1).contains(&share), || format!("Chain's goodput is {share:.3} of what a link carries"))?;
    let links = figures["links"].as_array().map(Vec::as_slice).unwrap_or_default();
    let carried = |replica: usize, direction: &str| {
        let node = format!("replica-{replica}");
        let link = links.iter().find(|link| link["node"] == *node && link["lan"] == "replicas");
        link.and_then(|link| link[format!("{direction}_per_request_byte")].as_f64()).unwrap_or(f64::NAN)
    };
    // The head gets nothing from other replicas, and the tail sends nothing to them, but acknowledgements; all others
    // pass each request on once. Requests that are under way when it begins or ends make it inexact.
    for (replica, direction, range) in [
        (0, "in", 0.0..=0.1),
        (0, "out", 0.95..=1.25),
        (1, "in", 0.95..=1.25),
        (1, "out", 0.95..=1.25),
        (2, "in", 0.95..=1.25),
        (2, "out", 0.95..=1.25),
        (3, "in", 0.95..=1.25),
        (3, "out", 0.0..=0.1),
    ] {
        let bytes = carried(replica, direction);
        ensure(range.contains(&bytes), || format!("replica {replica} has {bytes} B {direction} per request byte"))?;
    }
    let head = carried(0, "out");
    Ok(format!("a link carries {goodput:.3} of its rate, Chain {share:.2} of that, its head {head:.2} B per byte"))
}

/// Where each pair has a LAN of its own, Chain uses those of neighbours and no others. In a report they stand in the
/// order of the higher replica, the lower one's end first.
fn check_pairs(figures: &Value) -> Result {
    let links = figures["links"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ends: Vec<&Value> = links.iter().filter(|link| link["lan"] == "replicas").collect();
    let pairs = (1..4).flat_map(|high| (0..high).map(move |low| (low, high)));
    for (number, (low, high)) in pairs.enumerate() {
        let out = ends.get(2 * number).and_then(|end| end["out_per_request_byte"].as_f64()).unwrap_or(f64::NAN);
        let expected = if high == low + 1 { 0.95..=1.25 } else { 0.0..=0.1 };
        ensure(expected.contains(&out), || format!("from replica {low} to {high} go {out} B per request byte"))?;
    }
    ensure(ends.len() == 12, || format!("6 pairs have {} ends", ends.len()))
}

fn ensure_gone(id: u32, when: &str) -> Result {
    let left = namespaces_of(id);
    ensure(left.is_empty(), || format!("{} namespaces are left {when}", left.len()))
}

fn namespaces_of(process: u32) -> Vec<String> {
    namespaces(&format!("bezant-lab-{process}-"))
}

fn namespaces(prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}

fn is_of_a_process(name: &str) -> bool {
    let id = name.trim_start_matches("bezant-lab-").split('-').next().unwrap_or_default();
    Path::new("/proc").join(id).exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn figures(goodput: u64, head_in: f64) -> Value {
        let link = |replica: usize, into: f64, out: f64| {
            json!({"node": format!("replica-{replica}"), "lan": "replicas",
                "in_per_request_byte": into, "out_per_request_byte": out})
        };
        let links = [link(0, head_in, 1.06), link(1, 1.08, 1.08), link(2, 1.08, 1.08), link(3, 1.06, 0.02)];
        json!({"link_goodput_bits_per_s": goodput, "request_goodput_per_link": 0.98, "links": links})
    }

    #[test]
    fn what_cannot_be_is_noticed() {
        assert!(check(&figures(9_360_000, 0.02)).is_ok());
        assert!(check(&figures(9_990_000, 0.02)).is_err_and(|why| why.to_string().contains("0.999 of its rate")));
        assert!(check(&figures(9_360_000, 1.0)).is_err_and(|why| why.to_string().contains("replica 0 has 1 B in")));
        assert!(check(&json!({})).is_err());
    }
}
