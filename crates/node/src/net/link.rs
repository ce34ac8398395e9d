//! One socket with what was read and not handed out, and what is queued and not written.

use super::frame::{FrameBuffer, GULP_BYTES, append_frame};
use super::handshake::{HANDSHAKE_BYTES_MAX, Handshake, Peer};
use super::output::{Lane, Output, PIECE_BYTES};
use super::pace::Pace;
use super::port::Port;
use super::tls::Tls;
use super::watch::Watch;
use bezant_core::wire::{FRAME_BYTES_MAX, Rope};
use mio::Interest;
use mio::net::TcpStream;
use rustix::buffer::spare_capacity;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::net::IpAddr;
use std::time::Instant;

/// What may be queued on a link before it is authenticated, in bytes: the first requests of a client that has just
/// begun to connect.
const EARLY_BYTES_MAX: usize = 1 << 20;

/// Segments that a socket is offered in one call, at most.
const SEGMENTS_AT_ONCE: usize = 64;

/// What the system is asked to tell about a link.
pub(super) const INTEREST: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// Names a link of a hub. Never used again after the link has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// How far a link is.
#[derive(Debug)]
pub(super) enum State {
    /// We do not know yet who is at the other end.
    Shaking(Box<Handshake>),
    /// Authenticated.
    Up(Peer),
}

/// Frames of a link, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frames {
    pub(super) came: u64,
    /// Those that were queued for the other side.
    pub(super) went: u64,
    /// Signatures that those that came made us check, but for those that replicas make with each batch.
    pub(super) signatures: u64,
}

impl Frames {
    pub(super) const fn add(&mut self, more: Self) {
        self.came += more.came;
        self.went += more.went;
        self.signatures += more.signatures;
    }
}

/// What reading led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    /// This many bytes came.
    Some(usize),
    /// There is nothing now.
    Nothing,
    /// The other side is done.
    Ended,
    /// The system reported an error.
    Failed,
    /// What came is not what TLS allows.
    TlsFailed,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Link {
    pub(super) generation: u32,
    pub(super) socket: TcpStream,
    pub(super) state: State,
    /// Where it was accepted, and from whom; `None` if we dialled.
    pub(super) from: Option<(Port, IpAddr)>,
    pub(super) opened: Instant,
    /// There may be something to read.
    pub(super) readable: bool,
    /// The other side has closed its half: read until the end, whatever a short read suggests.
    pub(super) ending: bool,
    /// Nobody is woken for it now.
    pub(super) rests: bool,
    /// It waits in the hub's queue of links to be read.
    pub(super) queued: bool,
    /// It waits in the hub's list of links to be written.
    pub(super) dirty: bool,
    /// The call to connect has ended well.
    pub(super) connected: bool,
    pub(super) writable: bool,
    /// What the hub has counted of this link's buffers.
    pub(super) accounted: usize,
    /// Since the last look.
    pub(super) frames: Frames,
    /// Whether the other side is still there.
    pub(super) watch: Watch,
    pub(super) pace: Pace,
    pub(super) input: FrameBuffer,
    tls: Option<Box<Tls>>,
    output: Output,
    /// What TLS gets next. Empty without TLS.
    plain: Rope,
    /// What the socket gets, and how much of it it has got.
    wire: Rope,
    written: usize,
    early: Rope,
}

impl Link {
    pub(super) fn new(
        generation: u32,
        socket: TcpStream,
        tls: Option<Box<Tls>>,
        state: State,
        from: Option<(Port, IpAddr)>,
    ) -> Self {
        let connected = from.is_some();
        Self {
            generation,
            socket,
            state,
            from,
            opened: Instant::now(),
            readable: false,
            ending: false,
            rests: false,
            queued: false,
            dirty: false,
            connected,
            writable: connected,
            accounted: 0,
            frames: Frames::default(),
            watch: Watch::default(),
            pace: Pace::default(),
            input: FrameBuffer::default(),
            tls,
            output: Output::default(),
            plain: Rope::new(),
            wire: Rope::new(),
            written: 0,
            early: Rope::new(),
        }
    }

    pub(super) const fn peer(&self) -> Option<Peer> {
        match self.state {
            State::Up(peer) => Some(peer),
            State::Shaking(_) => None,
        }
    }

