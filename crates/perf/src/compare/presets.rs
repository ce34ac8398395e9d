//! The experiments of "The Next 700 BFT Protocols" (sections 5.4.1 to 5.4.6) that compare protocols; those of section 6
//! are in [`robust`].
//!
//! The paper's 0/0, 4/0 and 0/4 are kilobytes of request and reply; the smallest operation here has 8 bytes. Its
//! Zyzzyva is our `azyzzyva`. The figures themselves are curves without numbers; beside ours stands what its text says.
//! Those of another paper are in [`practicality`], and Ring's in [`ring`].

use super::claim::{Claim, Ours, Subject};
use super::course::{Burst, Course, Event, Quantity};
use super::fault::Fault;
use super::sweep::{Axis, Metric, Place, Sweep};
use super::switching::{self, Moment, Switching};
use super::terms::{ANYWHERE, BIG, BIG_REPLIES, BIG_REQUESTS, NOTHING, SMALL, THE_PAPER, claim, names, point};
use super::{Experiment, Kind, down, practicality, ring, ring_links, ritas, robust};
use crate::workload::Asked;
use std::time::Duration;

/// The names of [`all`].
pub const NAMES: [&str; 45] = [
    "figure-5",
    "table-2",
    "figure-8",
    "figure-10",
    "figure-11",
    "figure-12",
    "figure-13",
    "figure-14",
    "figure-15",
    "table-3",
    "table-4",
    "table-5",
    "figure-17",
    "figure-18",
    "other-attacks",
    "practicality-table-1",
    "practicality-figure-3",
    "ring-7-3",
    "ring-7-5",
    "ring-7-7",
    "ring-7-9",
    "ring-7-11",
    "ring-7-13",
    "ring-7-15",
    "ring-7-16",
    "ring-7-18",
    "ring-one-lan",
    "ring-fast-links",
    "ring-cut",
    "ring-slow",
    "ring-panics",
    "ring-partial-macs",
    "ring-partial-macs-f2",
    "ritas-table-5-1",
    "ritas-table-5-2",
    "ritas-figure-5-1",
    "ritas-figure-5-2",
    "ritas-figure-5-3",
    "ritas-figure-5-4",
    "ritas-figure-5-5",
    "ritas-links",
    "ritas-figure-5-11",
    "ritas-speed",
    "machine-down",
    "targets",
];

/// What is shown over numbers of clients.
pub const THROUGHPUT_AND_LATENCY: [Metric; 2] = [Metric::Throughput, Metric::Latency];

/// Every experiment: those of the papers in their order, those with Ring and faults, and then our own targets.
pub fn all() -> Vec<Experiment> {
    let papers = [
        figure_5(),
        table_2(),
        figure_8(),
        figure_10(),
        figure_11(),
        figure_12(),
        figure_13(),
        figure_14(),
        figure_15(),
    ];
    let practicality = [practicality::table_1(), practicality::figure_3()];
    papers
        .into_iter()
        .chain(robust::all())
        .chain(practicality)
        .chain(ring_links::all())
        .chain(ring::faults())
        .chain(ritas::all())
        .chain([down::experiment(), targets()])
        .collect()
}

/// Whether an experiment makes sense in the network laboratory only.
pub fn needs_network(name: &str) -> bool {
    let has_links = |experiment: &Experiment| matches!(&experiment.kind, Kind::Groups(groups) if groups.has_links());
    ring_links::all().iter().any(|experiment| experiment.name == name)
        || ritas::all().iter().any(|experiment| experiment.name == name && has_links(experiment))
}

/// PBFT is what the others are divided by.
fn usual() -> Vec<String> {
    names(&["pbft", "azyzzyva", "chain", "aliph", "unreplicated"])
}

/// The paper's Aliph is in Chain under contention, so that its peaks are Chain's.
const fn chain_peak_against(other: &'static str) -> Ours {
    Ours::Change(Metric::Throughput, ("chain", ANYWHERE), (other, ANYWHERE))
}

/// Aliph's value beside another protocol's at the same place.
const fn aliph_against(other: &'static str, metric: Metric, place: Place) -> Ours {
    Ours::Change(metric, ("aliph", place), (other, place))
}

