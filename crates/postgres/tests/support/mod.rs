//! A gateway in front of one SQL service without replicas, and a client of it.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it, as a module of its own")]

use bezant_core::cluster::Limits;
use bezant_core::digest::{Digest, Domain};
use bezant_core::service::{Agreed, Asker, PageNumber, Seed, Service};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bezant_gateway::tls::Tls;
use bezant_gateway::{Door, Endpoint, Password, base64};
use bezant_postgres::{Answer, CallFailure, Cancel, Database, Server};
use bezant_sql::{Rehearsal, Request, Response, Rows, Sql, Statement};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

/// 2026-11-22 05:43:06 UTC, in microseconds.
const TIME: u64 = 1_795_326_186_000_000;

/// One replica of [`Cluster`].
#[derive(Default)]
struct Replica {
    sql: Sql,
    pages: BTreeMap<PageNumber, Bytes>,
    /// What was ordered, and is not executed yet.
    backlog: VecDeque<(Vec<u8>, Agreed)>,
}

impl Replica {
    fn catch_up(&mut self) -> Option<Bytes> {
        let mut last = None;
        while let Some((operation, agreed)) = self.backlog.pop_front() {
            last = Some(self.sql.execute(&operation, &agreed));
        }
        last
    }

    /// Starts again from its pages, without what it had in memory.
    fn restart(&mut self) {
        let pages = &mut self.pages;
        self.sql.save(&mut |number, page| match page {
            Some(page) => _ = pages.insert(number, page),
            None => _ = pages.remove(&number),
        });
        self.sql = Sql::new();
        self.sql.save(&mut |_, _| ());
        self.sql.load(&mut pages.iter().map(|(number, page)| (*number, Some(page.clone())))).unwrap();
    }
}

/// Four replicas, of which one is late now and then, one starts again now and then, and the last one lies to whoever
/// asks without having the request ordered: always, or in every other transaction only when few of them go on with what
/// it has vouched for. Believed is what three of them say, or two of those who hold a transaction.
struct Cluster(Mutex<(Vec<Replica>, u64, Vouchers)>);

/// By transaction: who has vouched for all of it so far.
type Vouchers = BTreeMap<Digest, Vec<u8>>;

/// What the last replica says when it lies.
fn lie(sequence: u64) -> Option<Bytes> {
    Some(Response::Done(vec![Rows { changes: sequence, ..Rows::default() }]).to_bytes().into())
}

/// Of how many requests a replica starts again after one.
const RESTARTS: u64 = 11;

impl Database for Cluster {
    fn call(&self, request: &Request, _: &Arc<Cancel>) -> Result<Answer, CallFailure> {
        let (replicas, number, vouchers) = &mut *self.0.lock().unwrap();
        *number += 1;
        let bytes = request.to_bytes();
        let sequence = *number;
        if number.is_multiple_of(RESTARTS) {
            replicas[(*number / RESTARTS % 3) as usize].restart();
        }
        if request.seems_read_only() {
            let mut answers: Vec<_> =
                replicas.iter().map(|replica| replica.sql.query(&bytes, &Asker::default()).ok()).collect();
            if !number.is_multiple_of(2) {
                answers[3] = lie(sequence);
            }
            for answer in &answers {
                let same: Vec<u8> = (0..4).filter(|id| answers[usize::from(*id)] == *answer).collect();
                if let (3.., Some(answer)) = (same.len(), answer) {
                    let response = Response::from_bytes(answer.clone()).unwrap();
                    if let Request::Rehearse(Rehearsal { transaction, .. }) = request {
                        vouchers.insert(*transaction, same.clone());
                    }
                    return Ok(Answer { response, sequence, replicas: same, ordered: false });
                }
            }
        }
        let seed = Seed::new(Digest::of(Domain::Trace, &sequence.to_le_bytes()), 0);
        let agreed = Agreed { time: Instant(TIME + sequence * 1_000_000), seed, ..Agreed::default() };
        let late = (sequence / 3 % 8) as usize;
        let mut answer = None;
        for (id, replica) in replicas.iter_mut().enumerate() {
            replica.backlog.push_back((bytes.clone(), agreed));
            if id != late {
                answer = replica.catch_up();
            }
        }
        let response = Response::from_bytes(answer.unwrap()).unwrap();
        Ok(Answer { response, sequence, replicas: vec![0, 1, 2], ordered: true })
    }

