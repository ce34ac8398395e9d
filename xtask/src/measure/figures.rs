//! What is counted in the sources of one package, tests aside.

use crate::circles::{self, Circle};
use crate::files::Files;
use crate::imports::{self, Imports};
use crate::source;
use std::collections::{BTreeMap, BTreeSet};

/// Macros that stop the program unless something holds.
const ASSERTS: [&str; 7] =
    ["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "unreachable"];

/// How many of the longest files and functions are shown.
pub(super) const LONGEST: usize = 5;

/// What is counted in one package.
pub(super) struct Figures {
    /// Its folder, such as `crates/core`.
    pub(super) folder: String,
    pub(super) imports: Imports,
    pub(super) circles: Vec<Circle>,
    /// By top-level module.
    pub(super) modules: BTreeMap<String, Counts>,
    /// Lines and name, the longest first.
    pub(super) files: Vec<(usize, String)>,
    pub(super) functions: Vec<(usize, String)>,
}

/// What is summed up over files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) files: usize,
    pub(super) lines: usize,
    /// Lines of documentation.
    pub(super) docs: usize,
    /// Lines inside of functions that hold a comment and nothing else.
    pub(super) comments: usize,
    pub(super) asserts: usize,
    /// Calls of `expect`.
    pub(super) expects: usize,
}

impl Counts {
    /// Adds what was counted elsewhere.
    pub(super) fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.lines += other.lines;
        self.docs += other.docs;
        self.comments += other.comments;
        self.asserts += other.asserts;
        self.expects += other.expects;
    }
}

impl Figures {
    /// Counts in the package that is in a folder.
    pub(super) fn of(files: &Files, folder: &str) -> Self {
        let imports = imports::of_package(files, folder);
        let circles = circles::of(&imports);
        let mut figures = Self {
            folder: folder.to_string(),
            imports,
            circles,
            modules: BTreeMap::new(),
            files: Vec::new(),
            functions: Vec::new(),
        };
        for path in &figures.imports.files {
            let text = files.get(path).map_or("", String::as_str);
            let name = path.strip_prefix(folder).and_then(|path| path.strip_prefix("/src/")).unwrap_or(path);
            let code = source::without_tests(&source::masked(text));
            let counts = count(text, &code);
            figures.modules.entry(top(name)).or_default().add(&counts);
            figures.files.push((counts.lines, name.to_string()));
            let functions = source::functions(&code).into_iter();
            figures.functions.extend(functions.map(|one| (one.lines, format!("{name}::{}", one.name))));
        }
        figures.files.sort_by(|a, b| b.cmp(a));
        figures.functions.sort_by(|a, b| b.cmp(a));
        figures
    }

    /// All modules together.
    pub(super) fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.modules.values().for_each(|counts| total.add(counts));
        total
    }
}

/// How many there are in 1,000 lines.
pub(super) fn per_thousand(count: usize, lines: usize) -> f64 {
    1_000.0 * count as f64 / lines.max(1) as f64
}

/// The top-level module of a file: `a` for `a.rs` and for all that is in `a/`.
fn top(name: &str) -> String {
    name.split('/').next().unwrap_or(name).trim_end_matches(".rs").to_string()
}

/// Counts in one file. `code` is the same without comments, literals and tests, line by line.
fn count(text: &str, code: &str) -> Counts {
    let masked = source::masked(text);
    let tested: usize = source::test_items(&masked).iter().map(|item| masked[item.clone()].lines().count()).sum();
    let is_test = test_lines(&masked);
    let bodies: BTreeSet<usize> =
        source::functions(code).iter().flat_map(|one| one.line + 1..one.line + one.lines).collect();
    let mut counts = Counts { files: 1, lines: text.lines().count() - tested, ..Counts::default() };
    for (index, line) in text.lines().enumerate().filter(|(index, _)| !is_test.contains(&(index + 1))) {
        let line = line.trim_start();
        let is_doc = line.starts_with("///") || line.starts_with("//!");
        counts.docs += usize::from(is_doc);
        counts.comments += usize::from(!is_doc && line.starts_with("//") && bodies.contains(&(index + 1)));
    }
    for (at, word) in source::words(code) {
        let after = &code[at + word.len()..];
        counts.asserts += usize::from(ASSERTS.contains(&word) && after.starts_with('!'));
        counts.expects += usize::from(word == "expect" && after.starts_with('(') && code[..at].ends_with('.'));
    }
    counts
}

/// The lines of items that exist in tests only, from 1.
fn test_lines(masked: &str) -> BTreeSet<usize> {
    let items = source::test_items(masked).into_iter();
    items.flat_map(|item| source::line_of(masked, item.start)..=source::line_of(masked, item.end - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_counted_without_its_tests() {
        let lib = "\
            //! A.\nmod b;\n\n/// F.\nfn f() {\n    // Why.\n    assert!(x); // and why\n    y.expect(\"z\");\n}\n\
            #[cfg(test)]\nmod tests {\n    /// No.\n    fn g() { assert_eq!(1, 1); }\n}\n";
        let b = "//! B.\nmod c;\nfn expect() { unreachable!(\"assert!\") }\n";
        let files = Files::from([
            ("a/src/lib.rs".to_string(), lib.to_string()),
            ("a/src/b/mod.rs".to_string(), b.to_string()),
            ("a/src/b/c.rs".to_string(), "//! C.\n".to_string()),
        ]);
        let figures = Figures::of(&files, "a");
        let lib = Counts { files: 1, lines: 9, docs: 2, comments: 1, asserts: 1, expects: 1 };
        let b = Counts { files: 2, lines: 4, docs: 2, comments: 0, asserts: 1, expects: 0 };
        assert_eq!(figures.modules, BTreeMap::from([("lib".to_string(), lib), ("b".to_string(), b)]));
        assert_eq!((figures.total().files, figures.total().lines), (3, 13));
        assert_eq!(figures.files[0], (9, "lib.rs".to_string()));
        assert_eq!(figures.functions[0], (5, "lib.rs::f".to_string()));
    }
}
