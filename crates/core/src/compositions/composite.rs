//! A schedule of instances, of which one runs: steps S1 to S5 of [`crate::switching`].

use super::{Part, Protocol, Unreplicated};
use crate::auth::{Certificate, Signed};
use crate::checkpoint::{Checkpoint, TransferMessage, genesis, serve};
use crate::cluster::{ClientId, Cluster, InstanceId, ReplicaId};
use crate::digest::Digest;
use crate::estate::Estate;
use crate::machine::{Destination, Duration, Instant, Principal};
use crate::message::{Message, Request};
use crate::protocols::backup::Backup;
use crate::protocols::chain::{Chain, Topology};
use crate::protocols::pbft::Pbft;
use crate::protocols::quorum::Quorum;
use crate::protocols::zlight::ZLight;
use crate::rejection::Rejection;
use crate::replica::{InstanceRecord, LogRecord, Notice, Record, ReplicaTimer};
use crate::service::Service;
use crate::switching::{
    AbortHistory, AbortReport, Abortable, Bodies, FETCH_MAX, Fetch, Ledger, Opening, Panic, Proof, Surroundings,
    Switch, SwitchMessage,
};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Messages for instances that this replica has not opened yet.
const AHEAD_MAX: usize = 4_096;

/// Status intervals between two questions whether this replica is behind.
const HEARTBEAT_INTERVALS: u64 = 5;

/// Bytes of entries in one BODIES message.
const BODIES_BYTES_MAX: usize = 1 << 20;

/// The instance that runs. A new protocol is one more variant; the compiler lists the places to touch.
#[derive(Clone, Debug)]
pub(crate) enum Running<S: Service> {
    /// Not yet: something of its init history is missing.
    Opening(Box<(Opening, Ledger<S>)>),
    Quorum(Box<Quorum<S>>),
    ZLight(Box<ZLight<S>>),
    Chain(Box<Chain<S>>),
    Backup(Box<Backup<Pbft, S>>),
    Unreplicated(Box<Unreplicated<S>>),
}

/// What happened at the last switch, for reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastSwitch {
    /// Why the instance before was left.
    pub(crate) reason: &'static str,
    /// From the moment when this replica stopped, or learnt that others had, until the new instance ran.
    pub(crate) took: Duration,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Composite<S: Service> {
    pub(crate) protocol: Protocol,
    pub(crate) instance: InstanceId,
    /// Always there between steps.
    running: Option<Running<S>>,
    /// What proves that this instance may run; none for the first.
    proof: Option<Arc<Proof>>,
    /// Abort reports of this instance.
    reports: BTreeMap<ReplicaId, Signed<AbortReport>>,
    announced: Option<Instant>,
    stopped_at: Option<Instant>,
    stop_reason: &'static str,
    ahead: VecDeque<(Principal, Message)>,
    /// When somebody who is behind was last told.
    told: BTreeMap<Principal, Instant>,
    /// Clients of the instance before this that wait.
    waiting: BTreeSet<ClientId>,
    asked: Option<Instant>,
    heartbeats: u64,
    pub(crate) last_switch: LastSwitch,
}

/// Lets whichever instance runs do the same thing; nothing if none is open.
macro_rules! each {
    ($running:expr, $instance:ident => $act:expr, $opening:pat => $otherwise:expr) => {
        match $running {
            Running::Opening($opening) => $otherwise,
            Running::Quorum($instance) => $act,
            Running::ZLight($instance) => $act,
            Running::Chain($instance) => $act,
            Running::Backup($instance) => $act,
            Running::Unreplicated($instance) => $act,
        }
    };
}

impl<S: Service> Composite<S> {
    /// The first instance of the schedule, over the state before the first batch or one restored from disk.
    pub(crate) fn open(
        cluster: &Cluster,
        me: ReplicaId,
        estate: Estate<S>,
        restored: Option<Certificate<Checkpoint>>,
        lost_log: bool,
    ) -> Self {
        let (instance, protocol) = (InstanceId(1), cluster.protocol);
        let root = estate.newest_version().root();
        let ledger = Ledger::new(estate);
        let running = match protocol {
            Protocol::Unreplicated => Running::Unreplicated(Box::new(Unreplicated::open(instance, ledger))),
            Protocol::Pbft => {
                let mut order = Pbft::new(instance, root, lost_log);
                let stable = restored.unwrap_or_else(|| genesis(instance, root));
                order.restored(stable.clone());
                Running::Backup(Box::new(Backup::open(instance, order, ledger, stable)))
            }
            _ => Self::instance(cluster, me, instance, ledger),
        };
        Self {
            protocol,
            instance,
            running: Some(running),
            proof: None,
            reports: BTreeMap::new(),
            announced: None,
            stopped_at: None,
            stop_reason: "",
            ahead: VecDeque::new(),
            told: BTreeMap::new(),
            waiting: BTreeSet::new(),
            asked: None,
            heartbeats: 0,
            last_switch: LastSwitch::default(),
        }
    }

