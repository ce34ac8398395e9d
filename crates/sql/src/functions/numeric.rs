//! Exact decimals: texts of digits, computed with PostgreSQL's rules for the digits of a result.
//!
//! The canonical form is `-?digits[.digits]`, without leading zeros but one before the point, without `-0`. The digits
//! behind the point are the scale, zeros included. The digits themselves are `num-bigint`'s: whole numbers, so that
//! nothing depends on the machine.

use super::call::{Arguments, Outcome, refuse};
use super::digits::{DIGITS_MAX, power};
use super::shortest::{Width, taken_apart};
use super::{float, input, integer};
use crate::error::ErrorKind;
use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use rusqlite::types::{Value, ValueRef};
use std::cmp::Ordering;
use std::fmt;

/// Digits before the point, and behind it, above which PostgreSQL has no number either.
const WHOLE_MAX: i64 = 131_072;
const SCALE_MAX: i64 = 16_383;

/// The most digits behind the point that a type declares, or a quotient gets.
const DECLARED_MAX: i64 = 1_000;

/// The most digits behind the point that a number is rounded to.
const ROUNDED_MAX: i64 = 2_000;

/// Digits that a quotient has at least, and how many PostgreSQL keeps as one.
const QUOTIENT_DIGITS: i64 = 16;
const GROUP: i64 = 4;

/// A number: whole digits, and how many of them stand behind the point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) digits: BigInt,
    pub(super) scale: u32,
}

/// Refuses a number with more digits than we compute with.
fn bounded(digits: i64) -> Outcome<()> {
    if digits <= DIGITS_MAX as i64 {
        return Ok(());
    }
    refuse(ErrorKind::TooLarge, format!("a number has more than {DIGITS_MAX} digits"))
}

