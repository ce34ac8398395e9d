//! Numbers that are no integers, as text and in binary.

use super::names::name_of;
use super::oid;
use super::texts::excerpt;
use crate::error::{PgError, sqlstate};
use bezant_sql::Value;

/// Digits in base 10,000, as PostgreSQL sends a `numeric`: their count, the weight of the first, sign, decimals.
pub(super) fn put_numeric(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (sign, digits) = text.strip_prefix('-').map_or((0_u16, text), |digits| (0x4000, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = format!("{:0>width$}", whole, width = whole.len().next_multiple_of(4));
    let padded = format!("{:0<width$}", fraction, width = fraction.len().next_multiple_of(4));
    let groups: Vec<u16> = (whole + &padded)
        .as_bytes()
        .chunks(4)
        .map(|four| std::str::from_utf8(four).ok()?.parse().ok())
        .collect::<Option<_>>()?;
    let weight = (groups.len() - padded.len() / 4) as i16 - 1;
    let skipped = groups.iter().take_while(|group| **group == 0).count();
    let mut digits = &groups[skipped..];
    while let [shorter @ .., 0] = digits {
        digits = shorter;
    }
    out.extend((digits.len() as u16).to_be_bytes());
    let weight = if digits.is_empty() { 0 } else { weight - skipped as i16 };
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend((fraction.len() as u16).to_be_bytes());
    digits.iter().for_each(|digit| out.extend(digit.to_be_bytes()));
    Some(())
}

/// The other way round.
pub(super) fn take_numeric(bytes: &[u8]) -> Option<String> {
    let short = |at: usize| Some(u16::from_be_bytes(bytes.get(2 * at..2 * at + 2)?.try_into().ok()?));
    let (count, weight, sign, scale) = (short(0)?, short(1)? as i16, short(2)?, short(3)?);
    let digits = (0..usize::from(count)).map(|at| short(4 + at)).collect::<Option<Vec<_>>>()?;
    if bytes.len() != 8 + 2 * digits.len()
        || !matches!(sign, 0 | 0x4000)
        || weight.unsigned_abs() > 1_000
        || scale > 1_000
    {
        return None;
    }
    // Places count from the decimal point: 0 is the group before it, -1 the one behind it.
    let group = |place: i16| {
        let at = usize::try_from(weight - place).ok();
        format!("{:04}", at.and_then(|at| digits.get(at)).copied().unwrap_or(0))
    };
    let whole: String = (0..=weight.max(0)).rev().map(group).collect();
    let fraction: String = (1..=scale.div_ceil(4) as i16).map(|place| group(-place)).collect();
    let whole = whole.trim_start_matches('0');
    let sign = if sign == 0 { "" } else { "-" };
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = fraction.get(..usize::from(scale))?;
    Some(if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

/// As PostgreSQL writes a `double precision`: the shortest text that gives the number again.
pub(super) fn real_text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e15).contains(&magnitude) {
        scientific(&format!("{number:e}"))
    } else {
        number.to_string()
    }
}

/// The same of a `real`.
pub(super) fn single_text(number: f32) -> String {
    let magnitude = number.abs();
    if !number.is_finite() || magnitude == 0.0 {
        return real_text(number.into());
    }
    if (1e-4..1e6).contains(&magnitude) { number.to_string() } else { scientific(&format!("{number:e}")) }
}

/// `1e-7` as PostgreSQL writes it: `1e-07`.
fn scientific(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let sign = if exponent.starts_with('-') { '-' } else { '+' };
    format!("{digits}e{sign}{:0>2}", exponent.trim_start_matches('-'))
}

/// A floating-point number. SQLite has no value that is not a number.
pub(super) fn float(text: &str, type_id: u32) -> Result<Value, PgError> {
    let name = name_of(type_id).unwrap_or_default();
    let trimmed = text.trim();
    let bad =
        |_| PgError::new(sqlstate::BAD_TEXT, format!("invalid input syntax for type {name}: \"{}\"", excerpt(text)));
    let number: f64 = match type_id {
        oid::FLOAT4 => f64::from(trimmed.parse::<f32>().map_err(bad)?),
        _ => trimmed.parse().map_err(bad)?,
    };
    let is_word = trimmed.bytes().any(|byte| byte.eq_ignore_ascii_case(&b'n'));
    let is_zero = trimmed.split(['e', 'E']).next().unwrap_or_default().bytes().all(|byte| !matches!(byte, b'1'..=b'9'));
    if number.is_nan() {
        return Err(PgError::unsupported("NaN is not supported").hint("store NULL"));
    }
    if number.is_infinite() && !is_word || number == 0.0 && !is_zero {
        return Err(PgError::new("22003", format!("\"{}\" is out of range for type {name}", excerpt(text))));
    }
    Ok(Value::Real(number))
}

/// Whether a text is a number as the replicas keep a `numeric`.
pub(super) fn is_numeric(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole) && is_digits(fraction)
}
