//! The gateway over sockets, in front of one SQL service without replicas.

use bezant_core::digest::{Digest, Domain};
use bezant_core::machine::Instant;
use bezant_core::service::{Agreed, Asker, Service};
use bezant_core::wire::Wire;
use bezant_postgres::{Answer, CallFailure, Database, Server};
use bezant_sql::{Request, Response, Sql};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// 2026-11-22 05:43:06 UTC, in microseconds.
const TIME: u64 = 1_795_326_186_000_000;

/// A database without replicas; every ordered request is a second later than the one before.
#[derive(Default)]
struct Local(Mutex<(Sql, u64)>);

impl Database for Local {
    fn call(&self, request: &Request) -> Result<Answer, CallFailure> {
        let (sql, sequence) = &mut *self.0.lock().unwrap();
        let bytes = request.to_bytes();
        let answer = |bytes, ordered, sequence| Answer {
            response: Response::from_bytes(bytes).unwrap(),
            sequence,
            replicas: vec![0],
            ordered,
        };
        if request.seems_read_only()
            && let Ok(bytes) = sql.query(&bytes, &Asker::default())
        {
            return Ok(answer(bytes, false, *sequence));
        }
        *sequence += 1;
        let seed = Digest::of(Domain::Trace, &sequence.to_le_bytes());
        let agreed = Agreed { time: Instant(TIME + *sequence * 1_000_000), seed, ..Agreed::default() };
        Ok(answer(sql.execute(&bytes, &agreed), true, *sequence))
    }
}

fn server() -> Server {
    Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), Arc::new(Local::default())).unwrap()
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Everything until the other side closes.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut all);
    all
}

struct Client(TcpStream);

impl Client {
    fn new(server: &Server) -> Self {
        let mut stream = connect(server);
        let body = b"\0\x03\0\0user\0me\0database\0bezant\0\0";
        stream.write_all(&[&(body.len() as u32 + 4).to_be_bytes()[..], body].concat()).unwrap();
        let mut client = Self(stream);
        assert!(client.hear().ends_with("Z:I"));
        client
    }

    fn send(&mut self, kind: u8, body: &[u8]) {
        let message = [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat();
        self.0.write_all(&message).unwrap();
    }

    /// Messages up to ReadyForQuery, in short: kinds, and what matters of rows, tags, errors and the status.
    fn hear(&mut self) -> String {
        let mut all = Vec::new();
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
            let mut body = vec![0; length - 4];
            self.0.read_exact(&mut body).unwrap();
            let kind = char::from(head[0]);
            let text =
                |from: &[u8]| String::from_utf8_lossy(from.split(|byte| *byte == 0).next().unwrap()).into_owned();
            match kind {
                'R' | 'S' | 'K' => {}
                'C' => all.push(format!("C:{}", text(&body))),
                'E' => {
                    let at = body.windows(2).position(|pair| pair == b"\0C").unwrap();
                    all.push(format!("E:{}", text(&body[at + 2..])));
                }
                'D' => all.push(format!("D:{}", row(&body))),
                'Z' => {
                    all.push(format!("Z:{}", char::from(body[0])));
                    return all.join(" ");
                }
                kind => all.push(kind.to_string()),
            }
        }
    }

    fn query(&mut self, sql: &str) -> String {
        self.send(b'Q', &[sql.as_bytes(), b"\0"].concat());
        self.hear()
    }

