//! The connections of the PostgreSQL gateway.
//!
//! A client that does not read its answers holds up its own connection only, and is cut off after [`STALLED_MAX`].

use crate::cancel::{Cancel, Cancels};
use crate::catalog::Catalog;
use crate::database::Database;
use crate::error::{PgError, sqlstate};
use crate::execute::Executor;
use crate::link::Link;
use crate::scram::{Exchange, MECHANISM, NONCE_BYTES, ScramError};
use crate::session::{Flow, Session};
use crate::settings::{DATABASE, Settings, options};
use crate::wire::{self, Output, Startup, Status, WireError};
use bezant_gateway::acceptor::{Acceptor, Host};
use bezant_gateway::stream::Stream;
use bezant_gateway::tls::{Channel, Tls};
use bezant_gateway::{Door, Endpoint, Password};
use bytes::{Bytes, BytesMut};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections at a time. One more is told so, as PostgreSQL does, and closed.
pub const CONNECTIONS_MAX: usize = 256;
/// How long a client may leave its answers unread.
pub const STALLED_MAX: Duration = Duration::from_secs(60);
/// How long a client may take to say who it is, and to show that it knows the password.
const STARTUP_MAX: Duration = Duration::from_secs(30);
/// How long a client for which there is no room may take to say who it is.
const REFUSAL_MAX: Duration = Duration::from_secs(5);
/// Bytes taken from a socket at a time.
const READ_BYTES: usize = 64 << 10;
/// Bytes of answers that are collected before they are sent.
const WRITE_BYTES: usize = 64 << 10;

/// A running gateway. Closes when dropped.
pub struct Server(Acceptor);

impl Server {
    /// Listens on all of these and serves `database` from threads of its own: to whoever the door lets in.
    ///
    /// # Errors
    /// Whatever the system says about one of them, which the error names.
    pub fn start(endpoints: &[Endpoint], database: Arc<dyn Database>, door: Door) -> io::Result<Self> {
        Acceptor::start(endpoints, Shared::new(database, door)).map(Self)
    }

    /// Where it listens: the ports that were chosen, if 0 was asked for.
    pub fn endpoints(&self) -> &[Endpoint] {
        self.0.endpoints()
    }

    /// Takes no more connections or statements, and waits a while for the answers to those that it took.
    pub fn close(&mut self) {
        self.0.close();
    }
}

/// Serves one connection over any stream, until it ends.
///
/// # Errors
/// Those of the stream.
pub fn serve(stream: impl Read + Write, database: Arc<dyn Database>) -> io::Result<()> {
    Connection::new(0, stream, None).serve(&Shared::new(database, Door::default()), |_| Ok(()))
}

/// What all connections share.
struct Shared {
    database: Arc<dyn Database>,
    catalog: Arc<Catalog>,
    door: Door,
    cancels: Cancels,
}

impl Shared {
    fn new(database: Arc<dyn Database>, door: Door) -> Self {
        Self { database, catalog: Arc::new(Catalog::new()), door, cancels: Cancels::default() }
    }
}

/// The settings that a client begins with. It may wish for anything, and is told what it gets; but what it says about
/// time would mean something else in another zone.
fn wished(parameters: &[(String, String)], user: &str) -> Result<Settings, PgError> {
    let mut settings = Settings::default();
    let mut wish = |name: &str, value: &str| match settings.set(name, value) {
        Err(error) if name.eq_ignore_ascii_case("timezone") => Err(error),
        _ => Ok(()),
    };
    for (name, value) in parameters {
        match name.as_str() {
            "user" | "database" => {}
            "options" => options(value).try_for_each(|(name, value)| wish(name, value))?,
            name => wish(name, value)?,
        }
    }
    wish("session_authorization", user)?;
    Ok(settings)
}

/// Bytes of a connection's stack: statements are parsed and translated on it, as deep as `translate` lets them be. What
/// nobody needs of it is address space and no memory.
pub(crate) const STACK_BYTES: usize = 64 << 20;

impl Host for Shared {
    const NAME: &'static str = "pg";
    const CONNECTIONS_MAX: usize = CONNECTIONS_MAX;
    const STACK_BYTES: usize = STACK_BYTES;

