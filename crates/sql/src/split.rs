//! Splits text into statements, as `sqlite3_complete` does: at semicolons that stand outside of quotes, comments and
//! the bodies of triggers.
//!
//! Shells need it to know when a statement that is being typed has ended; batches, because a request carries single
//! statements.

/// A text, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split<'a> {
    /// The statements that have ended, each with its semicolon and without blanks and comments before it. Empty ones
    /// are left out.
    pub statements: Vec<&'a str>,
    /// What comes after them: a statement, a quote or a comment that has not ended. Empty if it is nothing but blanks
    /// and whole comments.
    pub rest: &'a str,
}

/// Splits a text. A comment that goes to the end of the line may be ended by the end of the text.
pub fn split(text: &str) -> Split<'_> {
    let mut tokens = Tokens { text, at: 0 };
    let mut statements = Vec::new();
    let mut state = State::Start;
    let mut begin = None;
    while let Some((place, token)) = tokens.next_token() {
        if token == Token::Blank {
            continue;
        }
        let start = *begin.get_or_insert(place);
        let was_empty = state == State::Start;
        state = state.after(token);
        if token == Token::Semicolon && state == State::Start {
            begin = None;
            if !was_empty {
                statements.push(&text[start..tokens.at]);
            }
        }
    }
    Split { statements, rest: begin.map_or("", |begin| &text[begin..]) }
}

/// The words of a statement that stand outside of parentheses and quotes.
pub(crate) fn outer_words(statement: &str) -> impl Iterator<Item = &str> {
    let mut tokens = Tokens { text: statement, at: 0 };
    let mut depth = 0_usize;
    std::iter::from_fn(move || {
        loop {
            let (place, token) = tokens.next_token()?;
            let text = &statement[place..tokens.at];
            match text {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ if depth == 0 && token != Token::Blank && text.starts_with(is_of_word) => return Some(text),
                _ => {}
            }
        }
    })
}

/// How far a statement has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing but blanks so far.
    Start,
    /// Within a statement that the next semicolon ends.
    Normal,
    /// After EXPLAIN, and perhaps QUERY PLAN.
    Explain,
    /// After CREATE, and perhaps TEMP.
    Create,
    /// In the definition of a trigger, which `; END ;` ends.
    Trigger,
    /// There, after a semicolon.
    TriggerSemicolon,
    /// There, after END after a semicolon.
    TriggerEnd,
}

impl State {
    const fn after(self, token: Token) -> Self {
        match (self, token) {
            (state, Token::Blank) => state,
            (Self::Trigger | Self::TriggerSemicolon, Token::Semicolon) => Self::TriggerSemicolon,
            (_, Token::Semicolon) => Self::Start,
            (Self::Start, Token::Explain) => Self::Explain,
            (Self::Start | Self::Explain, Token::Create) => Self::Create,
            (Self::Explain, Token::Other) => Self::Explain,
            (Self::Create, Token::Temporary) => Self::Create,
            (Self::Create, Token::Trigger) => Self::Trigger,
            (Self::TriggerSemicolon, Token::End) => Self::TriggerEnd,
            (Self::Trigger | Self::TriggerSemicolon | Self::TriggerEnd, _) => Self::Trigger,
            _ => Self::Normal,
        }
    }
}

/// What matters of a piece of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// White space or a comment.
    Blank,
    Semicolon,
    Explain,
    Create,
    Temporary,
    Trigger,
    End,
    /// Any other word, number, operator or quoted thing.
    Other,
}

struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl Tokens<'_> {
    /// The next token, and where it begins. A quote or comment that does not end goes to the end of the text.
    fn next_token(&mut self) -> Option<(usize, Token)> {
        let place = self.at;
        let rest = &self.text[place..];
        let first = rest.chars().next()?;
        let (token, length) = match first {
            ';' => (Token::Semicolon, 1),
            ' ' | '\t' | '\r' | '\n' | '\x0c' => (Token::Blank, 1),
            '-' if rest.starts_with("--") => (Token::Blank, rest.find('\n').map_or(rest.len(), |end| end + 1)),
            '/' if rest.starts_with("/*") => match rest[2..].find("*/") {
                Some(end) => (Token::Blank, end + 4),
                // It hides what may follow.
                None => (Token::Other, rest.len()),
            },
            '[' => (Token::Other, length_to(rest, ']')),
            '\'' | '"' | '`' => (Token::Other, length_to(rest, first)),
            _ if is_of_word(first) => {
                let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
                (of_word(&rest[..length]), length)
            }
            other => (Token::Other, other.len_utf8()),
        };
        self.at = place + length;
        Some((place, token))
    }
}

