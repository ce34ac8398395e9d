//! A replica that is behind in a resilient ring: it goes on from a checkpoint that 2f+1 others have signed.
//!
//! Others drop what is below such a checkpoint although not all replicas have it. So a replica may be too late for the
//! init history, or for a part of what followed; and perhaps it is the one that the others cannot do without, because
//! f are down. It fetches the state there, beside whatever runs, and takes part from there on.
//!
//! Those who signed may have crashed since, and be back at an earlier checkpoint: what was executed after their last
//! write they have lost. So a state that nobody sends is not waited for. The checkpoints that the others show are tried
//! in turns, and opening the instance at its init history goes on meanwhile.
//!
//! # Why it is safe
//! It has left the history with which it began, and begins with the one that they began with: where that ends is in
//! what they signed. From there it counts the quota, and to there it answers for what is inherited; or it would help a
//! liar to f+1 equal words about a history that nobody goes on from.
//!
//! It may have signed another history before, but not beyond the checkpoint. It signs nothing more up to there; and
//! exactly there no other history is ever certified, since f+1 correct replicas have executed this one. Say that
//! somebody holds a certificate for a position k below the checkpoint, and somebody one for the checkpoint or a
//! position above it. They have a correct signer in common. If that one has not jumped from below k in between, the
//! first history is a prefix of the second. If it has, then before that somebody held a certificate for a position at
//! or above the checkpoint to which it jumped, and the same is true of that certificate and the first one; and so on,
//! back to the earliest.

use super::composite::Composite;
use super::recovery::snapshot_at;
use super::running::Running;
use crate::auth::Certificate;
use crate::cluster::Cluster;
use crate::ids::{Principal, ReplicaId, Sequence};
use crate::machine::Destination;
use crate::notice::Notice;
use crate::protocols::ring_resilient::{Resilient, ResilientMessage, ResilientRecord, Status};
use crate::registry::Speaker;
use crate::registry::{Instance, LogRecord, ReplicaTimer, SnapshotRecord};
use crate::rejection::Rejection;
use crate::schedule::Part;
use crate::service::Service;
use crate::switching::certificate::Stable;
use crate::switching::{AbortHistory, Abortable, Amnesia, Begun, HistoryRecord, Ledger, Opening, Steps, Surroundings};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What a replica that is behind fetches, beside whatever runs.
#[derive(Clone, Debug)]
pub(super) struct Jump {
    /// Where it goes on once the state there is here.
    target: Certificate<Stable>,
    /// Who showed it.
    from: ReplicaId,
    /// Fetches the state.
    pub(super) opening: Opening,
    /// The highest position that was tried.
    highest: u64,
    /// What each replica showed last.
    offers: BTreeMap<ReplicaId, Certificate<Stable>>,
}

impl Jump {
    fn new<S: Service>(
        s: &mut Surroundings<'_, impl Speaker>,
        ledger: &Ledger<S>,
        from: ReplicaId,
        target: Certificate<Stable>,
    ) -> Self {
        let Stable { instance, boundary, .. } = target.value;
        let mut opening = Opening::new(s, instance, AbortHistory::of_stable(&target), ledger);
        opening.ask(s);
        Self { target, from, opening, highest: boundary.position, offers: BTreeMap::new() }
    }

    /// What to try instead: something higher than ever, or, if nobody sends this, what the next replica has shown.
    fn better(&self, cluster: &Cluster, newest: ReplicaId) -> Option<(ReplicaId, Certificate<Stable>)> {
        let is_higher = |offer: &Certificate<Stable>| offer.value.boundary.position > self.highest;
        let higher = self.offers.get_key_value(&newest).filter(|(_, offer)| is_higher(offer));
        let others = self.offers.iter().filter(|(_, offer)| offer.value != self.target.value);
        let (before, after): (Vec<_>, Vec<_>) = others.partition(|(id, _)| **id <= self.from);
        let next = after.into_iter().chain(before).next().filter(|_| self.opening.is_stalled(cluster));
        let better = higher.or(next).map(|(id, offer)| (*id, offer.clone()));
        better.filter(|_| !self.opening.is_done())
    }

    fn turn_to<S: Service>(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        ledger: &Ledger<S>,
        from: ReplicaId,
        target: Certificate<Stable>,
    ) {
        let Stable { instance, boundary, .. } = target.value;
        let history = AbortHistory::of_stable(&target);
        if boundary.position > self.highest {
            self.highest = boundary.position;
            self.opening.retarget(history);
        } else {
            self.opening = Opening::new(s, instance, history, ledger);
        }
        self.opening.ask(s);
        (self.from, self.target) = (from, target);
    }
}

impl<S: Service> Composite<S> {
    /// Something of an init history is missing: others may be beyond it.
    pub(super) fn ask_for_stable(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if s.cluster.part(self.instance) == Some(Part::RingResilient) {
            // Who has stopped does not answer, but has told in its report.
            let reports = self.reports.values().filter(|report| report.signer != s.me);
            let told = reports.filter_map(|report| Some((report.signer, report.value.stable_here()?.clone())));
            let mut told: Vec<_> = told.collect();
            told.sort_by_key(|(_, certificate)| core::cmp::Reverse(certificate.value.boundary.position));
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
        certificate: Certificate<Stable>,
    ) {
        let Stable { instance, boundary, .. } = certificate.value;
        let is_ring = s.cluster.part(self.instance) == Some(Part::RingResilient);
        if instance != self.instance || !is_ring || !s.keyring.check_certificate(&certificate, s.cluster.strong()) {
            return s.reject(Principal::Replica(from), Rejection::BadCertificate);
        }
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
            Running::Open(Instance::RingResilient(ring)) => ring.may_go_on_from(jump.target.value.boundary),
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
        let init = certificate.value.init;
        s.out.notify(Notice::Begun { instance: self.instance, position: init.0, history: init.1 });
        let speaks = Amnesia::lets_speak(s.amnesia, self.instance);
        let mut running = Running::at(s.cluster, s.me, self.instance, ledger, speaks);
        if let Running::Open(Instance::RingResilient(ring)) = &mut running {
            ring.be_patient(s.cluster, self.failures);
            ring.resume_after(init);
            ring.replay(s.cluster, HistoryRecord::Logged(Vec::new()));
            ring.replay_own(s.cluster, ResilientRecord::Committed(certificate.value.boundary.position));
            ring.replay(s.cluster, HistoryRecord::Stable(certificate));
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
        let position = certificate.value.boundary.position;
        let tree = ledger.estate.version(Sequence(position)).expect("opened at a checkpoint").clone();
        let begun = Begun { proof: self.proof.clone(), init: certificate.value.init, above: Vec::new() };
        let of_ring = [
            HistoryRecord::Begun(begun).into(),
            HistoryRecord::Logged(Vec::new()).into(),
            ResilientRecord::Committed(position).into(),
            HistoryRecord::Stable(certificate.clone()).into(),
        ];
        let live = of_ring.map(|record| LogRecord { instance: self.instance, record }).to_vec();
        let snapshot = snapshot_at(self.instance, position, tree);
        s.begin_log(SnapshotRecord { snapshot, live, transferred: true });
    }
}
