//! Replies on their way to a client.

use super::reply::{Reply, Version};
use crate::stream::Stream;
use crate::tls::{Channel, Tls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of replies that wait for a client to read; while there are more, none of its commands is carried out.
pub const OUTPUT_BYTES_MAX: usize = 16 << 20;
/// How long a client with waiting replies may read nothing before it is cut off.
pub const STALLED_MAX: Duration = Duration::from_secs(30);
/// Capacity that is kept when all is written.
const KEPT_BYTES: usize = 64 << 10;

/// What a connection is ready for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// A connection's socket.
#[derive(Debug)]
struct Socket(Arc<Stream>);

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(into)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A non-blocking socket, and what it has not taken yet.
#[derive(Debug)]
pub(crate) struct Output {
    channel: Channel<Socket>,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are gone.
    written: usize,
    /// The version of the protocol that the client chose.
    pub(crate) version: Version,
}

impl Output {
    pub(crate) fn new(stream: Arc<Stream>) -> Self {
        Self { channel: Channel::new(Socket(stream)), buffer: Vec::new(), written: 0, version: Version::Two }
    }

    /// From here on everything is encrypted.
    pub(crate) fn encrypt(&mut self, tls: &Tls) -> io::Result<()> {
        self.channel.encrypt(tls)
    }

    /// Reads what there is.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.channel.read(into)
    }

    /// Writes all that waits, and that nothing follows.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.drain_to(0)?;
        self.channel.close();
        Ok(())
    }

    /// Bytes that wait for the socket; what encryption holds of them counts as one.
    fn waiting(&self) -> usize {
        self.buffer.len() - self.written + usize::from(self.channel.is_waiting())
    }

    /// Appends a reply, and waits for the client to read if too many bytes of them are waiting.
    pub(crate) fn reply(&mut self, reply: &Reply) -> io::Result<()> {
        reply.write(self.version, &mut self.buffer);
        self.drain_to(OUTPUT_BYTES_MAX)
    }

    /// Writes what the socket takes.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        while self.written < self.buffer.len() {
            match self.channel.write(&self.buffer[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        match self.channel.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            flushed => flushed?,
        }
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        self.written = 0;
        Ok(())
    }

    /// Waits until no more than `bytes` are waiting.
    pub(crate) fn drain_to(&mut self, bytes: usize) -> io::Result<()> {
        while self.waiting() > bytes {
            self.write()?;
            if self.waiting() > bytes {
                self.wait(PollFlags::OUT, None)?;
            }
        }
        Ok(())
    }

    /// Waits until there is something to read, or something that waits can be written; no longer than `patience`, if
    /// there is a limit to it.
    pub(crate) fn wait_for_input(&self, patience: Option<Duration>) -> io::Result<Ready> {
        let interest = if self.waiting() == 0 { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        self.wait(interest, patience)
    }

    fn wait(&self, interest: PollFlags, patience: Option<Duration>) -> io::Result<Ready> {
        // An idle client may stay as long as it likes, one that has replies to read may not.
        let stalled_max = interest.contains(PollFlags::OUT).then_some(STALLED_MAX);
        let limit = stalled_max.into_iter().chain(patience).min();
        let limit =
            limit.map(|limit| Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() });
        let mut descriptors = [PollFd::new(&*self.channel.stream().0, interest)];
        match poll(&mut descriptors, limit.as_ref()) {
            Ok(0) => return Err(ErrorKind::TimedOut.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = descriptors[0].revents();
        if ready.contains(PollFlags::ERR) {
            return Err(ErrorKind::ConnectionReset.into());
        }
        Ok(Ready { read: ready.intersects(PollFlags::IN | PollFlags::HUP), write: ready.contains(PollFlags::OUT) })
    }
}
