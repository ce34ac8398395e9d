//! `cargo xtask referee`: the PostgreSQL gateway against a real PostgreSQL.
//!
//! Both are asked the same statements through the drivers that people use, and a program must not be able to tell them
//! apart: rows, types and SQLSTATEs are equal, or the gateway refuses what `refusals.txt` says that it refuses. The
//! parts, each in the folder beside this file:
//!
//! | part | what is asked |
//! |---|---|
//! | functions | calls of the replicas' functions for PostgreSQL's types, by `functions.py`; they need no gateway |
//! | a driver's name | types × values × operators, by `statements.py`, through that driver |
//! | fuzz | queries at random over tables of mixed types, by `grammar.py` |
//! | isolation | transactions side by side: what commits must be what some order of them gives, by `isolation.py` |

use super::ports::free_ports;
use super::running::{Conversation, Running};
use super::scratch::Scratch;
use crate::failure::{Failure, Result, ensure};
use crate::options::Options;
use crate::process::{self, logged, output_of, program, root, wait_until};
use crate::tools;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LOG: &str = "referee";
/// How long a server may take until it answers.
const START_MAX: Duration = Duration::from_secs(30);
/// How long making or comparing statements may take.
const SCRIPT_MAX: Duration = Duration::from_secs(120);
/// How long one driver may take for one file of statements.
const DRIVER_MAX: Duration = Duration::from_secs(600);
/// Drivers, each of which hears all of the matrix in the long form.
const DRIVERS: [&str; 6] = ["psycopg-text", "psycopg-binary", "psycopg2", "asyncpg", "node-postgres", "pgjdbc"];
/// Scripts of the matrix that one driver hears in the short form, and scripts of one round of the fuzzer.
const SCRIPTS: u64 = 6;
const FUZZ_SCRIPTS: u64 = 20;
/// Calls of each family of functions in the short form, and in the long one.
const CALLS: [u64; 2] = [10, 400];
/// Seconds of transactions side by side in the short form.
const ISOLATION_SECONDS: u64 = 5;

/// What came of some statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Verdict {
    equal: u64,
    refused: u64,
    different: u64,
}

impl Verdict {
    /// The last line of a script's report: three numbers.
    fn parse(report: &str) -> Result<Self> {
        let last = report.lines().last().unwrap_or_default();
        let numbers: Vec<u64> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [equal, refused, different] => Ok(Self { equal, refused, different }),
            _ => Err(Failure::new(format!("`{last}` is no verdict"))),
        }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            equal: self.equal + other.equal,
            refused: self.refused + other.refused,
            different: self.different + other.different,
        }
    }
}

/// `cargo xtask referee`.
pub(crate) fn run(arguments: &[String]) -> Result {
    let options = Options::parse(arguments, &["--seconds", "--seed", "--binary"])?;
    process::clear_log(LOG)?;
    let binary = match options.text("--binary") {
        Some(path) => PathBuf::from(path),
        None => {
            let build = ["build", process::PROFILE, "--locked", "-p", "bezant"];
            logged("build", Duration::from_secs(20 * 60), &mut process::cargo(&build))?;
            process::binary()
        }
    };
    let seed = options.number("--seed", 1)?;
    if options.text("--seconds").is_none() {
        println!("{}", gate(&binary, seed)?);
        return Ok(());
    }
    let court = Court::open(&binary, seed)?;
    let parts = court.long(Duration::from_secs(options.number("--seconds", 0)?))?;
    court.close()?;
    print!("{}", table(&parts));
    judged(&parts)
}

/// The short form: what fits into the gate.
pub(crate) fn gate(binary: &Path, seed: u64) -> Result<String> {
    let court = Court::open(binary, seed)?;
    let parts = court.short()?;
    court.close()?;
    let text = table(&parts);
    judged(&parts).map_err(|failure| failure.during(&text))?;
    let all = parts.iter().fold(Verdict::default(), |all, (_, verdict)| all.and(*verdict));
    Ok(format!("{} equal, {} refused as documented\n{}", all.equal, all.refused, text.trim_end()))
}

/// The counts, a line for each part.
fn table(parts: &[(String, Verdict)]) -> String {
    let mut text = format!("{:<16} {:>8} {:>8} {:>10}\n", "part", "equal", "refused", "different");
    for (name, Verdict { equal, refused, different }) in parts {
        text += &format!("{name:<16} {equal:>8} {refused:>8} {different:>10}\n");
    }
    text
}

fn judged(parts: &[(String, Verdict)]) -> Result {
    let wrong: Vec<&str> = parts.iter().filter(|(_, of)| of.different > 0).map(|(name, _)| name.as_str()).collect();
    ensure(wrong.is_empty(), || format!("PostgreSQL answers otherwise: {}", wrong.join(", ")))?;
    let idle: Vec<&str> = parts.iter().filter(|(_, of)| of.equal == 0).map(|(name, _)| name.as_str()).collect();
    ensure(idle.is_empty(), || format!("nothing was equal, so nothing was compared: {}", idle.join(", ")))
}