/// Bytes up to and including the end of what is quoted. A doubled quote is the end of one and the beginning of another.
fn length_to(quoted: &str, end: char) -> usize {
    quoted[1..].find(end).map_or(quoted.len(), |length| length + 2)
}

fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '$') || !character.is_ascii()
}

fn of_word(word: &str) -> Token {
    const WORDS: [(&str, Token); 6] = [
        ("create", Token::Create),
        ("trigger", Token::Trigger),
        ("temp", Token::Temporary),
        ("temporary", Token::Temporary),
        ("end", Token::End),
        ("explain", Token::Explain),
    ];
    WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known)).map_or(Token::Other, |(_, token)| *token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rusqlite::Connection;
    use rusqlite::fallible_iterator::FallibleIterator;

    #[test]
    fn semicolons_end_statements_but_not_in_quotes_comments_or_triggers() {
        let trigger = "create temp trigger x after insert on t begin select case 1 when 2 then 3 end; end;";
        let text = format!(" -- first; \nselect ';', [;], \"a;\"\"b\"; ; /* ;\n */ {trigger} select 1 -- ;");
        let found = split(&text);
        assert_eq!(found.statements, ["select ';', [;], \"a;\"\"b\";", trigger]);
        assert_eq!(found.rest, "select 1 -- ;");
        assert_eq!(split("select 1; -- that is all").rest, "");
        assert_eq!(split("select 1; /* to be").rest, "/* to be");
        assert_eq!(split("select 'it''s;").rest, "select 'it''s;");
        assert_eq!(split("explain query plan select 1;;").statements, ["explain query plan select 1;"]);
        assert_eq!(split("create trigger x after insert on t begin select 1;").statements, [""; 0]);
    }

    /// Statements that SQLite accepts, with everything that could mislead us.
    fn statement() -> impl Strategy<Value = String> {
        let quoted = r#"[a-z;'" \-/*]{0,8}"#.prop_map(|text| text.replace('\'', "''"));
        let blank = prop::sample::select(vec![" ", "\n", "/* ; ' */", "--;'\n", "\t/**/ "]);
        (quoted, blank, 0..5).prop_map(|(quoted, blank, kind)| match kind {
            0 => format!("select{blank}'{quoted}'{blank};"),
            1 => format!("select{blank}1 as [a;'],{blank}2 as \"b;''\",{blank}3 as `c;`;"),
            2 => format!(
                "create{blank}trigger{blank}if not exists x after insert on t{blank}begin{blank}\
                 select '{quoted}';{blank}delete from t where a = case 1 when 2 then 3 end;{blank}END{blank};"
            ),
            3 => format!("explain{blank}query{blank}plan{blank}select '{quoted}';"),
            _ => format!("insert into t{blank}values{blank}('{quoted}');"),
        })
    }

    proptest! {
        #[test]
        fn valid_statements_are_split_where_sqlite_splits_them(
            statements in prop::collection::vec(statement(), 0..6),
            between in prop::sample::select(vec!["", " ", ";", "\n/*;*/", "--;\n", ";;\n"]),
        ) {
            let text = statements.iter().map(|statement| format!("{between}{statement}")).collect::<String>() + between;
            let found = split(&text);
            prop_assert_eq!(&found.statements, &statements);
            prop_assert_eq!(found.rest, "");
            let connection = Connection::open_in_memory().unwrap();
            connection.execute_batch("create table t(a)").unwrap();
            let mut batch = rusqlite::Batch::new(&connection, &text);
            let mut count = 0;
            while batch.next().unwrap().is_some() {
                count += 1;
            }
            prop_assert_eq!(count, statements.len());
        }

        #[test]
        fn any_text_splits_line_by_line_as_at_once(
            text in r#"([;'"`\[\]\-/*\n ]|create |trigger |temp |end|explain |☃|a){0,40}"#,
        ) {
            let whole = split(&text);
            let mut found: Vec<String> = Vec::new();
            let mut pending = String::new();
            for line in text.split_inclusive('\n') {
                pending += line;
                let Split { statements, rest } = split(&pending);
                found.extend(statements.into_iter().map(String::from));
                pending = rest.to_owned();
            }
            prop_assert_eq!(found, whole.statements);
            prop_assert_eq!(pending, whole.rest);
        }
    }
}
