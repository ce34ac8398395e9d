//! What an instance leaves behind: abort reports, proofs made of them, and the history that they prove.
//!
//! An abort report says what a replica had logged when it stopped. 2f+1 of them from one instance (f+1 equal ones from
//! a Backup) prove that it aborted, and yield the *abort history* with which the next instance begins.
//!
//! # Why the abort history holds everything that committed
//! A request committed only if every correct replica logged it at the same position of the same history, before it
//! stopped. Any 2f+1 reports contain f+1 of correct replicas, all of them with that prefix. The abort history is the
//! longest prefix that f+1 reports share (D8): at least that long, and since two groups of f+1 out of 2f+1 have a
//! member in common, there is only one. One of the f+1 is correct, so that it is a prefix of a log that a correct
//! replica really had: no request twice, and every body can be fetched.

use crate::auth::{Keyring, Signable, Signed};
use crate::cluster::{Cluster, InstanceId, REPLICAS_MAX, ReplicaId};
use crate::compositions::Part;
use crate::digest::Digest;
use crate::history::Boundary;
use crate::wire::{Reader, Wire, WireError, encode_list};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Entries in any list of a report or of the log; see [`AbortReport::entries_max`].
pub const ENTRIES_MAX: usize = 1 << 14;

/// Boundaries that a report may list.
pub const BOUNDARIES_MAX: usize = 64;

/// ABORT(i): what one replica had logged in instance i when it stopped. Signed once, and never made differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbortReport {
    /// i.
    pub instance: InstanceId,
    /// Where the list begins (D7); for a Backup, its end.
    pub anchor: Boundary,
    /// Checkpoints taken above the anchor: others may have stabilised one of them (S3).
    pub boundaries: Vec<Boundary>,
    /// The digests of the entries above the anchor.
    pub digests: Vec<Digest>,
    /// This replica stopped because there was hardly any load.
    pub low_load: bool,
}

impl Wire for AbortReport {
    fn encode(&self, out: &mut Vec<u8>) {
        self.instance.encode(out);
        self.anchor.encode(out);
        encode_list(&self.boundaries, out);
        encode_list(&self.digests, out);
        self.low_load.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self {
            instance: Wire::decode(reader)?,
            anchor: Wire::decode(reader)?,
            boundaries: reader.list(BOUNDARIES_MAX)?,
            digests: reader.list(ENTRIES_MAX)?,
            low_load: Wire::decode(reader)?,
        })
    }
}

impl Signable for AbortReport {
    const KIND: u8 = 5;
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

    /// The most entries in a correct replica's report. A replica that never learns which checkpoints are certain keeps
    /// its anchor, and inherits one [`Cluster::history_bound`] more with every speculative instance, because the others
    /// go no further beyond a checkpoint that it has confirmed. A Backup ends with an anchor.
    pub fn entries_max(cluster: &Cluster) -> u64 {
        let in_a_row = cluster.protocol.schedule().map_or(0, |schedule| schedule.speculative_in_a_row());
        in_a_row * cluster.history_bound()
    }

    /// Whether it is no longer than a correct replica's.
    pub fn fits(&self, cluster: &Cluster) -> bool {
        self.digests.len() as u64 <= Self::entries_max(cluster)
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
    pub reports: Vec<Signed<AbortReport>>,
}

impl Wire for Proof {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_list(&self.reports, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let reports: Vec<Signed<AbortReport>> = reader.list(REPLICAS_MAX)?;
        if reports.is_empty() || reports.windows(2).any(|pair| pair[0].signer >= pair[1].signer) {
            return Err(WireError::NotCanonical);
        }
        Ok(Self { reports })
    }
}

impl Proof {
    /// The proof that these reports make, if there are enough of them: f+1 equal ones of a Backup, 2f+1 otherwise.
    pub fn assemble<'a>(
        cluster: &Cluster,
        part: Part,
        reports: impl Iterator<Item = &'a Signed<AbortReport>> + Clone,
    ) -> Option<Self> {
        let mut chosen: Vec<&Signed<AbortReport>> = Vec::new();
        if part == Part::Backup {
            let equal = |to: &Signed<AbortReport>| reports.clone().filter(|other| other.value == to.value).count();
            let agreed = reports.clone().find(|report| equal(report) >= cluster.weak())?;
            chosen.extend(reports.filter(|report| report.value == agreed.value).take(cluster.weak()));
        } else {
            chosen.extend(reports.take(cluster.strong()));
            if chosen.len() < cluster.strong() {
                return None;
            }
        }
        chosen.sort_by_key(|report| report.signer);
        Some(Self { reports: chosen.into_iter().cloned().collect() })
    }

    /// The instance that aborted.
    pub fn instance(&self) -> InstanceId {
        self.reports[0].value.instance
    }

    /// Checks number, signers and signatures of the reports. The part is what the aborted instance ran.
    #[must_use]
    pub fn check(&self, cluster: &Cluster, keyring: &Keyring, part: Part) -> bool {
        let instance = self.instance();
        let needed = if part == Part::Backup { cluster.weak() } else { cluster.strong() };
        let sound = |report: &Signed<AbortReport>| {
            report.value.instance == instance
                && cluster.contains(report.signer)
                && (part != Part::Backup || report.value == self.reports[0].value)
                && report.value.fits(cluster)
        };
        self.reports.len() == needed
            && self.reports.iter().all(sound)
            && self.reports.windows(2).all(|pair| pair[0].signer < pair[1].signer)
            && self.reports.iter().all(|report| keyring.check_signed(report))
    }

