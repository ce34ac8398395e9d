//! Bytes and UUIDs.

use super::call::{Arguments, Outcome, refuse, room};
use super::input;
use crate::error::ErrorKind;
use rusqlite::types::{Value, ValueRef};

pub(super) fn octet_length(arguments: &Arguments<'_>) -> Outcome {
    Ok(Value::Integer(match arguments.0.get_raw(0) {
        ValueRef::Blob(bytes) => bytes.len() as i64,
        _ => arguments.text(0)?.len() as i64,
    }))
}

/// The value of a hexadecimal digit.
fn nibble(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// A text as bytes: `\x` and pairs of hexadecimal digits, or characters with `\\` and `\ooo`.
pub(super) fn input(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    match text.strip_prefix("\\x") {
        Some(digits) => hexadecimal(digits),
        None => escaped(text.as_bytes()),
    }
    .map(Value::Blob)
}

pub(super) fn hexadecimal(digits: &str) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut rest = digits.chars();
    while let Some(first) = rest.next() {
        if first != ' ' && !matches!(first, '\n' | '\t' | '\r') {
            let high = hexadecimal_digit(first)?;
            let Some(second) = rest.next() else {
                return refuse(ErrorKind::BadParameter, "invalid hexadecimal data: odd number of digits");
            };
            bytes.push(high << 4 | hexadecimal_digit(second)?);
        }
    }
    Ok(bytes)
}

fn hexadecimal_digit(character: char) -> Outcome<u8> {
    match u8::try_from(character).ok().and_then(nibble) {
        Some(digit) => Ok(digit),
        None => refuse(ErrorKind::BadParameter, format!("invalid hexadecimal digit: \"{character}\"")),
    }
}

pub(super) fn escaped(text: &[u8]) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Ok(bytes),
            [b'\\', b'\\', rest @ ..] => {
                bytes.push(b'\\');
                rest
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            [b'\\', ..] => return refuse(ErrorKind::BadText, "invalid input syntax for type bytea"),
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        }
    }
}

pub(super) fn output(arguments: &Arguments<'_>) -> Outcome {
    spelled("\\x", arguments.blob(0)?)
}

/// Bytes as pairs of hexadecimal digits, behind what stands before them.
pub(super) fn spelled(before: &str, bytes: &[u8]) -> Outcome {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    room(before.len() + 2 * bytes.len())?;
    let mut text = String::with_capacity(before.len() + 2 * bytes.len());
    text.push_str(before);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    Ok(Value::Text(text))
}

/// A text as a UUID: 32 hexadecimal digits, in braces or not, with a hyphen behind any group of four or not.
pub(super) fn in_uuid(arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0)?;
    let bad = || input::bad_text("uuid", &text);
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}'),
        None => Some(&*text),
    };
    let Some(inner) = inner else { return bad() };
    let mut digits = String::with_capacity(36);
    let mut rest = inner.as_bytes();
    for group in 0..8 {
        let Some((four, behind)) = rest.split_at_checked(4) else { return bad() };
        if !four.iter().all(u8::is_ascii_hexdigit) {
            return bad();
        }
        if matches!(group, 2..=5) {
            digits.push('-');
        }
        digits.extend(four.iter().map(|digit| char::from(digit.to_ascii_lowercase())));
        rest = if group < 7 { behind.strip_prefix(b"-").unwrap_or(behind) } else { behind };
    }
    if !rest.is_empty() {
        return bad();
    }
    Ok(Value::Text(digits))
}
