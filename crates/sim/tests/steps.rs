//! Every numbered step that a page of the core has is taken in some run, and no run takes a step that no page has: what
//! diagrams say is what the pages say.
//!
//! Nobody lies in these runs. They were found by looking for the steps in traces (`--trace`); if they mean others one
//! day, other seeds do as well.

use bezant_core::schedule::Protocol;
use bezant_sim::byzantine::Choice;
use bezant_sim::options::ScenarioOptions;
use bezant_sim::runs::run_traced;
use std::collections::BTreeSet;
use std::path::Path;

/// Runs that take all steps together.
const RUNS: [(&str, u64); 16] = [
    ("pbft", 4),
    ("pbft", 6),
    ("aardvark", 8),
    ("aardvark", 63),
    ("pbft", 34),
    ("ritas", 44),
    ("ritas", 9),
    ("ritas", 562),
    ("aliph", 275),
    ("r-aliph", 34),
    ("azyzzyva", 0),
    ("chain", 0),
    ("quorum", 8),
    ("ring", 0),
    ("quorum, ring-fast, ring-resilient, backup(pbft)", 87),
    ("quorum, ring-fast, ring-resilient, backup(pbft)", 156),
];

/// The steps that no run takes, and why.
const UNSEEN: [(&str, &[&str]); 12] = [
    ("it is how votes, vectors and coins are judged, and who goes on", &["BC 4", "BC 5", "CC 7", "CC 8", "MVC 3"]),
    ("a total order has no use for it", &["EB 1", "EB 2", "EB 3", "VC 1", "VC 2", "VC 3"]),
    ("a group has no service, and runs by itself", &["Group 1", "Group 2", "Group 3", "Group 4", "Group 5", "Group 6"]),
    ("it is whom a client asks", &["Aardvark 1"]),
    ("a client's host takes it", &["Robust 1"]),
    ("no honest replica leaves a request out", &["Aardvark 4", "Robust 5"]),
    ("keys have no host to tell", &["Tree 1", "Tree 2"]),
    ("another page has the steps of it", &["Backup 8", "Ring 9", "Switch 6"]),
    ("it is how a replica takes all other steps meanwhile", &["Amnesia 2"]),
    (
        "the estate takes it, which executes what is agreed and has no host to tell",
        &[
            "Closing 1",
            "Closing 2",
            "Closing 3",
            "Closing 4",
            "Closing 5",
            "Dissent 1",
            "Members 2",
            "Members 3",
            "Members 4",
            "Members 5",
            "Members 6",
            "Runs 1",
            "Runs 2",
            "Runs 3",
            "Runs 4",
            "Runs 5",
        ],
    ),
    ("a client computes it from what it remembers", &["Fairness 2", "Fairness 3"]),
    ("no run has so many clients for so long; compositions/tests/load.rs of the core has", &["Quorum 4"]),
];

/// The steps that the first comments of the core's files define, but for the protocol that only its own tests have.
fn defined() -> BTreeSet<String> {
    fn walk(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("sample.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.extend(text.lines().filter_map(step));
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src"), &mut found);
    found
}

/// The step that a line defines: `* PBFT 4. `, or a row of a table that begins so.
fn step(line: &str) -> Option<String> {
    let item = line.strip_prefix("//! * ").and_then(|item| item.split_once(". "));
    let row = line.strip_prefix("//! | ").and_then(|row| row.split_once(" | "));
    let (label, _) = item.or(row)?;
    let (room, number) = label.split_once(' ')?;
    let is_step = room.starts_with(char::is_uppercase) && room.chars().all(char::is_alphabetic);
    (is_step && number.parse::<u8>().is_ok()).then(|| label.to_string())
}

#[test]
fn runs_take_the_steps_that_the_pages_have() {
    let mut taken = BTreeSet::new();
    for (protocol, seed) in RUNS {
        let protocol: Protocol = protocol.parse().unwrap();
        let (verdict, trace) =
            run_traced(&ScenarioOptions { protocol, seed, adversary: Choice::Nobody, ..ScenarioOptions::default() });
        assert_eq!(verdict.violations, [], "{protocol}, seed {seed}");
        taken.extend(trace.steps().into_iter().map(str::to_string));
    }
    let defined = defined();
    let unknown: Vec<&String> = taken.difference(&defined).collect();
    assert!(unknown.is_empty(), "no page of the core has the steps {unknown:?}");
    let unseen: BTreeSet<String> = UNSEEN.iter().flat_map(|(_, steps)| *steps).map(ToString::to_string).collect();
    let missing: BTreeSet<String> = defined.difference(&taken).cloned().collect();
    assert_eq!(missing, unseen, "left: what no run took; right: what no run has to take");
}
