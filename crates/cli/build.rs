//! Names the commit that is built, so that two builds of one version can be told apart.
//!
//! | where | what `BEZANT_COMMIT` becomes |
//! |---|---|
//! | it is set while building | that, for those who build without git |
//! | a clone | the commit's hash, and `+` behind it if a file that is built differs from it |
//! | anywhere else | nothing: the program says that it does not know |
//!
//! Nothing else of the machine gets in: no path, no time, no name.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What is built, from the workspace's root.
const BUILT: [&str; 4] = [".cargo", "Cargo.lock", "Cargo.toml", "crates"];

fn main() {
    println!("cargo::rerun-if-env-changed=BEZANT_COMMIT");
    let commit = std::env::var("BEZANT_COMMIT").ok().or_else(of_clone).unwrap_or_default();
    assert!(commit.chars().all(|c| c.is_ascii_alphanumeric() || c == '+'), "BEZANT_COMMIT is no commit");
    println!("cargo::rustc-env=BEZANT_COMMIT={commit}");
}

/// The commit of the clone that this is.
fn of_clone() -> Option<String> {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let root = package.parent()?.parent()?;
    // Sources that somebody unpacked into a clone of something else are not that.
    if Path::new(&git(root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let commit = git(root, &["rev-parse", "HEAD"])?;
    // What moves with a commit, and what differs from it. What is not there would be looked for at every build.
    let moves = ["HEAD", "logs/HEAD", "packed-refs"].map(|name| git(root, &["rev-parse", "--git-path", name]));
    let moves = moves.into_iter().flatten().map(|path| root.join(path));
    for path in moves.chain(BUILT.map(|name| root.join(name))).filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let differs = git(root, &[&["status", "--porcelain", "--"][..], &BUILT].concat())?;
    Some(if differs.is_empty() { commit } else { format!("{commit}+") })
}

/// What git says in this folder; `None` without git.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
