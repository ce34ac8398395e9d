//! `SELECT setval(pg_get_serial_sequence('t', 'a'), max("a")) FROM t`: how tools go on counting behind what is in a
//! table, after they have written numbers themselves. Here numbers always go on behind what is there, so nothing is
//! done, and the value is what PostgreSQL says that it is. No other value may be set: it would not hold.

use crate::rewrite::follows;
use crate::tokens::{Kind, Token};

/// The query that gives the value, if this is such a statement. `setval` of anything else is not.
pub(crate) fn counting_on(solid: &[Token<'_>]) -> Option<String> {
    let start = follows(solid, 0, &["select", "setval", "(", "pg_get_serial_sequence", "("])?;
    let [table, comma, column] = solid.get(start..start + 3)? else { return None };
    if table.kind != Kind::Text || !comma.is_symbol(",") || column.kind != Kind::Text {
        return None;
    }
    let value = follows(solid, start + 3, &[")", ","])?;
    let (mut depth, mut end, mut close) = (0_u32, None, None);
    for (at, token) in solid.iter().enumerate().skip(value) {
        match token.text {
            "(" => depth += 1,
            ")" if depth == 0 => {
                close = Some(at);
                break;
            }
            ")" => depth -= 1,
            "," if depth == 0 => end = Some(at),
            _ => {}
        }
    }
    let close = close?;
    let counted = &solid[value..end.unwrap_or(close)];
    let is_greatest = counted.iter().any(|token| token.is("max"));
    let rest = solid.get(close + 1..)?;
    if !is_greatest || !rest.first().is_some_and(|token| token.is("from")) {
        return None;
    }
    let words = |tokens: &[Token<'_>]| tokens.iter().map(|token| token.text).collect::<Vec<_>>().join(" ");
    Some(format!("SELECT CAST({} AS BIGINT) AS setval {}", words(counted), words(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn counting(sql: &str) -> Option<String> {
        let all = tokens(sql);
        let solid: Vec<Token<'_>> = all.into_iter().filter(Token::is_solid).collect();
        counting_on(&solid)
    }

    #[test]
    fn counting_goes_on_behind_the_greatest_and_nowhere_else() {
        let django =
            "SELECT setval(pg_get_serial_sequence('\"t\"','id'), coalesce(max(\"id\"), 1), max(\"id\") IS NOT null)
            FROM \"t\"";
        let wanted = "SELECT CAST(coalesce ( max ( \"id\" ) , 1 ) AS BIGINT) AS setval FROM \"t\"";
        assert_eq!(counting(django).as_deref(), Some(wanted));
        let short = "select setval(pg_get_serial_sequence('t', 'id'), max(id)) from t where a = ')'";
        assert_eq!(
            counting(short).as_deref(),
            Some("SELECT CAST(max ( id ) AS BIGINT) AS setval from t where a = ')'")
        );
        for sql in [
            "select setval(pg_get_serial_sequence('t', 'id'), 1000)",
            "select setval(pg_get_serial_sequence('t', 'id'), 1000) from t",
            "select setval('t_id_seq', max(id)) from t",
            "select setval(pg_get_serial_sequence('t', 'id'), max(id",
            "select 1",
        ] {
            assert_eq!(counting(sql), None, "{sql}");
        }
    }
}
