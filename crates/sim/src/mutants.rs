//! Would we notice? Each mutant is the real code with one rule removed, as an exact text replacement. A mutant that
//! no seed catches means that the rule is not tested, or not needed.
//!
//! `crates/sim/mutants/*.toml` names the file, the text to find (which must stand there exactly once), what replaces
//! it, the rule in a sentence, and the run that should catch it. The workspace is copied to a scratch folder; the
//! sources themselves are never touched.

use crate::run;
use crate::seeds::scenario;
use serde::Deserialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A mutant may live this long.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// More seeds than fit into [`PATIENCE`].
const SEEDS_MAX: u64 = 10_000_000;

/// What is copied of the workspace; anything else is not needed to build the simulator.
const COPIED: &[&str] = &["Cargo.toml", "Cargo.lock", "crates", "xtask"];

/// One rule removed.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// The file's name without its ending.
    #[serde(skip)]
    pub name: String,
    /// The rule that is removed, in a sentence.
    pub rule: String,
    /// The source file, from the workspace's root.
    pub file: PathBuf,
    /// Text that stands there exactly once.
    pub find: String,
    /// What stands there instead.
    pub replace: String,
    /// Arguments of the simulator that should catch it, without seeds.
    pub arguments: Vec<String>,
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A seed violated something: the line that replays it.
    Caught(String),
    /// Nothing was violated in time.
    Survived,
    /// It does not build, or its text is not there (any more): why.
    Stillborn(String),
}

/// Reads all mutants of a workspace, by name.
///
/// # Errors
/// If the folder cannot be read or a file is not a mutant.
pub fn load(workspace: &Path) -> io::Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for entry in fs::read_dir(workspace.join("crates/sim/mutants"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let mut mutant: Mutant = toml::from_str(&text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display())))?;
        mutant.name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        mutants.push(mutant);
    }
    mutants.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(mutants)
}

impl Mutant {
    /// The source with the rule removed.
    ///
    /// # Errors
    /// Why the text cannot be replaced.
    pub fn apply(&self, source: &str) -> Result<String, String> {
        match source.matches(&self.find).count() {
            1 => Ok(source.replacen(&self.find, &self.replace, 1)),
            count => Err(format!("the text to find stands {count} times in {}", self.file.display())),
        }
    }

    /// Builds the mutant in `scratch` and hunts it for at most [`PATIENCE`] on one core.
    ///
    /// # Errors
    /// If files cannot be copied or a process cannot be started.
    pub fn hunt(&self, workspace: &Path, scratch: &Path) -> io::Result<Fate> {
        let tree = scratch.join("tree");
        fs::create_dir_all(&tree)?;
        for part in COPIED {
            copy(&workspace.join(part), &tree.join(part))?;
        }
        let file = tree.join(&self.file);
        match self.apply(&fs::read_to_string(&file)?) {
            Ok(mutated) => fs::write(&file, mutated)?,
            Err(why) => return Ok(Fate::Stillborn(why)),
        }
        let target = scratch.join("target");
        let build = Command::new("cargo")
            .args(["build", "--release", "--quiet", "--package", "bezant-sim", "--bin", "bezant-sim"])
            .env("CARGO_TARGET_DIR", &target)
            // Quick to build rather than quick to run: most mutants live for seconds.
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "64")
            .env("CARGO_PROFILE_RELEASE_INCREMENTAL", "true")
            .current_dir(&tree)
            .output()?;
        if !build.status.success() {
            return Ok(Fate::Stillborn(String::from_utf8_lossy(&build.stderr).into_owned()));
        }
        self.run(&target.join("release/bezant-sim"), &scratch.join("hunt.log"))
    }

    /// Runs seeds until one violates something that the real code does not.
    fn run(&self, simulator: &Path, log: &Path) -> io::Result<Fate> {
        let begin = Instant::now();
        let mut first = 0;
        loop {
            let mut hunt = Command::new(simulator)
                .args(&self.arguments)
                .args(["--seeds", &format!("{first}..{SEEDS_MAX}")])
                .args(["--threads", "1", "--failures-max", "1", "--no-shrink"])
                .stdout(Stdio::null())
                .stderr(fs::File::create(log)?)
                .spawn()?;
            while hunt.try_wait()?.is_none() {
                if begin.elapsed() > PATIENCE {
                    hunt.kill()?;
                    hunt.wait()?;
                    return Ok(Fate::Survived);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            let said = fs::read_to_string(log)?;
            // What comes before it says how far the hunt has come.
            let mut lines = said.lines().skip_while(|line| !line.contains("bezant sim "));
            let Some((_, replay)) = lines.next().and_then(|line| line.split_once("bezant sim ")) else {
                return Ok(Fate::Survived);
            };
            let arguments = replay.trim_end_matches(" --trace");
            let options = scenario(arguments).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if run(&options).violations.is_empty() {
                let what = lines.next().unwrap_or_default().trim();
                return Ok(Fate::Caught(format!("{arguments}: {what}")));
            }
            // The real code fails here too: that is news, but it says nothing about the mutant.
            eprintln!("the code without the mutation violates something as well: {options}");
            first = options.seed + 1;
        }
    }
}

/// Copies a file or a folder, but only files that differ: what is equal keeps its time, so that little is rebuilt.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            if entry.file_name() != "target" {
                copy(&entry.path(), &to.join(entry.file_name()))?;
            }
        }
        return Ok(());
    }
    let content = fs::read(from)?;
    if fs::read(to).is_ok_and(|there| there == content) { Ok(()) } else { fs::write(to, content) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every mutant's text stands in the present sources: a mutant that does not apply guards nothing.
    #[test]
    fn every_mutant_applies_to_the_present_sources() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mutants = load(&workspace).unwrap();
        assert!(mutants.len() >= 12, "{} mutants", mutants.len());
        for mutant in mutants {
            let source = fs::read_to_string(workspace.join(&mutant.file)).unwrap();
            mutant.apply(&source).unwrap_or_else(|why| panic!("{}: {why}", mutant.name));
        }
    }
}
