//! Ring and the others while something is wrong: what chapter 7 of Ring's thesis leaves out. Meant for the network
//! laboratory, where links can be cut and made slow.

use super::claim::{Claim, Ours};
use super::course::{Course, Event, Quantity};
use super::fault::Fault;
use super::terms::{claim, names};
use super::{Experiment, Kind};
use std::time::Duration;

const RING: &str = "ring";
/// Each with one request under way.
const CLIENTS: usize = 10;
/// Of a request, and of a result.
const BYTES: (usize, usize) = (4096, 8);

/// An experiment for each fault.
pub(super) fn faults() -> Vec<Experiment> {
    vec![
        experiment("ring-cut", "Ring: one replica is cut off", Fault::Cut, 1),
        experiment("ring-slow", "Ring: one replica has half the rate", Fault::Slow, 1),
        experiment("ring-panics", "Ring: a client panics all the time", Fault::Panics, 1),
        experiment("ring-partial-macs", "Ring: a client's MACs hold for some replicas", Fault::PartialMacs, 1),
        experiment("ring-partial-macs-f2", "Ring: the same with f = 2", Fault::PartialMacs, 2),
    ]
}

fn experiment(name: &str, title: &str, fault: Fault, f: u8) -> Experiment {
    let [before, down, after] = [5, 5, 10].map(Duration::from_secs);
    let event = Event::Outage { fault, clients: CLIENTS, before, down, after };
    Experiment {
        name: name.into(),
        title: title.into(),
        protocols: names(&[RING, "chain", "pbft"]),
        kind: Kind::Course(Course { event, f, request_bytes: vec![BYTES.0], reply_bytes: BYTES.1 }),
        claims: claims().into(),
        source: "wanted",
        differences: String::new(),
    }
}

fn claims() -> [Claim; 4] {
    let ring = |quantity| Ours::Quantity(quantity, RING);
    [
        claim("Ring is back in fast mode after, in s", "at most 1", ring(Quantity::UntilFast)),
        claim("Half of its throughput is back after, in s", "–", ring(Quantity::UntilBack)),
        claim("Throughput during the fault, divided by that before", "–", ring(Quantity::DuringShare)),
        claim(
            "During the fault, divided by PBFT's",
            "–",
            Ours::Times((RING, Quantity::During), ("pbft", Quantity::During)),
        ),
    ]
}
