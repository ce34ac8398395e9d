//! What one module says: the modules, items and imports that it declares, and the paths that its code mentions.

use std::collections::BTreeSet;

/// A module of a crate: a file, or a part of one in braces.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// What its own items are called.
    pub(super) items: BTreeSet<String>,
    /// Those that are macros, which modules below may name as if they were theirs.
    pub(super) macros: BTreeSet<String>,
    pub(super) uses: Vec<Use>,
    pub(super) mentions: Vec<Mention>,
    /// What it calls its variables, parameters and fields, which may be the names of items elsewhere.
    pub(super) locals: BTreeSet<String>,
    /// Modules in other files.
    pub(super) files: Vec<String>,
    /// Modules in braces.
    pub(super) inline: Vec<(String, Self)>,
    /// Macros that the whole crate may name as if its root had them.
    pub(super) exported_macros: Vec<String>,
}

/// One name of a `use`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) path: Vec<String>,
    /// What the module calls it; `*` for all that is in it.
    pub(super) name: String,
    pub(super) is_public: bool,
    pub(super) line: usize,
}

/// A path in code, of one word or more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) path: Vec<String>,
    pub(super) is_macro: bool,
    /// As a function or a macro is.
    pub(super) is_called: bool,
    pub(super) line: usize,
}
