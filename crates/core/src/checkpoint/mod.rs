//! State as numbered pages under a Merkle root: checkpoints, rollback, and transfer to a replica that fell behind.
//!
//! * [`Tree`] is one immutable version of all pages: a radix tree with 64-way nodes, shared between versions, every
//!   node with its digest. A checkpoint is a cheap clone of it.
//! * [`transfer`] fetches a version from the others, node by node, checking every answer against the digest it must
//!   have, and keeps what it already has.
//! * [`Checkpoint`] is what replicas sign: 2f+1 equal ones make it stable, and prove it to anybody. [`Evidence`] is
//!   that proof, or what stands in its place where nobody signs a state.

mod pages;
pub mod transfer;

pub use pages::{ChildId, LEVELS, NODE_CHILDREN, NodeContent, NodeId, Pages, Tree, page_digest};
pub use transfer::{Progress, Transfer, TransferMessage, serve};

use crate::auth::{Certificate, Claimed, Keyring, Signable, Signed};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, Principal, Sequence};
use crate::rejection::Rejection;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::wire_struct;
use alloc::vec::Vec;
use core::fmt;

/// CHECKPOINT(i, n, r, d): after batch n, under the rulings up to batch r, the state's Merkle root is d. The root
/// covers the service, the client table, the agreed time and the history digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Checkpoint {
    /// The instance that executed it (abs-S9).
    pub instance: InstanceId,
    /// n.
    pub sequence: Sequence,
    /// r: the batch of the last ruling that the state follows ([`crate::dissent`]), which may be a later one; 0 if
    /// none.
    pub ruled: Sequence,
    /// d.
    pub root: Digest,
}
wire_struct!(Checkpoint { instance, sequence, ruled, root });

impl Checkpoint {
    /// Whether there may be one after this batch: it is due, or a ruling in the batch makes it so, or a Backup may end
    /// there.
    pub fn is_plausible(&self, cluster: &Cluster) -> bool {
        let is_due = cluster.is_checkpoint(self.sequence) || self.ruled == self.sequence;
        self.sequence > Sequence(0) && (is_due || cluster.protocol.hands_on())
    }
}

/// Why a state is the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It is the one before an instance's first batch, with which everybody begins: nobody needs to sign it.
    Genesis(Checkpoint),
    /// Replicas signed it. How many say so to whom, says whoever asks.
    Certified(Certificate<Checkpoint>),
    /// Abort reports or a ring's certificate attest it: what proves that an instance may begin, or what follows in the
    /// log, tells.
    Reported(Checkpoint),
    /// It is what this replica has, and nobody else's word.
    Own(Checkpoint),
}

impl Evidence {
    /// That the state with this root is the one with which an instance begins.
    pub const fn genesis(instance: InstanceId, root: Digest) -> Self {
        Self::Genesis(Checkpoint { instance, sequence: Sequence(0), ruled: Sequence(0), root })
    }

    /// That the state at this position of an instance's history is attested otherwise.
    pub(crate) const fn reported(instance: InstanceId, position: u64, root: Digest) -> Self {
        Self::Reported(Checkpoint { instance, sequence: Sequence(position), ruled: Sequence(0), root })
    }

    /// Which state.
    pub const fn checkpoint(&self) -> &Checkpoint {
        match self {
            Self::Certified(certificate) => certificate.value(),
            Self::Genesis(checkpoint) | Self::Reported(checkpoint) | Self::Own(checkpoint) => checkpoint,
        }
    }

    /// The signatures.
    pub const fn certificate(&self) -> Option<&Certificate<Checkpoint>> {
        match self {
            Self::Certified(certificate) => Some(certificate),
            Self::Genesis(_) | Self::Reported(_) | Self::Own(_) => None,
        }
    }

    /// The same, if so many signed.
    pub fn certificate_of(&self, signers: usize) -> Option<&Certificate<Checkpoint>> {
        self.certificate().filter(|certificate| certificate.signers().len() >= signers)
    }

    /// What is true of a checkpoint above the init history that this replica takes for proved.
    pub(crate) fn check_invariants(&self, cluster: &Cluster, threshold: usize) {
        let certificate = self.certificate();
        assert!(certificate.is_some(), "replicas have signed it");
        certificate.iter().for_each(|certificate| certificate.check_invariants(cluster, threshold));
    }

    /// What others are told, and what is written down: a certificate, which has no signatures if there are none.
    pub fn claim(&self) -> Claimed<Certificate<Checkpoint>> {
        match self {
            Self::Certified(certificate) => certificate.claim(),
            Self::Genesis(checkpoint) | Self::Reported(checkpoint) | Self::Own(checkpoint) => {
                Claimed::certified(*checkpoint, Vec::new())
            }
        }
    }

    /// What this replica wrote down. What nobody signed it took for a reason that the log tells.
    pub(crate) fn recalled(claim: Claimed<Certificate<Checkpoint>>) -> Self {
        match claim.signatures() {
            [] => Self::Reported(*claim.claims()),
            _ => Self::Certified(claim.recalled()),
        }
    }
}

/// A version of the state, to be written to disk.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Which state it is, and why.
    pub evidence: Evidence,
    /// The pages.
    pub tree: Tree,
}

impl Snapshot {
    /// The batch after which this was the state.
    pub const fn sequence(&self) -> Sequence {
        self.evidence.checkpoint().sequence
    }

    /// Whether the pages have the root that the evidence names.
    pub fn is_consistent(&self) -> bool {
        self.tree.root() == self.evidence.checkpoint().root
    }
}

/// A snapshot as it was read: what it says of itself nobody has checked.
#[derive(Clone, Debug)]
pub struct ClaimedSnapshot {
    /// Which state it is said to be. Without signatures if it is not certified, or begins the service.
    pub certificate: Claimed<Certificate<Checkpoint>>,
    /// The pages.
    pub tree: Tree,
}

impl ClaimedSnapshot {
    /// The batch after which this was the state, as it says.
    pub const fn sequence(&self) -> Sequence {
        self.certificate.claims().sequence
    }

    /// Whether the pages have the root that it names.
    pub fn is_consistent(&self) -> bool {
        self.tree.root() == self.certificate.claims().root
    }
}

impl From<Snapshot> for ClaimedSnapshot {
    fn from(Snapshot { evidence, tree }: Snapshot) -> Self {
        Self { certificate: evidence.claim(), tree }
    }
}

impl fmt::Display for Claimed<Signed<Checkpoint>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CHECKPOINT {} {:?}", self.claims().sequence, self.claims().root)
    }
}

impl Signable for Checkpoint {
    const KIND: u8 = 2;
}

impl Spoken for Claimed<Signed<Checkpoint>> {
    fn instance(&self) -> Option<InstanceId> {
        None
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    fn cover(&self) -> Cover {
        Cover::Whole
    }

    fn may_overtake(&self) -> bool {
        false
    }

    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)
    }
}
