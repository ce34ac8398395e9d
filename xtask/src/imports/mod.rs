//! Which Rust file of a package imports which other one, and the names that it takes from there.
//!
//! A path counts wherever it stands: in a `use` or in code, with `crate`, `super`, `self` or a child in front. It leads
//! to the file that **defines** what it names, through all re-exports. So a `pub use` of a child is no import of the
//! file that hands it on, unless that file's own code mentions the name; a private `use` always is one. A module by
//! itself is nothing taken: what is reached through it counts. Tests, comments and strings do not.
//!
//! What this cannot see are methods: a file that calls a method of a value imports nothing by that. A name that is
//! taken with `*`, or that the file hands on, counts where a word of the code is that name and no variable or field.

mod module;
mod parse;
mod tokens;
mod tree;

use crate::files::Files;
use crate::source;
use std::collections::{BTreeMap, BTreeSet};
use tree::{Target, Tree};

/// The imports of one package.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    /// Every file, also one that imports nothing.
    pub(crate) files: BTreeSet<String>,
    /// What is imported: from the first file to the second.
    pub(crate) arrows: BTreeMap<(String, String), Names>,
}

/// The names that one file takes from another, each with the line where it does so first.
pub(crate) type Names = BTreeMap<String, usize>;

impl Imports {
    /// What a file imports, and the names.
    pub(crate) fn of<'a>(&'a self, file: &str) -> impl Iterator<Item = (&'a str, &'a Names)> {
        let first = (file.to_string(), String::new());
        let file = file.to_string();
        let arrows = self.arrows.range(first..).take_while(move |((from, _), _)| *from == file);
        arrows.map(|((_, to), names)| (to.as_str(), names))
    }
}

/// The folders of all packages, such as `crates/core`.
pub(crate) fn packages(files: &Files) -> Vec<String> {
    let manifests = files.iter().filter(|(_, text)| text.contains("[package]"));
    manifests.filter_map(|(path, _)| Some(path.strip_suffix("/Cargo.toml")?.to_string())).collect()
}

/// Reads the package in a folder from the project's files.
pub(crate) fn of_package(files: &Files, folder: &str) -> Imports {
    let source = format!("{folder}/src/");
    let inside = files.range(source.clone()..).take_while(|(path, _)| path.starts_with(&source));
    let is_code = |path: &str| path.ends_with(".rs") && !source::is_test(path);
    let sources: Files =
        inside.filter(|(path, _)| is_code(path)).map(|(path, text)| (path.clone(), text.clone())).collect();
    let mut tree = Tree::default();
    for path in sources.keys() {
        let name = &path[source.len()..];
        let is_program = name.strip_prefix("bin/").is_some_and(|program| !program.contains('/'));
        if matches!(name, "lib.rs" | "main.rs") || is_program {
            tree.add_root(path, &sources);
        }
    }
    from_tree(&tree)
}

fn from_tree(tree: &Tree) -> Imports {
    let mut imports = Imports { files: tree::files_of(tree), arrows: BTreeMap::new() };
    for (at, node) in tree.nodes.iter().enumerate() {
        let mut take = |target: Option<Target>, line: usize| {
            let Some(Target::Item(module, name)) = target else { return };
            let file = &tree.nodes[module].file;
            if *file != node.file {
                let names = imports.arrows.entry((node.file.clone(), file.clone())).or_default();
                let first = names.entry(name).or_insert(line);
                *first = line.min(*first);
            }
        };
        for one in &node.module.uses {
            if !(one.is_public && leads_below(tree, at, &one.path)) {
                take(tree.resolve(at, &one.path), one.line);
            }
        }
        for mention in &node.module.mentions {
            let target = tree.resolve(at, &mention.path);
            let above = || mention.is_macro.then(|| tree.macro_above(at, &mention.path[0])).flatten();
            take(target.or_else(above), mention.line);
        }
    }
    imports
}

