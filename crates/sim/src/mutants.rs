//! Would we notice? Each mutant is the real code with one rule removed, as an exact text replacement. A mutant that
//! nothing catches means that the rule is not tested, or not needed.
//!
//! `crates/sim/mutants/*.toml` names the file, the text to find (which must stand there exactly once), what replaces
//! it, the rule in a sentence, and who should catch it: runs of the simulator, a test of the core, or both, and then
//! each of them must. Where one fault is prevented twice, the simulator runs without several rules. The workspace is
//! copied to a scratch folder; the sources themselves are never touched.

use crate::seeds::violations;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

/// A mutant may live this long.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// More seeds than fit into [`PATIENCE`].
const SEEDS_MAX: u64 = 10_000_000;

/// What is copied of the workspace; anything else is not needed to build the simulator and the tests.
const COPIED: &[&str] = &[".cargo", "Cargo.toml", "Cargo.lock", "crates", "docs", "examples", "xtask"];

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
    /// The tests of the same crate that should fail: how their names begin.
    pub test: Option<String>,
    /// Arguments of the simulator that should catch it, without seeds; none if a test is enough.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Other mutants whose rules are removed as well when the simulator runs.
    #[serde(default)]
    pub with: Vec<String>,
    /// These mutants.
    #[serde(skip)]
    others: Vec<Self>,
}

/// How a mutant was caught, and what that took.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Catch {
    /// A seed violated something, a test failed: the lines that replay them.
    pub how: String,
    /// Seeds until the first that violated something, if seeds were to catch it.
    pub seeds: Option<u64>,
    /// What these seeds took on their core, in seconds.
    pub seeds_cpu_s: Option<f64>,
    /// What the test took, in seconds.
    pub test_cpu_s: Option<f64>,
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// Whoever was to notice did.
    Caught(Catch),
    /// Somebody who should have noticed did not, in time.
    Survived,
    /// It does not build, or its text is not there (any more): why.
    Stillborn(String),
}

