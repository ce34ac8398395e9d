//! `bezant bench compare`: protocols in turns, ratios with their spread, and the figures of the papers again.

use super::contender::{self, Contender, Contenders};
use super::limits::{SESSIONS_MAX, check_joined};
use super::measure::{Bench, Cleanup, Running, Subject};
use super::pace::{self, Length, Pace};
use super::writing::{cannot_write, write};
use super::{attacker, netns, share, words};
use crate::commands::testnet::{AuthName, ChannelName, DurabilityName};
use crate::failure::{Failure, Result};
use crate::{output, quit};
use bezant_core::schedule::Part;
use bezant_node::config::Protocol;
use bezant_perf::chart;
use bezant_perf::compare::claim::Measured;
use bezant_perf::compare::course::{Course, Event, Fault};
use bezant_perf::compare::summary::{Line, lines};
use bezant_perf::compare::sweep::{Axis, Measurement, Point, Sweep};
use bezant_perf::compare::switching::{self, Switching};
use bezant_perf::compare::{Experiment, Kind, course, page, picture, presets, sweep};
use bezant_perf::figures::Figures;
use bezant_perf::load::Asked;
use bezant_perf::switching::History;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// Every figure.
const ALL: &str = "all";
/// With more processes than this wanting to run beforehand, what is measured is the others.
const LOAD_AVERAGE_MAX: f64 = 1.0;
/// Threads of the clients: as many as let them contend as clients on several hosts do.
pub(super) const LOAD_THREADS: u8 = 2;
/// The name of an experiment from the command line.
const CUSTOM: &str = "custom";

/// Compare protocols, in turns on this machine
///
/// In every round each point is measured with one protocol after the other, each on a cluster of its own. Printed are
/// the median over the rounds and its 95 % interval (of fewer than six rounds: the quartiles), and the same of each
/// value divided by that of the first protocol in the same round. Progress goes to standard error.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant bench compare --protocols pbft,unreplicated --clients 1,10,40\n  \
    bezant bench compare --figure table-2 --rounds 10\n  \
    bezant bench compare --figure all --out docs/reproduction")]
pub(super) struct Arguments {
    /// Measure these figures of the paper, or all
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = figures(),
        conflicts_with_all = ["clients", "f", "request", "reply"])]
    pub(super) figure: Vec<String>,
    /// The protocols, with commas between them; the others are divided by the first. A schedule is in brackets, and
    /// `:k=N` or `:k=N*2^i` says how many requests Backups answer; `:auth=NAME` how its clients prove who they are, and
    /// `:joined` that they join first [default: those of the figure, or pbft,unreplicated]
    #[arg(long, value_name = "LIST", value_parser = contender::parse_list)]
    pub(super) protocols: Option<Contenders>,
    /// How many clients, each with one request under way
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 40],
        value_parser = clap::value_parser!(u64).range(1..=SESSIONS_MAX))]
    pub(super) clients: Vec<u64>,
    /// How many replicas may lie or crash
    #[arg(long, value_delimiter = ',', default_values_t = [1], value_parser = clap::value_parser!(u8).range(0..=10))]
    pub(super) f: Vec<u8>,
    /// How many replicas there are, at least 3 f + 1; unreplicated has one [default: 3 f + 1]
    #[arg(long, value_name = "N", conflicts_with = "figure", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(super) replicas: Option<u8>,
    /// Bytes of an operation
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [8],
        value_parser = clap::value_parser!(u32).range(8..=1 << 20))]
    pub(super) request: Vec<u32>,
    /// Bytes of a result
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=1 << 16))]
    pub(super) reply: u32,
    #[command(flatten)]
    pub(super) length: Length,
    /// Make what happens over time longer or shorter by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(super) scale: f64,
    /// What is wrong for a while, where something is [default: as the figure says]
    #[arg(long, value_name = "FAULT", value_parser = faults())]
    fault: Option<Fault>,
    /// Spread the clients over so many threads: those of one thread hardly contend with one another
    #[arg(long, value_name = "THREADS", default_value_t = LOAD_THREADS)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(super) load_threads: u8,
    /// What is on the disk before a replica speaks
    #[arg(long, value_enum, default_value_t = DurabilityName::Memory)]
    pub(super) durability: DurabilityName,
    /// How links are protected
    #[arg(long, value_enum, default_value_t = ChannelName::Plain)]
    pub(super) channel: ChannelName,
    /// How clients prove who they are
    #[arg(long, value_enum, default_value_t = AuthName::Mac)]
    pub(super) auth: AuthName,
    #[command(flatten)]
    network: netns::Arguments,
    #[command(flatten)]
    processors: share::Arguments,
    #[command(flatten)]
    attacker: attacker::Arguments,
    /// Write every measurement (CSV), a picture (SVG) and a section of README.md there, after every round
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Where the folders of the started clusters are made [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print one JSON object for each value
    #[arg(long)]
    json: bool,
}

