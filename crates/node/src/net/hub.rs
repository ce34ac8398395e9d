//! The readiness loop: which socket next, and for how long.
//!
//! A pass is one [`Hub::poll`], then [`Hub::next_event`] until it returns `None`, then one [`Hub::flush`]. In a
//! pass every readable link is visited once, replicas first, each up to its share ([`super::PASS_BYTES_MAX`],
//! [`super::PASS_FRAMES_MAX`], [`super::PASS_MS_MAX`]); what is left over stays scheduled for the next pass. Handshakes
//! have a share of their own ([`super::SHAKING_PASS_MS_MAX`]), so that who comes back need not wait for those that are
//! here. All clients together have the share of one replica, and take turns, each link for
//! [`super::CLIENT_VISIT_MS_MAX`] at most; where that is asked for, a client is read up to a [`level`] while there is
//! no time to spare. Last comes whoever is in quarantine, with less ([`rations`]): the owner says what each frame was
//! worth ([`Hub::judge`]).

mod accept;
mod account;
mod debt;
mod fairness;
mod level;
mod pass;
mod quarantine;
mod rations;
mod read;
mod rest;
mod share;
mod shares;
mod spare;
#[cfg(test)]
mod tests;
mod watch;
mod write;

use super::close_reason::CloseReason;
use super::handshake::{Expect, Handshake, Peer, ServiceBuild};
use super::link::{Frames, INTEREST, Link, LinkId, State};
use super::metrics::{NetMetrics, Traffic};
use super::output::UNSENT_BYTES;
use super::port::Port;
use super::tls::{Tls, TlsSettings};
use super::{CLIENT_BUFFERS_BYTES_MAX, CLIENT_CONNECTIONS_MAX};
use bezant_core::auth::Keyring;
use bezant_core::ids::ReplicaId;
use bezant_core::replicas::REPLICAS_MAX;
use bytes::Bytes;
use debt::Debts;
use level::Fairness;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Poll, Token, Waker};
use rations::Rations;
pub use rations::{Cause, Quarantine};
use shares::Shares;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Readiness events taken per pass.
const EVENTS_PER_PASS: usize = 1024;
/// How long a connection is silent before the system asks whether the other side still lives.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// How long the other side's system may leave bytes unacknowledged, in milliseconds.
const UNACKNOWLEDGED_MS_MAX: u32 = 10_000;
/// A port for replicas, one for clients, and one for each replica.
const LISTENERS_MAX: usize = 2 + REPLICAS_MAX;
const WAKER: Token = Token(usize::MAX - 1);
/// Tokens from here on are listeners and the waker; links are below.
const FIRST_LISTENER: usize = WAKER.0 - LISTENERS_MAX;

/// What a hub needs.
#[derive(Clone, Debug)]
pub struct HubOptions {
    /// The keys that authenticate links. The hub's copy counts the handshakes' MACs; the machine's own counters stay
    /// free of them.
    pub keyring: Keyring,
    /// What links run over.
    pub channel: Channel,
    /// What all clients together may take.
    pub bounds: Bounds,
    /// Which service a replica runs.
    pub service: ServiceBuild,
    /// Whether clients are read at a level while there is no processor time to spare.
    pub levels_clients: bool,
}

impl HubOptions {
    /// With the bounds that suit a server.
    pub fn new(keyring: Keyring, channel: Channel) -> Self {
        Self { keyring, channel, bounds: Bounds::default(), service: ServiceBuild::NONE, levels_clients: false }
    }
}

/// What all clients together may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections.
    pub connections_max: usize,
    /// Bytes in their buffers, in either direction, beyond what each connection may always hold.
    pub buffers_bytes_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { connections_max: CLIENT_CONNECTIONS_MAX, buffers_bytes_max: CLIENT_BUFFERS_BYTES_MAX }
    }
}

/// What links run over. The same at every replica and client of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channel {
    /// TLS 1.3.
    #[default]
    Tls,
    /// TCP as it is: for benchmarks on loopback.
    Plain,
}

/// One thing that happened.
#[derive(Debug)]
pub enum Event {
    /// A link is authenticated.
    Up(LinkId, Peer),
    /// A frame came over an authenticated link.
    Frame(LinkId, Peer, Bytes),
    /// A link that was up, or that we dialled, is gone.
    Down(LinkId, CloseReason),
}

/// A bound socket that accepts.
#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    port: Port,
    acceptable: bool,
    rest_until: Option<Instant>,
    /// Accepted and not authenticated, oldest first; some may be gone or authenticated by now.
    shaking: VecDeque<LinkId>,
}

