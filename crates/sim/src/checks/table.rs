//! A client table of the check's own: which request is new. Like the replicas' it forgets: an identity has so many
//! sessions, the least recently executed goes, and from then on timestamps up to its last one are closed to sessions
//! that are not there.

use bezant_core::ids::{ClientId, IdentityId, Timestamp};
use std::collections::BTreeMap;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    sessions_max: usize,
    /// The last request of each session, and the number of its execution.
    last: BTreeMap<ClientId, (Timestamp, u64)>,
    floors: BTreeMap<IdentityId, Timestamp>,
    executions: u64,
}

impl Table {
    /// One without sessions.
    pub(super) fn new(sessions_max: usize) -> Self {
        Self { sessions_max, ..Self::default() }
    }

    /// The last request of a session that is still there.
    pub(super) fn last(&self, client: ClientId) -> Option<Timestamp> {
        self.last.get(&client).map(|(last, _)| *last)
    }

    /// Whether a request may be executed.
    pub(super) fn is_new(&self, client: ClientId, timestamp: Timestamp) -> bool {
        let floor = || self.floors.get(&client.identity).copied().unwrap_or_default();
        timestamp > self.last(client).unwrap_or_else(floor)
    }

    /// It was executed. Those who joined are told apart by the members' table; their sessions are not counted here.
    pub(super) fn record(&mut self, client: ClientId, timestamp: Timestamp) {
        self.executions += 1;
        self.last.insert(client, (timestamp, self.executions));
        if client.identity.is_dynamic() {
            return;
        }
        let sessions = || self.last.iter().filter(|(other, _)| other.identity == client.identity);
        if sessions().count() <= self.sessions_max {
            return;
        }
        if let Some((evicted, (last, _))) = sessions().min_by_key(|(_, (_, execution))| *execution) {
            let (evicted, last) = (*evicted, *last);
            self.last.remove(&evicted);
            let floor = self.floors.entry(client.identity).or_default();
            *floor = last.max(*floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_too_many_closes_the_timestamps_of_the_oldest() {
        let client = |session| ClientId { identity: IdentityId(1), session };
        let mut table = Table::new(2);
        for (session, timestamp) in [(1, 10), (2, 5), (1, 11), (3, 7)] {
            assert!(table.is_new(client(session), Timestamp(timestamp)));
            table.record(client(session), Timestamp(timestamp));
        }
        assert!(!table.is_new(client(2), Timestamp(5)), "session 2 was evicted");
        assert!(!table.is_new(client(4), Timestamp(5)), "the floor is the identity's");
        assert!(table.is_new(client(2), Timestamp(6)) && !table.is_new(client(1), Timestamp(11)));
    }
}