    fn serve(&self, number: u32, stream: &Arc<Stream>, _: &Endpoint) -> io::Result<()> {
        stream.set_write_timeout(Some(STALLED_MAX))?;
        let tls = self.door.tls_for(stream);
        let stream = Punctual { stream, until: Cell::new(Some(Instant::now() + STARTUP_MAX)) };
        Connection::new(number, stream, tls).serve(self, Punctual::begun)
    }

    fn refuse(&self, stream: &Stream) {
        let tls = self.door.tls_for(stream);
        let stream = Punctual { stream, until: Cell::new(Some(Instant::now() + REFUSAL_MAX)) };
        // Nobody is left to be told.
        let _ = stream.stream.set_write_timeout(Some(REFUSAL_MAX));
        let _ = Connection::new(0, stream, tls).refuse(self);
    }
}

/// A stream that ends at a moment, however slowly it comes, unless it was told before that the client has begun.
struct Punctual<'a> {
    stream: &'a Stream,
    until: Cell<Option<Instant>>,
}

impl Punctual<'_> {
    fn begun(&self) -> io::Result<()> {
        self.until.set(None);
        self.stream.set_read_timeout(None)
    }
}

impl Read for Punctual<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.until.get() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
        }
        self.stream.read(into)
    }
}

impl Write for Punctual<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Connection<'a, T> {
    number: u32,
    stream: Channel<T>,
    /// What it must be encrypted with.
    tls: Option<&'a Tls>,
    input: BytesMut,
    /// Where a read puts what there is.
    chunk: Vec<u8>,
    output: Output,
}

impl<'a, T: Read + Write> Connection<'a, T> {
    fn new(number: u32, stream: T, tls: Option<&'a Tls>) -> Self {
        let stream = Channel::new(stream);
        Self { number, stream, tls, input: BytesMut::new(), chunk: vec![0; READ_BYTES], output: Output::default() }
    }

    /// `begun` is called once the client has said who it is and shown that it knows the password.
    fn serve(&mut self, shared: &Shared, begun: impl FnOnce(&T) -> io::Result<()>) -> io::Result<()> {
        let served = self.converse(shared, begun);
        self.stream.close();
        served
    }

    fn converse(&mut self, shared: &Shared, begun: impl FnOnce(&T) -> io::Result<()>) -> io::Result<()> {
        let Some(parameters) = self.start(shared)? else { return Ok(()) };
        let user = parameters.iter().find(|(name, _)| name == "user").map_or(DATABASE, |(_, value)| value);
        if let Some(password) = &shared.door.password
            && !self.authenticate(password, user)?
        {
            return Ok(());
        }
        begun(self.stream.stream())?;
        let settings = match wished(&parameters, user) {
            Ok(settings) => settings,
            Err(error) => return self.give_up(&PgError { fatal: true, ..error }),
        };
        let mut drawn = [0; 4];
        getrandom::fill(&mut drawn).map_err(|error| io::Error::other(error.to_string()))?;
        let secret = u32::from_be_bytes(drawn);
        let entered = shared.cancels.enter(self.number, secret);
        let mut session = self.welcome(settings, user, shared, secret, &entered.cancel)?;
        // Messages that have come, at most as many as there are in one read, and what is wrong behind them.
        let mut waiting = VecDeque::new();
        loop {
            let rest = loop {
                match wire::read(&mut self.input) {
                    Ok(Some(message)) => waiting.push_back(message),
                    rest => break rest,
                }
            };
            entered.cancel.set_busy(true);
            while let Some(message) = waiting.pop_front() {
                let flow = session.handle(message, &waiting, &mut self.output);
                if flow == Flow::Close {
                    return self.flush();
                }
                if self.output.len() >= WRITE_BYTES {
                    self.flush()?;
                }
            }
            if let Err(error) = rest {
                return self.give_up(&PgError::fatal(sqlstate::PROTOCOL, error.to_string()));
            }
            entered.cancel.set_busy(false);
            self.flush()?;
            if !self.fill()? {
                return self.give_up(&PgError::fatal(sqlstate::CLOSING, "the connection is closed"));
            }
        }
    }

    /// As PostgreSQL does it: a client understands an error only where it waits for one, which is behind its first
    /// message. Whoever comes to cancel needs no room.
    fn refuse(&mut self, shared: &Shared) -> io::Result<()> {
        if self.start(shared)?.is_some() {
            self.give_up(&PgError::fatal(sqlstate::CONNECTIONS, "sorry, too many clients already"))?;
        }
        self.stream.close();
        Ok(())
    }

