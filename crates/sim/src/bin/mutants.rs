//! Hunts the mutants of `crates/sim/mutants`: all of them, or those that are named. Exit code 0 if each was caught.

use bezant_sim::mutants::{Fate, load};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match hunt(&wanted) {
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

fn hunt(wanted: &[String]) -> std::io::Result<usize> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let scratch = workspace.join("target/mutants");
    let mut survivors = 0;
    for mutant in load(&workspace)? {
        if !wanted.is_empty() && !wanted.contains(&mutant.name) {
            continue;
        }
        let begin = Instant::now();
        let fate = mutant.hunt(&workspace, &scratch)?;
        let seconds = begin.elapsed().as_secs();
        survivors += usize::from(!matches!(fate, Fate::Caught(_)));
        match fate {
            Fate::Caught(how) => println!("caught    {} in {seconds} s: {how}", mutant.name),
            Fate::Survived => println!("SURVIVED  {}: {}", mutant.name, mutant.rule),
            Fate::Stillborn(why) => println!("STILLBORN {}: {why}", mutant.name),
        }
    }
    Ok(survivors)
}