/// `cut` and `slow` need a network of our own.
fn faults() -> impl TypedValueParser<Value = Fault> {
    let values = Fault::ALL.map(|fault| PossibleValue::new(fault.name()).help(fault.told()));
    let named = |name: String| Fault::ALL.into_iter().find(|fault| fault.name() == name);
    PossibleValuesParser::new(values).map(move |name| named(name).expect("one of the possible values"))
}

fn figures() -> PossibleValuesParser {
    PossibleValuesParser::new(std::iter::once(ALL).chain(presets::NAMES))
}

fn factor(text: &str) -> std::result::Result<f64, String> {
    pace::number(text, 100.0)
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result {
    let experiments = experiments(arguments)?;
    arguments.attacker.check(experiments.iter().map(|(experiment, _)| &experiment.kind))?;
    if let Some(out) = &arguments.out {
        fs::create_dir_all(out).map_err(|error| cannot_write(out, &error))?;
    }
    let running = Running::default();
    let for_signals = running.clone();
    quit::on_request(move || for_signals.exit())?;
    let _cleanup = Cleanup(running.clone());
    let replicas = experiments.iter().map(|(experiment, _)| experiment.replicas_max()).max().unwrap_or(1);
    let replicas = arguments.replicas.map_or(replicas, usize::from);
    let pace = Pace::new(&arguments.length, &experiments)?;
    running.laboratory.build(&arguments.network, replicas)?;
    running.processors.build(&arguments.processors, replicas, arguments.attacker.attack.is_some())?;
    let mut failed = 0;
    for (experiment, contenders) in &experiments {
        let bench = Bench {
            parent: arguments.dir.clone().unwrap_or_else(std::env::temp_dir),
            warmup: pace.warmup,
            seconds: pace.seconds,
            load_threads: if each_has_a_thread(contenders) { usize::MAX } else { arguments.load_threads.into() },
            given: Vec::new(),
            attacks: arguments.attacker,
            running: running.clone(),
        };
        let mut comparison = Comparison::new(arguments, &bench, experiment, contenders);
        comparison.until = pace.until;
        for round in 1..=arguments.length.rounds as usize {
            comparison.measure(round);
            comparison.publish()?;
        }
        comparison.print()?;
        failed += comparison.failed;
    }
    if failed == 0 { Ok(()) } else { Err(Failure::failed(format!("{failed} measurements failed; see above."))) }
}

/// Those who join have a thread each: to compare with them, all others have.
pub(super) fn each_has_a_thread(contenders: &[Contender]) -> bool {
    contenders.iter().any(|contender| contender.joined)
}

/// What to measure, and the protocols of each.
fn experiments(arguments: &Arguments) -> Result<Vec<(Experiment, Vec<Contender>)>> {
    let chosen: BTreeSet<_> = arguments.figure.iter().map(String::as_str).collect();
    let mut experiments: Vec<_> = match chosen.is_empty() {
        true => vec![custom(arguments)],
        false => presets::all(),
    };
    let in_network = arguments.network.is_there();
    let is_one_of_all = |name: &str| chosen.contains(ALL) && (in_network || !presets::needs_network(name));
    experiments.retain(|it| chosen.is_empty() || is_one_of_all(&it.name) || chosen.contains(&*it.name));
    if let Some(it) = experiments.iter().find(|it| presets::needs_network(&it.name) && !in_network) {
        return Err(Failure::usage(format!("{} is about links that have a rate: add --netns.", it.name)));
    }
    let complete = |mut experiment: Experiment| {
        if let Some(Contenders(chosen)) = &arguments.protocols {
            experiment.protocols = chosen.iter().map(ToString::to_string).collect();
        }
        if let Kind::Course(course) = experiment.kind {
            let mut course = course.scaled(arguments.scale);
            if let (Event::Outage { fault, .. }, Some(chosen)) = (&mut course.event, arguments.fault) {
                *fault = chosen;
            }
            experiment.kind = Kind::Course(course);
        }
        let protocols: Vec<_> = experiment.protocols.iter().map(|name| contender(name)).collect::<Result<_>>()?;
        check(&experiment, &protocols, arguments.auth)?;
        if let Kind::Sweep(sweep) = &experiment.kind {
            let subjects =
                protocols.iter().flat_map(|it| sweep.points.iter().map(|point| subject(arguments, *it, point)));
            subjects.into_iter().try_for_each(|subject| subject.check())?;
        }
        Ok((experiment, protocols))
    };
    experiments.into_iter().map(complete).collect()
}

fn contender(name: &str) -> Result<Contender> {
    let unknown = |_| Failure::usage(format!("there is no protocol `{name}`: choose others with --protocols."));
    contender::parse(name).map_err(unknown)
}

fn check(experiment: &Experiment, contenders: &[Contender], auth: AuthName) -> Result {
    if BTreeSet::from_iter(&experiment.protocols).len() < experiment.protocols.len() {
        return Err(Failure::usage("a protocol is there twice."));
    }
    let has_quorum = |it: &Contender| it.protocol.schedule().parts().starts_with(&[Part::Quorum]);
    if matches!(experiment.kind, Kind::Switching(_)) && !contenders.iter().all(has_quorum) {
        return Err(Failure::usage("switches are measured from Quorum: choose others with --protocols."));
    }
    for contender in contenders.iter().filter(|contender| contender.joined) {
        let Kind::Sweep(sweep) = &experiment.kind else {
            return Err(Failure::usage(
                "clients join where steady loads are measured: choose others with --protocols.",
            ));
        };
        let clients = sweep.points.iter().map(|point| point.clients as u64).max().unwrap_or_default();
        check_joined(contender.auth.unwrap_or(auth), clients, 1)?;
    }
    let outage = matches!(&experiment.kind, Kind::Course(Course { event: Event::Outage { .. }, .. }));
    if outage && contenders.iter().any(|contender| contender.protocol == Protocol::Unreplicated) {
        return Err(Failure::usage("unreplicated has no replica that could be down: choose others with --protocols."));
    }
    Ok(())
}

/// The experiment that the other arguments describe. What there is most to choose from is its axis.
fn custom(arguments: &Arguments) -> Experiment {
    let reply_bytes = arguments.reply as usize;
    let mut points = Vec::new();
    for &f in &arguments.f {
        for &request in &arguments.request {
            let request_bytes = request as usize;
            points.extend(arguments.clients.iter().map(|&clients| Point {
                f,
                clients: clients as usize,
                request_bytes,
                reply_bytes,
                variant: None,
            }));
        }
    }
    let axis = match (arguments.clients.len(), arguments.request.len(), arguments.f.len()) {
        (1, 2.., _) => Axis::RequestBytes,
        (1, _, 2..) => Axis::Faults,
        _ => Axis::Clients,
    };
    Experiment {
        name: CUSTOM.to_owned(),
        title: "Protocols compared".to_owned(),
        protocols: [Protocol::Pbft, Protocol::Unreplicated].map(|protocol| protocol.to_string()).to_vec(),
        kind: Kind::Sweep(Sweep {
            points,
            axis,
            metrics: presets::THROUGHPUT_AND_LATENCY.to_vec(),
            asked: Asked::Alike,
            response_over: None,
        }),
        claims: Vec::new(),
        source: "",
        differences: String::new(),
    }
}

/// What is measured of one protocol at one point.
fn subject(arguments: &Arguments, contender: Contender, point: &Point) -> Subject {
    Subject {
        contender,
        f: point.f,
        n: arguments.replicas,
        clients: point.clients,
        outstanding: 1,
        bundle: 1,
        request_bytes: point.request_bytes,
        reply_bytes: point.reply_bytes,
        durability: point.variant.and_then(|it| it.durability).map_or(arguments.durability, words::value),
        channel: arguments.channel,
        auth: contender.auth.unwrap_or(arguments.auth),
        asked: Asked::Alike,
        variant: point.variant,
    }
}

/// One experiment under way.
pub(super) struct Comparison<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) bench: &'a Bench,
    pub(super) experiment: &'a Experiment,
    pub(super) contenders: &'a [Contender],
    measured: Measured,
    /// How busy the machine was before.
    pub(super) load_average: Option<f64>,
    /// Nothing begins after that.
    until: Option<Instant>,
    done: usize,
    pub(super) failed: usize,
}

