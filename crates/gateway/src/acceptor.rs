//! The sockets of a gateway: one thread a connection, everything bounded.

use crate::endpoint::Endpoint;
use crate::patience::be_patient;
use crate::stream::Stream;
use crate::unix::{self, SocketFile};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a closing gateway waits for what is being carried out.
const CLOSING_MAX: Duration = Duration::from_secs(10);
/// How many connections that were closed before they said anything are taken without a pause, and how long that is: a
/// flood of them costs no more than so many a second. The system's queue is short, and whoever is new comes in soon.
const LEFT_MAX: u32 = 64;
const LEFT_PAUSE: Duration = Duration::from_millis(50);
/// How many connections that wait for a closing gateway are closed one by one, about as many as the system queues.
const WAITING_MAX: usize = 128;

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

    /// Serves a client until it leaves, misbehaves, or its stream ends because the gateway closes. `peer` is where it
    /// comes from: its own address, or the Unix socket, on which clients have no address.
    ///
    /// # Errors
    /// The client went away: nobody is left to be told.
    fn serve(&self, number: u32, stream: &Arc<Stream>, peer: &Endpoint) -> io::Result<()>;

    /// Tells a client that there is no room for it, within some seconds, on a thread of its own. Its connection is
    /// closed afterwards.
    fn refuse(&self, stream: &Stream);
}

/// Listening sockets and their connections, which share all bounds. Closes when dropped.
pub struct Acceptor {
    endpoints: Vec<Endpoint>,
    connections: Arc<Connections>,
    files: Vec<SocketFile>,
    threads: Vec<JoinHandle<()>>,
    /// Closed to wake the threads.
    alive: Option<UnixStream>,
}

