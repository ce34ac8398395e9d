//! How often sessions are served while somebody waits: Robust 5 of the [module](super).

use crate::history::Log;
use crate::ids::ClientId;
use alloc::collections::{BTreeMap, VecDeque};

/// How often a session may be served while a request waits that was named a status interval ago: what was before that
/// one in some queue, and what was asked while it was on its way.
const SERVED_MAX: usize = 8;
/// Sessions that are remembered. Where more are served they are counted anew.
const SESSIONS_MAX: usize = 16_384;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Served {
    /// How long the history was when it was last looked at.
    seen: u64,
    /// Where the last requests of each session are in it, in order: at most as many as may be served.
    sessions: BTreeMap<ClientId, VecDeque<u64>>,
    /// So long was the history at the latest time since which a session was served more often than that.
    often: Option<u64>,
}

impl Served {
    /// Counts from here on.
    pub(super) fn from(seen: u64) -> Self {
        Self { seen, ..Self::default() }
    }

    /// Counts what the history has grown by. What has been cut off meanwhile nobody counts.
    pub(super) fn look(&mut self, log: &Log) {
        let length = log.length();
        let first = length - log.after(self.seen).count() as u64;
        for (before, logged) in (first..).zip(log.after(self.seen)) {
            self.note(before, logged.entry.request.client);
        }
        self.seen = length;
    }

    /// A session was served when the history was so long.
    fn note(&mut self, before: u64, client: ClientId) {
        if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(&client) {
            self.sessions.clear();
        }
        let last = self.sessions.entry(client).or_default();
        last.push_back(before);
        if last.len() > SERVED_MAX {
            self.often = self.often.max(last.pop_front());
        }
    }

    /// So long was the history at the latest time since which a session was served more than eight times.
    pub(super) const fn often_since(&self) -> Option<u64> {
        self.often
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self) {
        assert!(self.sessions.len() <= SESSIONS_MAX, "at most SESSIONS_MAX");
        assert!(self.sessions.values().all(|last| last.len() <= SERVED_MAX), "at most SERVED_MAX each");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::IdentityId;

    fn session(number: u32) -> ClientId {
        ClientId { identity: IdentityId(1), session: number }
    }

    #[test]
    fn a_session_is_served_too_often_whoever_is_served_besides() {
        let mut served = Served::from(0);
        // A thousand others in between: the history itself holds two rounds of that.
        for before in 0..8_000 {
            served.note(before, session(before as u32 % 1_000));
        }
        assert_eq!(served.often_since(), None, "eight times each");
        served.note(8_000, session(0));
        assert_eq!(served.often_since(), Some(0));
        served.note(8_001, session(1));
        assert_eq!(served.often_since(), Some(1));
        served.check_invariants();
    }

    #[test]
    fn however_many_are_served_memory_is_bounded() {
        let mut served = Served::from(0);
        for number in 0..2 * SESSIONS_MAX as u32 + 5 {
            served.note(u64::from(number), session(number));
            served.note(u64::from(number), session(number));
        }
        served.check_invariants();
        assert_eq!(served.often_since(), None);
    }
}
