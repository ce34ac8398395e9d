//! A command that a document tells the reader to type exists, with the flags that it is given there.

use crate::chores::CHORES;
use crate::failure::Result;
use crate::files::Files;
use crate::finding::Finding;
use crate::process;
use std::collections::BTreeMap;
use std::path::Path;

/// A command found in a document.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    line: usize,
    words: Vec<String>,
}

/// How a command of our binary begins, from a build or installed.
const BINARY: [&str; 2] = ["cargo run --release -- ", "bezant "];
/// How a chore begins.
const CHORE: [&str; 1] = ["cargo xtask "];

/// Checks that every `cargo xtask …` in a document is a chore.
pub(super) fn check_chores(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in documents(files) {
        for Found { line, words } in commands(text, &CHORE) {
            if !CHORES.iter().any(|chore| chore.name == words[0]) {
                findings.push(Finding::new(path, line, format!("there is no `cargo xtask {}`", words[0])));
            }
        }
    }
    findings
}

/// Checks that every `bezant …` in a document is a sub-command, and that its help knows the flags.
pub(crate) fn check_binary(files: &Files, binary: &Path) -> Result<Vec<Finding>> {
    let mut help = Help { binary, pages: BTreeMap::new() };
    let mut findings = Vec::new();
    for (path, text) in documents(files) {
        for Found { line, words } in commands(text, &BINARY) {
            if let Some(what) = help.unknown(&words)? {
                findings.push(Finding::new(path, line, what));
            }
        }
    }
    Ok(findings)
}

fn documents(files: &Files) -> impl Iterator<Item = (&String, &String)> {
    // A decision may speak of what was rejected, the changelog of what is gone.
    let present = |path: &str| !path.starts_with("docs/decisions/") && path != "CHANGELOG.md";
    files.iter().filter(move |(path, _)| path.ends_with(".md") && present(path))
}

/// Commands that begin with one of `prefixes`, in code blocks and code spans, without that prefix.
fn commands(text: &str, prefixes: &[&str]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let code: Vec<&str> = if fenced { vec![line] } else { line.split('`').skip(1).step_by(2).collect() };
        for command in code.iter().flat_map(|code| code.split(['|', ';', '#', '&'])) {
            let command = command.trim().trim_start_matches("$ ");
            let Some(rest) = prefixes.iter().find_map(|prefix| command.strip_prefix(prefix)) else { continue };
            let words: Vec<String> = rest.split_whitespace().map(String::from).collect();
            let named = |word: &String| word.starts_with(|c: char| c.is_ascii_lowercase());
            if words.first().is_some_and(named) {
                found.push(Found { line: index + 1, words });
            }
        }
    }
    found
}

/// The help pages of the binary, each asked for once.
struct Help<'a> {
    binary: &'a Path,
    pages: BTreeMap<Vec<String>, Option<String>>,
}

impl Help<'_> {
    /// The page for these sub-commands; `None` if there is no such sub-command.
    fn page(&mut self, path: &[String]) -> Option<&str> {
        let binary = self.binary;
        let ask = || {
            let mut command = process::program(&binary.to_string_lossy(), &[]);
            process::output_of(command.args(path).arg("--help")).ok()
        };
        self.pages.entry(path.to_vec()).or_insert_with(ask).as_deref()
    }

    fn unknown(&mut self, words: &[String]) -> Result<Option<String>> {
        let Some(page) = self.page(&words[..1]) else {
            return Ok(Some(format!("there is no `bezant {}`", words[0])));
        };
        let mut known = page.to_string();
        let second = words.get(1).filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
        if second.is_some() {
            known += self.page(&words[..2]).unwrap_or_default();
        }
        let flags = words.iter().filter(|word| word.starts_with("--"));
        let mut names = flags.map(|flag| flag.trim_start_matches('[').split(['=', ']', ',']).next().unwrap_or(flag));
        let strange = names.find(|name| !mentions(&known, name));
        Ok(strange.map(|name| format!("`bezant {}` has no `{name}`", words[0])))
    }
}

fn mentions(page: &str, flag: &str) -> bool {
    page.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_code() {
        let text = "`bezant sim --f 1` bezant x\n\
            ```sh\n$ bezant kv get a && bezant --help\ncargo run --release -- demo\n```\n";
        let found = commands(text, &BINARY);
        let lines: Vec<_> = found.iter().map(|found| (found.line, found.words.join(" "))).collect();
        let expected = [(1, "sim --f 1"), (3, "kv get a"), (4, "demo")];
        assert_eq!(lines, expected.map(|(line, words)| (line, words.to_string())));
    }

    #[test]
    fn chores_that_do_not_exist_are_found() {
        let text = "`cargo xtask verify` and `cargo xtask fly`\n";
        let files = Files::from([("README.md".to_string(), text.to_string())]);
        assert_eq!(check_chores(&files), [Finding::new("README.md", 1, "there is no `cargo xtask fly`")]);
    }

    #[test]
    fn flags_are_compared_as_whole_words() {
        assert!(mentions("  --seed <N>  one\n  --seeds <A..B>", "--seed"));
        assert!(!mentions("  --seeds <A..B>", "--seed"));
    }
}
