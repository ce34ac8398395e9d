//! What a statement's tokens mean before anybody parses it.
//!
//! The parser knows many dialects and is laxer than PostgreSQL about literals. So it gets nothing but standard strings:
//! escapes, dollar quotes, literals that go on in the next line and nested comments are resolved here. What is neither
//! is refused here, as is what is nested or chained so deep that a tree of it would be a danger to the stack.

use crate::error::{PgError, sqlstate};
use crate::rewrite::follows;
use crate::tokens::{Kind, Token, quote, tokens};

/// Tokens behind the last comma, in all parentheses that are open, together: no tree is deeper than that.
const CHAIN_MAX: usize = 2_500;

/// Unions and the like in a statement: each is parsed around all those before it, and SQLite has no more terms.
const TERMS_MAX: usize = 499;

/// What a SELECT may have behind its list.
const CLAUSES: [&str; 9] = ["from", "where", "group", "having", "window", "order", "limit", "offset", "fetch"];

/// How much of `U&` came just now.
#[derive(Clone, Copy)]
enum Prefix {
    None,
    U,
    And,
}

/// A statement as the parser may have it.
///
/// # Errors
/// What PostgreSQL does not take for a token either, or what is too deep.
pub(super) fn normalize(sql: &str) -> Result<String, PgError> {
    let mut out = String::with_capacity(sql.len());
    let mut chains = Chains { open: vec![0], terms: 0 };
    // Where the last literal ends in `out`, if nothing but space has come since, and whether a new line has.
    let mut literal: Option<(usize, bool)> = None;
    let (mut last, mut word) = (Kind::Space, Prefix::None);
    let mut before: Option<Token<'_>> = None;
    // Whether a SELECT has no clause yet.
    let mut is_bare = false;
    let all = tokens(sql);
    for (at, token) in all.iter().copied().enumerate() {
        if last == Kind::Number && matches!(token.kind, Kind::Word | Kind::Number) {
            return Err(syntax(format!("trailing junk after numeric literal at or near \"{}\"", token.text)));
        }
        // `U&'…'` and `U&"…"` are one token in PostgreSQL.
        match (word, token.text.chars().next()) {
            (Prefix::And, Some('\'' | '"')) => return Err(PgError::unsupported("U& is not supported")),
            (Prefix::U, Some('&')) => word = Prefix::And,
            _ => word = if token.is("u") { Prefix::U } else { Prefix::None },
        }
        last = token.kind;
        match token.kind {
            Kind::Space => {
                check_comment(token)?;
                if let Some((_, line)) = &mut literal {
                    *line |= token.text.contains('\n');
                }
                out.push(' ');
                continue;
            }
            Kind::Text | Kind::Dollar => {
                let text = literal_of(token)?;
                match literal {
                    Some((end, true)) if token.text.starts_with('\'') => {
                        out.truncate(end - 1);
                        out.push_str(&quote(&text)[1..]);
                    }
                    _ => out.push_str(&quote(&text)),
                }
                literal = Some((out.len(), false));
            }
            Kind::Number => out.push_str(number(token.text)?),
            // A sign behind an operator is none of it: `j->-1`.
            _ if matches!(token.text, "-" | "+") && out.ends_with(['<', '>', '=', '*', '/', '+', '-']) => {
                out.push(' ');
                out.push_str(token.text);
            }
            // The parser takes the FOR of `SELECT 1 FOR UPDATE` for a column's name, unless a clause stands before it.
            _ if is_bare && chains.open.len() == 1 && token.is("for") && is_lock(&all[at + 1..]) => {
                out.push_str("WHERE true FOR");
            }
            // `FOR NO KEY UPDATE` and `FOR KEY SHARE` it does not know.
            _ if token.is_any(&["no", "key"]) && is_strength(before, token, &all[at + 1..]) => {}
            // `ROW (a, b)` is `(a, b)`.
            _ if token.is("row") && begins_row(before, &all[at + 1..]) => {}
            _ => out.push_str(token.text),
        }
        before = Some(token);
        if chains.open.len() == 1 && (token.is("select") || token.is_any(&CLAUSES)) {
            is_bare = token.is("select");
        }
        if !matches!(token.kind, Kind::Text | Kind::Dollar) {
            literal = None;
        }
        check_symbol(token)?;
        chains.follow(token)?;
    }
    Ok(out)
}

