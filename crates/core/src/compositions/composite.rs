//! A schedule of instances, of which one runs: Switch 1 to 5 of [`crate::switching`].

use super::early::Early;
use super::jump::Jump;
use super::presence::Presence;
use super::resumed::{FIRST, tells_its_opening};
use super::robust::Robust;
use crate::checkpoint::Evidence;
use crate::cluster::Cluster;
use crate::compositions::Running;
use crate::estate::Estate;
use crate::history::LogEntry;
use crate::ids::{Principal, ReplicaId};
use crate::machine::Destination;
use crate::registry::{Message, ReplicaTimer, Speaker, certifying};
use crate::rejection::Rejection;
use crate::schedule::Specification;
use crate::service::Service;
use crate::shares::ClientSet;
use crate::stop::SwitchReason;
use crate::switching::{CheckedReport, Ledger, Proof, Surroundings, Switch, SwitchMessage};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Status intervals between two questions whether this replica is behind.
const HEARTBEAT_INTERVALS: u64 = 5;

/// Bytes of entries in one BODIES message.
pub(super) const BODIES_BYTES_MAX: usize = 1 << 20;

/// What happened at the last switch, for reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastSwitch {
    /// Why the instance before was left.
    pub(crate) reason: SwitchReason,
    /// From the moment when this replica stopped, or learnt that others had, until the new instance ran.
    pub(crate) took: Duration,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Composite<S: Service> {
    /// The instance that runs, or is opened.
    pub(crate) what: Specification,
    /// Always there between steps.
    pub(super) running: Option<Running<S>>,
    /// What proves that this instance may run; none for the first.
    pub(super) proof: Option<Proof>,
    /// Abort reports of this instance.
    pub(super) reports: BTreeMap<ReplicaId, CheckedReport>,
    pub(super) announced: Option<Instant>,
    /// While the head's proof is waited for: until when.
    pub(super) head_until: Option<Instant>,
    pub(super) stopped_at: Option<Instant>,
    pub(super) stop_reason: SwitchReason,
    pub(super) early: Early,
    /// When somebody who is behind was last told.
    pub(super) told: BTreeMap<Principal, Instant>,
    /// Clients of the instance before this that wait.
    pub(super) waiting: ClientSet,
    pub(super) asked: Option<Instant>,
    heartbeats: u64,
    /// To whether it is behind.
    questions: u64,
    pub(crate) last_switch: LastSwitch,
    /// Whether the instance began with the proof of its sequencer, where that is the one that counts.
    pub(super) begun_again: bool,
    /// The checkpoint of the running resilient ring that this replica fetches, because it is behind.
    pub(super) ahead: Option<Box<Jump>>,
    /// Resilient rings in a row that did not come to their end here.
    pub(super) failures: u32,
    /// Whom this replica, which gets nowhere opening the instance, asked last what that one began with, and who has
    /// not answered that yet: bit i stands for replica i.
    pub(super) asked_for_proof: (Option<ReplicaId>, u64),
    /// Who is there.
    pub(super) presence: Presence,
    /// What its instances are worth, if that matters.
    pub(super) robust: Option<Robust>,
    /// While the log is replayed: bodies that a record of a later instance will name.
    pub(super) bodies: Vec<LogEntry>,
}

