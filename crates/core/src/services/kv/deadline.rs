//! How long a key lives: by the agreed time of the batch that an operation is part of, in milliseconds since the Unix
//! epoch, and by no clock.
//!
//! A key whose deadline has come is *removed*, by an ordered operation: by the next one that names it, or when its turn
//! comes. For each ordered operation begins with the keys that are due the longest and removes [`SWEPT_MAX`] of them;
//! one that looks at all keys removes `LIST_MAX`, and shows what is due beyond that as if it were not. So the state
//! alone says what there is, and an expiry has its place in the order of the operations like any other write: who has
//! seen a key gone does not see it again, through no replica, until it is written.
//!
//! What is not ordered has no agreed time: a query may show a key whose time is over until something is ordered. Who
//! minds asks with `KvOperation::AsOf`. A replica answers that as long as the deadlines lie ahead of what the asker
//! takes for the time, and refuses it otherwise, so it is ordered. A clock that is wrong there costs a detour, or
//! shows a key a little longer in a service where nothing else is ordered; what was removed stays removed.

use crate::time::Instant;
use crate::wire::{Reader, Sink, Wire, WireError};

/// The last deadline, in milliseconds since the Unix epoch. Later ones are this one.
pub const DEADLINE_MS_MAX: u64 = i64::MAX as u64;

/// A deadline, as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Until {
    /// So many milliseconds after the agreed time.
    In(i64),
    /// So many milliseconds after the Unix epoch.
    At(i64),
}

impl Until {
    /// In milliseconds since the Unix epoch, at most [`DEADLINE_MS_MAX`]; before it there is nothing but 0.
    pub(super) fn deadline(self, now_ms: u64) -> u64 {
        let deadline = match self {
            Self::In(span) => now_ms.saturating_add_signed(span),
            Self::At(deadline) => u64::try_from(deadline).unwrap_or(0),
        };
        deadline.min(DEADLINE_MS_MAX)
    }
}

impl Wire for Until {
    fn encode(&self, out: &mut impl Sink) {
        let (tag, time) = match self {
            Self::In(span) => (0, span),
            Self::At(deadline) => (1, deadline),
        };
        out.push(tag);
        time.encode(out);
    }

    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(match reader.tag()? {
            0 => Self::In(Wire::decode(reader)?),
            1 => Self::At(Wire::decode(reader)?),
            _ => return Err(WireError::UnknownTag),
        })
    }
}

/// When a `KvOperation::Expire` is done. A key without a deadline lives longer than any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeadlineCondition {
    /// In any case.
    #[default]
    Always,
    /// Only if the key has no deadline.
    Absent,
    /// Only if the key has a deadline.
    Present,
    /// Only if it lives longer then.
    Later,
    /// Only if it lives shorter then.
    Earlier,
    /// Only if the key has a deadline, and lives shorter then.
    PresentEarlier,
}

impl DeadlineCondition {
    pub(super) fn holds(self, before: Option<u64>, after: u64) -> bool {
        match self {
            Self::Always => true,
            Self::Absent => before.is_none(),
            Self::Present => before.is_some(),
            Self::Later => before.is_some_and(|before| after > before),
            Self::Earlier => before.is_none_or(|before| after < before),
            Self::PresentEarlier => before.is_some_and(|before| after < before),
        }
    }
}

impl Wire for DeadlineCondition {
    fn encode(&self, out: &mut impl Sink) {
        out.push(match self {
            Self::Always => 0,
            Self::Absent => 1,
            Self::Present => 2,
            Self::Later => 3,
            Self::Earlier => 4,
            Self::PresentEarlier => 5,
        });
    }

    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(match reader.tag()? {
            0 => Self::Always,
            1 => Self::Absent,
            2 => Self::Present,
            3 => Self::Later,
            4 => Self::Earlier,
            5 => Self::PresentEarlier,
            _ => return Err(WireError::UnknownTag),
        })
    }
}

/// The agreed time as deadlines have it.
pub(super) const fn milliseconds(time: Instant) -> u64 {
    time.0 / 1_000
}

/// A deadline that is not ahead.
#[derive(Debug)]
pub(super) struct Over;

/// Keys that any ordered operation removes because they are due, besides those that it names.
pub(super) const SWEPT_MAX: usize = 64;