    /// Whether it counts against the clients' budgets: clients, and whoever has not shown to be a replica.
    pub(super) const fn is_client_class(&self) -> bool {
        match self.state {
            State::Up(peer) => peer.is_client(),
            State::Shaking(_) => self.from.is_some(),
        }
    }

    pub(super) const fn frame_bytes_max(&self) -> usize {
        match self.state {
            State::Up(_) => FRAME_BYTES_MAX,
            State::Shaking(_) => HANDSHAKE_BYTES_MAX,
        }
    }

    /// Bytes queued and not written.
    pub(super) fn pending(&self) -> usize {
        self.output.len() + self.plain.len() + self.wire.len() - self.written
    }

    /// Whether a write would do anything.
    pub(super) fn wants_write(&self) -> bool {
        self.pending() > 0 || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Bytes held in either direction.
    pub(super) fn buffered(&self) -> usize {
        self.input.len() + self.sealed() + self.pending() + self.early.len()
    }

    /// Bytes of a TLS record that has begun.
    fn sealed(&self) -> usize {
        self.tls.as_ref().map_or(0, |tls| tls.held())
    }

    /// Whether there may be something of it that nobody has looked at.
    pub(super) fn is_unread(&self) -> bool {
        self.readable || self.input.has_whole()
    }

    /// Whether the beginning of a frame is here, and not its end.
    pub(super) fn is_in_a_frame(&self) -> bool {
        self.input.has_begun() || self.sealed() > 0
    }

    /// Queues a frame made of `body` and `tail`.
    pub(super) fn queue(&mut self, lane: Lane, body: &Rope, tail: &[u8]) {
        self.output.push(lane, body, tail);
    }

    /// Queues a frame of the handshake.
    pub(super) fn queue_handshake(&mut self, frame: Vec<u8>) {
        self.queue(Lane::Usual, &frame.into(), &[]);
    }

    /// Keeps a frame until the link is authenticated. False if there is no room.
    pub(super) fn queue_early(&mut self, body: &Rope, tail: &[u8]) -> bool {
        if self.early.len() > EARLY_BYTES_MAX {
            return false;
        }
        append_frame(&mut self.early, body, tail);
        true
    }

    /// The handshake is done: what was kept may follow.
    pub(super) fn up(&mut self, peer: Peer, now: Instant) {
        self.state = State::Up(peer);
        if !self.early.is_empty() {
            self.watch.said(now);
        }
        self.output.append(&std::mem::take(&mut self.early));
    }

    /// Reads once. `gulp` is an empty buffer, `wire` one for what TLS opens.
    pub(super) fn read(&mut self, gulp: &mut Vec<u8>, wire: &mut Vec<u8>) -> ReadOutcome {
        if self.is_closed_in_tls() {
            return ReadOutcome::Ended;
        }
        let (mut room, mut opened) = (0, true);
        let socket = &self.socket;
        let mut read = |buffer: &mut Vec<u8>| {
            room = buffer.capacity() - buffer.len();
            socket.try_io(|| Ok(rustix::io::retry_on_intr(|| rustix::io::read(socket, spare_capacity(buffer)))?))
        };
        let count = match &mut self.tls {
            None => self.input.fill(gulp, read),
            Some(tls) => {
                wire.clear();
                wire.reserve_exact(GULP_BYTES);
                let count = read(wire);
                opened = self.input.fill(gulp, |plain| tls.receive(wire, plain)).is_ok();
                count
            }
        };
        match count {
            Ok(0) => ReadOutcome::Ended,
            Ok(_) if !opened => ReadOutcome::TlsFailed,
            Ok(count) => {
                // A read that did not fill the buffer emptied the socket: the next byte brings a new event.
                self.readable = count == room || self.ending || self.is_closed_in_tls();
                self.bind();
                ReadOutcome::Some(count)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                ReadOutcome::Nothing
            }
            Err(_) => ReadOutcome::Failed,
        }
    }

    /// Whether the other side has said, in TLS, that it will say nothing more.
    fn is_closed_in_tls(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_closed())
    }

