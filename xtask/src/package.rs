//! `cargo xtask package`: a Debian package of the one program, its unit and its documents.
//!
//! `dpkg-deb` puts it together, so that whoever has Debian has what it takes. Equal programs make equal packages: every
//! file has the time of the commit, or `SOURCE_DATE_EPOCH` if that is set, and belongs to root.
//!
//! There are no conffiles: all settings are in the folders of replicas, which an administrator makes and a package does
//! not touch.

use crate::failure::{Failure, Result, ensure};
use crate::options::Options;
use crate::process::{self, cargo, logged, output_of, program};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long the release build may take, and each other step.
const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);
const STEP_LIMIT: Duration = Duration::from_secs(5 * 60);
const LOG: &str = "package";
const UNIT: &str = "deploy/systemd/bezant@.service";

/// Builds the package, of a release build or of the binary that is named, and says where it is.
pub(crate) fn run(arguments: &[String]) -> Result {
    let options = Options::parse(arguments, &["--binary", "--out"])?;
    process::clear_log(LOG)?;
    let binary = match options.text("--binary") {
        Some(path) => PathBuf::from(path),
        None => {
            needs_dpkg()?;
            logged(LOG, BUILD_LIMIT, &mut cargo(&["build", "--release", "--locked", "--package", "bezant"]))?;
            process::target().join("release/bezant")
        }
    };
    let out = options.text("--out").map_or_else(|| process::target().join("package"), PathBuf::from);
    println!("{}", build(&binary, &out, &moment()?)?.display());
    Ok(())
}

fn needs_dpkg() -> Result {
    ensure(process::is_installed("dpkg-deb"), || "`dpkg-deb` is missing: it is a part of every Debian".to_owned())
}

/// The time that files get, in seconds since 1970.
fn moment() -> Result<String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    Ok(output_of(&mut program("git", &["log", "-1", "--format=%ct"]))?.trim().to_owned())
}

/// Makes the package of `binary` in the folder `out`.
fn build(binary: &Path, out: &Path, moment: &str) -> Result<PathBuf> {
    needs_dpkg()?;
    let root = out.join("root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    lay_out(binary, &root)?;
    let architecture = output_of(&mut program("dpkg", &["--print-architecture"]))?.trim().to_owned();
    let version = env!("CARGO_PKG_VERSION");
    write(&root.join("DEBIAN/control"), control(version, &architecture, &fs::read(binary)?, size(&root)?).as_bytes())?;
    for script in ["postinst", "prerm", "postrm"] {
        copy(&process::root().join("deploy/debian").join(script), &root.join("DEBIAN").join(script), 0o755)?;
    }
    open_folders(&root)?;
    let package = out.join(format!("bezant_{version}_{architecture}.deb"));
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "--threads-max=1", "-Zxz", "--build"]).arg(&root).arg(&package);
    logged(LOG, STEP_LIMIT, pack.env("SOURCE_DATE_EPOCH", moment))?;
    Ok(package)
}

/// Everything that is installed, where it will be.
fn lay_out(binary: &Path, root: &Path) -> Result {
    let source = process::root();
    copy(binary, &root.join("usr/bin/bezant"), 0o755)?;
    let unit = fs::read_to_string(source.join(UNIT))?;
    let (ours, packaged) = ("ExecStart=/usr/local/bin/bezant ", "ExecStart=/usr/bin/bezant ");
    ensure(unit.contains(ours), || format!("{UNIT} starts something else"))?;
    write(&root.join("usr/lib/systemd/system/bezant@.service"), unit.replace(ours, packaged).as_bytes())?;
    let completions = output_of(Command::new(binary).args(["completions", "bash"]))?;
    write(&root.join("usr/share/bash-completion/completions/bezant"), completions.as_bytes())?;
    let documents = root.join("usr/share/doc/bezant");
    let mut copyright = format!("The Bezant authors\nLicense: {}\n", env!("CARGO_PKG_LICENSE"));
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copyright += &format!("\n{license}\n\n{}", fs::read_to_string(source.join(license))?);
    }
    write(&documents.join("copyright"), copyright.as_bytes())?;
    for (from, to) in [
        ("CHANGELOG.md", "CHANGELOG.md"),
        ("deploy/prometheus/rules.yml", "examples/rules.yml"),
        ("deploy/grafana/bezant.json", "examples/bezant.json"),
    ] {
        copy(&source.join(from), &documents.join(to), 0o644)?;
    }
    for page in fs::read_dir(source.join("docs"))? {
        let page = page?.path();
        if let Some(name) = page.file_name().filter(|_| page.extension().is_some_and(|kind| kind == "md")) {
            copy(&page, &documents.join("docs").join(name), 0o644)?;
        }
    }
    Ok(())
}