/// Reads all mutants of a workspace, by name.
///
/// # Errors
/// If the folder cannot be read, or a file is not a mutant, or nobody is to catch it.
pub fn load(workspace: &Path) -> io::Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for entry in fs::read_dir(workspace.join("crates/sim/mutants"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()));
        let mut mutant: Mutant = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        if mutant.test.is_none() && mutant.arguments.is_empty() {
            return Err(invalid("neither a test nor arguments of the simulator".to_owned()));
        }
        mutant.name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        mutants.push(mutant);
    }
    mutants.sort_by(|a, b| a.name.cmp(&b.name));
    let all = mutants.clone();
    for mutant in &mut mutants {
        for name in &mutant.with {
            let other = all.iter().find(|other| other.name == *name);
            let unknown = || io::Error::new(io::ErrorKind::InvalidData, format!("{}: no mutant {name}", mutant.name));
            mutant.others.push(other.ok_or_else(unknown)?.clone());
        }
    }
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

    /// Removes the rule from the copy of the sources in `tree`, or says why it cannot.
    fn change(&self, tree: &Path) -> io::Result<Result<(), String>> {
        let file = tree.join(&self.file);
        match self.apply(&fs::read_to_string(&file)?) {
            Ok(mutated) => fs::write(&file, mutated).map(Ok),
            Err(why) => Ok(Err(why)),
        }
    }

    /// Builds the mutant in `scratch` and hunts it, for at most [`PATIENCE`] in each way, on one core.
    ///
    /// # Errors
    /// If files cannot be copied or a process cannot be started.
    pub fn hunt(&self, workspace: &Path, scratch: &Path) -> io::Result<Fate> {
        let tree = scratch.join("tree");
        fs::create_dir_all(&tree)?;
        for part in COPIED {
            copy(&workspace.join(part), &tree.join(part))?;
        }
        if let Err(why) = self.change(&tree)? {
            return Ok(Fate::Stillborn(why));
        }
        let target = scratch.join("target");
        let mut all = Catch::default();
        if let Some(test) = &self.test {
            match self.fail(&tree, &target, &scratch.join("test.log"), test)? {
                Fate::Caught(catch) => all = catch,
                fate => return Ok(fate),
            }
        }
        if !self.arguments.is_empty() {
            for other in &self.others {
                if let Err(why) = other.change(&tree)? {
                    return Ok(Fate::Stillborn(why));
                }
            }
            match self.violate(&tree, &target, &scratch.join("hunt.log"))? {
                Fate::Caught(Catch { how, seeds, seeds_cpu_s, .. }) => {
                    let before = if all.how.is_empty() { String::new() } else { format!("{}; ", all.how) };
                    all = Catch { how: before + &how, seeds, seeds_cpu_s, ..all };
                }
                fate => return Ok(fate),
            }
        }
        Ok(Fate::Caught(all))
    }

    /// The package whose file is changed.
    fn package(&self) -> String {
        let folder = self.file.components().nth(1).map(|folder| folder.as_os_str().to_string_lossy().into_owned());
        format!("bezant-{}", folder.unwrap_or_default())
    }

    /// Runs tests of the package, of which one should fail.
    fn fail(&self, tree: &Path, target: &Path, log: &Path, test: &str) -> io::Result<Fate> {
        let build = Command::new("cargo")
            .args(["test", "--package", &self.package(), "--lib", "--no-run", "--message-format=json"])
            .env("CARGO_TARGET_DIR", target)
            .current_dir(tree)
            .output()?;
        if !build.status.success() {
            return Ok(Fate::Stillborn(String::from_utf8_lossy(&build.stderr).into_owned()));
        }
        let said = String::from_utf8_lossy(&build.stdout);
        let program = said.lines().rev().find_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            Some(message.get("executable")?.as_str()?.to_owned())
        });
        let Some(program) = program else { return Ok(Fate::Stillborn("no test program was built".to_owned())) };
        let mut tests = Command::new(program);
        tests.arg(test).env("RUST_BACKTRACE", "0").stdout(fs::File::create(log)?).stderr(Stdio::null());
        let before = cpu_of_children();
        let Some(succeeded) = within_patience(Instant::now(), tests.spawn()?)? else { return Ok(Fate::Survived) };
        let test_cpu_s = Some(cpu_of_children() - before);
        let said = fs::read_to_string(log)?;
        if succeeded {
            let ran = !said.contains("running 0 tests");
            return Ok(if ran { Fate::Survived } else { Fate::Stillborn(format!("no test is called {test}")) });
        }
        let mut lines = said.lines().skip_while(|line| !line.contains("panicked at"));
        let what = lines.nth(1).unwrap_or_default().trim();
        let how = format!("cargo test -p {} {test}: {what}", self.package());
        Ok(Fate::Caught(Catch { how, test_cpu_s, ..Catch::default() }))
    }

    /// Runs the simulator, which should find a violation.
    fn violate(&self, tree: &Path, target: &Path, log: &Path) -> io::Result<Fate> {
        let build = Command::new("cargo")
            .args(["build", "--release", "--quiet", "--package", "bezant-sim", "--bin", "bezant-sim"])
            .env("CARGO_TARGET_DIR", target)
            // Quick to build rather than quick to run: most mutants live for seconds.
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "64")
            .env("CARGO_PROFILE_RELEASE_INCREMENTAL", "true")
            .current_dir(tree)
            .output()?;
        if !build.status.success() {
            return Ok(Fate::Stillborn(String::from_utf8_lossy(&build.stderr).into_owned()));
        }
        self.run(&target.join("release/bezant-sim"), log)
    }

    /// Runs seeds until one violates something that the real code does not.
    fn run(&self, simulator: &Path, log: &Path) -> io::Result<Fate> {
        let begin = Instant::now();
        let summary = log.with_extension("json");
        let (mut first, mut seeds, mut cpu) = (0, 0, 0.0);
        loop {
            let hunt = Command::new(simulator)
                .args(&self.arguments)
                .args(["--seeds", &format!("{first}..{SEEDS_MAX}")])
                .args(["--threads", "1", "--failures-max", "1", "--no-shrink", "--json"])
                .stdout(fs::File::create(&summary)?)
                .stderr(fs::File::create(log)?)
                .spawn()?;
            if within_patience(begin, hunt)?.is_none() {
                return Ok(Fate::Survived);
            }
            for line in fs::read_to_string(&summary)?.lines() {
                let object: serde_json::Value = serde_json::from_str(line)?;
                seeds += object["scenarios"].as_u64().unwrap_or(0);
                cpu += object["cpu_s"].as_f64().unwrap_or(0.0);
            }
            let said = fs::read_to_string(log)?;
            // What comes before it says how far the hunt has come.
            let mut lines = said.lines().skip_while(|line| !line.contains("bezant sim "));
            let Some((_, replay)) = lines.next().and_then(|line| line.split_once("bezant sim ")) else {
                return Ok(Fate::Survived);
            };
            let arguments = replay.trim_end_matches(" --trace");
            let rerun = violations(arguments).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
            let (seed, found) = rerun?;
            if found.is_empty() {
                let what = lines.next().unwrap_or_default().trim();
                let how = format!("{arguments}: {what}");
                return Ok(Fate::Caught(Catch { how, seeds: Some(seeds), seeds_cpu_s: Some(cpu), ..Catch::default() }));
            }
            // The real code fails here too: that is news, but it says nothing about the mutant.
            eprintln!("the code without the mutation violates something as well: {arguments}");
            first = seed + 1;
        }
    }
}

