//! Measurements as lines of a file: what was measured in several sittings becomes one experiment.

use super::claim::{Claim, Ours};
use super::page::How;
use super::sweep::{Axis, Measurement, Metric, NETWORK, Place, Point, Results, Sweep};
use super::{Experiment, Kind};
use crate::figures::Figures;
use crate::workload::Asked;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Display;

/// One measurement: a line of JSON, beginning with what stands here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// From 1. What was measured in turns has the same one.
    pub round: usize,
    /// The protocol as the command line has it.
    pub contender: String,
    /// The f of the comparison, that of the one server too.
    pub for_f: u8,
    /// How long it ran before it was measured, in seconds.
    pub warmup: f64,
    /// What came of it.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Record {
    /// One line of JSON.
    ///
    /// # Panics
    /// Never: the fields are numbers and words.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("numbers and words")
    }

    fn measurement(self) -> Measurement {
        let Self { round, contender, for_f, mut figures, .. } = self;
        figures.settings.workload = figures.workload;
        figures.settings.joined = figures.joined;
        figures.settings.coin = figures.coin;
        let settings = &figures.settings;
        let (request_bytes, reply_bytes) = (settings.request_bytes, settings.reply_bytes);
        let point = Point { f: for_f, clients: settings.clients, request_bytes, reply_bytes, variant: None };
        Measurement { round, protocol: contender, point, figures }
    }
}

/// Every line of a file's text.
///
/// # Errors
/// The number of the first line that is none of ours, and why.
pub fn parse(text: &str) -> Result<Vec<Record>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let parse = |(number, line)| serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1));
    lines.map(parse).collect()
}

/// What may not differ within one experiment, in words.
fn conditions(record: &Record) -> String {
    let Figures { settings, network, .. } = &record.figures;
    let mut text = format!("{}, {}, {}", settings.durability, settings.channel, settings.auth);
    if let Some(network) = network {
        let rate = network.rate_bits_per_s as f64 / 1e6;
        text = format!("{rate} Mbit/s in each direction of a link, LANs: {}; {text}", network.lans);
    }
    text
}

/// The experiment that these lines are: its points are theirs, and what there is most of is its axis.
///
/// # Errors
/// If there is none, or they were made under different conditions.
pub fn experiment(name: &str, title: &str, records: Vec<Record>) -> Result<(Experiment, Results, How), String> {
    let first = records.first().ok_or("there is no measurement")?;
    let common = conditions(first);
    if let Some(other) = records.iter().find(|other| conditions(other) != common) {
        return Err(format!("measurements of different conditions: {common}, and {}", conditions(other)));
    }
    let replicated = || records.iter().filter(|record| record.figures.settings.n > 1);
    let differs =
        |one: &Record, other: &Record| one.for_f == other.for_f && one.figures.settings.n != other.figures.settings.n;
    if let Some((one, other)) =
        replicated().find_map(|one| Some((one, replicated().find(|other| differs(one, other))?)))
    {
        let (one, other) = (one.figures.settings.n, other.figures.settings.n);
        return Err(format!("measurements with {one} replicas, and with {other}, for the same f"));
    }
    let has_network = first.figures.network.is_some();
    let how = how(&records, &common);
    let protocols = distinct(records.iter().map(|record| record.contender.clone()));
    let measurements: Vec<_> = records.into_iter().map(Record::measurement).collect();
    let points = distinct(measurements.iter().map(|it| it.point));
    let count = |of: fn(&Point) -> usize| points.iter().map(of).collect::<BTreeSet<_>>().len();
    let axis = match (count(|it| it.clients), count(|it| it.request_bytes), count(|it| it.f.into())) {
        (1, 2.., _) => Axis::RequestBytes,
        (1, _, 2..) => Axis::Faults,
        _ => Axis::Clients,
    };
    let mut metrics = vec![Metric::Throughput, Metric::Latency];
    if has_network {
        // The goodput of eight bytes is nobody's aim.
        let is_aim = |metric: &Metric| match metric {
            Metric::ReplyGoodput => points.iter().any(|point| point.reply_bytes > point.request_bytes),
            Metric::RequestGoodput | Metric::LinkBytes | Metric::Data => {
                points.iter().any(|point| point.request_bytes >= point.reply_bytes)
            }
            _ => true,
        };
        metrics.splice(0..1, NETWORK.into_iter().filter(is_aim));
    }
    let kind = Kind::Sweep(Sweep { points, axis, metrics, asked: Asked::Alike, response_over: None });
    let claims = if has_network { claims() } else { Vec::new() };
    let (name, title) = (name.to_owned(), title.to_owned());
    let differences = String::new();
    let experiment = Experiment { name, title, protocols, kind, claims, source: "wanted", differences };
    Ok((experiment, Results { measurements }, how))
}

