//! The modules of one package, and what a path leads to.

use super::module::{Module, Use};
use super::parse;
use crate::files::Files;
use crate::source;
use std::collections::{BTreeMap, BTreeSet};

/// Re-exports that lead to each other end a search after so many steps.
const STEPS_MAX: usize = 16;

/// Every module of a package, by number.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// Where each exported macro is defined.
    macros: BTreeMap<String, usize>,
}

/// A module and its place.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) file: String,
    pub(super) module: Module,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Module(usize),
    /// An item of this module.
    Item(usize, String),
}

impl Tree {
    /// Reads all modules that can be reached from a root, such as `src/lib.rs`, outside of tests.
    pub(super) fn add_root(&mut self, root: &str, sources: &Files) {
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.add_file(root, folder, None, sources);
    }

    /// A file whose modules are in `folder`.
    fn add_file(&mut self, file: &str, folder: &str, parent: Option<usize>, sources: &Files) -> Option<usize> {
        let code = source::without_tests(&source::masked(sources.get(file)?));
        Some(self.add(parse::module(&code), (file, folder), parent, sources))
    }

    fn add(
        &mut self,
        mut module: Module,
        (file, folder): (&str, &str),
        parent: Option<usize>,
        sources: &Files,
    ) -> usize {
        let (files, inline) = (std::mem::take(&mut module.files), std::mem::take(&mut module.inline));
        let me = self.nodes.len();
        self.macros.extend(module.exported_macros.iter().map(|name| (name.clone(), me)));
        self.nodes.push(Node { file: file.to_string(), module, parent, children: BTreeMap::new() });
        for name in files {
            let inside = format!("{folder}/{name}");
            let places = [format!("{inside}.rs"), format!("{inside}/mod.rs")];
            let child = places.iter().find_map(|place| self.add_file(place, &inside, Some(me), sources));
            self.nodes[me].children.extend(child.map(|child| (name, child)));
        }
        for (name, module) in inline {
            let child = self.add(module, (file, &format!("{folder}/{name}")), Some(me), sources);
            self.nodes[me].children.insert(name, child);
        }
        me
    }

    /// Whether `inner` is somewhere below `outer`.
    pub(super) fn is_below(&self, inner: usize, outer: usize) -> bool {
        self.ancestors(inner).skip(1).any(|above| above == outer)
    }

    /// A module, its parent, and so on to the root.
    fn ancestors(&self, from: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(from), |at| self.nodes[*at].parent)
    }

    /// What a path in the code of a module leads to; `None` if out of the crate.
    pub(super) fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.walk(from, path, false, STEPS_MAX)
    }

    /// The same for a path that goes on.
    pub(super) fn resolve_beginning(&self, from: usize, path: &[String]) -> Option<Target> {
        self.walk(from, path, true, STEPS_MAX)
    }

    /// Where a macro that is called by its mere name comes from, if not from the module itself: a parent may have
    /// defined it before.
    pub(super) fn macro_above(&self, from: usize, name: &str) -> Option<Target> {
        let above = self.ancestors(from).find(|at| self.nodes[*at].module.macros.contains(name))?;
        Some(Target::Item(above, name.to_string()))
    }

    /// Follows a path. With `on` it goes on behind its last word, which is a module then if one has that name.
    fn walk(&self, from: usize, path: &[String], on: bool, steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let mut at = from;
        for (index, word) in path.iter().enumerate() {
            let on = on || index + 1 < path.len();
            let next = match word.as_str() {
                "crate" => Some(Target::Module(self.ancestors(at).last()?)),
                "self" => Some(Target::Module(at)),
                "super" => Some(Target::Module(self.nodes[at].parent?)),
                name if index == 0 => self.member(at, name, on, steps)?,
                // What a macro made is not seen here, but must be there.
                name => self.member(at, name, on, steps)?.or_else(|| Some(Target::Item(at, name.to_string()))),
            };
            match next? {
                Target::Module(module) => at = module,
                item => return Some(item),
            }
        }
        Some(Target::Module(at))
    }

    /// What a name stands for in a module: `Some(None)` if it is not known there, `None` if it comes from another
    /// crate.
    fn member(&self, at: usize, name: &str, on: bool, steps: usize) -> Option<Option<Target>> {
        let node = &self.nodes[at];
        let child = node.children.get(name).map(|child| Target::Module(*child));
        if on && child.is_some() {
            return Some(child);
        }
        if node.module.items.contains(name) {
            return Some(Some(Target::Item(at, name.to_string())));
        }
        let mut named = node.module.uses.iter().filter(|one| one.name == name).peekable();
        if named.peek().is_some() {
            // A `use` of a name by its own name means the module, the crate or the macro that has it.
            let found = named.find_map(|one| self.walk_use(at, one, on, steps));
            return found.or(child).map(Some);
        }
        let exported = node.parent.is_none().then(|| self.macros.get(name)).flatten();
        let exported = exported.map(|module| Target::Item(*module, name.to_string()));
        Some(child.or(exported).or_else(|| self.taken_by_glob(at, name, on, steps)))
    }

    /// What a `use` takes.
    fn walk_use(&self, at: usize, one: &Use, on: bool, steps: usize) -> Option<Target> {
        let is_itself = one.path.len() == 1 && one.path[0] == one.name;
        if is_itself { None } else { self.walk(at, &one.path, on, steps) }
    }

    fn taken_by_glob(&self, at: usize, name: &str, on: bool, steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let globs = self.nodes[at].module.uses.iter().filter(|one| one.name == "*");
        globs.filter_map(|glob| self.walk(at, &glob.path, true, steps)).find_map(|target| match target {
            Target::Module(module) => self.member(module, name, on, steps).flatten(),
            Target::Item(..) => None,
        })
    }
}

/// Every file that holds a module.
pub(super) fn files_of(tree: &Tree) -> BTreeSet<String> {
    tree.nodes.iter().map(|node| node.file.clone()).collect()
}
