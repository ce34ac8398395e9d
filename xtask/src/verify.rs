//! `cargo xtask verify`: the one gate. Every check in order, each with its time, until one fails.
//!
//! Cheap checks come first, so that most mistakes cost seconds. Behind a step that runs tests stand the reports of all
//! test programs that had a test to run, as cargo wrote them. The last line of a run that went well is
//! `N passed, 0 failed` and nothing else, where N is their sum. A step that this machine cannot run is no step that
//! passed: it says so, and the report says so once more before its last line.

use crate::failure::{Failure, Result, ensure};
use crate::process::{self, cargo, logged};
use crate::{Options, e2e, fuzz, purity, seeds, spec, tidy, tools};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// More than any cargo step takes on two slow cores.
const CARGO_LIMIT: Duration = Duration::from_secs(20 * 60);
/// How long each fuzz target runs here. `cargo xtask fuzz` runs them for longer.
const FUZZ_SMOKE: Duration = Duration::from_secs(8);

/// One check: its name for `--only`, and what it does. What it returns is printed behind its time.
struct Step {
    name: &'static str,
    run: fn(&mut Tally) -> Result<String>,
}

const STEPS: [Step; 24] = [
    Step { name: "tools", run: |_| tools::all() },
    Step { name: "fmt", run: |_| quiet("fmt", &["fmt", "--all", "--check"]) },
    Step { name: "tidy", run: |_| tidy::check() },
    Step { name: "purity", run: |_| purity::check() },
    Step { name: "clippy", run: |_| clippy() },
    Step { name: "test", run: |tally| test(tally, "test", &["--workspace", "--lib", "--bins", "--tests"]) },
    Step { name: "doctest", run: |tally| test(tally, "doctest", &["--workspace", "--doc"]) },
    Step { name: "doc", run: |_| doc() },
    Step { name: "deny", run: |_| tools::deny() },
    Step { name: "build", run: |_| quiet("build", &["build", "--release", "-p", "bezant", "--locked"]) },
    Step { name: "commands", run: |_| commands() },
    Step { name: "saved-seeds", run: |_| seeds::saved() },
    Step { name: "fresh-seeds", run: |_| seeds::of_this_commit() },
    Step { name: "sql-fuzz", run: |_| seeds::sql_fuzz_of_this_commit() },
    Step { name: "spec", run: |_| spec::check() },
    Step { name: "fuzz-test", run: fuzz_test },
    Step { name: "fuzz", run: |_| fuzz::run(FUZZ_SMOKE, None) },
    Step { name: "e2e-demo", run: |_| e2e::demo::run(&binary()) },
    Step { name: "e2e-sql", run: |_| e2e::sql::run(&binary()) },
    Step { name: "e2e-cluster", run: |_| e2e::cluster::run(&binary()) },
    Step { name: "e2e-aliph", run: |_| e2e::faults::aliph(&binary()) },
    Step { name: "e2e-ring", run: |_| e2e::faults::ring(&binary()) },
    Step { name: "e2e-postgres", run: |_| e2e::postgres::run(&binary()) },
    Step { name: "e2e-netns", run: netns },
];

/// `cargo xtask verify`.
pub(crate) fn run(arguments: &[String]) -> Result {
    if arguments == ["--list"] {
        STEPS.iter().for_each(|step| println!("{}", step.name));
        return Ok(());
    }
    let options = Options::parse(arguments, &["--only"])?;
    let only = options.all("--only");
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(Failure::new(format!("no step `{unknown}`; there are {}", names.join(", "))));
    }
    let chosen: Vec<&Step> = STEPS.iter().filter(|step| only.is_empty() || only.contains(&step.name)).collect();
    let start = Instant::now();
    let mut tally = Tally::default();
    for (index, step) in chosen.iter().enumerate() {
        print!("{:>2}/{} {:<12}", index + 1, chosen.len(), step.name);
        std::io::stdout().flush()?;
        let began = Instant::now();
        process::clear_log(step.name)?;
        match (step.run)(&mut tally) {
            Ok(note) => println!("{:>8.1} s  {note}", began.elapsed().as_secs_f64()),
            Err(failure) => {
                println!("{:>8.1} s  FAILED", began.elapsed().as_secs_f64());
                return Err(failure.during(&format!("step `{}` failed", step.name)));
            }
        }
    }
    let ran = chosen.len() - tally.not_run.len();
    println!("{ran} steps in {:.0} s", start.elapsed().as_secs_f64());
    for (step, why) in &tally.not_run {
        println!("1 step NOT run: {step}: {why}");
    }
    if only.is_empty() {
        println!("{} passed, 0 failed", tally.passed);
    }
    Ok(())
}

