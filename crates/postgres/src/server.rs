//! The sockets of the PostgreSQL gateway: one thread a connection, everything bounded.
//!
//! A client that does not read its answers holds up its own connection only, and is cut off after [`STALLED_MAX`]; one
//! whose host is gone is found out by keep-alive probes.

use crate::catalog::Catalog;
use crate::database::Database;
use crate::error::{PgError, sqlstate};
use crate::execute::Executor;
use crate::link::Link;
use crate::session::{Flow, Session};
use crate::settings::{DATABASE, Settings};
use crate::wire::{self, Output, Startup, Status};
use bytes::BytesMut;
use rustix::net::sockopt;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Connections at a time. One more is told so, as PostgreSQL does, and closed.
pub const CONNECTIONS_MAX: usize = 256;
/// How long a client may leave its answers unread.
pub const STALLED_MAX: Duration = Duration::from_secs(60);
/// How long a client may take to say who it is.
const STARTUP_MAX: Duration = Duration::from_secs(30);
/// How long a closing gateway waits for the statements that are being carried out.
const CLOSING_MAX: Duration = Duration::from_secs(10);
/// How long a connection may be idle before the other side is asked whether it still exists.
const KEEP_ALIVE: Duration = Duration::from_secs(300);
/// Bytes taken from a socket at a time.
const READ_BYTES: usize = 64 << 10;
/// Bytes of answers that are collected before they are sent.
const WRITE_BYTES: usize = 64 << 10;
/// A connection's thread: SQLite parses catalog queries on it.
const STACK_BYTES: usize = 2 << 20;

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
    open: Mutex<BTreeMap<u32, Arc<TcpStream>>>,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<TcpStream>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all connections share.
struct Shared {
    database: Arc<dyn Database>,
    catalog: Arc<Catalog>,
}

impl Server {
    /// Listens on `address` and serves `database` from threads of its own.
    ///
    /// # Errors
    /// Whatever the system says about the address.
    pub fn start(address: SocketAddr, database: Arc<dyn Database>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let connections = Arc::new(Connections::default());
        let shared = Arc::new(Shared { database, catalog: Arc::new(Catalog::new()) });
        let for_acceptor = Arc::clone(&connections);
        let acceptor = thread::Builder::new()
            .name("pg-accept".into())
            .spawn(move || accept_all(&listener, &for_acceptor, &shared))?;
        Ok(Self { address, connections, acceptor: Some(acceptor) })
    }

    /// Where it listens: the port that was chosen, if 0 was asked for.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections or statements, and waits a while for the answers to those that it took.
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

fn accept_all(listener: &TcpListener, connections: &Arc<Connections>, shared: &Arc<Shared>) {
    let mut number = 0_u32;
    loop {
        let accepted = listener.accept();
        if connections.closing.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            // A connection that cannot be started is closed by going out of scope; its client will notice.
            Ok((stream, _)) => {
                number = number.wrapping_add(1);
                let _ = start_connection(number, stream, connections, shared);
            }
            // Out of descriptors, most likely: waiting is all that helps.
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn start_connection(
    number: u32,
    stream: TcpStream,
    connections: &Arc<Connections>,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(STALLED_MAX))?;
    stream.set_read_timeout(Some(STARTUP_MAX))?;
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE)?;
    if connections.open().len() >= CONNECTIONS_MAX {
        let mut output = Output::default();
        output.error(&PgError::fatal(sqlstate::CONNECTIONS, "sorry, too many clients already"));
        return (&stream).write_all(&output.take());
    }
    let stream = Arc::new(stream);
    connections.open().insert(number, Arc::clone(&stream));
    let (for_thread, shared) = (Arc::clone(connections), Arc::clone(shared));
    let serve = move || {
        let mut connection = Connection { number, stream: &stream, input: BytesMut::new(), output: Output::default() };
        // An error here is the client's going away: nobody is left to be told.
        let _ = connection.serve(&shared);
        for_thread.open().remove(&number);
    };
    let spawned = thread::Builder::new().name("pg-client".into()).stack_size(STACK_BYTES).spawn(serve);
    if spawned.is_err() {
        connections.open().remove(&number);
    }
    spawned.map(drop)
}

struct Connection<'a> {
    number: u32,
    stream: &'a TcpStream,
    input: BytesMut,
    output: Output,
}

