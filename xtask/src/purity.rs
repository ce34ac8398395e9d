//! The purity of the core: what a machine does depends on its inputs alone.
//!
//! `#![no_std]` already denies the core sockets, clocks, threads and files. What is left to check is that the
//! attributes are there, that no forbidden name stands in the sources, and that no dependency brings in what we left
//! out.

use crate::failure::{Result, ensure};
use crate::files::{self, Files};
use crate::finding::{self, Finding};
use crate::{process, source};
use std::collections::BTreeSet;
use std::time::Duration;

const CORE: &str = "crates/core/src/";

/// Attributes that the crate must carry.
const ATTRIBUTES: [&str; 2] = ["#![no_std]", "#![forbid(unsafe_code)]"];

/// Words that must not stand in the core outside of tests, and why.
const FORBIDDEN: [(&str, &str); 10] = [
    ("std", "the core uses core and alloc only"),
    ("HashMap", "its order differs between runs: use BTreeMap"),
    ("HashSet", "its order differs between runs: use BTreeSet"),
    ("SystemTime", "the host hands the time in as `now`"),
    ("thread", "a machine is driven from outside and starts nothing"),
    ("thread_local", "state belongs to the machine"),
    ("async", "a step ends before it returns: use an effect and a later input"),
    ("await", "a step ends before it returns: use an effect and a later input"),
    ("f32", "rounding differs between machines: use integers"),
    ("f64", "rounding differs between machines: use integers"),
];

/// Everything that the core may depend on, directly or not. Each was looked at; a new name is a decision.
const DEPENDENCIES: [&str; 19] = [
    "arrayvec",
    "bezant-core",
    "blake3",
    "block-buffer",
    "bytes",
    "cfg-if",
    "constant_time_eq",
    "cpufeatures",
    "crypto-common",
    "curve25519-dalek",
    "digest",
    "ed25519",
    "ed25519-dalek",
    "hybrid-array",
    "sha2",
    "signature",
    "subtle",
    "typenum",
    "zeroize",
];

/// A number from a peer that overflows must not become another number where users run it.
const CHECKED_IN_RELEASE: &str = "\n[profile.release.package.bezant-core]\noverflow-checks = true\n";

/// Checks sources, the release profile and dependencies.
pub(crate) fn check() -> Result<String> {
    let files = files::read()?;
    finding::report(check_sources(&files))?;
    finding::report(check_profile(&files))?;
    let tree = ["tree", "-p", "bezant-core", "--no-default-features", "-e", "normal,no-proc-macro"];
    let format = ["--prefix", "none", "--format", "{lib}|{p}|{f}", "--locked"];
    let listing = process::output_of(&mut process::cargo(&[&tree[..], &format].concat()))?;
    let complaints = check_tree(&listing);
    ensure(complaints.is_empty(), || complaints.join("; "))?;
    // On its own: in the workspace others switch on features that it might come to need unnoticed.
    let alone = ["check", "-p", "bezant-core", "--lib", "--no-default-features", "--locked"];
    process::logged("purity", Duration::from_secs(600), &mut process::cargo(&alone))?;
    let names: BTreeSet<&str> = listing.lines().filter_map(|line| line.split('|').next()).collect();
    Ok(format!("{} crates, none with std", names.len()))
}

fn check_sources(files: &Files) -> Vec<Finding> {
    let lib = format!("{CORE}lib.rs");
    let text = files.get(&lib).map_or("", String::as_str);
    let masked = source::masked(text);
    let missing = ATTRIBUTES.iter().filter(|attribute| !masked.contains(**attribute));
    let mut findings: Vec<Finding> =
        missing.map(|attribute| Finding::new(&lib, 1, format!("`{attribute}` is missing"))).collect();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with(CORE) && path.ends_with(".rs")) {
        if !source::is_test(path) {
            findings.extend(check_source(path, text));
        }
    }
    findings
}

fn check_profile(files: &Files) -> Vec<Finding> {
    let manifest = files.get("Cargo.toml").map_or("", String::as_str);
    let message = "arithmetic of bezant-core must be checked in release builds: overflow-checks = true".to_owned();
    let missing = !manifest.contains(CHECKED_IN_RELEASE);
    missing.then(|| Finding::new("Cargo.toml", 1, message)).into_iter().collect()
}

fn check_source(path: &str, text: &str) -> Vec<Finding> {
    let code = source::without_tests(&source::masked(text));
    let mut findings = Vec::new();
    for (at, word) in source::words(&code) {
        let reason = FORBIDDEN.iter().find(|(forbidden, _)| *forbidden == word).map(|(_, reason)| *reason);
        if let Some(reason) = reason {
            findings.push(Finding::new(path, source::line_of(&code, at), format!("`{word}`: {reason}")));
        }
    }
    for (at, _) in code.match_indices("Instant::now") {
        let line = source::line_of(&code, at);
        findings.push(Finding::new(path, line, "`Instant::now`: the host hands the time in as `now`"));
    }
    findings
}

/// Lines of `library|package version|features`.
fn check_tree(listing: &str) -> Vec<String> {
    let lines: BTreeSet<&str> = listing.lines().collect();
    let mut complaints = Vec::new();
    for line in lines {
        let mut fields = line.split('|').skip(1);
        let package = fields.next().unwrap_or_default().split(' ').next().unwrap_or_default();
        let features = fields.next().unwrap_or_default().split([',', ' ']);
        if !DEPENDENCIES.contains(&package) {
            complaints
                .push(format!("`{package}` is not among the dependencies of the core that xtask/src/purity.rs lists"));
        }
        if features.into_iter().any(|feature| feature == "std") {
            complaints.push(format!("`{package}` is built with its feature `std`"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_words_are_found_in_code_only() {
        let text = "//! Not std.\nuse std::fmt; // f64\nfn f() { \"HashMap\"; x.await; Instant::now(); }\n\
            #[cfg(test)]\nmod tests {\n    use std::thread;\n}\n";
        let lines: Vec<String> = check_source("a.rs", text).iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
    }

    #[test]
    fn missing_attributes_are_found() {
        let files = Files::from([(format!("{CORE}lib.rs"), "//! #![no_std]\n#![forbid(unsafe_code)]\n".to_string())]);
        assert_eq!(check_sources(&files).len(), 1);
    }

    #[test]
    fn a_release_profile_without_checks_is_found() {
        let manifest = |text: &str| Files::from([("Cargo.toml".to_string(), text.to_string())]);
        assert!(check_profile(&manifest(&format!("[profile.release]{CHECKED_IN_RELEASE}"))).is_empty());
        assert_eq!(check_profile(&manifest("[profile.release]\noverflow-checks = false\n")).len(), 1);
    }

    #[test]
    fn new_dependencies_and_std_are_found() {
        assert!(check_tree("bezant_core|bezant-core v0.1.0|\nsubtle|subtle v2.6.1|i128\n").is_empty());
        assert_eq!(check_tree("tokio|tokio v1.0.0|\nblake3|blake3 v1.8.7|default,std\n").len(), 2);
    }
}