impl<'a> Comparison<'a> {
    fn new(
        arguments: &'a Arguments,
        bench: &'a Bench,
        experiment: &'a Experiment,
        contenders: &'a [Contender],
    ) -> Self {
        let measured = match &experiment.kind {
            Kind::Sweep(_) => Measured::Sweep(sweep::Results::default()),
            Kind::Course(_) => Measured::Course(course::Results::default()),
            Kind::Switching(_) => Measured::Switching(switching::Results::default()),
        };
        let load_average = load_average();
        if let Some(load) = load_average.filter(|load| *load > LOAD_AVERAGE_MAX) {
            eprintln!(
                "[{}] others keep this machine busy (load {load}): trust the ratios of CPU alone",
                experiment.name
            );
        }
        Self { arguments, bench, experiment, contenders, measured, load_average, until: None, done: 0, failed: 0 }
    }

    /// Every point with every protocol, in turns: forwards in one round and backwards in the next, so that none is
    /// always measured after the same other one. A measurement that fails is missing; the others go on.
    fn measure(&mut self, round: usize) {
        let experiment = self.experiment;
        match &experiment.kind {
            Kind::Sweep(sweep) => sweep.points.iter().for_each(|point| self.measure_point(round, sweep, point)),
            Kind::Course(course) => self.measure_course(round, course),
            Kind::Switching(switching) => self.measure_switching(round, switching),
        }
    }

