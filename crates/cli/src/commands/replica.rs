//! `bezant replica`: one replica, until it is asked to end.

use crate::evidence::describe_states;
use crate::failure::{Failure, Result};
use crate::intruder::{Alterable, Intruded};
use crate::liar::{Liar, Lie, Lying};
use crate::served::Served;
use crate::{logging, quit};
use bezant_core::services::{Counter, Null, kv::Kv};
use bezant_node::host::{Home, Running};
use bezant_sql::Database;
use clap::ValueEnum;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

/// Run one replica of a cluster
///
/// Runs the replica whose node.toml is in DIR, until SIGTERM or Ctrl-C, and then ends in order. Log lines go to
/// standard error; BEZANT_LOG=debug shows more of them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant replica --dir net/replica-0\n  \
    bezant replica --dir net/replica-3 --lie processing-delay")]
pub(crate) struct Arguments {
    /// The replica's folder, as `bezant testnet` writes it
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The form of log lines on standard error [default: as node.toml says]
    #[arg(long, value_enum)]
    log_format: Option<logging::Format>,
    /// The log is lost or damaged: set aside what is left, learn the state from the others, and vote again later
    #[arg(long)]
    recover_lost_log: bool,
    /// Misbehave, for tests, demonstrations and measurements; it fails at its end if it found nothing to lie about
    #[arg(long, value_enum, value_name = "HOW")]
    lie: Option<Lie>,
    /// End with standard input, and obey the lines `lie HOW` and `honest` from it
    #[arg(long, hide = true)]
    obey_input: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let mut home = Home::load(&arguments.dir)?;
    home.lost_log = arguments.recover_lost_log;
    logging::start(arguments.log_format.unwrap_or(home.node.log_format.into()), &home.node.log_level);
    let orders = Orders { lying: Arc::default(), alter: Arc::default() };
    orders.lying.tell(arguments.lie);
    let (leave, left) = mpsc::channel();
    if arguments.obey_input {
        let (leave, orders) = (leave.clone(), orders.clone());
        thread::spawn(move || obey(&orders, &leave));
    }
    quit::on_request(move || _ = leave.send(()))?;

    let Orders { lying, alter } = orders.clone();
    let can_lie = arguments.obey_input || arguments.lie.is_some();
    let orders = can_lie.then_some(orders);
    let running = match Served::of(&home)? {
        Served::Sql => start(&home, Database::new(), orders),
        Served::Kv => start(&home, Kv::new(), orders),
        Served::Null => start(&home, Null::default(), orders),
        Served::Counter => start(&home, Counter::default(), orders),
    }?;
    // Not before: what the log says was in the state when he came.
    if arguments.lie == Some(Lie::Intruder) {
        alter.store(true, Ordering::Relaxed);
    }
    running.until(&left)?;
    match (arguments.lie, lying.lies()) {
        (Some(lie), 0) => Err(Failure::failed(format!("the lie {} was never told.", lie.name()))),
        _ => Ok(()),
    }
}

/// What a replica that misbehaves is told.
#[derive(Clone)]
struct Orders {
    /// How to lie from now on, if at all.
    lying: Arc<Lying>,
    /// To alter the state once.
    alter: Arc<AtomicBool>,
}

/// Lines of standard input, until its end.
fn obey(orders: &Orders, leave: &mpsc::Sender<()>) {
    for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
        let lie = line.strip_prefix("lie ").map(|name| Lie::from_str(name, false));
        match (line.as_str(), lie) {
            (_, Some(Ok(lie))) => {
                orders.alter.store(lie == Lie::Intruder, Ordering::Relaxed);
                orders.lying.tell(Some(lie));
            }
            ("honest", _) => orders.lying.tell(None),
            (other, _) => tracing::warn!(event = "unknown-order", order = other, "ignored"),
        }
        // The order is obeyed from here on.
        if crate::output::line(format!("{line}: {}", orders.lying.lies())).is_err() {
            break;
        }
    }
    // Nobody to tell means that the end has begun already.
    let _ = leave.send(());
}

/// Starts the replica, and a liar where there are orders.
fn start<S: Alterable + Send + 'static>(home: &Home, service: S, orders: Option<Orders>) -> Result<Running> {
    let build = Served::of(home)?.build(home)?;
    Ok(match orders {
        Some(Orders { lying, alter }) => home.run(build, describe_states, move |recovered| {
            let honest = recovered.into_replica(Box::new(Intruded::new(service, alter)))?;
            Ok(Liar::new(honest, lying))
        }),
        None => home.run(build, describe_states, move |recovered| recovered.into_replica(Box::new(service))),
    }?)
}
