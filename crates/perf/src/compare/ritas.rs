//! The figures of RITAS' thesis: layers beside one another, and bursts of atomic broadcast.

use super::claim::{Bound, Claim, Ours};
use super::groups::{Cell, Groups, Quantity};
use super::terms::{claim, names};
use super::{Experiment, Kind};
use crate::groups::{Faultload, Setting, Stage, Style, Work};

const THESIS: &str = "the thesis";
const WANTED: &str = "wanted";

const LAYERS: [(&str, Stage); 6] = [
    ("echo broadcast", Stage::Echo),
    ("reliable broadcast", Stage::Reliable),
    ("binary consensus", Stage::Binary),
    ("multi-valued consensus", Stage::Multi),
    ("vector consensus", Stage::Vector),
    ("atomic broadcast", Stage::Atomic),
];
const SIZES: [(&str, usize); 3] = [("n = 4", 4), ("n = 7", 7), ("n = 10", 10)];
const FAULTLOADS: [(&str, Faultload); 3] =
    [("failure-free", Faultload::FailureFree), ("fail-stop", Faultload::FailStop), ("byzantine", Faultload::Byzantine)];
const STYLES: [(&str, Style); 2] = [("ours", Style::Ours), ("the thesis' variant", Style::Thesis)];
/// Links, by Mbit/s.
const LINKS: [(&str, u64, Style); 6] = [
    ("the thesis' variant, 1 Gbit/s", 1_000, Style::Thesis),
    ("100 Mbit/s", 100, Style::Thesis),
    ("10 Mbit/s", 10, Style::Thesis),
    ("ours, 1 Gbit/s", 1_000, Style::Ours),
    ("ours, 100 Mbit/s", 100, Style::Ours),
    ("ours, 10 Mbit/s", 10, Style::Ours),
];
/// Messages of a burst.
const BURSTS: [usize; 4] = [4, 40, 200, 1000];
/// Bytes of a message, where nothing else is said.
const BYTES: usize = 100;

/// What all of them differ in from the thesis.
const MACHINE: &str = "All processes are threads of one program on one machine, and its loopback is their network.";

pub(super) fn all() -> Vec<Experiment> {
    let faults = ["ritas-figure-5-1", "ritas-figure-5-2", "ritas-figure-5-3"].into_iter().zip(FAULTLOADS);
    let faults = faults.map(|(name, (words, faultload))| bursts_by_size(name, words, faultload));
    let mut experiments = vec![table_5_1(), table_5_2()];
    experiments.extend(faults);
    experiments.extend([figure_5_4(), figure_5_5(), links(), figure_5_11(), speed()]);
    experiments
}

const fn setting(n: usize, faultload: Faultload, style: Style, work: Work) -> Setting {
    Setting { n, faultload, style, encrypted: false, mbit: None, work }
}

fn experiment(name: &str, title: &str, protocols: &[&str], groups: Groups, claims: Vec<Claim>) -> Experiment {
    Experiment {
        name: name.into(),
        title: title.into(),
        protocols: names(protocols),
        kind: Kind::Groups(groups),
        claims,
        source: THESIS,
        differences: MACHINE.into(),
    }
}

fn layers() -> Vec<&'static str> {
    LAYERS.iter().map(|(name, _)| *name).collect()
}

/// How many times as long as the first layer this one takes.
fn times_echo(name: &'static str, at: usize) -> Ours {
    Ours::Groups(Quantity::Latency, (name, at), Some(("echo broadcast", at)))
}

/// IPSec there, TLS here: 0 and 1 on the axis.
fn table_5_1() -> Experiment {
    let cell = |(name, stage), encrypted: bool| Cell {
        name,
        at: usize::from(encrypted),
        setting: Setting { encrypted, ..setting(4, Faultload::FailureFree, Style::Thesis, Work::Calls(stage)) },
    };
    let cells = LAYERS.into_iter().flat_map(|layer| [cell(layer, false), cell(layer, true)]).collect();
    let groups = Groups { axis: "TLS", quantities: vec![Quantity::Latency, Quantity::Cpu], cells };
    let said = ["1.10", "4.55", "7.47", "10.28", "12.43"];
    let mut claims: Vec<Claim> = LAYERS[1..]
        .iter()
        .zip(said)
        .map(|((name, _), said)| {
            claim(format!("{name} ÷ echo broadcast, without encryption"), said, times_echo(name, 0))
        })
        .collect();
    let overhead = ["1.15", "1.30", "1.31", "1.46", "1.34", "1.28"];
    claims.extend(LAYERS.iter().zip(overhead).map(|((name, _), said)| {
        let ours = Ours::Groups(Quantity::Latency, (name, 1), Some((name, 0)));
        claim(format!("{name}: with IPSec, or TLS, ÷ without"), said, ours)
    }));
    experiment("ritas-table-5-1", "RITAS, Table 5.1: layers, with and without encryption", &layers(), groups, claims)
}

