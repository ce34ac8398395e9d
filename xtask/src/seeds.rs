//! The simulator, driven through the binary's command line, as a person would.

use crate::failure::{Failure, Result, ensure};
use crate::process::{self, logged};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Longer than any of the calls below should take.
const CALL_LIMIT: Duration = Duration::from_secs(15 * 60);
/// What fresh seeds are run with: every protocol by itself, all that follow one another in Aliph and in Ring, robust
/// ones, and SQL.
const SUBJECTS: [(&str, &str); 11] = [
    ("pbft", "kv"),
    ("aardvark", "kv"),
    ("quorum", "kv"),
    ("zlight", "kv"),
    ("chain", "kv"),
    ("aliph", "kv"),
    ("r-aliph", "kv"),
    ("ring", "kv"),
    ("backup(aardvark), ring-fast", "kv"),
    ("pbft", "sql"),
    ("aliph", "sql"),
];
/// Scenarios of each subject in the gate, about a minute in all on two cores; and as many at a time in a soak.
const SEEDS: u64 = 300;
/// What runs with more than one liar in the gate, and how many scenarios: one takes as long as 4 or 10 at f = 1.
const COALITIONS: [&str; 3] = ["pbft", "aliph", "ring"];
const SEEDS_OF_COALITIONS: [(u32, u64); 2] = [(2, 100), (3, 25)];
/// An order that takes ten times as many messages, alone and as a Backup, and how many scenarios of each.
const ASYNCHRONOUS: [(&str, &str); 2] = [("ritas", "kv"), ("quorum, chain, backup(ritas)", "kv")];
const SEEDS_OF_ASYNCHRONOUS: u64 = 100;
/// And with frames slower than every timer, which so few seeds might never draw.
const SEEDS_OF_SLOWNESS: u64 = 2;
/// Runs of its layers alone, with so many replicas of which so many may lie: each takes as long as a tenth of one.
const LAYERS: [(&str, &str, u64); 3] = [("1", "4", 3_000), ("1", "5", 1_000), ("2", "7", 300)];
/// Scenarios of each subject with more than 3f + 1 replicas in the gate: with one more, and with two.
const SEEDS_OF_SPARES: u64 = 100;
const SPARES: [u32; 2] = [1, 2];
/// Scenarios of a way of lying that chance left out. One that does not come into play even then is a mistake of the
/// simulator.
const SEEDS_OF_A_LIE: u64 = 100;
/// What the SQL service is compared on in the gate.
const SQL_SEEDS: u64 = 100;

/// One build of all that is run optimised: by itself each program would have the libraries built again.
pub(crate) const BUILD: [&str; 9] = [
    "build",
    process::PROFILE,
    "--locked",
    "-pbezant",
    "-pbezant-sim",
    "-pbezant-ffi",
    "--bin=bezant",
    "--bin=sql-fuzz",
    "--lib",
];

fn simulate(log: &str, arguments: &[String]) -> Result<String> {
    let binary = process::binary();
    let mut command = process::program(&binary.to_string_lossy(), &["sim"]);
    logged(log, CALL_LIMIT, command.args(arguments))
}

/// Runs every seed that once found something.
pub(crate) fn saved() -> Result<String> {
    let output = simulate("saved-seeds", &["--saved".into()])?;
    let last = output.lines().last().unwrap_or_default();
    ensure(last.ends_with(" 0 violations") && !last.starts_with("0 "), || format!("the simulator says `{last}`"))?;
    Ok(last.into())
}

/// The gate's fresh seeds: drawn from the content of the commit. Nobody has seen them before the commit is made, and
/// the same commit always meets the same ones: a gate that was green is green again, and a red one can be mended.
pub(crate) fn of_this_commit() -> Result<String> {
    let first = first_of_commit()?;
    let mut lies = Lies::default();
    run_each(first, (1, 0), SEEDS, &SUBJECTS, &mut lies)?;
    run_each(first, (1, 0), SEEDS_OF_ASYNCHRONOUS, &ASYNCHRONOUS, &mut lies)?;
    for (f, seeds) in SEEDS_OF_COALITIONS {
        run_each(first, (f, 0), seeds, &COALITIONS.map(|protocol| (protocol, "kv")), &mut lies)?;
    }
    for spare in SPARES {
        run_each(first, (1, spare), SEEDS_OF_SPARES, &COALITIONS.map(|protocol| (protocol, "kv")), &mut lies)?;
    }
    for (protocol, service) in ASYNCHRONOUS {
        let arguments = ["--protocol", protocol, "--service", service, "--f", "1"];
        lies.run_with("asynchrony", &arguments.map(String::from), first, SEEDS_OF_SLOWNESS)?;
    }
    for (f, n, runs) in LAYERS {
        lies.run(&["--layers", "--f", f, "--replicas", n].map(String::from), first, runs)?;
    }
    lies.judge(first)?;
    let Lies { scenarios, acts } = lies;
    let kinds = acts.len();
    let what = format!("{scenarios} scenarios from seed {first}, f = 1, 2, 3, n = 3f + 1 and more, layers alone");
    Ok(format!("no violation in {what}; {kinds} ways of lying"))
}

