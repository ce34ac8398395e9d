//! How an entry shares its link with the requests that come from its predecessor: n−1 to 1 (chapter 7 of the thesis,
//! which says 3f: it has n = 3f + 1).
//!
//! Over each link go the requests of n−1 other entries and those of the clients of the replica in front of it. One
//! whose clients ask for more than others' must not fill the link with them.
//!
//! # Rules
//! * What it sends for its own clients it *owes* the others. Of what comes by of other entries its (n−1)-th part is
//!   paid back. ACKs are free.
//! * An entry that owes as much as it may have under way sends its next batch when none of its own is: one each time
//!   around. So its clients are never starved either, whatever comes by.
//! * A batch of its own comes back, and nothing came by since it left: nobody else needs the link, and nothing is owed.
//!
//! Other entries have their own account, and those that lie none: no replica keeps more of an entry's batches than
//! [`super::held`] says, and those beyond it does not pass on, unless they have numbers.

use crate::cluster::Limits;
use crate::message::Request;
use crate::time::Instant;

/// What a request costs besides its operation, in bytes: about its header and MACs.
const OVERHEAD: u64 = 128;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// Bytes.
    owed: u64,
    /// When something of another entry came by for the last time.
    came_by: Option<Instant>,
}

impl Flow {
    /// What these requests cost.
    pub(super) fn bytes(requests: &[Request]) -> u64 {
        requests.iter().map(|request| OVERHEAD + request.operation.len() as u64).sum()
    }

    /// Whether another batch may leave while others of this entry are under way. `window`: how many may be.
    pub(super) const fn has_credit(&self, limits: &Limits, window: usize) -> bool {
        self.owed < (window * limits.batch_bytes_max) as u64
    }

    /// A batch of this entry leaves.
    pub(super) const fn send(&mut self, bytes: u64) {
        self.owed = self.owed.saturating_add(bytes);
    }

    /// A batch of one of so many other entries comes by.
    pub(super) const fn come_by(&mut self, now: Instant, bytes: u64, others: usize) {
        assert!(others > 0, "a ring has other entries");
        self.came_by = Some(now);
        self.owed = self.owed.saturating_sub(bytes / others as u64);
    }

    /// A batch of this entry is back that left at this time.
    pub(super) fn come_back(&mut self, left: Instant) {
        if self.came_by.is_none_or(|at| at < left) {
            self.owed = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_credit(flow: &Flow) -> bool {
        flow.has_credit(&Limits { batch_bytes_max: 1_000, ..Limits::default() }, 4)
    }

    #[test]
    fn a_third_of_what_comes_by_may_be_sent() {
        let (mut flow, mut sent, mut came_by) = (Flow::default(), 0, 0);
        for _ in 0..1_000 {
            flow.come_by(Instant(1), 900, 3);
            came_by += 900;
            while has_credit(&flow) {
                flow.send(500);
                sent += 500;
            }
        }
        assert!((4_000 - 500..=4_500).contains(&(sent - came_by / 3)), "a window to begin with, and a batch: {sent}");
    }

    #[test]
    fn who_is_alone_owes_nothing_each_time_around() {
        let mut flow = Flow::default();
        flow.come_by(Instant(1), 3, 3);
        for left in 2..12 {
            flow.send(4_000);
            assert!(!has_credit(&flow));
            flow.come_back(Instant(left));
            assert!(has_credit(&flow));
        }
        flow.send(4_000);
        flow.come_by(Instant(13), 3, 3);
        assert!(has_credit(&flow), "one byte");
        flow.send(1);
        // Two batches that left before.
        flow.come_back(Instant(12));
        flow.come_back(Instant(12));
        assert!(!has_credit(&flow), "somebody else needs the link");
    }

    #[test]
    fn nobody_saves_for_later() {
        let mut flow = Flow::default();
        flow.come_by(Instant(1), u64::MAX, 3);
        flow.send(4_000);
        assert!(!has_credit(&flow));
    }
}