fn control(version: &str, architecture: &str, binary: &[u8], kibibytes: u64) -> String {
    let libc = match newest_glibc(binary) {
        Some(minor) => format!("libc6 (>= 2.{minor}), "),
        None => String::new(),
    };
    format!(
        "Package: bezant\nVersion: {version}\nArchitecture: {architecture}\nSection: database\nPriority: optional\n\
         Maintainer: The Bezant authors <bezant@example.invalid>\nInstalled-Size: {kibibytes}\n\
         Depends: {libc}libgcc-s1, passwd\n\
         Description: Byzantine-fault-tolerant replication of SQL and of keys and values\n \
         Replicas, clients, gateways for PostgreSQL and Redis, and the tools of operators, in one program.\n"
    )
}

/// The newest version 2.x of the C library of which the program needs anything: their names stand in it.
fn newest_glibc(binary: &[u8]) -> Option<u32> {
    let minor = |name: &[u8]| -> Option<u32> {
        let version = std::str::from_utf8(name.strip_prefix(b"GLIBC_2.")?).ok()?;
        version.split('.').next()?.parse().ok()
    };
    binary.split(|byte| *byte == 0).filter_map(minor).max()
}

/// Kibibytes of all files in a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        sum += if kind.is_dir() { size(&entry.path())? } else { kind.len().div_ceil(1024) };
    }
    Ok(sum)
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result {
    let bytes = fs::read(from).map_err(|error| Failure::from(error).during(&from.display().to_string()))?;
    write(to, &bytes)?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

fn write(to: &Path, bytes: &[u8]) -> Result {
    fs::create_dir_all(to.parent().ok_or_else(|| Failure::new("a file has a folder"))?)?;
    fs::write(to, bytes)?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o644))?)
}

/// Lets all enter all folders, whatever the mask of whoever builds.
fn open_folders(folder: &Path) -> Result {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            open_folders(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_the_c_library_is_found() {
        assert_eq!(newest_glibc(b"x\0GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.2.5\0"), Some(34));
        assert_eq!(newest_glibc(b"GLIBC_2.\0GLIBC_PRIVATE"), None);
    }

    /// The program is a script: what counts here is everything else. Without Debian's tools there is nothing to see.
    #[test]
    fn equal_programs_make_equal_packages() {
        if !process::is_installed("dpkg-deb") {
            return;
        }
        let folder = std::env::temp_dir().join(format!("bezant-package-{}", std::process::id()));
        let binary = folder.join("program");
        copy(&process::root().join("deploy/debian/postrm"), &binary, 0o755).expect("a folder to write to");
        let packages = ["one", "two"].map(|out| {
            let package = build(&binary, &folder.join(out), "1700000000").expect("a package");
            std::thread::sleep(Duration::from_millis(1_100));
            package
        });
        let [one, two] = packages.each_ref().map(|package| fs::read(package).expect("its bytes"));
        assert!(one == two, "they differ");
        let list = output_of(Command::new("dpkg-deb").arg("--contents").arg(&packages[0])).expect("its contents");
        for (mode, path) in [
            ("-rwxr-xr-x root/root", "./usr/bin/bezant"),
            ("-rw-r--r-- root/root", "./usr/lib/systemd/system/bezant@.service"),
            ("-rw-r--r-- root/root", "./usr/share/doc/bezant/docs/operations.md"),
        ] {
            assert!(list.lines().any(|line| line.starts_with(mode) && line.ends_with(path)), "{path}:\n{list}");
        }
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
