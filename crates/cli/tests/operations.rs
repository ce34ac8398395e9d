//! docs/operations.md: its commands, as they stand there, one after the other; and the unit that it installs.

mod support;

use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Scratch, free_ports};

/// How long the whole page may take.
const PAGE_MAX: Duration = Duration::from_secs(240);

/// What stands in the blocks of commands to run.
fn commands(page: &str) -> String {
    let mut inside = false;
    let mut script = String::new();
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside {
            script += &format!("{line}\n");
        }
    }
    script
}

/// A shell and whatever it started, all of which ends with it.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

#[test]
fn the_commands_of_the_page_do_what_it_says() {
    let scratch = Scratch::new();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = fs::read_to_string(page).unwrap();
    let script = commands(&page);
    let (old, new) = (free_ports(40), free_ports(40));
    for port in ["--base-port 12000", "--base-port 13000"] {
        assert!(script.contains(port), "the page has another {port}");
    }
    let script = script.replace("--base-port 12000", &format!("--base-port {old}"));
    let script = script.replace("--base-port 13000", &format!("--base-port {new}"));
    let programs = Path::new(env!("CARGO_BIN_EXE_bezant")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let log = scratch.path().join("page.log");
    let output = File::create(&log).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-eux", "-c", &script]).current_dir(scratch.path()).env("PATH", path).process_group(0);
    bash.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
    let mut group = Group(bash.spawn().unwrap());
    let said = || fs::read_to_string(&log).unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = group.0.try_wait().unwrap() {
            break status;
        }
        assert!(start.elapsed() < PAGE_MAX, "the page takes too long:\n{}", said());
        std::thread::sleep(Duration::from_millis(50));
    };
    let said = said();
    assert!(status.success(), "{said}");
    assert!(said.contains("is whole and signed") && said.lines().any(|line| line.trim() == "95"), "{said}");
    let refused = fs::read_to_string(scratch.path().join("testnet/cluster.toml")).unwrap();
    assert!(refused.contains("127.0.0.2") && refused.contains("view_timeout_ms = 1500"), "{refused}");
}

/// systemd's own judgement, where systemd is installed: the program's path is the only thing that is not as it stands.
#[test]
fn systemd_takes_the_unit() {
    let scratch = Scratch::new();
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/systemd/bezant@.service");
    let text = fs::read_to_string(unit).unwrap();
    let start = "ExecStart=/usr/local/bin/bezant replica --dir /var/lib/bezant/replica-%i";
    assert!(text.contains(start), "it starts something else");
    let text = text.replace("/usr/local/bin/bezant", env!("CARGO_BIN_EXE_bezant"));
    let copy = scratch.path().join("bezant@2.service");
    fs::write(&copy, text).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&copy).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && !said.contains("bezant@2.service"), "{said}");
        }
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "only its absence excuses it"),
    }
}
