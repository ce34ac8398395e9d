//! `cargo xtask verify`: the one gate. Every check in order, each with its time, until one fails. The first time is the
//! clock's, the second what it and all that it started computed.
//!
//! Steps that mostly wait (clusters that lose a replica and find a new view) go beside those that compute, each in a
//! process of its own: `--lanes 1` runs all one after the other. What computes has the lowest priority then, so that
//! what waits finds the machine as idle as it would alone. What measures a network runs alone.
//!
//! Cheap checks come first, so that most mistakes cost seconds. Behind a step that runs tests stand the reports of all
//! test programs that had a test to run, as cargo wrote them. The last line of a run that went well is
//! `N passed, 0 failed` and nothing else, where N is their sum. A step that this machine cannot run is no step that
//! passed: it says so, and the report says so once more before its last line.

use crate::failure::{Failure, Result, ensure};
use crate::options::Options;
use crate::process::{self, binary, cargo, logged};
use crate::{e2e, files, finding, fuzz, instructions, purity, seeds, spec, suites, tidy, tools};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// More than any cargo step takes on two slow cores.
const CARGO_LIMIT: Duration = Duration::from_secs(40 * 60);
/// How long each fuzz target runs here. `cargo xtask fuzz` runs them for longer.
const FUZZ_SMOKE: Duration = Duration::from_secs(5);

/// What the referee of the PostgreSQL gateway asks here. `cargo xtask referee` asks other things.
const REFEREE_SEED: u64 = 1;

/// One check: its name for `--only`, and what it does. What it returns is printed behind its times.
struct Step {
    name: &'static str,
    run: fn(&mut Tally) -> Result<String>,
}

/// The steps that go side by side, lane by lane: those that mostly wait; beside them, with the lowest priority, those
/// that compute, in two lanes that take about as long. They need nothing of each other.
const LANES: [&[&str]; 3] = [
    &[
        "e2e-demo",
        "e2e-sql",
        "e2e-cluster",
        "e2e-aliph",
        "e2e-ring",
        "e2e-ritas",
        "e2e-postgres",
        "e2e-python",
        "e2e-referee",
    ],
    &["saved-seeds", "fresh-seeds", "instructions", "sql-fuzz"],
    &["fuzz", "spec"],
];

const STEPS: [Step; 28] = [
    Step { name: "tools", run: |_| tools::all() },
    Step { name: "fmt", run: |_| fmt() },
    Step { name: "tidy", run: |_| tidy::check() },
    Step { name: "purity", run: |_| purity::check() },
    Step { name: "clippy", run: |_| clippy() },
    Step { name: "test", run: |tally| count(tally, &suites::run(CARGO_LIMIT)?) },
    Step { name: "doctest", run: |tally| test(tally, "doctest", &["--workspace", "--doc"]) },
    Step { name: "doc", run: |_| doc() },
    Step { name: "deny", run: |_| tools::deny() },
    Step { name: "build", run: |_| quiet("build", &seeds::BUILD) },
    Step { name: "commands", run: |_| commands() },
    Step { name: "saved-seeds", run: |_| seeds::saved() },
    Step { name: "fresh-seeds", run: |_| seeds::of_this_commit() },
    Step { name: "instructions", run: |_| instructions::check() },
    Step { name: "sql-fuzz", run: |_| seeds::sql_fuzz_of_this_commit() },
    Step { name: "spec", run: |_| spec::check() },
    Step { name: "fuzz", run: |_| fuzz::run(FUZZ_SMOKE, None) },
    Step { name: "e2e-demo", run: |_| e2e::demo::run(&binary()) },
    Step { name: "e2e-sql", run: |_| e2e::sql::run(&binary()) },
    Step { name: "e2e-cluster", run: |_| e2e::cluster::run(&binary()) },
    Step { name: "e2e-aliph", run: |_| e2e::faults::aliph(&binary()) },
    Step { name: "e2e-ring", run: |_| e2e::faults::ring(&binary()) },
    Step { name: "e2e-ritas", run: |_| e2e::faults::ritas(&binary()) },
    Step { name: "e2e-postgres", run: |_| e2e::postgres::run(&binary()) },
    Step { name: "e2e-python", run: |_| e2e::python::run(&binary()) },
    Step { name: "e2e-referee", run: |_| e2e::referee::gate(&binary(), REFEREE_SEED) },
    Step { name: "e2e-netns", run: |tally| measured(tally, "e2e-netns", e2e::netns::obstacle(), e2e::netns::run) },
    Step { name: "e2e-shares", run: |tally| measured(tally, "e2e-shares", e2e::shares::obstacle(), e2e::shares::run) },
];

