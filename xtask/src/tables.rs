//! `cargo xtask tables`: tables of documents that say what the sources know.
//!
//! A comment such as `<!-- table: gate -->` stands above each. The sources say which rows there are; what a row says
//! beside its first cell is written by hand and stays. Only [`lines`] says more: there the second cell is counted.

use crate::failure::{Failure, Result};
use crate::files::{self, Files};
use crate::finding::Finding;
use crate::{process, source};
use std::collections::BTreeSet;

/// How the comment above a table begins.
const MARK: &str = "<!-- table: ";
/// The command that makes tables right.
const WRITE: &str = "cargo xtask tables --write";
/// What the table of crates has besides the packages of the workspace.
const OTHER_FOLDERS: [&str; 2] = ["spec", "fuzz"];
/// Lines change with every commit: as many are one in the tables.
const ROUNDED_TO: usize = 100;

/// The cells of a row, without the blanks around them.
type Row = Vec<String>;

/// A kind of table: its name, and what its rows should be, given what they are.
struct Kind {
    name: &'static str,
    rows: fn(&Files, Vec<Row>) -> Vec<Row>,
}

const KINDS: [Kind; 12] = [
    Kind { name: "adversaries", rows: |files, rows| keyed(rows, &adversaries(files), span) },
    Kind { name: "commands", rows: |files, rows| keyed(rows, &commands(files), second_word) },
    Kind { name: "crates", rows: |files, rows| keyed(rows, &crates(files), span) },
    Kind { name: "gate", rows: |files, rows| keyed(rows, &gate(files), span) },
    Kind { name: "lines", rows: |files, rows| rows.into_iter().map(|row| lines(files, row)).collect() },
    Kind { name: "CookieMessage", rows: |files, rows| tagged(rows, files, "CookieMessage") },
    Kind { name: "Message", rows: |files, rows| tagged(rows, files, "Message") },
    Kind { name: "PaceMessage", rows: |files, rows| tagged(rows, files, "PaceMessage") },
    Kind { name: "PbftMessage", rows: |files, rows| tagged(rows, files, "PbftMessage") },
    Kind { name: "ResilientMessage", rows: |files, rows| tagged(rows, files, "ResilientMessage") },
    Kind { name: "RitasMessage", rows: |files, rows| tagged(rows, files, "RitasMessage") },
    Kind { name: "SwitchMessage", rows: |files, rows| tagged(rows, files, "SwitchMessage") },
];

/// `cargo xtask tables`.
pub(crate) fn run(arguments: &[String]) -> Result {
    let files = files::read()?;
    match arguments {
        [] => crate::finding::report(check(&files)),
        [write] if write == "--write" => {
            for (path, text) in pages(&files) {
                let right = rewritten(&files, text);
                if right != *text {
                    std::fs::write(process::root().join(path), right)?;
                    println!("{path}");
                }
            }
            Ok(())
        }
        _ => Err(Failure::new(format!("`{WRITE}`, or without `--write` to check them"))),
    }
}

/// Checks every table: it has the rows that it should have, and each says something.
pub(crate) fn check(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut missing: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
    for (path, text) in pages(files) {
        for (index, line) in text.lines().enumerate() {
            let Some(name) = name(line) else { continue };
            let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
                findings.push(Finding::new(path, index + 1, format!("no kind of table is called `{name}`")));
                continue;
            };
            missing.remove(name);
            let rows = rows_below(text, index);
            if rows.iter().any(|row| row.get(1).is_some_and(String::is_empty)) {
                findings.push(Finding::new(path, index + 1, "a row of this table says nothing"));
            }
            if (kind.rows)(files, rows.clone()) != rows {
                findings.push(Finding::new(path, index + 1, format!("the sources say otherwise: `{WRITE}`")));
            }
        }
    }
    findings.extend(missing.iter().map(|name| Finding::new("docs", 1, format!("no page has the table `{name}`"))));
    findings
}

fn pages(files: &Files) -> impl Iterator<Item = (&String, &String)> {
    files.iter().filter(|(path, _)| path.starts_with("docs/") && path.ends_with(".md"))
}

/// The name of the table that a comment announces.
fn name(line: &str) -> Option<&str> {
    line.strip_prefix(MARK)?.strip_suffix(" -->")
}

