//! Real PostgreSQL clients against a real cluster: psql, psycopg, SQLAlchemy, node-postgres and pgbench, while one
//! replica is down and then another lies; and pgbench and psql under each of the protocols that order every read, with
//! the same faults.
//!
//! What each of them does is in the folder beside this file, in its own language.

use super::ports::free_ports;
use super::running::Conversation;
use super::scratch::Scratch;
use crate::failure::{Result, ensure};
use crate::process::{self, logged, program, root, wait_until};
use crate::tools;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LOG: &str = "e2e-postgres";
/// How long the demo may take until it serves PostgreSQL.
const START_MAX: Duration = Duration::from_secs(30);
/// How long any one client may take.
const CLIENT_MAX: Duration = Duration::from_secs(60);
/// How long a command of the demo may take, with a replica down and another view to be found.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Accounts between which pgbench transfers; few enough for transactions to meet.
const ACCOUNTS: usize = 20;
/// What each account has at first.
const BALANCE: u64 = 1_000;
/// How long pgbench runs, in seconds, and with how many connections.
const BENCH: (u64, u64) = (5, 4);
/// The same under each of the protocols that order every read.
const SHORT_BENCH: (u64, u64) = (3, 2);
/// Those protocols.
const OTHERS: [&str; 3] = ["aliph", "ring", "ritas"];

/// The whole story.
pub(crate) fn run(binary: &Path) -> Result<String> {
    let (python, node) = (tools::postgres_python()?, tools::postgres_node()?);
    let scratch = Scratch::new("postgres")?;
    let port = free_ports(1)?.to_string();
    let mut demo = program(&binary.to_string_lossy(), &["demo", "--postgres", &port]);
    let mut demo = Conversation::start(LOG, &mut demo)?;
    let clients = Clients { port, python, node };
    wait_until("the gateway answers", START_MAX, || clients.value("select 1").is_ok_and(|value| value == "1"))?;

    clients.session(&scratch.path().join("session.txt"))?;
    ask(&mut demo, "kill 2", "killed")?;
    clients.python("driver.py")?;
    clients.python("orm.py")?;
    ask(&mut demo, "restart 2", "running")?;
    clients.javascript("driver.js")?;
    ask(&mut demo, "lie 3", "lying")?;
    let bench = clients.bench(BENCH)?;
    ask(&mut demo, "status --json", "\"at_fault\":[3]")?;
    demo.say("quit")?;
    let status = demo.finish(ANSWER_MAX)?;
    ensure(status.success(), || format!("the demo ended with {status} although all went right"))?;
    let others = OTHERS.map(|protocol| Ok(format!("{protocol} {}", under(binary, protocol, &clients)?)));
    let others: Vec<String> = others.into_iter().collect::<Result<_>>()?;
    Ok(format!("psql, psycopg, SQLAlchemy, node-postgres; pgbench: pbft {bench}; {}", others.join("; ")))
}

/// Transfers under another protocol, which orders every read, and what psql reads and writes during faults.
fn under(binary: &Path, protocol: &str, clients: &Clients) -> Result<String> {
    let arguments = ["demo", "--protocol", protocol, "--postgres", &clients.port];
    let mut demo = Conversation::start(LOG, &mut program(&binary.to_string_lossy(), &arguments))?;
    wait_until("the gateway answers", START_MAX, || clients.value("select 1").is_ok_and(|value| value == "1"))?;
    let bench = clients.bench(SHORT_BENCH)?;
    ask(&mut demo, "kill 2", "killed")?;
    clients.value("create table killed(n int); insert into killed values (1)")?;
    ask(&mut demo, "restart 2", "running")?;
    ask(&mut demo, "lie 3", "lying")?;
    let kept = clients.value("select n from killed")?;
    ensure(kept == "1", || format!("`{kept}` is read under {protocol} while a replica lies"))?;
    demo.say("quit")?;
    let status = demo.finish(ANSWER_MAX)?;
    ensure(status.success(), || format!("the demo of {protocol} ended with {status} although all went right"))?;
    Ok(bench)
}