fn table_5_2() -> Experiment {
    let cell = |(name, stage), n| Cell {
        name,
        at: n,
        setting: setting(n, Faultload::FailureFree, Style::Thesis, Work::Calls(stage)),
    };
    let cells = SIZES.into_iter().flat_map(|(_, n)| LAYERS.map(|layer| cell(layer, n))).collect();
    let groups = Groups { axis: "processes", quantities: vec![Quantity::Latency, Quantity::Cpu], cells };
    let slower = [("1.38", "1.79"), ("1.36", "1.76"), ("2.92", "6.57"), ("2.69", "5.18"), ("2.79", "5.43")];
    let slower = slower.into_iter().chain([("2.86", "5.18")]);
    let claims = LAYERS.iter().zip(slower).flat_map(|((name, _), (seven, ten))| {
        let beside = |n| Ours::Groups(Quantity::Latency, (name, n), Some((name, 4)));
        [
            claim(format!("{name}: 7 processes ÷ 4"), seven, beside(7)),
            claim(format!("{name}: 10 processes ÷ 4"), ten, beside(10)),
        ]
    });
    let claims = claims.collect();
    experiment("ritas-table-5-2", "RITAS, Table 5.2: layers, 4, 7 and 10 processes", &layers(), groups, claims)
}

const BURST: [Quantity; 3] = [Quantity::Throughput, Quantity::BurstLatency, Quantity::Cpu];

fn burst(name: &'static str, messages: usize, n: usize, faultload: Faultload, style: Style) -> Cell {
    let work = Work::Burst { messages, bytes: BYTES };
    Cell { name, at: messages, setting: setting(n, faultload, style, work) }
}

fn bursts_by_size(name: &str, words: &str, faultload: Faultload) -> Experiment {
    let cells = BURSTS
        .into_iter()
        .flat_map(|messages| SIZES.map(|(name, n)| burst(name, messages, n, faultload, Style::Ours)))
        .collect();
    let groups = Groups { axis: "messages of a burst", quantities: BURST.to_vec(), cells };
    let (seven, ten) = match faultload {
        Faultload::FailStop => ("0.57", "0.35"),
        Faultload::FailureFree | Faultload::Byzantine => ("0.54", "0.36"),
    };
    let beside = |name| Ours::Groups(Quantity::Throughput, (name, 1000), Some(("n = 4", 1000)));
    let claims = vec![
        claim("7 processes ÷ 4, messages/s in bursts of 1,000", seven, beside("n = 7")),
        claim("10 processes ÷ 4", ten, beside("n = 10")),
    ];
    let figure = name.rsplit('-').next().unwrap_or_default();
    let title = format!("RITAS, Figure 5.{figure}: bursts, {words}");
    experiment(name, &title, &SIZES.map(|(name, _)| name), groups, claims)
}

fn figure_5_4() -> Experiment {
    let cells = BURSTS
        .into_iter()
        .flat_map(|messages| FAULTLOADS.map(|(name, faults)| burst(name, messages, 4, faults, Style::Thesis)))
        .collect();
    let groups = Groups { axis: "messages of a burst", quantities: BURST.to_vec(), cells };
    let beside = |name| Ours::Groups(Quantity::Throughput, (name, 1000), Some(("failure-free", 1000)));
    let claims = vec![
        claim("fail-stop ÷ failure-free, messages/s in bursts of 1,000", "1.07", beside("fail-stop")),
        claim("byzantine ÷ failure-free", "1.00", beside("byzantine")),
    ];
    let title = "RITAS, Figure 5.4: faultloads, in the thesis' variant";
    let experiment = experiment("ritas-figure-5-4", title, &FAULTLOADS.map(|(name, _)| name), groups, claims);
    let differences = format!("{MACHINE} The thesis compares two generations of machines here, which we have not.");
    Experiment { differences, ..experiment }
}

fn figure_5_5() -> Experiment {
    let cell = |(name, style), bytes| Cell {
        name,
        at: bytes,
        setting: setting(4, Faultload::FailureFree, style, Work::Burst { messages: 400, bytes }),
    };
    let cells = [10, 100, 1_000, 10_000].into_iter().flat_map(|bytes| STYLES.map(|style| cell(style, bytes))).collect();
    let groups = Groups { axis: "bytes of a message", quantities: BURST.to_vec(), cells };
    let beside = |bytes| {
        let (_, thesis) = (STYLES[0], STYLES[1].0);
        Ours::Groups(Quantity::Throughput, (thesis, bytes), Some((thesis, 100)))
    };
    let claims = vec![
        claim("10 bytes ÷ 100 bytes, messages/s, the thesis' variant", "1.04", beside(10)),
        claim("1 kB ÷ 100 bytes", "0.79", beside(1_000)),
        claim("10 kB ÷ 100 bytes", "0.16", beside(10_000)),
    ];
    let title = "RITAS, Figures 5.5 to 5.8: sizes of messages, bursts of 400";
    experiment("ritas-figure-5-5", title, &STYLES.map(|(name, _)| name), groups, claims)
}

