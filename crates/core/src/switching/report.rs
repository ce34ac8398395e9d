//! What an instance leaves behind: abort reports, proofs made of them, and the history that they prove.
//!
//! An abort report says what a replica had logged when it stopped. 2f+1 of them from one instance (f+1 equal ones from
//! a Backup) prove that it aborted, and yield the *abort history* with which the next instance begins.
//!
//! # Why the abort history holds everything that committed
//! *Where all 3f+1 replicas commit.* A request committed only if every correct replica logged it at the same position
//! of the same history, before it stopped. Any 2f+1 reports contain f+1 of correct replicas, all of them with that
//! prefix. The abort history is the longest prefix that f+1 reports share (abs-D8): at least that long, and since two
//! groups of f+1 out of 2f+1 have a member in common, there is only one. One of the f+1 is correct, so it is a
//! prefix of a log that a correct replica really had: no request twice, and every body can be fetched.
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

pub use history::AbortHistory;

use super::certificate::{Certificates, Prepared, Stable};
use crate::auth::{Certificate, Claimed, Keyring, Signable, Signed};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::history::Boundary;
use crate::ids::{InstanceId, ReplicaId};
use crate::replicas::{REPLICAS_MAX, Replicas};
use crate::schedule::{Ending, Specification};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;
use history::begin_at;

/// Entries in any list of a report or of the log; see [`Cluster::inherited_bound`].
pub const ENTRIES_MAX: usize = 1 << 14;

/// Boundaries that a report may list.
pub const BOUNDARIES_MAX: usize = 64;

/// Checkpoints above its anchor with which a replica takes no further one. Beside these a report has room for what
/// others attested.
pub const CHECKPOINTS_MAX: usize = BOUNDARIES_MAX / 2;

/// ABORT(i): what one replica had logged in instance i when it stopped. Signed once, and never made differently.
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
        self.certificates.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self {
            instance: Wire::decode(reader)?,
            anchor: Wire::decode(reader)?,
            boundaries: reader.list(BOUNDARIES_MAX)?,
            digests: reader.list(ENTRIES_MAX)?,
            low_load: Wire::decode(reader)?,
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

    /// Whether it is no longer than a correct replica's, and its certificates are what a correct replica in such an
    /// instance would have: about this very list, and signed by 2f+1.
    #[must_use]
    pub fn check(&self, cluster: &Cluster, keyring: &Keyring, what: &Specification) -> bool {
        self.digests.len() as u64 <= cluster.inherited_bound()
            && match what.part.ending() {
                Ending::Agreed => self.certificates.is_empty(),
                Ending::Shared => self.certificates.prepared.is_none(),
                Ending::Certified => true,
                Ending::Never => false,
            }
            && self.certificates_are_its_own(cluster)
            && self.certificates.check(cluster, keyring, what.replicas)
    }

    /// Whether the certificates are about this list: its anchor, and its end.
    fn certificates_are_its_own(&self, cluster: &Cluster) -> bool {
        let Certificates { prepared, stable } = &self.certificates;
        let of_end = |certificate: &Certificate<Prepared>| {
            let Prepared { instance, position, history } = certificate.value;
            let histories = self.histories();
            instance == self.instance && position == self.end() && histories.last() == Some(&history)
        };
        let of_anchor = |certificate: &Certificate<Stable>| {
            let Stable { instance, boundary, .. } = certificate.value;
            let was_ring = instance <= self.instance && cluster.part(instance).certifies();
            was_ring && boundary == self.anchor
        };
        prepared.iter().all(of_end) && stable.iter().all(of_anchor)
    }

    /// What proves the anchor, if that was reached in this instance.
    pub(crate) fn stable_here(&self) -> Option<&Certificate<Stable>> {
        self.certificates.stable.as_ref().filter(|certificate| certificate.value.instance == self.instance)
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

/// The reports that prove that an instance aborted, by ascending signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The reports.
    pub reports: Vec<Claimed<Signed<AbortReport>>>,
}

impl Wire for Proof {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.reports, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let reports: Vec<Claimed<Signed<AbortReport>>> = reader.list(REPLICAS_MAX)?;
        if reports.is_empty() || reports.windows(2).any(|pair| pair[0].signer() >= pair[1].signer()) {
            return Err(WireError::NotCanonical);
        }
        Ok(Self { reports })
    }
}