/// Whether FOR before these begins what is said about locks.
fn is_lock(behind: &[Token<'_>]) -> bool {
    const STRENGTHS: [&[&str]; 4] = [&["update"], &["share"], &["no", "key", "update"], &["key", "share"]];
    STRENGTHS.iter().any(|words| follows(behind, 0, words).is_some())
}

/// Whether a word between these says how strong a lock is.
fn is_strength(before: Option<Token<'_>>, token: Token<'_>, behind: &[Token<'_>]) -> bool {
    let is_behind = |word| before.is_some_and(|before| before.is(word));
    let continues = |words| follows(behind, 0, words).is_some();
    match token.is("no") {
        true => is_behind("for") && continues(&["key", "update"]),
        false => is_behind("for") && continues(&["share"]) || is_behind("no") && continues(&["update"]),
    }
}

/// Whether the word ROW between these begins a row of values: a table and a column may be called so, too.
fn begins_row(before: Option<Token<'_>>, behind: &[Token<'_>]) -> bool {
    const WORDS: [&str; 12] =
        ["select", "where", "and", "or", "not", "having", "when", "then", "else", "in", "between", "by"];
    let is_symbol = |token: &Token<'_>| token.kind == Kind::Symbol && !matches!(token.text, "." | ")" | "]");
    before.is_some_and(|before| before.is_any(&WORDS) || is_symbol(&before))
        && behind.iter().find(|token| token.is_solid()).is_some_and(|next| next.is_symbol("("))
}

/// Counts what may hang together.
struct Chains {
    /// Of each bracket that is open: tokens since the last comma.
    open: Vec<usize>,
    /// Words between the terms of unions and the like, in the whole statement.
    terms: usize,
}

impl Chains {
    fn follow(&mut self, token: Token<'_>) -> Result<(), PgError> {
        let Self { open, terms } = self;
        match token.text {
            "(" | "[" => open.push(0),
            ")" | "]" if open.len() > 1 => _ = open.pop(),
            "," => open.last_mut().into_iter().for_each(|count| *count = 0),
            _ => open.last_mut().into_iter().for_each(|count| *count += 1),
        }
        *terms += usize::from(token.is_any(&["union", "except", "intersect"]));
        if *terms > TERMS_MAX {
            return Err(PgError::new("54001", "the statement has too many UNION, EXCEPT and INTERSECT"));
        }
        if open.iter().sum::<usize>() + open.len() <= CHAIN_MAX {
            return Ok(());
        }
        Err(PgError::new("54001", "the statement is nested too deep, or one expression in it is too long")
            .hint("write a long list of alternatives as IN (…)"))
    }
}

fn check_comment(token: Token<'_>) -> Result<(), PgError> {
    if !token.text.starts_with("/*") {
        return Ok(());
    }
    let (opened, closed) = (token.text.matches("/*").count(), token.text.matches("*/").count());
    if opened > closed { Err(syntax("unterminated /* comment")) } else { Ok(()) }
}

fn check_symbol(token: Token<'_>) -> Result<(), PgError> {
    match token.kind {
        Kind::Quoted if token.text.len() < 2 || !token.text.ends_with('"') => {
            Err(syntax("unterminated quoted identifier"))
        }
        Kind::Quoted if token.text == "\"\"" => Err(syntax("zero-length delimited identifier")),
        Kind::Symbol if matches!(token.text, "`" | "\0" | "\\" | "{" | "}") => {
            Err(syntax(format!("syntax error at or near \"{}\"", token.text.escape_default())))
        }
        _ => Ok(()),
    }
}

fn syntax(text: impl Into<String>) -> PgError {
    PgError::new(sqlstate::SYNTAX, text)
}

/// Digits, a fraction, an exponent, and nothing else.
fn number(text: &str) -> Result<&str, PgError> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if is_digits(whole) && is_digits(fraction) && is_digits(exponent) && !exponent.is_empty() {
        return Ok(text);
    }
    Err(syntax(format!("trailing junk after numeric literal at or near \"{text}\"")))
}

/// The characters of a literal.
fn literal_of(token: Token<'_>) -> Result<String, PgError> {
    let text = token.text;
    let unterminated = || syntax("unterminated quoted string");
    if token.kind == Kind::Dollar {
        let tag = text[1..].find('$').ok_or_else(unterminated)? + 2;
        let inside = text[tag..].strip_suffix(&text[..tag]).ok_or_else(unterminated)?;
        return Ok(inside.into());
    }
    let start = text.find('\'').ok_or_else(unterminated)?;
    let inside = text[start + 1..].strip_suffix('\'').ok_or_else(unterminated)?;
    match text.as_bytes()[0] {
        b'\'' | b'n' | b'N' => Ok(inside.replace("''", "'")),
        b'e' | b'E' => unescape(inside),
        _ => Err(PgError::unsupported("bit strings are not supported").hint(r"write bytes as '\x…'::bytea")),
    }
}

