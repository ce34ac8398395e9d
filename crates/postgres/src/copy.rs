//! `COPY … FROM STDIN` and `COPY … TO STDOUT`: what is asked for. `copy/read.rs` takes the client's lines apart,
//! `copy/write.rs` makes lines of rows, `session/copying.rs` has the conversation.
//!
//! Rows that come are inserted one by one and take effect together, as one request; so a COPY is no longer than that.

mod read;
mod write;

pub(crate) use read::{Row, read, too_much};
pub(crate) use write::{header, line};

use crate::error::{PgError, sqlstate};
use crate::settings::boolean;
use crate::tokens::{Kind, Token, text_of, tokens};

/// Rows of one `COPY … FROM STDIN`: each of them is a statement of one request.
pub const COPY_ROWS_MAX: usize = bezant_sql::STATEMENTS_MAX;
/// Bytes of its lines, before they are taken apart. A request with them has a bound of its own, the cluster's.
pub const COPY_BYTES_MAX: usize = 2 << 20;

/// A COPY, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) what: What,
    pub(crate) layout: Layout,
}

/// What goes where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Lines into a table.
    From(Table),
    /// Rows of a table out.
    To(Table),
    /// Rows of a statement out.
    Query(String),
}

/// A table as the client wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// Its columns, in their order; `None`: all that are not generated.
    pub(crate) columns: Option<Vec<String>>,
}

/// What the first line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// A row like others.
    None,
    /// The names of the columns.
    Names,
    /// The same, and they must be right.
    Match,
}

/// How lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) is_csv: bool,
    /// One byte, as are the next two.
    pub(crate) delimiter: u8,
    pub(crate) quote: u8,
    pub(crate) escape: u8,
    /// What stands for no value.
    pub(crate) null: String,
    pub(crate) header: Header,
}

/// Options as they are said; each at most once.
#[derive(Default)]
struct Options {
    format: Option<String>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<Header>,
    quote: Option<String>,
    escape: Option<String>,
}