impl Proof {
    /// The proof that these reports make, if there are enough of them: f+1 equal ones of a Backup, 2f+1 otherwise.
    pub fn assemble<'a>(
        what: &Specification,
        reports: impl Iterator<Item = &'a Signed<AbortReport>> + Clone,
    ) -> Option<Self> {
        let mut chosen: Vec<&Signed<AbortReport>> = Vec::new();
        let needed = reports_needed(what.part.ending(), what.replicas);
        if what.part.ending() == Ending::Agreed {
            let equal = |to: &Signed<AbortReport>| reports.clone().filter(|other| other.value() == to.value()).count();
            let agreed = reports.clone().find(|report| equal(report) >= needed)?;
            chosen.extend(reports.filter(|report| report.value() == agreed.value()).take(needed));
        } else {
            chosen.extend(reports.take(needed));
            if chosen.len() < needed {
                return None;
            }
        }
        assert_eq!(chosen.len(), needed, "a proof has as many reports as it needs");
        chosen.sort_by_key(|report| report.signer());
        assert!(chosen.is_sorted_by(|one, next| one.signer() < next.signer()), "nobody reports twice");
        Some(Self { reports: chosen.into_iter().map(Signed::claim).collect() })
    }

    /// The instance that aborted.
    pub fn instance(&self) -> InstanceId {
        self.reports[0].claims().instance
    }

    /// Checks number, signers, signatures and certificates of the reports. They are of the instance that this
    /// specification is about.
    #[must_use]
    pub fn check(&self, cluster: &Cluster, keyring: &Keyring, what: &Specification) -> bool {
        let instance = self.instance();
        let ending = what.part.ending();
        let sound = |report: &Claimed<Signed<AbortReport>>| {
            report.claims().instance == instance
                && what.replicas.contains(report.signer())
                && (ending != Ending::Agreed || report.claims() == self.reports[0].claims())
        };
        instance == what.number
            && self.reports.len() == reports_needed(ending, what.replicas)
            && self.reports.iter().all(sound)
            && self.reports.windows(2).all(|pair| pair[0].signer() < pair[1].signer())
            && self.reports.iter().all(|report| keyring.verify_in_place(report).is_some())
            && self.reports.iter().all(|report| report.claims().check(cluster, keyring, what))
    }

    /// The history that the next instance begins with, of a proof that was [checked](Self::check) or made of reports
    /// that were; `None` if the reports have nothing in common, which those of a protocol with at most f liars always
    /// have.
    pub fn abort_history(&self, what: &Specification) -> Option<AbortHistory> {
        let paths = Paths::of(&self.reports);
        let longest = if what.part.certifies() { paths.longest_certified(what.replicas) } else { None };
        let history = longest.or_else(|| self.shared_history(what.replicas, &paths));
        history.iter().for_each(AbortHistory::check_invariants);
        history
    }

    /// The longest that f+1 reports share.
    fn shared_history(&self, replicas: Replicas, paths: &Paths<'_>) -> Option<AbortHistory> {
        let (position, members) = paths.longest_shared(replicas)?;
        let lowest = members.iter().copied().min_by_key(|path| paths.anchor(*path).position)?;
        // Those whose anchor lies on this history.
        let mut beside: Vec<usize> = (0..self.reports.len())
            .filter(|path| paths.anchor(*path).position <= position && paths.join(*path, lowest))
            .collect();
        // f+1 have their anchor here or above, one of them is correct: it is certain, and nobody needs what is below.
        let anchor = replicas.reached(beside.iter().map(|path| paths.anchor(*path)))?;
        let on_it =
            |known: &Boundary| known.position <= position && paths.at(lowest, known.position) == Some(known.history);
        let anchor = paths.certified_anchors().filter(on_it).chain([anchor]).max_by_key(|anchor| anchor.position)?;
        let skipped = (anchor.position - paths.anchor(lowest).position) as usize;
        let length = (position - paths.anchor(lowest).position) as usize;
        // A member may have dropped what a correct replica, whose log parts from this history later, still has.
        let dropped = members.iter().any(|path| paths.anchor(*path).position > anchor.position);
        beside.retain(|path| dropped || members.contains(path));
        let known = paths.known(replicas).filter(|known| known.position >= anchor.position && on_it(known));
        let (anchor, boundaries) = begin_at(anchor, known);
        let low_load = self.reports.iter().filter(|report| report.claims().low_load).count() >= replicas.weak();
        Some(AbortHistory {
            position,
            anchor,
            boundaries,
            digests: self.reports[lowest].claims().digests[skipped..length].to_vec(),
            histories: paths.histories[lowest][skipped..=length].to_vec(),
            holders: beside.iter().map(|path| self.reports[*path].signer()).collect(),
            low_load,
            certificate: paths.certificate(anchor),
        })
    }
}

