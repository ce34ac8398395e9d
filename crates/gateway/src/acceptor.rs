//! The sockets of a gateway: one thread a connection, everything bounded.

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a closing gateway waits for what is being carried out.
const CLOSING_MAX: Duration = Duration::from_secs(10);
/// How many connections that were closed before they said anything are taken without a pause, and how long that is: a
/// flood of them costs no more than so many a second. The system's queue is short, and whoever is new comes in soon.
const LEFT_MAX: u32 = 64;
const LEFT_PAUSE: Duration = Duration::from_millis(50);
/// How long a connection may be idle before the other side is asked whether it still exists.
const KEEP_ALIVE: Duration = Duration::from_secs(300);

/// How many clients are told at a time that there is no room for them; one more is not told.
const REFUSALS_MAX: usize = 16;

/// What a gateway does with connections.
pub trait Host: Send + Sync + 'static {
    /// Begins the names of its threads.
    const NAME: &'static str;
    /// Connections at a time.
    const CONNECTIONS_MAX: usize;
    /// Bytes of a connection's stack.
    const STACK_BYTES: usize;

    /// Serves a client until it leaves, misbehaves, or its stream ends because the gateway closes.
    ///
    /// # Errors
    /// The client went away: nobody is left to be told.
    fn serve(&self, number: u32, stream: &Arc<TcpStream>, peer: SocketAddr) -> io::Result<()>;

    /// Tells a client that there is no room for it, within some seconds, on a thread of its own. Its connection is
    /// closed afterwards.
    fn refuse(&self, stream: &TcpStream);
}

/// A listening socket and its connections. Closes when dropped.
pub struct Acceptor {
    address: SocketAddr,
    connections: Arc<Connections>,
    thread: Option<JoinHandle<()>>,
}

/// The open connections, so that they can be told to close.
#[derive(Default)]
struct Connections {
    closing: AtomicBool,
    open: Mutex<BTreeMap<u32, Arc<TcpStream>>>,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<TcpStream>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Acceptor {
    /// Listens on `address`, and lets the host serve whoever comes, on threads of their own.
    ///
    /// # Errors
    /// Whatever the system says about the address.
    pub fn start<H: Host>(address: SocketAddr, host: H) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let connections = Arc::new(Connections::default());
        let (for_thread, host) = (Arc::clone(&connections), Arc::new(host));
        let accept = move || accept_all(&listener, &for_thread, &host);
        let thread = thread::Builder::new().name(format!("{}-accept", H::NAME)).spawn(accept)?;
        Ok(Self { address, connections, thread: Some(thread) })
    }

    /// Where it listens: the port that was chosen, if 0 was asked for.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections or input, and waits a while for the answers to what it took.
    pub fn close(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.connections.closing.store(true, Ordering::SeqCst);
        // Wakes the acceptor; if this fails it was not waiting.
        let _ = TcpStream::connect_timeout(&reachable(self.address), Duration::from_secs(1));
        let _ = thread.join();
        let deadline = Instant::now() + CLOSING_MAX;
        for stream in self.connections.open().values() {
            let _ = stream.shutdown(Shutdown::Read);
        }
        while !self.connections.open().is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.close();
    }
}

/// An address that listens on all interfaces is reached by the loopback one.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

fn accept_all<H: Host>(listener: &TcpListener, connections: &Arc<Connections>, host: &Arc<H>) {
    let (mut number, mut left) = (0_u32, 0);
    let refusals = Arc::default();
    loop {
        let accepted = listener.accept();
        if connections.closing.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok((stream, _)) if has_left(&stream) => {
                left += 1;
                if left == LEFT_MAX {
                    left = 0;
                    thread::sleep(LEFT_PAUSE);
                }
            }
            Ok((stream, peer)) => {
                number = number.wrapping_add(1);
                let stream = Arc::new(stream);
                if begin(number, &stream, peer, connections, host).is_err() {
                    refuse(stream, &refusals, host);
                }
            }
            // Out of descriptors, most likely: waiting is all that helps.
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Whether the other side has closed its connection already, and said nothing before.
fn has_left(stream: &TcpStream) -> bool {
    let peeked = recv(stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    peeked.map_or_else(|error| error != Errno::WOULDBLOCK, |(_, count)| count == 0)
}

/// Tells a client that there is no room, without letting others wait for it.
fn refuse<H: Host>(stream: Arc<TcpStream>, refusals: &Arc<AtomicUsize>, host: &Arc<H>) {
    if refusals.fetch_add(1, Ordering::SeqCst) >= REFUSALS_MAX {
        refusals.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let (for_thread, host) = (Arc::clone(refusals), Arc::clone(host));
    let refuse = move || {
        host.refuse(&stream);
        for_thread.fetch_sub(1, Ordering::SeqCst);
    };
    if thread::Builder::new().name(format!("{}-refuse", H::NAME)).spawn(refuse).is_err() {
        refusals.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Starts a connection's thread.
///
/// # Errors
/// There is no room for it, or the system does not want it.
fn begin<H: Host>(
    number: u32,
    stream: &Arc<TcpStream>,
    peer: SocketAddr,
    connections: &Arc<Connections>,
    host: &Arc<H>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE)?;
    if connections.open().len() >= H::CONNECTIONS_MAX {
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    connections.open().insert(number, Arc::clone(stream));
    let (for_thread, host, stream) = (Arc::clone(connections), Arc::clone(host), Arc::clone(stream));
    let serve = move || {
        // An error is the client's going away.
        let _ = host.serve(number, &stream, peer);
        for_thread.open().remove(&number);
    };
    let spawned = thread::Builder::new().name(format!("{}-client", H::NAME)).stack_size(H::STACK_BYTES).spawn(serve);
    if spawned.is_err() {
        connections.open().remove(&number);
    }
    spawned.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_who_left_without_a_word_has_left() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let connect = || {
            let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (ours, listener.accept().unwrap().0)
        };
        let (waits, theirs) = connect();
        assert!(!has_left(&theirs));
        drop(waits);
        let begin = Instant::now();
        while !has_left(&theirs) {
            assert!(begin.elapsed() < Duration::from_secs(5));
        }
        let (mut spoke, theirs) = connect();
        spoke.write_all(b"PING\r\n").unwrap();
        drop(spoke);
        thread::sleep(Duration::from_millis(20));
        assert!(!has_left(&theirs));
    }
}
