//! Reads one module from its tokens. No grammar: only what names another file, and the braces around it.

use super::module::{Mention, Module, Use};
use super::tokens::{Token, tokens};

/// Words behind which an item has its name.
const ITEMS: [&str; 10] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod", "macro_rules"];
/// Words behind which a local name stands.
const LOCAL: [&str; 4] = ["let", "mut", "ref", "for"];

/// Reads the source of a file: masked, and without its tests.
pub(super) fn module(code: &str) -> Module {
    let mut parser = Parser { tokens: tokens(code), at: 0, is_public: false, is_exported: false };
    parser.module()
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    /// Whether the item that comes next is visible outside of its module.
    is_public: bool,
    /// Whether `#[macro_export]` stands before the item that comes next.
    is_exported: bool,
}

impl<'a> Parser<'a> {
    /// The text of the token so many places ahead; nothing behind the end.
    fn ahead(&self, places: usize) -> &'a str {
        self.tokens.get(self.at + places).map_or("", |token| token.text)
    }

    fn before(&self) -> &'a str {
        self.at.checked_sub(1).map_or("", |at| self.tokens[at].text)
    }

    fn is_word(&self, places: usize) -> bool {
        self.tokens.get(self.at + places).is_some_and(Token::is_word)
    }

    /// Up to the brace that closes the module, or to the end of the file.
    fn module(&mut self) -> Module {
        let mut module = Module::default();
        let mut depth = 0_usize;
        while let Some(token) = self.tokens.get(self.at).copied() {
            match token.text {
                "{" | "(" | "[" => (depth, self.at) = (depth + 1, self.at + 1),
                "}" | ")" | "]" if depth == 0 => {
                    self.at += 1;
                    break;
                }
                "}" | ")" | "]" => (depth, self.at) = (depth - 1, self.at + 1),
                "pub" => self.visibility(),
                "use" if self.ahead(1) != "<" => self.uses(&mut module),
                word if ITEMS.contains(&word) => self.item(word, depth == 0, &mut module),
                _ if token.is_word() => self.mention(&mut module),
                _ => self.at += 1,
            }
        }
        let Module { mentions, locals, .. } = &mut module;
        mentions.retain(|mention| mention.path.len() > 1 || mention.is_called || !locals.contains(&mention.path[0]));
        module
    }

    /// `pub`, and for whom. The path of a `pub(in path)` takes nothing from there.
    fn visibility(&mut self) {
        self.is_public = true;
        let limited = self.ahead(1) == "(" && matches!(self.ahead(2), "crate" | "super" | "self" | "in");
        self.at += 1;
        if limited {
            while !matches!(self.ahead(0), ")" | "") {
                self.at += 1;
            }
            self.at += 1;
        }
    }

    fn item(&mut self, kind: &str, is_own: bool, module: &mut Module) {
        self.at += if kind == "macro_rules" { 2 } else { 1 };
        let name = self.ahead(0).to_string();
        if !self.is_word(0) || ITEMS.contains(&name.as_str()) {
            return;
        }
        self.at += 1;
        let is_exported = kind == "macro_rules" && self.is_exported;
        (self.is_public, self.is_exported) = (false, self.is_exported && kind != "macro_rules");
        match (kind, self.ahead(0)) {
            ("mod", ";") => module.files.push(name),
            ("mod", "{") => {
                self.at += 1;
                let child = self.module();
                module.inline.push((name, child));
            }
            _ if is_exported => module.exported_macros.push(name),
            _ if is_own => {
                if kind == "macro_rules" {
                    module.macros.insert(name.clone());
                }
                module.items.insert(name);
            }
            _ => {}
        }
    }

    fn uses(&mut self, module: &mut Module) {
        let is_public = std::mem::take(&mut self.is_public);
        self.at += 1;
        let from = module.uses.len();
        self.tree(&mut Vec::new(), &mut module.uses);
        module.uses[from..].iter_mut().for_each(|one| one.is_public = is_public);
    }

    /// One branch of a `use`, behind `prefix`.
    fn tree(&mut self, prefix: &mut Vec<String>, found: &mut Vec<Use>) {
        let length = prefix.len();
        loop {
            match self.ahead(0) {
                // A path that begins so leads out of the crate.
                "::" if prefix.is_empty() => prefix.push(String::new()),
                "::" => {}
                "{" => {
                    self.branches(prefix, found);
                    break;
                }
                "*" => {
                    self.at += 1;
                    self.found(prefix, "*", found);
                    break;
                }
                _ if self.is_word(0) => {
                    prefix.push(self.ahead(0).to_string());
                    if self.ahead(1) != "::" {
                        self.leaf(prefix, found);
                        break;
                    }
                }
                _ => break,
            }
            self.at += 1;
        }
        prefix.truncate(length);
    }

    /// The end of a branch, with its new name if it has one.
    fn leaf(&mut self, path: &[String], found: &mut Vec<Use>) {
        self.at += 1;
        let name = if self.ahead(0) == "as" { self.ahead(1) } else { "" };
        self.at += if name.is_empty() { 0 } else { 2 };
        self.found(path, name, found);
    }

    fn branches(&mut self, prefix: &mut Vec<String>, found: &mut Vec<Use>) {
        while !matches!(self.ahead(0), "}" | "") {
            self.at += 1;
            self.tree(prefix, found);
        }
        self.at += 1;
    }

    fn found(&self, path: &[String], name: &str, found: &mut Vec<Use>) {
        let mut path = path.to_vec();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(last) = path.last() else { return };
        let name = if name.is_empty() { last.clone() } else { name.to_string() };
        let line = self.tokens.get(self.at.saturating_sub(1)).map_or(1, |token| token.line);
        found.push(Use { path, name, is_public: false, line });
    }

    fn mention(&mut self, module: &mut Module) {
        let line = self.tokens[self.at].line;
        let before = self.before();
        // `$name` is not a name, but `$crate` is.
        let is_name = !matches!(before, "." | "::") && (before != "$" || self.ahead(0) == "crate");
        let mut path = vec![self.ahead(0).to_string()];
        self.is_exported |= path[0] == "macro_export";
        self.at += 1;
        while self.ahead(0) == "::" && self.is_word(1) {
            path.push(self.ahead(1).to_string());
            self.at += 2;
        }
        let is_local = path.len() == 1 && (LOCAL.contains(&before) || self.ahead(0) == ":");
        if is_name && is_local {
            module.locals.insert(path[0].clone());
        }
        let is_number = path[0].starts_with(|c: char| c.is_numeric());
        if is_name && !is_local && !is_number {
            let is_macro = self.ahead(0) == "!" && self.ahead(1) != "=";
            module.mentions.push(Mention { path, is_macro, is_called: is_macro || self.ahead(0) == "(", line });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(code: &str) -> Vec<(String, String)> {
        module(code).uses.into_iter().map(|one| (one.path.join("::"), one.name)).collect()
    }

    #[test]
    fn trees_of_uses_are_taken_apart() {
        let found = uses("use a::{self, b::{C, D as E}, f::*};\npub(crate) use ::g::H;\nuse super::i;\nuse {j::K, L};");
        let expected = [
            ("a", "a"),
            ("a::b::C", "C"),
            ("a::b::D", "E"),
            ("a::f", "*"),
            ("::g::H", "H"),
            ("super::i", "i"),
            ("j::K", "K"),
            ("L", "L"),
        ];
        assert_eq!(found, expected.map(|(path, name)| (path.to_string(), name.to_string())));
        let public: Vec<bool> = module("pub use a::B; use c::D;").uses.iter().map(|one| one.is_public).collect();
        assert_eq!(public, [true, false]);
    }

    #[test]
    fn what_a_module_declares_is_told_from_what_it_mentions() {
        let code = "mod a;\npub(super) mod b { const X: u8 = 1; }\npub(in crate::z) struct C { d: e::F }\n\
            impl C { fn g<'x>(&'x self) { let h = self.i(J, 2); k!(h) } }\nconst fn l() {}\n\
            #[macro_export]\nmacro_rules! m { ($n:ident) => { $crate::o::P } }\nmacro_rules! q { () => {} }";
        let found = module(code);
        assert_eq!(found.files, ["a"]);
        assert_eq!(found.inline[0].0, "b");
        assert_eq!(found.inline[0].1.items.iter().collect::<Vec<_>>(), ["X"]);
        assert_eq!(found.items.iter().collect::<Vec<_>>(), ["C", "l", "q"]);
        assert_eq!(found.exported_macros, ["m"]);
        let paths: Vec<String> = found.mentions.iter().map(|mention| mention.path.join("::")).collect();
        for there in ["e::F", "J", "k", "crate::o::P"] {
            assert!(paths.iter().any(|path| path == there), "{there} in {paths:?}");
        }
        for not_there in ["d", "i", "crate::z", "n", "2"] {
            assert!(paths.iter().all(|path| path != not_there), "{not_there} in {paths:?}");
        }
    }
}
