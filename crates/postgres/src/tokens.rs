//! Just enough of PostgreSQL's lexer to find statements, parameters and casts without being fooled by quotes, comments
//! and dollar quotes.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in double quotes.
    Quoted,
    /// A text in single quotes, also with a letter before them (`E'…'`, `X'…'`).
    Text,
    /// A text in dollar quotes.
    Dollar,
    /// `$1`.
    Parameter,
    /// A number.
    Number,
    /// Space or a comment.
    Space,
    /// Anything else: one character, or `::`.
    Symbol,
}

/// A piece of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
}

impl Token<'_> {
    /// Whether it is this keyword.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is one of these keywords.
    pub(crate) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Whether it is this symbol.
    pub(crate) fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    /// The number of the parameter that it is.
    pub(crate) fn parameter(&self) -> Option<usize> {
        if self.kind == Kind::Parameter { self.text[1..].parse().ok() } else { None }
    }

    /// Whether it means anything.
    pub(crate) fn is_solid(&self) -> bool {
        self.kind != Kind::Space
    }

    /// The name that it is, as PostgreSQL folds it.
    pub(crate) fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Word => Some(self.text.to_ascii_lowercase()),
            Kind::Quoted => {
                let inside = self.text.strip_prefix('"').unwrap_or(self.text);
                Some(inside.strip_suffix('"').unwrap_or(inside).replace("\"\"", "\""))
            }
            _ => None,
        }
    }
}

/// Cuts SQL into tokens; together they are the whole text. What is not closed reaches to the end.
pub(crate) fn tokens(sql: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut rest) = (Vec::new(), sql);
    while let Some(first) = rest.chars().next() {
        let (kind, length) = measure(rest, first);
        let (text, after) = rest.split_at(length);
        tokens.push(Token { kind, text });
        rest = after;
    }
    tokens
}

fn measure(rest: &str, first: char) -> (Kind, usize) {
    let span = |condition: fn(char) -> bool| rest.find(|c| !condition(c)).unwrap_or(rest.len());
    let second = rest[first.len_utf8()..].chars().next();
    match first {
        _ if first.is_whitespace() => (Kind::Space, span(char::is_whitespace)),
        '-' if second == Some('-') => (Kind::Space, rest.find('\n').unwrap_or(rest.len())),
        '/' if second == Some('*') => (Kind::Space, comment(rest)),
        '\'' => (Kind::Text, quoted(rest, '\'', false)),
        'e' | 'E' if second == Some('\'') => (Kind::Text, 1 + quoted(&rest[1..], '\'', true)),
        'x' | 'X' | 'b' | 'B' | 'n' | 'N' if second == Some('\'') => (Kind::Text, 1 + quoted(&rest[1..], '\'', false)),
        '"' => (Kind::Quoted, quoted(rest, '"', false)),
        '$' if second.is_some_and(|c| c.is_ascii_digit()) => {
            let digits = rest[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - 1);
            (Kind::Parameter, 1 + digits)
        }
        '$' => dollar(rest).map_or((Kind::Symbol, 1), |length| (Kind::Dollar, length)),
        _ if first.is_alphabetic() || first == '_' => {
            (Kind::Word, span(|c| c.is_alphanumeric() || c == '_' || c == '$'))
        }
        _ if first.is_ascii_digit() => (Kind::Number, number(rest)),
        ':' if second == Some(':') => (Kind::Symbol, 2),
        _ => (Kind::Symbol, first.len_utf8()),
    }
}

/// Comments nest in PostgreSQL.
fn comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length with both quotes; a doubled quote, or one behind a backslash where that counts, does not close it.
fn quoted(rest: &str, quote: char, backslash: bool) -> usize {
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if backslash && c == '\\' {
            characters.next();
        } else if c == quote {
            match characters.peek() {
                Some((_, next)) if *next == quote => _ = characters.next(),
                _ => return at + 1,
            }
        }
    }
    rest.len()
}

/// The length of `$tag$ … $tag$`, if that is what begins here.
fn dollar(rest: &str) -> Option<usize> {
    let tag = rest[1..].find('$')? + 2;
    let name = &rest[1..tag - 1];
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let end = |end: usize| tag + end + tag;
    is_name.then(|| rest[tag..].find(&rest[..tag]).map_or(rest.len(), end))
}

/// Digits, with a fraction and an exponent.
fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = 0;
    while is_digit(at) || bytes.get(at) == Some(&b'.') || bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
        let exponent = bytes[at].eq_ignore_ascii_case(&b'e') && !rest.starts_with("0x");
        at += 1;
        if exponent && matches!(bytes.get(at), Some(b'+' | b'-')) && is_digit(at + 1) {
            at += 1;
        }
    }
    at
}