    /// Parse, Bind, Describe, Execute and Sync, with values as text.
    fn ask(&mut self, sql: &str, values: &[&str], rows: u32) -> String {
        self.send(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"].concat());
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

#[test]
fn both_protocols_give_the_same() {
    let server = server();
    let mut client = Client::new(&server);
    assert_eq!(client.query("create table t(a integer primary key, b text)"), "C:CREATE TABLE Z:I");
    assert_eq!(client.ask("insert into t(b) values ($1), ($2)", &["x", "y"], 0), "1 2 n C:INSERT 0 2 Z:I");
    assert_eq!(client.query("select * from t where a > 1"), "T D:2,y C:SELECT 1 Z:I");
    assert_eq!(client.ask("select * from t where a > $1", &["1"], 0), "1 2 T D:2,y C:SELECT 1 Z:I");
    assert_eq!(client.query("select 1; select 2"), "T D:1 C:SELECT 1 T D:2 C:SELECT 1 Z:I");
    assert_eq!(client.query(" ; "), "I Z:I");
    assert_eq!(client.ask("", &[], 0), "1 2 n I Z:I");
    // Statements that come together fail together.
    assert_eq!(client.query("insert into t(a) values (7); insert into t(a) values (1)"), "E:23505 Z:I");
    assert_eq!(client.query("select count(*) from t"), "T D:2 C:SELECT 1 Z:I");
}

#[test]
fn an_error_ends_a_series_and_nothing_else() {
    let server = server();
    let mut client = Client::new(&server);
    assert_eq!(client.ask("select nosuch from nosuch", &[], 0), "1 2 E:42P01 Z:I");
    assert_eq!(client.ask("select $1", &[], 0), "1 E:08P01 Z:I");
    assert_eq!(client.ask("copy t from stdin", &[], 0), "E:0A000 Z:I");
    assert_eq!(client.query("select 'still here'"), "T D:still here C:SELECT 1 Z:I");
}

#[test]
fn rows_come_in_portions() {
    let server = server();
    let mut client = Client::new(&server);
    let sql = "with recursive n(i) as (select 1 union all select i + 1 from n limit 3) select i from n";
    client.query("begin");
    assert_eq!(client.ask(sql, &[], 2), "1 2 T D:1 D:2 s Z:T");
    client.send(b'E', b"\0\0\0\0\0");
    client.send(b'S', b"");
    assert_eq!(client.hear(), "D:3 C:SELECT 3 Z:T");
    client.query("rollback");
    client.send(b'E', b"\0\0\0\0\0");
    client.send(b'S', b"");
    assert_eq!(client.hear(), "E:34000 Z:I");
}

#[test]
fn a_transaction_is_shown_what_it_does() {
    let server = server();
    let (mut one, mut other) = (Client::new(&server), Client::new(&server));
    one.query("create table t(a integer primary key, b text)");
    assert_eq!(one.query("begin"), "C:BEGIN Z:T");
    assert_eq!(one.query("insert into t(b) values ('x') returning a"), "T D:1 C:INSERT 0 1 Z:T");
    assert_eq!(one.query("select b from t"), "T D:x C:SELECT 1 Z:T");
    assert_eq!(other.query("select b from t"), "T C:SELECT 0 Z:I");
    assert_eq!(one.query("savepoint s"), "C:SAVEPOINT Z:T");
    assert_eq!(one.query("insert into t(a) values (1)"), "E:23505 Z:E");
    assert_eq!(one.query("select 1"), "E:25P02 Z:E");
    assert_eq!(one.query("rollback to s"), "C:ROLLBACK Z:T");
    assert_eq!(one.query("update t set b = 'y'"), "C:UPDATE 1 Z:T");
    assert_eq!(one.query("commit"), "C:COMMIT Z:I");
    assert_eq!(other.query("select b from t"), "T D:y C:SELECT 1 Z:I");
    one.query("begin");
    one.query("nonsense");
    assert_eq!(one.query("commit"), "C:ROLLBACK Z:I");
    assert_eq!(one.query("begin read only"), "C:BEGIN Z:T");
    assert_eq!(one.query("delete from t"), "E:25006 Z:E");
}

#[test]
fn a_transaction_that_was_overtaken_takes_no_effect() {
    let server = server();
    let (mut one, mut other) = (Client::new(&server), Client::new(&server));
    one.query("create table t(a integer primary key, b integer)");
    one.query("insert into t values (1, 10)");
    one.query("begin");
    assert_eq!(one.query("select b from t"), "T D:10 C:SELECT 1 Z:T");
    assert_eq!(one.query("update t set b = 11"), "C:UPDATE 1 Z:T");
    other.query("update t set b = 20");
    assert_eq!(one.query("commit"), "E:40001 Z:I");
    assert_eq!(one.query("select b from t"), "T D:20 C:SELECT 1 Z:I");
    // It may also notice before.
    one.query("begin");
    one.query("select b from t");
    other.query("update t set b = 30");
    assert_eq!(one.query("select 1 from t"), "E:40001 Z:E");
    one.query("rollback");
    // What was not looked at is in nobody's way.
    one.query("begin");
    assert_eq!(one.query("insert into t values (2, 0)"), "C:INSERT 0 1 Z:T");
    other.query("insert into t values (3, 0)");
    assert_eq!(one.query("commit"), "C:COMMIT Z:I");
}

#[test]
fn time_stands_still_in_a_transaction() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(a integer primary key, at default current_timestamp, r default (random()))");
    client.query("begin");
    let first = client.query("select now()");
    assert_eq!(client.query("select now()"), first);
    assert_eq!(client.query("insert into t(a) values (1) returning at"), first.replace("SELECT 1", "INSERT 0 1"));
    assert_eq!(client.query("commit"), "C:COMMIT Z:I");
    assert_eq!(client.query("select at from t"), first.replace("Z:T", "Z:I"));
    client.query("begin");
    assert_eq!(client.query("insert into t(a) values (2) returning r"), "E:0A000 Z:E");
}

#[test]
fn whoever_speaks_something_else_is_told_so() {
    let server = server();
    let mut stream = connect(&server);
    stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"N");
    let mut stream = connect(&server);
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(String::from_utf8_lossy(&rest(stream)).contains("08P01"));
    let mut stream = connect(&server);
    stream.write_all(b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\0\0\0\0\0").unwrap();
    assert!(rest(stream).is_empty(), "a request to cancel has no answer");
    let mut client = Client::new(&server);
    client.0.write_all(b"Q\xff\xff\xff\xff").unwrap();
    assert!(String::from_utf8_lossy(&rest(client.0)).contains("FATAL"));
    assert_eq!(Client::new(&server).query("select 1"), "T D:1 C:SELECT 1 Z:I");
}

#[test]
fn rubbish_in_well_formed_messages_ends_nothing_but_itself() {
    let server = server();
    let mut client = Client::new(&server);
    let mut random = 1_u32;
    let mut next = |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % below
    };
    let words: [&[u8]; 14] = [
        b"select ",
        b"$1",
        b"::int",
        b"'",
        b"\"",
        b"(",
        b")",
        b"begin;",
        b"pg_class",
        b"array[",
        b";",
        b"\0",
        b"\0\0",
        b"S\0",
    ];
    for _ in 0..300 {
        let kind = b"QPBDECHdcfF"[next(11) as usize];
        let body: Vec<u8> = (0..next(8)).flat_map(|_| words[next(14) as usize]).copied().collect();
        let message = [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), &body].concat();
        let sent = client.0.write_all(&message).and_then(|()| client.0.write_all(b"S\0\0\0\x04"));
        // What is no message ends the connection, with or without a last word; the gateway goes on.
        if sent.is_err() || client.0.take_error().is_ok_and(|error| error.is_some()) {
            client = Client::new(&server);
        }
    }
    assert_eq!(Client::new(&server).query("select 1"), "T D:1 C:SELECT 1 Z:I");
}

#[test]
fn catalog_questions_see_the_tables() {
    let server = server();
    let mut client = Client::new(&server);
    client.query("create table t(a integer primary key)");
    let sql = "select relname from pg_catalog.pg_class where relkind = 'r' order by 1";
    assert_eq!(client.query(sql), "T D:bezant_members D:t C:SELECT 2 Z:I");
    // Also those that only this transaction has made.
    client.query("begin");
    client.query("create table u(a)");
    assert_eq!(client.query(sql), "T D:bezant_members D:t D:u C:SELECT 3 Z:T");
    client.query("rollback");
    assert_eq!(client.ask("select format_type($1, null)", &["20"], 0), "1 2 T D:bigint C:SELECT 1 Z:I");
    assert_eq!(client.query("show server_version"), "T D:15.0 C:SHOW Z:I");
    assert_eq!(client.query("select current_user"), "T D:me C:SELECT 1 Z:I");
}