impl Decimal {
    /// Reads the canonical form.
    fn parse(text: &str) -> Outcome<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let (negative, whole) = match whole.strip_prefix('-') {
            Some(whole) => (true, whole),
            None => (false, whole),
        };
        bounded((whole.len() + fraction.len()) as i64)?;
        let digits = BigUint::parse_bytes([whole, fraction].concat().as_bytes(), 10);
        let (Some(digits), true) = (digits, is_canonical(text)) else {
            return input::bad_text("numeric", text);
        };
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        Ok(Self { digits: BigInt::from_biguint(sign, digits), scale: fraction.len() as u32 })
    }

    /// The argument of a function: a text, or a number that is stored as such.
    pub(super) fn of(arguments: &Arguments<'_>, number: usize) -> Outcome<Self> {
        match arguments.0.get_raw(number) {
            ValueRef::Integer(digits) => Ok(Self { digits: digits.into(), scale: 0 }),
            ValueRef::Real(value) => Self::parse(&of_float(value, Width::Eight)?),
            _ => Self::parse(&arguments.text(number)?),
        }
    }

    /// The digits with so many of them behind the point, which are no fewer than there are.
    pub(super) fn at(&self, scale: u32) -> BigInt {
        if scale == self.scale { self.digits.clone() } else { &self.digits * power(scale - self.scale) }
    }

    /// The same with so many digits behind the point, or none of so many before it; halves go away from zero.
    pub(super) fn rounded(&self, scale: i64) -> Self {
        self.cut(scale, |quotient, rest, unit| {
            let halves = rest.magnitude() * 2_u32;
            if halves < *unit.magnitude() {
                return quotient;
            }
            if rest.sign() == Sign::Minus { quotient - 1 } else { quotient + 1 }
        })
    }

    /// The same without the digits behind that place.
    fn truncated(&self, scale: i64) -> Self {
        self.cut(scale, |quotient, _, _| quotient)
    }

    /// The same with so many digits behind the point; `settle` decides from the quotient, the rest and the unit.
    fn cut(&self, scale: i64, settle: impl FnOnce(BigInt, &BigInt, &BigInt) -> BigInt) -> Self {
        let shown = scale.max(0) as u32;
        if shown >= self.scale && scale >= 0 {
            return Self { digits: self.at(shown), scale: shown };
        }
        let unit = power((i64::from(self.scale) - scale) as u32);
        let (quotient, rest) = self.digits.div_rem(&unit);
        let digits = settle(quotient, &rest, &unit);
        let digits = if scale < 0 { digits * power(scale.unsigned_abs() as u32) } else { digits };
        Self { digits, scale: shown }
    }

    /// The place of the first group of digits that is not zero, and what it is, as PostgreSQL groups them.
    fn weight(&self) -> (i64, u64) {
        if self.digits.sign() == Sign::NoSign {
            return (0, 0);
        }
        let digits = self.digits.magnitude().to_str_radix(10);
        let exponent = digits.len() as i64 - i64::from(self.scale) - 1;
        let length = exponent.rem_euclid(GROUP) as usize + 1;
        let first = format!("{digits:0<4}");
        (exponent.div_euclid(GROUP), first[..length].parse().unwrap_or(0))
    }

    /// A quotient, with as many digits as PostgreSQL gives.
    pub(super) fn divided(&self, by: &Self) -> Outcome<Self> {
        if by.digits.sign() == Sign::NoSign {
            return integer::by_zero();
        }
        let ((weight, first), (weight_by, first_by)) = (self.weight(), by.weight());
        let weight = weight - weight_by - i64::from(first <= first_by);
        let least = i64::from(self.scale.max(by.scale));
        let scale = (QUOTIENT_DIGITS - weight * GROUP).max(least).min(DECLARED_MAX);
        // One digit more: halves are rounded away from zero, so that the digits behind it decide nothing.
        let shift = scale + 1 + i64::from(by.scale) - i64::from(self.scale);
        let (over, under) = match u32::try_from(shift) {
            Ok(shift) => (&self.digits * power(shift), by.digits.clone()),
            Err(_) => (self.digits.clone(), &by.digits * power(shift.unsigned_abs() as u32)),
        };
        let quotient = over / under;
        Ok(Self { digits: quotient, scale: scale as u32 + 1 }.rounded(scale))
    }

    /// As it is stored.
    pub(super) fn text(&self) -> Outcome<String> {
        bounded(i64::from(self.scale))?;
        let text = self.to_string();
        bounded(text.bytes().filter(u8::is_ascii_digit).count() as i64)?;
        Ok(text)
    }

    /// The result of a function.
    pub(super) fn value(&self) -> Outcome {
        self.text().map(Value::Text)
    }

    /// The whole number next to it, halves away from zero, if it has room.
    fn integer(&self, bits: i64) -> Outcome {
        integer::fit(i128::try_from(self.rounded(0).digits).ok(), bits)
    }

    /// With the digits that a type allows.
    fn fit(&self, precision: i64, scale: i64) -> Outcome<Self> {
        if !(1..=DECLARED_MAX).contains(&precision) {
            let message = format!("NUMERIC precision {precision} must be between 1 and {DECLARED_MAX}");
            return refuse(ErrorKind::BadParameter, message);
        }
        if !(-DECLARED_MAX..=DECLARED_MAX).contains(&scale) {
            let message = format!("NUMERIC scale {scale} must be between -{DECLARED_MAX} and {DECLARED_MAX}");
            return refuse(ErrorKind::BadParameter, message);
        }
        let rounded = self.rounded(scale);
        // The digits before the point, or the zeros behind it, decide.
        let limit = precision - scale + i64::from(rounded.scale);
        let fits = |limit: u32| rounded.digits.magnitude() < power(limit).magnitude();
        if rounded.digits.sign() == Sign::NoSign || u32::try_from(limit).is_ok_and(fits) {
            return Ok(rounded);
        }
        refuse(ErrorKind::OutOfRange, "numeric field overflow")
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits.sign() == Sign::Minus { "-" } else { "" };
        let scale = self.scale as usize;
        let digits = format!("{:0>width$}", self.digits.magnitude().to_str_radix(10), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if fraction.is_empty() { "" } else { "." };
        write!(out, "{sign}{whole}{point}{fraction}")
    }
}

/// Whether a text is a number as it is stored.
fn is_canonical(text: &str) -> bool {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole)
        && fraction.is_none_or(are_digits)
        && (whole == "0" || !whole.starts_with('0'))
        && !(negative && unsigned.bytes().all(|byte| matches!(byte, b'0' | b'.')))
}

/// The order of numbers as they are stored. What is none follows all numbers, byte by byte.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    match (is_canonical(left), is_canonical(right)) {
        (true, true) => {}
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        (false, false) => return left.cmp(right),
    }
    match (left.strip_prefix('-'), right.strip_prefix('-')) {
        (None, None) => compare_unsigned(left, right),
        (Some(left), Some(right)) => compare_unsigned(right, left),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
    }
}

fn compare_unsigned(left: &str, right: &str) -> Ordering {
    let split = |text| -> (&str, &str) { str::split_once(text, '.').unwrap_or((text, "")) };
    let ((whole, fraction), (other_whole, other_fraction)) = (split(left), split(right));
    whole
        .len()
        .cmp(&other_whole.len())
        .then_with(|| whole.cmp(other_whole))
        .then_with(|| fraction.trim_end_matches('0').cmp(other_fraction.trim_end_matches('0')))
}