    /// What the schedule says, over a ledger that holds the init history.
    fn instance(cluster: &Cluster, me: ReplicaId, instance: InstanceId, ledger: Ledger<S>) -> Running<S> {
        let schedule = cluster.protocol.schedule().expect("one of several instances");
        let head = schedule.head(cluster, instance);
        match schedule.part(instance) {
            Part::Quorum => Running::Quorum(Box::new(Quorum::open(instance, ledger))),
            Part::ZLight => Running::ZLight(Box::new(ZLight::open(instance, head, ledger))),
            Part::Chain => {
                let topology = Topology::new(cluster, head);
                let watches_load = schedule.parts().contains(&Part::Quorum);
                Running::Chain(Box::new(Chain::open(instance, topology, me, watches_load, ledger)))
            }
            Part::Backup => {
                let order = Pbft::new(instance, Digest::ZERO, false).beginning_with(cluster.first_view(instance));
                Running::Backup(Box::new(Backup::open_limited(cluster, instance, order, ledger)))
            }
        }
    }

    pub(crate) const fn running(&self) -> &Running<S> {
        self.running.as_ref().expect("an instance runs between steps")
    }

    const fn running_mut(&mut self) -> &mut Running<S> {
        self.running.as_mut().expect("an instance runs between steps")
    }

    /// State and history.
    pub(crate) fn ledger(&self) -> &Ledger<S> {
        each!(self.running(), instance => instance.ledger(), opening => &opening.1)
    }

    /// The order of a running Backup, for recovery.
    pub(crate) fn order_mut(&mut self) -> Option<&mut Pbft> {
        match self.running_mut() {
            Running::Backup(backup) => Some(backup.order_mut()),
            _ => None,
        }
    }

    /// The first input.
    pub(crate) fn start(&mut self, s: &mut Surroundings<'_, S>) {
        each!(self.running_mut(), instance => instance.start(s), _ => ());
        if self.protocol.schedule().is_some() {
            self.heartbeat(s);
        }
        self.look(s);
    }

    /// Asks another replica each time whether this one is behind: who hears nothing would never learn of it.
    fn heartbeat(&mut self, s: &mut Surroundings<'_, S>) {
        self.heartbeats += 1;
        let others = s.cluster.n as u64 - 1;
        if let Some(step) = self.heartbeats.checked_rem(others) {
            let to = (u64::from(s.me.0) + 1 + step) % s.cluster.n as u64;
            s.out.send(Destination::Replica(ReplicaId(to as u8)), self.switch(SwitchMessage::Behind(())));
        }
        let interval = s.cluster.limits.status_interval.0 * HEARTBEAT_INTERVALS;
        s.out.set_timer(ReplicaTimer::Heartbeat, s.now + Duration(interval));
    }

    /// A timer came due.
    pub(crate) fn timer(&mut self, s: &mut Surroundings<'_, S>, timer: ReplicaTimer) {
        match timer {
            ReplicaTimer::Opening => {
                if let Running::Opening(opening) = self.running_mut() {
                    opening.0.ask(s);
                } else {
                    each!(self.running_mut(), instance => instance.timer(s, timer), _ => ());
                }
            }
            ReplicaTimer::Abort => self.announced = None,
            ReplicaTimer::Heartbeat => self.heartbeat(s),
            timer => each!(self.running_mut(), instance => instance.timer(s, timer), _ => ()),
        }
        self.look(s);
    }

    /// Everything that was waiting has been handed over.
    pub(crate) fn pass_end(&mut self, s: &mut Surroundings<'_, S>) {
        each!(self.running_mut(), instance => instance.pass_end(s), _ => ());
        self.look(s);
    }