/// Understands a COPY.
///
/// # Errors
/// What PostgreSQL objects to, and what is not here.
pub(crate) fn copy(sql: &str) -> Result<Copy, PgError> {
    let all = tokens(sql);
    let solid: Vec<(usize, Token<'_>)> = all.iter().copied().enumerate().filter(|(_, one)| one.is_solid()).collect();
    let words: Vec<Token<'_>> = solid.iter().map(|(_, token)| *token).collect();
    if words.get(1).is_some_and(|token| token.is("binary")) && !is_way(words.get(2)) {
        return Err(binary());
    }
    let (query, table, at) = if words.get(1).is_some_and(|token| token.is_symbol("(")) {
        let close = closing(&words, 1).ok_or_else(|| not_understood(sql))?;
        let query = all[solid[1].0 + 1..solid[close].0].iter().map(|token| token.text).collect();
        (Some(query), None, close + 1)
    } else {
        let (table, at) = table(&words).ok_or_else(|| not_understood(sql))?;
        (None, Some(table), at)
    };
    let way = words.get(at).filter(|_| is_way(words.get(at))).ok_or_else(|| not_understood(sql))?;
    let comes = way.is("from");
    match words.get(at + 1) {
        Some(end) if end.is_any(&["stdin", "stdout"]) => {}
        Some(end) if end.is("program") || end.kind == Kind::Text => {
            let text = "COPY of files and programs of the server is not supported";
            return Err(PgError::unsupported(text).hint("use STDIN and STDOUT; psql's \\copy has the client's files"));
        }
        _ => return Err(not_understood(sql)),
    }
    let layout = layout(options(sql, words.get(at + 2..).unwrap_or_default())?, comes)?;
    let what = match (query, table) {
        (Some(query), _) if !comes => What::Query(query),
        (None, Some(table)) if comes => What::From(table),
        (None, Some(table)) => What::To(table),
        _ => return Err(not_understood(sql)),
    };
    Ok(Copy { what, layout })
}

fn is_way(token: Option<&Token<'_>>) -> bool {
    token.is_some_and(|token| token.is_any(&["from", "to"]))
}

/// The place of the parenthesis that closes the one here.
fn closing(words: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    (open..words.len()).find(|at| {
        match words[*at].text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// `name [(column, …)]`, and where it ends.
fn table(words: &[Token<'_>]) -> Option<(Table, usize)> {
    let mut at = 1;
    words.get(at)?.name()?;
    while words.get(at + 1).is_some_and(|token| token.is_symbol(".")) {
        at += 2;
        words.get(at)?.name()?;
    }
    let name = words[1..=at].iter().map(|token| token.text).collect();
    at += 1;
    if !words.get(at).is_some_and(|token| token.is_symbol("(")) {
        return Some((Table { name, columns: None }, at));
    }
    let close = closing(words, at)?;
    let mut columns = Vec::new();
    for part in words[at + 1..close].split(|token| token.is_symbol(",")) {
        let [column] = part else { return None };
        column.name()?;
        columns.push(column.text.to_owned());
    }
    Some((Table { name, columns: Some(columns) }, close + 1))
}

/// `[[WITH] (name [value], …)]`, or the words that were there before PostgreSQL 9.
fn options(sql: &str, rest: &[Token<'_>]) -> Result<Options, PgError> {
    let rest = match rest {
        [with, rest @ ..] if with.is("with") => rest,
        rest => rest,
    };
    let mut options = Options::default();
    if !rest.first().is_some_and(|token| token.is_symbol("(")) {
        old_options(sql, rest, &mut options)?;
        return Ok(options);
    }
    let close = closing(rest, 0).ok_or_else(|| not_understood(sql))?;
    if rest.get(close + 1).is_some_and(|token| token.is("where")) {
        return Err(PgError::unsupported("COPY … WHERE is not supported").hint("copy into a table of its own first"));
    }
    if close + 1 < rest.len() {
        return Err(not_understood(sql));
    }
    for part in rest[1..close].split(|token| token.is_symbol(",")) {
        let [name, value @ ..] = part else { return Err(not_understood(sql)) };
        let value = match value {
            [] => None,
            [value] => Some(option_value(*value)),
            _ => return Err(unknown_option(name.text)),
        };
        options.say(&name.name().ok_or_else(|| not_understood(sql))?, value)?;
    }
    Ok(options)
}

/// `[BINARY] [[USING] DELIMITERS 'x'] [DELIMITER [AS] 'x'] [NULL [AS] 'x'] [CSV] [HEADER] [QUOTE [AS] 'x'] …`
fn old_options(sql: &str, rest: &[Token<'_>], options: &mut Options) -> Result<(), PgError> {
    let mut rest = rest.iter().copied().peekable();
    while let Some(word) = rest.next() {
        match word.text.to_ascii_lowercase().as_str() {
            "csv" => options.say("format", Some("csv".into()))?,
            "binary" => options.say("format", Some("binary".into()))?,
            "header" => options.say("header", None)?,
            "where" => return Err(PgError::unsupported("COPY … WHERE is not supported")),
            "using" | "with" => {}
            name @ ("delimiter" | "delimiters" | "null" | "quote" | "escape" | "encoding") => {
                rest.next_if(|token| token.is("as"));
                let value = rest.next().filter(|token| matches!(token.kind, Kind::Text | Kind::Dollar));
                let value = value.ok_or_else(|| not_understood(sql))?;
                options.say(name.trim_end_matches('s'), Some(text_of(value)))?;
            }
            "force" | "freeze" => return Err(unknown_option(word.text)),
            _ => return Err(not_understood(sql)),
        }
    }
    Ok(())
}

fn option_value(token: Token<'_>) -> String {
    match token.kind {
        Kind::Text | Kind::Dollar => text_of(token),
        _ => token.name().unwrap_or_else(|| token.text.into()),
    }
}

impl Options {
    fn say(&mut self, name: &str, value: Option<String>) -> Result<(), PgError> {
        let place = match name {
            "format" => &mut self.format,
            "delimiter" => &mut self.delimiter,
            "null" => &mut self.null,
            "quote" => &mut self.quote,
            "escape" => &mut self.escape,
            "header" => {
                let header = match value.as_deref() {
                    Some(value) if value.eq_ignore_ascii_case("match") => Header::Match,
                    Some(value) => header_of(value)?,
                    None => Header::Names,
                };
                return self.header.replace(header).map_or(Ok(()), |_| Err(redundant()));
            }
            "encoding" => {
                let value = value.unwrap_or_default().to_ascii_lowercase();
                if matches!(value.as_str(), "utf8" | "utf-8" | "unicode") {
                    return Ok(());
                }
                return Err(PgError::unsupported("every encoding but UTF8 is not supported"));
            }
            _ => return Err(unknown_option(name)),
        };
        let value = value.ok_or_else(|| PgError::new(sqlstate::SYNTAX, format!("{name} requires a parameter")))?;
        place.replace(value).map_or(Ok(()), |_| Err(redundant()))
    }
}

fn header_of(value: &str) -> Result<Header, PgError> {
    let none = |_| PgError::new(sqlstate::SYNTAX, "header requires a Boolean value or \"match\"");
    Ok(if boolean("header", value).map_err(none)? { Header::Names } else { Header::None })
}

/// Puts defaults where nothing was said, and looks whether one goes with the other, as PostgreSQL does.
fn layout(said: Options, comes: bool) -> Result<Layout, PgError> {
    let is_csv = match said.format.as_deref() {
        None | Some("text") => false,
        Some("csv") => true,
        Some("binary") => return Err(binary()),
        Some(other) => return Err(bad(format!("COPY format \"{other}\" not recognized"))),
    };
    if !is_csv && (said.quote.is_some() || said.escape.is_some()) {
        return Err(PgError::unsupported("COPY quote and escape available only in CSV mode"));
    }
    if said.header == Some(Header::Match) && !comes {
        return Err(PgError::unsupported("cannot use \"match\" with HEADER in COPY TO"));
    }
    let byte = |name: &str, said: Option<&str>, default: u8| match said.map(str::as_bytes) {
        None => Ok(default),
        Some([one]) => Ok(*one),
        Some(_) => Err(PgError::unsupported(format!("COPY {name} must be a single one-byte character"))),
    };
    let delimiter = byte("delimiter", said.delimiter.as_deref(), if is_csv { b',' } else { b'\t' })?;
    let null = said.null.unwrap_or_else(|| if is_csv { "" } else { "\\N" }.into());
    let quote = byte("quote", said.quote.as_deref(), b'"')?;
    let escape = byte("escape", said.escape.as_deref(), quote)?;
    if matches!(delimiter, b'\r' | b'\n') {
        return Err(bad("COPY delimiter cannot be newline or carriage return"));
    }
    if null.contains(['\r', '\n']) {
        return Err(bad("COPY null representation cannot use newline or carriage return"));
    }
    if !is_csv && (delimiter.is_ascii_lowercase() || delimiter.is_ascii_digit() || b"\\.".contains(&delimiter)) {
        return Err(bad(format!("COPY delimiter cannot be \"{}\"", char::from(delimiter))));
    }
    if is_csv && delimiter == quote {
        return Err(bad("COPY delimiter and quote must be different"));
    }
    if null.as_bytes().contains(&delimiter) {
        return Err(PgError::unsupported("COPY delimiter must not appear in the NULL specification"));
    }
    if is_csv && null.as_bytes().contains(&quote) {
        return Err(PgError::unsupported("CSV quote character must not appear in the NULL specification"));
    }
    Ok(Layout { is_csv, delimiter, quote, escape, null, header: said.header.unwrap_or(Header::None) })
}

fn bad(text: impl Into<String>) -> PgError {
    PgError::new(sqlstate::BAD_SETTING, text)
}

fn binary() -> PgError {
    PgError::unsupported("COPY in the format BINARY is not supported").hint("use FORMAT text or csv")
}

fn redundant() -> PgError {
    PgError::new(sqlstate::SYNTAX, "conflicting or redundant options")
}

fn unknown_option(name: &str) -> PgError {
    let name = name.to_ascii_lowercase();
    if matches!(name.as_str(), "force" | "force_quote" | "force_not_null" | "force_null" | "freeze") {
        return PgError::unsupported(format!("the option {name} of COPY is not supported"));
    }
    PgError::new(sqlstate::SYNTAX, format!("option \"{name}\" not recognized"))
}

fn not_understood(sql: &str) -> PgError {
    let excerpt: String = sql.chars().take(60).collect();
    PgError::new(sqlstate::SYNTAX, format!("\"{excerpt}\" is not understood as a COPY"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_statement_and_any_lines_are_read_or_refused(
            sql in r"copy (t|\(|\)|,|a|from|to|stdin|with|csv|null|header|'|'x'|as|\.| |é|\PC){0,12}",
            lines in prop::collection::vec(prop::sample::select(b"\\.x1\"\"',\t\r\n\nN\xff".to_vec()), 0..40),
            is_csv in any::<bool>(),
        ) {
            let _ = copy(&sql);
            let format = if is_csv { "csv" } else { "text" };
            let layout = copy(&format!("copy t from stdin (format {format})")).unwrap().layout;
            let columns = ["a".to_owned(), "b".to_owned()];
            if let Ok(rows) = read(&lines, &layout, &columns) {
                prop_assert!(rows.iter().all(|(_, row)| row.len() == columns.len()));
            }
        }
    }
}
