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
use bezant_perf::compare::attacks::{self, Attacks};
use bezant_perf::compare::claim::Measured;
use bezant_perf::compare::course::{Course, Event};
use bezant_perf::compare::fault::Fault;
use bezant_perf::compare::summary::{Line, lines};
use bezant_perf::compare::sweep::{Axis, Point, Sweep};
use bezant_perf::compare::{Experiment, Kind, course, groups, page, picture, presets, sweep, switching};
use bezant_perf::workload::Asked;
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
        conflicts_with_all = ["f", "request", "reply"])]
    pub(super) figure: Vec<String>,
    /// The protocols, with commas between them; the others are divided by the first. A schedule is in brackets, and
    /// `:k=N` or `:k=N*2^i` says how many requests Backups answer; `:coin=common` what ritas tosses, `:auth=NAME` how
    /// its clients prove who they are, and `:joined` that they join first [default: those of the figure, or
    /// pbft,unreplicated]
    #[arg(long, value_name = "LIST", value_parser = contender::parse_list)]
    pub(super) protocols: Option<Contenders>,
    /// How many clients, each with one request under way; with a figure, while there are attacks, whose peaks are
    /// compared [default: 1,10,40, or as the figure says]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=SESSIONS_MAX))]
    pub(super) clients: Option<Vec<u64>>,
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
    /// Let the clusters of one point run at the same time, each with load on it in so many slices of what --seconds
    /// says, in turns: then a machine that others share is as fast for one as for the other. Not with attacks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    #[arg(conflicts_with_all = ["network", "attacker", "budget"])]
    pub(super) slices: u32,
    /// Make what happens over time longer or shorter by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(super) scale: f64,
    /// What is wrong for a while, where something is; of several attacks, this one only [default: as the figure says]
    #[arg(long, value_name = "FAULT", value_parser = faults())]
    pub(super) fault: Option<Fault>,
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

impl Arguments {
    /// Those of an experiment that is no figure.
    pub(super) fn clients(&self) -> &[u64] {
        self.clients.as_deref().unwrap_or(&[1, 10, 40])
    }
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
    pace::number(text, 1000.0)
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
    let has_attacker =
        arguments.attacker.attack.is_some() || experiments.iter().any(|(experiment, _)| experiment.kind.has_attacker());
    running.laboratory.build(&arguments.network, replicas)?;
    running.processors.build(&arguments.processors, replicas, has_attacker)?;
    let mut failed = 0;
    for (experiment, contenders) in &experiments {
        let bench = Bench {
            parent: arguments.dir.clone().unwrap_or_else(std::env::temp_dir),
            warmup: pace.warmup,
            seconds: pace.seconds,
            load_threads: if each_has_a_thread(contenders) { usize::MAX } else { arguments.load_threads.into() },
            given: Vec::new(),
            attacks: arguments.attacker,
            has_attacker,
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
        let takes_clients = chosen.is_empty() || matches!(experiment.kind, Kind::Attacks(_));
        if arguments.clients.is_some() && !takes_clients {
            return Err(Failure::usage(format!("{} has its own numbers of clients: omit --clients.", experiment.name)));
        }
        if arguments.slices > 1 && !matches!(experiment.kind, Kind::Sweep(_)) {
            return Err(Failure::usage("--slices is for steady loads."));
        }
        if let Kind::Groups(_) = experiment.kind {
            return Ok((experiment, Vec::new()));
        }
        if let Some(Contenders(chosen)) = &arguments.protocols {
            experiment.protocols = chosen.iter().map(ToString::to_string).collect();
        }
        experiment.kind = changed(experiment.kind, arguments);
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

/// The same, longer or shorter by a factor, and with another fault or with other clients if they are chosen.
fn changed(kind: Kind, arguments: &Arguments) -> Kind {
    let (scale, chosen) = (arguments.scale, arguments.fault);
    match kind {
        Kind::Course(course) => {
            let mut course = course.scaled(scale);
            if let (Event::Outage { fault, .. }, Some(chosen)) = (&mut course.event, chosen) {
                *fault = chosen;
            }
            Kind::Course(course)
        }
        Kind::Attacks(mut attacks) => {
            if let Some(chosen) = &arguments.clients {
                attacks.clients = chosen.iter().map(|clients| *clients as usize).collect();
            }
            let all = chosen.map_or(attacks.attacks, |chosen| vec![chosen]);
            Kind::Attacks(Attacks { attacks: all, scale, ..attacks })
        }
        Kind::Switching(mut switching) => {
            switching.attacks.retain(|attack| attack.is_none() || chosen.is_none() || *attack == chosen);
            Kind::Switching(switching)
        }
        Kind::Sweep(_) | Kind::Groups(_) => kind,
    }
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
    let outage =
        matches!(&experiment.kind, Kind::Course(Course { event: Event::Outage { .. }, .. }) | Kind::Attacks(_));
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
            points.extend(arguments.clients().iter().map(|&clients| Point {
                f,
                clients: clients as usize,
                request_bytes,
                reply_bytes,
                variant: None,
            }));
        }
    }
    let axis = match (arguments.clients().len(), arguments.request.len(), arguments.f.len()) {
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
pub(super) fn subject(arguments: &Arguments, contender: Contender, point: &Point) -> Subject {
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
        history_interval: None,
        lets_join: arguments.attacker.joins(),
    }
}

/// One experiment under way.
pub(super) struct Comparison<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) bench: &'a Bench,
    pub(super) experiment: &'a Experiment,
    pub(super) contenders: &'a [Contender],
    pub(super) measured: Measured,
    /// How busy the machine was before.
    pub(super) load_average: Option<f64>,
    /// Nothing begins after that.
    pub(super) until: Option<Instant>,
    pub(super) done: usize,
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
            Kind::Attacks(_) => Measured::Attacks(attacks::Results::default()),
            Kind::Groups(_) => Measured::Groups(groups::Results::default()),
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

    /// Writes what is known so far.
    fn publish(&self) -> Result {
        let Some(out) = &self.arguments.out else { return Ok(()) };
        let (experiment, name) = (self.experiment, &self.experiment.name);
        let csv = match &self.measured {
            Measured::Sweep(results) => results.to_csv(),
            Measured::Course(results) => results.to_csv(),
            Measured::Switching(results) => results.to_csv(),
            Measured::Attacks(results) => results.to_csv(),
            Measured::Groups(results) => results.to_csv(),
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
            let at = line
                .at
                .as_ref()
                .map_or_else(|| line.panel.clone(), |at| format!("{}, {} = {at}", line.panel, line.axis));
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
        for experiment in presets::all().into_iter().filter(|it| !matches!(it.kind, Kind::Groups(_))) {
            let protocols: Vec<_> = experiment.protocols.iter().filter_map(|name| contender(name).ok()).collect();
            assert_eq!(protocols.len(), experiment.protocols.len(), "{}", experiment.name);
            let shown: Vec<_> = protocols.iter().map(ToString::to_string).collect();
            assert_eq!(shown, experiment.protocols, "results are found by these names");
            assert!(check(&experiment, &protocols, AuthName::Mac).is_ok(), "{}", experiment.name);
        }
    }
}