fn ask(demo: &mut Conversation, line: &str, right: &str) -> Result {
    demo.say(line)?;
    demo.hear(&format!("the answer to `{line}`"), ANSWER_MAX, |answer| answer.contains(right))?;
    Ok(())
}

/// Those who ask, and where.
struct Clients {
    port: String,
    /// Where Python's packages are.
    python: PathBuf,
    /// Where those of node are.
    node: PathBuf,
}

impl Clients {
    fn file(name: &str) -> String {
        root().join("xtask/src/e2e/postgres").join(name).to_string_lossy().into_owned()
    }

    fn psql(&self, arguments: &[&str]) -> Command {
        let to = ["-X", "-A", "-q", "-h", "127.0.0.1", "-p", &self.port, "-U", "bezant"];
        program("psql", &[&to[..], arguments].concat())
    }

    /// The only value of a query.
    fn value(&self, sql: &str) -> Result<String> {
        Ok(process::output_of(&mut self.psql(&["-t", "-c", sql]))?.trim().to_owned())
    }

    /// Whether psql answers a person as it should.
    fn session(&self, output: &Path) -> Result {
        let to = output.to_string_lossy();
        logged(LOG, CLIENT_MAX, &mut self.psql(&["-o", &to, "-f", &Self::file("session.sql")]))?;
        let (found, wanted) = (std::fs::read_to_string(output)?, std::fs::read_to_string(Self::file("session.txt"))?);
        let mut both = found.lines().map(Some).chain([None]).zip(wanted.lines().map(Some).chain([None]));
        let differs = both.find(|(found, wanted)| found != wanted);
        let nothing = "the end";
        ensure(differs.is_none(), || {
            let (found, wanted) = differs.unwrap_or_default();
            format!("psql says `{}` and not `{}`", found.unwrap_or(nothing), wanted.unwrap_or(nothing))
        })
    }

    fn python(&self, script: &str) -> Result {
        let mut command = program("python3", &[&Self::file(script), &self.port]);
        logged(LOG, CLIENT_MAX, command.env("PYTHONPATH", &self.python)).map(drop)
    }

    fn javascript(&self, script: &str) -> Result {
        let folder = self.node.to_string_lossy();
        logged(LOG, CLIENT_MAX, &mut program("node", &[&Self::file(script), &self.port, &folder])).map(drop)
    }

    /// Transfers between accounts, several at once: in the end no money may be lost or made, and exactly as many
    /// transfers be on record as were acknowledged.
    fn bench(&self, (seconds, connections): (u64, u64)) -> Result<String> {
        self.value("create table account(id integer primary key, balance integer)")?;
        self.value("create table history(debited integer, credited integer)")?;
        let rows: Vec<String> = (1..=ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
        self.value(&format!("insert into account values {}", rows.join(", ")))?;
        let (seconds, connections) = (seconds.to_string(), connections.to_string());
        let script = Self::file("transfer.sql");
        let arguments = [
            "-h",
            "127.0.0.1",
            "-p",
            &self.port,
            "-U",
            "bezant",
            "-n",
            "-M",
            "prepared",
            "-c",
            &connections,
            "-T",
            &seconds,
            "--max-tries",
            "1000",
            "-f",
            &script,
            "bezant",
        ];
        let report = logged(LOG, CLIENT_MAX, &mut program("pgbench", &arguments))?;
        let figure = |name: &str| {
            let line = report.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default().to_owned()
        };
        let done = figure("number of transactions actually processed: ");
        let (total, recorded) =
            (self.value("select sum(balance) from account")?, self.value("select count(*) from history")?);
        ensure(total == (ACCOUNTS as u64 * BALANCE).to_string(), || format!("all accounts together have {total}"))?;
        ensure(recorded == done && done != "0", || {
            format!("{recorded} transfers are on record, and {done} were made")
        })?;
        let (rate, again) = (figure("tps = "), figure("number of transactions retried: "));
        Ok(format!("{done} transfers, {rate}/s, {again} of them tried more than once"))
    }
}