/// The histories that the reports of a proof list, by the place of the report in it.
struct Paths<'a> {
    reports: &'a [Claimed<Signed<AbortReport>>],
    histories: Vec<Vec<Digest>>,
}

impl<'a> Paths<'a> {
    fn of(reports: &'a [Claimed<Signed<AbortReport>>]) -> Self {
        Self { reports, histories: reports.iter().map(|report| report.claims().histories()).collect() }
    }

    fn anchor(&self, path: usize) -> Boundary {
        self.reports[path].claims().anchor
    }

    /// The digest of the history at a position that a report lists.
    fn at(&self, path: usize, position: u64) -> Option<Digest> {
        let offset = position.checked_sub(self.anchor(path).position)?;
        self.histories[path].get(usize::try_from(offset).ok()?).copied()
    }

    /// Whether two reports list the same history where the higher of their anchors is.
    fn join(&self, one: usize, other: usize) -> bool {
        let higher = self.anchor(one).position.max(self.anchor(other).position);
        let digest = self.at(one, higher);
        digest.is_some() && digest == self.at(other, higher)
    }

    /// abs-D8: the last position where f+1 reports list the same history, and which reports.
    fn longest_shared(&self, replicas: Replicas) -> Option<(u64, Vec<usize>)> {
        // Only where f+1 reports have something to say: a liar's lowest or highest position costs nobody time
        // (abs-K20).
        let begins = self.reports.iter().map(|report| Reverse(report.claims().anchor.position));
        let ends = self.reports.iter().map(|report| report.claims().end());
        let (Reverse(begin), end) = (replicas.reached(begins)?, replicas.reached(ends)?);
        let places = 0..self.reports.len();
        (begin..=end).rev().find_map(|position| {
            places.clone().find_map(|path| {
                let digest = self.at(path, position)?;
                let members: Vec<usize> =
                    places.clone().filter(|other| self.at(*other, position) == Some(digest)).collect();
                (members.len() >= replicas.weak()).then_some((position, members))
            })
        })
    }

    /// Where everybody may begin: the highest anchor that is certified, or has f+1 of them there or above.
    fn certain(&self, replicas: Replicas) -> Option<u64> {
        let reached = replicas.reached(self.reports.iter().map(|report| report.claims().anchor.position));
        self.certified_anchors().map(|anchor| anchor.position).chain(reached).max()
    }

    fn certified_anchors(&self) -> impl Iterator<Item = Boundary> {
        self.stable().map(|certificate| certificate.value.boundary)
    }

    fn stable(&self) -> impl Iterator<Item = &Certificate<Stable>> {
        self.reports.iter().filter_map(|report| report.claims().certificates.stable.as_ref())
    }

