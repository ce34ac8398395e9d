//! The sockets of the Redis gateway: one thread a connection, everything bounded.
//!
//! A thread waits for its socket to become readable, or writable while replies are waiting, so that a client may send
//! all its commands before it reads the first reply. A client that does not read its replies for
//! [`STALLED_MAX`](super::output::STALLED_MAX) is cut off, one whose host is gone is found out by keep-alive probes.

use super::info::Statistics;
use super::output::Output;
use super::parser::Parser;
use super::reply::Reply;
use super::scan::Cursors;
use super::session::{Flow, Session, Shared};
use crate::store::Store;
use bytes::BytesMut;
use rustix::net::sockopt;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Connections at a time. One more is told so, in the words of Redis, and closed.
pub const CONNECTIONS_MAX: usize = 1_024;
/// How long a closing gateway waits for the commands that are being carried out.
const CLOSING_MAX: Duration = Duration::from_secs(10);
/// How long a connection may be idle before the other side is asked whether it still exists.
const KEEP_ALIVE: Duration = Duration::from_secs(300);
/// Bytes taken from a socket at a time.
const READ_BYTES: usize = 64 << 10;
/// A connection's thread needs little: no call is deep.
const STACK_BYTES: usize = 256 << 10;

/// A running gateway. Closes when dropped.
pub struct Server {
    address: SocketAddr,
    connections: Arc<Connections>,
    acceptor: Option<JoinHandle<()>>,
}

/// The open connections, so that they can be told to close.
#[derive(Default)]
struct Connections {
    closing: AtomicBool,
    open: Mutex<BTreeMap<u64, Arc<TcpStream>>>,
}

impl Server {
    /// Listens on `address` and serves `store` from threads of its own.
    ///
    /// # Errors
    /// Whatever the system says about the address.
    pub fn start(address: SocketAddr, store: Arc<dyn Store>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let connections = Arc::new(Connections::default());
        let shared = Arc::new(Shared { store, cursors: Cursors::new(), statistics: Statistics::new() });
        let for_acceptor = Arc::clone(&connections);
        let acceptor = thread::Builder::new()
            .name("redis-accept".into())
            .spawn(move || accept_all(&listener, &for_acceptor, &shared))?;
        Ok(Self { address, connections, acceptor: Some(acceptor) })
    }

    /// Where it listens: the port that was chosen, if 0 was asked for.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections or commands, and waits a while for the replies to those that it took.
    pub fn close(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.connections.closing.store(true, Ordering::SeqCst);
        // Wakes the acceptor; if this fails it was not waiting.
        let _ = TcpStream::connect_timeout(&reachable(self.address), Duration::from_secs(1));
        let _ = acceptor.join();
        let deadline = Instant::now() + CLOSING_MAX;
        for stream in self.connections.open().values() {
            let _ = stream.shutdown(Shutdown::Read);
        }
        while !self.connections.open().is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

/// An address that listens on all interfaces is reached by the loopback one.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

impl Connections {
    fn open(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<TcpStream>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept_all(listener: &TcpListener, connections: &Arc<Connections>, shared: &Arc<Shared>) {
    let mut number = 0;
    loop {
        let accepted = listener.accept();
        if connections.closing.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok((stream, peer)) => {
                number += 1;
                if start_connection(number, stream, peer, connections, shared).is_err() {
                    shared.statistics.refused.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Out of descriptors, most likely: waiting is all that helps.
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn start_connection(
    number: u64,
    mut stream: TcpStream,
    peer: SocketAddr,
    connections: &Arc<Connections>,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE)?;
    if connections.open().len() >= CONNECTIONS_MAX {
        stream.write_all(b"-ERR max number of clients reached\r\n")?;
        return Err(ErrorKind::ConnectionRefused.into());
    }
    let stream = Arc::new(stream);
    connections.open().insert(number, Arc::clone(&stream));
    shared.statistics.connections.fetch_add(1, Ordering::Relaxed);
    let (for_thread, session) = (Arc::clone(connections), Session::new(Arc::clone(shared), peer));
    let shared = Arc::clone(shared);
    let serve = move || {
        shared.statistics.connected.fetch_add(1, Ordering::Relaxed);
        // An error here is the client's going away: nobody is left to be told.
        let _ = serve(&stream, session);
        shared.statistics.connected.fetch_sub(1, Ordering::Relaxed);
        for_thread.open().remove(&number);
    };
    let spawned = thread::Builder::new().name("redis-client".into()).stack_size(STACK_BYTES).spawn(serve);
    if spawned.is_err() {
        connections.open().remove(&number);
    }
    spawned.map(drop)
}

/// Serves a client until it leaves, misbehaves or is asked to go.
fn serve(stream: &Arc<TcpStream>, mut session: Session) -> io::Result<()> {
    let mut output = Output::new(Arc::clone(stream));
    let (mut parser, mut input, mut chunk) = (Parser::new(), BytesMut::new(), vec![0; READ_BYTES]);
    loop {
        let ready = output.wait_for_input()?;
        if ready.write {
            output.write()?;
        }
        if !ready.read {
            continue;
        }
        let flow = match (&**stream).read(&mut chunk) {
            Ok(0) => Flow::Close,
            Ok(count) => {
                input.extend_from_slice(&chunk[..count]);
                answer(&mut parser, &mut input, &mut session, &mut output)?
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(error) => return Err(error),
        };
        output.write()?;
        if flow == Flow::Close {
            return output.drain_to(0);
        }
    }
}

/// Carries out the commands that are complete.
fn answer(parser: &mut Parser, input: &mut BytesMut, session: &mut Session, output: &mut Output) -> io::Result<Flow> {
    loop {
        match parser.parse(input) {
            Ok(Some(arguments)) => {
                if session.handle(&arguments, output)? == Flow::Close {
                    return Ok(Flow::Close);
                }
            }
            Ok(None) => {
                session.flush(output)?;
                return Ok(Flow::Continue);
            }
            Err(error) => {
                session.flush(output)?;
                output.reply(&Reply::error(error.to_string()))?;
                return Ok(Flow::Close);
            }
        }
    }
}
