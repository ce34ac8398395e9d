//! `bezant version`.

use crate::failure::Result;
use crate::output;
use bezant_node::net::handshake::VERSION as WIRE_VERSION;
use serde_json::json;

/// Digits of a commit that people read.
const DIGITS: usize = 12;

/// The commit that was built, and whether it was changed; `None` if whoever built it did not know.
fn commit() -> Option<(&'static str, bool)> {
    let built = env!("BEZANT_COMMIT");
    let commit = built.trim_end_matches('+');
    (!commit.is_empty()).then_some((commit, commit != built))
}

/// Print the version of this program
///
/// Names the commit that was built as well, and whether sources differed from it: say both in a report. And what
/// replicas must have in common to work together: the build of the SQL service, and the version of the wire.
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
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    if arguments.json {
        let (commit, changed) = commit().unzip();
        return output::line(json!({ "name": "bezant", "version": version, "commit": commit, "changed": changed,
            "os": os, "architecture": architecture, "debug": cfg!(debug_assertions), "sql": bezant_sql::build(),
            "wire": WIRE_VERSION }));
    }
    let commit = match commit() {
        Some((commit, changed)) => {
            let changes = if changed { " with changes" } else { "" };
            format!("commit {}{changes}", commit.get(..DIGITS).unwrap_or(commit))
        }
        None => "of an unknown commit".to_owned(),
    };
    let build = if cfg!(debug_assertions) { ", a debug build: slow" } else { "" };
    output::line(format!("bezant {version} ({commit}, {os} {architecture}{build})"))?;
    output::line(format!("works with replicas that have {}, wire version {WIRE_VERSION}", bezant_sql::build()))
}
