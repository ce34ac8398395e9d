//! A composition under writes that never pause: each replica in turn is killed and started again, then one lies, then
//! a client sends bad MACs and panics all the time, while `redis-benchmark` writes as well. Every write that was
//! acknowledged must be there in the end, and the fast protocol must run again after every fault.
//!
//! As in the paper on Abstract, k grows slowly at first (`flattened`): else the slow instance after the fifth fault
//! would have 16 times as many requests to answer as the first one.
//!
//! Two gateways write, for one alone is a single client to the replicas: what it sends arrives at all of them in one
//! order, and Quorum serves it well.

use super::cluster::{Cluster, REPLICAS};
use super::redis::{Redis, encode};
use super::scratch::Scratch;
use super::words::Pair;
use crate::failure::{Failure, Result, ensure};
use crate::process::wait_until;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// Of what the story is told.
struct Composition {
    /// As the command line has it, and what the log is called.
    protocol: &'static str,
    log: &'static str,
    /// The part that is to run when all is well.
    fast: &'static str,
}

const ALIPH: Composition = Composition { protocol: "aliph", log: "e2e-aliph", fast: "chain" };
/// It has no other part that it could fall back to.
const RITAS: Composition = Composition { protocol: "ritas", log: "e2e-ritas", fast: "" };
const RING: Composition = Composition { protocol: "ring", log: "e2e-ring", fast: "ring-fast" };
/// Connections to each gateway, and writes under way on each.
const CONNECTIONS: usize = 4;
const WINDOW: usize = 16;
/// How long a fault lasts.
const FAULT: Duration = Duration::from_millis(1_000);
/// Writes of `redis-benchmark`, which begins with the attack and ends some time after it.
const BENCHMARK_WRITES: usize = 20_000;
/// How long it may take until the fast part runs again, on a machine that does other things as well. We want 1 s.
const FAST_MAX: Duration = Duration::from_secs(20);
/// How long a write, or reading all back, may take.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// How long throughput is measured, before the faults, while a replica lies, and after them.
const MEASURED: Duration = Duration::from_millis(1_000);

/// The whole story, of Aliph.
pub(crate) fn aliph(binary: &Path) -> Result<String> {
    run(binary, &ALIPH)
}

/// The same of Ring.
pub(crate) fn ring(binary: &Path) -> Result<String> {
    run(binary, &RING)
}

/// The same of RITAS.
pub(crate) fn ritas(binary: &Path) -> Result<String> {
    run(binary, &RITAS)
}

fn run(binary: &Path, composition: &Composition) -> Result<String> {
    let scratch = Scratch::new(composition.log)?;
    let flags = ["--protocol", composition.protocol, "--backup-quota", "flattened"];
    let mut cluster = Cluster::prepare(composition.log, binary, scratch.path(), &flags)?;
    let attacker = cluster.admit("attacker")?;
    cluster.start_all()?;
    let (_gateway, second) = cluster.second_gateway()?;
    let gateways = [cluster.redis, second];
    let writers = Writers::default();
    let (story, written) = thread::scope(|scope| {
        let writers = &writers;
        let start = |number| scope.spawn(move || writers.write(gateways[number % 2], number));
        let threads: Vec<_> = (0..2 * CONNECTIONS).map(start).collect();
        let story = run_all(&mut cluster, composition.fast, writers, &attacker);
        writers.stop.store(true, Ordering::Relaxed);
        (story, threads.into_iter().map(join).collect::<Result<Vec<u64>>>())
    });
    // A write that failed says more than what did not happen because of it.
    let (written, story) = (written?, story?);
    let pairs: Vec<Pair> = written.iter().enumerate().flat_map(|(number, round)| pairs(number, *round)).collect();
    for (found, (key, value)) in cluster.redis.read(&pairs, scratch.path(), ANSWER_MAX)?.iter().zip(&pairs) {
        ensure(found == value, || format!("`{key}` is `{found}`, but `{value}` was acknowledged last"))?;
    }
    Ok(format!("{} writes, none lost; {story}", writers.acknowledged.into_inner()))
}

