//! The rules of docs/style.md that a program can check. A rule that nobody checks is a wish.
//!
//! | file | rule |
//! |---|---|
//! | `text` | lines ≤ 120 columns, no trailing blanks, no machine's paths, no marks of unfinished work |
//! | `size` | functions ≤ 70 lines, files ≤ 500 lines without their tests, as a ratchet |
//! | `modules` | every Rust file begins with `//!` and belongs to a crate; every dependency has its reasons in a decision |
//! | `links` | every link and every page that a comment mentions exists; every page is in its index |
//! | `labels` | every label that cites a paper is defined in `docs/papers`; every other is a step of a module |
//! | `commands` | every command in a document exists |

pub(crate) mod commands;
mod labels;
mod links;
mod modules;
mod size;
mod text;

use crate::failure::{Failure, Result};
use crate::process;
use std::collections::BTreeMap;
use std::fmt;

/// The text files of the project by their path from the root.
pub(crate) type Files = BTreeMap<String, String>;

/// One broken rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    /// What is wrong, where, and (if it is not plain) what to do instead. Lines count from 1.
    pub(crate) fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_string(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Reads every text file that git tracks or would track.
pub(crate) fn read_files() -> Result<Files> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let names = process::output_of(&mut process::program("git", &arguments))?;
    // What git tracks may be deleted in the work tree, and what is not text has no lines to check.
    let readable = names.split_terminator('\0').filter_map(|name| {
        let text = std::fs::read_to_string(process::root().join(name)).ok()?;
        Some((name.to_string(), text))
    });
    Ok(readable.collect())
}

/// Checks every rule that needs nothing but the files.
pub(crate) fn check() -> Result<String> {
    let files = read_files()?;
    let mut findings = text::check(&files);
    findings.extend(size::check(&files));
    findings.extend(modules::check(&files));
    findings.extend(links::check(&files));
    findings.extend(labels::check(&files));
    findings.extend(commands::check_chores(&files));
    report(findings)?;
    Ok(format!("{} files", files.len()))
}

/// Prints the findings and fails if there are any.
pub(crate) fn report(mut findings: Vec<Finding>) -> Result {
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} places break a rule of docs/style.md, listed above"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_project_has_files() {
        let files = read_files().expect("git lists them");
        assert!(files.contains_key("Cargo.toml") && files.contains_key("xtask/src/tidy/mod.rs"));
        assert!(!files.keys().any(|path| path.starts_with("target/")));
    }
}
