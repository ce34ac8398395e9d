//! `bezant config`: what the keys of the configuration files mean.

use crate::failure::{Failure, Result};
use crate::output;
use bezant_node::config::reference::{self, Key};
use clap::Subcommand;
use serde_json::json;

/// Explain the keys of cluster.toml and node.toml
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant config explain\n  bezant config explain view_timeout_ms")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what a key means, what it may be, and what it is if it is not given
    #[command(after_help = "Example:\n  bezant config explain durability")]
    Explain {
        /// The key, with or without its section; none: list all keys
        key: Option<String>,
        /// Print one JSON object a key
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let Command::Explain { key, json } = &arguments.command;
    let Some(name) = key else {
        return list(*json);
    };
    let found = reference::keys().iter().find(|key| key.name == *name);
    let found = found.or_else(|| reference::keys().iter().find(|key| key.split().1 == name));
    match (found, reference::explain(name)) {
        (Some(key), _) if *json => output::line(as_json(key)),
        (_, Some(text)) => output::line(text.trim_end()),
        _ => {
            let names = reference::keys().iter().flat_map(|key| [key.name.as_str(), key.split().1]);
            let hint = match reference::nearest(name, names) {
                Some(nearest) => format!("Did you mean `{nearest}`?"),
                None => "`bezant config explain` lists all keys.".to_owned(),
            };
            Err(Failure::failed(format!("there is no key `{name}`. {hint}")))
        }
    }
}

fn list(json: bool) -> Result {
    if json {
        return reference::keys().iter().try_for_each(|key| output::line(as_json(key)));
    }
    let row = |key: &Key| vec![key.file.to_string(), key.name.clone(), key.default.clone().unwrap_or_default()];
    let head = ["file", "key", "default"].map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(head).chain(reference::keys().iter().map(row)).collect();
    output::line(output::table(&rows).trim_end())
}

fn as_json(key: &Key) -> serde_json::Value {
    json!({ "file": key.file.to_string(), "key": key.name, "value": key.kind.to_string(), "default": key.default,
        "about": key.about })
}