/// Both servers, and those who ask them.
struct Court {
    scratch: Scratch,
    postgresql: Postgresql,
    demo: Conversation,
    /// The gateway's port.
    port: String,
    tools: tools::Referee,
    seed: u64,
}

impl Court {
    fn open(binary: &Path, seed: u64) -> Result<Self> {
        let tools = tools::referee()?;
        let scratch = Scratch::new("referee")?;
        let first = free_ports(2)?;
        let postgresql = Postgresql::start(scratch.path(), first)?;
        let port = (first + 1).to_string();
        let mut demo = program(&binary.to_string_lossy(), &["demo", "--postgres", &port]);
        let demo = Conversation::start(LOG, &mut demo)?;
        wait_until("the gateway answers", START_MAX, || answers(&port))?;
        Ok(Self { scratch, postgresql, demo, port, tools, seed })
    }

    fn close(self) -> Result {
        let Self { mut demo, .. } = self;
        demo.say("quit")?;
        let status = demo.finish(START_MAX)?;
        ensure(status.success(), || format!("the demo ended with {status}"))
    }

    /// A sample of everything.
    fn short(&self) -> Result<Vec<(String, Verdict)>> {
        // Another pair of drivers for each seed.
        let chosen = (0..2).map(|number| DRIVERS[(self.seed as usize * 2 + number) % DRIVERS.len()]);
        let mut parts = vec![("functions".to_owned(), self.functions(CALLS[0])?)];
        for driver in chosen {
            parts.push((driver.to_owned(), self.ask(driver, "matrix", self.seed, SCRIPTS)?));
        }
        parts.push(("fuzz".into(), self.ask(DRIVERS[0], "fuzz", self.seed, FUZZ_SCRIPTS)?));
        parts.push(("isolation".into(), self.isolation(ISOLATION_SECONDS)?));
        Ok(parts)
    }

    /// All of the matrix through every driver, and for the rest of the time the fuzzer and transactions.
    fn long(&self, time: Duration) -> Result<Vec<(String, Verdict)>> {
        let end = Instant::now() + time;
        let mut parts = vec![("functions".to_owned(), self.functions(CALLS[1])?)];
        for driver in DRIVERS {
            parts.push((driver.to_owned(), self.ask(driver, "matrix", self.seed, 0)?));
        }
        parts.push(("isolation".into(), self.isolation((time.as_secs() / 4).max(ISOLATION_SECONDS))?));
        let (mut all, mut seed) = (Verdict::default(), self.seed);
        while all == Verdict::default() || Instant::now() < end && all.different == 0 {
            all = all.and(self.ask(DRIVERS[seed as usize % DRIVERS.len()], "fuzz", seed, FUZZ_SCRIPTS)?);
            seed += 1;
        }
        parts.push(("fuzz".into(), all));
        Ok(parts)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// One of the scripts beside this file.
    fn python(&self, script: &str, arguments: &[&str]) -> Command {
        let mut command = program("python3", &[&[script_path(script).as_str()], arguments].concat());
        command.env("PYTHONPATH", &self.tools.python);
        command
    }

    /// Calls of functions, of which the test program of crates/sql knows what to do with PostgreSQL's answers.
    fn functions(&self, calls: u64) -> Result<Verdict> {
        let (calls, seed) = (calls.to_string(), self.seed.to_string());
        let lines = self.file("functions.tsv");
        let mut script = self.python("functions.py", &[&self.postgresql.port, &calls, &seed]);
        piped(&mut script, None, &lines, SCRIPT_MAX)?;
        let arguments = ["test", "--locked", "-p", "bezant-sql", "--test", "functions", "--", "--nocapture"];
        let mut test = process::cargo(&arguments);
        let report = logged(LOG, DRIVER_MAX, test.env("BEZANT_FUNCTIONS", &lines))?;
        let counts = report.lines().find(|line| line.ends_with(" different")).unwrap_or_default();
        let numbers: Vec<&str> = counts.split(' ').filter(|word| word.bytes().all(|b| b.is_ascii_digit())).collect();
        Verdict::parse(&numbers.join(" "))
    }

    /// Statements of a kind, asked of both through a driver.
    fn ask(&self, driver: &str, kind: &str, seed: u64, count: u64) -> Result<Verdict> {
        let (seed, count) = (seed.to_string(), count.to_string());
        let (statements, plain) = (self.file("statements"), self.file("plain"));
        let (theirs, ours) = (self.file("theirs"), self.file("ours"));
        piped(&mut self.python("statements.py", &[kind, &seed, &count]), None, &statements, SCRIPT_MAX)?;
        piped(&mut self.python("statements.py", &["plain"]), Some(&statements), &plain, SCRIPT_MAX)?;
        let input = if driver == "pgjdbc" { &plain } else { &statements };
        let mut asked = self.driver(driver, &self.postgresql.port);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| piped(&mut asked, Some(input), &theirs, DRIVER_MAX));
            let own = piped(&mut self.driver(driver, &self.port), Some(input), &ours, DRIVER_MAX);
            own.and(other.join().expect("asking does not panic"))
        })?;
        let paths = [statements, theirs, ours].map(|path| path.to_string_lossy().into_owned());
        let refusals = script_path("refusals.txt");
        let report = output_of(&mut self.python("compare.py", &[&paths[0], &paths[1], &paths[2], &refusals, "20"]))?;
        told(&report)
    }

    fn driver(&self, name: &str, port: &str) -> Command {
        match name {
            "node-postgres" => program("node", &[&script_path("drive.js"), port, &self.tools.node.to_string_lossy()]),
            "pgjdbc" => program("java", &["-cp", &self.tools.jdbc.to_string_lossy(), &script_path("Drive.java"), port]),
            _ => self.python("drive.py", &[name, port]),
        }
    }

    fn isolation(&self, seconds: u64) -> Result<Verdict> {
        let (seconds, seed) = (seconds.to_string(), self.seed.to_string());
        let arguments = [self.port.as_str(), &self.postgresql.port, &seed, &seconds];
        told(&output_of(&mut self.python("isolation.py", &arguments))?)
    }
}

