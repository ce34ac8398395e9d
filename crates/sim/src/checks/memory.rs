//! Bounded memory: whatever a correct replica holds has a bound, and stays below it.
//!
//! What there is to hold nobody lists: [`Holdings`] finds every collection by the names of the fields above it. Some
//! have a bound of their own below; all others must do with the largest number that the cluster's limits allow of
//! anything, in entries, and with as many of the longest operations in bytes. Limits are drawn small, so that who holds
//! something for each session of an identity, or for each message that somebody sends, is soon above it. What a
//! collection's entries hold in turn is bounded by their bytes.
//!
//! Batches: those of its own window and, until it has fetched that checkpoint, those above the one that a new view
//! begins with. After a restart a replica holds what its own log holds, which `log_bytes_per_snapshot` bounds and the
//! window does not: it is excused until its next stable checkpoint. The bodies that they refer to have a bound in bytes
//! as well: what batches may have together. Effects go back to the stable checkpoint before the last one, which after a
//! restart is where its log begins: they are excused until the one after the next.
//!
//! A replica is measured after some hundred steps, while it grows; else more seldom: what grows and shrinks in between
//! is not seen.

use super::{Check, Event, Holdings};
use bezant_core::cluster::Cluster;
use bezant_core::ids::ReplicaId;
use bezant_core::notice::Notice;
use bezant_core::protocols::ritas::atomic_broadcast::{HEARD, ROUNDS_AHEAD, ROUNDS_OPEN_MAX, WINDOW};
use std::collections::BTreeMap;

/// Clients in one set: the constant of the core.
const CLIENT_SET_MAX: u64 = 4_096;
/// Messages that are kept for later instances, over all senders: `compositions/early.rs`.
const EARLY_MAX: u64 = 4_096;
/// Pages of a client table.
const BUCKETS: u64 = 256;
/// The least that any collection may hold, however small the limits are.
const ENTRIES_MIN: u64 = 256;
/// Steps of a binary consensus: its coins fall alike before that.
const BINARY_STEPS: u64 = 60;
/// Bytes beside the operation, of one entry.
const OVERHEAD: u64 = 1_024;
/// The same of a request, nearly: its proofs, most of all.
const BODY_OVERHEAD: u64 = 768;

/// See the [module](self).
#[derive(Debug)]
pub struct Memory {
    /// What holds how much, by the last names of its path, and the name of the bound.
    named: Vec<(&'static str, u64, &'static str)>,
    /// What everything else may hold.
    entries_max: u64,
    bytes_max: u64,
    /// Bytes of the big requests that batches refer to. Where instances may abort, INITs are among them, which are as
    /// long as histories are: none there.
    bodies_bytes_max: Option<u64>,
    /// Who has restarted, and whether it has had a stable checkpoint since.
    restarted: BTreeMap<ReplicaId, bool>,
}

impl Memory {
    /// The bounds of this cluster, which names so many identities.
    pub fn new(cluster: &Cluster, identities: usize, dissent: bool) -> Self {
        let limits = &cluster.limits;
        let (pending, reads) = (limits.pending_requests_max as u64, limits.pending_reads_max as u64);
        let requests = 2 * cluster.window() * limits.batch_requests_max as u64;
        // For what each other replica passes on there is one place more, and one for each replica's INIT and ruling.
        let of_replicas = 3 * cluster.replicas.n() as u64 - 1;
        // Who executes its log otherwise than before has all of it in hand until the right state is there.
        let slots = if dissent { 2 * cluster.window() * 64 } else { 2 * cluster.window() };
        let members = limits.members_max as u64;
        let parties = (cluster.replicas.n() + identities) as u64 + members;
        let sessions = identities as u64 * limits.sessions_per_identity_max as u64 + 64 * members;
        let n = cluster.replicas.n() as u64;
        let on_their_way = n * HEARD;
        let of_anything =
            [ENTRIES_MIN, pending, reads, requests, 2 * cluster.history_bound(), 4 * members, on_their_way];
        let entries_max = of_anything.into_iter().max().unwrap_or_default();
        let effects = entries_max + cluster.inherited_bound();
        // Of RITAS: the messages that were ordered in the window and a tombstone for each of its rounds, of which half
        // may order nothing; what is heard of further messages; and of the rounds that are open three broadcasts of
        // each replica, and its votes.
        let ordered = 2 * cluster.window() * (n * WINDOW + 1);
        let instances = ordered + on_their_way + (ROUNDS_OPEN_MAX as u64 + ROUNDS_AHEAD + 1) * n * (3 + BINARY_STEPS);
        let named = vec![
            ("pool.waiting", pending + of_replicas, "pending_requests_max, what is passed on, INITs and rulings"),
            ("pool.watched", pending + of_replicas, "pending_requests_max, what is passed on, INITs and rulings"),
            ("queue.requests", pending, "pending_requests_max"),
            ("running.reads", reads, "pending_reads_max"),
            ("order.slots", slots, "two windows"),
            ("order.arrived", on_their_way, "HEARD of each replica"),
            ("stack.instances", instances, "two windows of rounds, and those that are open"),
            ("trace.effects", effects, "all that any limit allows, and entries_max of reports"),
            ("waiting.clients", CLIENT_SET_MAX, "CLIENT_SET_MAX of shares.rs"),
            ("unserved.clients", CLIENT_SET_MAX, "CLIENT_SET_MAX of shares.rs"),
            ("early.messages", EARLY_MAX, "MESSAGES_MAX of early.rs"),
            ("clients.buckets", BUCKETS, "pages of the client table"),
            ("buckets.sessions", sessions, "sessions_per_identity_max"),
            ("usage.order", sessions, "sessions_per_identity_max"),
            ("rejections", parties, "one for each party"),
        ];
        let bytes_max = entries_max * (limits.operation_bytes_max as u64 + OVERHEAD);
        let batch = limits.batch_bytes_max.max(limits.operation_bytes_max) as u64;
        let bodies = batch + limits.batch_requests_max as u64 * BODY_OVERHEAD;
        let bodies_bytes_max = (!cluster.protocol.hands_on()).then(|| 2 * cluster.window() * bodies);
        Self { named, entries_max, bytes_max, bodies_bytes_max, restarted: BTreeMap::new() }
    }

