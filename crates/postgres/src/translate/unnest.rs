//! `UNNEST` of arrays that are written out, in FROM: how Django inserts many rows. There are no arrays here; what their
//! elements make is what `VALUES` makes of them.

use super::parse::parse;
use super::refusal::unsupported;
use crate::error::PgError;
use crate::types;
use sqlparser::ast::{Array, ArrayElemTypeDef, DataType, Expr, Query, Statement, Value};

/// The query that gives what `UNNEST` of these arrays gives: where one is shorter, NULL.
///
/// # Errors
/// If one is not written out, or not as an array.
pub(super) fn rows_of(arrays: &[Expr]) -> Result<Query, PgError> {
    let columns: Vec<Vec<String>> = arrays.iter().map(elements_of).collect::<Result<_, _>>()?;
    let count = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = |at: usize| -> String {
        let values: Vec<&str> = columns.iter().map(|column| column.get(at).map_or("NULL", String::as_str)).collect();
        format!("({})", values.join(", "))
    };
    if count == 0 {
        return Err(unsupported("UNNEST of an empty array in FROM"));
    }
    let rows: Vec<String> = (0..count).map(row).collect();
    match parse(&format!("VALUES {}", rows.join(", ")))? {
        Statement::Query(query) => Ok(*query),
        other => Err(unsupported(format!("{other} in FROM"))),
    }
}

/// The elements of an array, each with the casts that are around it.
fn elements_of(array: &Expr) -> Result<Vec<String>, PgError> {
    match array {
        Expr::Nested(inner) => elements_of(inner),
        Expr::Array(Array { elem, .. }) => Ok(elem.iter().map(ToString::to_string).collect()),
        Expr::Cast {
            expr,
            data_type: DataType::Array(ArrayElemTypeDef::SquareBracket(kind, _) | ArrayElemTypeDef::AngleBracket(kind)),
            format: None,
            ..
        } => {
            let mut expr = expr;
            while let Expr::Nested(inner) = &**expr {
                expr = inner;
            }
            let inner = match &**expr {
                Expr::Value(literal) => match &literal.value {
                    Value::SingleQuotedString(text) => written(text)?,
                    _ => return Err(unsupported(format!("UNNEST({array}) in FROM"))),
                },
                other => elements_of(other)?,
            };
            Ok(inner.iter().map(|element| format!("CAST({element} AS {kind})")).collect())
        }
        other => Err(unsupported(format!("UNNEST({other}) in FROM"))
            .hint("write the array out, or use VALUES, or send the rows one by one")),
    }
}

/// The elements of a text such as `{a,NULL,"b c"}`, as SQL.
fn written(text: &str) -> Result<Vec<String>, PgError> {
    let one = |element: Option<String>| element.map_or_else(|| "NULL".into(), |text| crate::tokens::quote(&text));
    Ok(types::elements(text)?.into_iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sql: &str) -> Result<String, &'static str> {
        let Ok(Statement::Query(query)) = parse(&format!("VALUES ({sql})")) else { panic!("{sql} is no SQL") };
        let sqlparser::ast::SetExpr::Values(values) = *query.body else { panic!("{sql}") };
        let row = values.rows.into_iter().next().expect("one row");
        rows_of(&row).map(|query| query.to_string()).map_err(|error| error.sqlstate)
    }

    #[test]
    fn arrays_that_are_written_out_are_rows() {
        assert_eq!(
            rows("('{\"it''s\",NULL}')::VARCHAR[], ('{1,2}'::INT2[])::INTEGER[], ARRAY[7, 8]"),
            Ok("VALUES (CAST('it''s' AS VARCHAR), CAST(CAST('1' AS INT2) AS INTEGER), 7), \
                (CAST(NULL AS VARCHAR), CAST(CAST('2' AS INT2) AS INTEGER), 8)"
                .into())
        );
        assert_eq!(rows("'{1,2,3}'::int[], '{a}'::text[]").map(|sql| sql.matches("NULL").count()), Ok(2));
        assert_eq!(rows("'{}'::int[]"), Err("0A000"));
        assert_eq!(rows("'{1'::int[]"), Err("22P02"));
        assert_eq!(rows("a"), Err("0A000"));
        assert_eq!(rows("'{1}'"), Err("0A000"));
    }
}