/// The same on links that have a rate.
fn links() -> Experiment {
    let column = |(name, mbit, style)| {
        let work = |bytes| Work::Burst { messages: 40, bytes };
        let on_links =
            move |bytes| Setting { mbit: Some(mbit), ..setting(4, Faultload::FailureFree, style, work(bytes)) };
        [10, 100, 1_000, 10_000].map(|bytes| Cell { name, at: bytes, setting: on_links(bytes) })
    };
    let cells = LINKS.into_iter().flat_map(column).collect();
    let groups = Groups { axis: "bytes of a message", quantities: BURST.to_vec(), cells };
    let [fast, middle, slow] = [LINKS[0].0, LINKS[1].0, LINKS[2].0];
    let beside = |one, other, bytes| Ours::Groups(Quantity::Throughput, (one, bytes), Some((other, bytes)));
    let claims = vec![
        claim("10 Mbit/s ÷ 1 Gbit/s, messages/s, 10 bytes, the thesis' variant", "0.62", beside(slow, fast, 10)),
        claim("100 Mbit/s ÷ 1 Gbit/s, 100 bytes", "0.86", beside(middle, fast, 100)),
        claim("10 Mbit/s ÷ 100 Mbit/s, 100 bytes", "0.38", beside(slow, middle, 100)),
        claim("100 Mbit/s ÷ 1 Gbit/s, 1 kB", "0.55", beside(middle, fast, 1_000)),
        claim("10 Mbit/s ÷ 100 Mbit/s, 1 kB", "0.10", beside(slow, middle, 1_000)),
        claim("100 Mbit/s ÷ 1 Gbit/s, 10 kB", "0.30", beside(middle, fast, 10_000)),
        claim("10 Mbit/s ÷ 100 Mbit/s, 10 kB", "0.10", beside(slow, middle, 10_000)),
    ];
    let title = "RITAS, Figures 5.5 to 5.8: links of 1 Gbit/s, 100 and 10 Mbit/s, bursts of 40";
    let experiment = experiment("ritas-links", title, &LINKS.map(|(name, ..)| name), groups, claims);
    let differences = "All processes are threads of one program on one machine, each in a network of its own with a \
                       link to a switch. Figures 5.9 and 5.10 are left out: they compare two generations of machines."
        .into();
    Experiment { differences, ..experiment }
}

fn figure_5_11() -> Experiment {
    let cells = BURSTS
        .into_iter()
        .flat_map(|messages| STYLES.map(|(name, style)| burst(name, messages, 4, Faultload::FailureFree, style)))
        .collect();
    let quantities = vec![Quantity::Agreement, Quantity::Throughput];
    let groups = Groups { axis: "messages of a burst", quantities, cells };
    let share = |messages| Ours::Groups(Quantity::Agreement, (STYLES[1].0, messages), None);
    let claims = vec![
        claim("% of broadcasts for agreement, bursts of 4, the thesis' variant", "92", share(4)),
        claim("bursts of 1,000", "6.3", share(1000)),
    ];
    let title = "RITAS, Figure 5.11: what agreement costs";
    experiment("ritas-figure-5-11", title, &STYLES.map(|(name, _)| name), groups, claims)
}

/// What we want of a group.
fn speed() -> Experiment {
    let cells = FAULTLOADS.map(|(name, faults)| burst(name, 1000, 4, faults, Style::Ours)).to_vec();
    let groups = Groups { axis: "messages of a burst", quantities: BURST.to_vec(), cells };
    let rate = Ours::Groups(Quantity::Throughput, ("failure-free", 1000), None);
    let beside = Ours::Groups(Quantity::Throughput, ("byzantine", 1000), Some(("failure-free", 1000)));
    let claims = vec![
        claim(
            "messages/s, bursts of 1,000 × 100 bytes",
            "at least 50,000",
            Ours::Surely(Box::new(rate), Bound::AtLeast(50_000.0)),
        ),
        claim("byzantine ÷ failure-free", "at least 0.9", Ours::Surely(Box::new(beside), Bound::AtLeast(0.9))),
    ];
    let title = "RITAS: the speed of a group";
    let experiment = experiment("ritas-speed", title, &FAULTLOADS.map(|(name, _)| name), groups, claims);
    Experiment { source: WANTED, ..experiment }
}