fn first_of_commit() -> Result<u64> {
    let tree = process::output_of(&mut process::program("git", &["rev-parse", "HEAD^{tree}"]))?;
    let digits = tree.get(..12).unwrap_or_default();
    u64::from_str_radix(digits, 16).map_err(|_| Failure::new(format!("git says `{tree}` for the tree of the commit")))
}

/// Runs a range of seeds with each subject, and adds up what happened. There are 3f + 1 replicas, and as many more as
/// are to spare.
fn run_each(first: u64, (f, spare): (u32, u32), count: u64, subjects: &[(&str, &str)], lies: &mut Lies) -> Result {
    let (f, n) = (f.to_string(), (3 * f + 1 + spare).to_string());
    for (protocol, service) in subjects {
        let mut arguments = vec!["--protocol", protocol, "--service", service, "--f", &f];
        if spare > 0 {
            arguments.extend(["--replicas", &n]);
        }
        let arguments: Vec<String> = arguments.into_iter().map(String::from).collect();
        lies.run(&arguments, first, count)?;
    }
    Ok(())
}

/// How many scenarios there were, and how often each way of lying came into play.
#[derive(Debug, Default)]
struct Lies {
    scenarios: u64,
    acts: BTreeMap<String, Acts>,
}

/// How often a way of lying came into play, and what to call the simulator with to see it.
#[derive(Debug)]
struct Acts {
    count: u64,
    arguments: Vec<String>,
}

impl Lies {
    /// Runs so many seeds, of which each draws its liars, and adds up what happened. Nothing may be violated.
    fn run(&mut self, arguments: &[String], first: u64, count: u64) -> Result {
        self.call(arguments, &[], first, count)
    }

    /// The same with one way of lying in each seed.
    fn run_with(&mut self, lie: &str, arguments: &[String], first: u64, count: u64) -> Result {
        self.call(arguments, &["--adversary".into(), lie.into()], first, count)
    }

    fn call(&mut self, arguments: &[String], liars: &[String], first: u64, count: u64) -> Result {
        let seeds = ["--json".into(), "--seeds".into(), format!("{first}..{}", first + count)];
        let output = simulate("fresh-seeds", &[arguments, liars, &seeds].concat())?;
        self.add(&output, arguments)
    }

    /// Adds what a call of the simulator reported: it prints an object a line for each adversary.
    fn add(&mut self, output: &str, arguments: &[String]) -> Result {
        let mut scenarios = 0;
        for line in output.lines().filter(|line| line.starts_with('{')) {
            let object: Value = serde_json::from_str(line).map_err(|error| Failure::new(format!("{line}: {error}")))?;
            let number = |field: &str| {
                let missing = || Failure::new(format!("no number `{field}` in {line}"));
                object.get(field).and_then(Value::as_u64).ok_or_else(missing)
            };
            ensure(number("violations")? == 0, || format!("violations: {line}"))?;
            scenarios += number("scenarios")?;
            for (label, count) in object.get("acts").and_then(Value::as_object).into_iter().flatten() {
                let new = || Acts { count: 0, arguments: arguments.to_vec() };
                self.acts.entry(label.clone()).or_insert_with(new).count += count.as_u64().unwrap_or_default();
            }
        }
        ensure(scenarios > 0, || "the simulator ran no seed".into())?;
        self.scenarios += scenarios;
        Ok(())
    }

    /// Which ways of lying could have come into play, and never did.
    fn silent(&self) -> Vec<String> {
        self.acts.iter().filter(|(_, acts)| acts.count == 0).map(|(label, _)| label.clone()).collect()
    }

    /// Whether each way of lying came into play. What chance left out has seeds of its own.
    fn judge(&mut self, first: u64) -> Result {
        for lie in self.silent() {
            let arguments = self.acts[&lie].arguments.clone();
            // The simulator fails if even then nobody lies like this.
            self.run_with(&lie, &arguments, first, SEEDS_OF_A_LIE)?;
        }
        Ok(())
    }
}