/// `cargo xtask verify`.
pub(crate) fn run(arguments: &[String]) -> Result {
    if arguments == ["--list"] {
        STEPS.iter().for_each(|step| println!("{}", step.name));
        return Ok(());
    }
    let options = Options::parse(arguments, &["--only", "--lanes"])?;
    let only = options.all("--only");
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(Failure::new(format!("no step `{unknown}`; there are {}", names.join(", "))));
    }
    let in_lanes = options.number("--lanes", 2)? > 1;
    let chosen: Vec<&Step> = STEPS.iter().filter(|step| only.is_empty() || only.contains(&step.name)).collect();
    let start = Times::now();
    let mut tally = Tally::default();
    let mut done = 0;
    let alone = chosen.iter().filter(|step| !(in_lanes && is_in_a_lane(step, &chosen)));
    let (last, first): (Vec<&Step>, Vec<&Step>) = alone.partition(|step| LAST.contains(&step.name));
    for step in first {
        run_step(step, &mut tally, (done + 1, chosen.len()))?;
        done += 1;
    }
    // They need what comes before them in the list, and nothing needs them.
    done += run_lanes(&chosen, in_lanes, done)?;
    for step in last {
        run_step(step, &mut tally, (done + 1, chosen.len()))?;
        done += 1;
    }
    let ran = done - tally.not_run.len();
    println!("{ran} steps in {}", start.until_now());
    for (step, why) in &tally.not_run {
        println!("1 step NOT run: {step}: {why}");
    }
    if only.is_empty() {
        println!("{} passed, 0 failed", tally.passed);
    }
    Ok(())
}

/// The steps that measure: each runs alone, after all others.
const LAST: [&str; 2] = ["e2e-netns", "e2e-shares"];

/// Whether there is something to run a step beside.
fn is_in_a_lane(step: &Step, chosen: &[&Step]) -> bool {
    let is_used = |lane: &&&[&str]| chosen.iter().any(|step| lane.contains(&step.name));
    LANES.iter().filter(is_used).count() > 1 && LANES.iter().any(|lane| lane.contains(&step.name))
}

fn run_step(step: &Step, tally: &mut Tally, (number, of): (usize, usize)) -> Result {
    print!("{number:>2}/{of} {:<12}", step.name);
    std::io::stdout().flush()?;
    let began = Times::now();
    process::clear_log(step.name)?;
    match (step.run)(tally) {
        Ok(note) => println!("{}  {note}", began.until_now()),
        Err(failure) => {
            println!("{}  FAILED", began.until_now());
            return Err(failure.during(&format!("step `{}` failed", step.name)));
        }
    }
    Ok(())
}

/// Runs the lanes side by side, each step in a process of its own, which says what it took. How many those were. If one
/// fails, the others of its lane are left out.
fn run_lanes(chosen: &[&Step], in_lanes: bool, before: usize) -> Result<usize> {
    let steps: Vec<&str> =
        chosen.iter().filter(|step| in_lanes && is_in_a_lane(step, chosen)).map(|step| step.name).collect();
    let done = AtomicUsize::new(before);
    let lane = |names: &[&str]| -> Result {
        for name in steps.iter().filter(|name| names.contains(name)) {
            run_beside(name, &done, chosen.len())?;
        }
        Ok(())
    };
    let lane = &lane;
    std::thread::scope(|scope| {
        let running = LANES.map(|names| scope.spawn(move || lane(names)));
        running.map(|running| running.join().expect("a lane does not panic")).into_iter().collect::<Result>()
    })?;
    Ok(done.into_inner() - before)
}

