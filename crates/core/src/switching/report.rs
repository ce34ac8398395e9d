//! What an instance leaves behind: abort reports, proofs made of them, and the history that they prove.
//!
//! An abort report says what a replica had logged when it stopped. 2f+1 of them from one instance (f+1 of one end from
//! a Backup) prove that it aborted, and yield the *abort history* with which the next instance begins.
//!
//! # Why the abort history holds everything that committed
//! *Where all 3f+1 replicas commit.* A request committed only if every correct replica logged it at the same position
//! of the same history, before it stopped. Any 2f+1 reports contain f+1 of correct replicas, all of them with that
//! prefix. The abort history is the longest prefix that f+1 reports share (abs-D8): at least that long, and since two
//! groups of f+1 out of 2f+1 have a member in common, there is only one. One of the f+1 is correct, so it is a
//! prefix of a log that a correct replica really had: no request is executed twice, and every body can be fetched.
//!
//! *Where 2f+1 replicas commit*, in the resilient ring, f+1 reports may miss what committed (ring-F5).
//! There a request committed only if f+1 correct replicas held a certificate for the history with it, signed by
//! 2f+1. Any 2f+1 reports contain one of theirs. The abort history is the longest certified one: two certificates have
//! a correct signer in common, who signed one history only, so the shorter is a prefix of the longer
//! ([`crate::protocols::ring_resilient`]). f+1 of its signers are correct, so every body can be fetched. What no
//! report certifies has not committed there; then what committed before is in the prefix that f+1 reports share.
//!
//! # Where n is more than 3f+1
//! 2f+1 reads [`strong`](Replicas::strong) in reports and certificates, and f+1 stays what it is. Any strong set of
//! reports has strong − f ≥ f+1 of correct replicas, so that what committed is shared. But there may be more than one
//! longest prefix: of six replicas four report, and two and two may share what has not committed. It does no harm. Each
//! group of f+1 has a correct member, whose log begins with what committed; all that is left is to take the same one
//! everywhere for a given proof, and that is the one that the lowest signer is in. Two certificates have a correct
//! signer in common, and so have those who said COMM and those who report.
//!
//! # Where the abort history begins
//! No lower than needed: at the highest position that is certain to be in every correct history. Of f+1 anchors one is
//! a correct replica's or above one, and an anchor that comes with a certificate is certain by itself. The report that
//! certifies the longest history may begin above that, because few have heard how far everybody has come: then another
//! one, which lists the same history there, supplies its beginning. At most f correct replicas have an anchor above f+1
//! others, so one of the 2f+1 reports is a correct replica's that begins low enough.
//!
//! # Why there is a state to begin with
//! Who is too far behind for the bodies fetches a state: the lowest boundary at or above the history's anchor that is
//! known to be true, because f+1 reports attest it or a certificate comes with it. A boundary below the anchor is of no
//! use: what lies in between is in nobody's list. There always is one. Take the highest anchor of a correct replica in
//! the proof; the history's anchor is not above it. It is
//! * the end of a Backup, or the state before the first request: then all correct reports begin there; or
//! * a checkpoint that all n confirmed: then each correct report has it among its boundaries, since there is no correct
//!   anchor above it, or has a later one of that kind; or
//! * a checkpoint of a resilient ring, which 2f+1 signed. Of those f may be liars, and of the others all but one may be
//!   absent, or back from a crash without it; so equal words are too much to ask for, in that instance and in
//!   those after it. Its certificate goes with it instead, from instance to instance, for as long as it is the anchor
//!   ([`super::Ledger::certificate`]), and makes it the history's anchor: it has been executed, so it is in every
//!   correct history.
//!
//! So whoever begins with a history has its anchor there, or knows the highest boundary that all n confirmed, if that
//! is above it; which is what the second case needs in the instance after that.
//!
//! # Why reports stay short
//! Where there is no Backup in between, an anchor may stay where it is for ever, because a liar says nothing about
//! checkpoints to one replica. Everything that replica inherits is then above its anchor. What it logs itself ends one
//! [`Cluster::history_bound`] above it. So does what any other correct replica logs, above its own anchor, which is
//! certified, and then this replica takes it over with the proof; or which all n confirmed, this one too. A replica
//! therefore confirms nothing that is further above its anchor than [`AbortReport::confirmed_max`]: one bound more is
//! [`Cluster::inherited_bound`], and that is all that anybody accepts. Should a history be longer all the same, its own
//! anchor takes the place of the replica's ([`super::opening`]). What counts for entries counts for boundaries: with
//! [`CHECKPOINTS_MAX`] above its anchor a replica takes no further checkpoint.

