//! A text as one statement.

use crate::error::{PgError, sqlstate};
use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// How deep the parser goes; SQLite goes no deeper.
const DEPTH_MAX: usize = 100;

/// Parses it, and refuses more than one.
pub(super) fn parse(sql: &str) -> Result<Statement, PgError> {
    let parsed = Parser::new(&PostgreSqlDialect {})
        .with_recursion_limit(DEPTH_MAX)
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements());
    let mut statements = parsed.map_err(|error| {
        let text = error.to_string();
        let text = text.trim_start_matches("sql parser error: ");
        if text.contains("recursion") {
            return PgError::new("54001", "the statement is nested too deep");
        }
        PgError::new(sqlstate::SYNTAX, format!("syntax error: {text}"))
    })?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(PgError::new(sqlstate::SYNTAX, "syntax error: this is not one statement")),
    }
}
