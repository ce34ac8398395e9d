//! `bezant bench`: what the cluster can do, and what an operation costs.
//!
//! Each measurement has a cluster of its own: one process per replica, in a folder that is thrown away, with the null
//! service. The load comes from this process. Rounds and protocols take turns, so that a machine that gets slower for
//! a while does not favour one of them.

mod attacker;
mod compare;
mod contender;
mod course;
mod fault;
mod how;
mod limits;
mod matrix;
mod measure;
mod netns;
mod owner;
mod pace;
mod rounds;
mod share;
mod slices;
mod switch;
mod words;
mod writing;

use super::testnet::{AuthName, ChannelName, CoinName, DurabilityName, parse_protocol};
use crate::failure::{Failure, Result};
use crate::{given, output, quit};
use bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;
use bezant_node::config::{ClusterConfig, Protocol};
use bezant_perf::figures::Figures;
use bezant_perf::network::Network;
use bezant_perf::shares::Shares;
use bezant_perf::sql::Mix;
use bezant_perf::suite::{self, Point};
use bezant_perf::workload::Asked;
use bytes::Bytes;
use clap::ValueEnum;
use contender::Contender;
use limits::{SESSIONS_MAX, check_joined};
use measure::{Bench, Cleanup, Subject};
use std::path::PathBuf;
use std::time::Duration;
use words::value;

/// Measure throughput, latency and the cost of an operation
///
/// Starts a cluster of its own on this machine, one process per replica, and keeps a fixed number of requests under
/// way. Progress goes to standard error, results to standard output.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  bezant bench --auth mac --clients 20 --outstanding 10 --compare unreplicated\n  \
    bezant bench --suite --json > figures.jsonl\n\nMemory and plain, the defaults here, are for measuring the protocol \
    alone:\na cluster in earnest runs with --durability sync --channel tls.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The replication protocol: pbft, aardvark, ritas, quorum, zlight, chain, azyzzyva, aliph, r-aliph, ring,
    /// unreplicated, or a list of parts such as "zlight, chain, backup(pbft)"
    #[arg(long, value_name = "NAME", default_value_t, value_parser = parse_protocol)]
    protocol: Protocol,
    /// How many replicas may lie or crash
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=10))]
    f: u8,
    /// How many replicas there are, at least 3 f + 1; unreplicated has one [default: 3 f + 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    replicas: Option<u8>,
    /// Connections to each replica
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=SESSIONS_MAX))]
    clients: u64,
    /// Requests under way on each connection, at any time
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=SESSIONS_MAX))]
    outstanding: u64,
    /// Operations that leave together as one request, at most; 1: each by itself
    #[arg(long, value_name = "N", default_value_t = BUNDLE_OPERATIONS_MAX as u64,
        value_parser = clap::value_parser!(u64).range(1..=BUNDLE_OPERATIONS_MAX as u64))]
    bundle: u64,
    /// Bytes of an operation
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..=1 << 20))]
    request: u32,
    /// Bytes of a result
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=1 << 16))]
    reply: u32,
    /// What is replicated: the empty service, or SQLite
    #[arg(long, value_enum, default_value_t = ServiceName::Null, conflicts_with = "suite")]
    service: ServiceName,
    /// What is asked of SQLite: single-row inserts, reads of a row by its key, or nine reads to an insert
    #[arg(long, value_enum, default_value_t = WorkloadName::Insert)]
    workload: WorkloadName,
    /// Measure plain SQLite on this disk as well, in turns: its inserts one by one, and in groups of as many as there
    /// are requests under way
    #[arg(long, requires = "service")]
    yardsticks: bool,
    /// How long to measure
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// How long to run before that
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=3_600))]
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
    #[arg(long, value_enum, default_value_t)]
    auth: AuthName,
    /// What ritas and backup(ritas) toss where replicas do not agree; what is compared with them tosses none
    #[arg(long, value_enum, default_value_t)]
    coin: CoinName,
    /// Let the clients join first, each with a key of its own and on a thread of its own, instead of being named by
    /// the cluster's file; under pbft, and with requests that are signed
    #[arg(long)]
    joined: bool,
    /// How often to measure; the table shows the round with the median throughput
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Measure this protocol as well, in turns
    #[arg(long, value_name = "NAME", value_parser = parse_protocol)]
    compare: Option<Protocol>,
    /// Measure every row of the published table instead, in turns with `unreplicated`
    #[arg(long, conflicts_with_all = ["cluster", "coin", "compare", "joined", "protocol"])]
    suite: bool,
    /// Measure this running cluster instead of one that is started for it; its service must be `null`, or what
    /// --service or --operation say
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["compare", "protocol", "f", "replicas", "channel", "auth"])]
    #[arg(conflicts_with_all = ["coin", "netns", "cpu_share", "lie"])]
    cluster: Option<PathBuf>,
    /// Have that cluster execute this operation of whatever service it has, in hexadecimal; several are taken in turn.
    /// An --attack asks for them, too
    #[arg(long, value_name = "HEX", requires = "cluster", value_parser = given::operation)]
    #[arg(conflicts_with_all = ["request", "reply", "service", "workload"])]
    operation: Vec<Bytes>,
    /// The client's secret key for that cluster [default: client.key beside the cluster's file]
    #[arg(long, value_name = "FILE", requires = "cluster")]
    key: Option<PathBuf>,
    #[command(flatten)]
    network: netns::Arguments,
    #[command(flatten)]
    processors: share::Arguments,
    #[command(flatten)]
    attacker: attacker::Arguments,
    /// Where the folder of the started cluster is made [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print one JSON object per measurement
    #[arg(long)]
    json: bool,
}

