//! The specification under `spec`: TLC explores every case that a configuration names, and each must come out as the
//! configuration says.
//!
//! A configuration `MODULE.cfg` or `MODULE-SCENE.cfg` is the case in which every repair is in place. Lines in its head
//! name the others, and what TLC must find:
//!
//! ```text
//! \* With nothing changed: all hold.
//! \* With CheckpointEvery = 2: all hold.
//! \* With CheckpointEvery = 2 and AnchorRule = FALSE: Composition is violated. (abs-S2)
//! ```
//!
//! A case that is violated differs in one constant from one that holds, so that it is this constant that matters. If
//! it differs in none, it is a probe: it shows that the model gets far enough to be worth checking.

use crate::failure::{Failure, Result, ensure};
use crate::options::Options;
use crate::{process, tools};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Where the modules and configurations are.
const FOLDER: &str = "spec";
/// More than the largest case takes on two slow and busy cores.
const CASE_LIMIT: Duration = Duration::from_secs(10 * 60);
/// What TLC may use; the largest case needs a small part of it.
const MEMORY_MIB_MAX: u32 = 1024;

/// What TLC finds, or must find.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    AllHold,
    Violated(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllHold => f.write_str("all hold"),
            Self::Violated(invariant) => write!(f, "{invariant} is violated"),
        }
    }
}

/// A configuration with some constants changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Case {
    /// Name and value of each changed constant.
    changes: Vec<(String, String)>,
    expected: Outcome,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<String> = self.changes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        f.write_str(if changes.is_empty() { "nothing changed".into() } else { changes.join(" and ") }.as_str())
    }
}

/// What one exploration came to.
struct Exploration {
    outcome: Outcome,
    distinct_states: u64,
}

/// `cargo xtask spec`: every case with its result, one a line.
pub(crate) fn run(arguments: &[String]) -> Result {
    Options::parse(arguments, &[])?;
    process::clear_log("spec")?;
    tools::model_checking()?;
    println!("{}", explore_all(|line| println!("{line}"))?);
    Ok(())
}

/// The step of the gate: the same, in one line.
pub(crate) fn check() -> Result<String> {
    explore_all(|_| ())
}

fn explore_all(report: impl Fn(&str) + Sync) -> Result<String> {
    let mut jobs = Vec::new();
    for name in configurations()? {
        let text = std::fs::read_to_string(process::root().join(FOLDER).join(&name))?;
        let cases = cases(&text).map_err(|failure| failure.during(&name))?;
        for case in &cases {
            let is_probe = case.expected != Outcome::AllHold
                && cases.iter().any(|other| other.expected == Outcome::AllHold && other.changes == case.changes);
            jobs.push((name.clone(), text.clone(), case.clone(), is_probe));
        }
    }
    process::clear_log(&process::log_of(1, "spec"))?;
    let explorations = process::two_at_a_time(&jobs, |lane, (name, text, case, _)| {
        let found = explore(lane, name, text, case).map_err(|failure| failure.during(&format!("{name}, {case}")))?;
        ensure(found.outcome == case.expected, || {
            format!("{name} with {case}: {}, but should be: {}", found.outcome, case.expected)
        })?;
        report(&format!("{name} with {case}: {}, {} states", found.outcome, found.distinct_states));
        Ok(found)
    })?;
    let (mut held, mut refuted, mut probed, mut states) = (0, 0, 0, 0);
    for ((.., is_probe), found) in jobs.iter().zip(explorations) {
        states += found.distinct_states;
        *match found.outcome {
            Outcome::AllHold => &mut held,
            Outcome::Violated(_) if *is_probe => &mut probed,
            Outcome::Violated(_) => &mut refuted,
        } += 1;
    }
    Ok(format!("{held} models hold, {refuted} without a repair are refuted, {probed} probes hit, {states} states"))
}

/// The names of all configurations, in order.
fn configurations() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(process::root().join(FOLDER))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name.ends_with(".cfg"));
    names.sort();
    ensure(!names.is_empty(), || format!("no configuration under `{FOLDER}`"))?;
    Ok(names)
}

