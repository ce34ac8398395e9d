//! Requests in the system's own name: what a Backup begins with (INIT), and rulings. They authenticate themselves.

use crate::auth::{Keyring, Signed};
use crate::cluster::Cluster;
use crate::dissent::{List, Ruling, Verdict};
use crate::ids::{ClientId, IdentityId, InstanceId, ReplicaId, Sequence, Timestamp};
use crate::message::{Request, Vouched};
use crate::switching::{ClaimedProof, Proof, Returned};
use crate::time::Instant;
use crate::wire::Wire;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

/// Marks a session of the system in whose name there are rulings.
const RULINGS: u32 = 1 << 16;

/// Marks a session of the system in whose name a Backup's stay is ended.
const ENDS: u32 = 1 << 17;

/// The number of a ruling is that of the batch with the one before, and one.
pub(crate) const fn ruling_after(follows: Sequence) -> Timestamp {
    Timestamp(follows.0.saturating_add(1))
}

impl Request {
    /// INIT as a request: the proof with which a Backup begins, in replica `from`'s name. It authenticates itself.
    pub fn init(instance: InstanceId, from: ReplicaId, proof: &ClaimedProof) -> Self {
        let client = ClientId { identity: IdentityId::SYSTEM, session: from.0.into() };
        let mut request = Self::new(instance, client, Timestamp(1), false, Bytes::from(proof.to_bytes()));
        request.vouched = Vouched::Signature;
        request
    }

    /// A ruling as a request, in replica `from`'s name. It authenticates itself.
    pub fn ruling(instance: InstanceId, from: ReplicaId, follows: Sequence, ruling: &Ruling) -> Self {
        let client = ClientId { identity: IdentityId::SYSTEM, session: RULINGS | u32::from(from.0) };
        let operation = Bytes::from(ruling.to_bytes());
        let mut request = Self::new(instance, client, ruling_after(follows), false, operation);
        request.vouched = Vouched::Signature;
        request
    }

    /// END as a request, in replica `from`'s name: f+1 replicas hear all (Presence 5 of
    /// [`crate::compositions::presence`]). It authenticates itself. Made at this time: after a restart the replica may
    /// have other signatures, and one number must not stand for two requests.
    pub fn end_of_stay(instance: InstanceId, from: ReplicaId, at: Instant, returned: Vec<Signed<Returned>>) -> Self {
        let client = ClientId { identity: IdentityId::SYSTEM, session: ENDS | u32::from(from.0) };
        let operation = Bytes::from(List::of(returned).to_bytes());
        let mut request = Self::new(instance, client, Timestamp(at.0), false, operation);
        request.vouched = Vouched::Signature;
        request
    }

    /// Checks what a request of the system carries. Whether it is vouched for now.
    pub(super) fn vouch_for_system(&mut self, cluster: &Cluster, keyring: &Keyring) -> bool {
        if self.vouched == Vouched::No {
            let holds = if self.is_ruling() {
                self.verdict(cluster, keyring, self.instance).is_some()
            } else if self.is_end_of_stay() {
                self.ends_stay(cluster, keyring, self.instance)
            } else {
                self.proof(cluster, keyring, self.instance).is_some()
            };
            if holds {
                self.vouched = Vouched::Signature;
            }
        }
        self.vouched != Vouched::No
    }

    /// Whether it is a ruling, or looks like one.
    pub fn is_ruling(&self) -> bool {
        self.is_system() && self.client.session & RULINGS != 0
    }

    /// What it rules in this instance, if it is a ruling and holds, and the batch of the ruling that it follows.
    pub fn verdict(&self, cluster: &Cluster, keyring: &Keyring, instance: InstanceId) -> Option<(Sequence, Verdict)> {
        let what = cluster.specification(instance);
        let is_here = what.part.is_backup() && self.instance == instance;
        if !is_here || !self.is_ruling() || (self.client.session & !RULINGS) as usize >= what.replicas.n() {
            return None;
        }
        let ruling = Ruling::from_bytes(self.operation.clone()).ok()?;
        ruling.verdict(cluster, keyring, instance).filter(|(follows, _)| self.timestamp == ruling_after(*follows))
    }

    /// Whether it is an END, or looks like one.
    pub fn is_end_of_stay(&self) -> bool {
        self.is_system() && self.client.session & ENDS != 0 && !self.is_ruling()
    }

    /// Whether it is an END of this instance and holds: f+1 replicas have signed that they hear all.
    pub fn ends_stay(&self, cluster: &Cluster, keyring: &Keyring, instance: InstanceId) -> bool {
        let what = cluster.specification(instance);
        let is_here = what.part.is_backup() && what.hands_on() && self.instance == instance;
        let is_ours = ((self.client.session & !ENDS) as usize) < what.replicas.n();
        if !is_here || !is_ours || !self.is_end_of_stay() {
            return false;
        }
        let Ok(list) = List::<Returned>::from_bytes(self.operation.clone()) else { return false };
        list.0.len() >= what.replicas.weak()
            && list.0.iter().all(|signed| signed.claims().instance == instance)
            && list.verify(keyring).is_some()
    }

    /// The proof in an INIT, if it proves that this instance, a Backup, may begin. No other instance takes it as a
    /// request: it would become a part of the history (abs-D14).
    pub fn proof(&self, cluster: &Cluster, keyring: &Keyring, instance: InstanceId) -> Option<Proof> {
        // One for each replica, so that nobody fills a pool with copies.
        let what = cluster.specification(instance);
        if !what.part.is_backup() || !what.hands_on() || self.client.session as usize >= what.replicas.n() {
            return None;
        }
        let before = InstanceId(instance.0.checked_sub(1)?);
        let proof = ClaimedProof::from_bytes(self.operation.clone()).ok()?;
        let ended = cluster.specification(before);
        if self.is_system() { Arc::new(proof).check(cluster, keyring, &ended) } else { None }
    }
}
