//! How the end of a statement is told.

use crate::rewrite::verb;
use crate::tokens::tokens;

/// How the end of a statement is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// `SELECT` and the number of rows.
    Select,
    /// `INSERT 0` and the number of rows.
    Insert,
    /// `UPDATE` or `DELETE` and the number of rows.
    Changes(&'static str),
    /// Words, such as `CREATE TABLE`.
    Words(String),
}

impl Tag {
    /// By the statement's first words.
    pub(crate) fn of(sql: &str) -> Self {
        match verb(sql).as_str() {
            "select" | "values" | "explain" | "pragma" => Self::Select,
            "insert" | "replace" => Self::Insert,
            "update" => Self::Changes("UPDATE"),
            "delete" => Self::Changes("DELETE"),
            "truncate" => Self::Words("TRUNCATE TABLE".into()),
            "comment" => Self::Words("COMMENT".into()),
            _ => Self::Words(words(sql)),
        }
    }

    /// As clients are told.
    pub(crate) fn text(&self, rows: usize, changes: u64) -> String {
        match self {
            Self::Select => format!("SELECT {rows}"),
            Self::Insert => format!("INSERT 0 {changes}"),
            Self::Changes(word) => format!("{word} {changes}"),
            Self::Words(words) => words.clone(),
        }
    }
}

/// `CREATE TABLE` of `create unlogged table if not exists …`.
fn words(sql: &str) -> String {
    const KINDS: [&str; 5] = ["table", "index", "view", "trigger", "schema"];
    let tokens = tokens(sql);
    let first = tokens.iter().find(|token| token.is_solid()).map_or("", |token| token.text);
    let kind = tokens.iter().filter(|token| token.is_solid()).take(5).find(|token| token.is_any(&KINDS));
    let kind = kind.map(|token| format!(" {}", token.text)).unwrap_or_default();
    format!("{first}{kind}").to_uppercase()
}