/// The cases that a configuration names.
fn cases(configuration: &str) -> Result<Vec<Case>> {
    let lines = configuration.lines().filter_map(|line| line.strip_prefix("\\* With "));
    let cases: Vec<Case> = lines.map(case).collect::<Result<_>>()?;
    ensure(cases.iter().any(|case| case.expected == Outcome::AllHold), || "no case in which all hold".into())?;
    for case in cases.iter().filter(|case| case.expected != Outcome::AllHold) {
        let holds = |other: &Case| other.expected == Outcome::AllHold && is_near(&other.changes, &case.changes);
        ensure(cases.iter().any(holds), || format!("`{case}` is more than one change away from all that hold"))?;
    }
    Ok(cases)
}

/// Whether some changes are those of a case that holds and at most one more.
fn is_near(holding: &[(String, String)], changes: &[(String, String)]) -> bool {
    holding.iter().all(|change| changes.contains(change)) && changes.len() <= holding.len() + 1
}

fn case(line: &str) -> Result<Case> {
    let not_understood = || Failure::new(format!("`With {line}` is not of the form `With CHANGES: OUTCOME.`"));
    let (changes, outcome) = line.split_once(": ").ok_or_else(not_understood)?;
    let changes = match changes {
        "nothing changed" => Vec::new(),
        changes => {
            let pairs = changes.split(" and ").map(|change| change.split_once(" = "));
            let pairs: Option<Vec<_>> = pairs.collect();
            let pairs = pairs.ok_or_else(not_understood)?;
            pairs.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        }
    };
    let (outcome, _label) = outcome.split_once('.').ok_or_else(not_understood)?;
    let expected = match outcome.strip_suffix(" is violated") {
        Some(invariant) => Outcome::Violated(invariant.to_string()),
        None if outcome == "all hold" => Outcome::AllHold,
        None => return Err(not_understood()),
    };
    Ok(Case { changes, expected })
}

