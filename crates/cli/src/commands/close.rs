//! `bezant close`: the end of writing to a cluster, at a position in the agreed order.

use crate::failure::{Failure, Result};
use crate::{files, output, prompt};
use bezant_core::message::Refusal;
use bezant_node::client::{CallError, ClientOptions, Closer, key_beside};
use bezant_node::config::ClusterConfig;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Let nothing be written to a cluster any more, for good
///
/// Everything that was acknowledged before stays, and can be read and backed up; every later write is refused. That
/// cannot be taken back: a cluster is closed to begin its successor with the same state and other limits (`bezant
/// backup renew`, docs/operations.md). Where the service has roles, only an administrator may.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  bezant close --cluster net/cluster.toml\n\n\
    Exit codes: 0 it is closed · 1 refused · 3 unknown: run it again, a cluster is closed once")]
pub(crate) struct Arguments {
    /// The cluster's file
    #[arg(long, value_name = "FILE")]
    cluster: PathBuf,
    /// The client's secret key [default: client.key beside the cluster's file]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Seconds after which an outcome that is not known counts as unknown
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    deadline: u64,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let Arguments { cluster, json, .. } = arguments;
    let config = ClusterConfig::load(cluster).map_err(Failure::usage)?;
    let key = arguments.key.clone().unwrap_or_else(|| key_beside(cluster));
    let options = options(&config, &key)?;
    if !arguments.yes {
        confirm(&config.name)?;
    }
    let closer = Closer::connect(options).map_err(|error| Failure::failed(format!("cannot connect: {error}.")))?;
    let position = closer.close(Duration::from_secs(arguments.deadline)).map_err(refusal)?;
    if *json {
        return output::line(json!({ "cluster": config.name, "closed": position }));
    }
    output::line(format!(
        "{} is closed since request {position}: nothing is written to it any more.\n\
         Back it up:          bezant backup create --cluster {file} --to FILE\n\
         Then its successor:  bezant backup renew FILE --cluster {file} --dir DIR --limit NAME=VALUE",
        config.name,
        file = cluster.display()
    ))
}

/// As whom. Those who joined may not.
fn options(config: &ClusterConfig, key: &Path) -> Result<ClientOptions> {
    let options = files::client_options(config, key, 1, 1)?;
    match options.identity {
        Some(_) => Ok(options),
        None => Err(Failure::usage(format!(
            "{} is the key of a client that joins: only one that the cluster's file names may close the cluster. Name \
             another with --key.",
            key.display()
        ))),
    }
}

/// A person is asked; whoever runs it in a script says so.
fn confirm(name: &str) -> Result {
    let what = format!("nothing can be written to {name} any more after this, and that cannot be taken back");
    if !prompt::has_person() {
        return Err(Failure::usage(format!("{what}. --yes says that it is meant.")));
    }
    output::line(format!("{what}."))?;
    if prompt::agrees("Close it? [y/N] ")? { Ok(()) } else { Err(Failure::failed("it is as it was.")) }
}

fn refusal(error: CallError) -> Failure {
    match error {
        CallError::Rejected(Refusal::Unauthorized) => {
            Failure::failed("only an administrator may close it: this key's role is another one.")
        }
        error if error.may_have_been_executed() => {
            Failure::unknown(format!("{error}. Run it again: a cluster is closed once, however often it is asked."))
        }
        error => Failure::failed(format!("{error}.")),
    }
}
