//! `bezant demo`: a whole cluster on this machine, to be killed, made to lie, and watched.
//!
//! The replicas are processes of their own, as in earnest: this program again, as `bezant replica`. They live in a
//! folder that is thrown away, and end with the standard input that the demo holds open for each of them, so that none
//! is left behind whatever happens to the demo.

pub(super) mod cluster;

use crate::commands::testnet::parse_protocol;
use crate::commands::{diff, gateway, kv, status};
use crate::failure::{Failure, Result};
use crate::liar::Lie;
use crate::prompt::{self, Input, Line, Prompt};
use crate::service::Service;
use crate::shell::{self, CONTINUATION, Form, Next, Shell};
use crate::{output, quit};
use bezant_gateway::{Door, Endpoint};
use bezant_node::config::{ClusterConfig, Protocol, Testnet};
use clap::{CommandFactory, Parser, Subcommand};
use cluster::DemoCluster;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Start a throw-away cluster on this machine, with a prompt
///
/// SQL and commands come from the prompt, or from standard input. At the end of input the cluster is gone; the exit
/// code is 0 only if all went right.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant demo\n  bezant demo --postgres 5432\n  bezant demo --redis 6379\n  \
    printf 'create table t(a);\\n\
    insert into t values (7);\\nkill 2\\nselect * from t;\\n' | bezant demo\n\n\
    Commands at the prompt: help lists them")]
pub(crate) struct Arguments {
    /// How many replicas: n tolerate (n - 1) / 3 liars [default: 4, or 1 if unreplicated]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=16))]
    replicas: Option<u8>,
    /// The replication protocol: pbft, aardvark, ritas, quorum, zlight, chain, azyzzyva, aliph, r-aliph, ring,
    /// unreplicated, or a list of parts such as "zlight, chain, backup(pbft)"
    #[arg(long, value_name = "NAME", default_value_t, value_parser = parse_protocol)]
    protocol: Protocol,
    /// Also serve PostgreSQL clients on this port of the loopback interface
    #[arg(long, value_name = "PORT")]
    postgres: Option<u16>,
    /// Also serve Redis clients on this port of the loopback interface
    #[arg(long, value_name = "PORT")]
    redis: Option<u16>,
    /// Print one JSON object a result
    #[arg(long)]
    json: bool,
}

/// One line of the demo.
#[derive(Parser)]
#[command(no_binary_name = true, name = "", disable_help_flag = true)]
struct DemoLine {
    #[command(subcommand)]
    command: DemoCommand,
}