/// A number of PostgreSQL's as it is stored: with an exponent, odd zeros, blanks around it. Linear in the length of
/// the text and of the result, which is bounded before it is made.
pub(super) fn canonical(text: &str) -> Outcome<String> {
    let bad = || input::bad_text("numeric", text);
    let trimmed = text.trim_matches(input::is_blank);
    let (negative, number) = input::signed(trimmed);
    if is_special(number, trimmed) {
        return refuse(ErrorKind::NotAllowed, "NaN and infinity are no numbers of this database");
    }
    let whole = &number[..input::digits(number)];
    let rest = &number[whole.len()..];
    let fraction = rest.strip_prefix('.').map_or("", |rest| &rest[..input::digits(rest)]);
    let rest = if rest.starts_with('.') { &rest[1 + fraction.len()..] } else { rest };
    if whole.is_empty() && fraction.is_empty() {
        return bad();
    }
    let Some(exponent) = exponent(rest) else { return bad() };
    let overflow = || refuse(ErrorKind::OutOfRange, "value overflows numeric format");
    if exponent.abs() >= i64::from(i32::MAX / 2) {
        return overflow();
    }
    let all = [whole, fraction].concat();
    let digits = all.trim_start_matches('0');
    let scale = fraction.len() as i64 - exponent;
    let places = if digits.is_empty() { 0 } else { digits.len() as i64 - scale };
    let shown = scale.max(0);
    if places > WHOLE_MAX || shown > SCALE_MAX {
        return overflow();
    }
    bounded(places.max(1) + shown)?;
    Ok(spell(negative, digits, scale))
}

/// A number as it is stored, of digits without leading zeros, of which so many stand behind the point.
fn spell(negative: bool, digits: &str, scale: i64) -> String {
    let sign = if negative && !digits.is_empty() { "-" } else { "" };
    let behind = scale.max(0) as usize;
    let zeros = if digits.is_empty() { 0 } else { scale.min(0).unsigned_abs() as usize };
    let digits = format!("{digits}{:0<zeros$}", "");
    let digits = format!("{digits:0>width$}", width = behind + 1);
    let (whole, fraction) = digits.split_at(digits.len() - behind);
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// The exponent behind a number's digits, 0 if there is none; `None`: something else follows.
fn exponent(rest: &str) -> Option<i64> {
    if rest.is_empty() {
        return Some(0);
    }
    // Blanks before the exponent are PostgreSQL's way, too.
    let (negative, digits) = input::signed(rest.strip_prefix(['e', 'E'])?.trim_start_matches(input::is_blank));
    if digits.is_empty() || input::digits(digits) != digits.len() {
        return None;
    }
    let number = digits.trim_start_matches('0');
    let number = if number.len() > 10 { i64::MAX } else { number.parse().unwrap_or(0) };
    Some(if negative { -number } else { number })
}

/// Whether it is one of PostgreSQL's numbers that are none.
fn is_special(number: &str, signed: &str) -> bool {
    let is = |text: &str, word: &str| text.eq_ignore_ascii_case(word);
    is(signed, "nan") || is(number, "infinity") || is(number, "inf")
}

pub(super) fn input(arguments: &Arguments<'_>) -> Outcome {
    canonical(&arguments.text(0)?).map(Value::Text)
}

pub(super) fn input_fit(arguments: &Arguments<'_>) -> Outcome {
    let number = Decimal::parse(&canonical(&arguments.text(0)?)?)?;
    number.fit(arguments.integer(1)?, arguments.integer(2)?)?.value()
}

pub(super) fn fit(arguments: &Arguments<'_>) -> Outcome {
    Decimal::of(arguments, 0)?.fit(arguments.integer(1)?, arguments.integer(2)?)?.value()
}

/// Any number as an integer.
pub(super) fn to_integer(arguments: &Arguments<'_>, bits: i64) -> Outcome {
    match arguments.0.get_raw(0) {
        ValueRef::Integer(number) => integer::fit(Some(number.into()), bits),
        ValueRef::Real(number) => float::to_integer(number, bits),
        _ => Decimal::of(arguments, 0)?.integer(bits),
    }
}

/// A number as an exact decimal, with as many digits as the type always has.
fn of_float(number: f64, width: Width) -> Outcome<String> {
    if !number.is_finite() {
        return refuse(ErrorKind::NotAllowed, "NaN and infinity are no numbers of this database");
    }
    let (digits, exponent) = taken_apart(&format!("{:.*e}", width.digits() - 1, number.abs()));
    let sign = if number < 0.0 { "-" } else { "" };
    let (first, rest) = digits.split_at(1);
    // Zeros that the exponent makes do not count as digits behind the point.
    canonical(&format!("{sign}{first}.{rest}e{exponent}"))
}

pub(super) fn of_float4(arguments: &Arguments<'_>) -> Outcome {
    of_float(arguments.real(0)?, Width::Four).map(Value::Text)
}

pub(super) fn of_float8(arguments: &Arguments<'_>) -> Outcome {
    of_float(arguments.real(0)?, Width::Eight).map(Value::Text)
}

pub(super) fn to_float4(arguments: &Arguments<'_>) -> Outcome {
    float::parse(&Decimal::of(arguments, 0)?.text()?, Width::Four).map(Value::Real)
}

pub(super) fn to_float8(arguments: &Arguments<'_>) -> Outcome {
    float::parse(&Decimal::of(arguments, 0)?.text()?, Width::Eight).map(Value::Real)
}

pub(super) fn of_integer(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Text(arguments.integer(0)?.to_string()))
}