    /// A message that the boundary verified.
    pub(crate) fn message(&mut self, s: &mut Surroundings<'_, S>, from: Principal, message: Message) {
        self.dispatch(s, from, message);
        self.look(s);
    }

    fn dispatch(&mut self, s: &mut Surroundings<'_, S>, from: Principal, message: Message) {
        if self.protocol.schedule().is_none() {
            return each!(self.running_mut(), instance => instance.message(s, from, message), _ => ());
        }
        match (message, from) {
            (Message::Transfer(message), Principal::Replica(replica)) => self.on_transfer(s, replica, message),
            (Message::Switch(Switch { instance, message: SwitchMessage::Fetch(fetch) }), Principal::Replica(to)) => {
                self.on_fetch(s, to, instance, &fetch);
            }
            (Message::Switch(Switch { instance, message: SwitchMessage::Init(proof) }), _)
                if instance > self.instance =>
            {
                self.on_init(s, from, instance, proof);
            }
            (message, from) => match message.instance() {
                Some(instance) if instance < self.instance => self.tell(s, from, &message),
                Some(instance) if instance > self.instance => self.on_ahead(s, from, message),
                _ => self.on_current(s, from, message),
            },
        }
    }

    /// Something for the instance that runs, or is being opened.
    fn on_current(&mut self, s: &mut Surroundings<'_, S>, from: Principal, message: Message) {
        match (message, from) {
            (Message::Switch(Switch { message, .. }), from) => match (message, from) {
                (SwitchMessage::Panic(panic), Principal::Client(_)) => self.on_panic(s, panic.client),
                (SwitchMessage::Abort(report), Principal::Replica(from)) => self.on_abort(s, from, &report),
                (SwitchMessage::Bodies(bodies), Principal::Replica(from)) => self.on_bodies(s, from, bodies),
                (SwitchMessage::Init(_) | SwitchMessage::Behind(()), Principal::Replica(_)) => {}
                (message @ (SwitchMessage::Checkpoint(_) | SwitchMessage::Anchor(_)), Principal::Replica(_)) => {
                    let message = Message::Switch(Switch { instance: self.instance, message });
                    self.pass_to_instance(s, from, message);
                }
                _ => s.reject(from, Rejection::WrongSender),
            },
            (message, from) => self.pass_to_instance(s, from, message),
        }
    }

    fn pass_to_instance(&mut self, s: &mut Surroundings<'_, S>, from: Principal, message: Message) {
        if matches!(self.running(), Running::Opening(_)) {
            return self.keep_ahead(s, from, message);
        }
        each!(self.running_mut(), instance => instance.message(s, from, message), _ => ());
    }

    /// S2: a client was not served in time.
    fn on_panic(&mut self, s: &mut Surroundings<'_, S>, client: ClientId) {
        self.waiting.insert(client);
        each!(self.running_mut(), instance => instance.stop(s, "a client panicked"), _ => ());
    }

    /// S2 and S3: another replica has stopped.
    fn on_abort(&mut self, s: &mut Surroundings<'_, S>, from: ReplicaId, report: &Signed<AbortReport>) {
        if self.reports.contains_key(&from) {
            return;
        }
        let too_long = report.value.digests.len() as u64 > 2 * s.cluster.history_bound();
        if report.signer != from || report.value.instance != self.instance || too_long {
            return s.reject(Principal::Replica(from), Rejection::BadCertificate);
        }
        if !s.keyring.check_signed(report) {
            return s.reject(Principal::Replica(from), Rejection::BadSignature);
        }
        self.reports.insert(from, report.clone());
        self.stopped_at.get_or_insert(s.now);
        let others = self.reports.keys().filter(|id| **id != s.me).count();
        if others >= s.cluster.weak() {
            each!(self.running_mut(), instance => instance.stop(s, "f+1 replicas have stopped"), _ => ());
        }
    }

    /// Looks whether something has come to an end: this instance, or the opening of one.
    fn look(&mut self, s: &mut Surroundings<'_, S>) {
        loop {
            self.announce(s);
            let Some(part) = s.cluster.part(self.instance) else { return };
            if let Some(proof) = Proof::assemble(s.cluster, part, self.reports.values())
                && let Some(history) = proof.abort_history(s.cluster)
            {
                let next = InstanceId(self.instance.0 + 1);
                self.advance(s, next, Arc::new(proof), history);
                continue;
            }
            match self.running_mut() {
                Running::Opening(opening) if opening.0.is_done() => self.finish_opening(s),
                _ => return,
            }
        }
    }

