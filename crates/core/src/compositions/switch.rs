//! How a composition goes from one instance to the next: the handlers of Switch 2 to 5 of [`crate::switching`].

use super::composite::{BODIES_BYTES_MAX, Composite, LastSwitch};
use super::resumed::snapshot_at;
use super::running::Running;
use crate::auth::{Claimed, Signed};
use crate::checkpoint::{TransferMessage, serve};
use crate::cluster::Cluster;
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId};
use crate::machine::Destination;
use crate::message::Request;
use crate::notice::Notice;
use crate::registry::{Instance, LogRecord, Message, ReplicaTimer, SnapshotRecord, Speaker};
use crate::rejection::Rejection;
use crate::schedule::Specification;
use crate::service::Service;
use crate::stop::{StopReason, SwitchReason};
use crate::switching::{
    AbortHistory, AbortReport, Amnesia, Bodies, CheckedReport, ClaimedProof, FETCH_MAX, Fetch, HistoryRecord, Opening,
    Panic, Proof, Surroundings, Switch, SwitchMessage,
};
use crate::time::Duration;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// How long the head's proof is waited for, as a part of the status interval.
const HEAD_PARTS: u64 = 4;

impl<S: Service> Composite<S> {
    /// What an instance is: the one place where a composition asks which part is next, and among whom. Today that is
    /// known before anything runs.
    #[allow(clippy::unused_self, reason = "what is known while running will be asked of the composition")]
    pub(super) fn specify(&self, cluster: &Cluster, instance: InstanceId) -> Specification {
        cluster.specification(instance)
    }

    /// Switch 2: a client was not served in time.
    pub(super) fn on_panic(&mut self, s: &mut Surroundings<'_, impl Speaker>, client: ClientId) {
        s.step("Switch 2");
        self.waiting.insert(client);
        if let Some(instance) = self.running_mut().open_mut() {
            instance.panicked(s);
        }
    }

    /// Switch 2 and 3: another replica has stopped. What follows from it is up to [`Composite::go_on`].
    pub(super) fn on_abort(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        report: Arc<Claimed<Signed<AbortReport>>>,
    ) {
        if self.reports.contains_key(&from) {
            return;
        }
        if report.signer() != from || report.claims().instance != self.what.number {
            return s.reject(Principal::Replica(from), Rejection::BadCertificate);
        }
        let Some(report) = s.keyring.verify(Arc::unwrap_or_clone(report)) else {
            return s.reject(Principal::Replica(from), Rejection::BadSignature);
        };
        let what = self.what;
        let Some(report) = CheckedReport::of(report, s.cluster, s.keyring, &what) else {
            return s.reject(Principal::Replica(from), Rejection::BadCertificate);
        };
        let ring = self.running_mut().open_mut().and_then(Instance::certifying_mut);
        if let (Some(ring), Some(stable)) = (ring, report.stable_here()) {
            // It says nothing more itself; others may still need that to come to their end.
            ring.on_stable(s, from, stable.clone());
        }
        s.step("Switch 2");
        let is_first = self.reports.is_empty();
        self.reports.insert(from, report);
        assert!(self.reports.len() <= self.what.replicas.n(), "one report of each replica");
        self.stopped_at.get_or_insert(s.now);
        if is_first {
            self.look_alone(s);
        }
    }

    /// Switch 2: f+1 others have stopped. What this replica knows counts, not when it learnt it: the reports may all
    /// have come while it was still opening the instance, and perhaps nothing else will ever make it stop.
    fn follow(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let others = self.reports.keys().filter(|id| **id != s.me).count();
        let weak = self.what.replicas.weak();
        if others < weak {
            return;
        }
        // A correct one among f+1 has seen it: without this, which replicas stop by themselves would decide whether the
        // proof says so.
        let low_load = self.reports.values().filter(|report| report.value().low_load).count() >= weak;
        if let Some(instance) = self.running_mut().open_mut() {
            instance.stop(s, StopReason::OthersStopped, low_load);
        }
    }

