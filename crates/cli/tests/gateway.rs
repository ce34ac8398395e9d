//! `bezant gateway` as an operator starts it.

mod support;

use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use support::{Running, Scratch, assert_refused, bezant, free_ports, run, spawn, testnet, wait_until};

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

/// A gateway on sockets in this folder, and on this port for Redis, with a password and more arguments.
fn on_sockets(scratch: &Scratch, port: u16, more: &[&str]) -> Running {
    let (cluster, redis, log) = (scratch.join("net/cluster.toml"), scratch.join("redis.sock"), scratch.join("log"));
    let (address, folder) = (format!("127.0.0.1:{port}"), scratch.join(""));
    let mut gateway = bezant(&["gateway", "--cluster", &cluster, "--redis", &redis, "--redis", &address]);
    gateway.args(["--postgres", &folder]).args(more);
    let gateway = Running(gateway.stderr(Stdio::from(fs::File::create(&log).unwrap())).spawn().unwrap());
    wait_until("the gateway listens", || UnixStream::connect(&redis).is_ok());
    gateway
}

/// What is said at a socket until the gateway closes it.
fn talk_at(path: &str, said: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(said).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn sockets_are_served_beside_ports_and_their_files_go_with_the_gateway() {
    let scratch = Scratch::new();
    testnet(&scratch, "net", 1);
    let _replica = Running(spawn(&mut bezant(&["replica", "--dir", &scratch.join("net/replica-0")])));
    let port = free_ports(1);
    let (redis, postgres) = (scratch.join("redis.sock"), scratch.join(".s.PGSQL.5432"));
    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;

    let mut killed = on_sockets(&scratch, port, &[]);
    assert_eq!(talk_at(&redis, b"set a 1\r\nget a\r\n"), "+OK\r\n$1\r\n1\r\n");
    assert_eq!(talk(port, b"get a\r\n"), b"$1\r\n1\r\n");
    assert!(talk_at(&redis, b"client list\r\n").contains(&format!(" addr={redis}:0 ")));
    assert!(talk_at(&postgres, b"\0\0\0\x11\0\x03\0\0user\0me\0\0").starts_with("R\0\0\0\x08\0\0\0\0"));
    assert_eq!([mode(&redis), mode(&postgres)], [0o600; 2]);
    let cluster = scratch.join("net/cluster.toml");
    let second = run(&mut bezant(&["gateway", "--cluster", &cluster, "--redis", &redis]), "");
    assert_refused(&second, 1, &format!("cannot listen on {redis}: somebody listens there already"));

    killed.signal(Signal::KILL);
    killed.wait();
    assert!(fs::exists(&redis).unwrap());
    let password = scratch.join("password");
    fs::write(&password, "open sesame\n").unwrap();
    fs::set_permissions(&password, Permissions::from_mode(0o600)).unwrap();
    let mut next = on_sockets(&scratch, port, &["--open-to-group", "--password-file", &password]);
    assert_eq!([mode(&redis), mode(&postgres)], [0o660; 2]);
    assert_eq!(talk_at(&redis, b"get a\r\n"), "-NOAUTH Authentication required.\r\n");
    next.signal(Signal::TERM);
    assert!(next.wait().success());
    assert!(!fs::exists(&redis).unwrap() && !fs::exists(&postgres).unwrap());
}