/// The open connections, so that they can be told to close.
#[derive(Default)]
struct Connections {
    last: AtomicU32,
    open: Mutex<BTreeMap<u32, Arc<Stream>>>,
    refusals: AtomicUsize,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Stream>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Acceptor {
    /// Listens on all of these, and lets the host serve whoever comes, on threads of their own.
    ///
    /// # Errors
    /// Whatever the system says about one of them, which the error names. Then it listens on none.
    pub fn start<H: Host>(endpoints: &[Endpoint], host: H) -> io::Result<Self> {
        let (alive, wake) = UnixStream::pair()?;
        let (wake, host) = (Arc::new(wake), Arc::new(host));
        let (connections, threads) = (Arc::new(Connections::default()), Vec::new());
        // Should one of them fail, the files go first: while somebody listens nobody takes them for dead ones.
        let mut doors = Vec::new();
        let mut acceptor = Self { endpoints: Vec::new(), connections, files: Vec::new(), threads, alive: Some(alive) };
        for endpoint in endpoints {
            let listening = Listening::open(endpoint);
            let (door, file) =
                listening.map_err(|error| io::Error::new(error.kind(), format!("{endpoint}: {error}")))?;
            acceptor.endpoints.push(door.endpoint.clone());
            acceptor.files.extend(file);
            doors.push(door);
        }
        for door in doors {
            let (connections, wake) = (Arc::clone(&acceptor.connections), Arc::clone(&wake));
            let host = Arc::clone(&host);
            let accept = move || door.accept_all(&wake, &connections, &host);
            let thread = thread::Builder::new().name(format!("{}-accept", H::NAME)).spawn(accept);
            acceptor.threads.push(thread.inspect_err(|_| acceptor.files.clear())?);
        }
        Ok(acceptor)
    }

    /// Where it listens: the ports that were chosen, if 0 was asked for.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Takes no more connections or input, and waits a while for the answers to what it took. Files of Unix sockets are
    /// gone afterwards.
    pub fn close(&mut self) {
        // While somebody listens nobody else takes such a file for a dead one.
        self.files.clear();
        if self.alive.take().is_none() {
            return;
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
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

/// A listening socket, which never waits in itself.
struct Listening {
    endpoint: Endpoint,
    listener: Listener,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listening {
    fn open(endpoint: &Endpoint) -> io::Result<(Self, Option<SocketFile>)> {
        match endpoint {
            Endpoint::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                let endpoint = Endpoint::Tcp(listener.local_addr()?);
                Ok((Self { endpoint, listener: Listener::Tcp(listener) }, None))
            }
            Endpoint::Unix(path, access) => {
                let (listener, file) = unix::listen(path, *access)?;
                listener.set_nonblocking(true)?;
                Ok((Self { endpoint: endpoint.clone(), listener: Listener::Unix(listener) }, Some(file)))
            }
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.listener {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener) => listener.as_fd(),
        }
    }

    /// The next connection, and where it comes from.
    fn accept(&self) -> io::Result<(Stream, Endpoint)> {
        let (stream, peer) = match &self.listener {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                (Stream::Tcp(stream), Endpoint::Tcp(peer))
            }
            Listener::Unix(listener) => (Stream::Unix(listener.accept()?.0), self.endpoint.clone()),
        };
        // Some systems hand the listener's mode down.
        stream.set_nonblocking(false)?;
        Ok((stream, peer))
    }

    /// Until the other end of `wake` is closed.
    fn accept_all<H: Host>(&self, wake: &UnixStream, connections: &Arc<Connections>, host: &Arc<H>) {
        let mut left = 0;
        loop {
            let mut ready =
                [PollFd::new(wake, PollFlags::IN), PollFd::from_borrowed_fd(self.descriptor(), PollFlags::IN)];
            let polled = poll(&mut ready, None);
            if !ready[0].revents().is_empty() {
                // Whoever waits in the system's queue finds a connection that ends, and not one that is reset.
                return (0..WAITING_MAX).take_while(|_| self.accept().is_ok()).for_each(drop);
            }
            match polled.map_err(io::Error::from).and_then(|_| self.accept()) {
                Ok((stream, _)) if has_left(&stream) => {
                    left += 1;
                    if left == LEFT_MAX {
                        left = 0;
                        thread::sleep(LEFT_PAUSE);
                    }
                }
                Ok((stream, peer)) => {
                    let stream = Arc::new(stream);
                    if begin(&stream, peer, connections, host).is_err() {
                        refuse(stream, connections, host);
                    }
                }
                // Whoever waited has gone.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                // Out of descriptors, most likely: waiting is all that helps.
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

/// Whether the other side has closed its connection already, and said nothing before.
fn has_left(stream: &Stream) -> bool {
    let peeked = recv(stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    peeked.map_or_else(|error| error != Errno::WOULDBLOCK, |(_, count)| count == 0)
}

/// Tells a client that there is no room, without letting others wait for it.
fn refuse<H: Host>(stream: Arc<Stream>, connections: &Arc<Connections>, host: &Arc<H>) {
    if connections.refusals.fetch_add(1, Ordering::SeqCst) >= REFUSALS_MAX {
        connections.refusals.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let (for_thread, host) = (Arc::clone(connections), Arc::clone(host));
    let refuse = move || {
        host.refuse(&stream);
        for_thread.refusals.fetch_sub(1, Ordering::SeqCst);
    };
    if thread::Builder::new().name(format!("{}-refuse", H::NAME)).spawn(refuse).is_err() {
        connections.refusals.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Starts a connection's thread.
///
/// # Errors
/// There is no room for it, or the system does not want it.
fn begin<H: Host>(
    stream: &Arc<Stream>,
    peer: Endpoint,
    connections: &Arc<Connections>,
    host: &Arc<H>,
) -> io::Result<()> {
    stream.prepare()?;
    let number = connections.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    {
        let mut open = connections.open();
        if open.len() >= H::CONNECTIONS_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        open.insert(number, Arc::clone(stream));
    }
    let (for_thread, host, stream) = (Arc::clone(connections), Arc::clone(host), Arc::clone(stream));
    let serve = move || {
        be_patient();
        // An error is the client's going away.
        let _ = host.serve(number, &stream, &peer);
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
    use crate::endpoint::Access;
    use std::fs;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};
    use std::path::PathBuf;

    #[test]
    fn only_who_left_without_a_word_has_left() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let tcp = || {
            let ours = Stream::Tcp(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            (ours, Stream::Tcp(listener.accept().unwrap().0))
        };
        let unix = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (Stream::Unix(ours), Stream::Unix(theirs))
        };
        for connect in [&tcp as &dyn Fn() -> (Stream, Stream), &unix] {
            let (waits, theirs) = connect();
            assert!(!has_left(&theirs));
            drop(waits);
            let begin = Instant::now();
            while !has_left(&theirs) {
                assert!(begin.elapsed() < Duration::from_secs(5));
            }
            let (spoke, theirs) = connect();
            (&spoke).write_all(b"PING\r\n").unwrap();
            drop(spoke);
            thread::sleep(Duration::from_millis(20));
            assert!(!has_left(&theirs));
        }
    }

    /// Says back what it hears.
    struct Echo;

    impl Host for Echo {
        const NAME: &'static str = "echo";
        const CONNECTIONS_MAX: usize = 2;
        const STACK_BYTES: usize = 256 << 10;

        fn serve(&self, _: u32, stream: &Arc<Stream>, _: &Endpoint) -> io::Result<()> {
            let mut bytes = [0; 16];
            loop {
                match (&**stream).read(&mut bytes)? {
                    0 => return Ok(()),
                    count => (&**stream).write_all(&bytes[..count])?,
                }
            }
        }

        fn refuse(&self, mut stream: &Stream) {
            let _ = stream.write_all(b"full");
        }
    }

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("bezant-echo-{name}-{}", std::process::id()))
    }

    /// Says a word, and returns the echo of it; empty: the connection has ended.
    fn echo(mut stream: impl Read + Write) -> Vec<u8> {
        let _ = stream.write_all(b"word");
        let mut bytes = [0; 4];
        let mut count = 0;
        while count < bytes.len() {
            match stream.read(&mut bytes[count..]) {
                Ok(0) | Err(_) => break,
                Ok(more) => count += more,
            }
        }
        bytes[..count].to_vec()
    }

    #[test]
    fn all_its_endpoints_have_one_bound_and_one_end() {
        let path = path("both");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoints = [Endpoint::Tcp(any), Endpoint::Unix(path.clone(), Access::Owner)];
        let mut acceptor = Acceptor::start(&endpoints, Echo).unwrap();
        let address = acceptor.endpoints()[0].address().unwrap();
        assert!(address.port() != 0 && acceptor.endpoints()[1] == endpoints[1]);
        let (tcp, unix) = (TcpStream::connect(address).unwrap(), UnixStream::connect(&path).unwrap());
        assert_eq!((echo(&tcp), echo(&unix)), (b"word".to_vec(), b"word".to_vec()));
        assert_eq!(echo(UnixStream::connect(&path).unwrap()), b"full");
        assert_eq!(echo(TcpStream::connect(address).unwrap()), b"full");
        let begin = Instant::now();
        acceptor.close();
        assert!(begin.elapsed() < CLOSING_MAX / 2);
        assert_eq!((echo(&tcp), echo(&unix)), (Vec::new(), Vec::new()));
        assert!(!path.exists() && TcpStream::connect(address).is_err());
    }

    #[test]
    fn it_listens_on_all_or_on_none() {
        let (path, endpoint) = (path("none"), |path: &PathBuf| Endpoint::Unix(path.clone(), Access::Owner));
        let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let missing = path.join("socket");
        let endpoints = [Endpoint::Tcp(busy), endpoint(&path), endpoint(&missing)];
        let Err(error) = Acceptor::start(&endpoints, Echo) else { panic!("it listens in no folder") };
        assert!(error.to_string().starts_with(&format!("{}: ", missing.display())), "{error}");
        assert!(!path.exists() && TcpStream::connect(busy).is_err());
    }

    #[test]
    fn it_ends_although_its_file_is_gone() {
        let path = path("gone");
        let mut acceptor = Acceptor::start(&[Endpoint::Unix(path.clone(), Access::Owner)], Echo).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        assert_eq!(echo(&client), b"word");
        fs::remove_file(&path).unwrap();
        acceptor.close();
        assert_eq!(echo(&client), b"");
    }
}
