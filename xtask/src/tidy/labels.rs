//! Labels such as `abs-S4` name a sentence of a page in `docs/papers`, and a bare letter and number names a step of a
//! module's first page.
//!
//! - A label is defined by the row of a table or the item of a list in `docs/papers` that begins with it, once.
//! - A label that is cited is defined. A label that is defined is cited outside of `docs/papers`, unless the heading
//!   above it says "not used".
//! - A bare one, such as `S2`, may stand in a comment only if it is a step of the file itself, of the first pages of
//!   its folder and of the folder above, or of a module, with its files, whose name in square brackets stands in a
//!   comment of the file. A step is defined by a line of a file's first comment that begins with it and a full stop,
//!   or by a row of a table there.
//! - What is in code spans and code blocks is not looked at.

use crate::files::Files;
use crate::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// Where labels are defined.
const PAGES: &str = "docs/papers/";
/// What the heading above labels that nothing cites says.
const UNUSED: &str = "not used";
/// What a mutant says of itself.
const RULE: &str = "rule = ";

/// A label's definition.
struct Definition<'a> {
    path: &'a str,
    line: usize,
    is_unused: bool,
}

/// Checks all files.
pub(super) fn check(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    let defined = definitions(files, &mut findings);
    let prefixes: BTreeSet<&str> = defined.keys().filter_map(|label| label.split_once('-')).map(|(of, _)| of).collect();
    let mut cited = BTreeSet::new();
    for (path, text) in files {
        let steps = steps_for(path, files);
        for (line, words) in looked_at(path, text) {
            for found in labels(&words) {
                match found.split_once('-') {
                    Some((prefix, _)) if !prefixes.contains(prefix) => {}
                    Some(_) if !defined.contains_key(found) => {
                        findings.push(Finding::new(path, line, format!("no page of {PAGES} defines {found}")));
                    }
                    Some(_) if !path.starts_with(PAGES) => _ = cited.insert(found.to_string()),
                    Some(_) => {}
                    None if steps.contains(found) || path.starts_with(PAGES) => {}
                    None => findings.push(Finding::new(path, line, unknown_step(found))),
                }
            }
        }
    }
    findings.extend(defined.iter().filter_map(|(label, Definition { path, line, is_unused })| {
        let what = match (cited.contains(label), is_unused) {
            (true, true) => format!("{label} is cited, and its heading says that it is {UNUSED}"),
            (false, false) => format!("nothing cites {label}: take it out, or say in its heading that it is {UNUSED}"),
            _ => return None,
        };
        Some(Finding::new(path, *line, what))
    }));
    findings
}

fn unknown_step(found: &str) -> String {
    format!("{found} is no step here: give it the prefix of its page in {PAGES}, or link the module whose step it is")
}

/// Every label that a page of a paper defines.
fn definitions<'a>(files: &'a Files, findings: &mut Vec<Finding>) -> BTreeMap<String, Definition<'a>> {
    let mut defined: BTreeMap<String, Definition<'_>> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with(PAGES)) {
        let mut is_unused = false;
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('#') {
                is_unused = line.contains(UNUSED);
            }
            let Some(label) = first_of(line).filter(|label| label.contains('-')) else { continue };
            let definition = Definition { path, line: index + 1, is_unused };
            if let Some(first) = defined.get(label) {
                let what = format!("{label} is defined in {}:{} already", first.path, first.line);
                findings.push(Finding::new(path, index + 1, what));
            } else {
                defined.insert(label.to_string(), definition);
            }
        }
    }
    defined
}

/// The label with which the row of a table, the item of a list or a paragraph begins.
fn first_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("| ").or_else(|| line.strip_prefix("* ")).or_else(|| line.strip_prefix("- "))?;
    let found = labels(rest).into_iter().next()?;
    rest.starts_with(found).then_some(found)
}

