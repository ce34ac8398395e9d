//! Reading Rust source just well enough for rules about lines, functions and words: no grammar, only comments,
//! literals and braces.

use std::ops::Range;

/// The source with the contents of comments, strings and characters blanked out. Every line stays where it is, so
/// that braces and words that remain are code.
pub(crate) fn masked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skipped(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Where the comment or literal that begins at `at` ends; `at` if none does.
fn skipped(chars: &[char], at: usize) -> usize {
    let next = |ahead: usize| chars.get(at + ahead).copied().unwrap_or('\0');
    match (chars[at], next(1)) {
        ('/', '/') => position(chars, at, |c| c == '\n'),
        ('/', '*') => block_comment_end(chars, at),
        ('"', _) => string_end(chars, at + 1),
        ('r', '"' | '#') if !after_word(chars, at) => raw_string_end(chars, at).unwrap_or(at),
        ('\'', '\\') => position(chars, at + 3, |c| c == '\'') + 1,
        ('\'', _) if next(2) == '\'' => at + 3,
        _ => at,
    }
    .min(chars.len())
}

fn position(chars: &[char], from: usize, found: impl Fn(char) -> bool) -> usize {
    (from..chars.len()).find(|&at| found(chars[at])).unwrap_or(chars.len())
}

/// Whether what begins at `at` continues a word, as the `r` in `for` does. The `b` of a byte string does not count.
fn after_word(chars: &[char], at: usize) -> bool {
    let word = |at: usize| chars.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    at > 0 && word(at - 1) && !(matches!(chars[at - 1], 'b' | 'c') && (at == 1 || !word(at - 2)))
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// `None` if it is no raw string but, say, a raw identifier.
fn raw_string_end(chars: &[char], start: usize) -> Option<usize> {
    let quote = position(chars, start + 1, |c| c != '#');
    if chars.get(quote) != Some(&'"') {
        return None;
    }
    let hashes = quote - start - 1;
    let closes = |at: usize| chars[at] == '"' && (1..=hashes).all(|ahead| chars.get(at + ahead) == Some(&'#'));
    (quote + 1..chars.len()).find(|&at| closes(at)).map(|at| at + hashes + 1)
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name, without the type it belongs to.
    pub(crate) name: String,
    /// The line of `fn`, from 1.
    pub(crate) line: usize,
    /// From `fn` to the closing brace, both included.
    pub(crate) lines: usize,
}

/// Every function in masked source.
pub(crate) fn functions(masked: &str) -> Vec<Function> {
    words(masked)
        .filter(|(_, word)| *word == "fn")
        .filter_map(|(at, _)| {
            let (_, name) = words(&masked[at + 2..]).next()?;
            // A type such as `fn(u8) -> u8` has a parenthesis where a function has its name.
            if !masked[at + 2..].trim_start().starts_with(name) {
                return None;
            }
            let body = item_end(masked, at)?;
            masked[..body].ends_with('}').then(|| Function {
                name: name.to_string(),
                line: line_of(masked, at),
                lines: line_of(masked, body - 1) - line_of(masked, at) + 1,
            })
        })
        .collect()
}

/// The words of masked source, with where they begin.
pub(crate) fn words(masked: &str) -> impl Iterator<Item = (usize, &str)> {
    masked.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).map(move |word| {
        let at = word.as_ptr() as usize - masked.as_ptr() as usize;
        (at, word)
    })
}

/// The line, from 1, of a byte.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Just after the `;` or the closing brace of the item that begins at `start`; the comma of a field or of its value.
fn item_end(masked: &str, start: usize) -> Option<usize> {
    let (mut braces, mut brackets) = (0, 0);
    let is_field = is_field(&masked[start..]);
    for (at, c) in masked[start..].char_indices() {
        match c {
            '{' => braces += 1,
            // What surrounds the last field ends.
            '}' if braces == 0 => return Some(start + at),
            '}' => braces -= 1,
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            ',' if is_field && braces == 0 && brackets == 0 => return Some(start + at + 1),
            _ => {}
        }
        if brackets == 0 && braces == 0 && matches!(c, ';' | '}') {
            return Some(start + at + 1);
        }
    }
    None
}

/// Whether what follows is `name: …`, public or not.
fn is_field(masked: &str) -> bool {
    let head = masked.split(':').next().unwrap_or(masked);
    let is_name = |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut words = head.split_whitespace().skip_while(|word| word.starts_with("pub"));
    !masked[head.len()..].starts_with("::") && words.next().is_some_and(is_name) && words.next().is_none()
}

/// The bytes of the items that exist in tests only.
pub(crate) fn test_items(masked: &str) -> Vec<Range<usize>> {
    const MARK: &str = "#[cfg(test)]";
    let items = masked.match_indices(MARK).filter_map(|(at, _)| {
        let end = item_end(masked, at + MARK.len())?;
        Some(at..end)
    });
    items.collect()
}

/// Whether a file holds nothing but tests.
pub(crate) fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let folders = ["/tests/", "/testing/", "/benches/", "/fuzz_targets/"];
    folders.iter().any(|folder| path.contains(folder)) || name == "tests.rs" || name.ends_with("_test.rs")
}

/// Masked source with the items that exist in tests only blanked out.
pub(crate) fn without_tests(masked: &str) -> String {
    let mut bytes = masked.as_bytes().to_vec();
    for range in test_items(masked) {
        for byte in &mut bytes[range] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        let cases = [
            ("a // {", "a"),
            ("a /* x /* { */ \n } */ b", "a \n  b"),
            ("\"{\\\"\" a", "a"),
            ("r#\"}\"# a", "a"),
            ("b\"{\" a br#\"{\"# b", "b a b b"),
            ("'{' a '\\'' b '\\u{7d}' c", "a b c"),
            ("r#fn a<'b> for x", "r#fn a<'b> for x"),
        ];
        for (source, code) in cases {
            let masked = masked(source);
            assert_eq!(masked.matches('\n').count(), source.matches('\n').count(), "{source}");
            let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
            assert_eq!(words(&masked), words(code), "{source}");
        }
    }

    #[test]
    fn functions_are_measured_from_fn_to_brace() {
        let source =
            "fn a() {}\ntrait T {\n    fn b(&self);\n    fn c(&self)\n    {\n        let f: fn(u8);\n    }\n}\n";
        let found = functions(&masked(source));
        let expected = [("a", 1, 1), ("c", 4, 4)];
        assert_eq!(found.len(), 2);
        for (function, (name, line, lines)) in found.iter().zip(expected) {
            assert_eq!((function.name.as_str(), function.line, function.lines), (name, line, lines));
        }
    }

    #[test]
    fn test_fields_are_cut() {
        let source =
            "struct A {\n    #[cfg(test)]\n    a: B<(u8, u8)>,\n    #[cfg(test)]\n    pub(crate) b: u8\n}\nfn c() {}\n";
        let rest = without_tests(&masked(source));
        assert_eq!(rest.split_whitespace().collect::<Vec<_>>(), ["struct", "A", "{", "}", "fn", "c()", "{}"]);
    }

    #[test]
    fn test_items_are_cut() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nmod c;\nfn d() {}\n";
        let rest = without_tests(&masked(source));
        let names: Vec<String> = functions(&rest).into_iter().map(|function| function.name).collect();
        assert_eq!(names, ["a", "d"]);
        assert_eq!(rest.lines().count(), source.lines().count());
    }
}
