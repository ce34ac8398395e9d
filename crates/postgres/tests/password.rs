//! Who is let in where clients must know a password.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use support::{closed_server, connect, encrypted_server};

/// Says hello, then sends these messages about the password and reads until the gateway closes. Returns the SQLSTATE.
fn refusal(server: &bezant_postgres::Server, messages: &[(u8, &[u8])]) -> Option<String> {
    let mut stream = connect(server);
    let hello = b"\0\x03\0\0user\0me\0\0";
    stream.write_all(&[&(hello.len() as u32 + 4).to_be_bytes(), &hello[..]].concat()).unwrap();
    for (kind, body) in messages {
        // The gateway may have closed already.
        let _ = stream.write_all(&[&[*kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat());
    }
    let _ = stream.shutdown(Shutdown::Write);
    sqlstate(stream)
}

fn sqlstate(mut stream: TcpStream) -> Option<String> {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    assert!(all.starts_with(b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"), "it must ask first: {all:?}");
    assert!(!all.windows(9).any(|window| window == b"R\0\0\0\x08\0\0\0\0"), "it was let in");
    let at = all.windows(2).position(|pair| pair == b"\0C")?;
    Some(String::from_utf8_lossy(&all[at + 2..at + 7]).into_owned())
}

fn choice(mechanism: &str, message: &str) -> Vec<u8> {
    [mechanism.as_bytes(), b"\0", &(message.len() as u32).to_be_bytes(), message.as_bytes()].concat()
}

#[test]
fn nobody_is_let_in_without_the_password() {
    let server = closed_server();
    let first = choice("SCRAM-SHA-256", "n,,n=,r=abc");
    assert_eq!(refusal(&server, &[]), None, "whoever leaves is told nothing");
    assert_eq!(refusal(&server, &[(b'p', &first)]), None);
    for messages in [
        &[(b'Q', &b"select 1\0"[..])][..],
        &[(b'p', b"open sesame\0")],
        &[(b'p', &choice("PLAIN", "\0me\0open sesame"))],
        &[(b'p', &choice("SCRAM-SHA-256-PLUS", "p=tls-unique,,n=,r=abc"))],
        &[(b'p', &choice("SCRAM-SHA-256", "n,,n="))],
        &[(b'p', b"SCRAM-SHA-256\0\xff\xff\xff\xff")],
        &[(b'p', b"SCRAM-SHA-256\0\0\0\0\x02n,,")],
        &[(b'p', &choice("SCRAM-SHA-256", &format!("n,,n=,r={}", "x".repeat(1_024))))],
        &[(b'p', &first), (b'p', b"c=biws,r=abc,p=AAAA")],
        &[(b'p', &first), (b'p', b"")],
        &[(b'p', &first), (b'Q', b"select 1\0")],
    ] {
        assert_eq!(refusal(&server, messages).as_deref(), Some("08P01"), "{messages:?}");
    }
}

#[test]
fn where_encryption_is_wanted_nobody_is_let_in_without() {
    let server = encrypted_server();
    let hello = b"\0\0\0\x11\0\x03\0\0user\0me\0\0";
    let tls = b"\0\0\0\x08\x04\xd2\x16\x2f";
    let say = |bytes: &[u8]| {
        let mut stream = connect(&server);
        stream.write_all(bytes).unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    };
    assert!(say(hello).contains("C28000"), "in the clear");
    assert!(say(tls).starts_with('S'));
    assert_eq!(say(&[&tls[..], hello].concat()), "", "written by somebody on the way, before encryption began");
}

#[test]
#[ignore = "needs psql"]
fn psql_encrypts_and_says_the_password() {
    let server = encrypted_server();
    let psql = |mode: &str, sql: &str| {
        let mut command = Command::new("psql");
        let to = format!("host=127.0.0.1 port={} user=me dbname=bezant sslmode={mode}", server.address().port());
        let output = command.args(["-w", &to, "-tAc", sql]).env("PGPASSWORD", "open sesame").output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert_eq!(psql("require", "select 6 * 7"), "42\n");
    assert_eq!(psql("prefer", "select length(hex(zeroblob(400000)))"), "800000\n");
    assert_eq!(psql("require", "select hex(zeroblob(200000))").len(), 400_001);
    assert!(psql("disable", "select 1").contains("this gateway wants TLS"));
}

#[test]
#[ignore = "needs psql"]
fn psql_says_the_password() {
    let server = closed_server();
    let port = server.address().port().to_string();
    let psql = |password: &str| {
        let mut command = Command::new("psql");
        command.args(["-w", "-h", "127.0.0.1", "-p", &port, "-U", "me", "-d", "bezant", "-tAc", "select 6 * 7"]);
        let output = command.env("PGPASSWORD", password).env("PGCHANNELBINDING", "disable").output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert_eq!(psql("open sesame"), "42\n");
    assert!(psql("open").contains("password authentication failed for user \"me\""));
    assert!(psql("").contains("no password supplied"));
}
