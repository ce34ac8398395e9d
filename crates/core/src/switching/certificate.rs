//! What 2f+1 replicas have signed about a history: the evidence that abort reports of the resilient ring carry.
//!
//! A statement names a position and the digest of the whole history up to there, so one certificate stands for
//! everything before it. Nobody makes a certificate without 2f+1 signers, f+1 of them correct; [`super::report`] says
//! what follows from it.

use crate::auth::{Certificate, Claimed, Keyring, Signable};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::history::Boundary;
use crate::ids::InstanceId;
use crate::replicas::Replicas;
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
    const WITH_EACH_BATCH: bool = true;
}

/// This replica has executed so far, and this is its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stable {
    /// The instance.
    pub instance: InstanceId,
    /// Where it began: the last position of its init history, and the digest there. Others may have begun elsewhere,
    /// with another proof; who goes on from here instead begins there as well.
    pub init: (u64, Digest),
    /// Position, history and state.
    pub boundary: Boundary,
}
wire_struct!(Stable { instance, init, boundary });

impl Signable for Stable {
    const KIND: u8 = 18;
}

/// The certificates in an abort report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificates {
    /// That 2f+1 replicas have logged the history that the report lists, to its end. Only in the resilient ring.
    pub prepared: Option<Claimed<Certificate<Prepared>>>,
    /// That 2f+1 replicas had executed the report's anchor: in this resilient ring, or in an earlier one.
    pub stable: Option<Claimed<Certificate<Stable>>>,
}
wire_struct!(Certificates { prepared, stable });

impl Certificates {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.prepared.is_none() && self.stable.is_none()
    }

    /// What they prove, if the signatures hold, and there are enough of them.
    pub(super) fn check(&self, cluster: &Cluster, keyring: &Keyring, replicas: Replicas) -> Option<Certified> {
        let Self { prepared, stable } = self.clone();
        let mut proves = Certified::default();
        if let Some(claimed) = prepared {
            proves.prepared = Some(keyring.verify_certificate(claimed, replicas.strong())?);
        }
        if let Some(claimed) = stable {
            // The anchor may have been reached in an earlier instance.
            let strong = cluster.replicas_of(claimed.claims().instance).strong();
            proves.stable = Some(keyring.verify_certificate(claimed, strong)?);
        }
        Some(proves)
    }

    /// What they prove, if they are in this replica's own log.
    pub(super) fn recalled(self) -> Certified {
        Certified { prepared: self.prepared.map(Claimed::recalled), stable: self.stable.map(Claimed::recalled) }
    }
}

/// [`Certificates`] that were checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certified {
    /// See [`Certificates::prepared`].
    pub prepared: Option<Certificate<Prepared>>,
    /// See [`Certificates::stable`].
    pub stable: Option<Certificate<Stable>>,
}

impl Certified {
    /// What others are told of them.
    pub fn claim(&self) -> Certificates {
        let Self { prepared, stable } = self;
        Certificates {
            prepared: prepared.as_ref().map(Certificate::claim),
            stable: stable.as_ref().map(Certificate::claim),
        }
    }
}
