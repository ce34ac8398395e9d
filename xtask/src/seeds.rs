//! The simulator, driven through the binary's command line, as a person would.

use crate::failure::{Failure, Result, ensure};
use crate::process::{self, logged};
use crate::verify;
use serde_json::Value;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Longer than any of the calls below should take.
const CALL_LIMIT: Duration = Duration::from_secs(15 * 60);
/// What fresh seeds are run with: every protocol by itself, all that follow one another in Aliph and in Ring, and SQL.
const SUBJECTS: [(&str, &str); 8] = [
    ("pbft", "kv"),
    ("quorum", "kv"),
    ("zlight", "kv"),
    ("chain", "kv"),
    ("aliph", "kv"),
    ("ring", "kv"),
    ("pbft", "sql"),
    ("aliph", "sql"),
];
/// Scenarios of each subject in the gate, about a minute in all on two cores; and as many at a time in a soak.
const SEEDS: u64 = 1_600;
/// What the SQL service is compared on in the gate.
const SQL_SEEDS: u64 = 160;

fn simulate(log: &str, arguments: &[&str]) -> Result<String> {
    let binary = verify::binary();
    let mut command = process::program(&binary.to_string_lossy(), &["sim"]);
    logged(log, CALL_LIMIT, command.args(arguments))
}

/// Runs every seed that once found something.
pub(crate) fn saved() -> Result<String> {
    let output = simulate("saved-seeds", &["--saved"])?;
    let last = output.lines().last().unwrap_or_default();
    ensure(last.ends_with(" 0 violations") && !last.starts_with("0 "), || format!("the simulator says `{last}`"))?;
    Ok(last.into())
}

/// The gate's fresh seeds: drawn from the content of the commit. Nobody has seen them before the commit is made, and
/// the same commit always meets the same ones: a gate that was green is green again, and a red one can be mended.
pub(crate) fn of_this_commit() -> Result<String> {
    let first = first_of_commit()?;
    let scenarios = run_each(first, 1)?;
    Ok(format!("no violation in {scenarios} scenarios from seed {first}, f = 1"))
}

fn first_of_commit() -> Result<u64> {
    let tree = process::output_of(&mut process::program("git", &["rev-parse", "HEAD^{tree}"]))?;
    let digits = tree.get(..12).unwrap_or_default();
    u64::from_str_radix(digits, 16).map_err(|_| Failure::new(format!("git says `{tree}` for the tree of the commit")))
}

/// Runs a range of seeds with each subject. How many scenarios that were.
fn run_each(first: u64, f: u32) -> Result<u64> {
    let (seeds, f) = (format!("{first}..{}", first + SEEDS), f.to_string());
    let mut scenarios = 0;
    for (protocol, service) in SUBJECTS {
        let arguments = ["--protocol", protocol, "--service", service, "--seeds", &seeds, "--f", &f, "--json"];
        scenarios += scenarios_of(&simulate("fresh-seeds", &arguments)?)?;
    }
    Ok(scenarios)
}

/// `cargo xtask mutants`.
pub(crate) fn mutants(arguments: &[String]) -> Result {
    let fixed = ["run", "--quiet", "--release", "--locked", "-p", "bezant-sim", "--bin", "mutants", "--"];
    let words: Vec<&str> = fixed.iter().copied().chain(arguments.iter().map(String::as_str)).collect();
    let status = process::cargo(&words).status()?;
    ensure(status.success(), || "a mutant survived, or could not be built; see above".into())
}

/// `cargo xtask soak`: seeds by the clock, for this long, f = 1 and f = 2 in turns.
pub(crate) fn soak(time: Duration) -> Result<String> {
    let arguments = ["build", "--release", "--locked", "-p", "bezant"];
    logged("soak", CALL_LIMIT, &mut process::cargo(&arguments))?;
    let (start, first) = (Instant::now(), UNIX_EPOCH.elapsed().unwrap_or_default().as_secs() * 1_000_000);
    let (mut next, mut scenarios) = (first, 0);
    while start.elapsed() < time {
        for f in [1, 2] {
            scenarios += run_each(next, f)?;
        }
        next += SEEDS;
        let minutes = start.elapsed().as_secs() / 60;
        println!("{minutes} min: no violation in {scenarios} scenarios from seed {first}, f = 1, 2");
    }
    Ok(format!("no violation in {scenarios} scenarios from seed {first}, f = 1, 2"))
}

/// Compares the SQL service with itself and with plain SQLite, on the seeds of this commit.
pub(crate) fn sql_fuzz_of_this_commit() -> Result<String> {
    let (first, count) = (first_of_commit()?.to_string(), SQL_SEEDS.to_string());
    sql_fuzz(&[&CALL_LIMIT.as_secs().to_string(), &first, &count], CALL_LIMIT)
}

/// The same by the clock, for this long.
pub(crate) fn sql_fuzz_for(time: Duration) -> Result<String> {
    sql_fuzz(&[&time.as_secs().to_string()], CALL_LIMIT + time)
}

fn sql_fuzz(numbers: &[&str], limit: Duration) -> Result<String> {
    let fixed = ["run", "--quiet", "--release", "--locked", "-p", "bezant-sim", "--bin", "sql-fuzz", "--"];
    let output = logged("sql-fuzz", limit, &mut process::cargo(&[&fixed, numbers].concat()))?;
    let last = output.lines().last().unwrap_or_default();
    ensure(last.ends_with("; no difference"), || format!("the fuzzer says `{last}`"))?;
    Ok(last.into())
}

/// How many scenarios a call of the simulator reported: it prints an object a line for each adversary. No violation
/// may be among them.
fn scenarios_of(output: &str) -> Result<u64> {
    let mut scenarios = 0;
    for line in output.lines().filter(|line| line.starts_with('{')) {
        let object: Value = serde_json::from_str(line).map_err(|error| Failure::new(format!("{line}: {error}")))?;
        let number = |field: &str| {
            let missing = || Failure::new(format!("no number `{field}` in {line}"));
            object.get(field).and_then(Value::as_u64).ok_or_else(missing)
        };
        ensure(number("violations")? == 0, || format!("violations: {line}"))?;
        scenarios += number("scenarios")?;
    }
    ensure(scenarios > 0, || "the simulator ran no seed".into())?;
    Ok(scenarios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_summed_up() {
        let output = "{\"adversary\":\"silent\",\"scenarios\":7,\"violations\":0}\n\
            {\"adversary\":\"twins\",\"scenarios\":7,\"violations\":0}\n";
        assert_eq!(scenarios_of(output).expect("well-formed"), 14);
    }

    #[test]
    fn violations_silence_and_nonsense_are_failures() {
        assert!(scenarios_of("{\"scenarios\":7,\"violations\":1}\n").is_err());
        assert!(scenarios_of("{\"scenarios\":7}\n").is_err());
        assert!(scenarios_of("{nonsense\n").is_err());
        assert!(scenarios_of("").is_err());
    }
}
