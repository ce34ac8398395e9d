//! Decimal numbers as Redis takes them.

use super::reply::Reply;

/// A decimal number as Redis takes it.
pub(crate) fn parse_integer(text: &[u8]) -> Result<i64, Reply> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(not_an_integer)
}

/// What Redis says to anything else.
pub(crate) fn not_an_integer() -> Reply {
    Reply::error("value is not an integer or out of range")
}
