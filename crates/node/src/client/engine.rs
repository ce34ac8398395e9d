//! The engine: many logical clients over few connections, on one thread.

use super::ClientOptions;
use super::membership::{Admitted, Membership};
use crate::config::Place;
use crate::net::clock::{Clock, until};
use crate::net::{Dialer, Event, Hub, HubOptions, Lane, LinkId, NetMetrics, Peer, Target};
use crate::replica::CpuTime;
use bezant_core::auth::{Counters, Keyring};
use bezant_core::client::{Answer, Client as Logical, ClientTimer, Completed, Completion, Submit};
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, Principal, ReplicaId, Timestamp};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::registry::Message;
use bezant_core::time::{Duration, Instant};
use bezant_core::wire::Rope;
use bytes::Bytes;
use mio::Waker;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How long the first requests wait for connections to replicas that neither answer nor refuse. Without the wait the
/// replies of replicas that are connected a moment later would be lost, and asked for again after `client_retry`.
const CONNECT_GRACE: Duration = Duration::from_millis(1_000);
/// Connections that may be under way at once: a replica lets only so many wait unauthenticated.
const DIALS_MAX: usize = 512;
/// How often the status is published, at most.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(100);

/// A request that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The engine's number of the session, from 0.
    pub session: usize,
    /// What came of it.
    pub completed: Completed,
    /// What each replica did, in words. Empty unless the outcome is unknown.
    pub explanation: Vec<(ReplicaId, String)>,
}

/// A request whose outcome was unknown.
#[derive(Debug)]
pub struct Again {
    /// The engine's number of the session.
    pub session: usize,
    /// The request.
    pub id: (ClientId, Timestamp),
    /// The same operation as before.
    pub submit: Submit,
}

/// Where requests come from and results go to, on the engine's own thread.
pub trait Driver: Send + 'static {
    /// The next request of a free session, if there is one. Asked when a session has become free and when the engine
    /// was woken.
    fn next(&mut self, session: usize, now: Instant) -> Option<Submit>;

    /// A request has ended.
    fn on_finished(&mut self, finished: Finished);

    /// Whether the cluster lets this client in, where it has to join, or not any more.
    fn on_admission(&mut self, _admitted: Admitted) {}

    /// Whether a session whose request ended as unknown is kept aside, as long as at least half of all sessions are
    /// left, so that it can be asked again.
    const KEEPS_UNKNOWN: bool = false;

    /// A request that is to be asked for again, if there is one. Its session must be free.
    fn again(&mut self) -> Option<Again> {
        None
    }

    /// Gives up what waited for too long. Returns when to be called again.
    fn expire(&mut self, _now: Instant) -> Option<Instant> {
        None
    }
}

/// What an engine publishes about itself; counters since its start.
#[derive(Clone, Debug, Default)]
pub struct EngineStatus {
    /// What its network layer counted.
    pub net: NetMetrics,
    /// Authentication operations.
    pub counters: Counters,
    /// Passes of the loop.
    pub passes: u64,
    /// Replies that were not accepted at the boundary.
    pub rejected: u64,
    /// Links that are up.
    pub links_up: usize,
    /// How often each replica gave another result than the agreed one. Replicas that never did are not in it.
    pub differed: BTreeMap<ReplicaId, u64>,
    /// Processor time.
    pub cpu: CpuTime,
}

/// A running engine.
#[derive(Debug)]
pub struct EngineHandle<D> {
    waker: Arc<Waker>,
    stop: Arc<AtomicBool>,
    status: Arc<Mutex<EngineStatus>>,
    clock: Clock,
    thread: JoinHandle<D>,
}

impl<D> EngineHandle<D> {
    /// Wakes the engine, so that it asks its driver for requests.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// The engine's clock: deadlines are in its time.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// What the engine last published.
    pub fn status(&self) -> EngineStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes all connections and gives the driver back. `None` if the engine ended by a failure of the system.
    pub fn stop(self) -> Option<D> {
        self.stop.store(true, Ordering::Release);
        // If waking fails the engine notices at its next pass, at most 100 ms later.
        let _ = self.waker.wake();
        self.thread.join().ok()
    }
}

/// Starts an engine that serves `driver`.
///
/// # Errors
/// If the keys are not those of the identity, or the system gives no readiness queue or thread.
pub fn run<D: Driver>(options: ClientOptions, driver: D) -> io::Result<EngineHandle<D>> {
    let first = options.first_session()?;
    run_from(options, first, driver)
}

