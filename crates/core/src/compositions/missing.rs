//! What a composition does about those who are missing: the handlers of [Presence 1 to 5](super::presence).

use super::composite::Composite;
use super::running::Running;
use crate::auth::{Claimed, Signed};
use crate::cluster::Cluster;
use crate::ids::{Principal, ReplicaId};
use crate::machine::Destination;
use crate::registry::Speaker;
use crate::rejection::Rejection;
use crate::replicas::ReplicaSet;
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::{Returned, Surroundings, SwitchMessage};
use crate::time::Instant;
use alloc::boxed::Box;

impl<S: Service> Composite<S> {
    /// Whom this replica has not heard of for a while; nobody, where no instance follows another, nor in a Backup that
    /// it has not listened to for long enough.
    pub(crate) fn silent(&self, now: Instant, cluster: &Cluster, me: ReplicaId) -> ReplicaSet {
        let may_know = !self.what.part.is_backup() || self.presence.has_listened(now, cluster);
        if self.what.hands_on() && may_know { self.presence.silent(now, cluster, me) } else { ReplicaSet::NOBODY }
    }

    /// Presence 2: notes when this replica came to have the state of the instance that runs.
    pub(super) fn note_here(&mut self, s: &Surroundings<'_, impl Speaker>) {
        if self.presence.here.is_none() && self.running().open().is_some_and(|open| open.is_current(s.cluster)) {
            self.presence.here = Some(s.now);
        }
    }

    /// The first input: nobody is silent yet.
    pub(super) fn begin_to_hear(&mut self, now: Instant) {
        self.presence.heard.fill(now);
    }

    /// Presence 1 and 5, in every status interval.
    pub(super) fn say_present(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let Running::Open(instance) = self.running() else { return };
        if !instance.is_current(s.cluster) {
            return;
        }
        s.step("Presence 1");
        s.send(Destination::Replicas, self.switch(SwitchMessage::Present(())));
        let stays = self.ledger().estate.stays();
        if stays && self.presence.silent(s.now, s.cluster, s.me).is_empty() {
            s.step("Presence 5");
            let signed = s.keyring.sign(Returned { instance: self.what.number });
            s.send(Destination::Replicas, self.switch(SwitchMessage::Returned(Box::new(signed.claim()))));
            self.presence.returned.insert(s.me, (s.now, signed));
            self.end_stay(s);
        }
    }

    /// Presence 2. One who is behind is not there.
    pub(super) fn on_present(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId) {
        s.step("Presence 2");
        self.presence.heard[usize::from(from.0)] = s.now;
    }

    /// Presence 5.
    pub(super) fn on_returned(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        signed: Claimed<Signed<Returned>>,
    ) {
        if !self.ledger().estate.stays() {
            return;
        }
        if let Some((at, known)) = self.presence.returned.get_mut(&from)
            && signed.says(known)
        {
            *at = s.now;
            return self.end_stay(s);
        }
        if signed.signer() != from || signed.claims().instance != self.what.number {
            return s.reject(Principal::Replica(from), Rejection::WrongSender);
        }
        let Some(signed) = s.keyring.verify(signed) else {
            return s.reject(Principal::Replica(from), Rejection::BadSignature);
        };
        s.step("Presence 5");
        self.presence.returned.insert(from, (s.now, signed));
        self.end_stay(s);
    }

    /// Presence 5: asks for the end, in every interval until it has come.
    fn end_stay(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let returned = self.presence.returned(s.now, s.cluster);
        if let (Some(returned), Some(Running::Open(instance))) = (returned, &mut self.running) {
            instance.ask_for_end(s, returned);
        }
    }

    /// Presence 3: the instance has just begun.
    pub(super) fn leave_if_missing(&mut self, s: &mut Surroundings<'_, impl Speaker>, missing: ReplicaSet) {
        if let (true, false, Some(Running::Open(instance))) = (self.what.yields, missing.is_empty(), &mut self.running)
        {
            s.step("Presence 3");
            instance.stop(s, StopReason::SomebodyMissing, false);
        }
    }
}