/// The lines of the table that follow a line, without its head.
fn table_below(text: &str, mark: usize) -> (usize, usize) {
    let lines: Vec<&str> = text.lines().collect();
    let is_row = |at: &usize| lines.get(*at).is_some_and(|line| line.starts_with('|'));
    let head = (mark + 1..lines.len()).find(is_row).unwrap_or(lines.len());
    let end = (head..).find(|at| !is_row(at)).unwrap_or(lines.len());
    ((head + 2).min(end), end)
}

fn rows_below(text: &str, mark: usize) -> Vec<Row> {
    let (first, end) = table_below(text, mark);
    text.lines().take(end).skip(first).map(cells).collect()
}

/// A page with all its tables as they should be.
fn rewritten(files: &Files, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    // From the last one on, so that the lines of those before stay where they are.
    for (mark, line) in text.lines().enumerate().collect::<Vec<_>>().into_iter().rev() {
        let kind = name(line).and_then(|name| KINDS.iter().find(|kind| kind.name == name));
        if let Some(kind) = kind {
            let (first, end) = table_below(text, mark);
            let rows = (kind.rows)(files, rows_below(text, mark));
            lines.splice(first..end, rows.iter().map(line_of));
        }
    }
    lines.join("\n") + "\n"
}

fn cells(line: &str) -> Row {
    let line = line.trim_start_matches('|').trim_end().trim_end_matches('|').replace("\\|", "\0");
    line.split('|').map(|cell| cell.trim().replace('\0', "\\|")).collect()
}

fn line_of(row: &Row) -> String {
    row.iter().fold("|".into(), |line, cell| if cell.is_empty() { line + " |" } else { format!("{line} {cell} |") })
}

/// The rows whose keys are wanted, in their order, and those that are missing.
fn keyed(mut rows: Vec<Row>, wanted: &[String], key: fn(&str) -> &str) -> Vec<Row> {
    let width = rows.first().map_or(2, Vec::len);
    rows.retain(|row| wanted.iter().any(|wanted| wanted == key(&row[0])));
    for wanted in wanted {
        if !rows.iter().any(|row| key(&row[0]) == wanted) {
            let mut row = vec![String::new(); width];
            row[0] = format!("`{wanted}`");
            rows.push(row);
        }
    }
    rows
}

/// What stands in the first code span of a cell.
fn span(cell: &str) -> &str {
    cell.split('`').nth(1).unwrap_or(cell)
}

/// The sub-command in a command.
fn second_word(cell: &str) -> &str {
    let command = span(cell);
    command.split(' ').nth(1).unwrap_or(command)
}

/// A row for each tag of a message, by tag.
fn tagged(rows: Vec<Row>, files: &Files, message: &str) -> Vec<Row> {
    // The one that is made of a table of its rows.
    let begins = if message == "Message" { "\nmessages! {".to_string() } else { format!("wire_enum!({message} {{") };
    let sources = files.iter().filter(|(path, _)| path.starts_with("crates/core/src/"));
    let body = sources.filter_map(|(_, text)| text.split_once(&begins)?.1.split_once('}')).next();
    let arms = body.map_or("", |(body, _)| body).split(',').filter(|arm| !arm.contains("#[cfg(test)]"));
    let tags = arms.filter_map(|arm| arm.split_once("=>")?.0.split_whitespace().last().map(str::to_string));
    let tags: Vec<String> = tags.collect();
    let mut rows = keyed(rows, &tags, |cell| cell.trim_matches('`'));
    rows.iter_mut().for_each(|row| row[0] = row[0].trim_matches('`').to_string());
    rows.sort_by_key(|row| row[0].parse::<u8>().ok());
    rows
}

/// The second cell: how many lines the paths in the first have, without those after "but".
fn lines(files: &Files, mut row: Row) -> Row {
    let (of, without) = row[0].split_once(" but ").unwrap_or((&row[0], ""));
    let count = |paths: &str| -> usize { paths.split('`').skip(1).step_by(2).map(|path| lines_in(files, path)).sum() };
    let count = count(of) - count(without);
    let rounded = (count + ROUNDED_TO / 2) / ROUNDED_TO * ROUNDED_TO;
    row[1] = rounded.to_string();
    row
}

