//! Fuzzing: every target under `fuzz/fuzz_targets`, for a bounded time.

use crate::failure::{Failure, Result, ensure};
use crate::process::{self, logged};
use crate::tools;
use std::process::Command;
use std::time::Duration;

/// Compiling the targets, with their sanitiser, before the first one runs.
const BUILD_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Who fuzzes for so long gains more from targets that are optimised than it takes to build them; who does not, as the
/// gate, gains less: it has two minutes more, and runs what is under `fuzz/seeds` and a few thousand inputs besides.
const LONG: Duration = Duration::from_secs(60);
/// What a target may use; more is a finding: memory must not grow with what a peer says.
const MEMORY_MIB_MAX: u32 = 1024;
/// How long one input may take; more is a finding.
const INPUT_SECONDS_MAX: u32 = 5;

/// The names of all targets.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(process::root().join("fuzz/fuzz_targets"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".rs").map(String::from));
    }
    names.sort();
    Ok(names)
}

/// Runs each target, two at a time, or one of them, for this long: from the inputs under `fuzz/seeds` and what earlier
/// runs found.
pub(crate) fn run(time: Duration, only: Option<&str>) -> Result<String> {
    let mut targets = targets()?;
    if let Some(only) = only {
        ensure(targets.iter().any(|name| name == only), || format!("no fuzz target `{only}`"))?;
        targets.retain(|name| name == only);
    }
    logged("fuzz", BUILD_LIMIT, &mut cargo_fuzz(&["build"], time)?)?;
    process::clear_log(&process::log_of(1, "fuzz"))?;
    let notes = process::two_at_a_time(&targets, |lane, target| {
        let output = run_target(lane, target, time)?;
        let runs = executions(&output).ok_or_else(|| Failure::new(format!("`{target}` does not say what it did")))?;
        Ok(format!("{target} {runs}"))
    })?;
    Ok(format!("inputs: {}", notes.join(", ")))
}

fn run_target(lane: usize, target: &str, time: Duration) -> Result<String> {
    let corpus = format!("fuzz/corpus/{target}");
    let seeds = format!("fuzz/seeds/{target}");
    std::fs::create_dir_all(process::root().join(&corpus))?;
    let mut arguments = vec!["run", target, corpus.as_str()];
    if process::root().join(&seeds).is_dir() {
        arguments.push(&seeds);
    }
    let limits = [
        format!("-max_total_time={}", time.as_secs()),
        format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
        format!("-timeout={INPUT_SECONDS_MAX}"),
        "-print_final_stats=1".into(),
    ];
    arguments.push("--");
    arguments.extend(limits.iter().map(String::as_str));
    // An input of its own that fails stays under fuzz/artifacts, and the log says how to run it again.
    logged(&process::log_of(lane, "fuzz"), time + Duration::from_secs(120), &mut cargo_fuzz(&arguments, time)?)
}

fn cargo_fuzz(arguments: &[&str], time: Duration) -> Result<Command> {
    let mut command = tools::cargo_fuzz(arguments)?;
    if time < LONG {
        command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    }
    Ok(command)
}

fn executions(output: &str) -> Option<u64> {
    let line = output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_inputs_is_read() {
        assert_eq!(executions("x\nstat::number_of_executed_units: 1234\n"), Some(1234));
        assert_eq!(executions("Done 5 runs\n"), None);
    }
}
