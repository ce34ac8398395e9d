//! A client of the PostgreSQL gateway in memory, and a database without replicas behind it.

use bezant_core::cluster::Limits;
use bezant_core::digest::{Digest, Domain};
use bezant_core::service::{Agreed, Asker, Seed, Service};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bezant_postgres::{Answer, CallFailure, Cancel, Database};
use bezant_sql::{Request, Response, Sql};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

/// Version 3.0, user and database `bezant`.
const STARTUP: &[u8] = b"\0\0\0\x25\0\x03\0\0user\0bezant\0database\0bezant\0\0";

/// What was said, and how much came back.
#[derive(Debug)]
pub struct Talk {
    said: io::Cursor<Vec<u8>>,
    /// Bytes of answers.
    pub heard: usize,
}

impl Talk {
    /// A client that introduces itself, says this, and hangs up.
    pub fn new(said: &[u8]) -> Self {
        Self { said: io::Cursor::new([STARTUP, said].concat()), heard: 0 }
    }
}

impl Read for Talk {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.said.read(into)
    }
}

impl Write for Talk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.heard += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Messages: a type, a length in one byte, so much content.
pub fn framed(mut data: &[u8]) -> Vec<u8> {
    let mut messages = Vec::new();
    while let [kind, length, rest @ ..] = data {
        let (content, after) = rest.split_at(rest.len().min(usize::from(*length)));
        messages.push(*kind);
        messages.extend((content.len() as u32 + 4).to_be_bytes());
        messages.extend(content);
        data = after;
    }
    messages
}

/// One SQL service, whose clock stands still.
#[derive(Default)]
pub struct Local(Mutex<Sql>);

impl Database for Local {
    fn call(&self, request: &Request, _: &Arc<Cancel>) -> Result<Answer, CallFailure> {
        let mut sql = self.0.lock().expect("a panic ends the process");
        let bytes = request.to_bytes();
        let queried = if request.seems_read_only() { sql.query(&bytes, &Asker::default()).ok() } else { None };
        let ordered = queried.is_none();
        let agreed = Agreed {
            time: Instant(1_795_326_186_000_000),
            seed: Seed::new(Digest::of(Domain::Trace, &bytes), 0),
            ..Agreed::default()
        };
        let answer = queried.unwrap_or_else(|| sql.execute(&bytes, &agreed));
        let response = Response::from_bytes(answer).expect("the service speaks its own format");
        Ok(Answer { response, sequence: 0, replicas: vec![0], ordered })
    }

    fn orders_reads(&self) -> bool {
        false
    }

    fn request_bytes_max(&self) -> usize {
        Limits::default().operation_bytes_max
    }
}
