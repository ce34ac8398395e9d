//! The engine: many logical clients over few connections, on one thread.

use super::ClientOptions;
use super::bundling::{Bounds, Carried};
use super::driver::Driver;
use super::handle::{EngineHandle, EngineStatus};
use super::membership::Membership;
use crate::config::Place;
use crate::net::clock::{Clock, until};
use crate::net::{Dialer, Event, Hub, HubOptions, Lane, LinkId, Peer, Target};
use crate::replica::CpuTime;
use bezant_core::auth::Keyring;
use bezant_core::client::{Client as Logical, ClientTimer, Completed, Reporter};
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, Principal, ReplicaId, Timestamp};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::time::{Duration, Instant};
use bezant_core::wire::Rope;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How long the first requests wait for connections to replicas that neither answer nor refuse. Without the wait the
/// replies of replicas that are connected a moment later would be lost, and asked for again after `client_retry`.
const CONNECT_GRACE: Duration = Duration::from_millis(1_000);
/// Connections that may be under way at once: a replica lets only so many wait unauthenticated.
const DIALS_MAX: usize = 512;
/// How often the status is published, at most.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(100);

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
    /// Whether it waits for an answer.
    waits: bool,
    /// What its request carries, or carried while somebody may want to know what came of it.
    pub(super) carried: Vec<Carried>,
    /// The number of its last request that has ended.
    pub(super) ended: Timestamp,
    /// When it is to be looked whether somebody waits no longer for what it carries.
    pub(super) look_at: Option<Instant>,
}

/// What is free on a connection.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Sessions.
    pub(super) idle: Vec<usize>,
    /// Free sessions that are not used while others are: nobody knows what came of all that their last request carried.
    /// Oldest first.
    pub(super) kept: VecDeque<usize>,
    /// Operations that may be under way besides those that are.
    pub(super) places: usize,
    /// What was not executed for want of room in a reply, and how its request ended.
    pub(super) again: Vec<(Carried, Completed)>,
}

/// A request that leaves when the pass ends.
#[derive(Debug)]
pub(super) struct Unsigned {
    pub(super) session: usize,
    pub(super) to: Destination,
    pub(super) request: Request,
}

#[derive(Debug)]
pub(super) struct Engine<D> {
    pub(super) hub: Hub,
    pub(super) clock: Clock,
    pub(super) now: Instant,
    start: Instant,
    cluster: Rc<Cluster>,
    pub(super) keyring: Rc<Keyring>,
    pub(super) driver: D,
    /// By connection, then replica.
    pub(super) dialers: Vec<Vec<Dialer>>,
    links: BTreeMap<LinkId, (usize, ReplicaId)>,
    links_up: usize,
    pub(super) sessions: Vec<Session>,
    /// Where the cluster file does not name this client.
    pub(super) membership: Option<Membership>,
    pub(super) sessions_per_connection: usize,
    pub(super) first_session: u32,
    /// By connection.
    pub(super) rooms: Vec<Room>,
    pub(super) bounds: Bounds,
    /// When which session's [`Session::look_at`] is.
    pub(super) looks: BTreeSet<(Instant, usize)>,
    timers: BTreeSet<(Instant, usize, ClientTimer)>,
    pub(super) outbox: Outbox<Logical>,
    encoded: Rope,
    /// What leaves when the pass ends: of each session what it has sent in this pass.
    pub(super) unsigned: Vec<Unsigned>,
    /// What it tells replicas of all its sessions, where they want to know.
    reporter: Option<Reporter>,
    /// Whether every connection was made or has failed once, or the grace is over.
    settled: bool,
    passes: u64,
    rejected: u64,
    pub(super) requests: u64,
    pub(super) operations: u64,
}

/// What tells replicas of all sessions, where they want to know: those of a stranger nobody looks after.
fn reporter(options: &ClientOptions, session: u32) -> Option<Reporter> {
    options.identity.and_then(|identity| Reporter::new(&options.cluster, ClientId { identity, session }))
}

