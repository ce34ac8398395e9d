//! `bezant client-key`: secret keys.

use crate::failure::{Failure, Result};
use crate::output;
use bezant_core::auth::{Ed25519, Suite};
use bezant_node::keys;
use clap::Subcommand;
use std::path::PathBuf;

/// Make secret keys and show their public halves
///
/// Where the cluster's file says `dynamic_clients = true`, a new key and that file are all that a client needs.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant client-key new mine.key\n  bezant client-key show mine.key\n  \
    bezant kv --cluster net/cluster.toml --key mine.key set color blue")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a new secret key to a new file, and print its public half
    #[command(alias = "generate", after_help = "Example:\n  bezant client-key new mine.key")]
    New {
        /// The file, which must not exist
        file: PathBuf,
    },
    /// Print the public half of a secret key
    #[command(after_help = "Example:\n  bezant client-key show mine.key")]
    Show {
        /// The secret key's file
        file: PathBuf,
    },
}

/// Runs the command. The secret half is never printed.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let key = match &arguments.command {
        Command::New { file } => {
            let key = keys::generate().map_err(|error| Failure::failed(format!("no random bytes: {error}.")))?;
            keys::save(file, &key).map_err(|error| Failure::failed(format!("{error}.")))?;
            key
        }
        Command::Show { file } => keys::load(file).map_err(|error| Failure::usage(format!("{error}.")))?,
    };
    output::line(keys::to_hex(&Ed25519.public(&key).0))
}
