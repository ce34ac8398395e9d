//! What a replica tells its host: notices as things happen, and a report on demand.

use crate::checkpoint::{Evidence, Tree};
use crate::digest::Digest;
use crate::ids::{InstanceId, ReplicaId, Sequence, View};
use crate::rejection::{Account, Rejection, RejectionCounts};
use crate::schedule::Part;
use crate::stop::{StopReason, SwitchReason};
use crate::time::Duration;
use crate::wire::{Reader, Sink, Wire, WireError};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Something worth a log line, a metric or a check in the simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A batch was executed for good: position, digest of the batch, history digest after it, number of requests in it.
    Executed {
        /// The instance.
        instance: InstanceId,
        /// The batch's position.
        sequence: Sequence,
        /// Its digest.
        digest: Digest,
        /// The hash chain over all requests executed so far.
        history: Digest,
        /// How many requests it has; duplicates among them were not executed again.
        requests: usize,
    },
    /// A speculative instance logs the entries of a batch, which may still be taken back.
    Logged {
        /// The instance.
        instance: InstanceId,
        /// The first one's position in the history.
        first: u64,
        /// The digest of the history before them.
        before: Digest,
        /// Of each the digest of its request, and of the history with it.
        entries: Vec<(Digest, Digest)>,
    },
    /// All n replicas have said that they have this checkpoint: it is certain.
    Anchored {
        /// The instance.
        instance: InstanceId,
        /// The checkpoint.
        position: u64,
        /// The Merkle root of the state.
        root: Digest,
    },
    /// This replica has stopped in an instance.
    Stopped {
        /// The instance.
        instance: InstanceId,
        /// Why.
        reason: StopReason,
    },
    /// Another instance runs.
    Switched {
        /// The instance.
        instance: InstanceId,
        /// What it runs.
        part: Part,
        /// Why the one before was left.
        reason: SwitchReason,
        /// Since this replica stopped, or learnt that others had.
        took: Duration,
    },
    /// This replica has the init history of an instance.
    Begun {
        /// The instance.
        instance: InstanceId,
        /// The last position of the init history.
        position: u64,
        /// Its digest.
        history: Digest,
    },
    /// The ring is slow, or is not any more.
    Paced {
        /// The instance.
        instance: InstanceId,
        /// How slow, and where.
        alarm: Option<Alarm>,
    },
    /// A tentative execution was undone.
    RolledBack {
        /// The last batch that the state still contains.
        to: Sequence,
    },
    /// A checkpoint became stable.
    Stable {
        /// The instance.
        instance: InstanceId,
        /// Its position.
        sequence: Sequence,
        /// The Merkle root of the state.
        root: Digest,
    },
    /// This replica's own state at a checkpoint has another root than f+1 others signed, who agree: it is wrong. In a
    /// Backup once for each difference.
    Diverged {
        /// The checkpoint.
        sequence: Sequence,
        /// What this replica had.
        mine: Digest,
        /// What they have.
        agreed: Digest,
    },
    /// A request is disputed: the replicas executed it otherwise, each in its own way. It is refused, and what came
    /// after it is undone ([`crate::dissent`]).
    Ruled {
        /// The instance.
        instance: InstanceId,
        /// The position of the request.
        position: u64,
        /// The batch with the ruling.
        batch: Sequence,
        /// The batch after which this replica goes on.
        back: Sequence,
    },
    /// A state that f+1 others signed, at least, replaced one that was wrong.
    Repaired(Box<Divergence>),
    /// A view began.
    ViewEntered {
        /// The view.
        view: View,
    },
    /// How a view began that this replica had left already.
    ViewMissed {
        /// The view.
        view: View,
    },
    /// This replica asks for another view.
    ViewChangeStarted {
        /// The view that it wants.
        view: View,
        /// Why, in words.
        reason: &'static str,
    },
    /// State transfer began, moved on or ended.
    Transfer {
        /// The target.
        sequence: Sequence,
        /// Pages and nodes received so far.
        received: u64,
        /// Whether it is complete.
        done: bool,
    },
    /// Evidence or a strong hint that somebody is faulty.
    Suspicion {
        /// Who.
        replica: ReplicaId,
        /// For what.
        reason: Rejection,
    },
}

