//! Four replicas of an example as processes, which do not outlive their test.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of this")]

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ports of a cluster at most; the last one of a block is the claim on it.
const BLOCK: u16 = 50;

/// A folder with the files of a cluster, and the replicas that run.
pub struct Cluster {
    program: &'static str,
    folder: PathBuf,
    replicas: Vec<Option<Child>>,
    /// Keeps the ports for this cluster.
    _claim: TcpListener,
}

/// Ports that nobody else gets while the claim lives.
fn ports() -> (u16, TcpListener) {
    let blocks = 10_000 / u32::from(BLOCK);
    for place in 0..blocks {
        let base = 20_000 + ((std::process::id() + place) % blocks) as u16 * BLOCK;
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        if let Ok(claim) = bind(base + BLOCK - 1)
            && (base..base + BLOCK - 1).all(|port| bind(port).is_ok())
        {
            return (base, claim);
        }
    }
    panic!("no {BLOCK} neighbouring ports are free");
}

/// Looks again and again, but not for ever.
fn wait_until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = look();
        if seen.is_some() || Instant::now() >= deadline {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Cluster {
    /// Makes files with the example's own sub-command, starts all four, and waits until each runs: another one that is
    /// started in its folder before that may have taken it.
    pub fn start(program: &'static str) -> Self {
        let (mut cluster, port) = Self::empty(program);
        cluster.succeeds(&["new", &cluster.text(""), &port.to_string()]);
        for replica in 0..4 {
            let child = cluster.spawn(replica);
            cluster.replicas.push(Some(child));
        }
        (0..4).for_each(|replica| cluster.wait_for(&format!("{replica}.log"), "replica-started"));
        cluster
    }

    /// Waits until a process of the cluster has written this to a file.
    fn wait_for(&self, file: &str, text: &str) {
        let is_there = || std::fs::read_to_string(self.folder.join(file)).is_ok_and(|file| file.contains(text));
        wait_until(|| is_there().then_some(())).unwrap_or_else(|| panic!("{file} has no {text}"));
    }

    /// Lets the example do all of that, in one process: that is number 0 here.
    pub fn demo(program: &'static str) -> Self {
        let (mut cluster, port) = Self::empty(program);
        let mut demo = Command::new(program);
        demo.args(["demo", &cluster.text(""), &port.to_string()]).stdin(Stdio::null()).stdout(Stdio::null());
        cluster.replicas.push(Some(demo.stderr(Stdio::null()).spawn().unwrap()));
        cluster.wait_for("cluster.toml", "");
        cluster
    }

    /// A folder and ports, with nothing there yet.
    fn empty(program: &'static str) -> (Self, u16) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("bezant-example-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let (port, claim) = ports();
        let folder = std::env::temp_dir().join(name);
        (Self { program, folder, replicas: Vec::new(), _claim: claim }, port)
    }

    /// A path in the folder, as text.
    pub fn text(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// The cluster's file.
    pub fn file(&self) -> String {
        self.text("cluster.toml")
    }

    fn spawn(&self, replica: usize) -> Child {
        let log = self.text(&format!("{replica}.log"));
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(self.program);
        command.arg("replica").arg(self.folder.join(format!("replica-{replica}")));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    /// Runs the example to its end. What it writes has room in a pipe.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        if wait_until(|| child.try_wait().unwrap()).is_none() {
            child.kill().unwrap();
            panic!("{arguments:?} does not end: {:?}", child.wait_with_output());
        }
        child.wait_with_output().unwrap()
    }

    /// What it prints if it does what it is asked for.
    #[track_caller]
    pub fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// What it says if it does not.
    #[track_caller]
    pub fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Ends a replica as a crash does.
    pub fn kill(&mut self, replica: usize) {
        let mut child = self.replicas[replica].take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Asks a replica to end, and waits until it has, without an error.
    pub fn stop(&mut self, replica: usize) {
        let mut child = self.replicas[replica].take().unwrap();
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        let status = wait_until(|| child.try_wait().unwrap());
        assert!(status.is_some_and(|status| status.success()), "replica {replica}: {status:?}");
    }

    /// Starts it again.
    pub fn restart(&mut self, replica: usize) {
        assert!(self.replicas[replica].is_none());
        self.replicas[replica] = Some(self.spawn(replica));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.replicas.iter_mut().flatten() {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            for replica in 0..4 {
                let log = self.text(&format!("{replica}.log"));
                eprintln!("{log}:\n{}", std::fs::read_to_string(Path::new(&log)).unwrap_or_default());
            }
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
