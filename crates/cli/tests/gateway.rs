//! `bezant gateway` as an operator starts it.

mod support;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use support::{Running, Scratch, bezant, free_ports, spawn, testnet, wait_until};

/// What the gateway at this port says to these bytes, until it closes.
fn talk(port: u16, said: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(said).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}

#[test]
fn a_password_is_asked_for_at_both_doors_and_never_shown() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 1);
    let _replica = Running(spawn(&mut bezant(&["replica", "--dir", &scratch.join("net/replica-0")])));
    let (password, log) = (scratch.join("password"), scratch.join("log"));
    fs::write(&password, "open sesame\n").unwrap();
    fs::set_permissions(&password, Permissions::from_mode(0o600)).unwrap();
    let ports = free_ports(2);
    let [redis, postgres] = [ports, ports + 1].map(|port| format!("127.0.0.1:{port}"));
    let cluster = scratch.join("net/cluster.toml");
    let mut gateway = bezant(&["gateway", "--cluster", &cluster, "--redis", &redis, "--postgres", &postgres]);
    gateway.args(["--password-file", &password]).env("BEZANT_LOG", "trace");
    gateway.stderr(Stdio::from(fs::File::create(&log).unwrap()));
    let _gateway = Running(gateway.spawn().unwrap());
    wait_until("the gateway listens", || TcpStream::connect(&redis).is_ok());

    assert_eq!(talk(ports, b"get a\r\nauth wrong\r\nquit\r\n").iter().filter(|byte| **byte == b'-').count(), 3);
    assert_eq!(talk(ports, b"auth 'open sesame'\r\nset a 1\r\nget a\r\n"), b"+OK\r\n+OK\r\n$1\r\n1\r\n");
    assert!(talk(ports + 1, b"\0\0\0\x11\0\x03\0\0user\0me\0\0").starts_with(b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256"));
    let log = fs::read_to_string(&log).unwrap();
    assert!(!log.is_empty() && !log.contains("sesame") && !log.contains("wrong"), "{log}");
}
