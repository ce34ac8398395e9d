//! A replica that is behind in a resilient ring: it goes on from a checkpoint that 2f+1 others have signed.
//!
//! Others drop what is below such a checkpoint although not all replicas have it. So a replica may be too late for the
//! init history, or for a part of what followed; and perhaps it is the one that the others cannot do without, because
//! f are down. It fetches the state there, and takes part from there on.
//!
//! # Why it is safe
//! It may have signed another history before, but not beyond the checkpoint. It signs nothing more below that. Say that
//! somebody holds a certificate for a position k below the checkpoint, and somebody one for the checkpoint or a
//! position above it. They have a correct signer in common. If that one has not jumped from below k in between, the
//! first history is a prefix of the second. If it has, then before that somebody held a certificate for a position at
//! or above the checkpoint to which it jumped, and the same is true of that certificate and the first one; and so on,
//! back to the earliest.

use super::composite::{Composite, Running};
use super::recovery::snapshot_at;
use super::{Amnesia, Part};
use crate::auth::Certificate;
use crate::cluster::{ReplicaId, Sequence};
use crate::machine::{Destination, Principal};
use crate::message::Message;
use crate::protocols::ring_resilient::{Resilient, ResilientMessage, Status};
use crate::rejection::Rejection;
use crate::replica::{InstanceRecord, LogRecord, Notice, ReplicaTimer, SnapshotRecord};
use crate::service::Service;
use crate::switching::certificate::Stable;
use crate::switching::{AbortHistory, Abortable, Ledger, Opening, Surroundings};
use alloc::boxed::Box;
use alloc::vec::Vec;

impl<S: Service> Composite<S> {
    /// Something of an init history is missing: others may be beyond it.
    pub(super) fn ask_for_stable(&mut self, s: &mut Surroundings<'_, S>) {
        if s.cluster.part(self.instance) == Some(Part::RingResilient) {
            // Who has stopped does not answer, but has told in its report.
            let reports = self.reports.values().filter(|report| report.signer != s.me);
            let told =
                reports.filter_map(|report| report.value.certificates.stable.clone().map(|at| (report.signer, at)));
            if let Some((from, certificate)) = told.max_by_key(|(_, at)| at.value.boundary.position) {
                self.on_stable(s, from, certificate);
            }
            let status = Status { opened: false, logged: 0, prepared: None, committed: None, anchor: 0 };
            let message = ResilientMessage::Status(status);
            s.out.send(Destination::Replicas, Message::Resilient(Resilient { instance: self.instance, message }));
        }
    }

    /// A certified checkpoint, from somebody who was told how far this replica has come.
    pub(super) fn on_stable(&mut self, s: &mut Surroundings<'_, S>, from: ReplicaId, certificate: Certificate<Stable>) {
        let Stable { instance, boundary } = certificate.value;
        let is_ring = s.cluster.part(self.instance) == Some(Part::RingResilient);
        if instance != self.instance || !is_ring || !s.keyring.check_certificate(&certificate, s.cluster.strong()) {
            return s.reject(Principal::Replica(from), Rejection::BadCertificate);
        }
        let ahead = self.ahead.as_ref().map(|ahead| ahead.value.boundary.position);
        let is_behind = match self.running_mut() {
            Running::RingResilient(ring) => {
                ring.on_stable(s, from, certificate.clone());
                ring.is_behind(boundary)
            }
            Running::Opening(opening) => match ahead {
                Some(ahead) => boundary.position > ahead,
                None => boundary.position >= opening.0.history().position,
            },
            _ => false,
        };
        if is_behind {
            self.jump(s, certificate);
        }
    }

    fn jump(&mut self, s: &mut Surroundings<'_, S>, certificate: Certificate<Stable>) {
        for timer in ReplicaTimer::OF_INSTANCES {
            s.out.cancel_timer(timer);
        }
        let old = self.running();
        self.waiting.extend(super::composite::waiting_clients(old));
        let ledger = self.halt_running();
        let mut opening = Opening::new(s, self.instance, AbortHistory::of_stable(&certificate), &ledger);
        opening.ask(s);
        self.ahead = Some(certificate);
        self.set_running(Running::Opening(Box::new((opening, ledger))));
    }

    /// The state at the checkpoint is here.
    pub(super) fn finish_jump(
        &mut self,
        s: &mut Surroundings<'_, S>,
        opening: Opening,
        mut ledger: Ledger<S>,
        certificate: Certificate<Stable>,
    ) {
        let boundary = certificate.value.boundary;
        opening.finish(s, &mut ledger);
        let tree = ledger.estate.version(Sequence(boundary.position)).expect("opened at a checkpoint").clone();
        let of_ring = [
            InstanceRecord::Begun((self.proof.clone(), Vec::new())),
            InstanceRecord::Logged(Vec::new()),
            InstanceRecord::Committed(boundary.position),
            InstanceRecord::Stable(certificate.clone()),
        ];
        let live = of_ring.map(|record| LogRecord { instance: self.instance, record }).to_vec();
        let snapshot = snapshot_at(self.instance, boundary.position, tree);
        s.begin_log(SnapshotRecord { snapshot, live, transferred: true });
        let init = self.init(s.cluster);
        s.out.notify(Notice::Begun { instance: self.instance, position: init.0, history: init.1 });
        let speaks = Amnesia::lets_speak(s.amnesia, self.instance);
        let mut running = Self::instance(s.cluster, s.me, self.instance, ledger, speaks);
        if let Running::RingResilient(ring) = &mut running {
            ring.be_patient(s.cluster, self.failures);
            ring.resume_after(init);
            ring.replay(s.cluster, InstanceRecord::Logged(Vec::new()));
            ring.replay(s.cluster, InstanceRecord::Committed(boundary.position));
            ring.replay(s.cluster, InstanceRecord::Stable(certificate));
            ring.start(s);
        }
        self.set_running(running);
        self.opened(s);
    }
}