/// Seals a message for the replicas at the ends of these links, and sends it.
fn post(
    hub: &mut Hub,
    keyring: &Keyring,
    encoded: &mut Rope,
    links: impl Iterator<Item = (ReplicaId, LinkId)> + Clone,
    message: &Message,
) {
    let ids = links.clone().map(|(id, _)| Principal::Replica(id));
    let mut tags = Vec::new();
    message.seal(keyring, ids, encoded, |_, tag| tags.push(tag));
    for ((_, link), tag) in links.zip(&tags) {
        let tag = tag.as_ref().map_or(&[][..], |tag| tag.as_bytes());
        hub.send(link, Lane::Usual, encoded, tag);
    }
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
            let machine = machine.signed_by_host();
            Session {
                machine,
                timers: Vec::new(),
                waits: false,
                carried: Vec::new(),
                ended: Timestamp(0),
                look_at: None,
            }
        };
        let room = |connection: usize| Room {
            idle: (connection * per_connection..(connection + 1) * per_connection).rev().collect(),
            places: per_connection,
            ..Room::default()
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
            rooms: (0..options.connections()).map(room).collect(),
            looks: BTreeSet::new(),
            bounds: Bounds::new(&cluster.limits, options.bundle_operations_max),
            timers: BTreeSet::new(),
            outbox: Outbox::new(),
            encoded: Rope::new(),
            unsigned: Vec::new(),
            reporter: reporter(options, first),
            settled: false,
            passes: 0,
            rejected: 0,
            requests: 0,
            operations: 0,
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
            let report_at = self.reporter.as_ref().and_then(Reporter::next);
            let expiry = self.driver.expire(self.now);
            let next = [self.dial(), expiry, self.next_timer(), join_at, report_at, Some(publish_at)];
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
        let end = self.reporter.as_ref().and_then(Reporter::end);
        end.iter().for_each(|said| self.tell_all(said));
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
        self.look();
        self.feed();
        self.let_out();
        self.report();
    }

    /// A session may have begun to wait for an answer, or have got it, or ask another instance.
    fn note_waiting(&mut self, session: usize) {
        let Session { machine, waits, .. } = &mut self.sessions[session];
        let before = std::mem::replace(waits, machine.asked().is_some());
        if let Some(reporter) = &mut self.reporter {
            reporter.see(machine);
            if before != *waits {
                reporter.waits(self.now, *waits);
            }
        }
    }

    /// Tells replicas what waits, if that is due.
    fn report(&mut self) {
        let sessions = self.sessions.iter().map(|session| &session.machine);
        let said = self.reporter.as_mut().and_then(|reporter| reporter.say(self.now, sessions));
        if let Some(said) = said {
            self.tell_all(&said);
        }
    }

    /// Says something that is about no session to every replica, over its first connection that is there.
    fn tell_all(&mut self, message: &Message) {
        let link_to = |replica: ReplicaId| {
            let mut dialers = self.dialers.iter().filter_map(|dialers| dialers.get(replica.0 as usize));
            dialers.find(|dialer| dialer.is_up()).and_then(Dialer::link)
        };
        let links = self.cluster.replicas.iter().filter_map(|replica| Some((replica, link_to(replica)?)));
        let links: Vec<_> = links.collect();
        post(&mut self.hub, &self.keyring, &mut self.encoded, links.into_iter(), message);
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
        let look = self.looks.first().map(|(at, _)| *at);
        let grace = (!self.settled).then_some(self.start + CONNECT_GRACE);
        [timer, look, grace].into_iter().flatten().min()
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

    /// Gives free sessions something to do: all that waits, in as few requests as it may.
    fn feed(&mut self) {
        let connected = |dialer: &Dialer| dialer.is_up() || dialer.last().is_some();
        self.settled =
            self.settled || self.now >= self.start + CONNECT_GRACE || self.dialers.iter().flatten().all(connected);
        while let Some(again) = self.driver.again() {
            self.ask_again(&again);
        }
        self.give_back();
        if !self.settled {
            return;
        }
        self.join();
        // No connection is always the first.
        let first = self.passes as usize;
        for turn in 0..self.rooms.len() {
            let connection = (first + turn) % self.rooms.len();
            while self.may_ask() {
                let asked = self.gather(connection);
                if asked.is_empty() {
                    break;
                }
                for request in self.bounds.divide(asked) {
                    self.ask(connection, request);
                }
            }
        }
    }

    pub(super) fn step(&mut self, session: usize, input: Input<Logical>) {
        let mut outbox = std::mem::take(&mut self.outbox);
        self.sessions[session].machine.step(self.now, input, &mut outbox);
        self.carry_out(session, outbox);
    }

    pub(super) fn carry_out(&mut self, session: usize, mut outbox: Outbox<Logical>) {
        let mut ended = None;
        self.note_waiting(session);
        for effect in outbox.drain() {
            match effect {
                Effect::Persist(never) | Effect::Append(never) => match never {},
                Effect::Send(to, Message::Request(request)) if request.lacks_signature(&self.cluster) => {
                    self.unsigned.push(Unsigned { session, to, request });
                }
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
                    ended = Some(completed);
                }
            }
        }
        self.outbox = outbox;
        if let Some(completed) = ended {
            self.end(session, &completed);
        }
    }

    /// Clients send requests only; those carry their own authentication and are the same for every receiver.
    pub(super) fn send(&mut self, session: usize, to: Destination, message: &Message) {
        let Some(dialers) = self.dialers.get(self.connection_of(session)) else { return };
        let receivers = match to {
            Destination::Replica(id) => id.0 as usize..(id.0 as usize + 1).min(dialers.len()),
            Destination::Replicas => 0..dialers.len(),
            Destination::Client(_) | Destination::Key(_) => 0..0,
        };
        let links = receivers.filter_map(|id| Some((ReplicaId(id as u8), dialers[id].link()?)));
        post(&mut self.hub, &self.keyring, &mut self.encoded, links, message);
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
            requests: self.requests,
            operations: self.operations,
            cpu: CpuTime::now(),
        }
    }
}
