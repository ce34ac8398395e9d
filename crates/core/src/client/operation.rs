//! What a client is asked for, and what came of it.

use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, ReplicaId, Sequence, Timestamp};
use crate::message::{Outcome, Refusal};
use crate::time::{Duration, Instant};
use crate::wire::unpinned;
use alloc::vec::Vec;
use bytes::Bytes;

/// An operation to carry out.
#[derive(Clone, Debug)]
pub struct Submit {
    /// What to execute: an operation, or a [`bundle`](crate::message::bundle) of them.
    pub operation: Bytes,
    /// Whether it is a bundle.
    pub is_bundle: bool,
    /// It only reads: try the path without an order first. What is not read-only is refused, ordered or not.
    pub read_only: bool,
    /// Whose word is taken on that path.
    pub read: Read,
    /// When to give up.
    pub deadline: Option<Instant>,
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It was executed: the result.
    Done(Bytes),
    /// It was not executed and never will be (but for a JOIN of a key without a place: a late copy may find room).
    Refused(Refusal),
    /// It will not be executed from now on, and here is why. Whether it was before is unknown, and stays so.
    TooLate(Refusal),
    /// The session is over, and here is why. Nothing more of it will be executed; this operation may have been before
    /// it ended.
    Ended(Refusal),
    /// The deadline passed, or it is too late in an instance that may abort: it may have been executed, may still be,
    /// or never.
    Unknown,
}

impl Completion {
    pub(super) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done { result, .. } => Self::Done(unpinned(result.clone())),
            Outcome::Refused(refusal) if refusal.ends_session() => Self::Ended(*refusal),
            Outcome::Refused(refusal) if refusal.is_about_the_future() => Self::TooLate(*refusal),
            Outcome::Refused(refusal) => Self::Refused(*refusal),
            Outcome::DoneDigest(_) => Self::Unknown,
        }
    }
}

/// What one replica had to say about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing that counts.
    Silent,
    /// The result that was accepted.
    Agreed,
    /// Another result at the same position: it is faulty, or the others are.
    Differed,
    /// An answer that does not (yet) add up with others: another position or view.
    Waiting,
}

/// An operation is over.
#[derive(Clone, Debug)]
pub struct Completed {
    /// Whose.
    pub client: ClientId,
    /// Which.
    pub timestamp: Timestamp,
    /// How it ended.
    pub result: Completion,
    /// The instance that answered.
    pub instance: InstanceId,
    /// The position at which it was executed or read; 0 if unknown. In an instance that may abort, the position in the
    /// history, otherwise the number of the batch.
    pub sequence: Sequence,
    /// The digest of the history there, if the instance says it, otherwise zero.
    pub history: Digest,
    /// Those whose word this result is: bit i stands for replica i. None if the outcome is unknown.
    pub vouchers: u64,
    /// What each replica said, if somebody differed or the outcome is unknown; empty otherwise.
    pub answers: Vec<(ReplicaId, Answer)>,
    /// From submission to now.
    pub latency: Duration,
}

/// Whose word a read is taken on. Where instances may abort, reads are ordered all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Read {
    /// 2f+1 replicas must agree, at one position: what any client was told before is seen.
    #[default]
    Quorum,
    /// These replicas only are asked, bit i for replica i, and f+1 of them must agree, wherever each of them stands:
    /// one correct replica gives this answer, now or a while ago. That is enough where whoever asks knows that none of
    /// them, if it is correct, answers from an old state. Fewer than f+1 are no such set: then all are asked.
    Few(u64),
    /// The first replica that answers is believed, whatever it says.
    One,
}

impl Read {
    /// What is asked for, or [`Read::Quorum`] if so few replicas can be of no use.
    pub(super) fn within(self, cluster: &Cluster) -> Self {
        let Self::Few(few) = self else { return self };
        let known = cluster.replicas.iter().fold(0, |bits, id| bits | 1 << id.0) & few;
        if (known.count_ones() as usize) < cluster.replicas.weak() { Self::Quorum } else { Self::Few(known) }
    }
}