/// What cargo's test runs reported.
#[derive(Default)]
struct Tally {
    passed: u64,
    /// Steps that this machine cannot run, and why.
    not_run: Vec<(&'static str, String)>,
}

impl Tally {
    /// Adds one run of cargo; every program that it ran must have reported. Returns the reports of those that ran a
    /// test, a line each: that some program has no test of its own is no news.
    fn add<'a>(&mut self, output: &'a str) -> Result<Vec<&'a str>> {
        let programs = output.lines().filter(|line| {
            let line = line.trim_start();
            line.starts_with("Running ") || line.starts_with("Doc-tests ")
        });
        let reports: Vec<&str> = output.lines().filter(|line| line.starts_with(REPORT)).collect();
        let missing = programs.count().saturating_sub(reports.len());
        ensure(missing == 0, || format!("{missing} test programs did not say how many tests passed"))?;
        let mut telling = Vec::new();
        for report in reports {
            let count = report[REPORT.len()..].split(' ').next().and_then(|word| word.parse::<u64>().ok());
            let count = count.ok_or_else(|| Failure::new("a test program's report has no count"))?;
            self.passed += count;
            telling.extend((count > 0).then_some(report));
        }
        Ok(telling)
    }
}

/// How the report of a test program without a failure begins.
const REPORT: &str = "test result: ok. ";

/// The program that users run.
pub(crate) fn binary() -> PathBuf {
    process::target().join("release/bezant")
}

fn quiet(log: &str, arguments: &[&str]) -> Result<String> {
    logged(log, CARGO_LIMIT, &mut cargo(arguments))?;
    Ok(String::new())
}

fn clippy() -> Result<String> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    quiet("clippy", &arguments)
}

fn test(tally: &mut Tally, log: &str, kinds: &[&str]) -> Result<String> {
    let arguments = [&["test", "--locked", "--no-fail-fast"], kinds].concat();
    let output = logged(log, CARGO_LIMIT, &mut cargo(&arguments))?;
    let before = tally.passed;
    let reports = tally.add(&output)?;
    let ran = tally.passed - before;
    ensure(ran > 0, || "no test ran".into())?;
    Ok(format!("{ran} passed\n{}", reports.join("\n")))
}

/// The fuzz targets are a workspace of their own, held to the same rules; what they share has tests too.
fn fuzz_test(tally: &mut Tally) -> Result<String> {
    let manifest = ["--manifest-path", "fuzz/Cargo.toml"];
    quiet("fuzz-test", &[&["fmt", "--check"], &manifest[..]].concat())?;
    let strict = ["--all-targets", "--locked", "--", "-D", "warnings"];
    quiet("fuzz-test", &[&["clippy"], &manifest[..], &strict].concat())?;
    test(tally, "fuzz-test", &[&manifest[..], &["--lib"]].concat())
}

fn doc() -> Result<String> {
    let arguments = ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"];
    logged("doc", CARGO_LIMIT, cargo(&arguments).env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(String::new())
}

/// The one step that may be left out: not everybody may make networks. Whoever reads the end of the report learns it.
fn netns(tally: &mut Tally) -> Result<String> {
    match e2e::netns::obstacle() {
        None => e2e::netns::run(&binary()),
        Some(why) => {
            let note = format!("NOT run: {why}");
            tally.not_run.push(("e2e-netns", why));
            Ok(note)
        }
    }
}

fn commands() -> Result<String> {
    tidy::report(tidy::commands::check_binary(&tidy::read_files()?, &binary())?)?;
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tally_sums_up_all_programs_and_shows_those_that_ran_a_test() {
        let output = "     Running unittests src/lib.rs (target/a)\n\
            test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured\n\
            \x20    Running unittests src/main.rs (target/b)\n\
            test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\n\
            \x20  Doc-tests bezant_core\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n";
        let shown = [
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured",
        ];
        let mut tally = Tally::default();
        assert_eq!(tally.add(output).expect("complete"), shown);
        assert_eq!(tally.passed, 4);
        assert_eq!(tally.add(output).expect("complete"), shown);
        assert_eq!(tally.passed, 8);
    }

    #[test]
    fn a_missing_report_is_a_failure() {
        let mut tally = Tally::default();
        assert!(tally.add("     Running unittests src/lib.rs (target/a)\n").is_err());
        assert!(tally.add("test result: ok. many passed; 0 failed\n").is_err());
    }

    #[test]
    fn step_names_are_distinct() {
        let names: std::collections::BTreeSet<&str> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
    }
}