    /// Looks whether something has come to an end: this instance, or the opening of one.
    pub(super) fn go_on(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        loop {
            self.end_abstention(s);
            self.finish_jump(s);
            self.follow(s);
            self.announce(s);
            let what = self.what;
            if !what.hands_on() {
                break;
            }
            let next = InstanceId(self.what.number.0 + 1);
            if self.head_until.is_none_or(|until| until <= s.now)
                && let Some(proof) = Proof::assemble(&what, self.reports.values())
                && let Some(history) = proof.abort_history(&what)
                && !self.leaves_it_to_the_head(s, next)
            {
                self.advance(s, next, proof, history);
                continue;
            }
            match self.running_mut() {
                Running::Opening(opening) if opening.0.is_done() => self.finish_opening(s),
                _ => break,
            }
        }
        if s.log_is_long() {
            self.shorten(s);
        }
    }

    /// Switch 3: other reports prove another history, and an instance that needs all replicas gets nowhere if they
    /// begin with different ones. So the head's proof is waited for, a little. A Backup agrees on one by itself (Switch
    /// 6).
    fn leaves_it_to_the_head(&mut self, s: &mut Surroundings<'_, impl Speaker>, next: InstanceId) -> bool {
        let what = self.specify(s.cluster, next);
        if what.part.is_backup() || what.head == s.me {
            return false;
        }
        let patience = Duration(s.cluster.limits.status_interval.0 / HEAD_PARTS);
        let until = *self.head_until.get_or_insert(s.now + patience);
        s.set_timer(ReplicaTimer::Opening, until);
        s.now < until
    }

    /// Switch 2: says that this replica has stopped, again at every time-out.
    pub(super) fn announce(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if self.announced.is_some() {
            return;
        }
        let report = self.running().open().and_then(|instance| instance.report().cloned());
        let Some(report) = report else { return };
        s.step("Switch 2");
        self.announced = Some(s.now);
        self.stopped_at.get_or_insert(s.now);
        s.send(Destination::Replicas, self.switch(SwitchMessage::Abort(Arc::new(report.claim()))));
        self.reports.insert(s.me, report);
        s.set_timer(ReplicaTimer::Abort, s.now + s.cluster.limits.status_interval);
    }

    pub(super) const fn switch(&self, message: SwitchMessage) -> Switch {
        Switch { instance: self.what.number, message }
    }

    /// Switch 3: somebody proves that a later instance may run.
    pub(super) fn on_init(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: Principal,
        instance: InstanceId,
        proof: Arc<ClaimedProof>,
    ) {
        let before = InstanceId(instance.0 - 1);
        let ended = self.specify(s.cluster, before);
        let checked = proof.check(s.cluster, s.keyring, &ended);
        let proved = checked.and_then(|proof| Some((proof.abort_history(&ended)?, proof)));
        let Some((history, proof)) = proved else {
            return s.reject(from, Rejection::BadCertificate);
        };
        let what = self.specify(s.cluster, instance);
        // Its sequencer's proof may take the place of this replica's own once; to go over is another matter.
        let was_again = instance == self.what.number && self.begun_again;
        let is_again = instance == self.what.number && from == Principal::Replica(what.head);
        self.advance(s, instance, proof, history);
        self.begun_again = was_again || is_again;
        // It goes over once for each time that it asks.
        self.asked_for_proof.1 &= from.replica().map_or(u64::MAX, |id| !(1 << id.0));
    }