/// One step in a process of its own. Its line and, if it fails, all that it said are shown when it ends.
fn run_beside(name: &str, done: &AtomicUsize, of: usize) -> Result {
    let this = std::env::current_exe()?;
    let priority = if LANES[0].contains(&name) { "0" } else { "19" };
    let output = process::program("nice", &["-n", priority, &this.to_string_lossy()])
        .args(["verify", "--only", name])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let number = done.fetch_add(1, Ordering::Relaxed) + 1;
    // What it counted is itself alone, and the line behind that sums it up.
    let mut lines = said.lines().filter(|line| !line.starts_with("1 steps in"));
    let first = lines.next().unwrap_or_default().trim_start().trim_start_matches("1/1 ");
    let rest: Vec<&str> = lines.collect();
    println!("{number:>2}/{of} {first}{}{}", if rest.is_empty() { "" } else { "\n" }, rest.join("\n"));
    ensure(output.status.success(), || format!("step `{name}` failed"))
}

/// The clock, and what this process and those that it started and waited for have computed.
struct Times {
    clock: Instant,
    computed: Duration,
}

impl Times {
    fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        Self { clock: Instant::now(), computed: computed(&stat) }
    }

    /// Both since then, in words.
    fn until_now(&self) -> String {
        let now = Self::now();
        let seconds = |time: Duration| time.as_secs_f64();
        let computed = now.computed.saturating_sub(self.computed);
        format!("{:>8.1} s {:>8.1} s CPU", seconds(now.clock - self.clock), seconds(computed))
    }
}

/// The times in a line of `/proc/PID/stat`, in hundredths of a second: a process's own and its children's, in user and
/// in kernel mode, are the 12th to the 15th field behind the name, which is in brackets and may hold anything.
fn computed(stat: &str) -> Duration {
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
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

fn quiet(log: &str, arguments: &[&str]) -> Result<String> {
    logged(log, CARGO_LIMIT, &mut cargo(arguments))?;
    Ok(String::new())
}

/// The fuzz targets are a workspace of their own.
fn fmt() -> Result<String> {
    quiet("fmt", &["fmt", "--all", "--check"])?;
    quiet("fmt", &["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"])
}

fn clippy() -> Result<String> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    quiet("clippy", &arguments)
}

fn test(tally: &mut Tally, log: &str, kinds: &[&str]) -> Result<String> {
    let arguments = [&["test", "--locked", "--no-fail-fast"], kinds].concat();
    count(tally, &logged(log, CARGO_LIMIT, &mut cargo(&arguments))?)
}

fn count(tally: &mut Tally, output: &str) -> Result<String> {
    let before = tally.passed;
    let reports = tally.add(output)?;
    let ran = tally.passed - before;
    ensure(ran > 0, || "no test ran".into())?;
    Ok(format!("{ran} passed\n{}", reports.join("\n")))
}

fn doc() -> Result<String> {
    let arguments = ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"];
    logged("doc", CARGO_LIMIT, cargo(&arguments).env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(String::new())
}

/// The steps that may be left out: not everybody may make networks or control groups. Whoever reads the end of the
/// report learns it.
fn measured(
    tally: &mut Tally,
    name: &'static str,
    obstacle: Option<String>,
    run: fn(&Path) -> Result<String>,
) -> Result<String> {
    match obstacle {
        None => run(&binary()),
        Some(why) => {
            let note = format!("NOT run: {why}");
            tally.not_run.push((name, why));
            Ok(note)
        }
    }
}

fn commands() -> Result<String> {
    finding::report(tidy::commands::check_binary(&files::read()?, &binary())?)?;
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
    fn what_was_computed_is_read_whatever_the_program_is_called() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 9 9 9 9 150 25 300 25 20 0 1 0 99 0 0";
        assert_eq!(computed(stat), Duration::from_millis(5_000));
        assert_eq!(computed(""), Duration::ZERO);
    }

    #[test]
    fn lanes_hold_steps_that_there_are() {
        for name in LANES.into_iter().flatten().chain(&LAST) {
            assert!(STEPS.iter().any(|step| step.name == *name), "{name}");
        }
    }

    #[test]
    fn step_names_are_distinct() {
        let names: std::collections::BTreeSet<&str> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
    }
}