/// The link that is being read.
#[derive(Clone, Copy, Debug)]
struct Visit {
    index: u32,
    bytes_left: usize,
    frames_left: usize,
    until: Instant,
    /// Its peer is in quarantine.
    rationed: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Hub {
    poll: Poll,
    ready: Events,
    waker: Arc<Waker>,
    keyring: Keyring,
    bounds: Bounds,
    service: ServiceBuild,
    tls: Option<TlsSettings>,
    listeners: Vec<Listener>,
    links: Vec<Option<Link>>,
    free: Vec<u32>,
    generation: u32,
    events: VecDeque<Event>,
    /// Links to be read, in turn; some may be gone by now.
    queues: [VecDeque<LinkId>; QUEUES],
    /// Links of each queue still to be visited in this pass.
    visits_left: [usize; QUEUES],
    /// What is left for all clients in this pass.
    client_bytes_left: usize,
    client_frames_left: usize,
    clients_until: Option<Instant>,
    /// The same for handshakes.
    shaking_until: Option<Instant>,
    visit: Option<Visit>,
    dirty: Vec<u32>,
    dialling: VecDeque<LinkId>,
    /// Links whose next packets nobody is woken for, and until when.
    resting: BinaryHeap<Reverse<(Instant, LinkId)>>,
    /// For what is read next: empty.
    gulp: Vec<u8>,
    /// For what TLS opens.
    sealed: Vec<u8>,
    shares: Shares,
    debts: Debts,
    rations: Rations,
    /// `None`: all clients are read up to what a pass has for them.
    fairness: Option<Fairness>,
    /// Frames in both directions, as of the last look.
    frames_before: u64,
    /// Of each replica since then: what came over links that are gone, and signatures.
    of_replicas: BTreeMap<ReplicaId, Frames>,
    /// When this pass began.
    now: Instant,
    /// When links are looked at again.
    look_at: Instant,
    metrics: NetMetrics,
}

/// Queues, in the order in which they are read.
const QUEUES: usize = 5;
const REPLICAS: usize = 0;
/// Who has come and has not said who it is: perhaps a replica, which is not to wait for all that clients ask.
const SHAKING: usize = 1;
const CLIENTS: usize = 2;
/// Replicas in quarantine.
const RATIONED_REPLICAS: usize = 3;
/// Clients in quarantine.
const RATIONED_CLIENTS: usize = 4;

/// The link of that name, unless it is gone.
fn link_in(links: &[Option<Link>], id: LinkId) -> Option<&Link> {
    links.get(id.index as usize)?.as_ref().filter(|link| link.generation == id.generation)
}

fn class(metrics: &mut NetMetrics, client: bool) -> &mut Traffic {
    if client { &mut metrics.clients } else { &mut metrics.replicas }
}

impl Hub {
    /// A hub without sockets.
    ///
    /// # Errors
    /// If the system gives no readiness queue.
    pub fn new(options: HubOptions) -> io::Result<Self> {
        let poll = Poll::new()?;
        raise_descriptor_limit();
        let tls = match options.channel {
            Channel::Tls => Some(TlsSettings::generate()?),
            Channel::Plain => None,
        };
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        Ok(Self {
            poll,
            ready: Events::with_capacity(EVENTS_PER_PASS),
            waker,
            keyring: options.keyring,
            bounds: options.bounds,
            service: options.service,
            tls,
            listeners: Vec::new(),
            links: Vec::new(),
            free: Vec::new(),
            generation: 0,
            events: VecDeque::new(),
            queues: [const { VecDeque::new() }; QUEUES],
            visits_left: [0; QUEUES],
            client_bytes_left: 0,
            client_frames_left: 0,
            clients_until: None,
            shaking_until: None,
            visit: None,
            dirty: Vec::new(),
            dialling: VecDeque::new(),
            resting: BinaryHeap::new(),
            gulp: Vec::new(),
            sealed: Vec::new(),
            shares: Shares::default(),
            debts: Debts::default(),
            rations: Rations::default(),
            fairness: options.levels_clients.then(Fairness::new),
            frames_before: 0,
            of_replicas: BTreeMap::new(),
            now: Instant::now(),
            look_at: Instant::now(),
            metrics: NetMetrics::default(),
        })
    }

    /// Wakes [`Hub::poll`] from another thread.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// What was counted so far.
    pub const fn metrics(&self) -> &NetMetrics {
        &self.metrics
    }

