//! The loop that carries out what a replica's machine decides.

use super::routes::Routes;
use super::status::QUARANTINED_SHOWN_MAX;
use super::{CpuTime, Durability, Hosted, PeerStatus, ReplicaError, ReplicaOptions, Shelf, Stall, Status};
use crate::net::clock::{Clock, until};
use crate::net::{CloseReason, Event, Hub, HubOptions, Lane, LinkId, Peer, Port, Worth};
use bezant_core::auth::Tag;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::machine::hold_back::{HoldBack, Leaving};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::notice::Notice;
use bezant_core::registry::Message;
use bezant_core::rejection::{Account, Rejection};
use bezant_core::time::{Duration, Instant};
use bezant_core::wire::{Rope, Wire};
use bytes::Bytes;
use mio::Waker;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the loop is told: to go on,
pub(super) const RUN: u8 = 0;
/// to write out what is under way and end,
pub(super) const STOP: u8 = 1;
/// or to end at once.
pub(super) const KILL: u8 = 2;

/// How often the status is published, at most.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(100);
/// How long a graceful stop may take.
const STOP_PATIENCE: Duration = Duration::from_millis(1_000);
/// Messages and notices that may wait for the log before the machine stops: it reads nothing, and no timer fires. What
/// one step makes of one input comes on top.
const HELD_MAX: usize = 1 << 16;
/// Bytes of messages that may wait for the log before the machine stops.
pub(super) const HELD_BYTES_MAX: usize = 64 << 20;
/// As [`HELD_MAX`], while the disk is full: there is no telling for how long.
const HELD_MAX_FULL: usize = 1 << 10;
/// How long it then rests between two looks at the log.
const FULL_REST: std::time::Duration = std::time::Duration::from_millis(10);

/// All of a host that can be made before its machine exists, and on another thread.
pub(super) struct Parts {
    hub: Hub,
    routes: Routes,
    me: ReplicaId,
    log: Box<dyn Durability>,
    on_notice: Box<dyn FnMut(&Notice) + Send>,
    order: Arc<AtomicU8>,
    status: Arc<Mutex<Status>>,
    shelf: Arc<Shelf>,
}

impl Parts {
    pub(super) fn new(
        options: ReplicaOptions,
        order: Arc<AtomicU8>,
        status: Arc<Mutex<Status>>,
        shelf: Arc<Shelf>,
    ) -> io::Result<Self> {
        let Principal::Replica(me) = options.keyring.me() else {
            return Err(io::Error::other("the keys are not those of a replica"));
        };
        let mut hub = Hub::new(HubOptions {
            service: options.service,
            levels_clients: options.levels_clients,
            ..HubOptions::new(options.keyring, options.channel)
        })?;
        hub.listen(options.replica_listener, Port::Replicas)?;
        for (replica, listener) in options.peer_listeners {
            hub.listen(listener, Port::Peer(replica))?;
        }
        hub.listen(options.client_listener, Port::Clients)?;
        let mut log = options.log;
        let waker = hub.waker();
        // If waking fails the loop finds out at its next pass; there is nobody to tell.
        log.set_wake(Arc::new(move || drop(waker.wake())));
        let routes = Routes::new(me, &options.replicas);
        Ok(Self { hub, routes, me, log, on_notice: options.on_notice, order, status, shelf })
    }

    pub(super) fn waker(&self) -> Arc<Waker> {
        self.hub.waker()
    }
}

/// See the [module](self).
pub(super) struct Host<R: Hosted> {
    machine: R,
    parts: Parts,
    clock: Clock,
    now: Instant,
    outbox: Outbox<R>,
    timers: BTreeMap<<R as Machine>::Timer, Instant>,
    /// What waits for the log.
    hold_back: HoldBack<R>,
    /// With how many of them the machine stops.
    held_max: usize,
    /// Of the messages that are held back.
    held_bytes: usize,
    /// Up to where a sync has been asked for.
    asked: u64,
    encoded: Rope,
    sealed: Vec<(LinkId, Option<Tag>)>,
    passes: u64,
    unroutable: u64,
    published: u64,
    publish_at: Instant,
}

