//! `bezant export`: the tables as an ordinary database file.

use crate::checkpoint::Reading;
use crate::commands::{backup, stopped};
use crate::failure::{Failure, Result};
use crate::output;
use bezant_core::checkpoint::Tree;
use bezant_node::backup::write_whole;
use bezant_node::config::ClusterConfig;
use bezant_sql::{Snapshot, SnapshotError};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Write the SQL tables as an ordinary SQLite database file
///
/// From the running cluster, checked against the replicas' signatures; from a backup, which is checked likewise; or
/// from the folder of a stopped replica, which is believed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant export --cluster net/cluster.toml --to plain.sqlite\n  \
    bezant export --cluster net/cluster.toml --backup monday.backup --to plain.sqlite\n  \
    bezant export --dir net/replica-0 --to plain.sqlite\n  sqlite3 plain.sqlite .tables")]
pub(crate) struct Arguments {
    #[command(flatten)]
    reading: Option<Reading>,
    /// From this backup
    #[arg(long, value_name = "FILE", requires = "cluster", conflicts_with_all = ["replica", "key", "last", "dir"])]
    backup: Option<PathBuf>,
    /// From the folder of a replica that is stopped: its snapshot and its log
    #[arg(long, value_name = "DIR", conflicts_with = "cluster", required_unless_present = "cluster")]
    dir: Option<PathBuf>,
    /// The new file
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let tree = match (&arguments.reading, &arguments.backup, &arguments.dir) {
        (Some(reading), Some(file), _) => {
            let config = ClusterConfig::load(&reading.cluster).map_err(Failure::usage)?;
            backup::read(file, &config)?.tree
        }
        (Some(reading), None, _) => reading.read()?.snapshot.tree,
        (None, _, Some(dir)) => stopped::state(dir)?,
        (None, _, None) => return Err(Failure::usage("give --cluster or --dir.")),
    };
    export(&tree, &arguments.to, arguments.json)
}

/// Writes the tables of a state.
fn export(tree: &Tree, to: &Path, as_json: bool) -> Result {
    let failed = |error: SnapshotError| Failure::failed(format!("{error}."));
    let snapshot = Snapshot::open(tree).map_err(failed)?;
    let complaints = snapshot.complaints().map_err(failed)?;
    if let Some(first) = complaints.first() {
        return Err(Failure::failed(format!("SQLite finds the tables damaged: {first}.")));
    }
    write_whole(to, |file| {
        let mut offset = 0;
        snapshot.write_file(|page| {
            file.write_all_at(page, offset)?;
            offset += page.len() as u64;
            Ok(())
        })
    })
    .map_err(|error| backup::refusal(&error))?;
    let tables = snapshot.tables().map_err(failed)?;
    if as_json {
        let tables: Vec<_> = tables.iter().map(|(name, rows)| json!({ "name": name, "rows": rows })).collect();
        return output::line(json!({ "file": to.display().to_string(), "tables": tables }));
    }
    let rows: u64 = tables.iter().map(|(_, rows)| rows).sum();
    output::line(format!("{}: {} tables with {rows} rows", to.display(), tables.len()))
}