    fn measure_point(&mut self, round: usize, sweep: &Sweep, point: &Point) {
        let mut contenders = self.contenders.to_vec();
        if round.is_multiple_of(2) {
            contenders.reverse();
        }
        for contender in contenders {
            if self.until.is_some_and(|until| Instant::now() >= until) {
                eprintln!("[{}] no time for {contender}, {point}", self.experiment.name);
                continue;
            }
            let subject = Subject { asked: sweep.asked, ..subject(self.arguments, contender, point) };
            let outcome = self.bench.measure_own(&subject);
            let what = format!("{contender}, {point}");
            let told = |it: &Figures| format!("{:.0} op/s, p50 {} µs", it.ops_per_s, it.p50_us);
            let Some(figures) = self.report(&what, outcome, told) else { continue };
            if let Measured::Sweep(results) = &mut self.measured {
                let (protocol, point) = (contender.to_string(), *point);
                results.measurements.push(Measurement { round, protocol, point, figures });
            }
        }
    }

    fn measure_course(&mut self, round: usize, course: &Course) {
        let request_bytes = course.request_bytes.first().copied().unwrap_or_default();
        let point = Point {
            f: course.f,
            clients: course.clients(),
            request_bytes,
            reply_bytes: course.reply_bytes,
            variant: None,
        };
        for &contender in self.contenders {
            let subject = subject(self.arguments, contender, &point);
            let outcome = self.bench.follow(&subject, course);
            let told = |timeline: &course::Timeline| {
                let ops: u64 = timeline.buckets.iter().sum();
                format!("{ops} operations in {:.1} s", timeline.total.as_secs_f64())
            };
            let Some(timeline) = self.report(&contender.to_string(), outcome, told) else { continue };
            if let Measured::Course(results) = &mut self.measured {
                results.timelines.push((round, timeline));
            }
        }
    }

