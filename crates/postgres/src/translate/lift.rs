//! Values that stand in a statement become its parameters.
//!
//! Drivers that bind no parameters write each value into the text, so that every text is a new one, and the replicas
//! would compile each of them. With its values apart, a statement is the same text each time, and is compiled once.
//!
//! A value is taken out only where SQLite treats a literal and a parameter alike: behind SET, behind WHERE, and in the
//! rows of an INSERT. Not in a list of columns or behind GROUP BY and ORDER BY, where a number may be a place and
//! expressions are compared as they are written. So the first word that may lead there ends it. What is not an integer
//! and not a text stays, too: how SQLite reads a fraction is its own business.

use crate::tokens::{Kind, Token, text_of, tokens};
use bezant_sql::{PARAMETERS_MAX, Value};

/// Whatever may bring other things than values.
const ENDS: &[&str] = &[
    "select",
    "as",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "union",
    "except",
    "intersect",
    "over",
    "on",
    "returning",
    "window",
    "values",
    "from",
];

/// A statement in SQLite's words, without parameters, and the values that were in it: they are its parameters.
pub(super) fn lift(sql: &str) -> (String, Vec<Value>) {
    let (mut lifted, mut values) = (String::with_capacity(sql.len()), Vec::new());
    let all = tokens(sql);
    let begins: &[&str] = match all.first() {
        Some(first) if first.is("insert") => &["values"],
        Some(first) if first.is_any(&["select", "update", "delete"]) => &["set", "where"],
        _ => &[],
    };
    let mut tokens = all.iter();
    for token in tokens.by_ref() {
        lifted.push_str(token.text);
        if token.is_any(begins) {
            break;
        }
    }
    let mut is_over = false;
    for token in tokens {
        is_over |= token.is_any(ENDS);
        match value(*token).filter(|_| !is_over && values.len() < PARAMETERS_MAX) {
            Some(value) => {
                values.push(value);
                lifted.push_str(&format!("?{}", values.len()));
            }
            None => lifted.push_str(token.text),
        }
    }
    (lifted, values)
}

/// The value that a token is, if SQLite could take nothing else for it.
fn value(token: Token<'_>) -> Option<Value> {
    match token.kind {
        Kind::Number if token.text.bytes().all(|byte| byte.is_ascii_digit()) => {
            token.text.parse().ok().map(Value::Integer)
        }
        Kind::Text if token.text.starts_with('\'') => Some(Value::Text(text_of(token))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_parameters_where_they_are_no_more_than_values() {
        let text = |text: &str| Value::Text(text.into());
        let number = Value::Integer;
        for (sql, wanted, values) in [
            (
                "UPDATE \"t\" SET \"i\" = pg_int_add(\"t\".\"i\", 12, 32) WHERE (\"t\".\"id\" = 7)",
                "UPDATE \"t\" SET \"i\" = pg_int_add(\"t\".\"i\", ?1, ?2) WHERE (\"t\".\"id\" = ?3)",
                vec![number(12), number(32), number(7)],
            ),
            (
                "INSERT INTO \"t\"(\"a\", \"b\") VALUES (-5, 'it''s'), (NULL, X'00') RETURNING 1 AS \"a\"",
                "INSERT INTO \"t\"(\"a\", \"b\") VALUES (-?1, ?2), (NULL, X'00') RETURNING 1 AS \"a\"",
                vec![number(5), text("it's")],
            ),
            (
                "SELECT 1 AS \"a\", 'x' AS \"where\" FROM \"t\" WHERE (\"t\".\"a\" = 3) ORDER BY 1 LIMIT 2",
                "SELECT 1 AS \"a\", 'x' AS \"where\" FROM \"t\" WHERE (\"t\".\"a\" = ?1) ORDER BY 1 LIMIT 2",
                vec![number(3)],
            ),
            (
                "SELECT \"a\" FROM \"t\" WHERE (\"a\" > 1.5) AND (\"a\" < 1e3) AND (\"b\" IN (SELECT 1 FROM \"u\"))",
                "SELECT \"a\" FROM \"t\" WHERE (\"a\" > 1.5) AND (\"a\" < 1e3) AND (\"b\" IN (SELECT 1 FROM \"u\"))",
                vec![],
            ),
            ("DELETE FROM \"t\"", "DELETE FROM \"t\"", vec![]),
            ("SELECT 1 AS \"a\" UNION SELECT 2", "SELECT 1 AS \"a\" UNION SELECT 2", vec![]),
            ("INSERT INTO \"t\" SELECT 5 WHERE 1", "INSERT INTO \"t\" SELECT 5 WHERE 1", vec![]),
            (
                "DELETE FROM \"t\" WHERE (\"a\" = 9223372036854775808) OR (\"a\" = 9223372036854775807)",
                "DELETE FROM \"t\" WHERE (\"a\" = 9223372036854775808) OR (\"a\" = ?1)",
                vec![number(i64::MAX)],
            ),
            ("WITH \"x\" AS (SELECT 1) SELECT 1 WHERE 5", "WITH \"x\" AS (SELECT 1) SELECT 1 WHERE 5", vec![]),
        ] {
            assert_eq!(lift(sql), (wanted.into(), values), "{sql}");
        }
    }
}
