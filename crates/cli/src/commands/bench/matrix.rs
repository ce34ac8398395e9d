//! `bezant bench matrix` and `bezant bench report`: many measurements in turns, added to a file as they come, and
//! pictures and tables of such a file.

use super::contender::{self, Contenders};
use super::limits::SESSIONS_MAX;
use super::measure::{Bench, Cleanup, Running, Subject};
use super::writing::{cannot_write, write};
use super::{attacker, netns, share};
use crate::commands::testnet::{AuthName, ChannelName, DurabilityName};
use crate::failure::{Failure, Result};
use crate::quit;
use bezant_perf::chart;
use bezant_perf::compare::claim::Measured;
use bezant_perf::compare::record::{self, Record};
use bezant_perf::compare::{page, picture};
use bezant_perf::workload::Asked;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure protocols, sizes and numbers of clients in turns, and add a line of JSON for each to a file
///
/// A measurement that fails is told and has no line; the others go on. Rounds are numbered on from those in the file.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  bezant bench matrix --netns --rate 10mbit --protocols chain,zlight,pbft \
    --clients 10,50,200 --request 4096,16384 --append runs.jsonl\n  \
    bezant bench report runs.jsonl --name big-requests --title \"Big requests\" --out docs/reproduction")]
pub(super) struct Arguments {
    /// The protocols, with commas between them; a schedule is in brackets
    #[arg(long, value_name = "LIST", value_parser = contender::parse_list)]
    protocols: Contenders,
    /// How many replicas may lie or crash
    #[arg(long, value_delimiter = ',', default_values_t = [1], value_parser = clap::value_parser!(u8).range(0..=10))]
    f: Vec<u8>,
    /// How many replicas there are, at least 3 f + 1; unreplicated has one [default: 3 f + 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    replicas: Option<u8>,
    /// How many clients, each with one request under way
    #[arg(long, value_delimiter = ',', default_values_t = [10],
        value_parser = clap::value_parser!(u64).range(1..=SESSIONS_MAX))]
    clients: Vec<u64>,
    /// Bytes of an operation
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [8],
        value_parser = clap::value_parser!(u32).range(8..=1 << 20))]
    request: Vec<u32>,
    /// Bytes of a result
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [8],
        value_parser = clap::value_parser!(u32).range(0..=1 << 16))]
    reply: Vec<u32>,
    /// How often everything is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// How long to measure each time
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// How long to run before that
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    warmup: u64,
    /// Spread the clients over so many threads: those of one thread hardly contend with one another
    #[arg(long, value_name = "THREADS", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    load_threads: u8,
    /// What is on the disk before a replica speaks
    #[arg(long, value_enum, default_value_t = DurabilityName::Memory)]
    durability: DurabilityName,
    /// How links are protected
    #[arg(long, value_enum, default_value_t = ChannelName::Plain)]
    channel: ChannelName,
    /// How clients prove who they are
    #[arg(long, value_enum, default_value_t = AuthName::Mac)]
    auth: AuthName,
    #[command(flatten)]
    network: netns::Arguments,
    #[command(flatten)]
    processors: share::Arguments,
    #[command(flatten)]
    attacker: attacker::Arguments,
    /// The file to add lines to
    #[arg(long, value_name = "FILE")]
    append: PathBuf,
    /// Where the folders of the started clusters are made [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Make data (CSV), a picture (SVG) and a section of README.md of what `bench matrix` has measured