    /// Once TLS is done the handshake can name this connection.
    fn bind(&mut self) {
        if let Some(binding) = self.tls.as_mut().and_then(|tls| tls.binding())
            && let State::Shaking(handshake) = &mut self.state
        {
            handshake.bind(binding.to_vec());
            if self.from.is_none() {
                let hello = handshake.hello();
                self.queue_handshake(hello);
            }
        }
    }

    /// The socket is connected: the side that dialled begins. With TLS, its HELLO waits until TLS is done.
    pub(super) fn connected(&mut self) {
        self.connected = true;
        if let (None, State::Shaking(handshake)) = (&self.tls, &self.state) {
            let hello = handshake.hello();
            self.queue_handshake(hello);
        }
    }

    /// Writes what is queued, as far as the socket takes it. Returns bytes written and calls made.
    ///
    /// # Errors
    /// What the system said; the link is of no use any more.
    pub(super) fn write(&mut self) -> io::Result<(u64, u64)> {
        let (mut bytes, mut calls) = (0, 0);
        while self.writable {
            if self.written == self.wire.len() && !self.refill()? {
                break;
            }
            calls += 1;
            match self.write_once() {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.advance(count);
                    bytes += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.pending() == 0 && self.is_client_class() {
            self.shrink();
        }
        Ok((bytes, calls))
    }

    /// All is written. There may be thousands of clients, and each may once have got something long.
    fn shrink(&mut self) {
        self.output.shrink(PIECE_BYTES);
        for idle in [&mut self.plain, &mut self.wire] {
            if idle.is_empty() && idle.capacity() > PIECE_BYTES {
                *idle = Rope::new();
            }
        }
    }

    /// Bytes of memory for what is to be written.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.output.capacity() + self.plain.capacity() + self.wire.capacity()
    }

    /// Several segments in one call. What the socket does not take now can still be overtaken.
    fn write_once(&mut self) -> io::Result<usize> {
        let waiting = self.output.waiting().filter(|_| self.tls.is_none()).flat_map(Rope::segments);
        let mut slices = [IoSlice::new(&[]); SEGMENTS_AT_ONCE];
        let mut count = 0;
        for (slice, segment) in slices.iter_mut().zip(self.wire.segments_from(self.written).chain(waiting)) {
            *slice = IoSlice::new(segment);
            count += 1;
        }
        match &slices[..count] {
            [only] => self.socket.write(only),
            several => send(&self.socket, several),
        }
    }

    /// The socket has taken so many bytes.
    fn advance(&mut self, mut count: usize) {
        while count > self.wire.len() - self.written {
            count -= self.wire.len() - self.written;
            self.written = 0;
            assert!(self.output.take(&mut self.wire), "the socket took no more than it was offered");
        }
        self.written += count;
    }

    /// All has been written: the next lot. False if there is none.
    fn refill(&mut self) -> io::Result<bool> {
        self.written = 0;
        let Some(tls) = &mut self.tls else { return Ok(self.output.take(&mut self.wire)) };
        self.wire.clear();
        // Short frames and what they overtake leave in one call, as without TLS.
        loop {
            if self.plain.is_empty() {
                self.output.take(&mut self.plain);
            }
            tls.seal(&mut self.plain, &mut self.wire)?;
            let is_shaking = !self.plain.is_empty();
            if is_shaking || self.output.len() == 0 || self.wire.len() >= PIECE_BYTES {
                break;
            }
        }
        Ok(!self.wire.is_empty())
    }
}

/// Several segments in one call, as `write_vectored` does, without SIGPIPE if the other side is gone: it would end a
/// program that is not written in Rust and has our libraries in it.
fn send(socket: &TcpStream, segments: &[IoSlice<'_>]) -> io::Result<usize> {
    Ok(sendmsg(socket, segments, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::SIGPIPE;
    use std::net::{Shutdown, TcpListener};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_link_that_is_closed_ends_no_program() {
        let is_told = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGPIPE, Arc::clone(&is_told)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_other, _) = listener.accept().unwrap();
        let segments = [IoSlice::new(b"one"), IoSlice::new(b"two")];
        assert_eq!(send(&socket, &segments).unwrap(), 6);
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(send(&socket, &segments).unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert!(!is_told.load(Ordering::Relaxed));
        assert!(socket.write_vectored(&segments).is_err() && is_told.load(Ordering::Relaxed), "else it proves nothing");
    }
}