    /// What holds more than it may.
    fn judge(&self, replica: ReplicaId, holdings: &Holdings) -> Result<(), String> {
        for (path, held, is_part) in holdings.collections() {
            let named = self.named.iter().find(|(name, ..)| ends_with_names(&path, name));
            let (max, bound) = match named {
                Some((_, max, bound)) => (*max, *bound),
                // Its entries are counted in the bytes of what it is a part of.
                None if is_part => continue,
                None => (self.entries_max, "all that any limit allows"),
            };
            let are_bodies = ends_with_names(&path, "order.bodies");
            let is_excused = match self.restarted.get(&replica) {
                Some(false) => {
                    are_bodies || ["order.slots", "trace.effects"].iter().any(|name| ends_with_names(&path, name))
                }
                Some(true) => ends_with_names(&path, "trace.effects"),
                None => false,
            };
            if is_excused {
                continue;
            }
            if held.entries > max {
                return Err(format!("{replica} holds {} entries in {path}; {max} is the most: {bound}", held.entries));
            }
            let of_bodies = self.bodies_bytes_max.filter(|_| are_bodies);
            let bytes_max = of_bodies.unwrap_or(self.bytes_max * max.div_ceil(self.entries_max));
            if held.bytes > bytes_max {
                return Err(format!("{replica} holds {} bytes in {path}; {bytes_max} is the most", held.bytes));
            }
        }
        Ok(())
    }
}

/// Whether a path ends with these names of fields.
fn ends_with_names(path: &str, names: &str) -> bool {
    path.strip_suffix(names).is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

impl Check for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn see(&mut self, _at: u64, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Holds(replica, holdings) => return self.judge(*replica, holdings),
            Event::Restarted(replica, _) => drop(self.restarted.insert(*replica, false)),
            Event::Noticed(replica, Notice::Stable { .. }) => {
                self.restarted.retain(|known, had_one| known != replica || !std::mem::replace(had_one, true));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::cluster::Limits;

    #[derive(Debug)]
    #[allow(dead_code)]
    struct Pool {
        waiting: Vec<u64>,
    }

    #[derive(Debug)]
    #[allow(dead_code)]
    struct Replica {
        pool: Pool,
        added_later: Vec<(u64, Vec<u64>)>,
    }

    fn objection(waiting: usize, added: usize, parts: usize) -> Option<String> {
        let limits = Limits {
            pending_requests_max: 3,
            pending_reads_max: 3,
            members_max: 2,
            checkpoint_interval: 2,
            batch_requests_max: 2,
            history_interval: 3,
            operation_bytes_max: 10,
            ..Limits::default()
        };
        let cluster = Cluster::new([1; 16], 4, 1, Default::default(), limits).expect("4 = 3 + 1");
        let added_later = vec![(1, vec![1; parts]); added];
        let replica = Replica { pool: Pool { waiting: vec![1; waiting] }, added_later };
        let holdings = Holdings::of(&replica);
        Memory::new(&cluster, 2, false).see(0, &Event::Holds(ReplicaId(0), &holdings)).err()
    }

    #[test]
    fn whatever_is_added_has_a_bound() {
        // Three, one for what each other replica passes on, and an INIT and a ruling of each.
        assert_eq!(objection(3 + 3 + 8, 256, 2), None);
        assert!(
            objection(4 + 3 + 8, 0, 0)
                .is_some_and(|what| what.contains("pool.waiting") && what.contains("pending_requests"))
        );
        assert!(objection(0, 257, 0).is_some_and(|what| what.contains("257 entries in added_later")));
        let many = (256 * (10 + OVERHEAD)) as usize;
        assert!(objection(0, 1, many).is_some_and(|what| what.contains("bytes in added_later")));
    }
}