impl<S: Service> Composite<S> {
    /// The first instance of the schedule, over the state before the first batch or one restored from disk.
    pub(crate) fn open(
        cluster: &Cluster,
        me: ReplicaId,
        estate: Estate<S>,
        restored: Option<Evidence>,
        lost_log: bool,
    ) -> Self {
        let ledger = Ledger::new(estate);
        let (number, running) = if restored.as_ref().is_some_and(|at| tells_its_opening(cluster, at)) {
            Self::before_replay(ledger)
        } else {
            let mut running = Running::at(cluster, me, cluster.specification(FIRST), ledger, !lost_log);
            if let (Running::Open(instance), Some(evidence)) = (&mut running, restored) {
                instance.restored(evidence);
            }
            (FIRST, running)
        };
        Self {
            what: cluster.specification(number),
            running: Some(running),
            proof: None,
            reports: BTreeMap::new(),
            announced: None,
            head_until: None,
            stopped_at: None,
            stop_reason: SwitchReason::First,
            early: Early::default(),
            told: BTreeMap::new(),
            waiting: ClientSet::default(),
            asked: None,
            heartbeats: 0,
            questions: 0,
            last_switch: LastSwitch::default(),
            begun_again: false,
            ahead: None,
            failures: 0,
            asked_for_proof: (None, 0),
            presence: Presence::new(cluster.replicas.n()),
            robust: cluster.protocol.is_robust().then(|| Robust::new(cluster.replicas.n())),
            bodies: Vec::new(),
        }
    }

    pub(crate) const fn running(&self) -> &Running<S> {
        self.running.as_ref().expect("an instance runs between steps")
    }

    pub(super) const fn running_mut(&mut self) -> &mut Running<S> {
        self.running.as_mut().expect("an instance runs between steps")
    }

    /// State and history.
    pub(crate) fn ledger(&self) -> &Ledger<S> {
        self.running().ledger()
    }

    /// Takes the ledger from the instance that runs, which is over.
    pub(crate) fn halt_running(&mut self, cluster: &Cluster) -> Ledger<S> {
        self.running.take().expect("an instance runs between steps").halt(cluster)
    }

    pub(super) fn set_running(&mut self, running: Running<S>) {
        self.running = Some(running);
    }

    /// The first input.
    pub(crate) fn start(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        self.begin_to_ask(s);
        match self.running_mut() {
            Running::Opening(opening) => opening.0.ask(s),
            Running::Silent(_) => {}
            Running::Open(instance) => instance.start(s),
        }
        if self.what.hands_on() {
            self.begin_to_hear(s.now);
            self.heartbeat(s);
        }
        self.begin_to_look(s);
        self.go_on(s);
    }

    /// Says that this replica is there (Presence 1). Now and then it asks another one each time whether it is behind:
    /// who hears nothing would never learn of it.
    fn heartbeat(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        self.say_present(s);
        let is_lost = self.ask_where(s);
        if is_lost || self.heartbeats.is_multiple_of(HEARTBEAT_INTERVALS) {
            self.questions += 1;
            let others = self.what.replicas.n() as u64 - 1;
            if let Some(step) = self.questions.checked_rem(others) {
                let to = (u64::from(s.me.0) + 1 + step) % self.what.replicas.n() as u64;
                s.send(Destination::Replica(ReplicaId(to as u8)), self.switch(SwitchMessage::Behind(())));
            }
        }
        self.heartbeats += 1;
        s.set_timer(ReplicaTimer::Heartbeat, s.now + s.cluster.limits.status_interval);
    }

    /// A timer came due.
    pub(crate) fn timer(&mut self, s: &mut Surroundings<'_, impl Speaker>, timer: ReplicaTimer) {
        match timer {
            ReplicaTimer::Opening => {
                match self.running_mut() {
                    Running::Opening(opening) => opening.0.ask(s),
                    Running::Silent(_) => {}
                    Running::Open(instance) => instance.timer(s, timer),
                }
                if let Some(jump) = &mut self.ahead {
                    jump.opening.ask(s);
                }
                if self.ahead.is_some() || matches!(self.running(), Running::Opening(_)) {
                    self.ask_for_stable(s);
                }
                self.ask_for_proof(s);
            }
            ReplicaTimer::Abort => self.announced = None,
            ReplicaTimer::Heartbeat => self.heartbeat(s),
            ReplicaTimer::Look => self.look(s),
            ReplicaTimer::Alone => self.look_alone(s),
            timer => self.running_mut().open_mut().into_iter().for_each(|instance| instance.timer(s, timer)),
        }
        self.go_on(s);
    }

