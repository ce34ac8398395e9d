//! No file imports in a circle, and the core imports as its floors say.

use crate::files::Files;
use crate::finding::Finding;
use crate::{circles, floors, imports};

/// The package that has floors.
const CORE: &str = "crates/core";
/// Checks all packages.
pub(super) fn check(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in imports::packages(files).iter() {
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
    fn circles_are_found_in_every_package() {
        let files: Files = [
            ("x/Cargo.toml", "[package]\n"),
            ("x/src/lib.rs", "mod a;\nmod b;\n"),
            ("x/src/a.rs", "use crate::b::B;\npub struct A;\n"),
            ("x/src/b.rs", "use crate::a::A;\npub struct B;\n"),
        ]
        .into_iter()
        .map(|(path, text)| (path.to_string(), text.to_string()))
        .collect();
        let found: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
        let expected = "x/src/a.rs:1: 2 files import each other (x/src/a.rs, x/src/b.rs): x/src/a.rs takes `B` from \
            x/src/b.rs, x/src/b.rs takes `A` from x/src/a.rs";
        assert_eq!(found, [expected]);
    }
}
