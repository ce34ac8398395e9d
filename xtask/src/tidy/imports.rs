//! No file imports in a circle, and the core imports as its floors say.

use crate::files::Files;
use crate::finding::Finding;
use crate::{circles, floors, imports};

/// The package that has floors.
const CORE: &str = "crates/core";
/// Packages that are not held to this yet; `cargo xtask measure --all --circles` shows what they would break.
const NOT_YET: [&str; 3] = ["crates/core", "crates/node", "crates/sim"];

/// Checks all packages but those.
pub(super) fn check(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in imports::packages(files).iter().filter(|folder| !NOT_YET.contains(&folder.as_str())) {
        let imports = imports::of_package(files, folder);
        findings.extend(circles::check(&imports));
        if folder == CORE {
            findings.extend(floors::check(files, &imports));
        }
    }
    findings
}