#[derive(Subcommand)]
enum DemoCommand {
    #[command(flatten)]
    Operation(kv::Operation),
    /// Kill a replica as a power cut would
    Kill {
        /// Its number
        replica: u8,
    },
    /// Start a replica again; it recovers by itself
    Restart {
        /// Its number
        replica: u8,
    },
    /// Let a replica lie: as an intruder would, with wrong answers and votes (`status` names it) and a value altered
    /// (`diff` names the row), or in any other way of the simulator's
    Lie {
        /// Its number
        replica: u8,
        /// How
        #[arg(value_enum, default_value = "intruder")]
        how: Lie,
    },
    /// Let a replica tell the truth again. What was altered in its state is repaired at the next checkpoint
    Honest {
        /// Its number
        replica: u8,
    },
    /// Show where a replica's state differs, or did: the page, the table, the row
    Diff {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show every replica, and name those at fault
    Status {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// End the demo
    #[command(alias = "exit")]
    Quit,
}

/// The cluster, which a signal may end at any time.
#[derive(Clone)]
struct Shared(Arc<Mutex<DemoCluster>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, DemoCluster> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let default = if arguments.protocol == Protocol::Unreplicated { 1 } else { 4 };
    let replicas = arguments.replicas.unwrap_or(default);
    let options = Testnet {
        replicas: usize::from(replicas),
        name: "demo".to_owned(),
        protocol: arguments.protocol,
        ..Testnet::default()
    };
    // Signals first, but locked: whoever is asked to leave from now on waits until it is known which files there are.
    let made: Arc<Mutex<Option<Shared>>> = Arc::default();
    let for_signals = Arc::clone(&made);
    let mut place = made.lock().unwrap_or_else(PoisonError::into_inner);
    quit::on_request(move || {
        if let Some(cluster) = &*for_signals.lock().unwrap_or_else(PoisonError::into_inner) {
            cluster.lock().stop();
        }
        quit::exit();
    })?;
    let cluster = Shared(Arc::new(Mutex::new(DemoCluster::prepare(&std::env::temp_dir(), options)?)));
    *place = Some(cluster.clone());
    drop(place);
    let outcome = start(&cluster).and_then(|service| converse(arguments, &cluster, &service));
    cluster.lock().stop();
    if quit::was_requested() {
        quit::exit();
    }
    outcome
}

/// Starts every replica and waits until all are there.
fn start(cluster: &Shared) -> Result<Arc<Service>> {
    let addresses = cluster.lock().start_all()?;
    for (replica, address) in addresses {
        cluster::wait_until_up(replica, address, || cluster.lock().check_alive())?;
    }
    let service = cluster.lock().connect()?;
    Ok(Arc::new(service))
}

fn converse(arguments: &Arguments, cluster: &Shared, service: &Arc<Service>) -> Result {
    let [postgres, redis] = [arguments.postgres, arguments.redis].map(|port| {
        let endpoint = port.map(|port| Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        endpoint.into_iter().collect::<Vec<_>>()
    });
    let servers = gateway::Servers::start(&postgres, &redis, service, &Door::default())?;
    let mut prompt = Prompt::remembering("bezant> ")?;
    if prompt.is_terminal() {
        output::line(greeting(cluster.lock().members().len(), &servers))?;
    }
    let form = if arguments.json { Form::Json } else { Form::Plain };
    let mut shell = Shell::new(Arc::clone(service), form, prompt.is_terminal());
    let mut all_went_right = true;
    loop {
        let line = match prompt.read(shell.is_waiting().then_some(CONTINUATION))? {
            Input::Line(line) => line,
            Input::Interrupted if shell.is_waiting() => {
                shell.cancel();
                continue;
            }
            Input::Interrupted | Input::End => break,
        };
        let alive = cluster.lock().check_alive();
        let outcome = alive.and_then(|()| match meaning(&line, &shell) {
            Meaning::Sql => Ok(shell.line(&line)),
            Meaning::Other(Line::Nothing) => Ok(Next::Continue),
            Meaning::Other(Line::Help(text)) => output::line(format!("{text}\n{SQL_HELP}")).map(|()| Next::Continue),
            Meaning::Other(Line::Command(DemoLine { command })) => {
                carry_out(&command, cluster, service, arguments.json)
            }
            Meaning::Other(Line::Wrong(failure)) => Err(failure),
        });
        match outcome {
            Ok(Next::Continue) => {}
            Ok(Next::Quit) => break,
            // The replicas are being ended.
            Err(_) if quit::was_requested() => break,
            Err(failure) => {
                all_went_right = false;
                failure.report();
            }
        }
    }
    shell.finish();
    cluster.lock().check_alive()?;
    if all_went_right && shell.outcome().is_ok() { Ok(()) } else { Err(Failure::silent()) }
}

/// What a line is.
enum Meaning {
    /// For the SQL shell.
    Sql,
    /// One of the demo's own commands, or nothing that is known.
    Other(Line<DemoLine>),
}

/// A line that begins like a command of the demo is one, unless it goes on with a statement.
fn meaning(line: &str, shell: &Shell) -> Meaning {
    let word = line.split_whitespace().next().unwrap_or_default();
    let is_command =
        || DemoLine::command().get_subcommands().any(|known| known.get_name_and_visible_aliases().contains(&word));
    if shell.is_waiting() || (shell::is_meant_for_shell(line) && !is_command()) {
        return Meaning::Sql;
    }
    Meaning::Other(prompt::parse::<DemoLine>(line))
}

fn greeting(replicas: usize, servers: &gateway::Servers) -> String {
    let mut text = format!(
        "{replicas} replicas are running; {} of them may lie or crash and the answers stay right.\n\
         Try:  create table planets(name text primary key, moons integer);\n      \
         insert into planets values ('Mars', 2), ('Jupiter', 95);\n      \
         select * from planets where moons > 2;\n\
         and between them: kill 2 · restart 2 · lie 3 · honest 3 · status · help",
        (replicas - 1) / 3
    );
    for address in servers.postgres().iter().filter_map(Endpoint::address) {
        text += &format!("\nPostgreSQL clients: psql -h 127.0.0.1 -p {} -U bezant", address.port());
    }
    for address in servers.redis().iter().filter_map(Endpoint::address) {
        text += &format!("\nRedis clients: redis-cli -p {}", address.port());
    }
    text
}

/// Which lies a replica tells, and what shows those of an intruder.
fn lies(how: Lie, config: &ClusterConfig) -> &'static str {
    match config.protocol {
        _ if how != Lie::Intruder => how.about(),
        Protocol::Unreplicated => {
            "wrong answers to clients, a value altered in its state; nothing shows either, there is no other to ask"
        }
        _ => {
            "wrong answers to clients (`status` names it), wrong votes for checkpoints and a value altered in its \
             state (`diff` names the row)"
        }
    }
}

/// What becomes of a value that was altered: nobody compares states but at checkpoints.
fn until_repaired(config: &ClusterConfig) -> String {
    const ALTERED: &str = "its state may still be altered until the next checkpoint";
    let interval = config.to_cluster().limits.checkpoint_interval;
    match config.protocol {
        Protocol::Unreplicated => "its state stays altered, there is no other to compare it with".to_owned(),
        order if order.is_one_order() => format!("{ALTERED}, at most {interval} batches away; `diff` has one taken"),
        _ => format!("{ALTERED} or end of a backup(pbft); `diff` brings one nearer"),
    }
}

/// What help says besides the demo's own commands.
const SQL_HELP: &str = "\nEverything else is SQL, which ends with a semicolon, or a dot command: .help lists those.";

fn carry_out(command: &DemoCommand, cluster: &Shared, service: &Arc<Service>, json: bool) -> Result<Next> {
    let done = |replica: u8, state: &str| {
        if json {
            json!({ "replica": replica, "state": state }).to_string()
        } else {
            format!("replica {replica} {state}")
        }
    };
    let text = match *command {
        DemoCommand::Operation(ref operation) => operation.carry_out(&**service)?.show(json),
        DemoCommand::Kill { replica } => {
            cluster.lock().kill(replica)?;
            done(replica, "killed")
        }
        DemoCommand::Restart { replica } => {
            let address = cluster.lock().restart(replica)?;
            cluster::wait_until_up(replica, address, || cluster.lock().check_alive())?;
            done(replica, "running")
        }
        DemoCommand::Lie { replica, how } => {
            cluster.lock().have_lie(replica, how)?;
            match json {
                true => done(replica, "lying"),
                false => format!("replica {replica} lying: {}", lies(how, &cluster.lock().credentials().0)),
            }
        }
        DemoCommand::Honest { replica } => {
            let lies = cluster.lock().have_honest(replica)?;
            let until = until_repaired(&cluster.lock().credentials().0);
            match json {
                true => json!({ "replica": replica, "state": "honest", "lies": lies, "until": until }).to_string(),
                false => format!("replica {replica} honest after {lies} lies: {until}"),
            }
        }
        DemoCommand::Diff { json: as_json } => {
            let (config, key) = cluster.lock().credentials();
            diff::Report::collect(&config, Some(&key))?.show(json || as_json)
        }
        DemoCommand::Status { json: as_json } => {
            let members = cluster.lock().members();
            status::Overview::collect(&members, service.replicas(), &service.probe()).show(json || as_json)
        }
        DemoCommand::Quit => return Ok(Next::Quit),
    };
    output::line(text.trim_end()).map(|()| Next::Continue)
}
