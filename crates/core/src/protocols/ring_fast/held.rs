//! The batches whose requests this replica has seen in the RING pass, for the ACK pass, which names them by digest.

use super::message::Stamp;
use crate::cluster::{Cluster, Limits};
use crate::digest::Digest;
use crate::ids::ReplicaId;
use crate::message::{Outcome, Request};
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// Batches of any size that an entry has under way. More of them would be smaller, and cost more MACs for each request.
pub(crate) const WINDOW: usize = 4;

/// Batches that an entry has under way, at most: full ones need not wait for others.
pub(super) const UNDER_WAY_MAX: usize = 32;

/// Batches kept of each entry. The oldest goes when there is no room: a batch that died on its way would otherwise stay
/// for ever (ring-F28). A correct entry has no more than [`UNDER_WAY_MAX`] under way in every `client_retry`, and with
/// those of signed requests twice as many, so what goes is at least one of these old. An entry that has more has
/// no part in the ring for the rest.
pub(crate) const PER_ENTRY_MAX: usize = 4 * UNDER_WAY_MAX;

/// The same for bytes of operations, in times the most that a batch has.
const PER_ENTRY_BYTES_MAX: usize = 4 * WINDOW;

/// A batch that came through here.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// Of the requests' digests.
    pub(super) digest: Digest,
    /// All of them, struck ones included.
    pub(super) requests: Vec<Request>,
    /// What came of those that were not struck, once executed here.
    pub(super) executed: Vec<Executed>,
    /// The number that it was executed with.
    pub(super) stamp: Option<Stamp>,
    /// When it came here.
    pub(super) since: Instant,
}

impl Held {
    fn bytes(&self) -> usize {
        self.requests.iter().map(|request| request.operation.len()).sum()
    }
}

/// Whether an entry has no room for more of them.
fn is_full(batches: usize, bytes: usize, limits: &Limits) -> bool {
    batches >= PER_ENTRY_MAX || bytes >= PER_ENTRY_BYTES_MAX * most_bytes(limits)
}

/// The most bytes of operations that a batch has: an operation that is longer than a batch should be goes alone.
pub(super) fn most_bytes(limits: &Limits) -> usize {
    limits.batch_bytes_max.max(limits.operation_bytes_max)
}

/// A request that was executed.
#[derive(Clone, Debug)]
pub(super) struct Executed {
    /// Its place in the batch.
    pub(super) request: usize,
    /// Its position in the history.
    pub(super) position: u64,
    /// The history's digest there: not the one at the time of the answer, which other requests may have moved
    /// (ring-F9).
    pub(super) history: Digest,
    pub(super) outcome: Outcome,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Batches(BTreeMap<ReplicaId, VecDeque<Held>>);

impl Batches {
    /// Keeps a batch. One that is here already stays as it is.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        limits: &Limits,
        entry: ReplicaId,
        digest: Digest,
        requests: Vec<Request>,
    ) {
        let of_entry = self.0.entry(entry).or_default();
        if of_entry.iter().any(|held| held.digest == digest) {
            return;
        }
        while is_full(of_entry.len(), of_entry.iter().map(Held::bytes).sum(), limits) {
            of_entry.pop_front();
        }
        assert!(of_entry.len() < PER_ENTRY_MAX, "there is room for one more");
        of_entry.push_back(Held { digest, requests, executed: Vec::new(), stamp: None, since: now });
    }

    /// Whether a batch without a number is none that a correct entry sends: it may be dropped without a gap. It is too
    /// long, or its entry has filled its place in less than `client_retry`.
    pub(super) fn is_too_much(&self, now: Instant, limits: &Limits, entry: ReplicaId, requests: &[Request]) -> bool {
        let bytes: usize = requests.iter().map(|request| request.operation.len()).sum();
        let is_long = requests.len() > limits.batch_requests_max;
        let is_big = bytes > limits.batch_bytes_max && requests.len() > 1;
        let (batches, kept) = self.under_way(entry, now, limits.client_retry);
        is_long || is_big || is_full(batches, kept, limits)
    }

    pub(super) fn find(&self, entry: ReplicaId, digest: Digest) -> Option<&Held> {
        self.0.get(&entry)?.iter().find(|held| held.digest == digest)
    }

    pub(super) fn find_mut(&mut self, entry: ReplicaId, digest: Digest) -> Option<&mut Held> {
        self.0.get_mut(&entry)?.iter_mut().find(|held| held.digest == digest)
    }

    /// The ACK has passed.
    pub(super) fn forget(&mut self, entry: ReplicaId, digest: Digest) {
        if let Some(of_entry) = self.0.get_mut(&entry) {
            of_entry.retain(|held| held.digest != digest);
        }
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self, cluster: &Cluster) {
        for (entry, batches) in &self.0 {
            assert!(cluster.replicas.contains(*entry), "batches are of entries");
            assert!(batches.len() <= PER_ENTRY_MAX, "at most PER_ENTRY_MAX of each (ring-F28)");
            assert!(batches.iter().is_sorted_by_key(|held| held.since), "the oldest gives way");
            for held in batches {
                assert!(!held.requests.is_empty(), "a batch has requests");
                assert!(held.executed.len() <= held.requests.len(), "a request is executed once");
                assert_eq!(held.stamp.is_some(), !held.executed.is_empty(), "what has a number is executed (Ring 4)");
                let follow = held.executed.windows(2).all(|pair| pair[0].position + 1 == pair[1].position);
                assert!(follow, "the requests of a batch have positions in a row");
                let places = held.executed.iter().map(|done| done.request);
                assert!(places.is_sorted_by(|one, next| one < next), "they are executed in the order of the batch");
            }
        }
    }

    /// How many batches of an entry are under way, and how many bytes of operations in them. One that has been for so
    /// long is not waited for.
    pub(super) fn under_way(&self, entry: ReplicaId, now: Instant, at_most: Duration) -> (usize, usize) {
        let young = self.0.get(&entry).into_iter().flatten().filter(|held| now - held.since < at_most);
        young.fold((0, 0), |(batches, bytes), held| (batches + 1, bytes + held.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ClientId, IdentityId, InstanceId, Timestamp};
    use alloc::vec;
    use bytes::Bytes;

    /// Each is longer than a batch should be, and none is in another one's place.
    #[test]
    fn what_a_correct_entry_has_under_way_is_kept() {
        let limits = Limits { batch_bytes_max: 10, operation_bytes_max: 1_000, ..Limits::default() };
        let mut batches = Batches::default();
        let (entry, now) = (ReplicaId(1), Instant(0));
        for number in 0..2 * WINDOW as u8 {
            let client = ClientId { identity: IdentityId(1), session: number.into() };
            let operation = Bytes::from(vec![0; limits.operation_bytes_max]);
            let requests = vec![Request::new(InstanceId(1), client, Timestamp(1), false, operation)];
            assert!(!batches.is_too_much(now, &limits, entry, &requests));
            batches.keep(now, &limits, entry, Digest([number; 32]), requests);
        }
        assert!((0..2 * WINDOW as u8).all(|number| batches.find(entry, Digest([number; 32])).is_some()));
    }
}
