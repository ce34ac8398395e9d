//! The connections of the Redis gateway.
//!
//! A thread waits for its socket to become readable, or writable while replies are waiting, so that a client may send
//! all its commands before it reads the first reply. A client that does not read its replies for
//! [`STALLED_MAX`](super::output::STALLED_MAX) is cut off.

use super::output::Output;
use super::parser::Parser;
use super::reply::Reply;
use super::scan::Cursors;
use super::session::{Flow, Session};
use super::shared::{Shared, Statistics};
use crate::acceptor::{Acceptor, Host};
use crate::door::Door;
use crate::endpoint::Endpoint;
use crate::store::Store;
use crate::stream::Stream;
use bytes::BytesMut;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Connections at a time. One more is told so, in the words of Redis, and closed.
pub const CONNECTIONS_MAX: usize = 1_024;
/// Bytes taken from a socket at a time.
const READ_BYTES: usize = 64 << 10;

/// Bytes that are taken from a client that has not said the password.
const STRANGER_BYTES_MAX: usize = 16 << 10;

/// A running gateway. Closes when dropped.
pub struct Server(Acceptor);

impl Server {
    /// Listens on all of these and serves `store` from threads of its own: to whoever the door lets in.
    ///
    /// # Errors
    /// Whatever the system says about one of them, which the error names.
    pub fn start(endpoints: &[Endpoint], store: Arc<dyn Store>, door: Door) -> io::Result<Self> {
        let shared = Shared { store, door, cursors: Cursors::new(), statistics: Statistics::new() };
        Acceptor::start(endpoints, Redis(Arc::new(shared))).map(Self)
    }

    /// Where it listens: the ports that were chosen, if 0 was asked for.
    pub fn endpoints(&self) -> &[Endpoint] {
        self.0.endpoints()
    }

    /// Takes no more connections or commands, and waits a while for the replies to those that it took.
    pub fn close(&mut self) {
        self.0.close();
    }
}

struct Redis(Arc<Shared>);

impl Host for Redis {
    const NAME: &'static str = "redis";
    const CONNECTIONS_MAX: usize = CONNECTIONS_MAX;
    // No call is deep.
    const STACK_BYTES: usize = 256 << 10;

    fn serve(&self, _: u32, stream: &Arc<Stream>, peer: &Endpoint) -> io::Result<()> {
        let statistics = &self.0.statistics;
        stream.set_nonblocking(true)?;
        statistics.connections.fetch_add(1, Ordering::Relaxed);
        statistics.connected.fetch_add(1, Ordering::Relaxed);
        let served = serve(stream, &self.0, peer);
        statistics.connected.fetch_sub(1, Ordering::Relaxed);
        served
    }

    fn refuse(&self, mut stream: &Stream) {
        self.0.statistics.refused.fetch_add(1, Ordering::Relaxed);
        let _ = stream.write_all(b"-ERR max number of clients reached\r\n");
    }
}

/// Serves a client until it leaves, misbehaves or is asked to go.
fn serve(stream: &Arc<Stream>, shared: &Arc<Shared>, peer: &Endpoint) -> io::Result<()> {
    let mut session = Session::new(Arc::clone(shared), peer);
    let mut output = Output::new(Arc::clone(stream));
    if let Some(tls) = shared.door.tls_for(stream) {
        output.encrypt(tls)?;
    }
    let (mut parser, mut input, mut chunk) = (Parser::new(), BytesMut::new(), vec![0; READ_BYTES]);
    let mut unasked = 0;
    loop {
        let ready = output.wait_for_input(session.admission.patience())?;
        if ready.write {
            output.write()?;
        }
        if !ready.read {
            continue;
        }
        let flow = match output.read(&mut chunk) {
            Ok(0) => Flow::Close,
            Ok(count) => {
                input.extend_from_slice(&chunk[..count]);
                let flow = answer(&mut parser, &mut input, &mut session, &mut output)?;
                unasked = if session.admission.is_known() { 0 } else { unasked + count };
                if unasked > STRANGER_BYTES_MAX {
                    output.reply(&Reply::error("Protocol error: too much before the password"))?;
                    Flow::Close
                } else {
                    flow
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(error) => return Err(error),
        };
        output.write()?;
        if flow == Flow::Close {
            return output.close();
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