    /// Switch 3 to 5: leaves the instance that runs, for good, and goes to a later one.
    fn advance(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        instance: InstanceId,
        proof: Proof,
        history: AbortHistory,
    ) {
        s.step("Switch 3");
        assert!(instance >= self.what.number, "an instance that was left is over, for good (abs-D13)");
        assert_eq!(proof.instance().0 + 1, instance.0, "the proof is that the instance before has ended");
        self.stopped_at.get_or_insert(s.now);
        self.stop_reason = if history.low_load { SwitchReason::LittleLoad } else { self.reason(instance) };
        let mut old = self.running.take().expect("an instance runs between steps");
        if let (Some(robust), Some(instance)) = (&mut self.robust, old.open_mut()) {
            robust.keep_watch(instance);
        }
        if let (Some(ring), true) = (old.open().and_then(Instance::certifying), instance > self.what.number) {
            self.failures = if ring.is_full() { 0 } else { self.failures + 1 };
        }
        if instance > self.what.number {
            (self.begun_again, self.asked_for_proof) = (false, (None, 0));
            self.reports.clear();
            self.presence.begin_instance(s.now, s.cluster);
            // Who goes over goes on fetching what is certified in this instance, however that began.
            self.ahead = None;
        }
        self.waiting.extend(old.open().map(Instance::waiting_clients).unwrap_or_default());
        for timer in ReplicaTimer::OF_INSTANCES {
            s.cancel_timer(timer);
        }
        self.running = Some(old);
        let ledger = self.halt_running(s.cluster);
        let what = self.specify(s.cluster, instance);
        self.what = what;
        self.proof = Some(proof.clone());
        self.head_until = None;
        self.announced = None;
        self.told.clear();
        s.send(Destination::Replicas, self.switch(SwitchMessage::Init(proof.claim())));
        if what.part.is_backup() {
            let record = HistoryRecord::Opened(proof.claim());
            s.persist(instance, record);
            let speaks = Amnesia::lets_speak(s.amnesia, instance);
            let mut running = Running::at(s.cluster, s.me, what, ledger, speaks);
            if let Running::Open(backup) = &mut running {
                if let Some(robust) = &mut self.robust {
                    robust.hand_on_watch(backup);
                }
                backup.begin_with(proof.clone());
                backup.start(s);
            }
            self.running = Some(running);
            self.opened(s);
        } else {
            let mut opening = Opening::new(s, instance, history, &ledger);
            opening.ask(s);
            self.running = Some(Running::Opening(Box::new((opening, ledger))));
        }
    }

    /// Resilient 2 of [`crate::protocols::ring_resilient`]: whether the sequencer's init history may replace this
    /// replica's own.
    pub(super) fn may_begin_again(&self, instance: InstanceId, from: Principal) -> bool {
        let what = self.what;
        let is_sequencers = instance == what.number && what.part.certifies() && from == Principal::Replica(what.head);
        let has_signed = match self.running() {
            Running::Opening(_) => false,
            Running::Open(instance) => instance.certifying().is_none_or(|ring| !ring.may_begin_again()),
            Running::Silent(_) => true,
        };
        is_sequencers && !has_signed && !self.begun_again
    }

    /// Nothing comes of what this instance is to be opened with: perhaps nobody has it any more. Asks the next replica
    /// what that one began with; see [`crate::switching::opening`].
    pub(super) fn ask_for_proof(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let Running::Opening(opening) = self.running() else { return };
        if !opening.0.is_free() || !opening.0.is_stalled(s.cluster) {
            return;
        }
        let replicas = self.what.replicas;
        let (last, waits_for) = self.asked_for_proof;
        let after = last.unwrap_or(s.me);
        let next = (1..replicas.n()).map(|places| replicas.after(after, places)).find(|id| *id != s.me);
        if let Some(to) = next {
            self.asked_for_proof = (next, waits_for | 1 << to.0);
            let behind = Switch { instance: InstanceId(self.what.number.0 - 1), message: SwitchMessage::Behind(()) };
            s.send(Destination::Replica(to), behind);
        }
    }

