//! Floating-point numbers: IEEE arithmetic, and Rust's own readers and printers, which are the same on all machines.
//!
//! There is no NaN, since SQLite has none: what gives one is refused. Zero has no sign.

use super::numeric::{Decimal, canonical, power};
use super::{Arguments, Outcome, input, integer, refuse};
use crate::error::ErrorKind;
use num_bigint::BigInt;
use rusqlite::types::Value;

/// The digits that a decimal of a number of this type gets.
const DIGITS_EIGHT: usize = 15;
const DIGITS_FOUR: usize = 6;

/// Which type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// `real`
    Four,
    /// `double precision`
    Eight,
}

impl Width {
    const fn name(self) -> &'static str {
        match self {
            Self::Four => "real",
            Self::Eight => "double precision",
        }
    }

    const fn digits(self) -> usize {
        match self {
            Self::Four => DIGITS_FOUR,
            Self::Eight => DIGITS_EIGHT,
        }
    }

    /// As a number of this type.
    fn round(self, number: f64) -> f64 {
        match self {
            Self::Four => f64::from(number as f32),
            Self::Eight => number,
        }
    }

    fn compute(self, left: f64, right: f64, short: fn(f32, f32) -> f32, long: fn(f64, f64) -> f64) -> f64 {
        match self {
            Self::Four => f64::from(short(left as f32, right as f32)),
            Self::Eight => long(left, right),
        }
    }

    /// A sum.
    pub(super) fn sum(self, left: f64, right: f64) -> Outcome<f64> {
        checked(self.compute(left, right, |a, b| a + b, |a, b| a + b), left, right)
    }
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
    width.sum(left, right).map(Value::Real)
}

pub(super) fn sub(arguments: &Arguments<'_>, width: Width) -> Outcome {
    let (left, right) = operands(arguments)?;
    checked(width.compute(left, right, |a, b| a - b, |a, b| a - b), left, right).map(Value::Real)
}

pub(super) fn mul(arguments: &Arguments<'_>, width: Width) -> Outcome {
    let (left, right) = operands(arguments)?;
    let result = checked(width.compute(left, right, |a, b| a * b, |a, b| a * b), left, right)?;
    if result == 0.0 && left != 0.0 && right != 0.0 { underflow() } else { Ok(Value::Real(result)) }
}

pub(super) fn div(arguments: &Arguments<'_>, width: Width) -> Outcome {
    let (left, right) = operands(arguments)?;
    if right == 0.0 {
        return integer::by_zero();
    }
    let result = width.compute(left, right, |a, b| a / b, |a, b| a / b);
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
fn parse(text: &str, width: Width) -> Outcome<f64> {
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
    let number = arguments.real(0)? as f32;
    let shortest = Shortest::of(f64::from(number), Width::Four);
    Ok(Value::Text(shortest.text(DIGITS_FOUR as i32)))
}

pub(super) fn out_float8(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Text(spell(arguments.real(0)?)))
}

/// A number as PostgreSQL prints it.
pub(super) fn spell(number: f64) -> String {
    Shortest::of(number, Width::Eight).text(DIGITS_EIGHT as i32)
}

/// The fewest digits that only this number is read from: `digits[0].digits[1..]` times ten to the exponent.
struct Shortest {
    negative: bool,
    digits: String,
    exponent: i32,
    special: Option<&'static str>,
}

impl Shortest {
    fn of(number: f64, width: Width) -> Self {
        let special = match number {
            _ if number.is_nan() => Some("NaN"),
            _ if number.is_infinite() => Some("Infinity"),
            _ => None,
        };
        let absolute = number.abs();
        let printed = match width {
            Width::Four => format!("{:e}", absolute as f32),
            Width::Eight => format!("{absolute:e}"),
        };
        let (mut digits, mut exponent) = taken_apart(&printed);
        // Of two that are as short and as near, the even one.
        let (even, even_exponent) = taken_apart(&format!("{absolute:.*e}", digits.len() - 1));
        let read = format!("{even}e{}", even_exponent + 1 - even.len() as i32).parse::<f64>();
        if special.is_none() && read.is_ok_and(|read| width.round(read) == absolute) {
            (digits, exponent) = (even, even_exponent);
        }
        // What is as near to the next number is read as this one only because it is even; PostgreSQL goes on.
        let mut length = digits.len();
        while special.is_none() && is_between(absolute, &digits, exponent, width) {
            length += 1;
            (digits, exponent) = taken_apart(&format!("{absolute:.*e}", length - 1));
        }
        Self { negative: number < 0.0, digits, exponent, special }
    }