mod history;
mod paths;
mod proof;

pub use history::AbortHistory;
pub use proof::{CheckedReport, ClaimedProof, Proof};

use super::certificate::{Certificates, Certified, Prepared, Stable};
use crate::auth::{Certificate, Claimed, Keyring, Signable};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::history::Boundary;
use crate::ids::InstanceId;
use crate::replicas::{ReplicaSet, Replicas};
use crate::schedule::{Ending, Specification};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use alloc::vec::Vec;

/// Entries in any list of a report or of the log; see [`Cluster::inherited_bound`].
pub const ENTRIES_MAX: usize = 1 << 14;

/// Boundaries that a report may list.
pub const BOUNDARIES_MAX: usize = 64;

/// Checkpoints above its anchor with which a replica takes no further one. Beside these a report has room for what
/// others attested.
pub const CHECKPOINTS_MAX: usize = BOUNDARIES_MAX / 2;

/// ABORT(i): what one replica had logged in instance i when it stopped. Signed once, and never made differently; but a
/// replica that lost its log comes to the end of a Backup again, and may have heard of others since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbortReport {
    /// i.
    pub instance: InstanceId,
    /// Where the list begins (abs-D7); for a Backup, its end.
    pub anchor: Boundary,
    /// Checkpoints taken above the anchor: others may have stabilised one of them (abs-S3).
    pub boundaries: Vec<Boundary>,
    /// The digests of the entries above the anchor.
    pub digests: Vec<Digest>,
    /// This replica stopped because there was hardly any load.
    pub low_load: bool,
    /// Whom this replica had not heard of for a while ([`crate::compositions::presence`]).
    pub silent: ReplicaSet,
    /// What proves anchor and end, where the protocol makes such certificates.
    pub certificates: Certificates,
}

impl Wire for AbortReport {
    fn encode(&self, out: &mut impl Sink) {
        self.instance.encode(out);
        self.anchor.encode(out);
        encode_list(&self.boundaries, out);
        encode_list(&self.digests, out);
        self.low_load.encode(out);
        self.silent.encode(out);
        self.certificates.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self {
            instance: Wire::decode(reader)?,
            anchor: Wire::decode(reader)?,
            boundaries: reader.list(BOUNDARIES_MAX)?,
            digests: reader.list(ENTRIES_MAX)?,
            low_load: Wire::decode(reader)?,
            silent: Wire::decode(reader)?,
            certificates: Wire::decode(reader)?,
        })
    }
}

impl Signable for AbortReport {
    const KIND: u8 = 5;
}

/// How many reports prove that an instance has ended.
const fn reports_needed(ending: Ending, replicas: Replicas) -> usize {
    match ending {
        Ending::Agreed => replicas.weak(),
        Ending::Shared | Ending::Certified => replicas.strong(),
        Ending::Never => usize::MAX,
    }
}

impl AbortReport {
    /// The digest of the history at each position from the anchor to the end.
    fn histories(&self) -> Vec<Digest> {
        let mut history = self.anchor.history;
        let mut histories = Vec::with_capacity(self.digests.len() + 1);
        histories.push(history);
        for digest in &self.digests {
            history = history.chain(*digest);
            histories.push(history);
        }
        histories
    }