    /// Begins to connect to `replica`, as `who`. Frames may be sent at once; they leave when the link is up. The end
    /// is told by [`Event::Up`] or [`Event::Down`].
    ///
    /// # Errors
    /// If the system refuses at once.
    pub fn dial(&mut self, address: SocketAddr, replica: ReplicaId, who: Peer) -> io::Result<LinkId> {
        let socket = TcpStream::connect(address)?;
        let handshake = self.handshake(who, Expect::Replica(replica))?;
        let tls = self.tls.as_ref().map(TlsSettings::dial).transpose()?;
        let id = self.insert(socket, tls, State::Shaking(Box::new(handshake)), None)?;
        self.dialling.push_back(id);
        Ok(id)
    }

    fn handshake(&self, who: Peer, expect: Expect) -> io::Result<Handshake> {
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Handshake::new(&self.keyring, who, expect, nonce).running(self.service))
    }

    fn insert(
        &mut self,
        mut socket: TcpStream,
        tls: Option<Tls>,
        state: State,
        from: Option<(Port, IpAddr)>,
    ) -> io::Result<LinkId> {
        let index = self.free.pop().unwrap_or(self.links.len() as u32);
        if let Err(error) = self.poll.registry().register(&mut socket, Token(index as usize), INTEREST) {
            if (index as usize) < self.links.len() {
                self.free.push(index);
            }
            return Err(error);
        }
        self.generation = self.generation.wrapping_add(1);
        let link = Link::new(self.generation, socket, tls.map(Box::new), state, from);
        if index as usize == self.links.len() {
            self.links.push(Some(link));
        } else {
            self.links[index as usize] = Some(link);
        }
        Ok(LinkId { index, generation: self.generation })
    }

    fn link(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(id.index as usize)?.as_mut().filter(|link| link.generation == id.generation)
    }

    fn enqueue(&mut self, index: u32) {
        let Some(link) = self.links[index as usize].as_mut() else { return };
        if !link.queued {
            link.queued = true;
            let id = LinkId { index, generation: link.generation };
            let queue = self.queue_of(index);
            self.queues[queue].push_back(id);
        }
    }

    fn mark_dirty(&mut self, index: u32) {
        let Some(link) = self.links[index as usize].as_mut() else { return };
        if !link.dirty && link.writable && link.wants_write() {
            link.dirty = true;
            self.dirty.push(index);
        }
    }

    /// Closes a link. Its owner is not told: it asked.
    pub fn drop_link(&mut self, id: LinkId, reason: CloseReason) {
        if self.link(id).is_some() {
            self.forget(id.index, reason);
        }
    }

    fn close(&mut self, index: u32, reason: CloseReason) {
        if let Some(link) = self.forget(index, reason)
            && (link.from.is_none() || link.peer().is_some())
        {
            self.events.push_back(Event::Down(LinkId { index, generation: link.generation }, reason));
        }
    }

    fn forget(&mut self, index: u32, reason: CloseReason) -> Option<Link> {
        let mut link = self.links[index as usize].take()?;
        self.free.push(index);
        *self.metrics.closed.entry(reason.without_details()).or_default() += 1;
        if let Some(peer) = link.peer() {
            class(&mut self.metrics, link.is_client_class()).connections -= 1;
            self.shares.leave(peer, link.accounted);
            self.depart(peer, &link);
        } else if let Some((_, from)) = link.from {
            self.debts.failed(from, self.now);
        }
        if self.visit.is_some_and(|visit| visit.index == index) {
            self.visit = None;
        }
        // Closing the descriptor would deregister it as well; an error here changes nothing.
        let _ = self.poll.registry().deregister(&mut link.socket);
        let _ = link.socket.shutdown(std::net::Shutdown::Write);
        Some(link)
    }
}

/// Lets this process have as many sockets as the system's hard limit allows: thousands of clients need thousands. What
/// cannot be had shows when connections are made or accepted.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Small requests must not wait for an acknowledgement, what is urgent must not wait behind much, and a peer that is
/// cut off must be noticed in seconds, so that it is dialled anew as soon as it is back. Where the system refuses, the
/// connection still works.
fn prepare(socket: &TcpStream) {
    use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepidle, set_tcp_user_timeout};
    let _ = socket.set_nodelay(true);
    let _ = socket2::SockRef::from(socket).set_tcp_notsent_lowat(UNSENT_BYTES);
    let _ = set_socket_keepalive(socket, true);
    let _ = set_tcp_keepidle(socket, KEEPALIVE_IDLE);
    let _ = set_tcp_user_timeout(socket, UNACKNOWLEDGED_MS_MAX);
}
