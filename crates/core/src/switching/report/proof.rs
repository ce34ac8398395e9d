//! Reports and proofs, before they are checked and after.

use super::{AbortReport, reports_needed};
use crate::auth::{Certificate, Claimed, Keyring, Signed};
use crate::cluster::Cluster;
use crate::ids::{InstanceId, ReplicaId};
use crate::replicas::REPLICAS_MAX;
use crate::schedule::{Ending, Specification};
use crate::switching::certificate::{Certificates, Certified, Stable};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// An abort report that its signer made, with certificates that hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedReport {
    signed: Signed<AbortReport>,
    proves: Certified,
}

impl CheckedReport {
    /// What a replica says when it stops: this, with what proves it.
    pub(crate) fn sign(keyring: &Keyring, report: AbortReport, proves: Certified) -> Self {
        let signed = keyring.sign(AbortReport { certificates: proves.claim(), ..report });
        Self { signed, proves }
    }

    /// Checks what somebody has signed.
    pub(crate) fn of(
        signed: Signed<AbortReport>,
        cluster: &Cluster,
        keyring: &Keyring,
        what: &Specification,
    ) -> Option<Self> {
        let proves = signed.value().check(cluster, keyring, what)?;
        Some(Self { signed, proves })
    }

    /// What this replica said itself, or had checked, when it wrote that to its log.
    pub(crate) fn recalled(claimed: Claimed<Signed<AbortReport>>) -> Self {
        let signed = claimed.recalled();
        let proves = signed.value().certificates.clone().recalled();
        Self { signed, proves }
    }

    /// Takes somebody at its word: see [`Claimed::believed`].
    #[cfg(feature = "testing")]
    pub fn believed(claimed: &Claimed<Signed<AbortReport>>) -> Self {
        Self::recalled(claimed.clone())
    }

    /// What it says.
    pub const fn value(&self) -> &AbortReport {
        self.signed.value()
    }

    /// Who says so.
    pub const fn signer(&self) -> ReplicaId {
        self.signed.signer()
    }

    /// What others are told of it.
    pub fn claim(&self) -> Claimed<Signed<AbortReport>> {
        self.signed.claim()
    }

    /// What proves the anchor, if that was reached in this instance.
    pub(crate) fn stable_here(&self) -> Option<&Certificate<Stable>> {
        self.proves.stable.as_ref().filter(|certificate| certificate.value().instance == self.value().instance)
    }
}

/// The reports that are said to prove that an instance aborted, by ascending signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedProof {
    /// The reports.
    pub reports: Vec<Claimed<Signed<AbortReport>>>,
}

impl Wire for ClaimedProof {
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

impl ClaimedProof {
    /// The instance that is said to have aborted.
    pub fn instance(&self) -> InstanceId {
        self.reports[0].claims().instance
    }

    /// Checks number, signers, signatures and certificates of the reports. They are of the instance that
    /// this specification is about.
    pub fn check(self: Arc<Self>, cluster: &Cluster, keyring: &Keyring, what: &Specification) -> Option<Proof> {
        let instance = self.instance();
        let ending = what.part.ending();
        let sound = |report: &Claimed<Signed<AbortReport>>| {
            report.claims().instance == instance
                && what.replicas.contains(report.signer())
                && (ending != Ending::Agreed || report.claims().has_end_of(self.reports[0].claims()))
        };
        let holds = instance == what.number
            && self.reports.len() == reports_needed(ending, what.replicas)
            && self.reports.iter().all(sound)
            && self.reports.windows(2).all(|pair| pair[0].signer() < pair[1].signer())
            && self.reports.iter().all(|report| keyring.verify_in_place(report).is_some());
        if !holds {
            return None;
        }
        let proves: Option<_> =
            self.reports.iter().map(|report| report.claims().check(cluster, keyring, what)).collect();
        Some(Proof { proves: proves?, reports: self })
    }

    /// A proof that this replica had checked when it wrote it to its log.
    pub(crate) fn recalled(self: Arc<Self>) -> Proof {
        let certificates = self.reports.iter().map(|report| report.claims().certificates.clone());
        Proof { proves: certificates.map(Certificates::recalled).collect(), reports: self }
    }

    /// Takes somebody at its word: see [`Claimed::believed`].
    #[cfg(feature = "testing")]
    pub fn believed(self: &Arc<Self>) -> Proof {
        self.clone().recalled()
    }
}

/// The reports that prove that an instance aborted: each was checked, or made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// As others are told: they are many bytes, and go to many.
    pub(super) reports: Arc<ClaimedProof>,
    /// What the certificates in each prove.
    pub(super) proves: Vec<Certified>,
}

impl Proof {
    /// The proof that these reports make, if there are enough of them: f+1 of one end of a Backup, 2f+1 otherwise.
    pub fn assemble<'a>(
        what: &Specification,
        reports: impl Iterator<Item = &'a CheckedReport> + Clone,
    ) -> Option<Self> {
        let mut chosen: Vec<&CheckedReport> = Vec::new();
        let needed = reports_needed(what.part.ending(), what.replicas);
        if what.part.ending() == Ending::Agreed {
            let of_one_end = |to: &'a CheckedReport| reports.clone().filter(|it| it.value().has_end_of(to.value()));
            let agreed = reports.clone().find(|report| of_one_end(report).count() >= needed)?;
            chosen.extend(of_one_end(agreed).take(needed));
        } else {
            chosen.extend(reports.take(needed));
            if chosen.len() < needed {
                return None;
            }
        }
        assert_eq!(chosen.len(), needed, "a proof has as many reports as it needs");
        chosen.sort_by_key(|report| report.signer());
        assert!(chosen.is_sorted_by(|one, next| one.signer() < next.signer()), "nobody reports twice");
        let proves = chosen.iter().map(|report| report.proves.clone()).collect();
        let reports = Arc::new(ClaimedProof { reports: chosen.into_iter().map(CheckedReport::claim).collect() });
        Some(Self { reports, proves })
    }

    /// The instance that aborted.
    pub fn instance(&self) -> InstanceId {
        self.reports.instance()
    }

    /// What others are told of it.
    pub fn claim(&self) -> Arc<ClaimedProof> {
        self.reports.clone()
    }

    /// Whether this is the same, so that it needs no check.
    pub fn is(&self, claimed: &ClaimedProof) -> bool {
        *self.reports == *claimed
    }
}
