//! The simulator, driven through the binary's command line, as a person would.

use crate::failure::{Failure, Result, ensure};
use crate::process::{self, logged};
use crate::verify;
use serde_json::Value;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longer than any of the calls below should take.
const CALL_LIMIT: Duration = Duration::from_secs(15 * 60);
/// What fresh seeds are run with: every protocol by itself, all that follow one another in Aliph, and SQL.
const SUBJECTS: [(&str, &str); 7] = [
    ("pbft", "kv"),
    ("quorum", "kv"),
    ("zlight", "kv"),
    ("chain", "kv"),
    ("aliph", "kv"),
    ("pbft", "sql"),
    ("aliph", "sql"),
];
/// The first range of fresh seeds; the next ones are as long as the time that is left allows.
const FIRST_SEEDS: u64 = 20;
/// About how long one call with fresh seeds takes, so that a failure is seen soon.
const CALL_SECONDS: f64 = 10.0;

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

/// Runs seeds that nobody has seen, for this long, sharing the time between protocols and values of f.
pub(crate) fn fresh(time: Duration, tolerated: &[u32]) -> Result<String> {
    let first = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() * 1_000_000;
    let share = time / (tolerated.len() * SUBJECTS.len()) as u32;
    let mut notes = Vec::new();
    for f in tolerated {
        for (protocol, service) in SUBJECTS {
            let summary = fresh_for(share, (protocol, service), *f, first)?;
            notes.push(format!("{protocol} {service} {}", summary.scenarios));
        }
    }
    let tolerated: Vec<String> = tolerated.iter().map(u32::to_string).collect();
    let tolerated = tolerated.join(", ");
    let notes = notes.join(", ");
    Ok(format!("no violation from seed {first}, f = {tolerated}; scenarios: {notes}"))
}

fn fresh_for(time: Duration, (protocol, service): (&str, &str), f: u32, mut seed: u64) -> Result<Summary> {
    let start = Instant::now();
    let mut total = Summary::default();
    let mut count = FIRST_SEEDS;
    while start.elapsed() < time {
        let seeds = format!("{seed}..{}", seed + count);
        let began = Instant::now();
        let f = f.to_string();
        let arguments = ["--protocol", protocol, "--service", service, "--seeds", &seeds, "--f", &f, "--json"];
        total.add(Summary::read(&simulate("fresh-seeds", &arguments)?)?);
        seed += count;
        let rate = count as f64 / began.elapsed().as_secs_f64().max(0.001);
        let left = time.saturating_sub(start.elapsed()).as_secs_f64();
        count = (rate * left.min(CALL_SECONDS)).max(1.0) as u64;
    }
    Ok(total)
}

/// `cargo xtask mutants`.
pub(crate) fn mutants(arguments: &[String]) -> Result {
    let fixed = ["run", "--quiet", "--release", "--locked", "-p", "bezant-sim", "--bin", "mutants", "--"];
    let words: Vec<&str> = fixed.iter().copied().chain(arguments.iter().map(String::as_str)).collect();
    let status = process::cargo(&words).status()?;
    ensure(status.success(), || "a mutant survived, or could not be built; see above".into())
}

/// `cargo xtask soak`.
pub(crate) fn soak(time: Duration) -> Result<String> {
    let arguments = ["build", "--release", "--locked", "-p", "bezant"];
    logged("soak", CALL_LIMIT, &mut process::cargo(&arguments))?;
    fresh(time, &[1, 2])
}

/// Compares the SQL service with itself and with plain SQLite, on seeds that nobody has seen, for this long.
pub(crate) fn sql_fuzz(time: Duration) -> Result<String> {
    let seconds = time.as_secs().to_string();
    let arguments =
        ["run", "--quiet", "--release", "--locked", "-p", "bezant-sim", "--bin", "sql-fuzz", "--", seconds.as_str()];
    let output = logged("sql-fuzz", CALL_LIMIT + time, &mut process::cargo(&arguments))?;
    let last = output.lines().last().unwrap_or_default();
    ensure(last.ends_with("; no difference"), || format!("the fuzzer says `{last}`"))?;
    Ok(last.into())
}

/// What calls of the simulator reported.
#[derive(Debug, Default, PartialEq, Eq)]
struct Summary {
    scenarios: u64,
}

impl Summary {
    /// Reads what one call printed: an object a line for each adversary. No violation may be among them.
    fn read(output: &str) -> Result<Self> {
        let mut summary = Self::default();
        for line in output.lines().filter(|line| line.starts_with('{')) {
            let object: Value = serde_json::from_str(line).map_err(|error| Failure::new(format!("{line}: {error}")))?;
            let number = |field: &str| {
                let missing = || Failure::new(format!("no number `{field}` in {line}"));
                object.get(field).and_then(Value::as_u64).ok_or_else(missing)
            };
            ensure(number("violations")? == 0, || format!("violations: {line}"))?;
            summary.scenarios += number("scenarios")?;
        }
        ensure(summary.scenarios > 0, || "the simulator ran no seed".into())?;
        Ok(summary)
    }

    fn add(&mut self, other: Self) {
        self.scenarios += other.scenarios;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_summed_up() {
        let output = "{\"adversary\":\"silent\",\"scenarios\":7,\"violations\":0}\n\
            {\"adversary\":\"twins\",\"scenarios\":7,\"violations\":0}\n";
        assert_eq!(Summary::read(output).expect("well-formed"), Summary { scenarios: 14 });
    }

    #[test]
    fn violations_silence_and_nonsense_are_failures() {
        assert!(Summary::read("{\"scenarios\":7,\"violations\":1}\n").is_err());
        assert!(Summary::read("{\"scenarios\":7}\n").is_err());
        assert!(Summary::read("{nonsense\n").is_err());
        assert!(Summary::read("").is_err());
    }
}