/// Lines of Rust in a file or a folder of the core that are neither blank, nor comment, nor test.
fn lines_in(files: &Files, path: &str) -> usize {
    let path = format!("crates/core/src/{path}");
    let is_in = |file: &str| {
        !source::is_test(file) && file.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let texts = files.iter().filter(|(file, _)| file.ends_with(".rs") && is_in(file));
    texts.map(|(_, text)| lines_of_code(text)).sum()
}

fn lines_of_code(text: &str) -> usize {
    source::without_tests(&source::masked(text)).lines().filter(|line| !line.trim().is_empty()).count()
}

/// The steps of the gate.
fn gate(files: &Files) -> Vec<String> {
    let text = files.get("xtask/src/verify.rs").map_or("", String::as_str);
    let named = text.lines().filter_map(|line| line.trim_start().strip_prefix("Step { name: \""));
    named.filter_map(|rest| Some(rest.split_once('"')?.0.to_string())).collect()
}

/// The names that `--adversary` knows.
fn adversaries(files: &Files) -> Vec<String> {
    let text = files.get("crates/sim/src/byzantine/adversary.rs").map_or("", String::as_str);
    let named = text.lines().filter(|line| line.starts_with("    ") && line.ends_with(';'));
    named.filter_map(|line| Some(line.split_once(" => \"")?.1.split_once('"')?.0.to_string())).collect()
}

/// The sub-commands of the binary.
fn commands(files: &Files) -> Vec<String> {
    let text = files.get("crates/cli/src/main.rs").map_or("", String::as_str);
    let body =
        text.split_once("enum Command {\n").and_then(|(_, rest)| rest.split_once("\n}")).map_or("", |(body, _)| body);
    let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
    variants.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase())).map(kebab).collect()
}

/// A variant's name as clap spells it.
fn kebab(variant: &str) -> String {
    let mut word = String::new();
    for c in variant.chars().take_while(char::is_ascii_alphabetic) {
        if c.is_ascii_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}

/// The packages of the workspace, and other folders with sources.
fn crates(files: &Files) -> Vec<String> {
    let manifests = files.iter().filter(|(path, _)| path.ends_with("/Cargo.toml") && !path.starts_with("fuzz/"));
    let named = manifests.filter_map(|(_, text)| text.lines().find_map(|line| line.strip_prefix("name = ")));
    let names = named.map(|name| name.trim_matches('"').to_string());
    names.chain(OTHER_FOLDERS.map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(page: &str) -> Files {
        let rows = "/// One, or two.\n1 => Request(Request),\n4 => Reply(Reply),\n#[cfg(test)]\n9 => No(No),\n";
        let source = format!("\nmessages! {{\n{rows}}}\n// x\nfn f() {{\n    g();\n}}\n");
        Files::from([("docs/a.md".to_string(), page.to_string()), ("crates/core/src/a/b.rs".to_string(), source)])
    }

    fn complaints(page: &str) -> Vec<usize> {
        check(&files(page)).into_iter().filter(|finding| finding.path != "docs").map(|finding| finding.line).collect()
    }

    #[test]
    fn rows_are_those_of_the_sources() {
        let right =
            "# A\n\n<!-- table: Message -->\n\n| tag | message |\n|---|---|\n| 1 | a \\| b |\n| 4 | c |\n\nEnd.\n";
        assert!(complaints(right).is_empty());
        let wrong = right.replace("| 1 | a \\| b |\n", "| 2 | d |\n");
        assert_eq!(complaints(&wrong), [3]);
        let written = rewritten(&files(&wrong), &wrong);
        assert_eq!(written, right.replace("| 1 | a \\| b |", "| 1 | |"));
        assert_eq!(complaints(&written), [3], "nobody has said yet what it is");
        assert_eq!(complaints("<!-- table: other -->\n"), [1]);
    }

    #[test]
    fn lines_are_counted_and_rounded() {
        let row = |folder: &str| vec![folder.to_string(), "7".to_string()];
        let many = "fn f() {}\n".repeat(160);
        let files = Files::from([
            ("crates/core/src/a/b.rs".to_string(), format!("//! B.\n\n{many}")),
            ("crates/core/src/a/tests.rs".to_string(), many.clone()),
            ("crates/core/src/a.rs".to_string(), many),
        ]);
        assert_eq!(lines(&files, row("`a`, `a.rs`"))[1], "300");
        assert_eq!(lines(&files, row("`a` but `a/b.rs`"))[1], "0");
    }

    #[test]
    fn a_command_is_spelled_as_clap_does() {
        assert_eq!(kebab("ClientKey(client_key::Arguments),"), "client-key");
        assert_eq!(second_word("`bezant backup create`, `verify`"), "backup");
    }
}
