//! How much a replica's machine holds at most: the bounds of `docs/coverage.md` in one sum, so that a process can be
//! held to it.

use crate::clients::REPLY_BYTES_MAX;
use crate::cluster::Cluster;
use crate::compositions::EARLY_MAX;
use crate::protocols::backup::READ_BYTES_AT_ONCE;
use crate::protocols::speculative::AHEAD_BYTES_MAX;
use crate::schedule::Part;
use crate::service::RESULT_BYTES_MAX;
use crate::switching::report::ENTRIES_MAX;

/// What a request, an entry or a message has in memory beside its operation, nearly, in bytes: proofs most of all.
const OVERHEAD: u64 = 1_024;
/// The same of a digest, a vote or a name in a collection.
const SMALL: u64 = 128;

/// Bytes that the collections of a machine hold at most, by what they are for. The application's own state is not among
/// them. One instance runs at a time, so what only some protocols have is counted once.
///
/// `identities` are those of the cluster's file; clients that join are not counted. `result` is the longest result of
/// the service, in bytes, [`RESULT_BYTES_MAX`] at most.
pub fn memory_max(cluster: &Cluster, identities: u64, result: u64) -> [(&'static str, u64); 9] {
    let limits = &cluster.limits;
    let n = cluster.replicas.n() as u64;
    let operation = limits.operation_bytes_max as u64;
    let request = operation + OVERHEAD;
    let batch = operation.max(limits.batch_bytes_max as u64) + limits.batch_requests_max as u64 * OVERHEAD;
    let waiting = (limits.pending_requests_max + limits.pending_reads_max) as u64 * OVERHEAD;
    let history = cluster.history_bound() + cluster.inherited_bound();
    let sessions = limits.sessions_per_identity_max as u64;
    let result = result.min(RESULT_BYTES_MAX as u64);
    let replies = (sessions * result).min(REPLY_BYTES_MAX + result) + sessions * OVERHEAD;
    let rulings = cluster.window() - cluster.window_of_requests();
    let versions = cluster.window() / limits.checkpoint_interval + rulings + 2;
    let chains = cluster.protocol.schedule().parts().contains(&Part::Chain);
    [
        ("requests and reads that wait: pending_*", 2 * limits.pending_bytes_max as u64 + waiting + 4 * n * request),
        ("messages that come early: EARLY_MAX", EARLY_MAX.bytes as u64 + EARLY_MAX.number as u64 * OVERHEAD),
        ("batches out of order: AHEAD_BYTES_MAX", if chains { AHEAD_BYTES_MAX as u64 + batch } else { 0 }),
        // Those in Q and those proposed, what they refer to, those held until an INIT, and those since a checkpoint.
        ("batches: two windows, four times", 4 * 2 * cluster.window() * batch),
        // The log, and what an instance that failed took back.
        ("histories: history_interval, operation_bytes_max", 2 * history * request),
        ("reports and proofs: ENTRIES_MAX", 3 * n * ENTRIES_MAX as u64 * SMALL),
        ("replies: sessions_per_identity_max in each version", versions * identities * replies),
        ("results of one step: READ_BYTES_AT_ONCE", READ_BYTES_AT_ONCE as u64 + result),
        ("votes, and sets of clients and machines", 4 * n * cluster.window() * SMALL + 8 * 4_096 * SMALL),
    ]
}
