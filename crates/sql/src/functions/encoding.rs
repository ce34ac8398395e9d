//! Bytes as texts, and back: hexadecimal digits, Base64, and PostgreSQL's older escapes.

use super::bytes::{escaped, hexadecimal, spelled};
use super::call::{Arguments, Outcome, refuse, room};
use crate::error::ErrorKind;
use rusqlite::types::Value;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes that make a line of Base64, 76 characters.
const LINE_BYTES: usize = 57;

fn unknown<T>(format: &str) -> Outcome<T> {
    refuse(ErrorKind::BadParameter, format!("unrecognized encoding: \"{format}\""))
}

pub(super) fn encode(arguments: &Arguments<'_>) -> Outcome {
    let (bytes, format) = (arguments.blob(0)?, arguments.text(1)?);
    match format.to_ascii_lowercase().as_str() {
        "hex" => spelled("", bytes),
        "base64" => base64(bytes).map(Value::Text),
        "escape" => escape(bytes).map(Value::Text),
        _ => unknown(&format),
    }
}

pub(super) fn decode(arguments: &Arguments<'_>) -> Outcome {
    let (text, format) = (arguments.text(0)?, arguments.text(1)?);
    match format.to_ascii_lowercase().as_str() {
        "hex" => hexadecimal(&text),
        "base64" => of_base64(&text),
        "escape" => escaped(text.as_bytes()),
        _ => return unknown(&format),
    }
    .map(Value::Blob)
}

/// Lines have their ends, the last one if it is full.
fn base64(bytes: &[u8]) -> Outcome<String> {
    let length = bytes.len().div_ceil(3) * 4 + bytes.len() / LINE_BYTES;
    room(length)?;
    let mut text = String::with_capacity(length);
    for line in bytes.chunks(LINE_BYTES) {
        for group in line.chunks(3) {
            let all = (0..3).fold(0, |all, place| all << 8 | usize::from(group.get(place).copied().unwrap_or(0)));
            for place in 0..4 {
                let is_there = place <= group.len();
                text.push(if is_there { char::from(DIGITS[all >> (18 - 6 * place) & 63]) } else { '=' });
            }
        }
        text.push_str(if line.len() == LINE_BYTES { "\n" } else { "" });
    }
    Ok(text)
}

fn of_base64(text: &str) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut all, mut count, mut kept) = (0_u32, 0, 3);
    for character in text.chars().filter(|character| !matches!(character, ' ' | '\t' | '\n' | '\r')) {
        let digit = DIGITS.iter().position(|digit| char::from(*digit) == character);
        let digit = match (character, digit) {
            ('=', _) => {
                // The first sign says how much of a group is meant; PostgreSQL keeps to that afterwards.
                kept = match (kept, count) {
                    (3, 2) => 1,
                    (3, 3) => 2,
                    (3, _) => {
                        let message = "unexpected \"=\" while decoding base64 sequence";
                        return refuse(ErrorKind::BadParameter, message);
                    }
                    (kept, _) => kept,
                };
                0
            }
            (_, Some(digit)) => digit as u32,
            (other, None) => {
                let message = format!("invalid symbol \"{other}\" found while decoding base64 sequence");
                return refuse(ErrorKind::BadParameter, message);
            }
        };
        (all, count) = (all << 6 | digit, count + 1);
        if count == 4 {
            bytes.extend_from_slice(&all.to_be_bytes()[1..=kept]);
            (all, count) = (0, 0);
        }
    }
    if count != 0 {
        return refuse(ErrorKind::BadParameter, "invalid base64 end sequence");
    }
    Ok(bytes)
}

/// Zero and what is not ASCII as octal digits.
fn escape(bytes: &[u8]) -> Outcome<String> {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            0 | 0x80.. => text.push_str(&format!("\\{byte:03o}")),
            b'\\' => text.push_str("\\\\"),
            byte => text.push(char::from(*byte)),
        }
        room(text.len())?;
    }
    Ok(text)
}