impl<R: Hosted> Host<R> {
    pub(super) fn new(machine: R, parts: Parts) -> Self {
        let clock = Clock::start();
        Self {
            machine,
            parts,
            clock,
            now: clock.now(),
            outbox: Outbox::new(),
            timers: BTreeMap::new(),
            hold_back: HoldBack::default(),
            held_max: HELD_MAX,
            held_bytes: 0,
            asked: 0,
            encoded: Rope::new(),
            sealed: Vec::new(),
            passes: 0,
            unroutable: 0,
            published: 0,
            publish_at: Instant(0),
        }
    }

    /// Until told to stop, or until it cannot go on.
    pub(super) fn run(mut self) -> Result<(), ReplicaError> {
        let outcome = self.serve();
        self.publish();
        let closed = match outcome {
            Ok(STOP) => self.parts.log.close().map_err(ReplicaError::Log),
            _ => Ok(()),
        };
        outcome.map(drop).and(closed)
    }

    /// Runs passes. Returns the order that ended them.
    fn serve(&mut self) -> Result<u8, ReplicaError> {
        self.step(Input::Start);
        let mut stop_by = None;
        loop {
            self.pass()?;
            let order = self.parts.order.load(Ordering::Acquire);
            match (order, stop_by) {
                (RUN, _) => {}
                (STOP, None) => stop_by = Some(self.now + STOP_PATIENCE),
                (STOP, Some(by)) if self.now < by && (!self.hold_back.is_empty() || self.parts.hub.pending() > 0) => {}
                _ => return Ok(order),
            }
        }
    }

    fn pass(&mut self) -> Result<(), ReplicaError> {
        let timeout = self.timeout();
        self.parts.hub.poll(timeout).map_err(ReplicaError::System)?;
        self.now = self.clock.now();
        self.passes += 1;
        self.check_log()?;
        if self.has_to_wait() {
            std::thread::sleep(FULL_REST);
        }
        while !self.has_to_wait()
            && let Some(event) = self.parts.hub.next_event()
        {
            self.on_event(event);
        }
        self.fire_timers();
        // A batch formed while the log syncs would only wait for the next sync: formed after this one, it is larger.
        // The log wakes the loop then.
        if self.parts.log.durable() >= self.asked && !self.has_to_wait() {
            self.step(Input::PassEnd);
        }
        if self.hold_back.barrier() > self.asked {
            self.asked = self.parts.log.position();
            self.parts.log.start_sync();
        }
        self.release();
        self.parts.hub.flush();
        if self.now >= self.publish_at {
            self.publish();
        }
        Ok(())
    }

    fn timeout(&mut self) -> Option<std::time::Duration> {
        let dial = self.parts.routes.tick(&mut self.parts.hub, self.now);
        let timer = self.timers.values().min().copied();
        let publish = Some(self.publish_at);
        let next = [dial, timer, publish].into_iter().flatten().min();
        if self.parts.order.load(Ordering::Acquire) != RUN {
            return Some(std::time::Duration::from_millis(1));
        }
        next.map(|at| until(at, self.clock.now()))
    }

    fn check_log(&mut self) -> Result<(), ReplicaError> {
        let stall = self.parts.log.stall();
        self.held_max = if stall.is_some() { HELD_MAX_FULL } else { HELD_MAX };
        match stall {
            Some(stall @ Stall::Broken(_)) => Err(ReplicaError::Log(stall)),
            Some(Stall::Full(_)) | None => Ok(()),
        }
    }

