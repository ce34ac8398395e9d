//! The other end: asks a replica's admin port. HTTP/1.0, one request a connection, everything bounded.

use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// The longest answer that is an explanation rather than what was asked for.
const LINE_BYTES_MAX: usize = 200;
/// What is said of a replica at whose admin port nobody listens.
pub const NOT_RUNNING: &str = "not running";
/// How long connecting, and any one read, may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long all of it may take. A replica's own patience with a connection ends sooner.
const WHOLE_TIME_MAX: Duration = Duration::from_secs(5);

/// The JSON document at `path`.
///
/// # Errors
/// In a few words, why there is none.
pub fn ask(address: SocketAddr, path: &str) -> Result<Value, String> {
    let body = get(address, path).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => NOT_RUNNING.to_owned(),
        _ => format!("no answer: {error}"),
    })?;
    serde_json::from_slice(&body).map_err(|error| match std::str::from_utf8(&body) {
        Ok(line) if line.len() < LINE_BYTES_MAX && line.ends_with('\n') => line.trim().to_owned(),
        _ => format!("the answer is not JSON: {error}"),
    })
}

/// What is at `path`, whatever the status of the answer.
///
/// # Errors
/// Those of the network; [`io::ErrorKind::UnexpectedEof`] if the answer is none of HTTP.
pub fn get(address: SocketAddr, path: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    let deadline = Instant::now() + WHOLE_TIME_MAX;
    stream.set_write_timeout(Some(TIMEOUT))?;
    // In one piece: who answers the first line and closes would break the rest.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    Bounded { stream, deadline }.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(answer.split_off(end + 4))
}

/// Reads until a deadline, whatever comes how slowly.
struct Bounded {
    stream: TcpStream,
    deadline: Instant,
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left.min(TIMEOUT)))?;
        self.stream.read(into)
    }
}