/// `cargo xtask mutants`.
pub(crate) fn mutants(arguments: &[String]) -> Result {
    let fixed = ["run", "--quiet", process::PROFILE, "--locked", "-p", "bezant-sim", "--bin", "mutants", "--"];
    let words: Vec<&str> = fixed.iter().copied().chain(arguments.iter().map(String::as_str)).collect();
    let status = process::cargo(&words).status()?;
    ensure(status.success(), || "a mutant survived, or could not be built; see above".into())
}

/// `cargo xtask soak`: seeds by the clock, for this long, f = 1 and f = 2 in turns.
pub(crate) fn soak(time: Duration) -> Result<String> {
    let arguments = ["build", process::PROFILE, "--locked", "-p", "bezant"];
    logged("soak", CALL_LIMIT, &mut process::cargo(&arguments))?;
    let (start, first) = (Instant::now(), UNIX_EPOCH.elapsed().unwrap_or_default().as_secs() * 1_000_000);
    let (mut next, mut lies) = (first, Lies::default());
    while start.elapsed() < time {
        for f in [1, 2] {
            run_each(next, (f, 0), SEEDS, &SUBJECTS, &mut lies)?;
        }
        for spare in SPARES {
            run_each(next, (1, spare), SEEDS, &COALITIONS.map(|protocol| (protocol, "kv")), &mut lies)?;
        }
        next += SEEDS;
        let minutes = start.elapsed().as_secs() / 60;
        println!("{minutes} min: no violation in {} scenarios from seed {first}, f = 1, 2", lies.scenarios);
    }
    lies.judge(next)?;
    Ok(format!("no violation in {} scenarios from seed {first}, f = 1, 2", lies.scenarios))
}

/// Compares the SQL service with itself and with plain SQLite, on the seeds of this commit.
pub(crate) fn sql_fuzz_of_this_commit() -> Result<String> {
    let (first, count) = (first_of_commit()?.to_string(), SQL_SEEDS.to_string());
    sql_fuzz(&[&CALL_LIMIT.as_secs().to_string(), &first, &count], CALL_LIMIT)
}

/// The same by the clock, for this long.
pub(crate) fn sql_fuzz_for(time: Duration) -> Result<String> {
    logged("sql-fuzz", CALL_LIMIT, &mut process::cargo(&BUILD))?;
    sql_fuzz(&[&time.as_secs().to_string()], CALL_LIMIT + time)
}

fn sql_fuzz(numbers: &[&str], limit: Duration) -> Result<String> {
    let program = process::built("sql-fuzz");
    let output = logged("sql-fuzz", limit, &mut process::program(&program.to_string_lossy(), numbers))?;
    let last = output.lines().last().unwrap_or_default();
    ensure(last.ends_with("; no difference"), || format!("the fuzzer says `{last}`"))?;
    Ok(last.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_summed_up() {
        let output = "{\"adversary\":\"silent\",\"scenarios\":7,\"violations\":0}\n\
            {\"adversary\":\"twins\",\"scenarios\":7,\"violations\":0}\n";
        let mut lies = Lies::default();
        lies.add(output, &[]).expect("well-formed");
        assert_eq!(lies.scenarios, 14);
    }

    #[test]
    fn who_never_lies_is_noticed() {
        let output =
            |twins: u64| format!("{{\"scenarios\":7,\"violations\":0,\"acts\":{{\"slow\":3,\"twins\":{twins}}}}}\n");
        let mut lies = Lies::default();
        let of = |protocol: &str| ["--protocol".to_owned(), protocol.to_owned()];
        lies.add(&output(0), &of("pbft")).expect("well-formed");
        lies.add(&output(0), &of("ring")).expect("well-formed");
        assert_eq!(lies.silent(), ["twins"]);
        assert_eq!(lies.acts["twins"].arguments, of("pbft"), "where it has to show up");
        lies.add(&output(1), &of("pbft")).expect("well-formed");
        assert!(lies.silent().is_empty());
    }

    #[test]
    fn violations_silence_and_nonsense_are_failures() {
        let outputs = ["{\"scenarios\":7,\"violations\":1}\n", "{\"scenarios\":7}\n", "{nonsense\n", ""];
        assert!(outputs.iter().all(|output| Lies::default().add(output, &[]).is_err()));
    }
}
