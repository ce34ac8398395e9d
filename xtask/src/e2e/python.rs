//! The Python client, as one installs it: a wheel in an environment of its own, against four replicas. Its tests run
//! while all is well, while the primary is down, and while a replica lies; and then too many are down.

use super::cluster::{Cluster, REPLICAS};
use super::scratch::Scratch;
use crate::failure::Result;
use crate::process::{logged, program, root};
use crate::{tools, wheel};
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOG: &str = "e2e-python";
/// How long one run of the tests may take.
const TESTS_MAX: Duration = Duration::from_secs(60);
/// How long pip and mypy may take.
const TOOL_MAX: Duration = Duration::from_secs(60);

/// The whole story. The library is taken from beside the binary.
pub(crate) fn run(binary: &Path) -> Result<String> {
    let scratch = Scratch::new("python")?;
    let libraries = binary.parent().unwrap_or_else(|| Path::new("."));
    let python = install(&wheel::build(libraries, &scratch.path().join("wheel"))?, scratch.path())?;
    check_types(&python, scratch.path())?;
    let mut cluster = Cluster::prepare(LOG, binary, scratch.path(), &["--protocol", "pbft"])?;
    for id in 0..REPLICAS {
        cluster.start_replica(id)?;
    }
    let test = |cluster: &Cluster, name: &str| -> Result<String> {
        let mut tests = program(&python.to_string_lossy(), &["-m", "unittest"]);
        tests.arg(root().join(wheel::SOURCES).join("tests").join(name)).env("BEZANT_CLUSTER", cluster.file());
        let output = logged(LOG, TESTS_MAX, &mut tests)?;
        Ok(output.lines().find(|line| line.starts_with("Ran ")).unwrap_or("Ran none").replace("Ran ", ""))
    };
    let well = test(&cluster, "test_client.py")?;
    cluster.kill_replica(0)?;
    let without_primary = test(&cluster, "test_client.py")?;
    cluster.start_replica(0)?;
    cluster.order_replica(3, "lie intruder")?;
    let with_liar = test(&cluster, "test_client.py")?;
    cluster.wait_for_fault(3)?;
    cluster.kill_replica(1)?;
    cluster.kill_replica(2)?;
    test(&cluster, "test_outage.py")?;
    Ok(format!("{well}; {without_primary} without the primary; {with_liar} with a liar; an outage"))
}

/// A Python that has the wheel and nothing else.
fn install(wheel: &Path, scratch: &Path) -> Result<PathBuf> {
    let environment = scratch.join("environment");
    let mut create = program("python3", &["-m", "venv", "--without-pip"]);
    logged(LOG, TOOL_MAX, create.arg(&environment))?;
    let python = environment.join("bin/python3");
    let mut install = program("python3", &["-m", "pip", "--python"]);
    install.arg(&python).args(["install", "--quiet", "--no-index", "--no-deps"]).arg(wheel);
    logged(LOG, TOOL_MAX, &mut install)?;
    Ok(python)
}

/// The package must be typed throughout, and its tests must be right about the types of what is installed.
fn check_types(python: &Path, scratch: &Path) -> Result {
    let mut check = program("python3", &["-m", "mypy", "--strict", "--no-incremental", "--python-executable"]);
    check.arg(python).arg("--cache-dir").arg(scratch.join("mypy")).env("PYTHONPATH", tools::python_client()?);
    for folder in ["src/bezant", "tests"] {
        check.arg(format!("{}/{folder}", wheel::SOURCES));
    }
    logged(LOG, TOOL_MAX, &mut check).map(drop)
}
