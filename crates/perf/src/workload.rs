//! What the clients of a benchmark ask.

use crate::compare::course::Burst;
use crate::sql::Mix;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Bytes of the smallest operation: the size of its reply, and as much ballast.
pub const OPERATION_BYTES_MIN: usize = 8;

/// Bytes of operations of mixed sizes, in turn, and their mean.
pub const MIXED: [usize; 5] = [8, 512, 2048, 256, 4096];
/// See [`MIXED`].
pub const MIXED_BYTES: usize = (MIXED[0] + MIXED[1] + MIXED[2] + MIXED[3] + MIXED[4]) / MIXED.len();

/// One operation in so many is short where they are [almost alike](Asked::AlmostAlike), and how many bytes it has.
const SHORT_EVERY: usize = 50;
const SHORT_BYTES: usize = 512;

/// What clients ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// Operations of the null service, all of one size.
    #[default]
    Alike,
    /// The same, but one in fifty has 512 bytes. Where all frames of a link are alike, what came before decides whether
    /// Linux acknowledges them in their receiver's time or in their sender's.
    AlmostAlike,
    /// Operations of the null service, of [`MIXED`] bytes.
    Mixed,
    /// Operations of any service, as they are given.
    Given,
    /// Requests to the SQL service.
    Sql(Mix),
}

impl Asked {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alike => "null",
            Self::AlmostAlike => "null-almost-alike",
            Self::Mixed => "null-mixed",
            Self::Given => "given",
            Self::Sql(mix) => mix.name(),
        }
    }

    /// What the SQL service is asked, if it is asked.
    pub const fn sql(self) -> Option<Mix> {
        match self {
            Self::Sql(mix) => Some(mix),
            Self::Alike | Self::AlmostAlike | Self::Mixed | Self::Given => None,
        }
    }
}

/// What the requests are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Bytes of operations, taken in turn; each at least [`OPERATION_BYTES_MIN`].
    pub request_bytes: Vec<usize>,
    /// Bytes of a result.
    pub reply_bytes: usize,
    /// Requests to the SQL service instead; sizes do not matter then.
    pub sql: Option<Mix>,
    /// These operations in turn instead, whatever their results are; none: not these.
    pub given: Vec<Bytes>,
    /// How many of them are under way, if that is not always one for each session.
    pub bursts: Option<Vec<Burst>>,
    /// Whether what is answered is counted for each [`BUCKET`](crate::compare::course::BUCKET) of time.
    pub timeline: bool,
}

impl Workload {
    /// One for each session, at all times.
    pub fn steady(request_bytes: usize, reply_bytes: usize) -> Self {
        let request_bytes = vec![request_bytes];
        Self { request_bytes, reply_bytes, sql: None, given: Vec::new(), bursts: None, timeline: false }
    }

    /// One for each session, at all times; sizes matter for operations that are alike.
    pub fn of(asked: Asked, request_bytes: usize, reply_bytes: usize) -> Self {
        match asked {
            Asked::Alike | Asked::Given => Self::steady(request_bytes, reply_bytes),
            Asked::AlmostAlike => {
                let mut sizes = vec![request_bytes; SHORT_EVERY];
                sizes[SHORT_EVERY - 1] = request_bytes.min(SHORT_BYTES);
                Self { request_bytes: sizes, ..Self::steady(0, reply_bytes) }
            }
            Asked::Mixed => Self { request_bytes: MIXED.to_vec(), ..Self::steady(0, reply_bytes) },
            Asked::Sql(mix) => Self { sql: Some(mix), ..Self::steady(OPERATION_BYTES_MIN, 0) },
        }
    }

    /// What is asked, if not the SQL service.
    pub(crate) fn operations(&self) -> Vec<Bytes> {
        if !self.given.is_empty() {
            return self.given.clone();
        }
        let operation = |bytes: usize| {
            let mut operation = vec![0; bytes.max(OPERATION_BYTES_MIN)];
            operation[..4].copy_from_slice(&(self.reply_bytes as u32).to_le_bytes());
            Bytes::from(operation)
        };
        let mut made = BTreeMap::new();
        self.request_bytes.iter().map(|bytes| made.entry(*bytes).or_insert_with(|| operation(*bytes)).clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_say_how_long_their_result_is_and_have_the_asked_for_size() {
        let workload = Workload { request_bytes: vec![8, 512], ..Workload::steady(8, 4096) };
        let operations = workload.operations();
        assert_eq!(operations.iter().map(Bytes::len).collect::<Vec<_>>(), [8, 512]);
        assert!(operations.iter().all(|operation| operation[..4] == 4096_u32.to_le_bytes()));
    }

    #[test]
    fn one_operation_in_fifty_is_short_where_they_are_almost_alike() {
        let sizes = |bytes| Workload::of(Asked::AlmostAlike, bytes, 8).operations().iter().map(Bytes::len).collect();
        let (large, small): (Vec<_>, Vec<_>) = (sizes(4096), sizes(8));
        assert_eq!((large.len(), large.iter().filter(|bytes| **bytes == 4096).count(), large[49]), (50, 49, 512));
        assert_eq!(small, [8; 50]);
    }
}
