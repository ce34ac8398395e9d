//! `cargo xtask`: the project's chores, in Rust, so that a toolchain and git are all that they need.
//!
//! The one that matters is `cargo xtask verify`: everything that must hold before a change lands. The others are its
//! parts, for when one wants only that, or more of it.

mod e2e;
mod failure;
mod fuzz;
mod package;
mod process;
mod purity;
mod seeds;
mod source;
mod spec;
mod tidy;
mod tools;
mod verify;
mod wheel;

use failure::{Failure, Result};
use std::process::ExitCode;
use std::time::Duration;

/// A sub-command: its name, what it takes, and what it is for.
pub(crate) struct Chore {
    /// The word after `cargo xtask`.
    pub(crate) name: &'static str,
    arguments: &'static str,
    purpose: &'static str,
    run: fn(&[String]) -> Result,
}

/// Every sub-command. Documents that name another one are wrong, and `tidy` says so.
pub(crate) const CHORES: [Chore; 13] = [
    Chore {
        name: "verify",
        arguments: "[--list] [--lanes N] [--only STEP]...",
        purpose: "the one gate: every check, in order, until one fails",
        run: verify::run,
    },
    Chore {
        name: "tidy",
        arguments: "",
        purpose: "the rules of docs/style.md that a program can check",
        run: run_tidy,
    },
    Chore {
        name: "fuzz",
        arguments: "[--seconds N] [--target NAME]",
        purpose: "fuzz each target for N seconds (default 60)",
        run: run_fuzz,
    },
    Chore {
        name: "sql-fuzz",
        arguments: "[--minutes N]",
        purpose: "compare the SQL service with itself and with plain SQLite for N minutes (default 10)",
        run: run_sql_fuzz,
    },
    Chore {
        name: "referee",
        arguments: "[--seconds N] [--seed N] [--binary PATH]",
        purpose: "compare the PostgreSQL gateway with a real PostgreSQL, a sample or for N seconds",
        run: e2e::referee::run,
    },
    Chore {
        name: "ecosystem",
        arguments: "[TOOL]... [--binary PATH]",
        purpose: "run what others wrote for PostgreSQL against the gateway, and against PostgreSQL",
        run: e2e::ecosystem::run,
    },
    Chore {
        name: "spec",
        arguments: "",
        purpose: "explore the TLA+ models: the repaired ones hold, each without a repair is refuted",
        run: spec::run,
    },
    Chore {
        name: "mutants",
        arguments: "[ARGUMENTS]",
        purpose: "remove one rule of the protocol at a time; a run or a test must notice each",
        run: seeds::mutants,
    },
    Chore {
        name: "soak",
        arguments: "[--minutes N]",
        purpose: "fresh simulator seeds for N minutes (default 60), for f = 1 and f = 2",
        run: run_soak,
    },
    Chore {
        name: "e2e",
        arguments: "[NAME] [--binary PATH]",
        purpose: "the end-to-end tests of the real binary, all or one",
        run: e2e::run,
    },
    Chore {
        name: "package",
        arguments: "[--binary PATH] [--out FOLDER]",
        purpose: "a Debian package of a release build, or of a binary that is there",
        run: package::run,
    },
    Chore {
        name: "wheel",
        arguments: "",
        purpose: "the Python client for this machine, to target/wheel",
        run: wheel::run,
    },
    Chore {
        name: "advisories",
        arguments: "",
        purpose: "check dependencies against the RustSec advisories (needs to reach their database)",
        run: tools::advisories,
    },
];

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
    let chore = CHORES.iter().find(|chore| chore.name == name).ok_or_else(|| {
        let names: Vec<&str> = CHORES.iter().map(|chore| chore.name).collect();
        Failure::new(format!("no sub-command `{name}`; there are {}", names.join(", ")))
    })?;
    (chore.run)(rest)
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

/// The `--name value` pairs of a sub-command.
pub(crate) struct Options<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Options<'a> {
    /// Takes pairs whose names are all in `known`.
    pub(crate) fn parse(arguments: &'a [String], known: &[&str]) -> Result<Self> {
        let mut pairs = Vec::new();
        let mut words = arguments.iter();
        while let Some(name) = words.next() {
            if !known.contains(&name.as_str()) {
                return Err(Failure::new(format!("unknown argument `{name}`")));
            }
            let value = words.next().ok_or_else(|| Failure::new(format!("`{name}` needs a value")))?;
            pairs.push((name.as_str(), value.as_str()));
        }
        Ok(Self(pairs))
    }

    /// Every value given under this name, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<&'a str> {
        self.0.iter().filter(|(given, _)| *given == name).map(|(_, value)| *value).collect()
    }

    /// The last value given under this name.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.all(name).pop()
    }

    /// The same as a whole number.
    pub(crate) fn number(&self, name: &str, default: u64) -> Result<u64> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| Failure::new(format!("`{name} {text}`: not a whole number")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn options_take_known_pairs_only() {
        let given = words("--only fmt --only tidy");
        assert_eq!(Options::parse(&given, &["--only"]).expect("known").all("--only"), ["fmt", "tidy"]);
        assert!(Options::parse(&given, &[]).is_err());
        assert!(Options::parse(&words("--only"), &["--only"]).is_err());
    }

    #[test]
    fn numbers_are_checked() {
        let given = words("--seconds 7");
        let options = Options::parse(&given, &["--seconds"]).expect("known");
        assert_eq!(options.number("--seconds", 60).expect("a number"), 7);
        assert_eq!(options.number("--minutes", 60).expect("the default"), 60);
        let given = words("--seconds soon");
        assert!(Options::parse(&given, &["--seconds"]).expect("known").number("--seconds", 60).is_err());
    }
}
