//! `cargo xtask wheel`: the Python client with the client library in it.

use crate::failure::{Failure, Result, ensure};
use crate::options::Options;
use crate::process::{self, cargo, logged, program};
use crate::tools;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOG: &str = "wheel";
/// Where its sources are.
pub(crate) const SOURCES: &str = "clients/python";
/// What cargo makes of `crates/ffi`.
const LIBRARY: &str = "libbezant_ffi.so";
const BUILD_MAX: Duration = Duration::from_secs(20 * 60);
const PACK_MAX: Duration = Duration::from_secs(60);

/// `cargo xtask wheel`.
pub(crate) fn run(arguments: &[String]) -> Result {
    Options::parse(arguments, &[])?;
    process::clear_log(LOG)?;
    logged(LOG, BUILD_MAX, &mut cargo(&["build", "--release", "--locked", "-p", "bezant-ffi"]))?;
    let wheel = build(&process::target().join("release"), &process::target().join("wheel"))?;
    println!("{}", wheel.display());
    Ok(())
}

/// A wheel with the library of this folder, put into that one. The sources are copied first: what is built stays out
/// of the work tree.
pub(crate) fn build(libraries: &Path, to: &Path) -> Result<PathBuf> {
    tools::python_client_set_up()?;
    let sources = to.join("sources");
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    copy(&process::root().join(SOURCES), &sources)?;
    let library = libraries.join(LIBRARY);
    std::fs::copy(&library, sources.join("src/bezant").join(LIBRARY))
        .map_err(|error| Failure::from(error).during(&library.to_string_lossy()))?;
    let flags = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir"];
    let mut pack = program("python3", &flags);
    pack.arg(to).arg(&sources).env("PYTHONPATH", tools::python_client()?);
    logged(LOG, PACK_MAX, &mut pack)?;
    let entries = std::fs::read_dir(to)?.collect::<std::io::Result<Vec<_>>>()?;
    let mut wheels =
        entries.iter().map(std::fs::DirEntry::path).filter(|path| path.extension() == Some("whl".as_ref()));
    let wheel = wheels.next().ok_or_else(|| Failure::new("pip made no wheel"))?;
    ensure(wheels.next().is_none(), || "pip made several wheels".into())?;
    Ok(wheel)
}

/// A folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