/// The same with sessions from this number on.
pub(super) fn run_from<D: Driver>(options: ClientOptions, first: u32, driver: D) -> io::Result<EngineHandle<D>> {
    let hub = Hub::new(HubOptions::new(options.keyring()?, options.channel))?;
    let waker = hub.waker();
    let stop = Arc::new(AtomicBool::new(false));
    let status = Arc::new(Mutex::new(EngineStatus::default()));
    let clock = Clock::start();
    let keyring = options.keyring()?;
    let shared = (Arc::clone(&stop), Arc::clone(&status));
    let thread = std::thread::Builder::new()
        .name("client".into())
        .spawn(move || Engine::new(&options, hub, clock, keyring, first, driver).run(&shared.0, &shared.1))?;
    Ok(EngineHandle { waker, stop, status, clock, thread })
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) machine: Logical,
    timers: Vec<(ClientTimer, Instant)>,
}

#[derive(Debug)]
pub(super) struct Engine<D> {
    pub(super) hub: Hub,
    pub(super) clock: Clock,
    pub(super) now: Instant,
    start: Instant,
    cluster: Rc<Cluster>,
    keyring: Rc<Keyring>,
    pub(super) driver: D,
    /// By connection, then replica.
    dialers: Vec<Vec<Dialer>>,
    links: BTreeMap<LinkId, (usize, ReplicaId)>,
    links_up: usize,
    pub(super) sessions: Vec<Session>,
    /// Where the cluster file does not name this client.
    pub(super) membership: Option<Membership>,
    pub(super) sessions_per_connection: usize,
    pub(super) first_session: u32,
    idle: Vec<usize>,
    /// Free sessions that are not used while others are: the last request's outcome is unknown. Oldest first.
    kept: VecDeque<usize>,
    timers: BTreeSet<(Instant, usize, ClientTimer)>,
    pub(super) outbox: Outbox<Logical>,
    encoded: Rope,
    /// Whether every connection was made or has failed once, or the grace is over.
    settled: bool,
    passes: u64,
    rejected: u64,
}

impl<D: Driver> Engine<D> {
    fn new(options: &ClientOptions, hub: Hub, clock: Clock, keyring: Keyring, first: u32, driver: D) -> Self {
        let (cluster, keyring) = (Rc::new(options.cluster.clone()), Rc::new(keyring));
        let per_connection = options.sessions_per_connection();
        let dialers = |connection: usize| {
            let first = first + (connection * per_connection) as u32;
            let who = match keyring.me() {
                Principal::Key(key) => Peer::Stranger(key),
                _ => {
                    let identity = options.identity.unwrap_or_default();
                    Peer::Client { identity, first, sessions: per_connection as u32 }
                }
            };
            let target = |(replica, place): (_, &Place)| Target { place: place.clone(), replica, who };
            let dialer = |target| Dialer::new(target, connection == 0);
            cluster.replicas.iter().zip(&options.replicas).map(target).map(dialer).collect()
        };
        let session = |number: usize| {
            let (cluster, keyring) = (Rc::clone(&cluster), Rc::clone(&keyring));
            let machine = match options.identity {
                Some(identity) => Logical::new(cluster, keyring, ClientId { identity, session: first + number as u32 }),
                None => Logical::stranger(cluster, keyring),
            };
            Session { machine, timers: Vec::new() }
        };
        let door = options.sessions();
        let stranger = options.identity.is_none();
        let membership = stranger.then(|| Membership::new(options.identification.clone(), door));
        Self {
            hub,
            clock,
            now: clock.now(),
            start: clock.now(),
            driver,
            dialers: (0..options.connections()).map(dialers).collect(),
            links: BTreeMap::new(),
            links_up: 0,
            sessions: (0..door + usize::from(stranger)).map(session).collect(),
            membership,
            sessions_per_connection: per_connection,
            first_session: first,
            idle: (0..options.sessions()).rev().collect(),
            kept: VecDeque::new(),
            timers: BTreeSet::new(),
            outbox: Outbox::new(),
            encoded: Rope::new(),
            settled: false,
            passes: 0,
            rejected: 0,
            cluster,
            keyring,
        }
    }

    fn run(mut self, stop: &AtomicBool, status: &Mutex<EngineStatus>) -> D {
        let mut publish_at = self.now;
        for session in 0..self.sessions.len() {
            self.step(session, Input::Start);
        }
        while !stop.load(Ordering::Acquire) {
            let join_at = self.membership.as_ref().and_then(Membership::next);
            let next = [self.dial(), self.driver.expire(self.now), self.next_timer(), join_at, Some(publish_at)];
            let timeout = next.into_iter().flatten().min().map(|at| until(at, self.clock.now()));
            if self.hub.poll(timeout).is_err() {
                break;
            }
            self.pass();
            if self.now >= publish_at {
                publish_at = self.now + PUBLISH_INTERVAL;
                *status.lock().unwrap_or_else(PoisonError::into_inner) = self.status();
            }
        }
        self.leave();
        *status.lock().unwrap_or_else(PoisonError::into_inner) = self.status();
        self.driver
    }

