//! What another replica of the resilient ring has said.

use crate::auth::{Claimed, Signed};
use crate::digest::Digest;
use crate::ids::ReplicaId;
use crate::switching::certificate::{Prepared, Stable};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Votes of one replica that are kept for positions that are not logged here yet.
pub(super) const AHEAD_MAX: usize = 64;

/// Checkpoints of one replica that are kept.
pub(super) const VOTES_MAX: usize = 8;

/// What another replica has said.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// Its PREPs for what is not logged here, unchecked: the first for each position, and of the nearest.
    pub(super) prepares: BTreeMap<u64, Claimed<Signed<Prepared>>>,
    /// Its COMMs for what is not logged here.
    pub(super) commits: BTreeMap<u64, Digest>,
    /// The last position of this log for which it has a certificate.
    pub(super) committed: Option<u64>,
    /// Its checkpoints.
    pub(super) votes: Vec<Signed<Stable>>,
    /// When it was last told what it lacked.
    pub(super) told: Option<Instant>,
    /// Up to which position, if it lacked anything.
    pub(super) told_until: Option<u64>,
}

impl Peer {
    /// What is true between steps, of the peer with this number, where the log is so long.
    pub(super) fn check_invariants(&self, id: ReplicaId, length: u64) {
        assert!(self.prepares.len() <= AHEAD_MAX && self.commits.len() <= AHEAD_MAX, "at most AHEAD_MAX");
        assert!(self.committed.is_none_or(|committed| committed <= length), "a certificate is for what is logged here");
        assert!(self.votes.len() <= VOTES_MAX, "at most VOTES_MAX");
        assert!(self.votes.iter().all(|vote| vote.signer() == id), "a vote is its signer's");
        let positions = || self.votes.iter().map(|vote| vote.value().boundary.position);
        assert!(positions().is_sorted_by(|one, next| one < next), "one vote for each position");
        assert!(self.told_until.is_none() || self.told.is_some(), "who was told up to somewhere was told");
    }

    /// What it said about the anchor, or what is below, counts no more.
    pub(super) fn forget_below(&mut self, anchor: u64) {
        self.prepares.retain(|position, _| *position > anchor);
        self.votes.retain(|vote| vote.value().boundary.position > anchor);
    }
}