    /// S2: says that this replica has stopped, again at every time-out.
    fn announce(&mut self, s: &mut Surroundings<'_, S>) {
        if self.announced.is_some() {
            return;
        }
        let report = each!(self.running(), instance => instance.report().cloned(), _ => None);
        let Some(report) = report else { return };
        self.announced = Some(s.now);
        self.stopped_at.get_or_insert(s.now);
        self.reports.insert(s.me, (*report).clone());
        s.out.send(Destination::Replicas, self.switch(SwitchMessage::Abort(report)));
        s.out.set_timer(ReplicaTimer::Abort, s.now + s.cluster.limits.status_interval);
    }

    const fn switch(&self, message: SwitchMessage) -> Message {
        Message::Switch(Switch { instance: self.instance, message })
    }

    /// S3: somebody proves that a later instance may run.
    fn on_init(&mut self, s: &mut Surroundings<'_, S>, from: Principal, instance: InstanceId, proof: Arc<Proof>) {
        let before = InstanceId(instance.0 - 1);
        let part = s.cluster.part(before);
        let proved = part.is_some_and(|part| proof.instance() == before && proof.check(s.cluster, s.keyring, part));
        match proof.abort_history(s.cluster).filter(|_| proved) {
            Some(history) => self.advance(s, instance, proof, history),
            None => s.reject(from, Rejection::BadCertificate),
        }
    }

    /// S3 to S5: leaves the instance that runs, for good, and goes to a later one.
    fn advance(&mut self, s: &mut Surroundings<'_, S>, instance: InstanceId, proof: Arc<Proof>, history: AbortHistory) {
        self.stopped_at.get_or_insert(s.now);
        self.stop_reason = if history.low_load { "hardly any load" } else { self.reason(instance) };
        let old = self.running.take().expect("an instance runs between steps");
        self.waiting.extend(waiting_clients(&old));
        for timer in ReplicaTimer::OF_INSTANCES {
            s.out.cancel_timer(timer);
        }
        let ledger = each!(old, instance => instance.halt(), opening => opening.1);
        self.instance = instance;
        self.proof = Some(proof.clone());
        self.reports.clear();
        self.announced = None;
        self.told.clear();
        s.out.send(Destination::Replicas, self.switch(SwitchMessage::Init(proof.clone())));
        if s.cluster.part(instance) == Some(Part::Backup) {
            let mut running = Self::instance(s.cluster, s.me, instance, ledger);
            if let Running::Backup(backup) = &mut running {
                backup.start(s);
                backup.submit_init(s, &proof);
            }
            self.running = Some(running);
            self.opened(s);
        } else {
            let mut opening = Opening::new(s, instance, history, &ledger);
            opening.ask(s);
            self.running = Some(Running::Opening(Box::new((opening, ledger))));
        }
    }

