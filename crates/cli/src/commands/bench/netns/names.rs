//! The network namespaces that are there, by the processes that made them.

use super::super::owner::Owner;
use std::fs;

/// Where `ip` keeps namespaces that have a name.
const FOLDER: &str = "/run/netns";

/// Those of this process that are there now.
pub(super) fn existing(owner: Owner) -> Vec<String> {
    all().into_iter().filter(|name| Owner::from_name(name) == Some(owner)).collect()
}

/// What processes that ended without removing it left behind.
pub(super) fn leftovers() -> Vec<String> {
    all().into_iter().filter(|name| Owner::from_name(name).is_some_and(|owner| !owner.is_alive())).collect()
}

/// The file that stands for a namespace.
pub(super) fn path(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// The folder is there once a namespace was.
fn all() -> Vec<String> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
