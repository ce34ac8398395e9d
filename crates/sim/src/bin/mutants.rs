//! Hunts the mutants of `crates/sim/mutants`: all of them, or those that are named. Exit code 0 if each was caught.
//!
//! Behind each stands what it took: seeds, and seconds of a core. With `--json` it is an object a line, so that two
//! drawings can be compared.

use bezant_sim::mutants::{Catch, Fate, load};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (flags, wanted): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word == "--json");
    match hunt(&wanted, !flags.is_empty()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(survivors) => {
            eprintln!("{survivors} mutants were not caught");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn hunt(wanted: &[String], as_json: bool) -> std::io::Result<usize> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let scratch = workspace.join("target/mutants");
    let mut survivors = 0;
    for mutant in load(&workspace)? {
        if !wanted.is_empty() && !wanted.contains(&mutant.name) {
            continue;
        }
        let fate = mutant.hunt(&workspace, &scratch)?;
        survivors += usize::from(!matches!(fate, Fate::Caught(_)));
        if as_json {
            let (fate, detail) = match fate {
                Fate::Caught(catch) => ("caught", json!(catch)),
                Fate::Survived => ("survived", json!(mutant.rule)),
                Fate::Stillborn(why) => ("stillborn", json!(why)),
            };
            println!("{}", json!({ "mutant": mutant.name, "fate": fate, "detail": detail }));
            continue;
        }
        match fate {
            Fate::Caught(catch) => println!("caught    {}{}: {}", mutant.name, took(&catch), catch.how),
            Fate::Survived => println!("SURVIVED  {}: {}", mutant.name, mutant.rule),
            Fate::Stillborn(why) => println!("STILLBORN {}: {why}", mutant.name),
        }
    }
    Ok(survivors)
}

/// What it took, in words.
fn took(catch: &Catch) -> String {
    let test = catch.test_cpu_s.map(|seconds| format!(" by a test of {seconds:.2} s"));
    let by_seeds = |(seeds, seconds)| format!(" by {seeds} seeds in {seconds:.2} s");
    let seeds = catch.seeds.zip(catch.seeds_cpu_s).map(by_seeds);
    test.into_iter().chain(seeds).collect::<Vec<_>>().join(" and")
}
