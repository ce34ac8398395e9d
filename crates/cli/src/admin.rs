//! Asks a replica's admin port: HTTP/1.0, one request a connection, everything bounded.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// How long connecting, and any one read, may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The JSON document at `path`, or in a few words why there is none.
pub(crate) fn get_json(address: SocketAddr, path: &str) -> Result<Value, String> {
    let body = get(address, path).map_err(|error| match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "not running".to_owned(),
        _ => format!("no answer: {error}"),
    })?;
    serde_json::from_str(&body).map_err(|error| format!("the answer is not JSON: {error}"))
}

/// Whether the process is there and answers.
pub(crate) fn is_live(address: SocketAddr) -> bool {
    get(address, "/livez").is_ok()
}

fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    // In one piece: who answers the first line and closes would break the rest.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((_, body)) => Ok(body.to_owned()),
        None => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}