fn figure_5() -> Experiment {
    let switch = |moment, protocol, history, missing_percent| {
        Ours::Switch(moment, protocol, switching::Place { history, missing_percent, attack: None })
    };
    Experiment {
        name: "figure-5".into(),
        title: "Figure 5: how long a switch takes, in ms, with requests of 1 kB".into(),
        protocols: names(&["quorum:k=1", "aliph"]),
        kind: Kind::Switching(Switching {
            f: 1,
            histories: vec![0, 50, 100, 150, 200, 250],
            missing_percents: vec![0, 30],
            lacking: 1,
            request_bytes: 1024,
            history_interval: None,
            attacks: vec![None],
        }),
        claims: vec![
            claim("By a Backup (k = 1), no history", "19.7", switch(Moment::Told, "quorum:k=1", 0, 0)),
            claim("the same, 250 requests", "less than 29.2", switch(Moment::Told, "quorum:k=1", 250, 0)),
            claim("the same, 30 % missing", "29.2", switch(Moment::Told, "quorum:k=1", 250, 30)),
            claim("until all replicas go on", "we want at most 5", switch(Moment::All, "quorum:k=1", 250, 30)),
            claim("From Quorum to Chain, 250 requests", "we want at most 5", switch(Moment::Told, "aliph", 250, 0)),
            claim("the same, 30 % missing", "we want at most 5", switch(Moment::Told, "aliph", 250, 30)),
            claim("until all replicas go on", "we want at most 5", switch(Moment::All, "aliph", 250, 30)),
        ],
        source: THE_PAPER,
        differences:
            "The paper goes from ZLight by Backup to ZLight; ours goes from Quorum, where a client decides which \
            replica lacks what, by a Backup that answers one request back to Quorum, or straight to Chain. From the \
            PANIC until the client is told."
                .into(),
    }
}

fn table_2() -> Experiment {
    let at = |f, bytes| Place { f: Some(f), bytes: Some(bytes), ..ANYWHERE };
    let row = |what, f, bytes, other, paper| claim(what, paper, aliph_against(other, Metric::Latency, at(f, bytes)));
    let place = at(1, NOTHING);
    let quorum = Ours::Ratio(Metric::Latency, ("quorum", place), ("unreplicated", place));
    let bytes = [NOTHING, BIG_REQUESTS, BIG_REPLIES];
    let points = bytes.into_iter().flat_map(|bytes| (1..=3).map(move |f| point(f, 1, bytes)));
    Experiment {
        name: "table-2".into(),
        title: "Table II: latency without contention".into(),
        protocols: names(&["pbft", "azyzzyva", "quorum", "aliph", "unreplicated"]),
        kind: Kind::Sweep(Sweep {
            points: points.collect(),
            axis: Axis::Faults,
            metrics: vec![Metric::Latency],
            asked: Asked::Alike,
            response_over: None,
        }),
        claims: vec![
            row("Aliph's latency beside Zyzzyva's, 0/0, f = 1", 1, NOTHING, "azyzzyva", "−31.6 %"),
            row("the same, f = 2", 2, NOTHING, "azyzzyva", "−31.2 %"),
            row("the same, f = 3", 3, NOTHING, "azyzzyva", "−34.5 %"),
            row("beside PBFT's, 0/0, f = 1", 1, NOTHING, "pbft", "−49.1 %"),
            row("the same, f = 2", 2, NOTHING, "pbft", "−48.8 %"),
            row("the same, f = 3", 3, NOTHING, "pbft", "−44.5 %"),
            row("beside Zyzzyva's, 4/0, f = 1", 1, BIG_REQUESTS, "azyzzyva", "−27.7 %"),
            row("the same, f = 2", 2, BIG_REQUESTS, "azyzzyva", "−26.7 %"),
            row("the same, f = 3", 3, BIG_REQUESTS, "azyzzyva", "−15.6 %"),
            row("beside PBFT's, 4/0, f = 1", 1, BIG_REQUESTS, "pbft", "−36.6 %"),
            row("the same, f = 2", 2, BIG_REQUESTS, "pbft", "−38.4 %"),
            row("the same, f = 3", 3, BIG_REQUESTS, "pbft", "−26 %"),
            row("beside Zyzzyva's, 0/4, f = 1", 1, BIG_REPLIES, "azyzzyva", "−24.3 %"),
            row("the same, f = 2", 2, BIG_REPLIES, "azyzzyva", "−26 %"),
            row("the same, f = 3", 3, BIG_REPLIES, "azyzzyva", "−15.6 %"),
            row("beside PBFT's, 0/4, f = 1", 1, BIG_REPLIES, "pbft", "−37.6 %"),
            row("the same, f = 2", 2, BIG_REPLIES, "pbft", "−38.2 %"),
            row("the same, f = 3", 3, BIG_REPLIES, "pbft", "−29 %"),
            claim("Quorum's latency, divided by the one server's, 0/0, f = 1", "we want at most 1.6", quorum),
        ],
        source: THE_PAPER,
        differences: "Our latency is the median; Q/U is not among our protocols.".into(),
    }
}

