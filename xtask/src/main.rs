//! `cargo xtask`: the project's chores, in Rust, so that a toolchain and git are all that they need.
//!
//! The one that matters is `cargo xtask verify`: everything that must hold before a change lands. The others are its
//! parts, for when one wants only that, or more of it.

mod chores;
mod circles;
mod e2e;
mod failure;
mod files;
mod finding;
mod floors;
mod fuzz;
mod imports;
mod instructions;
mod measure;
mod options;
mod package;
mod process;
mod purity;
mod seeds;
mod source;
mod spec;
mod suites;
mod tables;
mod tidy;
mod tools;
mod verify;
mod wheel;

use chores::CHORES;
use failure::{Failure, Result};
use options::Options;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", usage());
        return Err(Failure::new("name a sub-command"));
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", usage());
        return Ok(());
    }
    std::env::set_current_dir(process::root())?;
    let run = runner(name).ok_or_else(|| {
        let names: Vec<&str> = CHORES.iter().map(|chore| chore.name).collect();
        Failure::new(format!("no sub-command `{name}`; there are {}", names.join(", ")))
    })?;
    run(rest)
}

/// What a sub-command does.
fn runner(name: &str) -> Option<fn(&[String]) -> Result> {
    Some(match name {
        "verify" => verify::run,
        "tidy" => run_tidy,
        "tables" => tables::run,
        "measure" => measure::run,
        "instructions" => instructions::run,
        "fuzz" => run_fuzz,
        "sql-fuzz" => run_sql_fuzz,
        "referee" => e2e::referee::run,
        "ecosystem" => e2e::ecosystem::run,
        "spec" => spec::run,
        "mutants" => seeds::mutants,
        "soak" => run_soak,
        "e2e" => e2e::run,
        "package" => package::run,
        "wheel" => wheel::run,
        "advisories" => tools::advisories,
        _ => return None,
    })
}

fn usage() -> String {
    let mut text = String::from("cargo xtask SUB-COMMAND\n\n");
    for chore in &CHORES {
        text += &format!("  {:<38} {}\n", format!("{} {}", chore.name, chore.arguments), chore.purpose);
    }
    text
}

fn run_tidy(arguments: &[String]) -> Result {
    Options::parse(arguments, &[])?;
    println!("{}", tidy::check()?);
    Ok(())
}

fn run_fuzz(arguments: &[String]) -> Result {
    let options = Options::parse(arguments, &["--seconds", "--target"])?;
    process::clear_log("fuzz")?;
    tools::fuzzing()?;
    let seconds = options.number("--seconds", 60)?;
    println!("{}", fuzz::run(Duration::from_secs(seconds), options.text("--target"))?);
    Ok(())
}

fn run_sql_fuzz(arguments: &[String]) -> Result {
    let options = Options::parse(arguments, &["--minutes"])?;
    let minutes = options.number("--minutes", 10)?;
    process::clear_log("sql-fuzz")?;
    println!("{}", seeds::sql_fuzz_for(Duration::from_secs(60 * minutes))?);
    Ok(())
}

fn run_soak(arguments: &[String]) -> Result {
    let options = Options::parse(arguments, &["--minutes"])?;
    let minutes = options.number("--minutes", 60)?;
    println!("{}", seeds::soak(Duration::from_secs(60 * minutes))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chore_does_something() {
        assert!(CHORES.iter().all(|chore| runner(chore.name).is_some()));
    }
}
