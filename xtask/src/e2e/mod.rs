//! End-to-end tests of the real binary: real processes, real sockets, real files, and data that somebody else made.
//!
//! They use the command line only, as docs/getting-started.md does, so that what a reader types is what is tested.

pub(crate) mod cluster;
pub(crate) mod demo;
pub(crate) mod ecosystem;
pub(crate) mod faults;
pub(crate) mod netns;
mod ports;
pub(crate) mod postgres;
pub(crate) mod python;
mod redis;
mod redis_answers;
pub(crate) mod referee;
mod running;
mod scratch;
pub(crate) mod shares;
pub(crate) mod sql;
mod words;

use crate::failure::{Failure, Result};
use crate::options::Options;
use crate::process::{self, logged};
use crate::seeds;
use std::path::Path;
use std::time::Duration;

/// An end-to-end test of a binary; it returns what it measured, in words.
type Test = fn(&Path) -> Result<String>;

const TESTS: [(&str, Test); 10] = [
    ("demo", demo::run),
    ("sql", sql::run),
    ("cluster", cluster::run),
    ("aliph", faults::aliph),
    ("ring", faults::ring),
    ("ritas", faults::ritas),
    ("postgres", postgres::run),
    ("python", python::run),
    ("netns", netns::run),
    ("shares", shares::run),
];

/// `cargo xtask e2e`.
pub(crate) fn run(arguments: &[String]) -> Result {
    let names = arguments.iter().take_while(|word| !word.starts_with("--")).count();
    let (names, options) = arguments.split_at(names);
    let binary = match Options::parse(options, &["--binary"])?.text("--binary") {
        Some(path) => path.into(),
        None => {
            logged("build", Duration::from_secs(20 * 60), &mut process::cargo(&seeds::BUILD))?;
            process::binary()
        }
    };
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    if words.len() > 1 || words.iter().any(|word| TESTS.iter().all(|(name, _)| name != word)) {
        let names = TESTS.map(|(name, _)| name).join(", ");
        return Err(Failure::new(format!("the end-to-end tests are {names}")));
    }
    for (name, test) in TESTS.iter().filter(|(name, _)| words.is_empty() || words.contains(name)) {
        println!("{name}: {}", test(&binary)?);
    }
    Ok(())
}
