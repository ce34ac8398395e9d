//! `cargo xtask measure`: how large the sources are, and how tangled.
//!
//! | file | what is in it |
//! |---|---|
//! | `figures` | what is counted |
//! | `table`, `json` | the same for a person and for a program |

mod figures;
mod json;
mod table;

use crate::failure::{Failure, Result};
use crate::files::{self, Files};
use crate::finding::Finding;
use crate::{floors, imports};
use figures::Figures;

/// The package that has floors, and that is measured unless all are.
const CORE: &str = "crates/core";

const HELP: &str = "\
Counts in the sources of the core, tests aside: files, lines, documentation, comments, assertions, circles of files
that import each other, and imports from a higher floor (docs/architecture.md).

  cargo xtask measure [--all] [--circles | --floors] [--json]

  --all      every crate, not only the core
  --circles  each circle, with the arrows that tie it
  --floors   each place where the core is not as its floors say
  --json     the figures for programs

Example: what ties the circles of all crates

  cargo xtask measure --all --circles
";

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    all: bool,
    circles: bool,
    floors: bool,
    json: bool,
}

impl Request {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut request = Self::default();
        for argument in arguments {
            match argument.as_str() {
                "--all" => request.all = true,
                "--circles" => request.circles = true,
                "--floors" => request.floors = true,
                "--json" => request.json = true,
                other => return Err(Failure::new(format!("unknown argument `{other}`; see `--help`"))),
            }
        }
        Ok(request)
    }
}

/// `cargo xtask measure`.
pub(crate) fn run(arguments: &[String]) -> Result {
    if arguments.iter().any(|argument| argument == "--help") {
        print!("{HELP}");
        return Ok(());
    }
    let request = Request::parse(arguments)?;
    let files = files::read()?;
    let folders = if request.all { imports::packages(&files) } else { vec![CORE.to_string()] };
    let all: Vec<Figures> = folders.iter().map(|folder| Figures::of(&files, folder)).collect();
    if request.json {
        println!("{}", json::text(all.iter().map(|figures| (figures, upwards(figures, &files)))));
        return Ok(());
    }
    let page = |figures: &Figures| match (request.circles, request.floors) {
        (true, _) => table::circles(figures),
        (_, true) => broken_floors(figures, &files),
        _ => table::page(figures, upwards(figures, &files).as_deref()),
    };
    print!("{}", all.iter().map(page).collect::<Vec<_>>().join("\n"));
    Ok(())
}

/// The arrows that break the floors of a package; `None` if it has none.
fn upwards(figures: &Figures, files: &Files) -> Option<Vec<Finding>> {
    (figures.folder == CORE).then(|| floors::upwards(files, &figures.imports))
}

fn broken_floors(figures: &Figures, files: &Files) -> String {
    let findings = if figures.folder == CORE { floors::check(files, &figures.imports) } else { Vec::new() };
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_are_refused() {
        let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
        let asked = Request { all: true, json: true, ..Request::default() };
        assert_eq!(Request::parse(&words("--all --json")).expect("known"), asked);
        assert!(Request::parse(&words("--al")).is_err());
    }
}
