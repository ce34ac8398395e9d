//! Rules about characters: how long a line is, what it ends with, and words that must not be in it.

use crate::files::Files;
use crate::finding::Finding;

/// The longest line, in characters.
const COLUMNS_MAX: usize = 120;

/// Marks of unfinished work, spelled in two parts so that this file passes its own rule.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

/// Folders of one machine. A test takes its temporary folder from the standard library.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/tm", "p/"), concat!("/ro", "ot/"), concat!("/wo", "rk/")];

/// Written by programs; their lines are as long as they are.
fn is_generated(path: &str, text: &str) -> bool {
    const ENDINGS: [&str; 5] = [".csv", ".lock", ".snap", ".svg", ".json"];
    ENDINGS.iter().any(|ending| path.ends_with(ending))
        || path.starts_with("fuzz/seeds/")
        || (path.ends_with(".md") && text.contains("<!-- Written from "))
}

/// Checks all files.
pub(super) fn check(files: &Files) -> Vec<Finding> {
    let written = files.iter().filter(|(path, text)| !is_generated(path, text));
    written.flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut find = |what: String| findings.push(Finding::new(path, index + 1, what));
        let columns = line.chars().count();
        if columns > COLUMNS_MAX && may_wrap(path, line) {
            find(format!("{columns} columns; at most {COLUMNS_MAX}"));
        }
        if line.ends_with([' ', '\t', '\r']) {
            find("blank at the end of the line".into());
        }
        for word in UNFINISHED {
            if line.split(|c: char| !c.is_alphanumeric()).any(|found| found == word) {
                find(format!("`{word}`: finish it, or open an issue and say so in plain words"));
            }
        }
        for folder in MACHINE_PATHS {
            if line.contains(folder) {
                find(format!("`{folder}` is a folder of one machine"));
            }
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        findings.push(Finding::new(path, text.lines().count(), "no end of line at the end of the file"));
    }
    findings
}

/// A row of a table, an entry of a list in a text file and a line with an address cannot be broken; a licence is
/// quoted as it is.
fn may_wrap(path: &str, line: &str) -> bool {
    let comment = line.trim_start().trim_start_matches(['/', '!']).trim_start();
    let verbatim = [".txt", ".slt"].iter().any(|ending| path.ends_with(ending));
    let table = (path.ends_with(".md") || comment != line.trim_start()) && comment.starts_with('|');
    !(table || verbatim || line.contains("https://") || path.starts_with("LICENSE-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        check_file(path, text).len()
    }

    #[test]
    fn long_lines_are_found_where_they_can_be_broken() {
        let long = format!("{}\n", "ä".repeat(121));
        assert_eq!(complaints("a.rs", &long), 1);
        assert_eq!(complaints("a.md", &format!("|{long}")), 0);
        assert_eq!(complaints("a.rs", &format!("//! |{long}")), 0);
        assert_eq!(complaints("a.rs", &format!("|{long}")), 1);
        assert_eq!(complaints("a.rs", &format!("{}\n", "ä".repeat(120))), 0);
    }

    #[test]
    fn blanks_at_the_end_are_found() {
        assert_eq!(complaints("a.md", "text \n"), 1);
        assert_eq!(complaints("a.md", "text"), 1);
        assert_eq!(complaints("a.md", "text\n"), 0);
    }

    #[test]
    fn unfinished_work_is_found_as_a_word() {
        let mark = UNFINISHED[0];
        assert_eq!(complaints("a.rs", &format!("// {mark}: later\n")), 1);
        assert_eq!(complaints("a.rs", &format!("// {mark}RUS\n")), 0);
    }

    #[test]
    fn machine_paths_are_found() {
        for folder in MACHINE_PATHS {
            assert_eq!(complaints("a.rs", &format!("\"{folder}x\"\n")), 1);
        }
    }
}