/// A report's verdict; the differences before it are for the reader.
fn told(report: &str) -> Result<Verdict> {
    let verdict = Verdict::parse(report)?;
    if verdict.different > 0 {
        print!("{report}");
    }
    Ok(verdict)
}

fn script_path(name: &str) -> String {
    root().join("xtask/src/e2e/referee").join(name).to_string_lossy().into_owned()
}

/// Runs a program from a file, or nothing, to a file. What it complains about goes to the log.
fn piped(command: &mut Command, input: Option<&Path>, output: &Path, limit: Duration) -> Result {
    let log = File::options().create(true).append(true).open(process::log_path(LOG)?)?;
    let input = input.map_or(Ok(Stdio::null()), |path| File::open(path).map(Stdio::from))?;
    let mut child = command.stdin(input).stdout(File::create(output)?).stderr(log).spawn()?;
    let status = process::wait(&mut child, limit)?;
    ensure(status.is_some_and(|status| status.success()), || {
        let name = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        format!("`{name}` did not go well; its complaints are in the log `{LOG}`")
    })
}

/// Whether a server answers.
pub(super) fn answers(port: &str) -> bool {
    let arguments = ["-X", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres", "-Atc", "select 1"];
    output_of(&mut program("psql", &arguments)).is_ok_and(|answer| answer.trim() == "1")
}

/// A real PostgreSQL with an empty database in a folder of its own. Its durability is nobody's concern.
pub(super) struct Postgresql {
    pub(super) port: String,
    _server: Running,
}

impl Postgresql {
    pub(super) fn start(folder: &Path, port: u16) -> Result<Self> {
        let home = folder.join("postgresql");
        std::fs::create_dir_all(&home)?;
        let (home, data) = (home.to_string_lossy().into_owned(), home.join("data").to_string_lossy().into_owned());
        if tools::is_root() {
            output_of(&mut program("chown", &["nobody", &home]))?;
        }
        let make = ["-D", &data, "-U", "postgres", "-A", "trust", "--locale=C", "-E", "UTF8", "--no-sync"];
        logged(LOG, START_MAX, &mut unprivileged("initdb", &make))?;
        let port = port.to_string();
        let settings = ["listen_addresses=127.0.0.1", "timezone=UTC", "fsync=off", "max_connections=50"];
        let mut server = unprivileged("postgres", &["-D", &data, "-p", &port, "-k", &home]);
        settings.iter().for_each(|setting| _ = server.args(["-c", setting]));
        let server = Running::start(LOG, &mut server)?;
        wait_until("PostgreSQL answers", START_MAX, || answers(&port))?;
        Ok(Self { port, _server: server })
    }
}

/// One of PostgreSQL's programs, which refuse to be root's.
fn unprivileged(name: &str, arguments: &[&str]) -> Command {
    let path = format!("{}/{name}", tools::POSTGRESQL);
    let mut command = match tools::is_root() {
        true => {
            let mut command = program("setpriv", &["--reuid=nobody", "--regid=nogroup", "--clear-groups", &path]);
            command.args(arguments);
            command
        }
        false => program(&path, arguments),
    };
    command.current_dir("/");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_the_last_line() {
        let verdict = Verdict::parse("a difference\n3 2 1\n").expect("three numbers");
        assert_eq!(verdict, Verdict { equal: 3, refused: 2, different: 1 });
        assert!(Verdict::parse("").is_err() && Verdict::parse("1 2").is_err());
    }

    #[test]
    fn differences_and_silence_are_failures() {
        let part = |equal, different| vec![("a".to_owned(), Verdict { equal, refused: 1, different })];
        assert!(judged(&part(1, 0)).is_ok());
        assert!(judged(&part(1, 1)).is_err() && judged(&part(0, 0)).is_err());
    }
}