    /// Whether both say that a Backup has come to the same end. Whom they have not heard of is another matter.
    fn has_end_of(&self, other: &Self) -> bool {
        let Self { instance, anchor, boundaries, digests, low_load, silent: _, certificates } = self;
        (*instance, *anchor, *low_load) == (other.instance, other.anchor, other.low_load)
            && *boundaries == other.boundaries
            && *digests == other.digests
            && *certificates == other.certificates
    }

    /// The last position that is listed.
    pub fn end(&self) -> u64 {
        self.anchor.position.saturating_add(self.digests.len() as u64)
    }

    /// How far above its own anchor a replica confirms a checkpoint: others may log one [`Cluster::history_bound`] more
    /// above that. It never confirms less than it may log itself.
    pub fn confirmed_max(cluster: &Cluster) -> u64 {
        let bound = cluster.history_bound();
        cluster.inherited_bound().saturating_sub(bound).max(bound)
    }

    /// The most bytes of a proof that correct replicas' reports make.
    pub fn proof_bytes_max(cluster: &Cluster) -> u64 {
        let strong = cluster.replicas.strong() as u64;
        // Each certificate is a statement and 2f+1 signatures with their signers.
        let certificates = 2 * (256 + strong * 80);
        let report = 512 + 32 * cluster.inherited_bound() + 72 * BOUNDARIES_MAX as u64 + certificates;
        strong * report
    }

    /// Whether it is no longer than a correct replica's, and its certificates are what a correct replica in an instance
    /// of this part would have: about this very list, and signed by 2f+1. These are what it proves.
    pub fn check(&self, cluster: &Cluster, keyring: &Keyring, what: &Specification) -> Option<Certified> {
        let holds = self.digests.len() as u64 <= cluster.inherited_bound()
            && match what.part.ending() {
                Ending::Agreed => self.certificates.is_empty(),
                Ending::Shared => self.certificates.prepared.is_none(),
                Ending::Certified => true,
                Ending::Never => false,
            }
            && self.certificates_are_its_own(cluster);
        if holds { self.certificates.check(cluster, keyring, what.replicas) } else { None }
    }

    /// Whether the certificates are about this list: its anchor, and its end.
    fn certificates_are_its_own(&self, cluster: &Cluster) -> bool {
        let Certificates { prepared, stable } = &self.certificates;
        let of_end = |certificate: &Claimed<Certificate<Prepared>>| {
            let Prepared { instance, position, history } = *certificate.claims();
            let histories = self.histories();
            instance == self.instance && position == self.end() && histories.last() == Some(&history)
        };
        let of_anchor = |certificate: &Claimed<Certificate<Stable>>| {
            let Stable { instance, boundary, .. } = *certificate.claims();
            let was_ring = instance <= self.instance && cluster.part(instance).certifies();
            was_ring && boundary == self.anchor
        };
        prepared.iter().all(of_end) && stable.iter().all(of_anchor)
    }

    /// What is to prove the anchor, if that was reached in this instance.
    pub(crate) fn stable_here(&self) -> Option<&Claimed<Certificate<Stable>>> {
        self.certificates.stable.as_ref().filter(|certificate| certificate.claims().instance == self.instance)
    }

    /// Whether the history that it lists is certified to its end in this instance. What was certain in an earlier one
    /// says nothing of what committed since.
    fn is_certified(&self) -> bool {
        self.certificates.prepared.is_some() || (self.stable_here().is_some() && self.digests.is_empty())
    }

    /// The boundaries that this report attests: with a root that its sender computed or had proved.
    fn attested(&self) -> impl Iterator<Item = &Boundary> {
        core::iter::once(&self.anchor).chain(&self.boundaries).filter(|boundary| boundary.root != Digest::ZERO)
    }
}

#[cfg(test)]
mod certified_tests;
#[cfg(test)]
mod tests;
