//! What a replica that is behind in a resilient ring is shown, fetches and goes on from: see [`super::jump`].

use super::composite::Composite;
use super::resumed::snapshot_at;
use super::running::Running;
use crate::auth::{Certificate, Claimed};
use crate::compositions::jump::Jump;
use crate::ids::{Principal, ReplicaId, Sequence};
use crate::machine::Destination;
use crate::notice::Notice;
use crate::registry::{Instance, LogRecord, ReplicaTimer, SnapshotRecord, Speaker, certifying};
use crate::rejection::Rejection;
use crate::service::Service;
use crate::switching::certificate::Stable;
use crate::switching::{Amnesia, Begun, HistoryRecord, Ledger, Opening, Proof, Surroundings};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

impl<S: Service> Composite<S> {
    /// Something of an init history is missing: others may be beyond it.
    pub(super) fn ask_for_stable(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if self.what.part.certifies() {
            // Who has stopped does not answer, but has told in its report.
            let reports = self.reports.values().filter(|report| report.signer() != s.me);
            let told = reports.filter_map(|report| Some((report.signer(), report.value().stable_here()?.clone())));
            let mut told: Vec<_> = told.collect();
            told.sort_by_key(|(_, certificate)| core::cmp::Reverse(certificate.claims().boundary.position));
            for (from, certificate) in told {
                self.on_stable(s, from, certificate);
            }
            s.send(Destination::Replicas, certifying::question(self.what.number));
        }
    }

    /// A certified checkpoint, from somebody who was told how far this replica has come.
    pub(super) fn on_stable(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        certificate: Claimed<Certificate<Stable>>,
    ) {
        let Stable { instance, boundary, .. } = *certificate.claims();
        let what = self.what;
        let here = Some(certificate).filter(|_| what.number == instance && what.part.certifies());
        let checked = here.and_then(|certificate| s.keyring.verify_certificate(certificate, what.replicas.strong()));
        let Some(certificate) = checked else {
            return s.reject(Principal::Replica(from), Rejection::BadCertificate);
        };
        let is_behind = match self.running_mut() {
            Running::Open(instance) => instance.certifying_mut().is_some_and(|ring| {
                ring.on_stable(s, from, certificate.clone());
                ring.is_behind(boundary)
            }),
            // Wherever that ends: it has signed nothing.
            Running::Opening(opening) => opening.0.is_free() || boundary.position >= opening.0.history().position,
            Running::Silent(_) => false,
        };
        if is_behind {
            self.offer(s, from, certificate);
        }
    }

    /// Somebody shows a checkpoint that this replica may go on from.
    fn offer(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, certificate: Certificate<Stable>) {
        let mut jump = match self.ahead.take() {
            Some(jump) => jump,
            None => Box::new(Jump::new(s, self.ledger(), from, certificate.clone())),
        };
        jump.offers.insert(from, certificate);
        if let Some((from, target)) = jump.better(s.cluster, from) {
            jump.turn_to(s, self.ledger(), from, target);
        }
        self.ahead = Some(jump);
    }

    /// Whether the state is here, or not needed any more.
    pub(super) fn finish_jump(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let Some(jump) = self.ahead.take() else { return };
        let may_jump = match self.running() {
            Running::Opening(_) => true,
            Running::Open(instance) => {
                instance.certifying().is_some_and(|ring| ring.may_go_on_from(jump.target.value().boundary))
            }
            Running::Silent(_) => false,
        };
        if may_jump && jump.opening.is_done() {
            self.jump(s, jump.opening, jump.target);
        } else if may_jump {
            self.ahead = Some(jump);
        }
    }

    /// The state at the checkpoint is here.
    fn jump(&mut self, s: &mut Surroundings<'_, impl Speaker>, opening: Opening, certificate: Certificate<Stable>) {
        assert_eq!(certificate.value().instance, self.what.number, "it goes on in the instance that runs");
        for timer in ReplicaTimer::OF_INSTANCES {
            s.cancel_timer(timer);
        }
        self.waiting.extend(self.running().open().map(Instance::waiting_clients).unwrap_or_default());
        let orders = match self.running_mut().open_mut().and_then(Instance::certifying_mut) {
            Some(ring) => ring.take_orders(),
            None => BTreeMap::new(),
        };
        let mut ledger = self.halt_running(s.cluster);
        opening.finish(s, &mut ledger);
        assert_eq!(ledger.log.anchor(), certificate.value().boundary, "the log begins at the checkpoint");
        self.begin_log_at(s, &ledger, &certificate);
        let init = certificate.value().init;
        s.out.notify(Notice::Begun { instance: self.what.number, position: init.0, history: init.1 });
        let speaks = Amnesia::lets_speak(s.amnesia, self.what.number);
        let mut running = Running::at(s.cluster, s.me, self.what, ledger, speaks);
        if let Some(instance) = running.open_mut() {
            instance.resume(s.cluster, init, Vec::new());
            for record in certifying::records_at(certificate) {
                instance.replay(s.cluster, s.me, record);
            }
            if let Some(ring) = instance.certifying_mut() {
                ring.be_patient(s.cluster, self.failures);
            }
            instance.start(s);
            if let Some(ring) = instance.certifying_mut() {
                ring.give_orders(s, orders);
            }
        }
        self.set_running(running);
        self.opened(s);
    }

    /// The log on disk begins at the checkpoint.
    fn begin_log_at(
        &self,
        s: &mut Surroundings<'_, impl Speaker>,
        ledger: &Ledger<S>,
        certificate: &Certificate<Stable>,
    ) {
        let position = certificate.value().boundary.position;
        let tree = ledger.estate.version(Sequence(position)).expect("opened at a checkpoint").clone();
        let begun =
            Begun { proof: self.proof.as_ref().map(Proof::claim), init: certificate.value().init, above: Vec::new() };
        let begun = core::iter::once(HistoryRecord::Begun(begun).into());
        let records = begun.chain(certifying::records_at(certificate.clone()));
        let live = records.map(|record| LogRecord { instance: self.what.number, record }).collect();
        let snapshot = snapshot_at(self.what.number, position, tree);
        s.begin_log(SnapshotRecord { snapshot, live, transferred: true });
    }
}
