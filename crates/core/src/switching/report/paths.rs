//! The history that the reports of a proof yield: what they share, or the longest that one certifies.

use super::AbortReport;
use super::history::{AbortHistory, begin_at};
use super::proof::Proof;
use crate::auth::{Certificate, Claimed, Signed};
use crate::digest::Digest;
use crate::history::Boundary;
use crate::ids::ReplicaId;
use crate::replicas::{ReplicaSet, Replicas};
use crate::schedule::Specification;
use crate::switching::certificate::{Certified, Stable};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;

impl Proof {
    /// The history that the next instance begins with; `None` if the reports have nothing in common, which those of a
    /// protocol with at most f liars always have.
    pub fn abort_history(&self, what: &Specification) -> Option<AbortHistory> {
        let paths = Paths::of(self);
        let longest = if what.part.certifies() { paths.longest_certified(what.replicas) } else { None };
        let mut history = longest.or_else(|| self.shared_history(what.replicas, &paths))?;
        history.silent = self.silent(what.replicas);
        history.check_invariants();
        Some(history)
    }

    /// Whom f+1 of those who report have not heard of for a while.
    pub(crate) fn silent(&self, replicas: Replicas) -> ReplicaSet {
        let of =
            |id: &ReplicaId| self.reports.reports.iter().filter(|report| report.claims().silent.contains(*id)).count();
        replicas.iter().filter(|id| of(id) >= replicas.weak()).collect()
    }

    /// The longest that f+1 reports share.
    pub(super) fn shared_history(&self, replicas: Replicas, paths: &Paths<'_>) -> Option<AbortHistory> {
        let reports = paths.reports;
        let (position, members) = paths.longest_shared(replicas)?;
        let lowest = members.iter().copied().min_by_key(|path| paths.anchor(*path).position)?;
        // Those whose anchor lies on this history.
        let mut beside: Vec<usize> = (0..reports.len())
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
        let low_load = reports.iter().filter(|report| report.claims().low_load).count() >= replicas.weak();
        Some(AbortHistory {
            position,
            anchor,
            boundaries,
            digests: reports[lowest].claims().digests[skipped..length].to_vec(),
            histories: paths.histories[lowest][skipped..=length].to_vec(),
            holders: beside.iter().map(|path| reports[*path].signer()).collect(),
            low_load,
            silent: ReplicaSet::NOBODY,
            certificate: paths.certificate(anchor),
        })
    }
}

/// The histories that the reports of a proof list, by the place of the report in it.
pub(super) struct Paths<'a> {
    reports: &'a [Claimed<Signed<AbortReport>>],
    proves: &'a [Certified],
    histories: Vec<Vec<Digest>>,
}

impl<'a> Paths<'a> {
    pub(super) fn of(proof: &'a Proof) -> Self {
        let (reports, proves) = (&proof.reports.reports, &proof.proves);
        Self { reports, proves, histories: reports.iter().map(|report| report.claims().histories()).collect() }
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
        self.stable().map(|certificate| certificate.value().boundary)
    }

    fn stable(&self) -> impl Iterator<Item = &Certificate<Stable>> {
        self.proves.iter().filter_map(|proves| proves.stable.as_ref())
    }

    /// What proves this anchor, if one of the reports has it.
    fn certificate(&self, anchor: Boundary) -> Option<Certificate<Stable>> {
        self.stable().find(|certificate| certificate.value().boundary == anchor).cloned()
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
        let signers = self.proves[path].prepared.iter().flat_map(Certificate::signers);
        let holders: BTreeSet<ReplicaId> =
            signers.chain([path, beginning].map(|path| self.reports[path].signer())).collect();
        Some(AbortHistory {
            position: report.end(),
            anchor,
            certificate: self.certificate(anchor),
            boundaries,
            digests,
            histories,
            holders: holders.into_iter().collect(),
            low_load: false,
            silent: ReplicaSet::NOBODY,
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
