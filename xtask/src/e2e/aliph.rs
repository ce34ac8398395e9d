//! `bezant demo --protocol aliph` under writes that never pause: each replica in turn is killed and started again, then
//! one lies. Every write that was acknowledged must be there in the end, and Chain must run again after every fault.

use super::Scratch;
use super::free_ports;
use super::redis::{Redis, encode};
use super::running::Conversation;
use super::words::Pair;
use crate::failure::{Failure, Result, ensure};
use crate::process;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const LOG: &str = "e2e-aliph";
const REPLICAS: usize = 4;
/// Connections that write, and writes under way on each: more than one client, so that Quorum hands over to Chain.
const CONNECTIONS: usize = 8;
const WINDOW: usize = 16;
/// How long a fault lasts.
const FAULT: Duration = Duration::from_millis(1_000);
/// How long it may take until Chain runs again. The Backups in between grow with every fault.
const CHAIN_MAX: Duration = Duration::from_secs(15);
/// How long any one command of the demo may take, and any one write.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// How long throughput is measured before the faults.
const MEASURED: Duration = Duration::from_millis(1_000);

/// The whole story.
pub(crate) fn run(binary: &Path) -> Result<String> {
    let scratch = Scratch::new("aliph")?;
    let redis = Redis { port: free_ports(1)? };
    let port = redis.port.to_string();
    let arguments = ["demo", "--protocol", "aliph", "--redis", &port];
    let demo = Conversation::start(LOG, &mut process::program(&binary.to_string_lossy(), &arguments))?;
    let mut demo = Demo { demo };
    demo.ask("count", |line| line == "0")?;

    let writers = Writers::default();
    let (story, written) = std::thread::scope(|scope| {
        let writers = &writers;
        let start = |number| scope.spawn(move || writers.write(redis, number));
        let threads: Vec<_> = (0..CONNECTIONS).map(start).collect();
        let story = tell(&mut demo, writers);
        writers.stop.store(true, Ordering::Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<u64>>| {
            thread.join().map_err(|_| Failure::new("a writer panicked"))?
        };
        let written: Result<Vec<u64>> = threads.into_iter().map(join).collect();
        (story, written)
    });
    // A write that failed says more than what did not happen because of it.
    let (written, story) = (written?, story?);
    let pairs: Vec<Pair> = written.iter().enumerate().flat_map(|(number, round)| pairs(number, *round)).collect();
    for (found, (key, value)) in redis.read(&pairs, scratch.path(), ANSWER_MAX)?.iter().zip(&pairs) {
        ensure(found == value, || format!("`{key}` is `{found}`, but `{value}` was acknowledged last"))?;
    }
    demo.demo.say("quit")?;
    let status = demo.demo.finish(ANSWER_MAX)?;
    ensure(status.success(), || format!("the demo ended with {status} although all went right"))?;
    Ok(format!("{} writes, none lost; {story}", writers.acknowledged.into_inner()))
}

/// All faults, one after the other. Returns what happened in words.
fn tell(demo: &mut Demo, writers: &Writers) -> Result<String> {
    demo.wait_for_chain()?;
    let before = writers.acknowledged.load(Ordering::Relaxed);
    std::thread::sleep(MEASURED);
    let rate = (writers.acknowledged.load(Ordering::Relaxed) - before) as f64 / MEASURED.as_secs_f64();
    let mut back = Vec::new();
    for replica in 0..REPLICAS {
        demo.ask(&format!("kill {replica}"), |line| line.contains("killed"))?;
        std::thread::sleep(FAULT);
        demo.ask(&format!("restart {replica}"), |line| line.contains("running"))?;
        back.push(demo.wait_for_chain()?);
    }
    demo.ask("lie 3", |line| line.contains("lying"))?;
    std::thread::sleep(FAULT);
    demo.ask("honest 3", |line| line.contains("honest"))?;
    back.push(demo.wait_for_chain()?);
    let switches = demo.status()?["replicas"][0]["switches"].as_u64().unwrap_or(0);
    let back: Vec<_> = back.iter().map(|time| format!("{:.1}", time.as_secs_f64())).collect();
    let back = back.join(", ");
    Ok(format!("{rate:.0}/s before the faults; back on Chain {back} s after each; {switches} switches"))
}

/// The demo at its prompt.
struct Demo {
    demo: Conversation,
}

impl Demo {
    fn ask(&mut self, line: &str, right: impl Fn(&str) -> bool) -> Result<String> {
        self.demo.say(line)?;
        self.demo.hear(&format!("the answer to `{line}`"), ANSWER_MAX, right)
    }

    fn status(&mut self) -> Result<Value> {
        let line = self.ask("status --json", |line| line.starts_with('{'))?;
        serde_json::from_str(&line).map_err(|error| Failure::new(format!("the status is no JSON: {error}")))
    }

    /// Waits until all replicas run Chain, and says how long that took, as finely as the status can be asked.
    fn wait_for_chain(&mut self) -> Result<Duration> {
        let start = Instant::now();
        loop {
            let status = self.status()?;
            if runs_everywhere(&status, "chain") {
                return Ok(start.elapsed());
            }
            ensure(start.elapsed() < CHAIN_MAX, || format!("Chain does not run again: {status}"))?;
        }
    }
}

/// Whether all replicas are up and run this part.
fn runs_everywhere(status: &Value, part: &str) -> bool {
    let replicas = status["replicas"].as_array().into_iter().flatten();
    replicas.filter(|replica| replica["part"] == part).count() == REPLICAS
}

/// Those who write, and what came of it.
#[derive(Default)]
struct Writers {
    stop: AtomicBool,
    acknowledged: AtomicUsize,
}

impl Writers {
    /// Sets the keys of one connection again and again, to the number of the round. Returns the last round, all of
    /// which was acknowledged.
    fn write(&self, redis: Redis, number: usize) -> Result<u64> {
        let stream = TcpStream::connect(("127.0.0.1", redis.port))?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        let mut answers = BufReader::new(stream.try_clone()?);
        let mut round = 0;
        while !self.stop.load(Ordering::Relaxed) {
            round += 1;
            let mut commands = Vec::new();
            let pairs = pairs(number, round);
            pairs.iter().for_each(|(key, value)| encode(&["SET", key, value], &mut commands));
            (&stream).write_all(&commands)?;
            for (key, value) in pairs {
                let mut answer = String::new();
                answers.read_line(&mut answer)?;
                ensure(answer == "+OK\r\n", || format!("SET `{key}` `{value}` was answered {answer:?}"))?;
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(round)
    }
}

/// What a connection writes in one round.
fn pairs(number: usize, round: u64) -> Vec<Pair> {
    (0..WINDOW).map(|slot| (format!("writer-{number}-{slot}"), round.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_replica_elsewhere_is_not_everywhere() {
        let chain = serde_json::json!({"part": "chain"});
        let all = serde_json::json!({"replicas": [chain, chain, chain, chain]});
        assert!(runs_everywhere(&all, "chain"));
        let some = serde_json::json!({"replicas": [chain, chain, {"part": "quorum"}, chain]});
        assert!(!runs_everywhere(&some, "chain"));
        assert!(!runs_everywhere(&Value::Null, "chain"));
    }
}