    fn measure_switching(&mut self, round: usize, switching: &Switching) {
        let Switching { f, histories, missing_percents, request_bytes } = switching;
        for &missing_percent in missing_percents {
            for &requests in histories {
                for &contender in self.contenders {
                    let clients = requests + bezant_perf::switching::OTHER_SESSIONS;
                    let point = Point { f: *f, clients, request_bytes: *request_bytes, reply_bytes: 0, variant: None };
                    let history = History { requests, missing_percent, request_bytes: *request_bytes };
                    let outcome = self.bench.measure_switch(&subject(self.arguments, contender, &point), history);
                    let what = format!("{contender}, {requests} requests, {missing_percent} % missing");
                    let told = |took: &bezant_perf::switching::Took| format!("{} µs", took.told.as_micros());
                    let Some(took) = self.report(&what, outcome, told) else { continue };
                    if let Measured::Switching(results) = &mut self.measured {
                        let protocol = contender.to_string();
                        let one = switching::Measurement { round, protocol, history: requests, missing_percent, took };
                        results.measurements.push(one);
                    }
                }
            }
        }
    }

    /// Says on standard error what came of it.
    fn report<T>(&mut self, what: &str, outcome: Result<T>, told: impl Fn(&T) -> String) -> Option<T> {
        self.done += 1;
        let of_one_round = match &self.experiment.kind {
            Kind::Sweep(sweep) => sweep.points.len() * self.contenders.len(),
            Kind::Course(_) => self.contenders.len(),
            Kind::Switching(it) => it.histories.len() * it.missing_percents.len() * self.contenders.len(),
        };
        let total = of_one_round * self.arguments.length.rounds as usize;
        let place = format!("[{} {}/{total}] {what}:", self.experiment.name, self.done);
        match outcome {
            Ok(value) => {
                eprintln!("{place} {}", told(&value));
                Some(value)
            }
            Err(failure) => {
                self.failed += 1;
                eprintln!("{place} failed");
                failure.report();
                None
            }
        }
    }

    /// Writes what is known so far.
    fn publish(&self) -> Result {
        let Some(out) = &self.arguments.out else { return Ok(()) };
        let (experiment, name) = (self.experiment, &self.experiment.name);
        let csv = match &self.measured {
            Measured::Sweep(results) => results.to_csv(),
            Measured::Course(results) => results.to_csv(),
            Measured::Switching(results) => results.to_csv(),
        };
        let picture = chart::svg(&picture::chart(experiment, &self.measured))
            .map_err(|error| Failure::failed(format!("the picture of {name}: {error}.")))?;
        let path = out.join(page::NAME);
        let old = match fs::read_to_string(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::failed(format!("cannot read {}: {error}.", path.display())));
            }
            old => old.unwrap_or_default(),
        };
        let section = page::section(experiment, &self.measured, &self.how());
        write(&out.join(format!("{name}.csv")), &csv)?;
        write(&out.join(format!("{name}.svg")), &picture)?;
        write(&path, &page::with_section(&old, experiment, &section))
    }

    /// On standard output.
    fn print(&self) -> Result {
        let lines = lines(self.experiment, &self.measured);
        if self.arguments.json {
            let print = |line: &Line| output::line(serde_json::to_string(line).expect("numbers and words"));
            return lines.iter().try_for_each(print);
        }
        let head = ["where", "protocol", "what", "median [interval]", "divided by", "ratio [interval]"];
        let row = |line: &Line| {
            let at = line.at.as_ref().map_or_else(String::new, |at| format!("{}, {} = {at}", line.panel, line.axis));
            let ratio = line.ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"));
            let value = if line.value.median < 100.0 { line.value.to_string() } else { format!("{:.0}", line.value) };
            vec![at, line.protocol.clone(), line.metric.to_owned(), value, line.divided_by.clone(), ratio]
        };
        let head = head.map(str::to_owned).to_vec();
        let rows: Vec<_> = std::iter::once(head).chain(lines.iter().map(row)).collect();
        println!("{}", self.experiment.title);
        print!("{}", output::table(&rows));
        Ok(())
    }
}

/// Processes that wanted to run in the last minute; `None` where the system does not tell.
fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_of_the_figures_exists() {
        for experiment in presets::all() {
            let protocols: Vec<_> = experiment.protocols.iter().filter_map(|name| contender(name).ok()).collect();
            assert_eq!(protocols.len(), experiment.protocols.len(), "{}", experiment.name);
            assert!(check(&experiment, &protocols, AuthName::Mac).is_ok(), "{}", experiment.name);
        }
    }
}
