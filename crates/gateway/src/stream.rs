//! A connection of a gateway's client: TCP, or a Unix socket, which costs the processor less.

use rustix::net::sockopt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a connection may be idle before the other side is asked whether it still exists.
const KEEP_ALIVE: Duration = Duration::from_secs(300);

/// A connection. Reads and writes go to the socket at once.
#[derive(Debug)]
pub enum Stream {
    /// From this machine or another.
    Tcp(TcpStream),
    /// From this machine.
    Unix(UnixStream),
}

/// The same call of either socket.
macro_rules! either {
    ($stream:expr, $socket:ident => $call:expr) => {
        match $stream {
            Stream::Tcp($socket) => $call,
            Stream::Unix($socket) => $call,
        }
    };
}

impl Stream {
    /// Whether it never leaves this machine's kernel, so that nobody is on its way.
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// Small answers leave at once, and a client that went without a word is found after [`KEEP_ALIVE`] and the
    /// system's probes. A Unix socket does both anyway.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let Self::Tcp(socket) = self else { return Ok(()) };
        socket.set_nodelay(true)?;
        sockopt::set_socket_keepalive(socket, true)?;
        Ok(sockopt::set_tcp_keepidle(socket, KEEP_ALIVE)?)
    }

    /// How long a read may wait; `None`: for ever.
    ///
    /// # Errors
    /// The system's, and a time of zero.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        either!(self, socket => socket.set_read_timeout(limit))
    }

    /// How long a write may wait; `None`: for ever.
    ///
    /// # Errors
    /// The system's, and a time of zero.
    pub fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        either!(self, socket => socket.set_write_timeout(limit))
    }

    /// Whether reads and writes never wait.
    ///
    /// # Errors
    /// The system's.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        either!(self, socket => socket.set_nonblocking(nonblocking))
    }

    /// Ends one direction or both.
    ///
    /// # Errors
    /// The system's: it has ended already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        either!(self, socket => socket.shutdown(how))
    }
}

impl Read for &Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        either!(*self, socket => { let mut socket = socket; socket.read(into) })
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(*self, socket => { let mut socket = socket; socket.write(bytes) })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(self, socket => socket.as_fd())
    }
}
