//! What a replica that is behind in a resilient ring is shown, fetches and goes on from: see [`super::jump`].

use super::composite::Composite;
use super::resumed::snapshot_at;
use super::running::Running;
use crate::auth::{Certificate, Claimed};
use crate::compositions::jump::Jump;
use crate::ids::{Principal, ReplicaId, Sequence};
use crate::machine::Destination;
use crate::notice::Notice;
use crate::protocols::ring_resilient::{Resilient, ResilientMessage, ResilientRecord, Status};
use crate::registry::{Instance, LogRecord, ReplicaTimer, SnapshotRecord, Speaker};
use crate::rejection::Rejection;
use crate::schedule::Part;
use crate::service::Service;
use crate::switching::certificate::Stable;
use crate::switching::{Abortable, Amnesia, Begun, HistoryRecord, Ledger, Opening, Proof, Steps, Surroundings};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

impl<S: Service> Composite<S> {
    /// Something of an init history is missing: others may be beyond it.
    pub(super) fn ask_for_stable(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if s.cluster.part(self.instance).is_some_and(Part::certifies) {
            // Who has stopped does not answer, but has told in its report.
            let reports = self.reports.values().filter(|report| report.signer() != s.me);
            let told = reports.filter_map(|report| Some((report.signer(), report.value().stable_here()?.clone())));
            let mut told: Vec<_> = told.collect();
            told.sort_by_key(|(_, certificate)| core::cmp::Reverse(certificate.claims().boundary.position));
            for (from, certificate) in told {
                self.on_stable(s, from, certificate);
            }
            let status = Status { opened: false, logged: 0, prepared: None, committed: None, anchor: 0 };
            let message = ResilientMessage::Status(status);
            s.send(Destination::Replicas, Resilient { instance: self.instance, message });
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
        let is_ring = s.cluster.part(self.instance).is_some_and(Part::certifies);
        let here = Some(certificate).filter(|_| instance == self.instance && is_ring);
        let checked = here.and_then(|certificate| s.keyring.verify_certificate(certificate, s.cluster.strong()));
        let Some(certificate) = checked else {
            return s.reject(Principal::Replica(from), Rejection::BadCertificate);
        };
        let is_behind = match self.running_mut() {
            Running::Open(Instance::RingResilient(ring)) => {
                ring.on_stable(s, from, certificate.clone());
                ring.is_behind(boundary)
            }
            // Wherever that ends: it has signed nothing.
            Running::Opening(opening) => opening.0.is_free() || boundary.position >= opening.0.history().position,
            _ => false,
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
    pub(super) fn look_ahead(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let Some(jump) = self.ahead.take() else { return };
        let may_jump = match self.running() {
            Running::Opening(_) => true,
            Running::Open(Instance::RingResilient(ring)) => ring.may_go_on_from(jump.target.value().boundary),
            _ => false,
        };
        if may_jump && jump.opening.is_done() {
            self.jump(s, jump.opening, jump.target);
        } else if may_jump {
            self.ahead = Some(jump);
        }
    }

    /// The state at the checkpoint is here.
    fn jump(&mut self, s: &mut Surroundings<'_, impl Speaker>, opening: Opening, certificate: Certificate<Stable>) {
        for timer in ReplicaTimer::OF_INSTANCES {
            s.cancel_timer(timer);
        }
        self.waiting.extend(self.running().open().map(Instance::waiting_clients).unwrap_or_default());
        let orders = match self.running_mut() {
            Running::Open(Instance::RingResilient(ring)) => ring.take_orders(),
            _ => BTreeMap::new(),
        };
        let mut ledger = self.halt_running();
        opening.finish(s, &mut ledger);
        self.begin_log_at(s, &ledger, &certificate);
        let init = certificate.value().init;
        s.out.notify(Notice::Begun { instance: self.instance, position: init.0, history: init.1 });
        let speaks = Amnesia::lets_speak(s.amnesia, self.instance);
        let mut running = Running::at(s.cluster, s.me, self.instance, ledger, speaks);
        if let Running::Open(Instance::RingResilient(ring)) = &mut running {
            ring.be_patient(s.cluster, self.failures);
            ring.resume_after(init);
            ring.replay(s.cluster, HistoryRecord::Logged(Vec::new()));
            ring.replay_own(s.cluster, ResilientRecord::Committed(certificate.value().boundary.position));
            ring.replay(s.cluster, HistoryRecord::Stable(certificate.into()));
            ring.start(s);
            ring.give_orders(s, orders);
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
        let of_ring = [
            HistoryRecord::Begun(begun).into(),
            HistoryRecord::Logged(Vec::new()).into(),
            ResilientRecord::Committed(position).into(),
            HistoryRecord::Stable(certificate.claim()).into(),
        ];
        let live = of_ring.map(|record| LogRecord { instance: self.instance, record }).to_vec();
        let snapshot = snapshot_at(self.instance, position, tree);
        s.begin_log(SnapshotRecord { snapshot, live, transferred: true });
    }
}