    pub(super) fn pass(&mut self) {
        self.now = self.clock.now();
        self.passes += 1;
        while let Some(event) = self.hub.next_event() {
            match event {
                Event::Frame(link, Peer::Replica(from), frame) => self.on_frame(link, from, frame),
                Event::Frame(..) => self.rejected += 1,
                Event::Up(link, _) => {
                    if let Some(dialer) = self.dialer(link) {
                        dialer.on_up();
                        self.links_up += 1;
                        self.hurry_others(link);
                    }
                }
                Event::Down(link, reason) => {
                    let now = self.now;
                    if let Some(dialer) = self.dialer(link) {
                        let was_up = dialer.is_up();
                        dialer.on_down(reason, now);
                        self.links_up -= usize::from(was_up);
                    }
                    self.links.remove(&link);
                }
            }
        }
        self.fire_timers();
        self.feed();
        self.hub.flush();
    }

    fn dialer(&mut self, link: LinkId) -> Option<&mut Dialer> {
        let (connection, replica) = *self.links.get(&link)?;
        self.dialers.get_mut(connection)?.get_mut(replica.0 as usize)
    }

    /// If it was the first connection that reached a replica, the others try at once.
    fn hurry_others(&mut self, reached: LinkId) {
        let Some(&(0, replica)) = self.links.get(&reached) else { return };
        let others = self.dialers.iter_mut().filter_map(|dialers| dialers.get_mut(replica.0 as usize));
        others.for_each(|dialer| dialer.hurry(self.now));
    }

    /// Dials whom it is time to dial. Returns when to call again.
    fn dial(&mut self) -> Option<Instant> {
        if self.links.len() == self.dialers.len() * self.cluster.replicas.n() {
            return None;
        }
        let mut next = None;
        let mut under_way = self.links.len() - self.links_up;
        for (connection, dialers) in self.dialers.iter_mut().enumerate() {
            for (replica, dialer) in dialers.iter_mut().enumerate().filter(|(_, dialer)| dialer.link().is_none()) {
                if under_way >= DIALS_MAX {
                    return next;
                }
                let again = dialer.tick(&mut self.hub, self.now);
                if let Some(link) = dialer.link() {
                    under_way += 1;
                    self.links.insert(link, (connection, ReplicaId(replica as u8)));
                }
                next = [next, again].into_iter().flatten().min();
            }
        }
        next
    }