    fn go_on(&self, request: &Request, holders: &[u8], _: &Arc<Cancel>) -> Result<Answer, CallFailure> {
        let (replicas, number, vouchers) = &mut *self.0.lock().unwrap();
        *number += 1;
        let Request::Rehearse(Rehearsal { transaction, lasts, .. }) = request else { panic!("{request:?} goes on") };
        assert_eq!(vouchers.get(transaction).map(Vec::as_slice), Some(holders), "nobody else may go on");
        assert!(request.goes_on() && holders.len() >= 2);
        let first = if holders.len() > 2 { *number as usize % holders.len() } else { 0 };
        let mut few: Vec<u8> = holders.iter().cycle().skip(first).take(2).copied().collect();
        few.sort_unstable();
        let bytes = request.to_bytes();
        let ask = |id: &u8| match *id {
            3 if !number.is_multiple_of(4) => lie(*number),
            id => replicas[usize::from(id)].sql.query(&bytes, &Asker::default()).ok(),
        };
        let answers: Vec<_> = few.iter().map(ask).collect();
        let response = match &answers[..] {
            [Some(one), Some(other)] if one == other => Response::from_bytes(one.clone()).unwrap(),
            _ => Response::NotHeld,
        };
        if *lasts && matches!(response, Response::Done(_)) {
            vouchers.insert(*transaction, few.clone());
        }
        Ok(Answer { response, sequence: 0, replicas: few, ordered: false })
    }

    fn orders_reads(&self) -> bool {
        false
    }

    fn request_bytes_max(&self) -> usize {
        Limits::default().operation_bytes_max
    }
}

/// Counts requests and their bytes.
pub struct Counted {
    local: Local,
    pub counts: Arc<Mutex<(usize, usize)>>,
}

impl Database for Counted {
    fn call(&self, request: &Request, cancel: &Arc<Cancel>) -> Result<Answer, CallFailure> {
        let mut counts = self.counts.lock().unwrap();
        *counts = (counts.0 + 1, counts.1 + request.length());
        self.local.call(request, cancel)
    }

    fn orders_reads(&self) -> bool {
        self.local.orders_reads
    }

    fn request_bytes_max(&self) -> usize {
        self.local.request_bytes_max()
    }
}

/// A database without replicas; every ordered request is a second later than the one before.
#[derive(Default)]
struct Local {
    sql: Mutex<(Sql, u64)>,
    /// Reads, too, as protocols do whose parts may abort.
    orders_reads: bool,
    /// Another client's statement after every request.
    noise: Option<&'static str>,
}

impl Database for Local {
    fn call(&self, request: &Request, _: &Arc<Cancel>) -> Result<Answer, CallFailure> {
        let (sql, sequence) = &mut *self.sql.lock().unwrap();
        let bytes = request.to_bytes();
        let answer = |bytes, ordered, sequence| Answer {
            response: Response::from_bytes(bytes).unwrap(),
            sequence,
            replicas: vec![0],
            ordered,
        };
        if bytes.len() > Limits::default().operation_bytes_max {
            return Err(CallFailure::TooLarge("the operation is too large for this cluster".into()));
        }
        if request.seems_read_only()
            && !self.orders_reads
            && let Ok(bytes) = sql.query(&bytes, &Asker::default())
        {
            return Ok(answer(bytes, false, *sequence));
        }
        *sequence += 1;
        let seed = Seed::new(Digest::of(Domain::Trace, &sequence.to_le_bytes()), 0);
        let agreed = Agreed { time: Instant(TIME + *sequence * 1_000_000), seed, ..Agreed::default() };
        let answered = answer(sql.execute(&bytes, &agreed), true, *sequence);
        if let Some(noise) = self.noise {
            sql.execute(&Request::one(Statement::new(noise)).to_bytes(), &agreed);
        }
        Ok(answered)
    }

