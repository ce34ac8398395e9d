//! Literals whose type is known: what the gateway can say at once, and what is wrong with them.

use super::kinds::Type;
use crate::error::PgError;
use crate::tokens::quote;
use crate::types;
use std::fmt::Write as _;

/// Types whose values the gateway hands to SQLite as SQLite keeps them; others go there as text.
pub(super) const fn is_handed_over(kind: Type) -> bool {
    matches!(
        kind,
        Type::Bool
            | Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Float4
            | Type::Float8
            | Type::Text
            | Type::Varchar
            | Type::Bytea
            | Type::Any
    )
}

/// A text as SQLite's value of a type; `None`: the replicas find out.
///
/// # Errors
/// If it is none.
pub(super) fn fold(text: &str, to: Type) -> Result<Option<String>, PgError> {
    let bad = || types::invalid(text, to);
    Ok(Some(match to {
        Type::Int2 | Type::Int4 | Type::Int8 => types::integer_of(text, to)?.to_string(),
        Type::Bool => u8::from(types::bool_of(text).ok_or_else(bad)?).to_string(),
        Type::Text | Type::Varchar | Type::Any | Type::Unknown => quote(text),
        Type::Char => quote(text.trim_end_matches(' ')),
        Type::Bytea => {
            let mut sql = String::from("X'");
            let Some(bytes) = types::bytea(text) else { return Ok(None) };
            bytes.iter().for_each(|byte| write!(sql, "{byte:02X}").expect("a string takes everything"));
            sql + "'"
        }
        _ => return Ok(None),
    }))
}

/// A number of a statement as a `numeric`.
pub(super) fn numeric(text: &str) -> String {
    if text.contains(['e', 'E']) {
        return format!("pg_in_numeric('{text}')");
    }
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if whole == "0" && fraction.bytes().all(|byte| byte == b'0') { "" } else { sign };
    if fraction.is_empty() { format!("'{sign}{whole}'") } else { format!("'{sign}{whole}.{fraction}'") }
}

/// The type of a number as it is written.
pub(super) fn type_of_number(text: &str) -> Type {
    if text.contains(['.', 'e', 'E']) {
        return Type::Numeric;
    }
    match text.parse::<i64>() {
        Ok(number) if i32::try_from(number).is_ok() => Type::Int4,
        Ok(_) => Type::Int8,
        Err(_) => Type::Numeric,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_values_of_their_type_or_refused() {
        for (text, to, wanted) in [
            (" -12 ", Type::Int2, "-12"),
            ("yes", Type::Bool, "1"),
            ("it's", Type::Text, "'it''s'"),
            ("\\x00ff", Type::Bytea, "X'00FF'"),
            ("a\\000", Type::Bytea, "X'6100'"),
        ] {
            assert_eq!(fold(text, to).unwrap().as_deref(), Some(wanted), "{text}");
        }
        for (text, to, state) in [
            ("abc", Type::Int4, "22P02"),
            ("1.5", Type::Int4, "22P02"),
            ("99999", Type::Int2, "22003"),
            ("99999999999999999999", Type::Int8, "22003"),
            ("maybe", Type::Bool, "22P02"),
        ] {
            assert_eq!(fold(text, to).unwrap_err().sqlstate, state, "{text}");
        }
    }

    #[test]
    fn numbers_are_of_the_type_that_they_need() {
        assert_eq!(type_of_number("2147483647"), Type::Int4);
        assert_eq!(type_of_number("2147483648"), Type::Int8);
        assert_eq!(type_of_number("9223372036854775808"), Type::Numeric);
        assert_eq!(type_of_number("1e3"), Type::Numeric);
        for (text, wanted) in [("00.50", "'0.50'"), (".5", "'0.5'"), ("-0.0", "'0.0'"), ("7.", "'7'")] {
            assert_eq!(numeric(text), wanted);
        }
    }
}