    /// Whether this answers that, however long it took: another proof of the instance that this replica, which has said
    /// nothing in it, gets nowhere opening.
    pub(super) fn may_go_over(
        &self,
        cluster: &Cluster,
        instance: InstanceId,
        from: Principal,
        proof: &ClaimedProof,
    ) -> bool {
        let Running::Opening(opening) = self.running() else { return false };
        instance == self.what.number
            && opening.0.is_free()
            && opening.0.is_stalled(cluster)
            && from.replica().is_some_and(|id| self.asked_for_proof.1 & 1 << id.0 != 0)
            && !self.proof.as_ref().is_some_and(|own| own.is(proof))
    }

    /// Why this replica leaves the instance that runs.
    fn reason(&self, instance: InstanceId) -> SwitchReason {
        if instance.0 > self.what.number.0 + 1 {
            return SwitchReason::Behind;
        }
        self.running().open().map_or(SwitchReason::OthersStopped, Instance::left_because)
    }

    /// Switch 4 is done: the instance runs.
    fn finish_opening(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        let Some(Running::Opening(opening)) = self.running.take() else { return };
        s.step("Switch 4");
        let (opening, mut ledger) = *opening;
        assert!(opening.is_done(), "an instance begins with all of its history (abs-D9)");
        if let Some(divergence) = opening.divergence() {
            s.out.notify(Notice::Repaired(Box::new(divergence)));
        }
        let (fetched, missing) = (opening.fetched(), opening.history().silent);
        let entries = opening.finish(s, &mut ledger);
        let proof = self.proof.clone().expect("opened with a proof");
        let mut records = HistoryRecord::bodies(entries);
        records.push(HistoryRecord::Opened(proof.claim()));
        match fetched {
            None => s.persist_all(self.what.number, records),
            Some((boundary, tree)) => {
                let snapshot = snapshot_at(self.what.number, boundary.position, tree);
                let instance = self.what.number;
                let live = records.into_iter().map(|record| LogRecord { instance, record: record.into() }).collect();
                s.begin_log(SnapshotRecord { snapshot, live, transferred: true });
            }
        }
        let (position, history) = (ledger.log.length(), ledger.log.history());
        s.out.notify(Notice::Begun { instance: self.what.number, position, history });
        let speaks = Amnesia::lets_speak(s.amnesia, self.what.number);
        let mut running = Running::at(s.cluster, s.me, self.what, ledger, speaks);
        if let Some(ring) = running.open_mut().and_then(Instance::certifying_mut) {
            ring.be_patient(s.cluster, self.failures);
        }
        running.open_mut().into_iter().for_each(|instance| instance.start(s));
        self.running = Some(running);
        self.leave_if_missing(s, missing);
        self.opened(s);
    }

    /// Switch 5: those who wait are told, and what came too early is looked at again.
    pub(super) fn opened(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        s.step("Switch 5");
        let took = self.stopped_at.take().map_or(Duration(0), |at| s.now - at);
        self.last_switch = LastSwitch { reason: self.stop_reason, took };
        let Specification { number: instance, part, .. } = self.what;
        s.out.notify(Notice::Switched { instance, part, reason: self.stop_reason, took });
        self.begin_to_measure(s.now);
        for client in core::mem::take(&mut self.waiting).iter() {
            s.send(Destination::Client(client), self.switch(SwitchMessage::Active(client)));
        }
        let checked = &s.keyring.counters().occasional_signatures_checked;
        let before = checked.get();
        for (from, message) in self.early.take() {
            self.dispatch(s, from, message);
        }
        // Whoever sent what ends the switch did not send this.
        checked.set(before);
        if !self.reports.is_empty() {
            self.look_alone(s);
        }
    }

