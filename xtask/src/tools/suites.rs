//! What others wrote and we ask: drivers, and suites of tests. Only `cargo xtask referee` and `cargo xtask ecosystem`
//! set them up, and the gate's short run of the former.

use super::{
    INSTALL_LIMIT, LOG, folder_of, install_node, install_packages, install_postgres_node, install_python, pip,
    postgres_node, tools,
};
use crate::failure::Result;
use crate::process::{self, logged, program};
use std::path::PathBuf;

/// Names the Python packages through which the referee asks.
const REFEREE_REQUIREMENTS: &str = "xtask/src/e2e/referee/requirements.txt";
/// The driver of Java, and what it is known by.
const JDBC: &str = "https://repo1.maven.org/maven2/org/postgresql/postgresql/42.7.8/postgresql-42.7.8.jar";
const JDBC_SHA256: &str = "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7";

/// Where the referee's drivers are.
pub(crate) struct Referee {
    /// The folder of Python's packages.
    pub(crate) python: PathBuf,
    /// The folder of node's packages.
    pub(crate) node: PathBuf,
    /// The archive of pgjdbc.
    pub(crate) jdbc: PathBuf,
}

/// Sets up what the referee needs and nothing else.
pub(crate) fn referee() -> Result<Referee> {
    let names = ["postgresql-client", "postgresql-15", "default-jdk-headless", "python3-pip", "npm"];
    install_packages(|name| names.contains(&name))?;
    install_postgres_node()?;
    let python = folder_of("referee", &[REFEREE_REQUIREMENTS])?;
    if !python.join("asyncpg").is_dir() {
        install_python(&python, REFEREE_REQUIREMENTS)?;
    }
    let jdbc = tools().join(format!("{JDBC_SHA256}.jar"));
    if !jdbc.is_file() {
        let fetch = process::root().join("xtask/src/e2e/referee/fetch.py");
        let arguments = [&*fetch.to_string_lossy(), JDBC, JDBC_SHA256, &jdbc.to_string_lossy()];
        let advice = format!("reach {JDBC}, or put it to {}", jdbc.display());
        logged(LOG, INSTALL_LIMIT, &mut program("python3", &arguments)).map_err(|failure| failure.during(&advice))?;
    }
    Ok(Referee { python, node: postgres_node()?, jdbc })
}

/// Names the Python packages that speak to the gateway by themselves.
const ECOSYSTEM_REQUIREMENTS: &str = "xtask/ecosystem/python/requirements.txt";
/// Names the source of Django, which has its tests.
const DJANGO_SOURCE: &str = "xtask/ecosystem/python/source.txt";
/// Names those of node, in a lock file.
const ECOSYSTEM_NODE: [&str; 2] = ["xtask/ecosystem/node/package.json", "xtask/ecosystem/node/package-lock.json"];

/// Where what others wrote is.
pub(crate) struct Ecosystem {
    /// The folder of Python's packages.
    pub(crate) python: PathBuf,
    /// The folder of node's packages.
    pub(crate) node: PathBuf,
    /// The archive of pgjdbc.
    pub(crate) jdbc: PathBuf,
    /// The source of Django.
    pub(crate) django: PathBuf,
}

/// Sets up what `cargo xtask ecosystem` needs and nothing else.
pub(crate) fn ecosystem() -> Result<Ecosystem> {
    let Referee { jdbc, .. } = referee()?;
    let python = folder_of("ecosystem", &[ECOSYSTEM_REQUIREMENTS])?;
    if !python.join("django").is_dir() {
        install_python(&python, ECOSYSTEM_REQUIREMENTS)?;
    }
    let node = folder_of("ecosystem-node", &ECOSYSTEM_NODE)?;
    if !node.join("node_modules/typeorm").is_dir() {
        install_node(&node, &ECOSYSTEM_NODE)?;
    }
    let django = folder_of("django", &[DJANGO_SOURCE])?;
    if !django.join("tests/runtests.py").is_file() {
        std::fs::create_dir_all(&django)?;
        let folder = django.to_string_lossy();
        let flags = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes", "--dest", &folder];
        let mut fetch = pip(&[&flags[..], &["--requirement", DJANGO_SOURCE]].concat());
        let advice = "reach the Python package index: it has the source of Django";
        logged(LOG, INSTALL_LIMIT, &mut fetch).map_err(|failure| failure.during(advice))?;
        let unpack = "tar --strip-components=1 -xzf ./*.tar.gz";
        logged(LOG, INSTALL_LIMIT, program("sh", &["-c", unpack]).current_dir(&django))?;
    }
    Ok(Ecosystem { python, node, jdbc, django })
}