    /// Whether so much waits for the log that the machine may make no more.
    fn has_to_wait(&self) -> bool {
        self.hold_back.len() >= self.held_max || self.held_bytes >= HELD_BYTES_MAX
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Frame(_, peer, frame) => self.on_frame(peer, frame),
            Event::Up(link, peer) => self.parts.routes.on_up(link, peer, &mut self.parts.hub),
            Event::Down(link, reason) => {
                let whose = self.parts.routes.on_down(link, reason, self.now);
                if let (Some(from), CloseReason::Oversized) = (whose, reason) {
                    self.machine.reject(from, Rejection::Malformed);
                }
            }
        }
    }

    /// What is rejected of it under its sender's own account, the sender is charged for.
    fn on_frame(&mut self, peer: Peer, frame: Bytes) {
        let bytes = frame.len();
        // Of no frame: a timer's, or the end of a pass.
        drop(self.machine.recent_rejections());
        let checked = |host: &Self| host.machine.keyring().counters().occasional_signatures_checked.get();
        let before = checked(self);
        if let Some(incoming) = self.machine.open(frame, peer.principal()) {
            self.step(Input::Message(incoming));
        }
        if let Peer::Replica(from) = peer {
            // A proof has some of each replica's: who shows a long one has not sent many.
            let most = self.machine.keyring().keys().replicas.len() as u64;
            self.parts.hub.note_signatures(from, (checked(self) - before).min(most));
        }
        let rejected = self.machine.recent_rejections();
        let account = (!rejected.is_empty()).then(|| Account::of(peer.principal(), self.machine.keyring().keys()));
        let its = rejected.into_iter().filter(|(of, _)| Some(*of) == account);
        self.parts.hub.judge(peer, bytes, Worth::of(its.map(|(_, reason)| reason), peer.is_client()));
    }

    /// Each timer at most once per pass, even if it is set again for a time that has passed.
    fn fire_timers(&mut self) {
        let now = self.now;
        let due: Vec<_> = self.timers.iter().filter(|(_, at)| **at <= now).map(|(timer, _)| *timer).collect();
        for timer in due {
            // An earlier one of them may have moved or cancelled it.
            if self.timers.get(&timer).is_some_and(|at| *at <= now) && !self.has_to_wait() {
                self.timers.remove(&timer);
                self.step(Input::Timer(timer));
            }
        }
    }

    fn step(&mut self, input: Input<R>) {
        let mut outbox = std::mem::take(&mut self.outbox);
        self.machine.step(self.now, input, &mut outbox);
        for effect in outbox.drain() {
            match effect {
                Effect::Persist(record) => {
                    self.parts.log.append(&record);
                    self.hold_back.wait_for(self.parts.log.position());
                }
                Effect::Append(record) => self.parts.log.append(&record),
                Effect::Send(to, message) => self.send(to, message),
                Effect::SetTimer(timer, at) => drop(self.timers.insert(timer, at)),
                Effect::CancelTimer(timer) => drop(self.timers.remove(&timer)),
                Effect::Notify(notice) => self.notify(notice),
            }
        }
        self.outbox = outbox;
    }

    /// Whether the log has all that must precede what comes now, and that has left.
    fn may_leave(&mut self) -> bool {
        if self.hold_back.waits() {
            self.hold_back.durable_to(self.parts.log.durable());
        }
        self.hold_back.is_open()
    }

    fn send(&mut self, to: Destination, message: Message) {
        if self.may_leave() {
            self.transmit(to, &message);
        } else {
            self.held_bytes += message.length();
            self.hold_back.hold(Leaving::Message(to, message));
        }
    }

    fn notify(&mut self, notice: Notice) {
        if self.may_leave() {
            (self.parts.on_notice)(&notice);
        } else {
            self.hold_back.hold(Leaving::Notice(notice));
        }
    }

    fn release(&mut self) {
        self.hold_back.durable_to(self.parts.log.durable());
        while let Some(leaving) = self.hold_back.release() {
            match leaving {
                Leaving::Message(to, message) => {
                    self.held_bytes -= message.length();
                    self.transmit(to, &message);
                }
                Leaving::Notice(notice) => (self.parts.on_notice)(&notice),
            }
        }
    }

    /// Encodes once, seals for each receiver that has a link.
    fn transmit(&mut self, to: Destination, message: &Message) {
        let Parts { routes, hub, me, .. } = &mut self.parts;
        let (encoded, sealed) = (&mut self.encoded, &mut self.sealed);
        let keyring = self.machine.keyring();
        let lane = if message.may_overtake() { Lane::Express } else { Lane::Usual };
        let to_replica = |to, tag| {
            if let Principal::Replica(id) = to
                && let Some(link) = routes.replica(id)
            {
                sealed.push((link, tag));
            }
        };
        match to {
            Destination::Replicas => {
                let others = routes.linked_replicas().filter(|id| id != me).map(Principal::Replica);
                message.seal(keyring, others, encoded, to_replica);
            }
            // It would only make the queue longer.
            Destination::Replica(id)
                if message.repeats() && routes.replica(id).is_some_and(|link| hub.is_behind(link)) => {}
            Destination::Replica(id) => {
                message.seal(keyring, [Principal::Replica(id)].into_iter(), encoded, to_replica);
            }
            Destination::Client(id) => match routes.client(id) {
                Some(link) => {
                    let receiver = [Principal::Client(id)].into_iter();
                    message.seal(keyring, receiver, encoded, |_, tag| sealed.push((link, tag)));
                }
                None => self.unroutable += 1,
            },
            Destination::Key(key) => {
                let links = routes.stranger(&key);
                self.unroutable += u64::from(links.is_empty());
                let tagged = |_, tag: Option<Tag>| links.iter().for_each(|link| sealed.push((*link, tag)));
                message.seal(keyring, [Principal::Key(key)].into_iter(), encoded, tagged);
            }
        }
        for (link, tag) in sealed.drain(..) {
            hub.send(link, lane, encoded, tag.as_ref().map_or(&[], |tag| tag.as_bytes()));
        }
    }

    fn publish(&mut self) {
        self.publish_at = self.now + PUBLISH_INTERVAL;
        self.published += 1;
        let shelf = &self.parts.shelf;
        if let Some(snapshot) = self.machine.certain_checkpoint(shelf.newest_certain().as_ref()) {
            shelf.put_certain(snapshot);
        }
        shelf.put_own(self.machine.newest_checkpoint());
        let peer = |(replica, connected, last_end)| PeerStatus { replica, connected, last_end };
        let status = Status {
            report: self.machine.report(),
            net: self.parts.hub.metrics().clone(),
            quarantined: self.parts.hub.quarantined().take(QUARANTINED_SHOWN_MAX).collect(),
            peers: self.parts.routes.peers().map(peer).collect(),
            counters: self.machine.keyring().counters().clone(),
            passes: self.passes,
            unroutable: self.unroutable,
            held: self.hold_back.len(),
            log_position: self.parts.log.position(),
            log_durable: self.parts.log.durable(),
            syncs: self.parts.log.syncs(),
            log_bytes: self.parts.log.bytes(),
            stall: self.parts.log.stall(),
            cpu: CpuTime::now(),
            published: self.published,
            updated: Some(std::time::Instant::now()),
        };
        *self.parts.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ReplicaHandle, run};
    use super::*;
    use crate::net::{Channel, ServiceBuild};
    use bezant_core::auth::{Ed25519, Keyring, PublicKeys, SecretKey, Suite};
    use bezant_core::checkpoint::{Checkpoint, Evidence, Snapshot, Tree};
    use bezant_core::cluster::Cluster;
    use bezant_core::digest::Digest;
    use bezant_core::ids::{InstanceId, Sequence, View};
    use bezant_core::notice::Report;
    use bezant_core::registry::{Incoming, Record, SnapshotRecord};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::atomic::AtomicBool;

    /// What it says each time its timer fires.
    const AT_ONCE: usize = 100;

    /// Says much whenever its timer fires, which is always.
    struct Talker(Keyring);

    impl Machine for Talker {
        type Incoming = Incoming;
        type Outgoing = Message;
        type Timer = u8;
        type Command = ();
        type Notice = Notice;
        type Record = Record;

        fn step(&mut self, now: Instant, input: Input<Self>, out: &mut Outbox<Self>) {
            match input {
                Input::Start => {
                    let snapshot = self.newest_checkpoint();
                    let record = SnapshotRecord { snapshot, live: Vec::new(), transferred: true };
                    out.persist(Record::Snapshot(Box::new(record)));
                    out.notify(Notice::ViewEntered { view: View(1) });
                }
                Input::Timer(_) => {
                    let value = Checkpoint {
                        instance: InstanceId(1),
                        sequence: Sequence(1),
                        ruled: Sequence(0),
                        root: Digest::ZERO,
                    };
                    let signed = self.0.sign(value);
                    for _ in 0..AT_ONCE {
                        out.send(Destination::Replicas, Message::Checkpoint(Box::new(signed.claim())));
                    }
                }
                _ => return,
            }
            out.set_timer(0, now);
        }
    }

    impl Hosted for Talker {
        fn open(&mut self, _frame: Bytes, _from: Principal) -> Option<Incoming> {
            None
        }
        fn keyring(&self) -> &Keyring {
            &self.0
        }
        fn report(&self) -> Report {
            Report::default()
        }
        fn certain_checkpoint(&self, _known: Option<&Checkpoint>) -> Option<Snapshot> {
            None
        }
        fn newest_checkpoint(&self) -> Snapshot {
            let mut tree = Tree::new();
            tree.seal();
            Snapshot { evidence: Evidence::genesis(InstanceId(1), tree.root()), tree }
        }
    }

    /// A log whose disk is full for ever.
    #[derive(Default)]
    struct FullLog(u64);

    impl Durability for FullLog {
        fn set_wake(&mut self, _wake: Arc<dyn Fn() + Send + Sync>) {}
        fn append(&mut self, _record: &Record) {
            self.0 += 1;
        }
        fn start_sync(&mut self) {}
        fn position(&self) -> u64 {
            self.0
        }
        fn durable(&self) -> u64 {
            0
        }
        fn stall(&self) -> Option<Stall> {
            (self.0 > 0).then(|| Stall::Full("no space".to_owned()))
        }
        fn syncs(&self) -> u64 {
            0
        }
        fn bytes(&self) -> u64 {
            0
        }
        fn close(self: Box<Self>) -> Result<(), Stall> {
            Ok(())
        }
    }

    /// A talker whose log is full, and who hears its notices.
    fn talk(on_notice: impl FnMut(&Notice) + Send + 'static) -> ReplicaHandle {
        let cluster = Cluster::of([1; 16], 4).unwrap();
        let replicas = (1..=4).map(|id| Ed25519.public(&SecretKey([id; 32]))).collect();
        let keys = PublicKeys { replicas, identities: BTreeMap::new() };
        let me = Principal::Replica(ReplicaId(0));
        let keyring = Keyring::new(&Ed25519, &cluster, me, SecretKey([1; 32]), keys).unwrap();
        let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
        let options = ReplicaOptions {
            keyring: keyring.clone(),
            channel: Channel::Plain,
            service: ServiceBuild::NONE,
            levels_clients: false,
            replicas: vec![SocketAddr::from(([127, 0, 0, 1], 1)); 4].into(),
            replica_listener: listener(),
            peer_listeners: Vec::new(),
            client_listener: listener(),
            log: Box::new(FullLog::default()),
            on_notice: Box::new(on_notice),
        };
        run(options, move || Ok(Talker(keyring))).unwrap()
    }

    /// Waits until so much is held back.
    fn held(handle: &ReplicaHandle, least: usize) -> usize {
        let begin = std::time::Instant::now();
        while handle.status().held < least && begin.elapsed().as_secs() < 20 {
            std::thread::sleep(FULL_REST);
        }
        std::thread::sleep(20 * FULL_REST);
        handle.status().held
    }

    #[test]
    fn timers_do_not_fill_the_memory_while_the_disk_is_full() {
        let handle = talk(|_| {});
        let held = held(&handle, HELD_MAX_FULL);
        assert!((HELD_MAX_FULL..HELD_MAX_FULL + AT_ONCE).contains(&held), "{held}");
        handle.kill().unwrap();
    }

    #[test]
    fn nobody_is_told_of_what_the_log_does_not_have() {
        let told = Arc::new(AtomicBool::new(false));
        let hears = Arc::clone(&told);
        let handle = talk(move |_| hears.store(true, Ordering::Relaxed));
        assert!(held(&handle, 1 + AT_ONCE) > AT_ONCE, "the notice is the first of many");
        handle.kill().unwrap();
        assert!(!told.load(Ordering::Relaxed));
    }
}
