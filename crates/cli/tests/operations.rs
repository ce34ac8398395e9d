//! docs/operations.md: its commands, as they stand there, one after the other; and the unit that it installs.

mod support;

use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Scratch, free_ports, page};

/// How long the whole page may take.
const PAGE_MAX: Duration = Duration::from_secs(240);

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
    let script = page::blocks("operations.md", "sh").concat();
    let port = "--base-port 12000";
    assert!(script.contains(port), "the page has another {port}");
    let script = script.replace(port, &format!("--base-port {}", free_ports(40)));
    let log = scratch.path().join("page.log");
    let output = File::create(&log).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-eux", "-c", &script]).current_dir(scratch.path()).env("PATH", page::search_path()).process_group(0);
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
    assert!(
        said.contains("is closed since request") && said.contains("closed for good by its administrator"),
        "{said}"
    );
    let file = fs::read_to_string(scratch.path().join("testnet/cluster.toml")).unwrap();
    for line in ["127.0.0.2", "view_timeout_ms = 1500", "checkpoint_interval = 64", "genesis_root"] {
        assert!(file.contains(line), "{line} is not in {file}");
    }
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

/// What can be seen of the image without an engine to build it: the compiler is the one that the workspace asks for,
/// and whatever is copied is there, and is kept back by nobody.
#[test]
fn the_container_file_builds_from_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let (recipe, manifest) = (read("deploy/Containerfile"), read("Cargo.toml"));
    let version = manifest.split_once("rust-version = \"").unwrap().1.split_once('"').unwrap().0;
    assert!(recipe.contains(&format!("library/rust:{version}-")), "the workspace asks for {version}");
    let ignored = read("deploy/Containerfile.dockerignore");
    let (built, taken): (Vec<&str>, Vec<&str>) = recipe
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "))
        .partition(|copy| copy.starts_with("--from=build "));
    for source in taken.iter().flat_map(|copy| copy.rsplit_once(' ').unwrap().0.split(' ')) {
        assert!(root.join(source).exists() && ignored.lines().all(|line| line != source), "{source} is not there");
    }
    assert_eq!(built, ["--from=build /source/target/release/bezant /usr/local/bin/bezant"]);
    assert!(
        recipe.contains("WORKDIR /source\n") && recipe.contains("cargo build --release --locked --package bezant\n")
    );
    let kept_back: Vec<_> = ignored.lines().collect();
    assert_eq!(kept_back, ["target", ".git"], "all else is a part of the build");
}
