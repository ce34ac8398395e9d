//! docs/getting-started.md: its blocks, as they stand there, typed into a shell on a terminal, one after the other.
//!
//! Otherwise than there: the program is built already, ports are free ones, and the words are few.
#![cfg(target_os = "linux")]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};
use std::{fs, thread};
use support::terminal::Terminal;
use support::{Scratch, free_ports, page};

/// An interactive shell. Whatever it has started ends with it, however the test ends.
struct Shell(Terminal);

impl Shell {
    fn start(scratch: &Scratch) -> Self {
        let mut shell = Self(Terminal::run(scratch, "bash", &["--norc", "--noprofile", "--noediting", "-i"]));
        shell.play("stty -echo; PS1=\n", &[]);
        shell
    }

    /// Types a block, sees that this is shown, in this order, and waits until all of it is carried out.
    fn play(&mut self, block: &str, shown: &[&str]) {
        self.0.press(block);
        shown.iter().for_each(|what| self.0.expect(what));
        // Not as it is typed, so that it is not its own echo.
        self.0.press("echo the block is \"\"done\n");
        self.0.expect("the block is done");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let child = &mut self.0.process.0;
        // A shell that loses its terminal tells all its jobs.
        if let Ok(None) = child.try_wait() {
            let _ = kill_process(Pid::from_child(child), Signal::HUP);
            let begin = Instant::now();
            while let (Ok(None), true) = (child.try_wait(), begin.elapsed() < ENDING_MAX) {
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// How long a shell may take to end.
const ENDING_MAX: Duration = Duration::from_secs(5);

#[test]
fn every_step_as_printed_works() {
    let scratch = Scratch::new();
    fs::write(
        scratch.path().join("words"),
        (0..2_000).map(|word| format!("word{word}\n")).collect::<String>() + "zymurgy\n",
    )
    .unwrap();
    let (base, redis) = (free_ports(40), free_ports(1));
    let (base, redis) = (format!("--base-port {base}"), redis.to_string());
    let adapted = [
        ("cargo run --release -- demo", "bezant demo"),
        ("cargo build --release", "true"),
        ("--base-port 12000", &base),
        ("-p 6400", &format!("-p {redis}")),
        ("127.0.0.1:6400", &format!("127.0.0.1:{redis}")),
        ("/usr/share/dict/american-english-huge", "words"),
    ];
    let mut page = page::blocks("getting-started.md", "sh");
    for (printed, here) in adapted {
        assert!(page.iter().any(|block| block.contains(printed)), "the page has no {printed}");
        page.iter_mut().for_each(|block| *block = block.replace(printed, here));
    }
    let [demo, prepare, start, gateway, load, crash, lie, honest, power, end] = &page[..] else {
        panic!("the page has other blocks: {page:?}");
    };
    let mut shell = Shell::start(&scratch);
    shell.0.press(demo);
    shell.0.expect("bezant> ");
    shell.0.press(&page::blocks("getting-started.md", "text")[0].replace('\n', "\r"));
    for outcome in
        ["2 rows changed", "replica 2 killed", "1 row changed", "Earth", "replica 2 running", "lying", "at fault"]
    {
        shell.0.expect(outcome);
    }
    shell.0.wait_for_shell();
    shell.play(prepare, &["cluster.toml"]);
    shell.play(start, &["Jupiter", "95", "at most 1 lie or crash"]);
    shell.play(gateway, &[]);
    shell.play(load, &["errors: 0, replies: 2001", "2001"]);
    shell.play(crash, &[]);
    shell.play(lie, &["at most 1 lie or crash", "2001", "lying"]);
    shell.play(honest, &["at most 1 lie or crash"]);
    shell.play(power, &["2001", "Jupiter", "95"]);
    shell.play(end, &[]);
    shell.0.press("exit\n");
    shell.0.end();
    for complaint in ["no such job", "ambiguous", "bezant: ", "command not found", "usage:"] {
        assert!(!shell.0.text.contains(complaint), "{complaint}\n{}", shell.0.text);
    }
}