    /// The history that the next instance begins with; `None` if the reports have nothing in common, which those of
    /// a protocol with at most f liars always have.
    pub fn abort_history(&self, cluster: &Cluster) -> Option<AbortHistory> {
        let paths = Paths::of(&self.reports);
        let (position, members) = paths.longest_shared(cluster)?;
        let lowest = members.iter().copied().min_by_key(|path| paths.anchor(*path).position)?;
        // Those whose anchor lies on this history, from the highest to the lowest.
        let mut beside: Vec<usize> = (0..self.reports.len())
            .filter(|path| paths.anchor(*path).position <= position && paths.join(*path, lowest))
            .collect();
        beside.sort_by_key(|path| core::cmp::Reverse(paths.anchor(*path)));
        // f+1 have their anchor here or above, one of them is correct: it is certain, and nobody needs what is below.
        let mut anchor = paths.anchor(*beside.get(cluster.f)?);
        let skipped = (anchor.position - paths.anchor(lowest).position) as usize;
        let length = (position - paths.anchor(lowest).position) as usize;
        // A member may have dropped what a correct replica, whose log parts from this history later, still has.
        let dropped = members.iter().any(|path| paths.anchor(*path).position > anchor.position);
        beside.retain(|path| dropped || members.contains(path));
        beside.sort_unstable();
        let boundaries: BTreeSet<Boundary> = paths
            .attested(cluster)
            .filter(|known| known.position <= position && paths.at(lowest, known.position) == Some(known.history))
            .collect();
        if !boundaries.contains(&anchor) {
            // Its position is certain, what its signer says about the state there is not.
            anchor.root = Digest::ZERO;
        }
        let low_load = self.reports.iter().filter(|report| report.value.low_load).count() >= cluster.weak();
        Some(AbortHistory {
            position,
            anchor,
            boundaries: boundaries.into_iter().collect(),
            digests: self.reports[lowest].value.digests[skipped..length].to_vec(),
            histories: paths.histories[lowest][skipped..=length].to_vec(),
            holders: beside.iter().map(|path| self.reports[*path].signer).collect(),
            low_load,
        })
    }
}

/// The histories that the reports of a proof list, by the place of the report in it.
struct Paths<'a> {
    reports: &'a [Signed<AbortReport>],
    histories: Vec<Vec<Digest>>,
}

impl<'a> Paths<'a> {
    fn of(reports: &'a [Signed<AbortReport>]) -> Self {
        Self { reports, histories: reports.iter().map(|report| report.value.histories()).collect() }
    }

    fn anchor(&self, path: usize) -> Boundary {
        self.reports[path].value.anchor
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

    /// D8: the last position where f+1 reports list the same history, and which reports.
    fn longest_shared(&self, cluster: &Cluster) -> Option<(u64, Vec<usize>)> {
        // Only where f+1 reports have something to say: a liar's lowest or highest position costs nobody time (K20).
        let mut begins: Vec<u64> = self.reports.iter().map(|report| report.value.anchor.position).collect();
        let mut ends: Vec<u64> = self.reports.iter().map(|report| report.value.end()).collect();
        begins.sort_unstable();
        ends.sort_unstable_by_key(|end| core::cmp::Reverse(*end));
        let (begin, end) = (*begins.get(cluster.f)?, *ends.get(cluster.f)?);
        let places = 0..self.reports.len();
        (begin..=end).rev().find_map(|position| {
            places.clone().find_map(|path| {
                let digest = self.at(path, position)?;
                let members: Vec<usize> =
                    places.clone().filter(|other| self.at(*other, position) == Some(digest)).collect();
                (members.len() >= cluster.weak()).then_some((position, members))
            })
        })
    }

    /// Checkpoints that f+1 reports attest.
    fn attested(&self, cluster: &Cluster) -> impl Iterator<Item = Boundary> {
        let attest = |known: &Boundary| {
            self.reports.iter().filter(|report| report.value.attested().any(|other| other == known)).count()
        };
        let all = self.reports.iter().flat_map(|report| report.value.attested());
        all.copied().filter(move |known| attest(known) >= cluster.weak())
    }
}

/// The history with which an instance begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbortHistory {
    /// L0: its last position.
    pub position: u64,
    /// Where the digests begin. Certain to be in every correct history: a correct replica has its anchor here or above.
    /// The root may be unknown (zero).
    pub anchor: Boundary,
    /// Checkpoints on the way that f+1 reports attest, oldest first: one of them is correct, so that their states are
    /// true and can be fetched.
    pub boundaries: Vec<Boundary>,
    /// The digests of the entries above the anchor.
    pub digests: Vec<Digest>,
    /// The history's digest at each position from the anchor on.
    histories: Vec<Digest>,
    /// Who says that it has all of it; or parts of it, where some of those have dropped its beginning.
    pub holders: Vec<ReplicaId>,
    /// f+1 replicas stopped because there was hardly any load.
    pub low_load: bool,
}

impl AbortHistory {
    /// The history's digest at a position from the anchor on.
    pub fn history_at(&self, position: u64) -> Option<Digest> {
        let offset = position.checked_sub(self.anchor.position)?;
        self.histories.get(usize::try_from(offset).ok()?).copied()
    }

    /// The history's digest at its end.
    pub fn history(&self) -> Digest {
        self.histories.last().copied().unwrap_or(self.anchor.history)
    }

    /// The digests after a position.
    pub fn digests_after(&self, position: u64) -> &[Digest] {
        let offset = position.saturating_sub(self.anchor.position) as usize;
        self.digests.get(offset..).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests;
