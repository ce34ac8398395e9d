//! Floating-point numbers: IEEE arithmetic, and Rust's own readers and printers, which are the same on all machines.
//!
//! There is no NaN, since SQLite has none: what gives one is refused. Zero has no sign.

use super::call::{Arguments, Outcome, refuse};
use super::shortest::{Width, spell, spell_real};
use super::{input, integer};
use crate::error::ErrorKind;
use rusqlite::types::Value;

fn compute(width: Width, left: f64, right: f64, short: fn(f32, f32) -> f32, long: fn(f64, f64) -> f64) -> f64 {
    match width {
        Width::Four => f64::from(short(left as f32, right as f32)),
        Width::Eight => long(left, right),
    }
}

/// A sum.
pub(super) fn sum(width: Width, left: f64, right: f64) -> Outcome<f64> {
    checked(compute(width, left, right, |a, b| a + b, |a, b| a + b), left, right)
}

/// What is no number is refused.
pub(super) fn no_number<T>() -> Outcome<T> {
    refuse(ErrorKind::NotAllowed, "NaN is no number of this database")
}

pub(super) fn overflow<T>() -> Outcome<T> {
    refuse(ErrorKind::OutOfRange, "value out of range: overflow")
}

fn underflow<T>() -> Outcome<T> {
    refuse(ErrorKind::OutOfRange, "value out of range: underflow")
}

/// A result that is infinite only if an argument is.
fn checked(result: f64, left: f64, right: f64) -> Outcome<f64> {
    if result.is_nan() {
        return no_number();
    }
    if result.is_infinite() && left.is_finite() && right.is_finite() { overflow() } else { Ok(result) }
}

fn operands(arguments: &Arguments<'_>) -> Outcome<(f64, f64)> {
    Ok((arguments.real(0)?, arguments.real(1)?))
}

pub(super) fn add(arguments: &Arguments<'_>, width: Width) -> Outcome {
    let (left, right) = operands(arguments)?;
    sum(width, left, right).map(Value::Real)
}

pub(super) fn sub(arguments: &Arguments<'_>, width: Width) -> Outcome {
    let (left, right) = operands(arguments)?;
    checked(compute(width, left, right, |a, b| a - b, |a, b| a - b), left, right).map(Value::Real)
}

pub(super) fn mul(arguments: &Arguments<'_>, width: Width) -> Outcome {
    let (left, right) = operands(arguments)?;
    let result = checked(compute(width, left, right, |a, b| a * b, |a, b| a * b), left, right)?;
    if result == 0.0 && left != 0.0 && right != 0.0 { underflow() } else { Ok(Value::Real(result)) }
}

pub(super) fn div(arguments: &Arguments<'_>, width: Width) -> Outcome {
    let (left, right) = operands(arguments)?;
    if right == 0.0 {
        return integer::by_zero();
    }
    let result = compute(width, left, right, |a, b| a / b, |a, b| a / b);
    let result = checked(result, left, if right.is_infinite() { 0.0 } else { right })?;
    let vanishes = result == 0.0 && left != 0.0 && right.is_finite();
    if vanishes { underflow() } else { Ok(Value::Real(result)) }
}

pub(super) fn neg(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Real(-arguments.real(0)?))
}

pub(super) fn abs(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Real(arguments.real(0)?.abs()))
}

pub(super) fn round(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Real(arguments.real(0)?.round_ties_even()))
}

/// IEEE 754 says every bit of a square root, unlike those of powers and logarithms.
pub(super) fn sqrt(arguments: &Arguments<'_>) -> Outcome {
    let number = arguments.real(0)?;
    if number < 0.0 {
        return refuse(ErrorKind::BadPower, "cannot take square root of a negative number");
    }
    Ok(Value::Real(number.sqrt()))
}

pub(super) fn trunc(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Real(arguments.real(0)?.trunc()))
}

pub(super) fn ceil(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Real(arguments.real(0)?.ceil()))
}

pub(super) fn floor(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Real(arguments.real(0)?.floor()))
}

/// Any number as a `real`.
pub(super) fn to_float4(arguments: &Arguments<'_>) -> Outcome {
    let number = arguments.real(0)?;
    let short = Width::Four.round(number);
    match short {
        _ if short.is_infinite() && number.is_finite() => overflow(),
        _ if short == 0.0 && number != 0.0 => underflow(),
        _ => Ok(Value::Real(short)),
    }
}

/// A number as an integer: halves go to the even one.
pub(super) fn to_integer(number: f64, bits: i64) -> Outcome {
    let rounded = number.round_ties_even();
    // Above this there is no integer of any type, and below it the conversion is exact.
    let fits = rounded.abs() <= 9_223_372_036_854_775_808.0;
    integer::fit(fits.then_some(rounded as i128), bits)
}

/// The number that a text is, of the type.
pub(super) fn parse(text: &str, width: Width) -> Outcome<f64> {
    let trimmed = text.trim_matches(input::is_blank);
    let (negative, number) = input::signed(trimmed);
    let is = |word: &str| number.eq_ignore_ascii_case(word);
    if is("inf") || is("infinity") {
        return Ok(if negative { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    if is("nan") {
        return no_number();
    }
    if number.starts_with("0x") || number.starts_with("0X") {
        return refuse(ErrorKind::NotAllowed, "floating-point numbers in hexadecimal are not supported");
    }
    let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '.') && !number.contains('_');
    let parsed = match width {
        Width::Four => trimmed.parse::<f32>().map(f64::from),
        Width::Eight => trimmed.parse::<f64>(),
    };
    let (true, Ok(parsed)) = (is_number, parsed) else { return input::bad_text(width.name(), text) };
    let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
    let vanishes = parsed == 0.0 && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if vanishes || parsed.is_infinite() {
        let message = format!("\"{trimmed}\" is out of range for type {}", width.name());
        return refuse(ErrorKind::OutOfRange, message);
    }
    Ok(parsed)
}

pub(super) fn in_float4(arguments: &Arguments<'_>) -> Outcome {
    parse(&arguments.text(0)?, Width::Four).map(Value::Real)
}

pub(super) fn in_float8(arguments: &Arguments<'_>) -> Outcome {
    parse(&arguments.text(0)?, Width::Eight).map(Value::Real)
}

pub(super) fn out_float4(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Text(spell_real(arguments.real(0)? as f32)))
}

pub(super) fn out_float8(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Text(spell(arguments.real(0)?)))
}
