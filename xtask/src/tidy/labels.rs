//! Labels such as `abs-S4` name a sentence of a page in `docs/papers`, and such as `PBFT 4` a step of a protocol.
//!
//! - A label is defined by the row of a table or the item of a list in `docs/papers` that begins with it, once.
//! - A label that is cited is defined. A label that is defined is cited outside of `docs/papers`, unless the heading
//!   above it says "not used".
//! - A step is defined by a row of a table, or an item of a list, in the first comment of a file of the core, once.
//!   Its first word is its room. A step of a room is cited by both; "PBFT 5, 6 and 7" cites three.
//! - A letter and a number alone, such as `S2`, are no label, and in the core no "step 2" is.
//! - What is in code spans and code blocks is not looked at.

use crate::files::Files;
use crate::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// Where labels are defined.
const PAGES: &str = "docs/papers/";
/// Where steps are.
const CORE: &str = "crates/core/src/";
/// What stands between two steps that are cited together.
const BETWEEN: [&str; 4] = [", ", " and ", " to ", " or "];
/// What the heading above labels that nothing cites says.
const UNUSED: &str = "not used";
/// What a mutant says of itself.
const RULE: &str = "rule = ";

/// The numbers of each room's steps.
type Steps<'a> = BTreeMap<&'a str, BTreeSet<u8>>;

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
    let steps = steps(files, &mut findings);
    let prefixes: BTreeSet<&str> = defined.keys().filter_map(|label| label.split_once('-')).map(|(of, _)| of).collect();
    let mut cited = BTreeSet::new();
    for (path, text) in files {
        for (line, words) in looked_at(path, text) {
            for found in labels(&words) {
                match found.split_once('-') {
                    Some((prefix, _)) if !prefixes.contains(prefix) => {}
                    Some(_) if !defined.contains_key(found) => {
                        findings.push(Finding::new(path, line, format!("no page of {PAGES} defines {found}")));
                    }
                    Some(_) if !path.starts_with(PAGES) => _ = cited.insert(found.to_string()),
                    None if !path.starts_with(PAGES) => findings.push(Finding::new(path, line, bare(found))),
                    _ => {}
                }
            }
            let unknown = steps_in(&words, &steps).into_iter().filter(|(room, number)| !steps[*room].contains(number));
            findings.extend(unknown.map(|(room, number)| {
                Finding::new(path, line, format!("no page of the core has a step {room} {number}"))
            }));
            if path.starts_with(CORE) && has_step_of_no_room(&words) {
                findings.push(Finding::new(path, line, "a step is cited with its room: `PBFT 4`"));
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

fn bare(found: &str) -> String {
    format!("{found} is no label: give it the prefix of its page in {PAGES}, or cite a step by its room, as `PBFT 4`")
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
        // In code only those with a prefix are labels: the others are names. Handlers say their steps as strings.
        let code = |(index, line): (usize, &str)| {
            let of_code = &line[..comment_at(line).unwrap_or(line.len())];
            let strings = of_code.split('"').skip(1).step_by(2);
            let said =
                strings.filter(|string| string.split_once(' ').and_then(|(_, rest)| leading_number(rest)).is_some());
            let cited = labels(of_code).into_iter().filter(|label| label.contains('-')).chain(said);
            let cited: Vec<&str> = cited.collect();
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

/// The steps of each room, which the first comments of the core's files define.
fn steps<'a>(files: &'a Files, findings: &mut Vec<Finding>) -> Steps<'a> {
    let mut steps = Steps::new();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with(CORE)) {
        for (index, line) in text.lines().enumerate() {
            let Some((room, number)) = line.strip_prefix("//!").and_then(step) else { continue };
            if !steps.entry(room).or_default().insert(number) {
                findings.push(Finding::new(path, index + 1, format!("there is a step {room} {number} already")));
            }
        }
    }
    steps
}

/// The step that a line of a first page defines, if it does.
pub(super) fn step(comment: &str) -> Option<(&str, u8)> {
    let rest = comment.strip_prefix(" * ").or_else(|| comment.strip_prefix(" | "))?;
    let (room, rest) = rest.split_once(' ')?;
    let (number, rest) = leading_number(rest)?;
    let is_name = room.starts_with(|c: char| c.is_ascii_uppercase()) && room.chars().all(|c| c.is_ascii_alphabetic());
    (is_name && (rest.starts_with(". ") || rest.starts_with(" |"))).then_some((room, number))
}

/// The steps that a text cites.
fn steps_in<'a>(text: &str, steps: &Steps<'a>) -> Vec<(&'a str, u8)> {
    let mut found = Vec::new();
    for room in steps.keys() {
        for (at, _) in text.match_indices(room).filter(|(at, _)| !text[..*at].ends_with(char::is_alphanumeric)) {
            let mut rest = text[at + room.len()..].strip_prefix(' ');
            while let Some((number, behind)) = rest.and_then(leading_number) {
                found.push((*room, number));
                rest = BETWEEN.iter().find_map(|between| behind.strip_prefix(between));
            }
        }
    }
    found
}

/// Whether a text cites a step, but by its number alone.
fn has_step_of_no_room(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).any(|pair| {
        matches!(pair[0].trim_start_matches('('), "step" | "Step" | "steps" | "Steps")
            && leading_number(pair[1]).is_some()
    })
}

/// A number from 1 to 99 that is a word by itself and counts nothing, and what follows.
fn leading_number(text: &str) -> Option<(u8, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = (text[..digits].parse().ok()?, &text[digits..]);
    let is_figure = rest.starts_with(['/', '%'])
        || rest.starts_with(" %")
        || rest.starts_with(char::is_alphanumeric)
        || rest.starts_with(['.', ',']) && rest[1..].starts_with(|c: char| c.is_ascii_digit());
    ((1..100).contains(&number) && !is_figure).then_some((number, rest))
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
    fn a_step_has_a_room() {
        let first = ("crates/core/src/b/mod.rs", "//! * Pot 1. Do.\n//! | Pot 2 | do |\n");
        let known =
            "//! (Pot 1)\n/// Pot 1 and 2. Does, 4 times.\nlet s = \"S9\"; // Pot 2: `Pot 7`\ns.step(\"Pot 2\");\n";
        assert_eq!(complaints(&[first, ("crates/core/src/c.rs", known)]), []);
        assert_eq!(complaints(&[first, ("docs/a.md", "Pot 1 to 2, Pot 5 %, a Pot 4/0, Pot 7.5, Teapot 3\n")]), []);
        let path = "crates/core/src/c.rs";
        for wrong in ["Pot 3", "see Pot 1 and 3.", "(Pot 12)", "S1", "Step 2.", "see steps 1 to 2", "ab-S4: step 1"] {
            assert_eq!(complaints(&[first, (path, &format!("fn a() {{}}\n/// {wrong}\n"))]), at(path, 2), "{wrong}");
        }
        assert_eq!(complaints(&[first, (path, "a();\ns.step(\"Pot 3\");\n")]), at(path, 2));
        assert_eq!(complaints(&[first, (path, "//! * Pot 2. Again.\n")]), at(path, 1));
        assert_eq!(complaints(&[first, ("docs/a.md", "S1 in step 1\n")]), at("docs/a.md", 1));
    }
}