/// What is replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ServiceName {
    /// Requests and replies of chosen sizes, no state
    Null,
    /// SQL tables
    Sql,
}

/// What is asked of the SQL service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WorkloadName {
    /// Single-row inserts, each with a key of its own
    Insert,
    /// Reads of one row by its key
    Read,
    /// Nine reads, then an insert
    Mixed,
    /// Single-row inserts with the agreed time and an agreed random number
    Vote,
}

#[derive(clap::Subcommand)]
enum Command {
    Compare(Box<compare::Arguments>),
    Matrix(Box<matrix::Arguments>),
    Report(matrix::ReportArguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    match &arguments.command {
        Some(Command::Compare(arguments)) => return compare::run(arguments),
        Some(Command::Matrix(arguments)) => return matrix::run(arguments),
        Some(Command::Report(arguments)) => return matrix::report(arguments),
        None => {}
    }
    let subjects = subjects(arguments)?;
    check(arguments, &subjects)?;
    let bench = Bench {
        parent: arguments.dir.clone().unwrap_or_else(std::env::temp_dir),
        warmup: Duration::from_secs(arguments.warmup),
        seconds: Duration::from_secs(arguments.seconds),
        load_threads: arguments.load_threads.into(),
        given: arguments.operation.clone(),
        attacks: arguments.attacker,
        has_attacker: arguments.attacker.attack.is_some() && arguments.cluster.is_none(),
        running: measure::Running::default(),
    };
    if let Some(file) = &arguments.cluster {
        let config = ClusterConfig::load(file).map_err(Failure::usage)?;
        given::expect_ours_without(&arguments.operation, &config)?;
    }
    let for_signals = bench.running.clone();
    quit::on_request(move || for_signals.exit())?;
    let _cleanup = Cleanup(bench.running.clone());
    let replicas = subjects.iter().map(|subject| subject.replicas().0).max().unwrap_or(0);
    bench.running.laboratory.build(&arguments.network, replicas)?;
    bench.running.processors.build(&arguments.processors, replicas, bench.has_attacker)?;
    let yardsticks: &[usize] =
        if arguments.yardsticks { &[1, subjects[0].clients * subjects[0].outstanding] } else { &[] };
    let mut results: Vec<Vec<Figures>> = vec![Vec::new(); subjects.len() + yardsticks.len()];
    let total = subjects.len() as u64 * arguments.rounds;
    for round in 0..arguments.rounds {
        for (number, subject) in subjects.iter().enumerate() {
            let count = round * subjects.len() as u64 + number as u64 + 1;
            eprintln!("[{count}/{total}] {subject}");
            let figures = match &arguments.cluster {
                Some(file) => bench.measure_at(subject, file, arguments.key.as_deref())?,
                None => bench.measure_own(subject)?,
            };
            eprintln!(
                "          {:.0} op/s, {:.1} replica CPU µs/op",
                figures.ops_per_s, figures.replica_cpu_us_per_op
            );
            if arguments.json {
                println!("{}", figures.to_json());
            }
            results[number].push(figures);
        }
        for (runs, rows) in results[subjects.len()..].iter_mut().zip(yardsticks) {
            let figures = bench.measure_plain(*rows)?;
            eprintln!("          {:.0} inserts/s by plain SQLite, {rows} in a transaction", figures.ops_per_s);
            if arguments.json {
                println!("{}", figures.to_json());
            }
            runs.push(figures);
        }
    }
    if !arguments.json {
        print_tables(&results.into_iter().map(median).collect::<Vec<_>>());
    }
    Ok(())
}

/// A row for each measurement, and in a laboratory a table of shares or of links for each.
fn print_tables(measured: &[Figures]) {
    let head = Figures::HEAD.map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(head).chain(measured.iter().map(Figures::row)).collect();
    print!("{}", output::table(&rows));
    for figures in measured {
        if let Some(shares) = &figures.shares {
            let head = Shares::HEAD.map(str::to_owned).to_vec();
            let rows: Vec<_> = std::iter::once(head).chain(shares.rows()).collect();
            print!("\n{}\n{}", shares.summary(figures.settings.protocol), output::table(&rows));
        }
        let Some(network) = &figures.network else { continue };
        let head = Network::HEAD.map(str::to_owned).to_vec();
        let rows: Vec<_> = std::iter::once(head).chain(network.rows()).collect();
        print!("\n{}\n{}", network.summary(figures.settings.protocol), output::table(&rows));
    }
}

/// The run with the median throughput.
fn median(mut runs: Vec<Figures>) -> Figures {
    runs.sort_by(|a, b| a.ops_per_s.total_cmp(&b.ops_per_s));
    let middle = runs.len() / 2;
    runs.swap_remove(middle)
}

/// Whether all of this can be measured.
fn check(arguments: &Arguments, subjects: &[Subject]) -> Result {
    if let Some(subject) = subjects.iter().find(|subject| (subject.clients * subject.outstanding) as u64 > SESSIONS_MAX)
    {
        let Subject { clients, outstanding, .. } = subject;
        let text = format!("{clients} × {outstanding} requests under way are too many: at most {SESSIONS_MAX}.");
        return Err(Failure::usage(text));
    }
    if arguments.cluster.is_none() {
        subjects.iter().try_for_each(Subject::check)?;
    }
    if arguments.joined {
        check_joined(arguments.auth, arguments.clients, arguments.outstanding)?;
    }
    Ok(())
}

/// What is to be measured in each round.
fn subjects(arguments: &Arguments) -> Result<Vec<Subject>> {
    let somebody_tosses = arguments.protocol.has_ritas() || arguments.compare.is_some_and(Protocol::has_ritas);
    let contender = |protocol: Protocol| {
        let refused = |option: &str, why: String| Failure::usage(format!("--{option}: {why}."));
        // Beside one that tosses coins others may be measured that have none.
        let coin = if protocol.has_ritas() || !somebody_tosses { arguments.coin } else { CoinName::Local };
        let contender = Contender::from(protocol).tossing(coin).map_err(|why| refused("coin", why))?;
        match arguments.joined {
            true => contender.joined().map_err(|why| refused("joined", why)),
            false => Ok(contender),
        }
    };
    let longest = arguments.operation.iter().map(Bytes::len).max();
    let one = Subject {
        contender: contender(arguments.protocol)?,
        f: arguments.f,
        n: arguments.replicas,
        clients: arguments.clients as usize,
        outstanding: arguments.outstanding as usize,
        bundle: arguments.bundle as usize,
        request_bytes: longest.unwrap_or(arguments.request as usize),
        reply_bytes: if longest.is_some() { 0 } else { arguments.reply as usize },
        durability: arguments.durability,
        channel: arguments.channel,
        auth: arguments.auth,
        asked: match (arguments.service, arguments.workload) {
            (ServiceName::Null, _) if longest.is_some() => Asked::Given,
            (ServiceName::Null, _) => Asked::Alike,
            (ServiceName::Sql, WorkloadName::Insert) => Asked::Sql(Mix::Insert),
            (ServiceName::Sql, WorkloadName::Read) => Asked::Sql(Mix::Read),
            (ServiceName::Sql, WorkloadName::Mixed) => Asked::Sql(Mix::Mixed),
            (ServiceName::Sql, WorkloadName::Vote) => Asked::Sql(Mix::Vote),
        },
        variant: None,
        history_interval: None,
        lets_join: arguments.attacker.joins(),
    };
    if !arguments.suite {
        let protocols = std::iter::once(arguments.protocol).chain(arguments.compare);
        return protocols.map(|protocol| Ok(Subject { contender: contender(protocol)?, ..one })).collect();
    }
    let row = |point: Point| {
        [Protocol::Pbft, Protocol::Unreplicated].map(|protocol| Subject {
            contender: protocol.into(),
            clients: point.load.0,
            outstanding: point.load.1,
            request_bytes: point.bytes.0,
            reply_bytes: point.bytes.1,
            durability: value(point.durability),
            channel: value(point.channel),
            auth: value(point.auth),
            ..one
        })
    };
    Ok(suite::points().into_iter().flat_map(row).collect())
}