/// Resolves the escapes of an E-string.
fn unescape(inside: &str) -> Result<String, PgError> {
    let bad = || PgError::new("22025", "invalid escape in an E-string");
    let mut out: Vec<u8> = Vec::with_capacity(inside.len());
    let mut rest = inside.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' => {
                _ = rest.next_if_eq(&'\'');
                out.push(b'\'');
            }
            '\\' => match rest.next().ok_or_else(bad)? {
                'b' => out.push(8),
                'f' => out.push(12),
                'n' => out.push(b'\n'),
                'r' => out.push(b'\r'),
                't' => out.push(b'\t'),
                first @ '0'..='7' => {
                    let mut code = first.to_digit(8).unwrap_or(0);
                    for _ in 0..2 {
                        let Some(digit) = rest.peek().and_then(|c| c.to_digit(8)) else { break };
                        code = code * 8 + digit;
                        rest.next();
                    }
                    out.push(code as u8);
                }
                'x' if rest.peek().is_some_and(char::is_ascii_hexdigit) => {
                    let code = digits(&mut rest, 2);
                    out.push(code as u8);
                }
                kind @ ('u' | 'U') => {
                    let wanted = if kind == 'u' { 4 } else { 8 };
                    let before = rest.clone().take(wanted).filter(char::is_ascii_hexdigit).count();
                    let code = digits(&mut rest, wanted);
                    let c = char::from_u32(code).filter(|_| before == wanted).ok_or_else(bad)?;
                    out.extend(c.encode_utf8(&mut [0; 4]).bytes());
                }
                other => out.extend(other.encode_utf8(&mut [0; 4]).bytes()),
            },
            other => out.extend(other.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    let text = String::from_utf8(out).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| PgError::new("22021", "invalid byte sequence for encoding \"UTF8\" in an E-string"))
}

fn digits(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, most: usize) -> u32 {
    let mut code = 0;
    for _ in 0..most {
        let Some(digit) = rest.peek().and_then(|c| c.to_digit(16)) else { break };
        code = code * 16 + digit;
        rest.next();
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strings_mean_what_postgresql_says() {
        for (sql, wanted) in [
            (r"E'a\'b\n\101\x41\u0041\\'", "'a''b\nAAA\\'"),
            (r"'a\nb'", r"'a\nb'"),
            ("'a'\n  'b'", "'ab'"),
            ("'a' -- more\n'b'", "'ab'"),
            ("$x$it's$x$", "'it''s'"),
            ("/* a /* b */ ' */ 1", "  1"),
            ("'a' 'b'", "'a' 'b'"),
            ("N'x'", "'x'"),
            ("j->-1 <=-1 a->>'b'", "j-> -1 <= -1 a->>'b'"),
            ("(row(1), ROW (2), row, t.row)", "((1),  (2), row, t.row)"),
            ("insert into row (row) values (row)", "insert into row (row) values (row)"),
            ("select 1 for update", "select 1 WHERE true FOR update"),
            (
                "select (select a from t for share) for no key update",
                "select (select a from t for share) WHERE true FOR   update",
            ),
            ("select a from t for update", "select a from t for update"),
            ("select substring(a for update)", "select substring(a for update)"),
        ] {
            assert_eq!(normalize(sql).as_deref(), Ok(wanted), "{sql}");
        }
        for sql in ["'a", "\"a", "$$a", "/* a", "0x1F", "1_000", "1e", "x'00'", r"E'\u00'", r"E'\xff'", "U&'a'", "`a`"]
        {
            assert!(normalize(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let long = |piece: &str, count: usize| normalize(&format!("select {}1", piece.repeat(count)));
        assert_eq!(long("1+", 5_000).unwrap_err().sqlstate, "54001");
        assert_eq!(long("(", 5_000).unwrap_err().sqlstate, "54001");
        assert!(long("1, ", 50_000).is_ok());
        assert!(normalize(&format!("values {}(1)", "(1, 2), ".repeat(10_000))).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_normal_or_refused(sql in r"([eE]?'|\\[xu0-9]*|[a-c$/*,()\n -]|\PC){0,30}") {
            let _ = normalize(&sql);
        }
    }
}
