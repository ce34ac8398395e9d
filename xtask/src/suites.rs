//! The test programs of the workspace, in two lanes: those that wait for clusters one after the other, and beside them,
//! also one after the other, those that compute. These have the lowest priority: what waits finds the machine as idle
//! as it would alone, or its deadlines pass.

use crate::failure::{Result, ensure};
use crate::process::{self, cargo, log_of, logged, program};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The log of the build and of what waits. What computes has another one, with a number.
const LOG: &str = "test";

/// Those beside its code wait for timers of the network.
const WAITS: &str = "bezant_node";

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    executable: PathBuf,
    /// That of its package: where cargo would run it.
    folder: PathBuf,
    /// Its main source.
    source: PathBuf,
    computes: bool,
}

/// Builds all of them and runs each, whether or not others fail. Returns what they said in the form of `cargo test`;
/// none may take longer than `limit`.
pub(crate) fn run(limit: Duration) -> Result<String> {
    let build = ["test", "--locked", "--workspace", "--lib", "--bins", "--tests", "--no-run"];
    let mut build = cargo(&build);
    let messages = logged(LOG, limit, build.arg("--message-format=json-render-diagnostics"))?;
    let programs = programs(&messages);
    ensure(!programs.is_empty(), || "cargo names no test program".into())?;
    let computing = log_of(1, LOG);
    process::clear_log(&computing)?;
    let lane = |computes: bool| -> Vec<Result<String>> {
        let log = if computes { &computing } else { LOG };
        programs.iter().filter(|program| program.computes == computes).map(|program| program.run(log, limit)).collect()
    };
    let mut said = std::thread::scope(|scope| {
        let computing = scope.spawn(|| lane(true));
        let mut said = lane(false);
        said.extend(computing.join().expect("a lane does not panic"));
        said
    });
    let failed = said.iter().filter(|outcome| outcome.is_err()).count();
    ensure(failed == 0, || format!("{failed} of {} test programs failed", programs.len()))?;
    said.drain(..).collect::<Result<Vec<String>>>().map(|all| all.join("\n"))
}

impl Program {
    fn run(&self, log: &str, limit: Duration) -> Result<String> {
        let path = self.executable.to_string_lossy();
        let mut command = if self.computes { program("nice", &["-n", "19", &path]) } else { program(&path, &[]) };
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        let said = logged(log, limit, &mut command)?;
        let source = self.source.strip_prefix(process::root()).unwrap_or(&self.source);
        Ok(format!("     Running {}\n{said}", source.display()))
    }
}

/// What cargo has built that is a test program, by its messages among other lines.
fn programs(messages: &str) -> Vec<Program> {
    let built = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let program = |message: serde_json::Value| {
        let is_test = message["profile"]["test"].as_bool() == Some(true);
        let path = |value: &serde_json::Value| value.as_str().map(PathBuf::from);
        let target = &message["target"];
        let is_under_tests = target["kind"].as_array()?.iter().any(|kind| kind == "test");
        is_test.then_some(Program {
            executable: path(&message["executable"])?,
            folder: path(&message["manifest_path"])?.parent().map(Path::to_path_buf)?,
            source: path(&target["src_path"])?,
            computes: !is_under_tests && target["name"] != WAITS,
        })
    };
    built.filter_map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str, kind: &str, is_test: bool, executable: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{{"name":"{name}",
            "kind":["{kind}"],"src_path":"/w/a/x.rs"}},"profile":{{"test":{is_test}}},"executable":{executable}}}"#
        )
        .replace('\n', " ")
    }

    #[test]
    fn test_programs_are_found_among_what_cargo_says() {
        let lines = [
            "   Compiling a v0.1.0".to_owned(),
            message("a", "lib", false, "null"),
            message("a", "bin", false, "\"/t/a\""),
            message("a", "lib", true, "\"/t/lib\""),
            message("one", "test", true, "\"/t/one\""),
            message("two", "example", true, "\"/t/two\""),
            message(WAITS, "lib", true, "\"/t/node\""),
        ];
        let found = programs(&lines.join("\n"));
        let told: Vec<_> = found.iter().map(|it| (it.executable.to_str().unwrap(), it.computes)).collect();
        assert_eq!(told, [("/t/lib", true), ("/t/one", false), ("/t/two", true), ("/t/node", false)]);
        assert!(found.iter().all(|it| it.folder == Path::new("/w/a") && it.source == Path::new("/w/a/x.rs")));
    }
}
