//! Every Rust file says what it is for and is part of some crate, and every dependency has its reasons.

use crate::files::Files;
use crate::finding::Finding;
use crate::source;
use std::collections::BTreeSet;

/// Checks all Rust files.
pub(super) fn check(files: &Files) -> Vec<Finding> {
    let sources = || files.iter().filter(|(path, _)| path.ends_with(".rs"));
    let reached = reachable(files);
    let silent = sources()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| Finding::new(path, 1, "begin the file with `//!` and what it is for"));
    let orphans = sources()
        .filter(|(path, _)| !reached.contains(path.as_str()))
        .map(|(path, _)| Finding::new(path, 1, "no crate contains this file: add its `mod` or delete it"));
    silent.chain(orphans).chain(unexplained(files)).collect()
}

/// Dependencies of the workspace that no page of the decisions names.
fn unexplained(files: &Files) -> Vec<Finding> {
    let pages = files.iter().filter(|(path, _)| path.starts_with("docs/decisions/"));
    let pages: String = pages.map(|(_, text)| text.as_str()).collect();
    let manifest = files.get("Cargo.toml").map_or("", String::as_str);
    let lines = manifest.lines().enumerate().skip_while(|(_, line)| *line != "[workspace.dependencies]").skip(1);
    lines
        .take_while(|(_, line)| !line.starts_with('['))
        .filter_map(|(index, line)| Some((index, line.split_once(" = ")?.0)))
        .filter(|(_, name)| !name.starts_with("bezant") && !pages.contains(&format!("`{name}`")))
        .map(|(index, name)| Finding::new("Cargo.toml", index + 1, format!("no page of docs/decisions names `{name}`")))
        .collect()
}

/// Whether cargo finds this file by itself.
fn is_root(path: &str, files: &Files) -> bool {
    let Some((folder, name)) = path.rsplit_once('/') else { return false };
    let has_manifest = |folder: &str| files.contains_key(&format!("{folder}/Cargo.toml"));
    let Some((package, kind)) = folder.rsplit_once('/') else { return has_manifest(folder) && name == "build.rs" };
    match kind {
        "src" => has_manifest(package) && matches!(name, "lib.rs" | "main.rs"),
        "tests" | "benches" | "examples" | "fuzz_targets" => has_manifest(package),
        "bin" => package.strip_suffix("/src").is_some_and(has_manifest),
        _ => has_manifest(folder) && name == "build.rs",
    }
}

fn reachable(files: &Files) -> BTreeSet<&str> {
    let mut open: Vec<&str> = files.keys().map(String::as_str).filter(|path| is_root(path, files)).collect();
    let mut reached = BTreeSet::new();
    while let Some(path) = open.pop() {
        if reached.insert(path) {
            let children = children(path, &files[path], is_root(path, files));
            open.extend(children.iter().filter_map(|child| files.get_key_value(child)).map(|(key, _)| key.as_str()));
        }
    }
    reached
}

/// Where the modules that a file declares may be.
fn children(path: &str, text: &str, root: bool) -> Vec<String> {
    let masked = source::masked(text);
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.trim_end_matches(".rs");
    let base = if root || stem == "mod" { folder.to_string() } else { format!("{folder}/{stem}") };
    let mut found = Vec::new();
    for (at, _) in source::words(&masked).filter(|(_, word)| *word == "mod") {
        let Some((_, module)) = source::words(&masked[at + 3..]).next() else { continue };
        found.push(format!("{base}/{module}.rs"));
        found.push(format!("{base}/{module}/mod.rs"));
        // `#[path = "…"]` stands on the line before.
        let before = text.lines().nth(source::line_of(&masked, at).saturating_sub(2)).unwrap_or_default();
        if let Some(named) = before.trim().strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            found.push(format!("{folder}/{named}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(sources: &[(&str, &str)]) -> Files {
        let manifest = ("a/Cargo.toml", "");
        sources.iter().chain([&manifest]).map(|(path, text)| ((*path).into(), (*text).into())).collect()
    }

    #[test]
    fn files_without_docs_are_found() {
        let files = project(&[("a/src/lib.rs", "fn f() {}\n")]);
        assert_eq!(check(&files), [Finding::new("a/src/lib.rs", 1, "begin the file with `//!` and what it is for")]);
    }

    #[test]
    fn dependencies_without_reasons_are_found() {
        let manifest = "[workspace.dependencies]\nbytes = \"1\"\nbezant-core = {}\n\nmio = \"1\"\n[profile]\na = 1\n";
        let files = Files::from([
            ("Cargo.toml".to_string(), manifest.to_string()),
            ("docs/decisions/1.md".to_string(), "`mio`, not bytes\n".to_string()),
        ]);
        assert_eq!(check(&files), [Finding::new("Cargo.toml", 2, "no page of docs/decisions names `bytes`")]);
    }

    #[test]
    fn orphans_are_found() {
        let files = project(&[
            ("a/src/lib.rs", "//! A.\nmod b;\nmod c;\n// mod e;\n"),
            ("a/src/b.rs", "//! B.\npub(crate) mod d;\n"),
            ("a/src/b/d.rs", "//! D.\n"),
            ("a/src/c/mod.rs", "//! C.\n#[cfg(test)]\n#[path = \"x_test.rs\"]\nmod tests;\n"),
            ("a/src/c/x_test.rs", "//! Tests.\n"),
            ("a/src/e.rs", "//! Nobody knows me.\n"),
            ("a/tests/t.rs", "//! T.\n"),
        ]);
        let found = check(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "a/src/e.rs");
    }
}