/// Both arguments of an operator, and the larger of their scales.
fn operands(arguments: &Arguments<'_>) -> Outcome<(Decimal, Decimal, u32)> {
    let (left, right) = (Decimal::of(arguments, 0)?, Decimal::of(arguments, 1)?);
    let scale = left.scale.max(right.scale);
    Ok((left, right, scale))
}

pub(super) fn add(arguments: &Arguments<'_>) -> Outcome {
    let (left, right, scale) = operands(arguments)?;
    Decimal { digits: left.at(scale) + right.at(scale), scale }.value()
}

pub(super) fn sub(arguments: &Arguments<'_>) -> Outcome {
    let (left, right, scale) = operands(arguments)?;
    Decimal { digits: left.at(scale) - right.at(scale), scale }.value()
}

pub(super) fn mul(arguments: &Arguments<'_>) -> Outcome {
    let (left, right, _) = operands(arguments)?;
    Decimal { digits: left.digits * right.digits, scale: left.scale + right.scale }.value()
}

pub(super) fn div(arguments: &Arguments<'_>) -> Outcome {
    let (left, right, _) = operands(arguments)?;
    left.divided(&right)?.value()
}

pub(super) fn modulo(arguments: &Arguments<'_>) -> Outcome {
    let (left, right, scale) = operands(arguments)?;
    if right.digits.sign() == Sign::NoSign {
        return integer::by_zero();
    }
    Decimal { digits: left.at(scale) % right.at(scale), scale }.value()
}

pub(super) fn neg(arguments: &Arguments<'_>) -> Outcome {
    let Decimal { digits, scale } = Decimal::of(arguments, 0)?;
    Decimal { digits: -digits, scale }.value()
}

pub(super) fn abs(arguments: &Arguments<'_>) -> Outcome {
    let Decimal { digits, scale } = Decimal::of(arguments, 0)?;
    Decimal { digits: digits.magnitude().clone().into(), scale }.value()
}

pub(super) fn sign(arguments: &Arguments<'_>) -> Outcome {
    let sign = match Decimal::of(arguments, 0)?.digits.sign() {
        Sign::Minus => "-1",
        Sign::NoSign => "0",
        Sign::Plus => "1",
    };
    Ok(Value::Text(sign.into()))
}

/// The places to round to: the second argument, or none.
fn places(arguments: &Arguments<'_>) -> Outcome<i64> {
    if arguments.len() == 1 {
        return Ok(0);
    }
    Ok(arguments.integer(1)?.clamp(-ROUNDED_MAX, ROUNDED_MAX))
}

pub(super) fn round(arguments: &Arguments<'_>) -> Outcome {
    Decimal::of(arguments, 0)?.rounded(places(arguments)?).value()
}

pub(super) fn trunc(arguments: &Arguments<'_>) -> Outcome {
    Decimal::of(arguments, 0)?.truncated(places(arguments)?).value()
}

pub(super) fn ceil(arguments: &Arguments<'_>) -> Outcome {
    let up = |quotient: BigInt, rest: &BigInt, _: &BigInt| match rest.sign() {
        Sign::Plus => quotient + 1,
        Sign::NoSign | Sign::Minus => quotient,
    };
    Decimal::of(arguments, 0)?.cut(0, up).value()
}

pub(super) fn floor(arguments: &Arguments<'_>) -> Outcome {
    let down = |quotient: BigInt, rest: &BigInt, _: &BigInt| match rest.sign() {
        Sign::Minus => quotient - 1,
        Sign::NoSign | Sign::Plus => quotient,
    };
    Decimal::of(arguments, 0)?.cut(0, down).value()
}

pub(super) fn cmp(arguments: &Arguments<'_>) -> Outcome {
    let (left, right) = (arguments.text(0)?, arguments.text(1)?);
    Ok(Value::Integer(compare(&left, &right) as i64))
}