/// Whether a path goes through a module below this one.
fn leads_below(tree: &Tree, at: usize, path: &[String]) -> bool {
    let through = path.split_last().and_then(|(_, through)| tree.resolve_beginning(at, through));
    matches!(through, Some(Target::Module(module)) if tree.is_below(module, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every arrow of a made-up package, as `from > to: names`, without the folder and `.rs`.
    fn arrows(sources: &[(&str, &str)]) -> Vec<String> {
        let files = sources.iter().map(|(path, text)| (format!("a/src/{path}.rs"), text.to_string())).collect();
        let short = |path: &str| path.trim_start_matches("a/src/").trim_end_matches(".rs").to_string();
        let arrows = of_package(&files, "a").arrows;
        let line = |((from, to), names): (&(String, String), &Names)| {
            let names: Vec<&str> = names.keys().map(String::as_str).collect();
            format!("{} > {}: {}", short(from), short(to), names.join(" "))
        };
        arrows.iter().map(line).collect()
    }

    #[test]
    fn uses_and_paths_in_place_count() {
        let found = arrows(&[
            ("lib", "mod a; mod b; mod c;"),
            ("a", "pub struct A; pub fn f() {}"),
            ("b", "use crate::a::{self, A as B};\nfn g() { a::f(); super::c::H::new(); }"),
            ("c", "pub struct H;"),
        ]);
        assert_eq!(found, ["b > a: A f", "b > c: H"]);
    }

    #[test]
    fn a_module_taken_by_itself_is_nothing_taken() {
        assert!(arrows(&[("lib", "mod a; mod b;"), ("a", ""), ("b", "use crate::a; // a::f()\n")]).is_empty());
    }

    #[test]
    fn tests_comments_and_strings_do_not_count() {
        let found = arrows(&[
            ("lib", "mod a; mod b; #[cfg(test)] mod c; mod testing;"),
            ("a", "pub struct A;"),
            ("b", "// crate::a::A\nfn f() { \"crate::a::A\" }\n#[cfg(test)]\nmod tests { use crate::a::A; }"),
            ("c", "use crate::a::A;"),
            ("testing/mod", "use crate::a::A;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn re_exports_lead_to_the_file_that_defines() {
        let found = arrows(&[
            ("lib", "pub mod a; mod d;\npub use a::C as E;"),
            ("a/mod", "mod b; mod c;\npub(crate) use b::B;\npub use c::*;\npub use self::b::Unused;"),
            ("a/b", "pub struct B; pub struct Unused;"),
            ("a/c", "pub struct C;"),
            ("d", "use crate::E;\nuse crate::a::{B, C};"),
        ]);
        assert_eq!(found, ["d > a/b: B", "d > a/c: C"]);
    }

    #[test]
    fn what_a_facade_uses_itself_it_imports() {
        let found = arrows(&[
            ("lib", "mod a;"),
            ("a", "mod b; mod c;\npub(crate) use b::{B, b};\nuse c::C;\nfn f(_: B) { let b = 1; g(b) }"),
            ("a/b", "use super::{C, f, D};\npub struct B; pub fn b() {}"),
            ("a/c", "pub trait C {}"),
        ]);
        assert_eq!(found, ["a > a/b: B", "a > a/c: C", "a/b > a: D f", "a/b > a/c: C"]);
    }

    #[test]
    fn a_re_export_of_what_is_not_below_is_an_import() {
        let found = arrows(&[("lib", "mod a; mod b;"), ("a", "pub use crate::b::B;"), ("b", "pub struct B;")]);
        assert_eq!(found, ["a > b: B"]);
    }

    #[test]
    fn names_taken_with_a_star_count_where_they_are_words() {
        let found = arrows(&[
            ("lib", "mod a; mod b; mod c;"),
            ("a", "pub struct A; pub struct Unused; pub enum Kind { One }"),
            ("b", "use crate::a::*;\nfn f(_: A) {}"),
            ("c", "use crate::a::Kind::*;"),
        ]);
        assert_eq!(found, ["b > a: A", "c > a: Kind"]);
    }

    #[test]
    fn macros_count_for_the_file_that_defines_them() {
        let found = arrows(&[
            ("lib", "mod a; mod b; mod c;"),
            ("a", "#[macro_export]\nmacro_rules! made { () => { $crate::c::C } }"),
            ("b", "mod d; fn write() {}\ncrate::made!();\nmacro_rules! near { () => {} }"),
            ("b/d", "near!(); write!(); use crate::made;"),
            ("c", "pub struct C;"),
        ]);
        assert_eq!(found, ["a > c: C", "b > a: made", "b/d > a: made", "b/d > b: near"]);
    }

    #[test]
    fn modules_in_braces_belong_to_their_file() {
        let found = arrows(&[
            ("lib", "mod a; mod b;"),
            ("a", "pub mod inner { pub struct I; use super::super::b::B; }\npub use inner::I;"),
            ("b", "use crate::a::I; pub struct B;"),
        ]);
        assert_eq!(found, ["a > b: B", "b > a: I"]);
    }

    #[test]
    fn a_module_and_its_function_of_one_name_are_told_apart() {
        let found = arrows(&[
            ("lib", "mod a; mod b;"),
            ("a", "mod run;\npub use run::run;"),
            ("a/run", "pub fn run() {} pub struct Run;"),
            ("b", "use crate::a::run; use crate::a::run::Run;"),
        ]);
        assert_eq!(found, ["b > a/run: Run run"]);
    }
}