/// The lines of a file in which labels count, with code blanked out; lines count from 1.
fn looked_at<'a>(path: &'a str, text: &'a str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate();
    if path.ends_with(".md") {
        super::links::prose(text).collect()
    } else if path.ends_with(".rs") {
        // In code only those with a prefix are labels: the others are names.
        let code = |(index, line): (usize, &str)| {
            let of_code = &line[..comment_at(line).unwrap_or(line.len())];
            let cited: Vec<&str> = labels(of_code).into_iter().filter(|label| label.contains('-')).collect();
            (!cited.is_empty()).then(|| (index + 1, cited.join(" ")))
        };
        let comments = comments(text).map(|(line, words)| (line, without_spans(words)));
        comments.chain(lines.filter_map(code)).collect()
    } else if path.starts_with("crates/sim/mutants/") {
        lines.filter(|(_, line)| line.starts_with(RULE)).map(|(index, line)| (index + 1, line.to_string())).collect()
    } else if path.starts_with("spec/") {
        let comment = |(index, line): (usize, &str)| Some((index + 1, line.split_once("\\*")?.1.to_string()));
        lines.filter_map(comment).collect()
    } else if path.starts_with("crates/") && path.ends_with(".txt") {
        lines.filter_map(|(index, line)| Some((index + 1, line.split_once('#')?.1.to_string()))).collect()
    } else {
        Vec::new()
    }
}

/// What follows `//` on each line of Rust source; lines count from 1.
fn comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let comment = &line[comment_at(line)?..];
        Some((index + 1, comment.trim_start_matches(['/', '!'])))
    })
}

/// Where a line's comment begins.
fn comment_at(line: &str) -> Option<usize> {
    // Inside of a string the marks of strings before it do not pair off.
    let is_code = |at: usize| line[..at].matches('"').count() % 2 == 1 || line[..at].ends_with(':');
    line.match_indices("//").map(|(at, _)| at).find(|at| !is_code(*at))
}

fn without_spans(text: &str) -> String {
    let spans = text.split('`').enumerate();
    spans.map(|(odd, part)| if odd % 2 == 0 { part } else { "code" }).collect()
}

/// Labels with and without a prefix: a capital letter and a number from 1 to 99.
fn labels(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '\'' | '/');
    let mut found = Vec::new();
    for word in text.split(|c: char| !is_part(c)) {
        let word = word.trim_end_matches(['.', ':', '\'', '-', '/']);
        let (prefix, bare) = word.rsplit_once('-').unwrap_or(("", word));
        let (letter, number) = bare.split_at(bare.chars().next().map_or(0, char::len_utf8));
        let is_bare = letter.chars().all(|c| c.is_ascii_uppercase())
            && matches!(number.len(), 1 | 2)
            && !number.starts_with('0')
            && number.bytes().all(|digit| digit.is_ascii_digit());
        if !letter.is_empty() && is_bare && prefix.chars().all(|c| c.is_ascii_lowercase()) {
            found.push(word);
        }
    }
    found
}

/// The steps that the comments of a file may name.
fn steps_for(path: &str, files: &Files) -> BTreeSet<String> {
    let Some(text) = files.get(path).filter(|_| path.ends_with(".rs")) else { return BTreeSet::new() };
    let mut pages = vec![path.to_string()];
    let mut folder = path;
    for _ in 0..2 {
        let Some((above, _)) = folder.rsplit_once('/') else { break };
        folder = above;
        pages.extend([format!("{folder}/mod.rs"), format!("{folder}.rs")]);
    }
    let modules: BTreeSet<String> = comments(text).flat_map(|(_, comment)| linked(path, comment)).collect();
    let of_a_link = files.keys().filter(|file| {
        let behind = modules.iter().filter_map(|module| file.strip_prefix(module.as_str()));
        behind.into_iter().any(|rest| rest == ".rs" || rest.starts_with('/'))
    });
    pages.extend(of_a_link.cloned());
    let texts = pages.iter().filter_map(|page| files.get(page));
    texts.flat_map(|text| text.lines().filter_map(|line| step(line.strip_prefix("//!")?))).collect()
}

/// The step that a line of a first page defines, if it does.
fn step(comment: &str) -> Option<String> {
    let rest = comment.trim_start().trim_start_matches(['*', '|', '-']).trim_start();
    let found = labels(rest.split_whitespace().next()?).into_iter().next()?;
    let behind = rest.strip_prefix(found)?;
    (behind.starts_with(". ") || behind.starts_with(" |")).then(|| found.to_string())
}