    fn reason(&self, instance: InstanceId) -> &'static str {
        if instance.0 > self.instance.0 + 1 { "this replica was behind" } else { "a request was not served in time" }
    }

    /// S4 is done: the instance runs.
    fn finish_opening(&mut self, s: &mut Surroundings<'_, S>) {
        let Some(Running::Opening(opening)) = self.running.take() else { return };
        let (opening, mut ledger) = *opening;
        let entries = opening.finish(s, &mut ledger);
        let proof = self.proof.clone().expect("opened with a proof");
        let record = InstanceRecord::Opened((proof, entries));
        s.out.persist(Record::Log(LogRecord { instance: self.instance, record }));
        let (position, history) = (ledger.log.length(), ledger.log.history());
        s.out.notify(Notice::Begun { instance: self.instance, position, history });
        let mut running = Self::instance(s.cluster, s.me, self.instance, ledger);
        each!(&mut running, instance => instance.start(s), _ => ());
        self.running = Some(running);
        self.opened(s);
    }

    /// S5: those who wait are told, and what came too early is looked at again.
    fn opened(&mut self, s: &mut Surroundings<'_, S>) {
        let took = self.stopped_at.take().map_or(Duration(0), |at| s.now - at);
        self.last_switch = LastSwitch { reason: self.stop_reason, took };
        let part = s.cluster.part(self.instance).expect("one of several instances");
        s.out.notify(Notice::Switched { instance: self.instance, part, reason: self.stop_reason, took });
        for client in core::mem::take(&mut self.waiting) {
            s.out.send(Destination::Client(client), self.switch(SwitchMessage::Active(client)));
        }
        for (from, message) in core::mem::take(&mut self.ahead) {
            self.dispatch(s, from, message);
        }
    }

    /// S5: somebody speaks to an instance that is over.
    fn tell(&mut self, s: &mut Surroundings<'_, S>, from: Principal, message: &Message) {
        match (from, message) {
            (Principal::Client(_), Message::Request(Request { client, .. }))
            | (
                Principal::Client(_),
                Message::Switch(Switch { message: SwitchMessage::Panic(Panic { client, .. }), .. }),
            ) => {
                s.out.send(Destination::Client(*client), self.switch(SwitchMessage::Active(*client)));
            }
            (Principal::Replica(to), _) => {
                let pause = Duration(s.cluster.limits.status_interval.0 / 2);
                if self.told.get(&from).is_some_and(|at| s.now - *at < pause) {
                    return;
                }
                self.told.insert(from, s.now);
                let Some(proof) = self.proof.clone() else { return };
                s.out.send(Destination::Replica(to), self.switch(SwitchMessage::Init(proof)));
            }
            (from, _) => s.reject(from, Rejection::WrongInstance),
        }
    }

    /// Something for an instance that this replica does not know of: it may be behind.
    fn on_ahead(&mut self, s: &mut Surroundings<'_, S>, from: Principal, message: Message) {
        self.keep_ahead(s, from, message);
        let pause = Duration(s.cluster.limits.status_interval.0 / 2);
        if self.asked.is_some_and(|at| s.now - at < pause) {
            return;
        }
        self.asked = Some(s.now);
        let to = match from {
            Principal::Replica(replica) => Destination::Replica(replica),
            Principal::Client(_) => Destination::Replicas,
        };
        s.out.send(to, self.switch(SwitchMessage::Behind(())));
    }

    fn keep_ahead(&mut self, s: &mut Surroundings<'_, S>, from: Principal, message: Message) {
        if self.ahead.len() >= AHEAD_MAX {
            return s.reject(from, Rejection::Overload);
        }
        self.ahead.push_back((from, message));
    }

    /// Somebody lacks entries of its init history.
    fn on_fetch(&mut self, s: &mut Surroundings<'_, S>, to: ReplicaId, instance: InstanceId, fetch: &Fetch) {
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
            s.out.send(Destination::Replica(to), Message::Switch(Switch { instance, message }));
        }
        if instance < self.instance {
            let message = Message::Switch(Switch { instance, message: SwitchMessage::Behind(()) });
            self.tell(s, Principal::Replica(to), &message);
        }
    }

    fn on_bodies(&mut self, s: &mut Surroundings<'_, S>, from: ReplicaId, bodies: Bodies) {
        match self.running_mut() {
            Running::Opening(opening) => opening.0.on_bodies(s, from, bodies),
            Running::Backup(backup) => backup.on_bodies(s, from, bodies),
            _ => {}
        }
    }

    /// A request for state, or a piece of it.
    fn on_transfer(&mut self, s: &mut Surroundings<'_, S>, from: ReplicaId, message: TransferMessage) {
        if let Some(answer) = serve(&message, |root| self.ledger().estate.version_with(root)) {
            return s.out.send(Destination::Replica(from), Message::Transfer(answer));
        }
        match self.running_mut() {
            Running::Opening(opening) => opening.0.on_transfer(s, from, message),
            Running::Backup(backup) => backup.on_transfer(s, from, message),
            _ => s.reject(Principal::Replica(from), Rejection::Unsolicited),
        }
    }
}

/// Clients whose requests an instance has not answered.
fn waiting_clients<S: Service>(running: &Running<S>) -> Vec<ClientId> {
    match running {
        Running::ZLight(zlight) => zlight.queue().clients().collect(),
        Running::Chain(chain) => chain.queue().clients().collect(),
        Running::Backup(backup) => backup.waiting_clients(),
        Running::Opening(_) | Running::Quorum(_) | Running::Unreplicated(_) => Vec::new(),
    }
}