    fn orders_reads(&self) -> bool {
        self.orders_reads
    }

    fn request_bytes_max(&self) -> usize {
        Limits::default().operation_bytes_max
    }
}

/// A database that is waited for until nobody wants to wait any more.
struct Silent;

impl Database for Silent {
    fn call(&self, _: &Request, cancel: &Arc<Cancel>) -> Result<Answer, CallFailure> {
        cancel.wait(|_| Poll::<()>::Pending);
        Err(CallFailure::Cancelled)
    }

    fn orders_reads(&self) -> bool {
        false
    }

    fn request_bytes_max(&self) -> usize {
        Limits::default().operation_bytes_max
    }
}

/// One whose statements never end by themselves.
pub fn silent_server() -> Server {
    start(Silent)
}

pub fn any_port() -> Endpoint {
    Endpoint::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
}

/// The first place where it listens.
pub fn address(server: &Server) -> SocketAddr {
    server.endpoints()[0].address().unwrap()
}

fn start(database: impl Database) -> Server {
    Server::start(&[any_port()], Arc::new(database), Door::default()).unwrap()
}

/// One whose clients must know "open sesame".
pub fn closed_server() -> Server {
    let password = Password::new(b"open sesame", [3; 16]).unwrap();
    let door = Door { password: Some(Arc::new(password)), tls: None };
    Server::start(&[any_port()], Arc::new(Local::default()), door).unwrap()
}

/// The same, and they must encrypt, unless they come to a Unix socket.
pub fn encrypted_server(endpoint: Endpoint) -> Server {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = |label: &str, bytes: &[u8]| {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", base64::encode(bytes))
    };
    let certificate = pem("CERTIFICATE", certified.cert.der());
    let key = pem("PRIVATE KEY", &certified.signing_key.serialize_der());
    let tls = Some(Tls::new(certificate.as_bytes(), key.as_bytes()).unwrap());
    let password = Some(Arc::new(Password::new(b"open sesame", [3; 16]).unwrap()));
    Server::start(&[endpoint], Arc::new(Local::default()), Door { password, tls }).unwrap()
}

pub fn server() -> Server {
    start(Local::default())
}

/// One in front of replicas that forget, are late and lie.
pub fn server_of_replicas() -> Server {
    let replicas = (0..4).map(|_| Replica::default()).collect();
    start(Cluster(Mutex::new((replicas, 0, Vouchers::new()))))
}

/// One, and how many requests it has sent, of how many bytes together.
pub fn server_that_counts() -> (Server, Arc<Mutex<(usize, usize)>>) {
    let counts = Arc::default();
    (start(Counted { local: Local::default(), counts: Arc::clone(&counts) }), counts)
}

/// One that stands for a cluster under `aliph` or `ring`, whose other clients are busy.
pub fn server_that_orders_reads(noise: Option<&'static str>) -> Server {
    start(Local { orders_reads: true, noise, ..Local::default() })
}