    /// Switch 5: somebody speaks to an instance that is over.
    pub(super) fn tell_it_is_over(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: Principal,
        message: &Message,
    ) {
        s.step("Switch 5");
        match (from, message) {
            (Principal::Client(_), Message::Request(Request { client, .. }))
            | (
                Principal::Client(_),
                Message::Switch(Switch { message: SwitchMessage::Panic(Panic { client, .. }), .. }),
            ) => {
                s.send(Destination::Client(*client), self.switch(SwitchMessage::Active(*client)));
            }
            (Principal::Key(_), Message::Request(request)) => {
                s.send(request.asker(), self.switch(SwitchMessage::Active(request.client)));
            }
            // Its next request will tell.
            (Principal::Client(_), Message::RingPace(_)) => {}
            (Principal::Replica(to), _) => {
                let pause = Duration(s.cluster.limits.status_interval.0 / 2);
                if self.told.get(&from).is_some_and(|at| s.now - *at < pause) {
                    return;
                }
                self.told.insert(from, s.now);
                let Some(proof) = self.proof.clone() else { return };
                s.send(Destination::Replica(to), self.switch(SwitchMessage::Init(proof.claim())));
            }
            (from, _) => s.reject(from, Rejection::WrongInstance),
        }
    }

    /// Something for an instance that this replica does not know of: it may be behind.
    pub(super) fn on_ahead(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, message: Message) {
        // What is said again in every interval is true of that only.
        if !matches!(&message, Message::Switch(Switch { message: said, .. }) if said.is_of_an_interval()) {
            self.keep_early(s, from, message);
        }
        let pause = Duration(s.cluster.limits.status_interval.0 / 2);
        if self.asked.is_some_and(|at| s.now - at < pause) {
            return;
        }
        self.asked = Some(s.now);
        let to = match from {
            Principal::Replica(replica) => Destination::Replica(replica),
            Principal::Client(_) | Principal::Key(_) => Destination::Replicas,
        };
        s.send(to, self.switch(SwitchMessage::Behind(())));
    }

    pub(super) fn keep_early(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, message: Message) {
        if !self.early.keep(from, message) {
            s.reject(from, Rejection::Overload);
        }
    }

    /// Somebody lacks entries of its init history.
    pub(super) fn on_fetch(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        to: ReplicaId,
        instance: InstanceId,
        fetch: &Fetch,
    ) {
        let found = self.ledger().log.find(&fetch.0[..fetch.0.len().min(FETCH_MAX)]);
        let (mut part, mut bytes) = (Vec::new(), 0);
        for entry in found {
            bytes += entry.request.operation.len();
            if bytes > BODIES_BYTES_MAX && !part.is_empty() {
                break;
            }
            part.push(entry);
        }
        if !part.is_empty() {
            let message = SwitchMessage::Bodies(Bodies(part));
            s.send(Destination::Replica(to), Switch { instance, message });
        }
        if instance < self.what.number {
            let message = Message::Switch(Switch { instance, message: SwitchMessage::Behind(()) });
            self.tell_it_is_over(s, Principal::Replica(to), &message);
        }
    }

    pub(super) fn on_bodies(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: ReplicaId, bodies: Bodies) {
        let instance = self.what.number;
        match self.running_mut() {
            Running::Opening(opening) => opening.0.on_bodies(s, from, bodies),
            Running::Silent(_) => {}
            Running::Open(open) => {
                let said = Switch { instance, message: SwitchMessage::Bodies(bodies) };
                open.message(s, Principal::Replica(from), said.into());
            }
        }
    }

    /// A request for state, or a piece of it.
    pub(super) fn on_transfer(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        message: TransferMessage,
    ) {
        if let Some(answer) = serve(&message, |root| self.ledger().estate.version_with(root)) {
            return s.send(Destination::Replica(from), answer);
        }
        let jump = self.ahead.as_mut().filter(|jump| jump.opening.fetches(message.version()));
        match (self.running.as_mut(), jump) {
            (_, Some(jump)) => jump.opening.on_transfer(s, from, message),
            (Some(Running::Opening(opening)), _) => opening.0.on_transfer(s, from, message),
            (Some(Running::Open(instance)), _) => instance.message(s, Principal::Replica(from), message.into()),
            _ => s.reject(Principal::Replica(from), Rejection::Unsolicited),
        }
    }
}