/// The modules to which a comment links, as `[crate::a::b]` in back quotes: their paths without the ending.
fn linked(path: &str, comment: &str) -> Vec<String> {
    let Some((root, _)) = path.split_once("/src/").or_else(|| path.split_once("/tests/")) else { return Vec::new() };
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let names = comment.split(|c: char| !is_name(c)).filter(|name| name.contains("::"));
    let modules = names.filter_map(|name| {
        let (first, rest) = name.trim_matches(':').split_once("::")?;
        let module = rest.replace("::", "/");
        match first {
            "crate" => Some(format!("{root}/src/{module}")),
            "super" => Some(format!("{folder}/{module}")),
            other => Some(format!("crates/{}/src/{module}", other.strip_prefix("bezant_")?)),
        }
    });
    modules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(texts: &[(&str, &str)]) -> Vec<(String, usize)> {
        let page = ("docs/papers/a.md", "# A\n\n| ab-S4 | x |\n\n## Flaws (not used)\n\n- ab-F1: y\n");
        let cite = ("z.rs", "//! ab-S4\n");
        let all = texts.iter().chain([&page, &cite]);
        let files = all.map(|(path, text)| ((*path).to_string(), (*text).to_string())).collect();
        check(&files).into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    fn at(path: &str, line: usize) -> Vec<(String, usize)> {
        vec![(path.to_string(), line)]
    }

    #[test]
    fn a_label_has_a_letter_and_a_number() {
        assert_eq!(labels("ab-S4, (D1) and F21: K5."), ["ab-S4", "D1", "F21", "K5"]);
        assert!(labels("L0 r2 IPv6 X25519 R0.example a::S2 S2_x x-86-A S123 ŌF1").is_empty());
    }

    #[test]
    fn what_is_cited_is_defined() {
        assert_eq!(complaints(&[]), []);
        assert_eq!(complaints(&[("a.rs", "// fine\nlet a = 1; // ab-S5\n")]), at("a.rs", 2));
        assert_eq!(complaints(&[("docs/a.md", "ab-S4 `ab-S5`\n\nab-S6\n")]), at("docs/a.md", 3));
        assert_eq!(complaints(&[("spec/a.cfg", "\\* ab-S4\nS1 = 2 \\* ab-S5\n")]), at("spec/a.cfg", 2));
        let mutant = "rule = \"ab-S7: x\"\nfind = \"ab-S8\"\n";
        assert_eq!(complaints(&[("crates/sim/mutants/a.toml", mutant)]), at("crates/sim/mutants/a.toml", 1));
        assert_eq!(complaints(&[("a.rs", "let s = \"S5 and ab-S5\";\n")]), at("a.rs", 1));
        // Somebody else's.
        assert_eq!(complaints(&[("a.rs", "// utf-8 and x-A1\n")]), []);
    }

    #[test]
    fn what_is_defined_is_defined_once_and_cited() {
        let twice = ("docs/papers/b.md", "| ab-S4 | x |\n| ab-S9 | x |\n");
        let found = complaints(&[twice]);
        assert_eq!(found, [at("docs/papers/b.md", 1), at("docs/papers/b.md", 2)].concat());
        let cited = complaints(&[("a.rs", "// ab-F1\n")]);
        assert_eq!(cited, at("docs/papers/a.md", 7), "it is said not to be used");
    }

    #[test]
    fn a_bare_one_is_a_step() {
        let first = ("crates/a/src/b/mod.rs", "//! * S1. Do.\n//! | S2 | do |\n");
        let known = "//! S1.\n/// S2. Does.\nlet s = \"S9\"; // S1 and `S7`\n";
        assert_eq!(complaints(&[first, ("crates/a/src/b/c.rs", known)]), []);
        assert_eq!(complaints(&[first, ("crates/a/src/b/d/e.rs", known)]), []);
        assert_eq!(complaints(&[first, ("crates/a/src/c.rs", "//! x\n//! (S1)\n")]), at("crates/a/src/c.rs", 2));
        assert_eq!(
            complaints(&[("crates/a/src/c.rs", "/// S1. Not on the first page.\n")]),
            at("crates/a/src/c.rs", 1)
        );
        let links = "//! S1 of [`crate::b`].\n";
        assert_eq!(complaints(&[first, ("crates/a/src/c.rs", links)]), []);
        assert_eq!(complaints(&[first, ("crates/x/src/c.rs", "//! S2 of [`bezant_a::b`]\n")]), []);
        assert_eq!(complaints(&[("docs/a.md", "S1\n")]), at("docs/a.md", 1));
    }
}