    /// Everything that was waiting has been handed over.
    pub(crate) fn pass_end(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        self.running_mut().open_mut().into_iter().for_each(|instance| instance.pass_end(s));
        self.go_on(s);
        self.note_here(s);
    }

    /// A message that the boundary verified.
    pub(crate) fn message(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, message: Message) {
        self.dispatch(s, from, message);
        self.go_on(s);
    }

    pub(super) fn dispatch(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, message: Message) {
        if !self.what.hands_on() {
            if let Some(instance) = self.running_mut().open_mut() {
                instance.message(s, from, message);
            }
            return;
        }
        if let Message::Switch(Switch { instance, message: SwitchMessage::Feedback(said) }) = message {
            return self.on_feedback(s, from, instance, said);
        }
        match (message, from) {
            (Message::Transfer(message), Principal::Replica(replica)) => self.on_transfer(s, replica, message),
            (Message::Switch(Switch { instance, message: SwitchMessage::Fetch(fetch) }), Principal::Replica(to)) => {
                self.on_fetch(s, to, instance, &fetch);
            }
            (Message::Switch(Switch { instance, message: SwitchMessage::Lost(question) }), Principal::Replica(to)) => {
                self.on_lost(s, to, instance, question);
            }
            (
                Message::Switch(Switch { instance, message: SwitchMessage::Here(question) }),
                Principal::Replica(from),
            ) => {
                Self::on_here(s, from, instance, question);
            }
            (Message::Switch(Switch { instance, message: SwitchMessage::Init(proof) }), _)
                if instance > self.what.number
                    || self.may_begin_again(instance, from)
                    || self.may_go_over(s.cluster, instance, from, &proof) =>
            {
                self.on_init(s, from, instance, proof);
            }
            (message, from) => match message.instance() {
                Some(instance) if instance < self.what.number => self.tell_it_is_over(s, from, &message),
                Some(instance) if instance > self.what.number => self.on_ahead(s, from, message),
                _ => self.on_current(s, from, message),
            },
        }
    }

    /// Something for the instance that runs, or is being opened.
    pub(super) fn on_current(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, message: Message) {
        match (message, from) {
            (Message::Switch(Switch { message, .. }), from) => match (message, from) {
                (SwitchMessage::Panic(panic), Principal::Client(_)) => self.on_panic(s, panic.client),
                (SwitchMessage::Abort(report), Principal::Replica(from)) => self.on_abort(s, from, report),
                (SwitchMessage::Bodies(bodies), Principal::Replica(from)) => self.on_bodies(s, from, bodies),
                (SwitchMessage::Present(()), Principal::Replica(from)) => self.on_present(s, from),
                (SwitchMessage::Returned(signed), Principal::Replica(from)) => self.on_returned(s, from, *signed),
                (SwitchMessage::Init(_) | SwitchMessage::Behind(()), Principal::Replica(_)) => {}
                (message @ (SwitchMessage::Checkpoint(_) | SwitchMessage::Anchor(_)), Principal::Replica(_)) => {
                    let message = Message::Switch(Switch { instance: self.what.number, message });
                    self.pass_to_instance(s, from, message);
                }
                _ => s.reject(from, Rejection::WrongSender),
            },
            (message, from) => self.pass_to_instance(s, from, message),
        }
    }

    fn pass_to_instance(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, message: Message) {
        if let (Some(certificate), Principal::Replica(from)) = (certifying::shown_by(&message), from) {
            return self.on_stable(s, from, certificate.clone());
        }
        if matches!(self.running(), Running::Opening(_)) {
            return self.keep_early(s, from, message);
        }
        let asks = match &message {
            Message::Request(request) if !request.is_system() => Some(request.client),
            _ => None,
        };
        let Some(instance) = self.running_mut().open_mut() else { return };
        instance.message(s, from, message);
        if instance.report().is_some() {
            // Nobody answers here any more.
            self.waiting.extend(asks);
        }
    }
}
