//! `bezant version`.

use crate::failure::Result;
use crate::output;
use serde_json::json;

/// Print the version of this program
#[derive(clap::Args)]
#[command(after_help = "Example:\n  bezant version --json")]
pub(crate) struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let version = env!("CARGO_PKG_VERSION");
    if arguments.json {
        return output::line(json!({ "name": "bezant", "version": version, "os": std::env::consts::OS,
            "architecture": std::env::consts::ARCH, "debug": cfg!(debug_assertions) }));
    }
    let build = if cfg!(debug_assertions) { ", a debug build: slow" } else { "" };
    output::line(format!("bezant {version} ({} {}{build})", std::env::consts::OS, std::env::consts::ARCH))
}