    /// Until the client has said who it is. `None`: it is not going to.
    fn start(&mut self, shared: &Shared) -> io::Result<Option<Vec<(String, String)>>> {
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
                Startup::Tls
                    if !self.stream.is_encrypted()
                        && let Some(tls) = self.tls =>
                {
                    // What came already was not encrypted, and anybody on the way may have written it.
                    if !self.input.is_empty() {
                        return Ok(None);
                    }
                    self.output.encryption(true);
                    self.flush()?;
                    self.stream.encrypt(tls)?;
                }
                Startup::Tls | Startup::Gss => {
                    self.output.encryption(false);
                    self.flush()?;
                }
                Startup::Cancel { process, secret } => {
                    shared.cancels.wish(process, secret);
                    return Ok(None);
                }
                Startup::Start { .. } if self.tls.is_some() && !self.stream.is_encrypted() => {
                    let error = PgError::fatal(sqlstate::NOT_LET_IN, "this gateway wants TLS");
                    self.give_up(&error.hint("connect with sslmode=require, or better verify-full"))?;
                    return Ok(None);
                }
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

    /// Whether the client knows the password. If not it is told so.
    fn authenticate(&mut self, password: &Arc<Password>, user: &str) -> io::Result<bool> {
        self.output.sasl(MECHANISM);
        let Some(answer) = self.hear()? else { return Ok(false) };
        let first = match answer.and_then(wire::sasl_choice) {
            Ok((mechanism, first)) if mechanism == MECHANISM => first,
            Ok(_) => return self.turn_away(sqlstate::PROTOCOL, "no such SASL mechanism was offered"),
            Err(error) => return self.turn_away(sqlstate::PROTOCOL, error),
        };
        let mut random = [0; NONCE_BYTES];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let exchange = match Exchange::begin(password, &first, &random) {
            Ok(exchange) => exchange,
            Err(error) => return self.turn_away(sqlstate::PROTOCOL, error),
        };
        self.output.sasl_continue(&exchange.challenge());
        let Some(answer) = self.hear()? else { return Ok(false) };
        let last = match answer {
            Ok(last) => last,
            Err(error) => return self.turn_away(sqlstate::PROTOCOL, error),
        };
        match exchange.finish(&last) {
            Ok(signature) => self.output.sasl_final(&signature),
            Err(ScramError::WrongProof) => {
                let why = format!("password authentication failed for user \"{user}\"");
                return self.turn_away(sqlstate::WRONG_PASSWORD, why);
            }
            Err(error) => return self.turn_away(sqlstate::PROTOCOL, error),
        }
        Ok(true)
    }

    /// Sends the question, and takes what the client says to it. `None`: it has left.
    fn hear(&mut self) -> io::Result<Option<Result<Bytes, WireError>>> {
        self.flush()?;
        loop {
            if let Some(answer) = wire::read_sasl(&mut self.input).transpose() {
                return Ok(Some(answer));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    fn turn_away(&mut self, sqlstate: &'static str, why: impl ToString) -> io::Result<bool> {
        self.give_up(&PgError::fatal(sqlstate, why.to_string())).map(|()| false)
    }

    fn welcome(
        &mut self,
        settings: Settings,
        user: &str,
        shared: &Shared,
        secret: u32,
        cancel: &Arc<Cancel>,
    ) -> io::Result<Session> {
        let mut drawn = [0; 32];
        getrandom::fill(&mut drawn).map_err(|error| io::Error::other(error.to_string()))?;
        let link = Link::new(Arc::clone(&shared.database), Arc::clone(cancel), drawn);
        let session = Session::new(Executor::new(link, settings, Arc::clone(&shared.catalog), user.into()));
        self.output.authenticated();
        session.greet(&mut self.output);
        self.output.key(self.number, secret);
        self.output.ready(Status::Idle);
        self.flush()?;
        Ok(session)
    }

    /// Reads what there is. `false`: there will be nothing more.
    fn fill(&mut self) -> io::Result<bool> {
        loop {
            match self.stream.read(&mut self.chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let count = read?;
                    self.input.extend_from_slice(&self.chunk[..count]);
                    return Ok(count > 0);
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        self.stream.write_all(&self.output.take())?;
        self.stream.flush()
    }

    /// Says why, if anybody still listens.
    fn give_up(&mut self, error: &PgError) -> io::Result<()> {
        self.output.error(error);
        self.flush()
    }
}
