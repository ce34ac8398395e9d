//! What the readers of texts have in common.

use super::call::{Outcome, refuse};
use crate::error::ErrorKind;

/// What C calls a space.
pub(super) const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

/// Whether a text begins with a minus, and what follows a sign.
pub(super) fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// How many bytes of a text are digits, from its beginning.
pub(super) fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A text that is no value of its type.
pub(super) fn bad_text<T>(kind: &str, text: &str) -> Outcome<T> {
    refuse(ErrorKind::BadText, format!("invalid input syntax for type {kind}: \"{text}\""))
}