pub fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(address(server)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Its stream, and what a request to cancel names it by.
pub struct Client(pub TcpStream, pub Vec<u8>);

impl Client {
    pub fn new(server: &Server) -> Self {
        Self::with_options(server, "")
    }

    /// With what `PGOPTIONS` says.
    pub fn with_options(server: &Server, options: &str) -> Self {
        let mut stream = connect(server);
        let body = format!("\0\x03\0\0user\0me\0database\0bezant\0options\0{options}\0\0");
        stream.write_all(&[&(body.len() as u32 + 4).to_be_bytes(), body.as_bytes()].concat()).unwrap();
        let mut client = Self(stream, Vec::new());
        assert!(client.hear().ends_with("Z:I"));
        client
    }

    pub fn send(&mut self, kind: u8, body: &[u8]) {
        let message = [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat();
        self.0.write_all(&message).unwrap();
    }

    /// The next message: its kind, and the rest.
    fn message(&mut self) -> (char, Vec<u8>) {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).unwrap();
        (char::from(head[0]), body)
    }

    /// Messages up to ReadyForQuery, in short: kinds, and what matters of rows, tags, errors and the status.
    pub fn hear(&mut self) -> String {
        let mut all = Vec::new();
        loop {
            let (kind, body) = self.message();
            let text =
                |from: &[u8]| String::from_utf8_lossy(from.split(|byte| *byte == 0).next().unwrap()).into_owned();
            match kind {
                'R' | 'S' => {}
                'K' => self.1 = body,
                'C' => all.push(format!("C:{}", text(&body))),
                'E' => {
                    let at = body.windows(2).position(|pair| pair == b"\0C").unwrap();
                    all.push(format!("E:{}", text(&body[at + 2..])));
                }
                'D' => all.push(format!("D:{}", row(&body))),
                'd' => all.push(format!("d:{}", text(&body))),
                'Z' => {
                    all.push(format!("Z:{}", char::from(body[0])));
                    return all.join(" ");
                }
                kind => all.push(kind.to_string()),
            }
        }
    }

    pub fn query(&mut self, sql: &str) -> String {
        self.send(b'Q', &[sql.as_bytes(), b"\0"].concat());
        self.hear()
    }

    /// Bind, Describe and Execute of the unnamed statement, with values as text.
    pub fn bind(&mut self, values: &[&str], rows: u32) {
        let mut bind = vec![0, 0, 0, 0];
        bind.extend((values.len() as u16).to_be_bytes());
        for value in values {
            bind.extend((value.len() as u32).to_be_bytes());
            bind.extend(value.bytes());
        }
        bind.extend([0, 0]);
        self.send(b'B', &bind);
        self.send(b'D', b"P\0");
        self.send(b'E', &[&b"\0"[..], &rows.to_be_bytes()].concat());
    }

    /// Parse, Bind, Describe, Execute and Sync, with values as text.
    pub fn ask(&mut self, sql: &str, values: &[&str], rows: u32) -> String {
        self.send(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"].concat());
        self.bind(values, rows);
        self.send(b'S', b"");
        self.hear()
    }
}

fn row(body: &[u8]) -> String {
    let (mut values, mut rest) = (Vec::new(), &body[2..]);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length);
        let (value, after) = after.split_at(length.max(0) as usize);
        values.push(if length < 0 { "-".into() } else { String::from_utf8_lossy(value).into_owned() });
        rest = after;
    }
    values.join(",")
}

impl Client {
    /// The types of a statement's parameters and of its columns, by their numbers; or the SQLSTATE.
    pub fn types(&mut self, sql: &str) -> Result<(Vec<u32>, Vec<u32>), String> {
        self.send(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"].concat());
        self.send(b'D', b"S\0");
        self.send(b'S', b"");
        let (mut parameters, mut columns, mut error) = (Vec::new(), Vec::new(), None);
        loop {
            let (kind, body) = self.message();
            let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
            match kind {
                't' => parameters = (2..body.len()).step_by(4).map(number).collect(),
                'T' => {
                    let mut at = 2;
                    while at < body.len() {
                        at += body[at..].iter().position(|byte| *byte == 0).unwrap() + 1;
                        columns.push(number(at + 6));
                        at += 18;
                    }
                }
                'E' => {
                    let at = body.windows(2).position(|pair| pair == b"\0C").unwrap();
                    error = Some(String::from_utf8_lossy(&body[at + 2..at + 7]).into_owned());
                }
                'Z' => return error.map_or(Ok((parameters, columns)), Err),
                _ => {}
            }
        }
    }
}