fn join(thread: ScopedJoinHandle<'_, Result<u64>>) -> Result<u64> {
    thread.join().map_err(|_| Failure::new("a writer panicked"))?
}

/// All faults, one after the other. Returns what happened in words.
fn run_all(cluster: &mut Cluster, fast: &str, writers: &Writers, attacker: &Path) -> Result<String> {
    wait_for(fast, cluster)?;
    let is_served = || writers.acknowledged.load(Ordering::Relaxed) > 0;
    wait_until("a write is acknowledged", ANSWER_MAX, is_served)?;
    let before = writers.rate();
    let mut back = Vec::new();
    for replica in 0..REPLICAS {
        cluster.kill_replica(replica)?;
        thread::sleep(FAULT);
        cluster.start_replica(replica)?;
        back.push(wait_for(fast, cluster)?);
    }
    cluster.order_replica(3, "lie intruder")?;
    let before_lie = writers.acknowledged.load(Ordering::Relaxed);
    let lied_to = writers.rate();
    let goes_on = || writers.acknowledged.load(Ordering::Relaxed) > before_lie;
    wait_until("a write is acknowledged while a replica lies", ANSWER_MAX, goes_on)?;
    cluster.order_replica(3, "honest")?;
    back.push(wait_for(fast, cluster)?);
    let benchmark = thread::scope(|scope| {
        let redis = cluster.redis;
        let benchmark = scope.spawn(move || redis.benchmark(BENCHMARK_WRITES));
        cluster.attack(attacker, FAULT.as_secs())?;
        back.push(wait_for(fast, cluster)?);
        benchmark.join().map_err(|_| Failure::new("the thread of redis-benchmark panicked"))?
    })?;
    let after = writers.rate();
    ensure(after > 0.0, || format!("nothing is acknowledged on {fast}"))?;
    let switches = cluster.report(0)["switches"].as_u64().unwrap_or(0);
    let back: Vec<_> = back.iter().map(|time| format!("{:.1}", time.as_secs_f64())).collect();
    let back = back.join(", ");
    let fast = if fast.is_empty() { "there" } else { fast };
    Ok(format!(
        "{before:.0}/s before the faults, {lied_to:.0}/s while one lies, {after:.0}/s after; {fast} again {back} s \
         after each, the last of which was a client's attack under redis-benchmark ({benchmark:.0}/s); {switches} \
         switches"
    ))
}

/// Waits until every replica runs the same instance of this part and has executed what any of them had executed when
/// the wait began: else the next fault would make one faulty replica too many. Says how long that took.
fn wait_for(part: &str, cluster: &Cluster) -> Result<Duration> {
    let reports = || (0..REPLICAS).map(|id| cluster.report(id)).collect::<Vec<_>>();
    let position = |report: &Value| report["position"].as_u64();
    let reached = reports().iter().filter_map(position).max();
    let all_are_back = || {
        let reports = reports();
        reports.iter().all(|report| {
            let is_level = position(report) >= reached.max(Some(0));
            report["part"] == part && report["instance"] == reports[0]["instance"] && is_level
        })
    };
    wait_until(&format!("every replica runs one instance of {part} and is level"), FAST_MAX, all_are_back)
}

/// Those who write, and what came of it.
#[derive(Default)]
struct Writers {
    stop: AtomicBool,
    acknowledged: AtomicUsize,
}

impl Writers {
    /// Writes that are acknowledged in a second.
    fn rate(&self) -> f64 {
        let before = self.acknowledged.load(Ordering::Relaxed);
        thread::sleep(MEASURED);
        (self.acknowledged.load(Ordering::Relaxed) - before) as f64 / MEASURED.as_secs_f64()
    }

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
    fn no_two_writers_share_a_key() {
        let keys: std::collections::BTreeSet<_> = (0..3).flat_map(|number| pairs(number, 7)).collect();
        assert_eq!(keys.len(), 3 * WINDOW);
        assert!(keys.iter().all(|(_, value)| value == "7"));
    }
}
