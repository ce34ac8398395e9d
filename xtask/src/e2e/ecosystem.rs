//! `cargo xtask ecosystem`: what others wrote for PostgreSQL, against the gateway and against PostgreSQL itself.
//!
//! A tool's glue is a script in `xtask/ecosystem`, which is given a port and where the packages are, and prints
//! `pass ID` or `fail ID: why` for each case. What does not pass with PostgreSQL is not counted: that is the
//! environment's fault, or the glue's. What passes there and not here must be in `expected`, in the tool's file, with
//! the reason; a line of it that is no longer true is told.

use super::ports::free_ports;
use super::referee::Postgresql;
use super::running::Conversation;
use super::scratch::Scratch;
use crate::failure::{Failure, Result, ensure};
use crate::options::Options;
use crate::process::{self, logged, program, root, wait_until};
use crate::tools;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const LOG: &str = "ecosystem";
/// How long a server may take until it answers, or ends.
const START_MAX: Duration = Duration::from_secs(30);
/// How long one tool may take.
const TOOL_MAX: Duration = Duration::from_secs(15 * 60);

/// A tool's name, and its glue.
const TOOLS: [(&str, &str); 11] = [
    ("libpq", "wire/wire.py"),
    ("django", "django/contrib.py"),
    ("django-tests", "django/suite.py"),
    ("sqlalchemy", "sqlalchemy/suite.py"),
    ("alembic", "alembic/cases.py"),
    ("knex", "node/knex.js"),
    ("sequelize", "node/sequelize.js"),
    ("typeorm", "node/typeorm.js"),
    ("drizzle", "node/drizzle.js"),
    ("prisma", "node/prisma.js"),
    ("pgjdbc", "pgjdbc/Cases.java"),
];

/// Cases by name; `None`: passed, otherwise why not.
type Outcome = BTreeMap<String, Option<String>>;

/// What came of a tool.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    passed: usize,
    refused: usize,
    /// With PostgreSQL they do not pass, either.
    uncounted: usize,
    /// Which failed, and why.
    failed: Vec<String>,
    /// What is expected to be refused, and is not.
    surprising: Vec<String>,
}

/// `cargo xtask ecosystem`.
pub(crate) fn run(arguments: &[String]) -> Result {
    let flags = arguments.iter().position(|word| word.starts_with("--")).unwrap_or(arguments.len());
    let (names, flags) = arguments.split_at(flags);
    let options = Options::parse(flags, &["--binary"])?;
    if let Some(unknown) = names.iter().find(|name| TOOLS.iter().all(|(known, _)| known != name)) {
        let known = TOOLS.map(|(name, _)| name).join(", ");
        return Err(Failure::new(format!("no tool `{unknown}`; there are {known}")));
    }
    process::clear_log(LOG)?;
    let binary = match options.text("--binary") {
        Some(path) => std::env::current_dir()?.join(path),
        None => {
            let build = ["build", process::PROFILE, "--locked", "-p", "bezant"];
            logged("build", Duration::from_secs(20 * 60), &mut process::cargo(&build))?;
            process::binary()
        }
    };
    let packages = tools::ecosystem()?;
    println!("{:<14} {:>7} {:>8} {:>7} {:>10}", "tool", "passed", "refused", "failed", "uncounted");
    let mut failed = Vec::new();
    for (name, glue) in TOOLS.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|word| word == name)) {
        let verdict = try_tool(name, glue, &binary, &packages)?;
        let Verdict { passed, refused, uncounted, .. } = verdict;
        println!("{name:<14} {passed:>7} {refused:>8} {:>7} {uncounted:>10}", verdict.failed.len());
        verdict.surprising.iter().for_each(|line| println!("  no longer refused: {line}"));
        verdict.failed.iter().for_each(|line| println!("  failed: {line}"));
        if !verdict.failed.is_empty() || verdict.passed == 0 {
            failed.push(*name);
        }
    }
    ensure(failed.is_empty(), || format!("not as PostgreSQL: {}", failed.join(", ")))
}

fn try_tool(name: &str, glue: &str, binary: &Path, packages: &tools::Ecosystem) -> Result<Verdict> {
    let scratch = Scratch::new("ecosystem")?;
    let first = free_ports(2)?;
    let postgresql = Postgresql::start(scratch.path(), first)?;
    let port = (first + 1).to_string();
    let mut demo = program(&binary.to_string_lossy(), &["demo", "--postgres", &port]);
    let mut demo = Conversation::start(LOG, &mut demo)?;
    wait_until("the gateway answers", START_MAX, || super::referee::answers(&port))?;
    let (to_theirs, to_ours) = (scratch.path().join("theirs"), scratch.path().join("ours"));
    let ask = |port: &str, to: &Path| outcome(&mut command(glue, port, packages), to);
    let (theirs, ours) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| ask(&postgresql.port, &to_theirs));
        let ours = ask(&port, &to_ours);
        (theirs.join().expect("asking does not panic"), ours)
    });
    demo.say("quit")?;
    let status = demo.finish(START_MAX)?;
    ensure(status.success(), || format!("the demo ended with {status}"))?;
    let expected = std::fs::read_to_string(folder().join(format!("expected/{name}.txt"))).unwrap_or_default();
    Ok(judge(&theirs?, &ours?, &expected))
}

