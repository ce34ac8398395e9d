//! The tokens of masked source: words, paths' `::`, runs of dots, and single marks. Lifetimes are left out.

use std::iter::Peekable;
use std::str::CharIndices;

/// A piece of source that is not blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// From 1.
    pub(super) line: usize,
}

impl Token<'_> {
    /// Whether it is a name, a keyword or a number.
    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(in_word)
    }
}

/// All tokens, in order.
pub(super) fn tokens(masked: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut chars = masked.char_indices().peekable();
    while let Some((start, first)) = chars.next() {
        if first == '\n' {
            line += 1;
        }
        if first.is_whitespace() {
            continue;
        }
        let end = end_of(first, start, &mut chars);
        if first != '\'' {
            found.push(Token { text: &masked[start..end], line });
        }
    }
    found
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Takes the rest of the token that begins with `first`.
fn end_of(first: char, start: usize, chars: &mut Peekable<CharIndices<'_>>) -> usize {
    let mut end = start + first.len_utf8();
    let joins = |next: char| match first {
        '.' => next == '.',
        '\'' => in_word(next),
        _ => in_word(first) && in_word(next),
    };
    while let Some((at, next)) = chars.next_if(|(_, next)| joins(*next)) {
        end = at + next.len_utf8();
    }
    if first == ':' && chars.next_if(|(_, next)| *next == ':').is_some() {
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_paths_and_marks_are_told_apart() {
        let found: Vec<(&str, usize)> =
            tokens("a::b<'x>:\n c_1..2").iter().map(|token| (token.text, token.line)).collect();
        let expected = [("a", 1), ("::", 1), ("b", 1), ("<", 1), (">", 1), (":", 1), ("c_1", 2), ("..", 2), ("2", 2)];
        assert_eq!(found, expected);
    }
}
