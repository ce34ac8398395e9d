//! Texts as values: what the gateway can read by itself.

use crate::error::{PgError, sqlstate};
use crate::translate::Type;

pub(crate) fn bool_of(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "t" | "true" | "1" | "on" | "yes" | "y" => Some(true),
        "f" | "false" | "0" | "off" | "no" | "n" => Some(false),
        _ => None,
    }
}

/// A text as an integer that fits.
///
/// # Errors
/// 22P02 if it is none, 22003 if it is too large.
pub(crate) fn integer(text: &str, to: Type) -> Result<i64, PgError> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(text, to));
    }
    let number = trimmed.parse::<i64>().ok().filter(|number| match to {
        Type::Int2 => i16::try_from(*number).is_ok(),
        Type::Int4 => i32::try_from(*number).is_ok(),
        _ => true,
    });
    let too_large = || format!("value \"{}\" is out of range for type {}", excerpt(text), to.name());
    number.ok_or_else(|| PgError::new("22003", too_large()))
}

/// What PostgreSQL says to a text that is no value of its type.
pub(crate) fn invalid(text: &str, to: Type) -> PgError {
    let message = format!("invalid input syntax for type {}: \"{}\"", to.name(), excerpt(text));
    PgError::new(sqlstate::BAD_TEXT, message)
}

/// `\x` and hexadecimal digits, or the older form with backslashes.
pub(crate) fn bytea(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return from_hex(digits);
    }
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        (rest, _) = match (first, after) {
            (b'\\', [b'\\', ..]) => (&after[1..], out.push(b'\\')),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                (&after[3..], out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0')))
            }
            (b'\\', _) => return None,
            (byte, _) => (after, out.push(byte)),
        };
    }
    Some(out)
}

pub(super) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8);
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(pair).collect())?
}

pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(100).collect()
}