/// Throughput and response time over numbers of clients.
fn over_clients(name: &str, title: &str, bytes: (usize, usize), clients: &[usize], claims: Vec<Claim>) -> Experiment {
    let points = clients.iter().map(|&clients| point(1, clients, bytes)).collect();
    Experiment {
        name: name.into(),
        title: title.into(),
        protocols: usual(),
        kind: Kind::Sweep(Sweep {
            points,
            axis: Axis::Clients,
            metrics: THROUGHPUT_AND_LATENCY.to_vec(),
            asked: Asked::Alike,
            response_over: None,
        }),
        claims,
        source: THE_PAPER,
        differences: "The paper had a machine for each replica.".into(),
    }
}

fn figure_8() -> Experiment {
    let at = |clients| Place { clients: Some(clients), ..ANYWHERE };
    let claims = vec![
        claim("Aliph's peak beside Zyzzyva's", "+21 %", aliph_against("azyzzyva", Metric::Throughput, ANYWHERE)),
        claim("Chain's peak beside Zyzzyva's", "+21 % (as Aliph)", chain_peak_against("azyzzyva")),
        claim("Aliph overtakes Zyzzyva at", "more than 40 clients", Ours::Overtakes("aliph", "azyzzyva", NOTHING)),
        claim("Chain overtakes Zyzzyva at", "40 clients (as Aliph)", Ours::Overtakes("chain", "azyzzyva", NOTHING)),
        claim("Aliph's response time beside PBFT's, 1 client", "lower", aliph_against("pbft", Metric::Latency, at(1))),
        claim("the same, 200 clients", "lower", aliph_against("pbft", Metric::Latency, at(200))),
        claim("beside Zyzzyva's, 1 client", "lower", aliph_against("azyzzyva", Metric::Latency, at(1))),
        claim("the same, 10 clients", "slightly higher", aliph_against("azyzzyva", Metric::Latency, at(10))),
        claim("the same, 200 clients", "lower", aliph_against("azyzzyva", Metric::Latency, at(200))),
    ];
    let clients = [1, 5, 10, 20, 40, 80, 120, 200];
    over_clients("figure-8", "Figures 8 and 9: throughput and response time, 0/0", NOTHING, &clients, claims)
}

fn figure_10() -> Experiment {
    let claims = vec![
        claim("Aliph's peak beside PBFT's", "+7.7 %", aliph_against("pbft", Metric::Throughput, ANYWHERE)),
        claim("Aliph's peak beside Zyzzyva's", "+9.8 %", aliph_against("azyzzyva", Metric::Throughput, ANYWHERE)),
        claim("Chain's peak beside PBFT's", "+7.7 % (as Aliph)", chain_peak_against("pbft")),
        claim("Chain's peak beside Zyzzyva's", "+9.8 % (as Aliph)", chain_peak_against("azyzzyva")),
        claim("Aliph overtakes Zyzzyva at", "16 to 20 clients", Ours::Overtakes("aliph", "azyzzyva", BIG_REPLIES)),
    ];
    let clients = [1, 5, 10, 15, 20, 40, 80];
    over_clients("figure-10", "Figure 10: throughput, 0/4", BIG_REPLIES, &clients, claims)
}

fn figure_11() -> Experiment {
    let claims = vec![
        claim("Aliph's peak beside Zyzzyva's", "+360 %", aliph_against("azyzzyva", Metric::Throughput, ANYWHERE)),
        claim("Chain's peak beside Zyzzyva's", "+360 % (as Aliph)", chain_peak_against("azyzzyva")),
        claim("Aliph overtakes Zyzzyva at", "more than 3 clients", Ours::Overtakes("aliph", "azyzzyva", BIG_REQUESTS)),
    ];
    let clients = [1, 2, 3, 5, 10, 40, 100];
    let experiment = over_clients("figure-11", "Figure 11: throughput, 4/0", BIG_REQUESTS, &clients, claims);
    let loss = "The paper explains the distance by multicast that loses messages; here is neither multicast nor loss.";
    Experiment { differences: format!("{} {loss}", experiment.differences), ..experiment }
}

