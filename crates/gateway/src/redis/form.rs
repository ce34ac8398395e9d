//! How commands give a time, and how they show one.

use super::integer::parse_integer;
use super::parser::Arguments;
use super::reply::Reply;
use bezant_core::services::kv::Until;

/// The longest span, in milliseconds: with any agreed time it is a deadline that has an `i64`.
const SPAN_MS_MAX: i64 = i64::MAX - (u64::MAX / 1_000) as i64;

/// How a time is given, or shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// In seconds rather than milliseconds.
    pub(crate) seconds: bool,
    /// Since the Unix epoch rather than from now on.
    pub(crate) absolute: bool,
}

impl Form {
    pub(crate) const EX: Self = Self { seconds: true, absolute: false };
    pub(crate) const PX: Self = Self { seconds: false, absolute: false };
    pub(crate) const EXAT: Self = Self { seconds: true, absolute: true };
    pub(crate) const PXAT: Self = Self { seconds: false, absolute: true };

    /// By the word in front of it.
    pub(crate) fn of_option(option: &[u8]) -> Option<Self> {
        match option {
            b"EX" => Some(Self::EX),
            b"PX" => Some(Self::PX),
            b"EXAT" => Some(Self::EXAT),
            b"PXAT" => Some(Self::PXAT),
            _ => None,
        }
    }

    /// A number in this form, which may lie in the past.
    pub(crate) fn until(self, number: i64, arguments: &Arguments) -> Result<Until, Reply> {
        let number = if self.seconds { number.checked_mul(1_000) } else { Some(number) };
        match number {
            Some(deadline) if self.absolute => Ok(Until::At(deadline)),
            Some(span @ ..=SPAN_MS_MAX) => Ok(Until::In(span)),
            _ => Err(invalid(arguments)),
        }
    }

    /// What the commands take that refuse what is not positive.
    pub(crate) fn positive(self, text: &[u8], arguments: &Arguments) -> Result<Until, Reply> {
        match parse_integer(text)? {
            ..=0 => Err(invalid(arguments)),
            number => self.until(number, arguments),
        }
    }

    /// What `TTL` and its like say of a key: -1 if it has no deadline.
    pub(crate) fn show(self, now_ms: u64, deadline_ms: Option<u64>) -> Reply {
        let Some(deadline_ms) = deadline_ms else { return Reply::Integer(-1) };
        let shown = if self.absolute { deadline_ms } else { deadline_ms.saturating_sub(now_ms) };
        // As Redis rounds.
        let shown = if self.seconds { (shown + 500) / 1_000 } else { shown };
        Reply::Integer(i64::try_from(shown).unwrap_or(i64::MAX))
    }
}

fn command(arguments: &Arguments) -> String {
    String::from_utf8_lossy(&arguments[0]).to_lowercase()
}

fn invalid(arguments: &Arguments) -> Reply {
    Reply::error(format!("invalid expire time in '{}' command", command(arguments)))
}
