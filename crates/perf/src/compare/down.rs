//! The most common fault: one machine is down, for an hour say, and every protocol does without it.

use super::claim::{Bound, Claim, Ours};
use super::course::{Course, Event, Quantity};
use super::fault::Fault;
use super::terms::{BIG_REQUESTS, claim, names};
use super::{Experiment, Kind};
use std::time::Duration;

/// What the others are measured by: it has no fast path to leave.
const PBFT: &str = "pbft";
const FAST: [&str; 4] = ["aliph", "azyzzyva", "chain", "ring"];
/// Each with one request under way.
const CLIENTS: usize = 10;
/// What is wanted of each while the machine is down, as a share of what PBFT does then.
const SHARE: f64 = 0.95;
/// And so many seconds after its return, at most, the fast path is back.
const RETURN_SECONDS: f64 = 1.0;

pub(super) fn experiment() -> Experiment {
    let [before, down, after] = [5, 20, 6].map(Duration::from_secs);
    let event = Event::Outage { fault: Fault::Kill, clients: CLIENTS, before, down, after };
    Experiment {
        name: "machine-down".into(),
        title: "One machine is down".into(),
        protocols: names(&[PBFT].iter().chain(&FAST).copied().collect::<Vec<_>>()),
        kind: Kind::Course(Course { event, f: 1, request_bytes: vec![BIG_REQUESTS.0], reply_bytes: BIG_REQUESTS.1 }),
        claims: FAST.into_iter().flat_map(claims).collect(),
        source: "wanted",
        differences: "`--scale 180` makes the fault an hour long.".into(),
    }
}

fn claims(protocol: &'static str) -> [Claim; 2] {
    let beside = Ours::Times((protocol, Quantity::Settled), (PBFT, Quantity::Settled));
    let fast = Ours::Quantity(Quantity::UntilFast, protocol);
    [
        claim(
            format!("`{protocol}` after 2 s of the fault, divided by `{PBFT}`"),
            "at least 0.95",
            Ours::Surely(Box::new(beside), Bound::AtLeast(SHARE)),
        ),
        claim(
            format!("`{protocol}`: a fast instance runs again after, in s"),
            "at most 1",
            Ours::Surely(Box::new(fast), Bound::AtMost(RETURN_SECONDS)),
        ),
    ]
}
