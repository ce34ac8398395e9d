//! The doors: who is let in, how many wait there unauthenticated, and for how long.

use super::super::close_reason::CloseReason;
use super::super::handshake::{Expect, Peer};
use super::super::link::{Link, LinkId, State};
use super::super::port::Port;
use super::super::tls::TlsSettings;
use super::super::{HANDSHAKE_SECONDS_MAX, UNAUTHENTICATED_MAX};
use super::{FIRST_LISTENER, Hub, LISTENERS_MAX, Listener, prepare};
use bezant_core::ids::Principal;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Token};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Connections accepted per pass and port.
const ACCEPTS_PER_PASS: usize = 64;
/// How long accepting rests after the system refused it (for lack of descriptors, say).
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// How long accepting rests after a pass in which somebody had left already, or was turned away. With
/// [`ACCEPTS_PER_PASS`] that makes 1,280 of them a second and port, so that a full backlog is done with in less than a
/// second, and whoever is new comes in although a flood goes on.
const TURNED_AWAY_REST: Duration = Duration::from_millis(50);
/// How long accepting rests while as many as may are waiting to be authenticated.
const FULL_REST: Duration = Duration::from_millis(5);
/// How long a connection may take to authenticate before newer ones push it out.
const UNDISTURBED: Duration = Duration::from_secs(1);
/// Connections that the system may keep for us until we accept them; it has a limit of its own.
const BACKLOG: i32 = 1024;

impl Hub {
    /// Accepts connections on a bound socket.
    ///
    /// # Errors
    /// If the system refuses to watch it.
    ///
    /// # Panics
    /// If these are a client's keys: only replicas listen; or if there are more than [`LISTENERS_MAX`].
    pub fn listen(&mut self, socket: std::net::TcpListener, port: Port) -> io::Result<SocketAddr> {
        assert!(matches!(self.keyring.me(), Principal::Replica(_)), "only replicas listen");
        assert!(self.listeners.len() < LISTENERS_MAX, "each port is listened to once");
        socket.set_nonblocking(true)?;
        // The standard library asks for a short queue; many clients that come back at once fill it.
        rustix::net::listen(&socket, BACKLOG)?;
        let mut socket = TcpListener::from_std(socket);
        let token = Token(FIRST_LISTENER + self.listeners.len());
        self.poll.registry().register(&mut socket, token, Interest::READABLE)?;
        let address = socket.local_addr()?;
        self.listeners.push(Listener { socket, port, acceptable: true, rest_until: None, shaking: VecDeque::new() });
        Ok(address)
    }

    pub(super) fn accept(&mut self, at: usize) {
        let listener = &mut self.listeners[at];
        if !listener.acceptable || listener.rest_until.is_some() {
            return;
        }
        let turned_away = self.metrics.turned_away;
        for _ in 0..ACCEPTS_PER_PASS {
            if !self.has_room(at) {
                return self.rest(at, FULL_REST);
            }
            match self.listeners[at].socket.accept() {
                Ok((socket, from)) => self.accepted(at, socket, from.ip().to_canonical()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.listeners[at].acceptable = false;
                    break;
                }
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(_) => return self.rest(at, ACCEPT_REST),
            }
        }
        if self.metrics.turned_away > turned_away {
            self.rest(at, TURNED_AWAY_REST);
        }
    }

    /// Accepts nothing for so long. Nor is this thread woken for it, as it would be for every single connection.
    fn rest(&mut self, at: usize, pause: Duration) {
        let listener = &mut self.listeners[at];
        listener.rest_until = Some(Instant::now() + pause);
        // If it fails, this thread is woken for nothing, and that is all.
        let _ = self.poll.registry().deregister(&mut listener.socket);
    }

