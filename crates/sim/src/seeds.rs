//! Saved seeds: runs that once found something, or that show a rule at work, kept for ever in `seeds/*.txt`. A line is
//! the arguments of the run, `#`, and one sentence.
//!
//! A seed means the same run only as long as the scenario is drawn in the same way. Those that were saved before runs
//! had sizes say `--size first`, and mean what they meant. When the drawing changes again, the mutants say which seeds
//! show a rule now.

use crate::arguments::Arguments;
use crate::checks::Violation;
use crate::group::{self, GroupOptions};
use crate::options::ScenarioOptions;
use crate::runs::run;
use clap::Parser;
use std::fmt;

/// All files, with their names.
const FILES: &[(&str, &str)] = &[
    ("abstract.txt", include_str!("../seeds/abstract.txt")),
    ("pbft.txt", include_str!("../seeds/pbft.txt")),
    ("ritas.txt", include_str!("../seeds/ritas.txt")),
];

/// A run of whole replicas, or of layers alone.
#[derive(Clone, Debug)]
pub enum Kept {
    /// Replicas.
    Whole(ScenarioOptions),
    /// Layers.
    Layers(GroupOptions),
}

impl Kept {
    fn parse(arguments: &str) -> Result<Self, String> {
        match parse(arguments)?.group() {
            Some(options) => Ok(Self::Layers(options)),
            None => scenario(arguments).map(Self::Whole),
        }
    }

    /// Runs it: what is violated.
    pub fn violations(&self) -> Vec<Violation> {
        match self {
            Self::Whole(options) => run(options).violations,
            Self::Layers(options) => group::run(options).violations,
        }
    }

    const fn seed(&self) -> u64 {
        match self {
            Self::Whole(options) => options.seed,
            Self::Layers(options) => options.seed,
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(options) => write!(out, "{options} --trace"),
            Self::Layers(options) => options.fmt(out),
        }
    }
}

/// A run and why it is kept.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The run.
    pub run: Kept,
    /// Why, in a sentence.
    pub why: String,
}

/// A line's arguments, as the command takes them.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn parse(arguments: &str) -> Result<Arguments, String> {
    let line = Line::try_parse_from(arguments.split_whitespace().map(|word| word.trim_matches('\'')));
    line.map(|line| line.arguments).map_err(|error| error.to_string())
}

/// The run that these arguments name.
///
/// # Errors
/// What is wrong with them.
pub fn scenario(arguments: &str) -> Result<ScenarioOptions, String> {
    parse(arguments)?.scenario().ok_or_else(|| "one --seed and one --adversary are needed".to_owned())
}

/// Runs what these arguments name, whole replicas or layers alone: its seed, and what is violated.
///
/// # Errors
/// What is wrong with them.
pub fn violations(arguments: &str) -> Result<(u64, Vec<Violation>), String> {
    let run = Kept::parse(arguments)?;
    Ok((run.seed(), run.violations()))
}

/// Every saved seed.
///
/// # Errors
/// The file, the line and what is wrong with it.
pub fn saved() -> Result<Vec<Saved>, String> {
    let mut all = Vec::new();
    for (name, text) in FILES {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = || format!("{name}, line {}", number + 1);
            let (arguments, why) = line.split_once('#').ok_or_else(|| format!("{}: no sentence", place()))?;
            let run = Kept::parse(arguments).map_err(|error| format!("{}: {error}", place()))?;
            all.push(Saved { run, why: why.trim().to_owned() });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byzantine::Choice;
    use crate::node::Counts;

    #[test]
    fn layers_alone_take_either_coin() {
        for coin in ["local", "common"] {
            let arguments = parse(&format!("--layers --coin {coin} --adversary none --seed 1")).unwrap();
            arguments.options(Choice::Nobody, 0).check().unwrap();
            assert_eq!(Kept::Layers(arguments.group().unwrap()).violations(), []);
        }
    }

    /// Nothing is violated, and a second run is the first. Between them they meet every fault of a disk.
    #[test]
    fn saved_seeds_hold_and_repeat() {
        let mut counts = Counts::default();
        for (number, Saved { run: kept, why }) in saved().unwrap().into_iter().enumerate() {
            let Kept::Whole(options) = kept else {
                assert_eq!(kept.violations(), [], "{kept}: {why}");
                continue;
            };
            let first = run(&options);
            assert_eq!(first.violations, [], "{options}: {why}");
            // Whatever makes a run differ from its repetition does so in most of them.
            if number.is_multiple_of(4) {
                assert_eq!(first.trace_hash, run(&options).trace_hash, "{options}: {why}");
            }
            counts.add(&first.counts);
        }
        let Counts { recoveries, lost_logs, failed_syncs, old_disks, .. } = counts;
        assert!([recoveries, lost_logs, failed_syncs, old_disks].iter().all(|count| *count > 0), "{counts:?}");
    }
}