/// What a text in quotes means: its characters without quotes and escapes.
pub(crate) fn text_of(token: Token<'_>) -> String {
    match token.kind {
        Kind::Dollar => {
            let tag = token.text[1..].find('$').map_or(1, |at| at + 2);
            token.text[tag..].strip_suffix(&token.text[..tag]).unwrap_or(&token.text[tag..]).into()
        }
        _ if token.text.starts_with(['e', 'E']) => unescaped(&inside(&token.text[1..])),
        _ => inside(token.text).replace("''", "'"),
    }
}

fn inside(text: &str) -> String {
    let text = text.strip_prefix('\'').unwrap_or(text);
    text.strip_suffix('\'').unwrap_or(text).into()
}

/// The escapes of `E'…'`.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\'' => {
                characters.next_if_eq(&'\'');
                out.push('\'');
            }
            '\\' => match characters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('b') => out.push('\u{8}'),
                Some('f') => out.push('\u{c}'),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}

/// A text as SQL.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Cuts SQL into statements, without their semicolons and without empty ones.
pub(crate) fn statements(sql: &str) -> Vec<String> {
    let (mut all, mut current) = (Vec::new(), Vec::new());
    // A trigger's body has semicolons of its own.
    let (mut body, mut cases) = (false, 0_u32);
    for token in tokens(sql) {
        let words = || current.iter().filter(|token: &&Token<'_>| token.is_solid());
        if token.is("begin") && words().take(4).any(|token| token.is("trigger")) {
            body = true;
        } else if body && token.is("case") {
            cases += 1;
        } else if body && token.is("end") {
            if cases == 0 {
                body = false;
            }
            cases = cases.saturating_sub(1);
        }
        if token.is_symbol(";") && !body {
            all.push(std::mem::take(&mut current));
        } else {
            current.push(token);
        }
    }
    all.push(current);
    let is_statement = |tokens: &Vec<Token<'_>>| tokens.iter().any(Token::is_solid);
    let join = |tokens: Vec<Token<'_>>| tokens.iter().map(|token| token.text).collect::<String>().trim().to_owned();
    all.into_iter().filter(is_statement).map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(sql: &str) -> Vec<(Kind, &str)> {
        tokens(sql).into_iter().filter(Token::is_solid).map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn quotes_hide_what_is_in_them() {
        let sql = r#"select '$1''; x', E'a\'b;', "c"";", $t$ ; $1 $t$, $$;$$, $12 -- ; $3
            /* ; /* $4 */ */ from x::int"#;
        let wanted = [
            (Kind::Word, "select"),
            (Kind::Text, "'$1''; x'"),
            (Kind::Symbol, ","),
            (Kind::Text, r"E'a\'b;'"),
            (Kind::Symbol, ","),
            (Kind::Quoted, "\"c\"\";\""),
            (Kind::Symbol, ","),
            (Kind::Dollar, "$t$ ; $1 $t$"),
            (Kind::Symbol, ","),
            (Kind::Dollar, "$$;$$"),
            (Kind::Symbol, ","),
            (Kind::Parameter, "$12"),
            (Kind::Word, "from"),
            (Kind::Word, "x"),
            (Kind::Symbol, "::"),
            (Kind::Word, "int"),
        ];
        assert_eq!(kinds(sql), wanted);
    }

    #[test]
    fn numbers_are_whole() {
        for sql in ["1", "1.5", "1e-5", "0x1F", "1E+3"] {
            assert_eq!(kinds(sql), [(Kind::Number, sql)]);
        }
        assert_eq!(kinds("1-1").len(), 3);
        assert_eq!(kinds("0xe-1").len(), 3);
    }

    #[test]
    fn texts_mean_their_characters() {
        let text = |sql| text_of(tokens(sql)[0]);
        assert_eq!(text("'it''s'"), "it's");
        assert_eq!(text(r"E'a\n\'b'''"), "a\n'b'");
        assert_eq!(text("$x$it's$x$"), "it's");
        assert_eq!(text("'open"), "open");
        assert_eq!(quote("it's"), "'it''s'");
    }

    #[test]
    fn statements_end_at_semicolons_that_count() {
        assert_eq!(statements(" select ';' ; ; select 2;-- end"), ["select ';'", "select 2"]);
        let trigger = "create trigger a after insert on t begin select case when 1 then 2 end; delete from u; end";
        assert_eq!(statements(&format!("{trigger}; select 1")), [trigger, "select 1"]);
        assert_eq!(statements("begin; select 1; end"), ["begin", "select 1", "end"]);
        assert!(statements(" ;; /* nothing */ ").is_empty());
    }

    proptest! {
        #[test]
        fn tokens_are_the_whole_text(sql in r"([a-e$'\\/*:;1.é -]|\PC){0,40}") {
            let all: String = tokens(&sql).iter().map(|token| token.text).collect();
            prop_assert_eq!(&all, &sql);
            for token in tokens(&sql) {
                let _ = text_of(token);
            }
            let _ = statements(&sql);
        }
    }
}
