//! The real binary, folders that go away, and processes that do not outlive their test.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of this")]

pub mod database;
pub mod page;
#[cfg(target_os = "linux")]
pub mod terminal;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program under test.
pub fn bezant(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bezant"));
    command.args(arguments);
    command
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program with this standard input to its end.
pub fn run(command: &mut Command, input: &str) -> Outcome {
    let mut child = Running(spawn(command));
    let mut stdin = child.0.stdin.take().unwrap();
    let input = input.to_owned();
    // A program that ends early does not read it all.
    let writer = thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let outcome = child.finish();
    writer.join().unwrap();
    outcome
}

/// Runs a command that succeeds and prints JSON.
#[track_caller]
pub fn json_of(arguments: &[&str]) -> Value {
    let outcome = run(bezant(arguments).arg("--json"), "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// It ended with this code and said this, and nothing on its standard output.
#[track_caller]
pub fn assert_refused(outcome: &Outcome, code: i32, said: &str) {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    assert!(outcome.stderr.contains(said) && outcome.stdout.is_empty(), "{outcome:?}");
}

/// Starts a program with all streams as pipes.
pub fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn reader(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    })
}

/// A process that is killed when the test ends before it does.
pub struct Running(pub Child);

impl Running {
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends its input, and returns what it says to its end.
    pub fn finish(&mut self) -> Outcome {
        drop(self.0.stdin.take());
        let stdout = reader(self.0.stdout.take().unwrap());
        let stderr = reader(self.0.stderr.take().unwrap());
        let status = self.wait();
        Outcome { code: status.code(), stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(id, signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder of its own, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bezant-cli-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Ports of a block that tests use at most; the last one of a block is the claim on it.
const BLOCK: u16 = 50;

/// The first of so many neighbouring ports that are free just now. Nobody else gets them as long as this process lives,
/// also not before they are used.
pub fn free_ports(count: u16) -> u16 {
    static CLAIMS: Mutex<Vec<TcpListener>> = Mutex::new(Vec::new());
    assert!(count < BLOCK, "blocks are of {BLOCK} ports");
    let mut claims = CLAIMS.lock().unwrap();
    let blocks = 10_000 / u32::from(BLOCK);
    for place in 0..blocks {
        let base = 10_000 + ((std::process::id() + place) % blocks) as u16 * BLOCK;
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        // The claim first: whoever has it may try the others.
        if let Ok(claim) = bind(base + BLOCK - 1)
            && (base..base + count).all(|port| bind(port).is_ok())
        {
            claims.push(claim);
            return base;
        }
    }
    panic!("no {count} neighbouring ports are free");
}

/// Files of a new cluster in `scratch`, and its first port.
pub fn testnet(scratch: &Scratch, name: &str, replicas: u16) -> u16 {
    testnet_with(scratch, name, replicas, &[])
}

/// The same with other flags.
pub fn testnet_with(scratch: &Scratch, name: &str, replicas: u16, flags: &[&str]) -> u16 {
    let base = free_ports(10 * replicas);
    let dir = scratch.join(name);
    let (count, faults, port) = (replicas.to_string(), ((replicas - 1) / 3).to_string(), base.to_string());
    let arguments = ["testnet", "--dir", &dir, "--replicas", &count, "--f", &faults, "--base-port", &port];
    let outcome = run(bezant(&arguments).args(flags), "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    base
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} takes too long");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the slowest replica is as far as the others: an answer needs only most of them.
pub fn settle(cluster: &str) {
    wait_until("the slowest replica", || {
        let status = run(&mut bezant(&["status", "--cluster", cluster, "--json"]), "").stdout;
        let status: Value = serde_json::from_str(&status).unwrap();
        let place = |replica: &Value| (replica["position"].as_u64(), replica["stable"].as_u64());
        let places: Vec<_> = status["replicas"].as_array().unwrap().iter().map(place).collect();
        places[0].0.is_some() && places.windows(2).all(|pair| pair[0] == pair[1])
    });
}