    /// With an exponent from ten to `scientific` on.
    fn text(&self, scientific: i32) -> String {
        let Self { negative, digits, exponent, special } = self;
        let sign = if *negative { "-" } else { "" };
        if let Some(special) = special {
            return format!("{sign}{special}");
        }
        if (-4..scientific).contains(exponent) {
            let whole = (*exponent).max(-1) + 1;
            let zeros = (-1 - exponent).max(0) as usize;
            let digits = format!("{:0<zeros$}{digits}", "");
            let digits = format!("{digits:0<width$}", width = whole as usize);
            let (whole, fraction) = digits.split_at(whole as usize);
            let whole = if whole.is_empty() { "0" } else { whole };
            let point = if fraction.is_empty() { "" } else { "." };
            return format!("{sign}{whole}{point}{fraction}");
        }
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if *exponent < 0 { '-' } else { '+' };
        format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs())
    }
}

/// Digits and exponent of Rust's `d.ddde±d`; zeros at the end are not kept.
fn taken_apart(printed: &str) -> (String, i32) {
    let (mantissa, exponent) = printed.split_once('e').unwrap_or((printed, "0"));
    let digits = mantissa.replace('.', "");
    let digits = digits.trim_end_matches('0');
    (if digits.is_empty() { "0".into() } else { digits.to_owned() }, exponent.parse().unwrap_or(0))
}

/// Whether a whole number is as far from this floating-point number as from the next. Only large ones can be: what has
/// digits behind the point has more of them between two numbers than are ever needed.
fn is_between(number: f64, digits: &str, exponent: i32, width: Width) -> bool {
    let (least, next) = match width {
        Width::Four => (f64::from(1_u32 << 24), f64::from((number as f32).next_up())),
        Width::Eight => ((1_u64 << 53) as f64, number.next_up()),
    };
    let zeros = exponent + 1 - digits.len() as i32;
    if number < least || !number.is_finite() || zeros < 0 || exponent > 40 {
        return false;
    }
    let previous = match width {
        Width::Four => f64::from((number as f32).next_down()),
        Width::Eight => number.next_down(),
    };
    let spelled = BigInt::parse_bytes(digits.as_bytes(), 10).unwrap_or_default() * power(zeros as u32) * 2;
    let exact = |number: f64| BigInt::parse_bytes(format!("{number:.0}").as_bytes(), 10).unwrap_or_default();
    let this = exact(number);
    [previous, next].into_iter().any(|other| other.is_finite() && &this + exact(other) == spelled)
}

/// A number as an exact decimal, with as many digits as the type always has.
pub(super) fn to_decimal(number: f64, width: Width) -> Outcome<String> {
    if !number.is_finite() {
        return refuse(ErrorKind::NotAllowed, "NaN and infinity are no numbers of this database");
    }
    let (digits, exponent) = taken_apart(&format!("{:.*e}", width.digits() - 1, number.abs()));
    let sign = if number < 0.0 { "-" } else { "" };
    let (first, rest) = digits.split_at(1);
    // Zeros that the exponent makes do not count as digits behind the point.
    canonical(&format!("{sign}{first}.{rest}e{exponent}"))
}

pub(super) fn to_numeric4(arguments: &Arguments<'_>) -> Outcome {
    to_decimal(arguments.real(0)?, Width::Four).map(Value::Text)
}

pub(super) fn to_numeric8(arguments: &Arguments<'_>) -> Outcome {
    to_decimal(arguments.real(0)?, Width::Eight).map(Value::Text)
}

pub(super) fn of_numeric4(arguments: &Arguments<'_>) -> Outcome {
    parse(&Decimal::of(arguments, 0)?.text()?, Width::Four).map(Value::Real)
}

pub(super) fn of_numeric8(arguments: &Arguments<'_>) -> Outcome {
    parse(&Decimal::of(arguments, 0)?.text()?, Width::Eight).map(Value::Real)
}
