//! The server: one thread of its own, few connections, one request on each, and little time for it.
//!
//! Whoever asks for health is answered whatever others do. Their answers are made one after another, and few may be
//! under way; when all places are taken the oldest connection that waits for its request, or has been answered, makes
//! room for a new one, whose request is looked at first.

use super::{Board, http};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections at a time.
const CONNECTIONS_MAX: usize = 64;
/// Answers at a time that their readers have not taken yet; while there are so many nothing but health is told.
const ANSWERS_MAX: usize = 8;
/// How long a connection may last, whatever it does.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(3);
/// How long nothing is accepted after an error, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Bytes after the request that are read and dropped before the connection is closed over them.
const DRAIN_BYTES_MAX: usize = 1 << 20;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct AdminServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl AdminServer {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // If waking fails the thread notices when the next connection comes or ends.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // If it panicked it has said so; there is nothing to save.
            let _ = thread.join();
        }
    }
}

/// Serves a board.
///
/// # Errors
/// Those of the operating system.
pub fn serve(listener: std::net::TcpListener, board: Arc<Board>) -> io::Result<AdminServer> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let mut listener = TcpListener::from_std(listener);
    let poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    let stop = Arc::new(AtomicBool::new(false));
    let server = Server {
        poll,
        listener,
        board,
        stop: Arc::clone(&stop),
        connections: BTreeMap::new(),
        next: 0,
        accept_again: None,
    };
    let thread = std::thread::Builder::new().name("admin".to_owned()).spawn(move || server.run())?;
    Ok(AdminServer { address, stop, waker, thread: Some(thread) })
}

/// One request and its answer.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// Empty until the request is complete.
    answer: Vec<u8>,
    sent: usize,
    /// Bytes that came after the request.
    drained: usize,
    deadline: Instant,
}

impl Connection {
    /// Does what can be done now. `Ok(false)`: it is finished.
    fn go_on(&mut self, board: &Board, has_room: bool) -> io::Result<bool> {
        let is_open = self.read(board, has_room)?;
        self.write()?;
        Ok(self.drained < DRAIN_BYTES_MAX && (is_open || self.is_answering()))
    }

    /// Whether a part of the answer waits for its reader.
    const fn is_answering(&self) -> bool {
        self.sent < self.answer.len()
    }

    /// Reads until the request is complete. What comes after it is read and dropped: closing over it would cut off
    /// the answer. `Ok(false)`: the client has said all that it will.
    fn read(&mut self, board: &Board, has_room: bool) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        while self.drained < DRAIN_BYTES_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(count) if self.answer.is_empty() => {
                    self.received.extend_from_slice(&buffer[..count]);
                    self.answer = http::answer(&self.received, board, has_room).unwrap_or_default();
                }
                Ok(count) => self.drained += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn write(&mut self) -> io::Result<()> {
        while self.is_answering() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if !self.is_answering() {
                self.stream.shutdown(Shutdown::Write)?;
            }
        }
        Ok(())
    }
}

struct Server {
    poll: Poll,
    listener: TcpListener,
    board: Arc<Board>,
    stop: Arc<AtomicBool>,
    connections: BTreeMap<usize, Connection>,
    next: usize,
    /// When to try again after an error.
    accept_again: Option<Instant>,
}

impl Server {
    fn run(mut self) {
        let mut events = Events::with_capacity(2 * CONNECTIONS_MAX);
        while !self.stop.load(Ordering::Acquire) {
            match self.poll.poll(&mut events, self.timeout()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Without readiness there is nothing left to do; the replica itself is not concerned.
                Err(_) => return,
                Ok(()) => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept_again = Some(Instant::now()),
                    WAKER => {}
                    Token(number) => self.go_on(number),
                }
            }
            let now = Instant::now();
            self.connections.retain(|_, connection| connection.deadline > now);
            if self.accept_again.is_some_and(|at| at <= now) {
                self.accept_again = self.accept();
            }
        }
    }

    /// Until something is due.
    fn timeout(&self) -> Option<Duration> {
        let deadlines = self.connections.values().map(|connection| connection.deadline);
        let due = deadlines.chain(self.accept_again).min()?;
        Some(due.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
    }

    fn go_on(&mut self, number: usize) {
        let has_room = self.connections.values().filter(|connection| connection.is_answering()).count() < ANSWERS_MAX;
        let Some(connection) = self.connections.get_mut(&number) else { return };
        // Whether it ended well or badly is the client's affair.
        if !connection.go_on(&self.board, has_room).unwrap_or(false) {
            self.connections.remove(&number);
        }
    }

    /// Takes the connections that wait, but no more than have places. Returns when to try again, if some may be left.
    fn accept(&mut self) -> Option<Instant> {
        for _ in 0..CONNECTIONS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) => self.welcome(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Some(Instant::now() + ACCEPT_PAUSE),
            }
        }
        Some(Instant::now())
    }

    fn welcome(&mut self, mut stream: TcpStream) {
        let number = self.next;
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut stream, Token(number), interest).is_err() {
            return;
        }
        if self.connections.len() >= CONNECTIONS_MAX {
            self.make_room();
        }
        self.next += 1;
        let deadline = Instant::now() + CONNECTION_TIME_MAX;
        let connection = Connection { stream, received: Vec::new(), answer: Vec::new(), sent: 0, drained: 0, deadline };
        self.connections.insert(number, connection);
        self.go_on(number);
    }

    /// Closes the oldest connection that is not taking an answer. There is one: answers have fewer places.
    fn make_room(&mut self) {
        let idle = self.connections.iter().find(|(_, connection)| !connection.is_answering());
        if let Some((&number, _)) = idle {
            self.connections.remove(&number);
        }
    }
}