/// What the processes that were started and waited for have computed so far, in seconds; zero where the system does not
/// say. It counts in hundredths.
fn cpu_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in brackets, may hold anything. Behind it, the 14th and 15th are the times of children.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Waits for a process until [`PATIENCE`] is over, and ends it then. Whether it succeeded, if it ended by itself.
fn within_patience(begin: Instant, mut process: Child) -> io::Result<Option<bool>> {
    loop {
        if let Some(status) = process.try_wait()? {
            return Ok(Some(status.success()));
        }
        if begin.elapsed() > PATIENCE {
            process.kill()?;
            process.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
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

    /// All sources below a folder, as one text.
    fn sources(folder: &Path) -> String {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let read = |path: PathBuf| match path.is_dir() {
            true => sources(&path),
            false => fs::read_to_string(&path).unwrap_or_default(),
        };
        entries.map(read).collect()
    }

    /// Without one of them cargo does not even begin.
    #[test]
    fn every_member_of_the_workspace_is_copied() {
        let manifest: toml::Table = include_str!("../../../Cargo.toml").parse().unwrap();
        for member in manifest["workspace"]["members"].as_array().unwrap() {
            let folder = member.as_str().unwrap().split('/').next().unwrap();
            assert!(COPIED.contains(&folder), "{folder}");
        }
    }

    /// Every mutant's text stands in the present sources, and so does the test that should catch it: a mutant that
    /// does not apply guards nothing.
    #[test]
    fn every_mutant_applies_to_the_present_sources() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mutants = load(&workspace).unwrap();
        assert!(mutants.len() >= 12, "{} mutants", mutants.len());
        for mutant in mutants {
            let source = fs::read_to_string(workspace.join(&mutant.file)).unwrap();
            mutant.apply(&source).unwrap_or_else(|why| panic!("{}: {why}", mutant.name));
            let test = mutant.test.map_or_else(|| "fn ".to_owned(), |test| format!("fn {test}"));
            let package: PathBuf = mutant.file.components().take(2).collect();
            let folder = |name| workspace.join(&package).join(name);
            let tests = if folder("tests").is_dir() { sources(&folder("tests")) } else { String::new() };
            let all = sources(&folder("src")) + &tests;
            assert!(all.contains(&test), "{}: no test is called {test}", mutant.name);
        }
    }
}