fn figure_12() -> Experiment {
    let at = |request_bytes| Place { bytes: Some((request_bytes, SMALL)), ..ANYWHERE };
    let peaks = |subject: &'static str, base: &'static str, bytes| {
        Ours::Change(Metric::Throughput, (subject, at(bytes)), (base, at(bytes)))
    };
    let sizes = [SMALL, 128, 512, 1024, 2048, BIG];
    let points = sizes.into_iter().flat_map(|size| [10, 40, 200].map(|clients| point(1, clients, (size, SMALL))));
    Experiment {
        name: "figure-12".into(),
        title: "Figure 12: peak throughput over the size of requests".into(),
        protocols: usual(),
        kind: Kind::Sweep(Sweep {
            points: points.collect(),
            axis: Axis::RequestBytes,
            metrics: vec![Metric::Throughput],
            asked: Asked::Alike,
            response_over: None,
        }),
        claims: vec![
            claim("Zyzzyva's peak beside PBFT's, 0 bytes", "higher", peaks("azyzzyva", "pbft", SMALL)),
            claim("the same, 128 bytes", "almost identical", peaks("azyzzyva", "pbft", 128)),
            claim("the same, 4 kB", "almost identical", peaks("azyzzyva", "pbft", BIG)),
            claim("Aliph's peak beside PBFT's, 128 bytes", "higher", peaks("aliph", "pbft", 128)),
            claim("the same, 4 kB", "higher", peaks("aliph", "pbft", BIG)),
            claim("Chain's peak beside PBFT's, 128 bytes", "higher (as Aliph)", peaks("chain", "pbft", 128)),
            claim("the same, 4 kB", "higher (as Aliph)", peaks("chain", "pbft", BIG)),
        ],
        source: THE_PAPER,
        differences: "Peak: the best of 10, 40 and 200 clients.".into(),
    }
}

fn figure_13() -> Experiment {
    let with = |name, f| -> Subject { (name, Place { f: Some(f), ..ANYWHERE }) };
    let peaks = |name| Ours::Change(Metric::Throughput, with(name, 3), with(name, 1));
    let clients = [1, 10, 40, 100];
    let points = (1..=3).flat_map(|f| clients.map(|clients| point(f, clients, BIG_REQUESTS)));
    Experiment {
        name: "figure-13".into(),
        title: "Figure 13: fault scalability, 4/0".into(),
        protocols: names(&["pbft", "chain", "aliph", "unreplicated"]),
        kind: Kind::Sweep(Sweep {
            points: points.collect(),
            axis: Axis::Clients,
            metrics: THROUGHPUT_AND_LATENCY.to_vec(),
            asked: Asked::Alike,
            response_over: None,
        }),
        claims: vec![
            claim("Aliph's peak with f = 3 beside that with f = 1", "−3.5 %", peaks("aliph")),
            claim("the same of Chain", "−3.5 % (as Aliph)", peaks("chain")),
        ],
        source: THE_PAPER,
        differences: "The paper had a machine for each replica, however many there were.".into(),
    }
}

fn figure_14() -> Experiment {
    let seconds = Duration::from_secs;
    let until_back = |protocol| Ours::Quantity(Quantity::UntilBack, protocol);
    let during = Ours::Times(("aliph:k=1", Quantity::During), ("aliph:k=2^i", Quantity::During));
    let event =
        Event::Outage { fault: Fault::Stop, clients: 1, before: seconds(2), down: seconds(10), after: seconds(8) };
    Experiment {
        name: "figure-14".into(),
        title: "Figure 14: one replica is down for 10 s".into(),
        protocols: names(&["pbft", "azyzzyva", "aliph", "aliph:k=1", "aliph:k=2^i"]),
        kind: Kind::Course(Course { event, f: 1, request_bytes: vec![SMALL], reply_bytes: SMALL }),
        claims: vec![
            claim("With k = 2^i Aliph is back on its fast path after, in s", "3", until_back("aliph:k=2^i")),
            claim("the same with k = 1", "not told", until_back("aliph:k=1")),
            claim("the same with our own k, 256 × 2^i", "–", until_back("aliph")),
            claim("op/s while the replica is down, k = 1 divided by k = 2^i", "very low", during),
        ],
        source: THE_PAPER,
        differences: "The paper's client sends 15,000 requests, which would be over before the replica is back; ours \
            sends for a given time."
            .into(),
    }
}

