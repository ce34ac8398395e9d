//! Names behind a schema's, the pairs that `_pg_expandarray` gives, and `TRIM (BOTH … FROM …)`.

use super::Rewriter;
use crate::rewrite::follows;
use crate::tokens::{Kind, Token};

impl Rewriter<'_> {
    /// What stands behind the name of a schema, if this is one.
    pub(super) fn of_schema(&mut self, name: &str) -> bool {
        if name == "pg_catalog"
            && let Some(after) = self.follows(&["."])
        {
            self.at = after;
            return true;
        }
        if name == "information_schema"
            && let Some(after) = self.follows(&[".", "_pg_expandarray"])
        {
            self.at = after;
            self.pair();
            return true;
        }
        if name == "information_schema"
            && let Some(after) = self.follows(&["."])
            && let Some(table) = self.tokens.get(after).and_then(Token::name)
        {
            self.at = after + 1;
            self.push(format!("information_schema_{table}"));
            self.call_as_before(&table);
            return true;
        }
        false
    }

    /// `_pg_expandarray(array) AS alias`: under its alias is the value, and beside it the number.
    fn pair(&mut self) {
        self.set("unnest", "unnest");
        if let Some(alias) = self.follows(&["as"]).and_then(|at| self.tokens.get(at)).and_then(Token::name) {
            let number = self.open.iter().rev().find_map(|level| level.set.as_ref()).map_or(0, |(number, _)| *number);
            self.push(format!("AS {alias} , (_s{number}.key + 1) AS {alias}_n"));
            self.at += 2;
        }
    }

    /// `TRIM (BOTH 'x' FROM text)`.
    pub(super) fn trim(&mut self, text: &str) {
        match self.follows(&["(", "both"]) {
            Some(after) if follows(self.tokens, after + 1, &["from"]).is_some() => {
                self.push("pg_trim");
                self.enter("(", ")");
                self.push(self.tokens[after].text);
                self.push(",");
                self.at = after + 2;
            }
            _ => self.push(text),
        }
    }

    /// `(information_schema._pg_expandarray(array)).n`, and `(alias.column).x` of what that function gave.
    pub(super) fn part_of_pair(&mut self) -> bool {
        if let Some(after) = self.follows(&["information_schema", ".", "_pg_expandarray"])
            && let Some(end) = closing(self.tokens, after)
            && let Some(end) = follows(self.tokens, end + 1, &[")", "."])
            && let Some(part) = self.tokens.get(end).filter(|part| part.is_any(&["n", "x"]))
        {
            self.at = after;
            self.set(if part.is("n") { "_pg_expandarray" } else { "unnest" }, "unnest");
            self.at = end + 1;
            return true;
        }
        let [table, dot, column, close, other, part] = self.tokens.get(self.at..self.at + 6).unwrap_or_default() else {
            return false;
        };
        let is_name = |token: &Token<'_>| token.kind == Kind::Word;
        let is_part = is_name(table)
            && dot.is_symbol(".")
            && is_name(column)
            && close.is_symbol(")")
            && other.is_symbol(".")
            && part.is_any(&["x", "n"]);
        if is_part {
            let number = if part.is("n") { "_n" } else { "" };
            self.push(format!("{}.{}{number}", table.text, column.text));
            self.at += 6;
        }
        is_part
    }
}

/// The place of what closes the parenthesis that is open here.
fn closing(tokens: &[Token<'_>], from: usize) -> Option<usize> {
    let mut depth = 0_u32;
    let at = tokens.get(from..)?.iter().position(|token| {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })?;
    Some(from + at)
}
