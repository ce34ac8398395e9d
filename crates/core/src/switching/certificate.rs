//! What 2f+1 replicas have signed about a history: the evidence that abort reports of the resilient ring carry.
//!
//! A statement names a position and the digest of the whole history up to there, so that one certificate stands for
//! everything before it. Nobody makes a certificate without 2f+1 signers, f+1 of them correct; [`super::report`] says
//! what follows from it.

use crate::auth::{Certificate, Keyring, Signable};
use crate::cluster::{Cluster, InstanceId};
use crate::digest::Digest;
use crate::history::Boundary;
use crate::wire_struct;

/// PREP: this replica has logged this history, and will never log another one up to here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The instance.
    pub instance: InstanceId,
    /// The history's last position.
    pub position: u64,
    /// Its digest.
    pub history: Digest,
}
wire_struct!(Prepared { instance, position, history });

impl Signable for Prepared {
    const KIND: u8 = 17;
}

/// This replica has executed so far, and this is its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stable {
    /// The instance.
    pub instance: InstanceId,
    /// Position, history and state.
    pub boundary: Boundary,
}
wire_struct!(Stable { instance, boundary });

impl Signable for Stable {
    const KIND: u8 = 18;
}

/// The certificates in an abort report. Only those of the resilient ring have any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificates {
    /// That 2f+1 replicas have logged the history that the report lists, to its end.
    pub prepared: Option<Certificate<Prepared>>,
    /// That 2f+1 replicas had executed the report's anchor.
    pub stable: Option<Certificate<Stable>>,
}
wire_struct!(Certificates { prepared, stable });

impl Certificates {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.prepared.is_none() && self.stable.is_none()
    }

    /// Whether the signatures hold, and there are enough of them.
    #[must_use]
    pub(super) fn check(&self, cluster: &Cluster, keyring: &Keyring) -> bool {
        let strong = cluster.strong();
        self.prepared.iter().all(|certificate| keyring.check_certificate(certificate, strong))
            && self.stable.iter().all(|certificate| keyring.check_certificate(certificate, strong))
    }
}
