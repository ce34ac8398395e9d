//! Rules about size, as a ratchet: `xtask/ratchet.txt` lists what is over the limit today, with its size. A listed
//! size may only fall, and the list must be exact, so that what was won is not lost again.

use crate::files::Files;
use crate::finding::Finding;
use crate::source;
use std::collections::BTreeMap;

/// Lines of a function, from `fn` to its brace.
const FUNCTION_LINES_MAX: usize = 70;
/// Lines of a file without its tests.
const FILE_LINES_MAX: usize = 500;
/// The list of exceptions.
const RATCHET: &str = "xtask/ratchet.txt";

/// Checks all Rust files against the limits and the list.
pub(super) fn check(files: &Files) -> Vec<Finding> {
    let list = files.get(RATCHET).map_or("", String::as_str);
    let sources = files.iter().filter(|(path, _)| path.ends_with(".rs"));
    compare(list, &sources.flat_map(|(path, text)| oversized(path, text)).collect())
}

/// Something over its limit: its name in the list, then line and size.
type Oversized = BTreeMap<String, (usize, usize)>;

fn oversized(path: &str, text: &str) -> Oversized {
    let masked = source::masked(text);
    let functions = source::functions(&masked).into_iter();
    let mut found: Oversized = functions
        .filter(|function| function.lines > FUNCTION_LINES_MAX)
        .map(|function| (format!("{path}::{}", function.name), (function.line, function.lines)))
        .collect();
    let tests: usize = source::test_items(&masked).iter().map(|item| masked[item.clone()].lines().count()).sum();
    let lines = text.lines().count() - tests;
    if !source::is_test(path) && lines > FILE_LINES_MAX {
        found.insert(path.to_string(), (1, lines));
    }
    found
}

fn compare(list: &str, found: &Oversized) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut listed = BTreeMap::new();
    for (index, line) in list.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        match line.rsplit_once(' ').map(|(name, size)| (name, size.parse::<usize>())) {
            Some((name, Ok(size))) => _ = listed.insert(name, (index + 1, size)),
            _ => findings.push(Finding::new(RATCHET, index + 1, "not of the form `NAME LINES`")),
        }
    }
    for (name, &(line, size)) in found {
        let path = name.split("::").next().unwrap_or(name);
        match listed.get(name.as_str()) {
            None => findings.push(Finding::new(path, line, format!("`{name}` has {size} lines: split it by subject"))),
            Some((_, allowed)) if size > *allowed => {
                findings.push(Finding::new(path, line, format!("`{name}` grew from {allowed} to {size} lines")));
            }
            Some(_) => {}
        }
    }
    for (name, (line, allowed)) in listed {
        let now = found.get(name).map(|(_, size)| *size);
        if now.is_none_or(|size| size < allowed) {
            let advice = now.map_or("remove it".to_string(), |size| format!("write {size}"));
            findings.push(Finding::new(RATCHET, line, format!("`{name}` has become smaller: {advice}")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn long_functions_are_found() {
        assert!(oversized("a.rs", &function(70)).is_empty());
        assert_eq!(oversized("a.rs", &function(71)).get("a.rs::long"), Some(&(1, 71)));
    }

    #[test]
    fn long_files_are_found_without_their_tests() {
        let code = "// a line\n".repeat(499);
        let tests = "#[cfg(test)]\nmod tests {\n    // a\n    // b\n}\n";
        assert!(oversized("a.rs", &format!("{code}{tests}")).is_empty());
        assert_eq!(oversized("a.rs", &format!("{code}// 1\n// 2\n{tests}")).get("a.rs"), Some(&(1, 501)));
        assert!(oversized("crates/a/tests/b.rs", &code.repeat(2)).is_empty());
    }

    #[test]
    fn the_ratchet_only_turns_one_way() {
        let found: Oversized = [("a.rs::long".to_string(), (3, 80))].into();
        assert_eq!(compare("", &found).len(), 1, "not listed");
        assert_eq!(compare("# sizes\n\na.rs::long 80\n", &found).len(), 0, "as listed");
        assert_eq!(compare("a.rs::long 79\n", &found).len(), 1, "grew");
        assert_eq!(compare("a.rs::long 81\n", &found).len(), 1, "shrank");
        assert_eq!(compare("a.rs::long 80\nb.rs 600\n", &found).len(), 1, "went away");
        assert_eq!(compare("a.rs::long\n", &Oversized::new()).len(), 1, "not a size");
    }
}
