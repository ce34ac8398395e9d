//! What another replica of the resilient ring has said.

use crate::auth::{Claimed, Signed};
use crate::digest::Digest;
use crate::switching::certificate::{Prepared, Stable};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Votes of one replica that are kept for positions that are not logged here yet.
pub(super) const AHEAD_MAX: usize = 64;

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
    /// What it said about the anchor, or what is below, counts no more.
    pub(super) fn forget_below(&mut self, anchor: u64) {
        self.prepares.retain(|position, _| *position > anchor);
        self.votes.retain(|vote| vote.value().boundary.position > anchor);
    }
}
