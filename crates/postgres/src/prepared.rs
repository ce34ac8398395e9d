//! PREPARE and EXECUTE as statements. What is given to a statement are constants: whatever else would have to be asked
//! for first.

use crate::error::{PgError, sqlstate};
use crate::plan::{Constant, Plan};
use crate::rewrite::verb;
use crate::tokens::{Kind, Token, text_of, tokens};
use crate::types;

fn syntax(sql: &str) -> PgError {
    PgError::new(sqlstate::SYNTAX, format!("syntax error: {sql} is not understood"))
}

/// `PREPARE name [(type, …)] AS statement`
pub(crate) fn prepare(sql: &str) -> Result<Plan, PgError> {
    let all = tokens(sql);
    let Some(place) = all.iter().position(|token| token.is("as")) else { return Err(syntax("PREPARE")) };
    let head: Vec<Token<'_>> = all[..place].iter().copied().filter(Token::is_solid).collect();
    let statement: String = all[place + 1..].iter().map(|token| token.text).collect();
    let (name, listed) = match &head[..] {
        [_, name] => (name, &[][..]),
        [_, name, open, listed @ .., close] if open.is_symbol("(") && close.is_symbol(")") => (name, listed),
        _ => return Err(syntax("PREPARE")),
    };
    let name = name.name().ok_or_else(|| syntax("PREPARE"))?;
    let mut types = Vec::new();
    for listed in listed.split(|token| token.is_symbol(",")).filter(|_| !listed.is_empty()) {
        let words: Vec<&str> = listed.iter().map(|token| token.text).collect();
        let words = words.join(" ");
        let none = || PgError::new("42704", format!("type \"{words}\" does not exist"));
        types.push(types::by_name(&words).ok_or_else(none)?);
    }
    if !matches!(verb(&statement).as_str(), "select" | "values" | "insert" | "update" | "delete") {
        return Err(PgError::new(sqlstate::SYNTAX, "only SELECT, VALUES, INSERT, UPDATE and DELETE can be prepared"));
    }
    Ok(Plan::Prepare { name, types, sql: statement })
}

/// `EXECUTE name [(constant, …)]`, from behind the first word.
pub(crate) fn execute(rest: &[Token<'_>]) -> Result<Plan, PgError> {
    let (name, listed) = match rest {
        [name] => (name, &[][..]),
        [name, open, listed @ .., close] if open.is_symbol("(") && close.is_symbol(")") => (name, listed),
        _ => return Err(syntax("EXECUTE")),
    };
    let name = name.name().ok_or_else(|| syntax("EXECUTE"))?;
    let listed = listed.split(|token| token.is_symbol(",")).filter(|_| !listed.is_empty());
    let values = listed.map(constant).collect::<Result<_, _>>()?;
    Ok(Plan::Execute { name, values })
}

fn constant(tokens: &[Token<'_>]) -> Result<Constant, PgError> {
    let others = || {
        PgError::unsupported("EXECUTE with an expression is not supported")
            .hint("give it constants, numbers as PostgreSQL shows them, or SELECT the value first")
    };
    Ok(match tokens {
        [only] if only.is("null") => Constant::Null,
        [only] if only.is_any(&["true", "false"]) => Constant::Typed(only.text.to_ascii_lowercase()),
        [only] if matches!(only.kind, Kind::Text | Kind::Dollar) && only.text.starts_with(['\'', '$']) => {
            Constant::Text(text_of(*only))
        }
        [only] if is_shown(only) => Constant::Typed(only.text.into()),
        [sign, only] if sign.is_symbol("-") && is_shown(only) && only.text.contains(|c| ('1'..='9').contains(&c)) => {
            Constant::Typed(format!("-{}", only.text))
        }
        _ => return Err(others()),
    })
}

/// Whether a number is written as it is shown, whatever type it gets.
fn is_shown(token: &Token<'_>) -> bool {
    let (whole, fraction) = token.text.split_once('.').unwrap_or((token.text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    token.kind == Kind::Number && is_digits(whole) && is_digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::understand::plan as of;

    #[test]
    fn statements_are_prepared_with_types_and_carried_out_with_constants() {
        let prepared =
            |types: &[u32], sql: &str| Plan::Prepare { name: "p".into(), types: types.into(), sql: sql.into() };
        assert_eq!(of("prepare p as select 1"), Ok(prepared(&[], " select 1")));
        let wanted = prepared(&[types::oid::INT4, types::oid::FLOAT8], " select $1, $2");
        assert_eq!(of("PREPARE p (int, double precision) AS select $1, $2"), Ok(wanted));
        let typed = |text: &str| Constant::Typed(text.into());
        let values = vec![Constant::Null, Constant::Text("it's".into()), typed("-1.50"), typed("true")];
        assert_eq!(of("execute p(null, 'it''s', -1.50, TRUE)"), Ok(Plan::Execute { name: "p".into(), values }));
        assert_eq!(of("execute p"), Ok(Plan::Execute { name: "p".into(), values: Vec::new() }));
        for sql in [
            "prepare p",
            "prepare p(nope) as select 1",
            "prepare p as create table t(a int)",
            "prepare transaction 'x'",
        ] {
            assert!(of(sql).is_err(), "{sql}");
        }
        for sql in [
            "execute p(1 + 1)",
            "execute p(007)",
            "execute p(1e3)",
            "execute p(-0)",
            "execute p(1,)",
            "execute p(E'a')",
        ] {
            assert!(of(sql).is_err(), "{sql}");
        }
    }
}
