//! C programs against the libraries: a group of four processes, and wrong use; with the shared library, and with the
//! static one under the address sanitizer.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long a program may take for its next line, or its end.
const PATIENCE: Duration = Duration::from_secs(60);
/// What `rustc --print native-static-libs` says.
const SYSTEM_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// A folder that goes away with its value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bezant-ritas-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Clone, Copy)]
enum Linked {
    Shared,
    /// Under the address sanitizer.
    Static,
}

/// A C program, compiled strictly.
fn compiled(scratch: &Scratch, sources: &[PathBuf], linked: Linked) -> PathBuf {
    let (here, program) = (Path::new(env!("CARGO_MANIFEST_DIR")), scratch.0.join("program"));
    // Cargo puts the libraries beside the tests.
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&program);
    cc.arg("-I").arg(here.join("include")).args(sources);
    match linked {
        Linked::Shared => {
            cc.arg(libraries.join("libritas.so")).arg(format!("-Wl,-rpath,{}", libraries.display()));
        }
        Linked::Static => {
            cc.args(["-fsanitize=address", "-g"]).arg(libraries.join("libritas.a")).args(SYSTEM_LIBRARIES);
        }
    }
    let output = cc.output().expect("a C compiler, which SQLite needs as well");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// The program of these tests.
fn ours() -> [PathBuf; 2] {
    ["group.c", "misuse.c"].map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name))
}

/// A program that runs, and ends with its value.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Running {
    fn start(program: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.current_dir(program.parent().unwrap()).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Leaks are errors, too.
        let mut child = command.env("ASAN_OPTIONS", "detect_leaks=1").spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|it| send.send(it))
        });
        Self { child, input, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the program has something to say")
    }

    /// What it has said until it is done.
    fn until_done(&self) -> Vec<String> {
        let mut said = Vec::new();
        while said.last().is_none_or(|line| line != "done") {
            let line = self.lines.recv_timeout(PATIENCE);
            said.push(line.unwrap_or_else(|error| panic!("{error} after {said:?}")));
        }
        // What several threads do comes in any order.
        said.sort();
        said
    }

    /// Lets it end.
    fn end(mut self) {
        self.input = None;
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(status.success(), "{status}: {:?}", self.lines.iter().collect::<Vec<_>>());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What each process tosses a common coin with, as a dealer says it: a line with its secret, and one with all keys.
fn dealt(program: &Path) -> [String; 4] {
    let dealer = Running::start(program, &["deal"]);
    let secrets = [(); 4].map(|()| dealer.line());
    let keys = dealer.line();
    dealer.end();
    secrets.map(|secret| format!("{secret}\n{keys}\n"))
}

/// Four processes do everything, and come to the same.
fn run_group(program: &Path, address: &str, channel: &str, coin: &str) {
    let pids = ["0", "1", "2", "3"];
    let coins = if coin == "common" { dealt(program) } else { Default::default() };
    let mut processes = pids.map(|pid| Running::start(program, &[pid, address, channel, coin]));
    let members: Vec<String> = processes.iter().map(|process| process.line() + "\n").collect();
    for (process, coin) in processes.iter_mut().zip(coins) {
        let input = process.input.as_mut().unwrap();
        input.write_all((members.concat() + &coin).as_bytes()).unwrap();
        input.flush().unwrap();
    }
    let said: Vec<Vec<String>> = processes.iter().map(Running::until_done).collect();
    assert!(said.iter().all(|it| *it == said[0] && it.len() == 4), "{said:#?}");
    processes.into_iter().for_each(Running::end);
}

#[test]
fn the_shared_library_serves_a_group_and_survives_wrong_use() {
    let scratch = Scratch::new("shared");
    let program = compiled(&scratch, &ours(), Linked::Shared);
    Running::start(&program, &[]).end();
    let has_ipv6 = TcpListener::bind("[::1]:0").is_ok();
    run_group(&program, if has_ipv6 { "::1" } else { "127.0.0.1" }, "plain", "local");
}

#[test]
fn the_address_sanitizer_finds_nothing_in_the_static_library() {
    let scratch = Scratch::new("static");
    let program = compiled(&scratch, &ours(), Linked::Static);
    Running::start(&program, &[]).end();
    run_group(&program, "127.0.0.1", "tls", "common");
}

/// Four ports in a row, below those that the system gives to others.
fn ports() -> u16 {
    let first = 20_000 + (std::process::id() % 2_000) as u16 * 4;
    let are_free = |first: &u16| (0..4).all(|at| TcpListener::bind(("127.0.0.1", first + at)).is_ok());
    (first..30_000).step_by(4).find(are_free).expect("some are free")
}

#[test]
fn the_example_of_the_documentation_runs() {
    let (page, scratch) = (include_str!("../../../docs/groups.md"), Scratch::new("example"));
    let source = page.split_once("```c\n").unwrap().1.split_once("```").unwrap().0;
    let file = scratch.0.join("agree.c");
    std::fs::write(&file, source).unwrap();
    let program = compiled(&scratch, &[file], Linked::Shared);
    let (pids, port) = (["0", "1", "2", "3"], ports().to_string());
    pids.map(|pid| Running::start(&program, &[pid])).into_iter().for_each(Running::end);
    let processes = pids.map(|pid| Running::start(&program, &[pid, &port]));
    let said: Vec<Vec<String>> = processes.iter().map(|it| (0..5).map(|_| it.line()).collect()).collect();
    assert!(said.iter().all(|it| *it == said[0] && it[0] == "agreed on 1"), "{said:#?}");
    processes.into_iter().for_each(Running::end);
}
