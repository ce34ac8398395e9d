//! Saved seeds: runs that once found something, or that show a rule at work, kept for ever in `seeds/*.txt`. A line is
//! the arguments of the run, `#`, and one sentence.
//!
//! A seed means the same run only as long as the scenario is drawn in the same way. Those that were saved before runs
//! had sizes say `--size first`, and mean what they meant. When the drawing changes again, the mutants say which seeds
//! show a rule now.

use crate::arguments::Arguments;
use crate::checks::Violation;
use crate::group;
use crate::options::ScenarioOptions;
use crate::runs::run;
use clap::Parser;

/// All files, with their names.
const FILES: &[(&str, &str)] =
    &[("abstract.txt", include_str!("../seeds/abstract.txt")), ("pbft.txt", include_str!("../seeds/pbft.txt"))];

/// A run and why it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The run.
    pub options: ScenarioOptions,
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
    if let Some(options) = parse(arguments)?.group() {
        return Ok((options.seed, group::run(&options).violations));
    }
    let options = scenario(arguments)?;
    Ok((options.seed, run(&options).violations))
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
            let options = scenario(arguments).map_err(|error| format!("{}: {error}", place()))?;
            all.push(Saved { options, why: why.trim().to_owned() });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Counts;

    /// Twice: nothing is violated, and the second run is the first. Between them they meet every fault of a disk.
    #[test]
    fn saved_seeds_hold_and_repeat() {
        let mut counts = Counts::default();
        for Saved { options, why } in saved().unwrap() {
            let (first, second) = (run(&options), run(&options));
            assert_eq!(first.violations, [], "{options}: {why}");
            assert_eq!(first.trace_hash, second.trace_hash, "{options}: {why}");
            counts.add(&first.counts);
        }
        let Counts { recoveries, lost_logs, failed_syncs, old_disks, .. } = counts;
        assert!([recoveries, lost_logs, failed_syncs, old_disks].iter().all(|count| *count > 0), "{counts:?}");
    }
}