    fn on_frame(&mut self, _link: LinkId, from: ReplicaId, frame: Bytes) {
        let opened = Message::open(frame, Principal::Replica(from), &self.cluster, &self.keyring);
        let session = opened.as_ref().ok().and_then(|incoming| self.session_of(&incoming.message));
        match (opened, session) {
            (Ok(incoming), Some(session)) if session < self.sessions.len() => {
                self.step(session, Input::Message(incoming));
            }
            _ => self.rejected += 1,
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, ..)| *at);
        let grace = (!self.settled).then_some(self.start + CONNECT_GRACE);
        [timer, grace].into_iter().flatten().min()
    }

    /// No more than are set now, even if a machine sets one again for a time that has passed.
    fn fire_timers(&mut self) {
        for _ in 0..self.timers.len() {
            let Some(&(at, session, timer)) = self.timers.first() else { return };
            if at > self.now {
                return;
            }
            self.cancel(session, timer);
            self.step(session, Input::Timer(timer));
        }
    }

    fn cancel(&mut self, session: usize, timer: ClientTimer) {
        let timers = &mut self.sessions[session].timers;
        if let Some(place) = timers.iter().position(|(name, _)| *name == timer) {
            let (_, at) = timers.swap_remove(place);
            self.timers.remove(&(at, session, timer));
        }
    }

    /// Gives free sessions something to do.
    fn feed(&mut self) {
        let connected = |dialer: &Dialer| dialer.is_up() || dialer.last().is_some();
        self.settled =
            self.settled || self.now >= self.start + CONNECT_GRACE || self.dialers.iter().flatten().all(connected);
        while let Some(Again { session, id, submit }) = self.driver.again() {
            self.kept.retain(|kept| *kept != session);
            self.idle.retain(|idle| *idle != session);
            let mut outbox = std::mem::take(&mut self.outbox);
            self.sessions[session].machine.ask_again(self.now, id, submit, &mut outbox);
            self.carry_out(session, outbox);
        }
        if self.settled {
            self.join();
        }
        while self.settled
            && self.may_ask()
            && let Some(&session) = self.idle.last()
            && let Some(submit) = self.driver.next(session, self.now)
        {
            self.idle.pop();
            self.step(session, Input::Command(submit));
        }
    }

    fn step(&mut self, session: usize, input: Input<Logical>) {
        let mut outbox = std::mem::take(&mut self.outbox);
        self.sessions[session].machine.step(self.now, input, &mut outbox);
        self.carry_out(session, outbox);
    }

    pub(super) fn carry_out(&mut self, session: usize, mut outbox: Outbox<Logical>) {
        for effect in outbox.drain() {
            match effect {
                Effect::Persist(never) | Effect::Append(never) => match never {},
                Effect::Send(to, message) => self.send(session, to, &message),
                Effect::SetTimer(timer, at) => {
                    self.cancel(session, timer);
                    self.sessions[session].timers.push((timer, at));
                    self.timers.insert((at, session, timer));
                }
                Effect::CancelTimer(timer) => self.cancel(session, timer),
                Effect::Notify(completed) if self.membership.as_ref().is_some_and(|it| it.door() == session) => {
                    self.on_door(&completed);
                }
                Effect::Notify(completed) => {
                    self.on_ended(&completed);
                    let explanation = self.explain(session, &completed);
                    self.free(session, &completed);
                    self.driver.on_finished(Finished { session, completed, explanation });
                }
            }
        }
        self.outbox = outbox;
    }

    pub(super) fn free(&mut self, session: usize, completed: &Completed) {
        if !D::KEEPS_UNKNOWN || completed.result != Completion::Unknown {
            return self.idle.push(session);
        }
        self.kept.push_back(session);
        if self.kept.len() > self.sessions.len() / 2 {
            self.idle.extend(self.kept.pop_front());
        }
    }

    /// Clients send requests only; those carry their own authentication and are the same for every receiver.
    fn send(&mut self, session: usize, to: Destination, message: &Message) {
        let Some(dialers) = self.dialers.get(self.connection_of(session)) else { return };
        let receivers = match to {
            Destination::Replica(id) => id.0 as usize..(id.0 as usize + 1).min(dialers.len()),
            Destination::Replicas => 0..dialers.len(),
            Destination::Client(_) | Destination::Key(_) => 0..0,
        };
        let links = receivers.filter_map(|id| Some((ReplicaId(id as u8), dialers[id].link()?)));
        let ids = links.clone().map(|(id, _)| Principal::Replica(id));
        let mut tags = Vec::new();
        message.seal(&self.keyring, ids, &mut self.encoded, |_, tag| tags.push(tag));
        for ((_, link), tag) in links.zip(&tags) {
            let tag = tag.as_ref().map_or(&[][..], |tag| tag.as_bytes());
            self.hub.send(link, Lane::Usual, &self.encoded, tag);
        }
    }

    fn explain(&self, session: usize, completed: &Completed) -> Vec<(ReplicaId, String)> {
        if completed.result != Completion::Unknown {
            return Vec::new();
        }
        let dialers = self.dialers.get(self.connection_of(session)).map_or(&[][..], Vec::as_slice);
        let explain = |&(replica, answer): &(ReplicaId, Answer)| {
            let dialer = dialers.get(replica.0 as usize);
            let up = dialer.is_some_and(Dialer::is_up);
            let text = match (answer, dialer.and_then(Dialer::last)) {
                (Answer::Agreed, _) => "answered like the most".into(),
                (Answer::Differed, _) => "gave a different answer".into(),
                (Answer::Waiting, _) => "gave an answer that did not add up with the others".into(),
                (Answer::Silent, _) if up => "connected, but silent".into(),
                (Answer::Silent, Some(reason)) => format!("not connected: {reason}"),
                (Answer::Silent, None) => "not connected: no answer from its address yet".into(),
            };
            (replica, text)
        };
        completed.answers.iter().map(explain).collect()
    }

    fn status(&self) -> EngineStatus {
        let mut differed = BTreeMap::new();
        for (replica, count) in self.sessions.iter().flat_map(|session| session.machine.differed()) {
            *differed.entry(*replica).or_default() += count;
        }
        EngineStatus {
            differed,
            net: self.hub.metrics().clone(),
            counters: self.keyring.counters().clone(),
            passes: self.passes,
            rejected: self.rejected,
            links_up: self.links_up,
            cpu: CpuTime::now(),
        }
    }
}
