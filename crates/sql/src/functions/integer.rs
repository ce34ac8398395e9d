//! Integers of 16, 32 and 64 bits, and truth values.

use super::call::{Arguments, Outcome, refuse, truth};
use super::input;
use crate::error::ErrorKind;
use rusqlite::types::Value;

/// The name of the type with so many bits.
const fn name(bits: i64) -> &'static str {
    match bits {
        16 => "smallint",
        32 => "integer",
        _ => "bigint",
    }
}

/// A number if it has room in so many bits.
pub(super) fn fit(number: Option<i128>, bits: i64) -> Outcome {
    let fits = |number: &i128| match bits {
        16 => i16::try_from(*number).is_ok(),
        32 => i32::try_from(*number).is_ok(),
        _ => true,
    };
    match number.filter(fits).and_then(|number| i64::try_from(number).ok()) {
        Some(number) => Ok(Value::Integer(number)),
        None => refuse(ErrorKind::OutOfRange, format!("{} out of range", name(bits))),
    }
}

/// A text as an integer: digits with a sign and blanks around.
pub(super) fn input(arguments: &Arguments<'_>, bits: i64) -> Outcome {
    let text = arguments.text(0)?;
    let trimmed = text.trim_start_matches(input::is_blank);
    let (negative, digits) = input::signed(trimmed);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let mut number = 0_i64;
    for digit in digits.bytes().map(|byte| i64::from(byte - b'0')) {
        // Counted below zero, where there is room for one more.
        let next = number.checked_mul(10).and_then(|number| number.checked_sub(digit));
        let signed = |number: i64| if negative { Some(number) } else { number.checked_neg() };
        match next.and_then(signed).map(|signed| fit(Some(signed.into()), bits)) {
            Some(Ok(_)) => number = next.unwrap_or_default(),
            _ => {
                let message = format!("value \"{text}\" is out of range for type {}", name(bits));
                return refuse(ErrorKind::OutOfRange, message);
            }
        }
    }
    if digits.is_empty() || !rest.trim_start_matches(input::is_blank).is_empty() {
        return input::bad_text(name(bits), &text);
    }
    Ok(Value::Integer(if negative { number } else { -number }))
}

/// What both arguments of an operator are, and the bits of its type.
fn operands(arguments: &Arguments<'_>) -> Outcome<(i128, i128, i64)> {
    Ok((arguments.integer(0)?.into(), arguments.integer(1)?.into(), arguments.integer(2)?))
}

pub(super) fn add(arguments: &Arguments<'_>) -> Outcome {
    let (left, right, bits) = operands(arguments)?;
    fit(left.checked_add(right), bits)
}

pub(super) fn sub(arguments: &Arguments<'_>) -> Outcome {
    let (left, right, bits) = operands(arguments)?;
    fit(left.checked_sub(right), bits)
}

pub(super) fn mul(arguments: &Arguments<'_>) -> Outcome {
    let (left, right, bits) = operands(arguments)?;
    fit(left.checked_mul(right), bits)
}

pub(super) fn div(arguments: &Arguments<'_>) -> Outcome {
    let (left, right, bits) = operands(arguments)?;
    if right == 0 {
        return by_zero();
    }
    fit(left.checked_div(right), bits)
}

pub(super) fn modulo(arguments: &Arguments<'_>) -> Outcome {
    let (left, right, bits) = operands(arguments)?;
    if right == 0 {
        return by_zero();
    }
    fit(left.checked_rem(right), bits)
}

pub(super) fn neg(arguments: &Arguments<'_>) -> Outcome {
    fit(Some(-i128::from(arguments.integer(0)?)), arguments.integer(1)?)
}

pub(super) fn abs(arguments: &Arguments<'_>) -> Outcome {
    fit(Some(i128::from(arguments.integer(0)?).abs()), arguments.integer(1)?)
}

/// Nothing can be divided by zero.
pub(super) fn by_zero<T>() -> Outcome<T> {
    refuse(ErrorKind::DivisionByZero, "division by zero")
}

/// A text as a truth value: a beginning of a word that no other word has.
pub(super) fn in_bool(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    let word = text.trim_matches(input::is_blank).to_ascii_lowercase();
    let begins = |whole: &str, least: usize| word.len() >= least && whole.starts_with(word.as_str());
    let is_true = begins("true", 1) || begins("yes", 1) || word == "on" || word == "1";
    let is_false = begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0";
    if !is_true && !is_false {
        return input::bad_text("boolean", &text);
    }
    Ok(truth(is_true))
}

pub(super) fn out_bool(arguments: &Arguments<'_>) -> Outcome {
    let word = if arguments.integer(0)? == 0 { "false" } else { "true" };
    Ok(Value::Text(word.into()))
}

pub(super) fn to_bool(arguments: &Arguments<'_>) -> Outcome {
    Ok(truth(arguments.integer(0)? != 0))
}

/// So many rows where one is wanted.
pub(super) fn only(arguments: &Arguments<'_>) -> Outcome {
    match arguments.integer(0)? {
        2.. => refuse(ErrorKind::ManyRows, "more than one row returned by a subquery used as an expression"),
        rows => Ok(Value::Integer(rows)),
    }
}

/// So many rows at most, or that are left out, as the clause of the second argument says.
pub(super) fn limit(arguments: &Arguments<'_>) -> Outcome {
    let clause = arguments.text(1)?;
    match arguments.integer(0)? {
        ..0 => {
            let kind = if clause == "OFFSET" { ErrorKind::BadOffset } else { ErrorKind::BadLimit };
            refuse(kind, format!("{clause} must not be negative"))
        }
        rows => Ok(Value::Integer(rows)),
    }
}

pub(super) fn of_bool(arguments: &Arguments<'_>) -> Outcome {
    Ok(truth(arguments.integer(0)? != 0))
}
