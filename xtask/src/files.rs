//! The text files of the project.

use crate::failure::Result;
use crate::process;
use std::collections::BTreeMap;

/// The text files of the project by their path from the root.
pub(crate) type Files = BTreeMap<String, String>;

/// Reads every text file that git tracks or would track.
pub(crate) fn read() -> Result<Files> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let names = process::output_of(&mut process::program("git", &arguments))?;
    // What git tracks may be deleted in the work tree, and what is not text has no lines to check.
    let readable = names.split_terminator('\0').filter_map(|name| {
        let text = std::fs::read_to_string(process::root().join(name)).ok()?;
        Some((name.to_string(), text))
    });
    Ok(readable.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_project_has_files() {
        let files = read().expect("git lists them");
        assert!(files.contains_key("Cargo.toml") && files.contains_key("xtask/src/tidy/mod.rs"));
        assert!(!files.keys().any(|path| path.starts_with("target/")));
    }
}
