//! State as numbered pages under a Merkle root: checkpoints, rollback, and transfer to a replica that fell behind.
//!
//! * [`Tree`] is one immutable version of all pages: a radix tree with 64-way nodes, shared between versions, every
//!   node with its digest. A checkpoint is a cheap clone of it.
//! * [`transfer`] fetches a version from the others, node by node, checking every answer against the digest it must
//!   have, and keeps what it already has.
//! * [`Checkpoint`] is what replicas sign: 2f+1 equal ones make it stable, and prove it to anybody.

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

/// A stable version of the state, to be written to disk.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The proof that 2f+1 replicas had this state. Without signatures only for the state before the first batch.
    pub certificate: Certificate<Checkpoint>,
    /// The pages.
    pub tree: Tree,
}

impl Snapshot {
    /// The batch after which this was the state.
    pub const fn sequence(&self) -> Sequence {
        self.certificate.value.sequence
    }

    /// Whether the pages have the root that the certificate names.
    pub fn is_consistent(&self) -> bool {
        self.tree.root() == self.certificate.value.root
    }
}

/// A certificate for the state before the first batch: everybody computes it, nobody needs to sign it.
pub const fn genesis(instance: InstanceId, root: Digest) -> Certificate<Checkpoint> {
    Certificate {
        value: Checkpoint { instance, sequence: Sequence(0), ruled: Sequence(0), root },
        signatures: Vec::new(),
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
