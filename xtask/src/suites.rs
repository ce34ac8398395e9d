//! The test programs of the workspace, two at a time: most of those under `tests` wait for clusters, and those beside
//! the code compute meanwhile.

use crate::failure::{Result, ensure};
use crate::process::{self, cargo, log_of, logged};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The log of the build and, with a number for the second lane, of what the programs said.
const LOG: &str = "test";

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    executable: PathBuf,
    /// That of its package: where cargo would run it.
    folder: PathBuf,
    /// Its main source.
    source: PathBuf,
    /// Whether it stands beside the code, and not under `tests` or `examples`.
    is_beside_code: bool,
}

/// Builds all of them and runs each, whether or not others fail. Returns what they said in the form of `cargo test`;
/// none may take longer than `limit`.
pub(crate) fn run(limit: Duration) -> Result<String> {
    let build = ["test", "--locked", "--workspace", "--lib", "--bins", "--tests", "--no-run"];
    let mut build = cargo(&build);
    let messages = logged(LOG, limit, build.arg("--message-format=json-render-diagnostics"))?;
    let programs = in_turns(programs(&messages));
    ensure(!programs.is_empty(), || "cargo names no test program".into())?;
    process::clear_log(&log_of(1, LOG))?;
    let said = process::two_at_a_time(&programs, |lane, program| {
        let mut command = Command::new(&program.executable);
        command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
        Ok(logged(&log_of(lane, LOG), limit, &mut command))
    })?;
    let failed = said.iter().filter(|outcome| outcome.is_err()).count();
    ensure(failed == 0, || format!("{failed} of {} test programs failed", programs.len()))?;
    let named = programs.iter().zip(said).map(|(program, said)| {
        let source = program.source.strip_prefix(process::root()).unwrap_or(&program.source);
        Ok(format!("     Running {}\n{}", source.display(), said?))
    });
    named.collect::<Result<Vec<String>>>().map(|all| all.join("\n"))
}

/// What cargo has built that is a test program, by its messages among other lines.
fn programs(messages: &str) -> Vec<Program> {
    let built = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let program = |message: serde_json::Value| {
        let is_test = message["profile"]["test"].as_bool() == Some(true);
        let path = |value: &serde_json::Value| value.as_str().map(PathBuf::from);
        let kinds = message["target"]["kind"].as_array()?;
        is_test.then_some(Program {
            executable: path(&message["executable"])?,
            folder: path(&message["manifest_path"])?.parent().map(Path::to_path_buf)?,
            source: path(&message["target"]["src_path"])?,
            is_beside_code: !kinds.iter().any(|kind| kind == "test" || kind == "example"),
        })
    };
    built.filter_map(program).collect()
}

/// One that stands beside the code, one that does not, and so on.
fn in_turns(programs: Vec<Program>) -> Vec<Program> {
    let (beside, mut apart): (Vec<_>, Vec<_>) = programs.into_iter().partition(|program| program.is_beside_code);
    let mut apart = apart.drain(..);
    let mut turns: Vec<_> = beside.into_iter().flat_map(|program| [Some(program), apart.next()]).flatten().collect();
    turns.extend(apart);
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, is_test: bool, executable: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{{"kind":["{kind}"],
            "src_path":"/w/a/x.rs"}},"profile":{{"test":{is_test}}},"executable":{executable}}}"#
        )
        .replace('\n', " ")
    }

    #[test]
    fn test_programs_are_found_among_what_cargo_says() {
        let lines = [
            "   Compiling a v0.1.0".to_owned(),
            message("lib", false, "null"),
            message("bin", false, "\"/t/a\""),
            message("lib", true, "\"/t/lib\""),
            message("test", true, "\"/t/one\""),
            message("example", true, "\"/t/two\""),
        ];
        let found: Vec<_> = in_turns(programs(&lines.join("\n")));
        let told: Vec<_> = found.iter().map(|it| (it.executable.to_str().unwrap(), it.is_beside_code)).collect();
        assert_eq!(told, [("/t/lib", true), ("/t/one", false), ("/t/two", false)]);
        assert!(found.iter().all(|it| it.folder == Path::new("/w/a") && it.source == Path::new("/w/a/x.rs")));
    }
}
