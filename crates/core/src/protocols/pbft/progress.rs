//! What a replica remembers about who was told what, and whether it gets on: see [`super::status`].

use crate::ids::{ClientId, ReplicaId, Sequence, Timestamp, View};
use crate::time::Instant;
use alloc::collections::BTreeMap;

/// What the status timer remembers.
#[derive(Clone, Debug, Default)]
pub(super) struct StatusState {
    /// View, phase and position at the last time-out: no change means no progress.
    pub(super) last: Option<(View, bool, Sequence)>,
    pub(super) idle_intervals: u32,
    /// Intervals without progress.
    pub(super) stuck_intervals: u32,
    /// The watched request that had waited longest at the last time-out.
    pub(super) oldest_watched: Option<(ClientId, Timestamp)>,
    /// When each replica was last answered, and how often: at most twice per interval.
    pub(super) answered: BTreeMap<ReplicaId, (Instant, usize)>,
}
