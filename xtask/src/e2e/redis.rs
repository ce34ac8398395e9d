//! `redis-cli` as the user's client: what it sends and what it makes of the answers is its own. Only where it matters
//! to the last command what was acknowledged and what not, we count the answers ourselves.

use super::words::Pair;
use crate::failure::{Failure, Result, ensure};
use crate::process;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Keys in one MGET.
const KEYS_PER_READ: usize = 100;
/// Writes under way at once where every acknowledgement counts.
const WINDOW: usize = 64;
/// How long such a write may hang when the power has failed.
const CUT_MAX: Duration = Duration::from_secs(5);

/// A gateway's port on this machine.
#[derive(Clone, Copy)]
pub(super) struct Redis {
    pub(super) port: u16,
}

impl Redis {
    fn command(self, arguments: &[&str]) -> Command {
        let port = self.port.to_string();
        process::program("redis-cli", &[&["-h", "127.0.0.1", "-p", &port], arguments].concat())
    }

    /// Whether it answers.
    pub(super) fn is_up(self) -> bool {
        process::output_of(&mut self.command(&["PING"])).is_ok_and(|answer| answer.trim() == "PONG")
    }

    /// How many keys there are. A cluster that cannot answer just now has none that we know of.
    pub(super) fn keys(self) -> usize {
        let answer = process::output_of(&mut self.command(&["DBSIZE"])).unwrap_or_default();
        answer.trim().parse().unwrap_or(0)
    }

    /// Starts `redis-cli --pipe` with a SET for each pair.
    pub(super) fn load(self, pairs: &[Pair], folder: &Path) -> Result<Load> {
        let mut text = Vec::new();
        for (key, value) in pairs {
            encode(&["SET", key, value], &mut text);
        }
        let commands = folder.join("load.resp");
        let report = folder.join("load.out");
        std::fs::write(&commands, text)?;
        let mut command = self.command(&["--pipe", "--pipe-timeout", "120"]);
        let output = File::create(&report)?;
        command.stdin(File::open(&commands)?).stdout(output.try_clone()?).stderr(output);
        Ok(Load { child: command.spawn()?, report, count: pairs.len() })
    }

    /// Runs `redis-benchmark` with so many SETs, and returns how many it did in a second. It fails if one is refused.
    pub(super) fn benchmark(self, writes: usize) -> Result<f64> {
        let (port, writes) = (self.port.to_string(), writes.to_string());
        let arguments =
            ["-h", "127.0.0.1", "-p", &port, "-t", "set", "-n", &writes, "-r", "1000", "-c", "8", "-P", "8"];
        let report = process::output_of(process::program("redis-benchmark", &arguments).arg("--csv"))?;
        let rate = report.lines().find_map(|line| line.strip_prefix("\"SET\",\"")?.split('"').next()?.parse().ok());
        rate.ok_or_else(|| Failure::new(format!("redis-benchmark says no rate: {report}")))
    }

    /// Reads the values of all keys with MGET, in order; empty where there is none.
    pub(super) fn read(self, pairs: &[Pair], folder: &Path, limit: Duration) -> Result<Vec<String>> {
        let mut text = String::new();
        for chunk in pairs.chunks(KEYS_PER_READ) {
            text += "MGET";
            chunk.iter().for_each(|(key, _)| text += &format!(" {}", quoted(key)));
            text.push('\n');
        }
        let commands = folder.join("read.txt");
        let report = folder.join("read.out");
        std::fs::write(&commands, text)?;
        let mut command = self.command(&["--raw"]);
        let output = File::create(&report)?;
        command.stdin(File::open(&commands)?).stdout(output.try_clone()?).stderr(output);
        let status = process::wait(&mut command.spawn()?, limit)?;
        ensure(status.is_some_and(|status| status.success()), || "redis-cli could not read all keys back".into())?;
        let values: Vec<String> = std::fs::read_to_string(&report)?.lines().map(String::from).collect();
        ensure(values.len() == pairs.len(), || format!("{} answers for {} keys", values.len(), pairs.len()))?;
        Ok(values)
    }

    /// Types commands, one a line, on one connection, and returns what is shown.
    pub(super) fn type_in(self, commands: &str, folder: &Path) -> Result<String> {
        let script = folder.join("commands.txt");
        std::fs::write(&script, commands)?;
        let output = self.command(&["--no-raw"]).stdin(File::open(&script)?).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Sets pairs in order, a few at a time, until the connection breaks. `acknowledged` counts those that were.
    pub(super) fn write_until_cut(self, pairs: &[Pair], acknowledged: &AtomicUsize) -> Result {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(CUT_MAX))?;
        let mut answers = BufReader::new(stream.try_clone()?);
        for window in pairs.chunks(WINDOW) {
            let mut commands = Vec::new();
            window.iter().for_each(|(key, value)| encode(&["SET", key, value], &mut commands));
            if (&stream).write_all(&commands).is_err() {
                return Ok(());
            }
            for (key, _) in window {
                let mut answer = String::new();
                match answers.read_line(&mut answer) {
                    Ok(_) if answer == "+OK\r\n" => _ = acknowledged.fetch_add(1, Ordering::Relaxed),
                    // The gateway still answers, but has nobody left to ask: from here on nothing is promised.
                    _ => return ensure(!answer.starts_with('+'), || format!("SET `{key}` was answered {answer:?}")),
                }
            }
        }
        Err(Failure::new("all was written before the power failed: the test is too slow or its data too small"))
    }
}

/// A load that is under way.
pub(super) struct Load {
    child: Child,
    report: std::path::PathBuf,
    count: usize,
}

impl Load {
    /// Waits for its end; every command must have been acknowledged.
    pub(super) fn finish(mut self, limit: Duration) -> Result {
        let status = process::wait(&mut self.child, limit)?;
        let report = std::fs::read_to_string(&self.report)?;
        let last = report.lines().last().unwrap_or("redis-cli says nothing");
        ensure(status.is_some_and(|status| status.success()), || format!("the load failed: {last}"))?;
        ensure(last == format!("errors: 0, replies: {}", self.count), || format!("the load ended with: {last}"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It has ended already unless the test failed in between.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A command as the protocol has it.
pub(super) fn encode(words: &[&str], out: &mut Vec<u8>) {
    out.extend(format!("*{}\r\n", words.len()).bytes());
    for word in words {
        out.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
}

/// A word as redis-cli's own command line takes it.
fn quoted(word: &str) -> String {
    let mut text = String::from("\"");
    for byte in word.bytes() {
        if byte.is_ascii_alphanumeric() {
            text.push(char::from(byte));
        } else {
            write!(text, "\\x{byte:02x}").expect("writing to a string cannot fail");
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_encoded() {
        let mut out = Vec::new();
        encode(&["SET", "é", "1 b"], &mut out);
        assert_eq!(out, "*3\r\n$3\r\nSET\r\n$2\r\né\r\n$3\r\n1 b\r\n".as_bytes());
        assert_eq!(quoted("é's"), "\"\\xc3\\xa9\\x27s\"");
    }
}
