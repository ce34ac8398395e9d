//! No file imports in a circle, and the core imports as its floors say.

use crate::files::Files;
use crate::finding::Finding;
use crate::{circles, floors, imports};

/// The package that has floors.
const CORE: &str = "crates/core";
/// Packages that are not held to this yet; `cargo xtask measure --all --circles` shows what they would break.
const NOT_YET: &[&str] = &["crates/node", "crates/sim"];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_in_every_package_that_is_held_to_it() {
        let package = |folder: &str| {
            [
                (format!("{folder}/Cargo.toml"), "[package]\n"),
                (format!("{folder}/src/lib.rs"), "mod a;\nmod b;\n"),
                (format!("{folder}/src/a.rs"), "use crate::b::B;\npub struct A;\n"),
                (format!("{folder}/src/b.rs"), "use crate::a::A;\npub struct B;\n"),
            ]
        };
        let files: Files = ["x", NOT_YET[0]]
            .iter()
            .flat_map(|folder| package(folder))
            .map(|(path, text)| (path, text.to_string()))
            .collect();
        let found: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
        let expected = "x/src/a.rs:1: 2 files import each other (x/src/a.rs, x/src/b.rs): x/src/a.rs takes `B` from \
            x/src/b.rs, x/src/b.rs takes `A` from x/src/a.rs";
        assert_eq!(found, [expected]);
    }
}
