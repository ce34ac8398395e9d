//! End-to-end tests of the real binary: real processes, real sockets, real files, and data that somebody else made.
//!
//! They use the command line only, as docs/getting-started.md does, so that what a reader types is what is tested.

pub(crate) mod cluster;
pub(crate) mod demo;
pub(crate) mod ecosystem;
pub(crate) mod faults;
pub(crate) mod netns;
pub(crate) mod postgres;
pub(crate) mod python;
mod redis;
mod redis_answers;
pub(crate) mod referee;
mod running;
pub(crate) mod sql;
mod words;

use crate::failure::{Failure, Result};
use crate::options::Options;
use crate::process::{self, logged};
use crate::seeds;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An end-to-end test of a binary; it returns what it measured, in words.
type Test = fn(&Path) -> Result<String>;

const TESTS: [(&str, Test); 8] = [
    ("demo", demo::run),
    ("sql", sql::run),
    ("cluster", cluster::run),
    ("aliph", faults::aliph),
    ("ring", faults::ring),
    ("postgres", postgres::run),
    ("python", python::run),
    ("netns", netns::run),
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

/// A folder of our own that goes away with its value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("bezant-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on it; the system clears its temporary folder in the end.
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The first of `count` neighbouring ports that are free now. Below the range from which systems take the ports of
/// outgoing connections, so that none of those slips in between.
fn free_ports(count: u16) -> Result<u16> {
    const FIRST: u16 = 12_000;
    const TRIES: u16 = 400;
    let offset = (std::process::id() % u32::from(TRIES)) as u16;
    let bases = (0..TRIES).map(|at| FIRST + (at + offset) % TRIES * count);
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut free = bases.filter(|base| (*base..base + count).all(is_free));
    free.next().ok_or_else(|| Failure::new(format!("no {count} neighbouring ports are free")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_goes_away() {
        let scratch = Scratch::new("scratch-test").expect("a temporary folder");
        let path = scratch.path().to_path_buf();
        assert!(path.is_dir());
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn free_ports_can_be_bound() {
        let base = free_ports(4).expect("some are free");
        for port in base..base + 4 {
            TcpListener::bind(("127.0.0.1", port)).expect("it was free");
        }
    }
}