/// In the order in which they first came.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// The command that measures it, and the settings.
fn how(records: &[Record], conditions: &str) -> How {
    fn list<T: Display + PartialEq>(records: &[Record], of: impl Fn(&Record) -> T) -> String {
        distinct(records.iter().map(of)).iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
    let settings = |of: fn(&Figures) -> usize| list(records, |record| of(&record.figures));
    let mut command = "bezant bench matrix".to_owned();
    let networks = || records.iter().filter_map(|record| record.figures.network.as_ref());
    if let Some(network) = networks().next() {
        let rate = match network.rate_bits_per_s {
            bits if bits.is_multiple_of(1_000_000) => format!("{}mbit", bits / 1_000_000),
            bits => format!("{}kbit", bits / 1_000),
        };
        command += &format!(" --netns --rate {rate} --lans {}", network.lans);
    }
    let rounds = records.iter().map(|record| record.round).max().unwrap_or(0);
    let first = &records[0];
    let is_more = |record: &&Record| record.figures.settings.n > 3 * usize::from(record.for_f) + 1;
    let more = records.iter().find(is_more).map(|record| format!(" --replicas {}", record.figures.settings.n));
    command += &format!(
        " --protocols \"{}\" --f {}{} --clients {} --request {} --reply {} --rounds {rounds} --seconds {} --warmup {}",
        list(records, |record| record.contender.clone()),
        list(records, |record| record.for_f),
        more.unwrap_or_default(),
        settings(|it| it.settings.clients),
        settings(|it| it.settings.request_bytes),
        settings(|it| it.settings.reply_bytes),
        first.figures.seconds.round(),
        first.warmup,
    );
    let range = |values: Vec<f64>| {
        let (low, high) = values.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
        format!("{low:.2} to {high:.2}")
    };
    let mut settings = format!("Rounds in turns: {rounds}; {conditions}.");
    if networks().next().is_some() {
        let goodput = range(networks().map(|it| it.link_goodput_bits_per_s as f64 / 1e6).collect());
        let busy = range(networks().map(|it| it.machine_busy_share).collect());
        settings += &format!(" A link carries B = {goodput} Mbit/s; the machine was busy for {busy} of the time.");
    }
    How { command, settings, failed: 0 }
}

/// What is wanted of Ring, and what the others cannot have. What was not measured has no row.
fn claims() -> Vec<Claim> {
    const BIG: usize = 16_384;
    const MIDDLE: usize = 4_096;
    const NO: usize = crate::workload::OPERATION_BYTES_MIN;
    let place = |f, bytes| Place { f: Some(f), clients: None, bytes: Some(bytes), variant: None };
    let claim = |what: &'static str, said, metric, protocol, place| {
        super::terms::claim(what, said, Ours::Value(metric, (protocol, place)))
    };
    let peak = |what, said, protocol, place| claim(what, said, Metric::RequestGoodput, protocol, place);
    let replies = |what, said, protocol| claim(what, said, Metric::ReplyGoodput, protocol, place(1, (NO, MIDDLE)));
    vec![
        peak("Ring's peak goodput / B, 16 KiB, n = 4", "0.97·4/3 = 1.293", "ring", place(1, (BIG, NO))),
        peak("the same, 4 KiB", "0.97·4/3 = 1.293", "ring", place(1, (MIDDLE, NO))),
        peak("the same, 16 KiB, n = 7", "0.96·7/6 = 1.120", "ring", place(2, (BIG, NO))),
        peak("the same, 4 KiB, n = 7", "0.96·7/6 = 1.120", "ring", place(2, (MIDDLE, NO))),
        peak("Chain's peak goodput / B, 16 KiB, n = 4", "at most 1", "chain", place(1, (BIG, NO))),
        peak("the same, 4 KiB", "at most 1", "chain", place(1, (MIDDLE, NO))),
        peak("ZLight's peak goodput / B, 16 KiB, n = 4", "at most 1", "zlight", place(1, (BIG, NO))),
        peak("the same, 4 KiB", "at most 1", "zlight", place(1, (MIDDLE, NO))),
        peak("PBFT's peak goodput / B, 16 KiB, n = 4", "at most 1", "pbft", place(1, (BIG, NO))),
        peak("the same, 4 KiB", "at most 1", "pbft", place(1, (MIDDLE, NO))),
        replies("Ring's peak of results / B, 4 KiB, n = 4", "3.8 to 4.0", "ring"),
        replies("Chain's peak of results / B, 4 KiB, n = 4", "0.95 to 1.0", "chain"),
        claim(
            "Ring's data to other replicas, bytes per request byte, 16 KiB, n = 4",
            "at most 0.765",
            Metric::Data,
            "ring",
            place(1, (BIG, NO)),
        ),
        claim("Ring's CPU, max/mean, 16 KiB", "at most 1.05", Metric::CpuBalance, "ring", place(1, (BIG, NO))),
        claim("Ring's links, max/mean, 16 KiB", "at most 1.05", Metric::LinkBalance, "ring", place(1, (BIG, NO))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::results;
    use crate::laboratory::{Place as Where, Setup, Snapshot, Traffic};

    fn record(round: usize, protocol: &'static str, clients: usize) -> Record {
        let measurement = results(&[(round, protocol, clients, 100.0)]).measurements.remove(0);
        let mut figures = measurement.figures;
        let links = vec![Where { node: "replica-0".into(), lan: "replicas" }];
        let (rate_bits_per_s, link_goodput_bits_per_s) = (10_000_000, 9_360_000);
        let setup = Setup { lans: 2, rate_bits_per_s, link_goodput_bits_per_s, client_retry_ms: None, links };
        let at = |into| Snapshot { traffic: vec![Traffic { into, out: 0 }], ..Snapshot::default() };
        figures.ops = 1000;
        figures.network = Some(setup.network(&at(0), &at(8_500), &figures));
        Record { round, contender: protocol.to_owned(), for_f: 1, warmup: 2.0, figures }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let lines: Vec<_> = [record(1, "chain", 1), record(1, "pbft", 1)].iter().map(Record::to_line).collect();
        let read = parse(&lines.join("\n")).unwrap();
        assert_eq!(read.iter().map(Record::to_line).collect::<Vec<_>>(), lines);
        assert!(read[0].figures.network.as_ref().is_some_and(|network| network.links.len() == 1));
        assert!(parse("{}").unwrap_err().starts_with("line 1: missing field"));
        let (without, _) = lines[0].split_once(",\"coin\":\"none\"").unwrap();
        assert_eq!(parse(&format!("{without}}}")).unwrap()[0].figures.coin, "local", "there was nothing else");
        let strange = lines[0].replace("\"plain\"", "\"plane\"");
        assert!(parse(&format!("\n{strange}")).unwrap_err().contains("line 2: \"plane\" is not a word"));
    }

    #[test]
    fn lines_are_an_experiment_over_what_differs() {
        let records = vec![record(1, "chain", 1), record(1, "pbft", 1), record(1, "chain", 10), record(2, "pbft", 10)];
        let (experiment, results, how) = experiment("x", "X", records.clone()).unwrap();
        assert_eq!(experiment.protocols, ["chain", "pbft"]);
        let Kind::Sweep(sweep) = &experiment.kind else { panic!("it is a sweep") };
        assert_eq!((sweep.axis, sweep.points.len()), (Axis::Clients, 2));
        assert!(sweep.metrics.contains(&Metric::RequestGoodput) && !sweep.metrics.contains(&Metric::ReplyGoodput));
        assert!(how.command.contains("--rate 10mbit --lans 2 --protocols \"chain,pbft\" --f 1 --clients 1,10"));
        let csv = results.to_csv();
        let cells: BTreeSet<_> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(cells.len(), 1, "{csv}");
        assert!(csv.lines().nth(1).is_some_and(|line| line.ends_with(",9360000")), "{csv}");
    }

    #[test]
    fn different_networks_are_no_experiment() {
        let mut other = record(1, "chain", 1);
        other.figures.network.as_mut().unwrap().lans = 1;
        let error = experiment("x", "X", vec![record(1, "chain", 1), other]).unwrap_err();
        assert!(error.contains("LANs: 1") && error.contains("LANs: 2"), "{error}");
        assert!(experiment("x", "X", Vec::new()).is_err());
    }
}