    fn end_rests(&mut self, now: Instant) {
        for (at, listener) in self.listeners.iter_mut().enumerate() {
            if listener.rest_until.is_some_and(|until| now >= until) {
                listener.acceptable = true;
                let (socket, token) = (&mut listener.socket, Token(FIRST_LISTENER + at));
                let watched = self.poll.registry().register(socket, token, Interest::READABLE);
                // What the system does not want now it may want later.
                listener.rest_until = watched.err().map(|_| now + ACCEPT_REST);
            }
        }
    }

    fn accepted(&mut self, at: usize, socket: TcpStream, from: IpAddr) {
        let Principal::Replica(me) = self.keyring.me() else { return };
        self.metrics.accepted += 1;
        if has_left(&socket) || !self.debts.lets_in(from, self.now) {
            self.metrics.turned_away += 1;
            return;
        }
        let port = self.listeners[at].port;
        let expect = match port {
            Port::Replicas => Expect::HigherReplica(me),
            Port::Peer(replica) => Expect::OnlyReplica(replica),
            Port::Clients => Expect::AnyClient,
        };
        prepare(&socket);
        let Ok(handshake) = self.handshake(Peer::Replica(me), expect) else { return };
        let Ok(tls) = self.tls.as_ref().map(TlsSettings::accept).transpose() else { return };
        let Ok(id) = self.insert(socket, tls, State::Shaking(Box::new(handshake)), Some((port, from))) else { return };
        self.listeners[at].shaking.push_back(id);
    }

    /// Whether a replica has a door of its own and came by another: a flood there is not to be its link.
    pub(super) fn is_at_wrong_door(&self, peer: Peer, from: Option<(Port, IpAddr)>) -> bool {
        let (Peer::Replica(replica), Some((port, _))) = (peer, from) else { return false };
        let own = Port::Peer(replica);
        port != own && self.listeners.iter().any(|listener| listener.port == own)
    }

    /// Whether one more connection may wait unauthenticated. If the room is full, the oldest goes, but not before it
    /// has had time to finish; the others wait at the door as long.
    fn has_room(&mut self, at: usize) -> bool {
        if self.listeners[at].shaking.len() < UNAUTHENTICATED_MAX {
            return true;
        }
        let mut shaking = std::mem::take(&mut self.listeners[at].shaking);
        shaking.retain(|&id| self.link(id).is_some_and(|link| link.peer().is_none()));
        if shaking.len() >= UNAUTHENTICATED_MAX
            && let Some(&oldest) = shaking.front()
            && self.link(oldest).is_some_and(|link| link.opened.elapsed() >= UNDISTURBED)
        {
            shaking.pop_front();
            self.close_unless_up(oldest);
        }
        self.listeners[at].shaking = shaking;
        self.listeners[at].shaking.len() < UNAUTHENTICATED_MAX
    }

    fn close_unless_up(&mut self, id: LinkId) {
        if self.link(id).is_some_and(|link| link.peer().is_none()) {
            self.close(id.index, CloseReason::NotAuthenticated);
        }
    }

    /// Forgets handshakes that ended, and ends those that take too long.
    pub(super) fn expire(&mut self, now: Instant) {
        let too_old = |link: &Link| now >= link.opened + Duration::from_secs(HANDSHAKE_SECONDS_MAX);
        for queue in 0..=self.listeners.len() {
            loop {
                let waiting = match self.listeners.get(queue) {
                    Some(listener) => &listener.shaking,
                    None => &self.dialling,
                };
                let Some(&id) = waiting.front() else { break };
                let still_shaking = self.link(id).filter(|link| link.peer().is_none());
                if still_shaking.is_some_and(|link| !too_old(link)) {
                    break;
                }
                match self.listeners.get_mut(queue) {
                    Some(listener) => listener.shaking.pop_front(),
                    None => self.dialling.pop_front(),
                };
                self.close_unless_up(id);
            }
        }
        self.end_rests(now);
    }
}

/// Whether the other side has closed its connection already, and said nothing before.
fn has_left(socket: &TcpStream) -> bool {
    match socket.peek(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}