#[derive(clap::Args)]
pub(super) struct ReportArguments {
    /// The file with the measurements, all of the same network
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What to call the files
    #[arg(long)]
    name: String,
    /// What the section and the picture are about
    #[arg(long)]
    title: String,
    /// Where to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Runs `bench matrix`.
pub(super) fn run(arguments: &Arguments) -> Result {
    let subjects = subjects(arguments);
    subjects.iter().try_for_each(|(_, subject)| subject.check())?;
    let before = records(&arguments.append)?;
    let first = 1 + before.iter().map(|record| record.round).max().unwrap_or(0);
    let running = Running::default();
    let for_signals = running.clone();
    quit::on_request(move || for_signals.exit())?;
    let _cleanup = Cleanup(running.clone());
    let bench = Bench {
        parent: arguments.dir.clone().unwrap_or_else(std::env::temp_dir),
        warmup: Duration::from_secs(arguments.warmup),
        seconds: Duration::from_secs(arguments.seconds),
        load_threads: arguments.load_threads.into(),
        given: Vec::new(),
        attacks: arguments.attacker,
        has_attacker: arguments.attacker.attack.is_some(),
        running,
    };
    let replicas = subjects.iter().map(|(_, subject)| subject.replicas().0).max().unwrap_or(0);
    bench.running.laboratory.build(&arguments.network, replicas)?;
    bench.running.processors.build(&arguments.processors, replicas, bench.has_attacker)?;
    let total = subjects.len() * arguments.rounds as usize;
    let (mut done, mut failed) = (0, 0);
    for round in (first..).take(arguments.rounds as usize) {
        for (for_f, subject) in &subjects {
            done += 1;
            match bench.measure_own(subject) {
                Ok(figures) => {
                    eprintln!("[{done}/{total}] {subject}: {:.0} op/s", figures.ops_per_s);
                    let (contender, warmup) = (subject.contender.to_string(), arguments.warmup as f64);
                    append(&arguments.append, &Record { round, contender, for_f: *for_f, warmup, figures })?;
                }
                Err(failure) => {
                    eprintln!("[{done}/{total}] {subject}: failed");
                    failure.report();
                    failed += 1;
                }
            }
        }
    }
    if failed == 0 { Ok(()) } else { Err(Failure::failed(format!("{failed} measurements failed; see above."))) }
}

/// What is measured in each round, and for which f: point by point, with one protocol after the other.
fn subjects(arguments: &Arguments) -> Vec<(u8, Subject)> {
    let mut subjects = Vec::new();
    for &f in &arguments.f {
        for &request in &arguments.request {
            for &reply in &arguments.reply {
                for &clients in &arguments.clients {
                    subjects.extend(arguments.protocols.0.iter().map(|&contender| {
                        let subject = Subject {
                            contender,
                            f,
                            n: arguments.replicas,
                            clients: clients as usize,
                            outstanding: 1,
                            bundle: 1,
                            request_bytes: request as usize,
                            reply_bytes: reply as usize,
                            durability: arguments.durability,
                            channel: arguments.channel,
                            auth: contender.auth.unwrap_or(arguments.auth),
                            asked: Asked::Alike,
                            variant: None,
                            history_interval: None,
                            lets_join: arguments.attacker.joins(),
                        };
                        (f, subject)
                    }));
                }
            }
        }
    }
    subjects
}

/// What is in a file so far: nothing if it is not there.
fn records(file: &Path) -> Result<Vec<Record>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| Failure::usage(format!("cannot read {}: {error}.", file.display())))?,
    };
    record::parse(&text).map_err(|why| Failure::usage(format!("{}: {why}.", file.display())))
}

fn append(file: &Path, record: &Record) -> Result {
    let open = File::options().create(true).append(true).open(file);
    open.and_then(|mut out| writeln!(out, "{}", record.to_line())).map_err(|error| cannot_write(file, &error))
}

/// Runs `bench report`.
pub(super) fn report(arguments: &ReportArguments) -> Result {
    let ReportArguments { file, name, title, out } = arguments;
    let failed = |why: String| Failure::usage(format!("{}: {why}.", file.display()));
    let (experiment, results, how) = record::experiment(name, title, records(file)?).map_err(failed)?;
    let csv = results.to_csv();
    let measured = Measured::Sweep(results);
    let drawn = chart::svg(&picture::chart(&experiment, &measured));
    let drawn = drawn.map_err(|error| Failure::failed(format!("the picture of {name}: {error}.")))?;
    fs::create_dir_all(out).map_err(|error| cannot_write(out, &error))?;
    let path = out.join(page::NAME);
    let old = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        old => old.map_err(|error| Failure::failed(format!("cannot read {}: {error}.", path.display())))?,
    };
    let page = page::with_section(&old, &experiment, &page::section(&experiment, &measured, &how));
    for (path, text) in [(out.join(format!("{name}.csv")), csv), (out.join(format!("{name}.svg")), drawn), (path, page)]
    {
        write(&path, &text)?;
    }
    Ok(())
}
