//! Who is let in where clients must know a password.

mod support;

use bezant_gateway::password::ITERATIONS;
use bezant_gateway::{Access, Endpoint, base64};
use ring::{digest, hmac, pbkdf2};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use support::{Client, address, any_port, closed_server, connect, encrypted_server};

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

fn sign(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

/// What a client answers to a challenge, and what it expects then: written from the RFC, not from our server.
fn proof(password: &str, bare: &str, challenge: &str) -> (String, String) {
    let [nonce, salt, "i=4096"] = challenge.split(',').collect::<Vec<_>>()[..] else { panic!("{challenge}") };
    let salt = base64::decode(salt.strip_prefix("s=").unwrap()).unwrap();
    let mut salted = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, &salt, password.as_bytes(), &mut salted);
    let client_key = sign(&salted, b"Client Key");
    let stored_key = digest::digest(&digest::SHA256, &client_key);
    let conversation = format!("{bare},{challenge},c=biws,{nonce}");
    let signature = sign(stored_key.as_ref(), conversation.as_bytes());
    let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(key, signed)| key ^ signed).collect();
    let expected = sign(&sign(&salted, b"Server Key"), conversation.as_bytes());
    (format!("c=biws,{nonce},p={}", base64::encode(&proof)), format!("v={}", base64::encode(&expected)))
}

/// The next message: its kind, and its content.
fn next(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    let mut body = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4];
    stream.read_exact(&mut body).unwrap();
    (head[0], body)
}

#[test]
fn whoever_proves_to_know_the_password_is_let_in_and_told_by_whom() {
    let server = closed_server();
    for (password, is_right) in [("open sesame", true), ("open sesam", false)] {
        let mut client = Client(connect(&server), Vec::new());
        client.0.write_all(b"\0\0\0\x11\0\x03\0\0user\0me\0\0").unwrap();
        next(&mut client.0);
        client.send(b'p', &choice("SCRAM-SHA-256", "n,,n=,r=abc"));
        let (_, challenge) = next(&mut client.0);
        let (last, expected) = proof(password, "n=,r=abc", std::str::from_utf8(&challenge[4..]).unwrap());
        client.send(b'p', last.as_bytes());
        if is_right {
            assert_eq!(next(&mut client.0), (b'R', [&[0, 0, 0, 12], expected.as_bytes()].concat()));
            assert!(client.hear().ends_with("Z:I"));
            assert_eq!(client.query("select 6 * 7"), "T D:42 C:SELECT 1 Z:I");
        } else {
            let (kind, error) = next(&mut client.0);
            assert!(kind == b'E' && error.windows(6).any(|window| window == b"C28P01"), "{error:?}");
        }
    }
}

#[test]
fn on_a_unix_socket_nobody_has_to_encrypt_and_all_have_to_know_the_password() {
    let path = std::env::temp_dir().join(format!("bezant-postgres-{}", std::process::id()));
    let _server = encrypted_server(Endpoint::Unix(path.clone(), Access::Owner));
    let mut stream = UnixStream::connect(&path).unwrap();
    // As a driver asks that prefers TLS.
    stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"N");
    stream.write_all(b"\0\0\0\x11\0\x03\0\0user\0me\0\0").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert!(all.starts_with(b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"), "{all:?}");
    assert!(!all.windows(9).any(|window| window == b"R\0\0\0\x08\0\0\0\0"), "it was let in");
}

#[test]
fn where_encryption_is_wanted_nobody_is_let_in_without() {
    let server = encrypted_server(any_port());
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
    let server = encrypted_server(any_port());
    let psql = |mode: &str, sql: &str| {
        let mut command = Command::new("psql");
        let to = format!("host=127.0.0.1 port={} user=me dbname=bezant sslmode={mode}", address(&server).port());
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
    let port = address(&server).port().to_string();
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