    /// What proves this anchor, if one of the reports has it.
    fn certificate(&self, anchor: Boundary) -> Option<Certificate<Stable>> {
        self.stable().find(|certificate| certificate.value.boundary == anchor).cloned()
    }

    /// Boundaries that are true: f+1 attest them, or a certificate does.
    fn known(&self, replicas: Replicas) -> impl Iterator<Item = Boundary> {
        self.attested(replicas).chain(self.certified_anchors())
    }

    /// A report that begins no higher than `certain`, and lists what this one does where this one begins.
    fn beginning(&self, path: usize, certain: u64) -> Option<usize> {
        let begins_low = |other: &usize| self.anchor(*other).position <= certain;
        let anchor = self.anchor(path);
        let joins = |other: &usize| self.at(*other, anchor.position) == Some(anchor.history);
        Some(path)
            .filter(begins_low)
            .or_else(|| (0..self.reports.len()).find(|other| begins_low(other) && joins(other)))
    }

    /// The longest history that a report certifies. A liar may have a certificate that no correct replica has, and
    /// list too little beside it: then the next one counts.
    fn longest_certified(&self, replicas: Replicas) -> Option<AbortHistory> {
        let certain = self.certain(replicas)?;
        let mut certified: Vec<usize> =
            (0..self.reports.len()).filter(|path| self.reports[*path].claims().is_certified()).collect();
        certified.sort_by_key(|path| Reverse(self.reports[*path].claims().end()));
        let usable = |path: usize| {
            let beginning = self.beginning(path, certain)?;
            (certain <= self.reports[path].claims().end()).then_some((path, beginning))
        };
        let (path, beginning) = certified.into_iter().find_map(usable)?;
        let (report, first) = (self.reports[path].claims(), self.reports[beginning].claims());
        let offset = |list: &AbortReport, position: u64| (position - list.anchor.position) as usize;
        let mut digests = Vec::new();
        if beginning != path && certain < report.anchor.position {
            digests.extend_from_slice(&first.digests[offset(first, certain)..offset(first, report.anchor.position)]);
        }
        digests.extend_from_slice(&report.digests[certain.saturating_sub(report.anchor.position) as usize..]);
        let mut histories = Vec::with_capacity(digests.len() + 1);
        histories.push(self.at(beginning, certain).or_else(|| self.at(path, certain))?);
        for digest in &digests {
            histories.push(histories.last()?.chain(*digest));
        }
        let on_it = |known: &Boundary| {
            let offset = known.position.checked_sub(certain).and_then(|offset| usize::try_from(offset).ok());
            offset.and_then(|offset| histories.get(offset)) == Some(&known.history)
        };
        let anchor = Boundary { position: certain, history: histories[0], root: Digest::ZERO };
        let (anchor, boundaries) = begin_at(anchor, self.known(replicas).filter(on_it));
        let signers = report.certificates.prepared.iter().flat_map(|certificate| &certificate.signatures);
        let holders: BTreeSet<ReplicaId> = signers
            .map(|(signer, _)| *signer)
            .chain([path, beginning].map(|path| self.reports[path].signer()))
            .collect();
        Some(AbortHistory {
            position: report.end(),
            anchor,
            certificate: self.certificate(anchor),
            boundaries,
            digests,
            histories,
            holders: holders.into_iter().collect(),
            low_load: false,
        })
    }

    /// Checkpoints that f+1 reports attest.
    fn attested(&self, replicas: Replicas) -> impl Iterator<Item = Boundary> {
        let attest = |known: &Boundary| {
            self.reports.iter().filter(|report| report.claims().attested().any(|other| other == known)).count()
        };
        let all = self.reports.iter().flat_map(|report| report.claims().attested());
        all.copied().filter(move |known| attest(known) >= replicas.weak())
    }
}

#[cfg(test)]
mod certified_tests;
#[cfg(test)]
mod tests;