/// The configuration of a case. One that must be violated is checked for that invariant alone.
fn configured(text: &str, case: &Case) -> Result<String> {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    for (name, value) in &case.changes {
        let start = format!("    {name} = ");
        let line = lines.iter_mut().find(|line| line.starts_with(&start));
        let line = line.ok_or_else(|| Failure::new(format!("no constant `{name}` to change")))?;
        let changed = format!("{start}{value}");
        ensure(*line != changed, || format!("`{name} = {value}` changes nothing"))?;
        *line = changed;
    }
    if let Outcome::Violated(invariant) = &case.expected {
        lines.retain(|line| !line.starts_with("INVARIANTS "));
        lines.push(format!("INVARIANTS {invariant}"));
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}

fn explore(lane: usize, name: &str, text: &str, case: &Case) -> Result<Exploration> {
    // TLC leaves its queues behind when it finds something.
    let folder = process::target().join(process::log_of(lane, "verify/tlc"));
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let configuration = folder.join("case.cfg");
    std::fs::write(&configuration, configured(text, case)?)?;
    let mut command = tools::tlc(&folder, MEMORY_MIB_MAX)?;
    command.arg("-config").arg(&configuration).arg(format!("{FOLDER}/{}.tla", module(name)));
    let (output, status) = process::recorded(&process::log_of(lane, "spec"), CASE_LIMIT, &mut command)?;
    ensure(status.is_some(), || format!("not done after {} s, killed", CASE_LIMIT.as_secs()))?;
    Exploration::read(&output)
}

/// The module that a configuration is for.
fn module(configuration: &str) -> &str {
    let stem = Path::new(configuration).file_stem().and_then(|stem| stem.to_str()).unwrap_or(configuration);
    stem.split('-').next().unwrap_or(stem)
}

impl Exploration {
    /// Reads what TLC printed. Anything but an end of the exploration or a violated invariant is a failure.
    fn read(output: &str) -> Result<Self> {
        let error = output.lines().find_map(|line| line.strip_prefix("Error: "));
        let outcome = match error {
            None if output.contains("Model checking completed. No error has been found.") => Outcome::AllHold,
            None => return Err(Failure::new("TLC does not say how it ended; see the log")),
            Some(error) => {
                let invariant = error.strip_prefix("Invariant ").and_then(|rest| rest.strip_suffix(" is violated."));
                let invariant = invariant.ok_or_else(|| Failure::new(format!("TLC says `{error}`; see the log")))?;
                Outcome::Violated(invariant.to_string())
            }
        };
        let states = output.lines().rev().find_map(|line| {
            let (_, rest) = line.split_once(" states generated, ")?;
            rest.split_once(" distinct states found, ")?.0.parse().ok()
        });
        let distinct_states = states.ok_or_else(|| Failure::new("TLC does not say how many states it saw"))?;
        Ok(Self { outcome, distinct_states })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIGURATION: &str = "\\* With nothing changed: all hold.\n\
        \\* With Every = 2: all hold.\n\
        \\* With Every = 2 and Rule = FALSE: Order is violated. (S2)\n\
        CONSTANTS\n    Every = 1\n    Rule = TRUE\nINVARIANTS Order Other\n";

    #[test]
    fn cases_are_read() {
        let found = cases(CONFIGURATION).expect("well-formed");
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], Case { changes: Vec::new(), expected: Outcome::AllHold });
        assert_eq!(found[2].expected, Outcome::Violated("Order".into()));
        assert_eq!(found[2].to_string(), "Every = 2 and Rule = FALSE");
    }

    #[test]
    fn a_case_changes_its_constants_and_checks_its_invariant() {
        let found = cases(CONFIGURATION).expect("well-formed");
        let text = configured(CONFIGURATION, &found[2]).expect("both constants exist");
        assert!(text.contains("    Every = 2\n    Rule = FALSE\n") && text.ends_with("INVARIANTS Order\n"));
        let text = configured(CONFIGURATION, &found[0]).expect("nothing to change");
        assert!(text.contains("    Rule = TRUE\n") && text.ends_with("INVARIANTS Order Other\n"));
    }

    #[test]
    fn what_is_not_understood_is_a_failure() {
        assert!(cases("\\* With nothing changed: Order is violated.\n").is_err(), "nothing holds");
        let far = "\\* With nothing changed: all hold.\n\\* With A = 1 and B = 2: Order is violated.\n";
        assert!(cases(far).is_err(), "two changes at once");
        for line in ["nothing changed: all hold", "nothing changed: most hold.", "Rule: all hold.", "Rule = FALSE"] {
            assert!(case(line).is_err(), "{line}");
        }
        let unknown = Case { changes: vec![("Other".into(), "1".into())], expected: Outcome::AllHold };
        assert!(configured(CONFIGURATION, &unknown).is_err());
        let same = Case { changes: vec![("Every".into(), "1".into())], expected: Outcome::AllHold };
        assert!(configured(CONFIGURATION, &same).is_err());
    }

    #[test]
    fn explorations_are_read() {
        let end = "12 states generated, 7 distinct states found, 0 states left on queue.\n";
        let held = Exploration::read(&format!("Model checking completed. No error has been found.\n{end}"));
        let held = held.expect("a result");
        assert_eq!((held.outcome, held.distinct_states), (Outcome::AllHold, 7));
        let violated = Exploration::read(&format!("Error: Invariant Order is violated.\n{end}")).expect("a result");
        assert_eq!(violated.outcome, Outcome::Violated("Order".into()));
        assert!(Exploration::read(&format!("Error: TLC threw an unexpected exception.\n{end}")).is_err());
        assert!(Exploration::read(end).is_err());
        assert!(Exploration::read("Model checking completed. No error has been found.\n").is_err());
    }

    #[test]
    fn the_module_is_the_first_word_of_the_configuration() {
        assert_eq!(module("abstract.cfg"), "abstract");
        assert_eq!(module("switching-aliph.cfg"), "switching");
    }

    #[test]
    fn every_configuration_of_the_project_is_understood() {
        for name in configurations().expect("the folder is there") {
            let text = std::fs::read_to_string(process::root().join(FOLDER).join(&name)).expect("a text file");
            for case in cases(&text).expect("well-formed") {
                configured(&text, &case).expect("the constants exist");
            }
        }
    }
}