/// A state that this replica had and f+1 others had not: what an investigation needs.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// Where this replica found out.
    pub sequence: Sequence,
    /// What it had there.
    pub mine: Tree,
    /// What it has instead: the proof that it is right, f+1 signatures or more. Usually of the same batch, but of a
    /// later one if nobody else had that state any more.
    pub evidence: Evidence,
    /// The pages that go with it.
    pub agreed: Tree,
    /// The last checkpoint before at which this replica is known to have been right.
    pub since: Option<Sequence>,
    /// The root that the batches in between give when they are executed again on the state there; `None` if they are
    /// not here any more.
    pub replayed: Option<Digest>,
}

/// Roots stand for pages.
impl PartialEq for Divergence {
    fn eq(&self, other: &Self) -> bool {
        let parts = |of: &Self| (of.sequence, of.mine.root(), *of.evidence.checkpoint(), of.since, of.replayed);
        parts(self) == parts(other)
    }
}

impl Eq for Divergence {}

/// How fast a ring is: what comes of a comparison of its batches with its hops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// Batches need no longer than they should, or there are none.
    #[default]
    Even,
    /// They do, unless somebody has made hops look short.
    Slow,
    /// They do, and long enough to leave the ring for it.
    BeyondDoubt,
}

impl Wire for Pace {
    fn encode(&self, out: &mut impl Sink) {
        out.push(*self as u8);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::Even),
            1 => Ok(Self::Slow),
            2 => Ok(Self::BeyondDoubt),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// A link of the ring that takes longer than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suspect {
    /// Who measured it.
    pub from: ReplicaId,
    /// Its successor. Either may be to blame, or what is between them.
    pub to: ReplicaId,
    /// The hop.
    pub took: Duration,
}

/// A ring is slow: f+1 replicas have begun rounds that say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// How slow.
    pub pace: Pace,
    /// Which hop is longer than the others, if one is.
    pub suspect: Option<Suspect>,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.pace == Pace::BeyondDoubt { "slow beyond doubt" } else { "slow" })?;
        match self.suspect {
            Some(Suspect { from, to, took }) => write!(f, ": {} us from {from} to {to}", took.0),
            None => f.write_str(", and no hop is longer than the others"),
        }
    }
}

/// A replica's view of itself, for `status` and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The protocol's name, e.g. `pbft`.
    pub protocol: String,
    /// The running instance.
    pub instance: InstanceId,
    /// What it runs.
    pub part: String,
    /// Requests executed over all instances.
    pub position: u64,
    /// Clients that have joined and not left.
    pub members: usize,
    /// Why the instance before was left.
    pub switch_reason: SwitchReason,
    /// How long the last switch took.
    pub switch_took: Duration,
    /// Its view.
    pub view: View,
    /// The view's primary.
    pub primary: ReplicaId,
    /// Whether it waits for a new view.
    pub changing_view: bool,
    /// Whether it abstains from voting, because it lost its log.
    pub abstaining: bool,
    /// The last batch executed for good.
    pub executed: Sequence,
    /// The last stable checkpoint.
    pub stable: Sequence,
    /// Its root.
    pub stable_root: Digest,
    /// The hash chain over all requests executed for good.
    pub history: Digest,
    /// Requests executed for good since the start of the process.
    pub requests_executed: u64,
    /// Requests waiting to be ordered.
    pub pending_requests: usize,
    /// The round that the order is in, if it has rounds: RITAS.
    pub round: Option<u64>,
    /// Batches between stable checkpoint and the highest known.
    pub slots: usize,
    /// View changes started since the start of the process.
    pub view_changes: u64,
    /// State transfer: target and items received, if one is running.
    pub transfer: Option<(Sequence, u64)>,
    /// Where this replica's state differs from the one that f+1 others signed, until it is repaired. Known in a Backup
    /// only: elsewhere right states of one position may count batches otherwise, and have other roots.
    pub differs: Option<Sequence>,
    /// How many requests were refused because the replicas executed them otherwise, and the position of the last one
    /// ([`crate::dissent`]).
    pub disputed: (u64, u64),
    /// The position of the request that closed the cluster, if one did for good.
    pub closed: Option<u64>,
    /// Whether the ring is slow, and where, if a ring runs.
    pub ring_alarm: Option<Alarm>,
    /// What others said that was not accepted, by sender.
    pub rejections: Vec<(Account, RejectionCounts)>,
    /// Replicas that contradicted themselves or 2f+1 others, with the reason and how often.
    pub suspicions: Vec<(ReplicaId, Rejection, u64)>,
}