impl Connection<'_> {
    fn serve(&mut self, shared: &Shared) -> io::Result<()> {
        let Some(parameters) = self.start()? else { return Ok(()) };
        self.stream.set_read_timeout(None)?;
        let mut session = self.welcome(&parameters, shared)?;
        loop {
            match wire::read(&mut self.input) {
                Ok(Some(message)) => {
                    let flow = session.handle(message, &mut self.output);
                    if flow == Flow::Close {
                        return self.flush();
                    }
                    if self.output.len() >= WRITE_BYTES {
                        self.flush()?;
                    }
                }
                Ok(None) => {
                    self.flush()?;
                    if !self.fill()? {
                        return self.give_up(&PgError::fatal(sqlstate::CLOSING, "the connection is closed"));
                    }
                }
                Err(error) => return self.give_up(&PgError::fatal(sqlstate::PROTOCOL, error.to_string())),
            }
        }
    }

    /// Until the client has said who it is. `None`: it is not going to.
    fn start(&mut self) -> io::Result<Option<Vec<(String, String)>>> {
        /// A client may ask for TLS and for GSSAPI before it gives up encryption.
        const REQUESTS_MAX: usize = 4;
        for _ in 0..REQUESTS_MAX {
            let first = loop {
                match wire::read_startup(&mut self.input) {
                    Ok(Some(first)) => break first,
                    Ok(None) => {
                        if !self.fill()? {
                            return Ok(None);
                        }
                    }
                    Err(error) => {
                        self.give_up(&PgError::fatal(
                            sqlstate::PROTOCOL,
                            format!("not PostgreSQL's protocol: {error}"),
                        ))?;
                        return Ok(None);
                    }
                }
            };
            match first {
                Startup::Encrypt => {
                    self.output.no_encryption();
                    self.flush()?;
                }
                // What it would cancel ends by its own deadline.
                Startup::Cancel => return Ok(None),
                Startup::Start { minor, parameters } => {
                    let options = parameters.iter().map(|(name, _)| name.as_str());
                    let unknown: Vec<&str> = options.filter(|name| name.starts_with("_pq_.")).collect();
                    if minor > 0 || !unknown.is_empty() {
                        self.output.negotiate(&unknown);
                    }
                    return Ok(Some(parameters));
                }
            }
        }
        Ok(None)
    }

    fn welcome(&mut self, parameters: &[(String, String)], shared: &Shared) -> io::Result<Session> {
        let mut settings = Settings::default();
        for (name, value) in
            parameters.iter().filter(|(name, _)| !["user", "database", "options"].contains(&name.as_str()))
        {
            // A client may wish for anything; what it gets it is told below.
            let _ = settings.set(name, value);
        }
        let user = parameters.iter().find(|(name, _)| name == "user").map_or(DATABASE, |(_, value)| value);
        let _ = settings.set("session_authorization", user);
        let link = Link::new(Arc::clone(&shared.database));
        let session = Session::new(Executor::new(link, settings, Arc::clone(&shared.catalog), user.into()));
        self.output.authenticated();
        session.greet(&mut self.output);
        self.output.key(self.number, 0);
        self.output.ready(Status::Idle);
        self.flush()?;
        Ok(session)
    }

    /// Reads what there is. `false`: there will be nothing more.
    fn fill(&mut self) -> io::Result<bool> {
        let before = self.input.len();
        self.input.resize(before + READ_BYTES, 0);
        let read = loop {
            match self.stream.read(&mut self.input[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.input.truncate(before + read.as_ref().map_or(0, |count| *count));
        read.map(|count| count > 0)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        self.stream.write_all(&self.output.take())
    }

    /// Says why, if anybody still listens.
    fn give_up(&mut self, error: &PgError) -> io::Result<()> {
        self.output.error(error);
        self.flush()
    }
}