fn figure_15() -> Experiment {
    let times = |quantity, subject, base| Ours::Times((subject, quantity), (base, quantity));
    let counts = [(1, 20_000), (2, 10_000), (5, 10_000), (10, 30_000), (30, 90_000), (10, 30_000), (1, 20_000)];
    let bursts = counts.map(|(clients, operations)| Burst { clients, operations }).to_vec();
    Experiment {
        name: "figure-15".into(),
        title: "Figure 15: clients come and go".into(),
        protocols: names(&["azyzzyva", "chain", "aliph", "pbft"]),
        kind: Kind::Course(Course {
            event: Event::Bursts(bursts),
            f: 1,
            request_bytes: vec![SMALL, 512, 1024, 2048, BIG],
            reply_bytes: SMALL,
        }),
        claims: vec![
            claim("Aliph is done after", "42 s", Ours::Quantity(Quantity::Total, "aliph")),
            claim("Zyzzyva is done after", "68.1 s", Ours::Quantity(Quantity::Total, "azyzzyva")),
            claim("Chain is done after", "77.2 s", Ours::Quantity(Quantity::Total, "chain")),
            claim("Aliph's time, divided by Zyzzyva's", "0.62", times(Quantity::Total, "aliph", "azyzzyva")),
            claim("Chain's time, divided by Zyzzyva's", "1.13", times(Quantity::Total, "chain", "azyzzyva")),
            claim("Aliph's best second, divided by Zyzzyva's", "≈ 3", times(Quantity::Peak, "aliph", "azyzzyva")),
        ],
        source: THE_PAPER,
        differences: "How many requests the paper's clients sent is not known; ours send the numbers in the settings. \
            Requests take the five sizes in turn."
            .into(),
    }
}

/// What we want of our own code. Two kinds of load have little to do with one another, so that they are two panels.
fn targets() -> Experiment {
    let small = Place { bytes: Some(NOTHING), ..ANYWHERE };
    let big = Place { bytes: Some(BIG_REQUESTS), ..ANYWHERE };
    let speed = |name| Ours::Ratio(Metric::Throughput, (name, small), ("pbft", small));
    let cost = |name| Ours::Ratio(Metric::ReplicaCpu, (name, small), ("unreplicated", small));
    Experiment {
        name: "targets".into(),
        title: "Targets: 200 clients with 0/0, and 40 with 4/0".into(),
        protocols: names(&["pbft", "chain", "aliph", "unreplicated"]),
        kind: Kind::Sweep(Sweep {
            points: vec![point(1, 200, NOTHING), point(1, 40, BIG_REQUESTS)],
            axis: Axis::Clients,
            metrics: vec![Metric::Throughput],
            asked: Asked::Alike,
            response_over: None,
        }),
        claims: vec![
            claim("Chain's throughput, divided by PBFT's, 0/0", "at least 1.5", speed("chain")),
            claim("Aliph's throughput, divided by PBFT's, 0/0", "at least 1.5", speed("aliph")),
            claim("Chain's replica CPU per operation, divided by the one server's, 0/0", "at most 4", cost("chain")),
            claim("Aliph's replica CPU per operation, divided by the one server's, 0/0", "at most 4", cost("aliph")),
            claim(
                "Bytes that Chain's busiest replica sends per request of 4,096 bytes",
                "at most 4,301",
                Ours::Value(Metric::BusiestBytes, ("chain", big)),
            ),
        ],
        source: "wanted",
        differences: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_experiments() {
        let names: Vec<_> = all().into_iter().map(|experiment| experiment.name).collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn claims_are_about_what_is_measured() {
        for Experiment { name, protocols, claims, .. } in all() {
            let has = |protocol: &&str| protocols.iter().any(|name| name == protocol);
            for Claim { what, ours, .. } in &claims {
                let bare = if let Ours::Surely(ours, _) = ours { ours } else { ours };
                let both = match bare {
                    Ours::Change(_, subject, base)
                    | Ours::Difference(_, subject, base)
                    | Ours::Ratio(_, subject, base) => [subject.0, base.0],
                    Ours::Value(_, subject) | Ours::Bounded(_, subject, _) => [subject.0; 2],
                    Ours::Overtakes(subject, base, _) => [*subject, *base],
                    Ours::Times(subject, base) => [subject.0, base.0],
                    Ours::AttackedTimes(_, subject, base) => [subject.0, base.0],
                    Ours::Quantity(_, protocol)
                    | Ours::Switch(_, protocol, _)
                    | Ours::Switches(_, protocol, ..)
                    | Ours::Attacked(_, protocol, _)
                    | Ours::Silence(protocol) => [*protocol; 2],
                    Ours::Groups(_, subject, base) => [subject.0, base.unwrap_or(*subject).0],
                    Ours::Surely(..) => unreachable!("one bound is enough"),
                };
                assert!(both.iter().all(has), "{name}: {what}");
            }
        }
    }
}