fn folder() -> PathBuf {
    root().join("xtask/ecosystem")
}

fn command(glue: &str, port: &str, packages: &tools::Ecosystem) -> Command {
    let script = folder().join(glue).to_string_lossy().into_owned();
    if glue.ends_with(".js") {
        return program("node", &[&script, port, &packages.node.to_string_lossy()]);
    }
    if glue.ends_with(".java") {
        return program("java", &["-cp", &packages.jdbc.to_string_lossy(), &script, port]);
    }
    let mut command = program("python3", &[&script, port, &packages.django.to_string_lossy()]);
    command.env("PYTHONPATH", &packages.python).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Runs the glue. Cases behind one that ends it have no outcome, and so have not passed.
fn outcome(command: &mut Command, to: &Path) -> Result<Outcome> {
    let log = File::options().create(true).append(true).open(process::log_path(LOG)?)?;
    let mut child = command.stdin(Stdio::null()).stdout(File::create(to)?).stderr(log).spawn()?;
    process::wait(&mut child, TOOL_MAX)?;
    Ok(parse(&String::from_utf8_lossy(&std::fs::read(to)?)))
}

fn parse(report: &str) -> Outcome {
    let one = |line: &str| match line.split_once(' ')? {
        ("pass", name) => Some((name.to_owned(), None)),
        ("fail", rest) => {
            let (name, why) = rest.split_once(": ").unwrap_or((rest, "it does not say why"));
            Some((name.to_owned(), Some(why.to_owned())))
        }
        _ => None,
    };
    report.lines().filter_map(one).collect()
}

/// A line of `expected` is the name of a case, or the beginning of names with `*` behind it, two spaces, and the
/// reason.
fn judge(theirs: &Outcome, ours: &Outcome, expected: &str) -> Verdict {
    let lines = expected.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let patterns: Vec<&str> = lines.map(|line| line.split("  ").next().unwrap_or(line)).collect();
    let is_meant = |pattern: &str, name: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    let mut verdict = Verdict::default();
    let mut used = vec![false; patterns.len()];
    for (name, why) in theirs {
        let here = ours.get(name).cloned().unwrap_or_else(|| Some("it was not reached".into()));
        match here {
            _ if why.is_some() => verdict.uncounted += 1,
            None => verdict.passed += 1,
            Some(here) => match patterns.iter().position(|pattern| is_meant(pattern, name)) {
                Some(at) => {
                    used[at] = true;
                    verdict.refused += 1;
                }
                None => verdict.failed.push(format!("{name}: {here}")),
            },
        }
    }
    let unused = patterns.iter().zip(used).filter(|(_, used)| !used);
    verdict.surprising = unused.map(|(pattern, _)| (*pattern).to_owned()).collect();
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_postgresql_passes_must_pass_or_be_expected_not_to() {
        let theirs = parse("pass a\npass b.1\npass b.2\npass c\nfail d: environment\nnoise\npass e\n");
        let ours = parse("pass a\nfail b.1: no\nfail b.2: no\nfail c: wrong: so\nfail d: environment\n");
        let verdict = judge(&theirs, &ours, "# why\nb.*  refused\ne  never comes\nf  long gone\n");
        assert_eq!((verdict.passed, verdict.refused, verdict.uncounted), (1, 3, 1));
        assert_eq!(verdict.failed, ["c: wrong: so"]);
        assert_eq!(verdict.surprising, ["f"]);
        let silent = judge(&theirs, &Outcome::new(), "");
        assert_eq!((silent.passed, silent.failed.len()), (0, 5));
    }

    #[test]
    fn every_tool_has_its_glue_and_every_list_its_tool() {
        assert!(TOOLS.iter().all(|(_, glue)| folder().join(glue).is_file()));
        for entry in std::fs::read_dir(folder().join("expected")).expect("it is there") {
            let name = entry.expect("it is listed").file_name().to_string_lossy().into_owned();
            assert!(TOOLS.iter().any(|(tool, _)| format!("{tool}.txt") == name), "{name}");
        }
    }
}
