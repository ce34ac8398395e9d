//! A four-process cluster under real data, with a crash, a liar and a blackout.
//!
//! The faults come one after the other, for four replicas tolerate one at a time: replica 2 is killed and restarted
//! while the first half loads; when it has caught up by itself, replica 3 lies while the second half loads. Then, in
//! the middle of writes that replace what was loaded, all of them are killed at once.

use super::ports::free_ports;
use super::redis::Redis;
use super::redis_answers;
use super::running::Running;
use super::scratch::Scratch;
use super::words::{self, Pair};
use crate::failure::{Failure, Result, ensure};
use crate::process::{self, wait_until};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const LOG: &str = "e2e-cluster";
pub(super) const REPLICAS: usize = 4;
/// How many keys are loaded, half of them with each fault.
const KEYS: usize = 200_000;
/// Neighbouring ports to reserve: some for each replica, and the gateway's.
const PORTS: u16 = 64;
/// Where the admin port of a replica is, behind its first, and how far the next replica's ports are.
const ADMIN_PORT: u16 = 2;
const PORT_STEP: u16 = 10;
/// How long a replica may take to report.
const REPORT_MAX: Duration = Duration::from_secs(1);
/// How long a cluster may take to answer after it was started.
const START_MAX: Duration = Duration::from_secs(30);
/// How long half of the keys may take to load or to read.
const LOAD_MAX: Duration = Duration::from_secs(240);
/// How long a replica may take to catch up, or all of them to reach one root.
const CATCH_UP_MAX: Duration = Duration::from_secs(120);

/// The whole story.
pub(crate) fn run(binary: &Path) -> Result<String> {
    let scratch = Scratch::new("cluster")?;
    let pairs = words::pairs(KEYS)?;
    let (first, second) = pairs.split_at(KEYS / 2);
    let mut cluster = Cluster::prepare(LOG, binary, scratch.path(), &["--protocol", "pbft"])?;
    cluster.start_all()?;
    cluster.check_sockets()?;
    redis_answers::check(cluster.redis, LOG, scratch.path())?;
    let start = Instant::now();

    let load = cluster.redis.load(first, scratch.path())?;
    cluster.wait_for_keys(first.len() / 4)?;
    cluster.kill_replica(2)?;
    cluster.wait_for_keys(first.len() / 2)?;
    cluster.start_replica(2)?;
    load.finish(LOAD_MAX)?;
    let catch_up = cluster.wait_for_one_root()?;

    cluster.order_replica(3, "lie intruder")?;
    cluster.redis.load(second, scratch.path())?.finish(LOAD_MAX)?;
    let loaded = start.elapsed();
    cluster.wait_for_fault(3)?;
    cluster.check(&pairs)?;
    cluster.order_replica(3, "honest")?;
    cluster.wait_for_one_root()?;

    let renewed: Vec<Pair> = first.iter().map(|(key, value)| (key.clone(), format!("{value} again"))).collect();
    let acknowledged = cluster.black_out(&renewed)?;
    cluster.start_all()?;
    // The gateway was killed: its sockets' files were still there.
    cluster.check_sockets()?;
    cluster.check(second)?;
    cluster.check(&renewed[..acknowledged])?;
    cluster.check_either(&first[acknowledged..], &renewed[acknowledged..])?;
    cluster.wait_for_one_root()?;
    Ok(format!(
        "{KEYS} keys in {:.0} s through a crash (caught up {:.1} s after the load) and a liar; \
         a blackout after {acknowledged} more; Redis' answers",
        loaded.as_secs_f64(),
        catch_up.as_secs_f64()
    ))
}

/// Four replicas and a gateway.
pub(super) struct Cluster {
    log: &'static str,
    binary: PathBuf,
    folder: PathBuf,
    base_port: u16,
    replicas: Vec<Option<Running>>,
    gateway: Option<Running>,
    pub(super) redis: Redis,
}

impl Cluster {
    /// Its files, with these flags of `bezant testnet`, and nothing that runs.
    pub(super) fn prepare(log: &'static str, binary: &Path, scratch: &Path, flags: &[&str]) -> Result<Self> {
        let base_port = free_ports(PORTS)?;
        let folder = scratch.join("testnet");
        let replicas = (0..REPLICAS).map(|_| None).collect();
        let redis = Redis { port: base_port + PORTS - 1 };
        let cluster = Self { log, binary: binary.into(), folder, base_port, replicas, gateway: None, redis };
        let mut testnet = cluster.bezant("testnet");
        testnet.arg("--dir").arg(&cluster.folder).args(flags);
        testnet.args(["--replicas", &REPLICAS.to_string(), "--base-port", &base_port.to_string()]);
        process::logged(log, START_MAX, &mut testnet)?;
        Ok(cluster)
    }

    /// Admits one more client, before anything runs. Returns its secret key's file.
    pub(super) fn admit(&self, name: &str) -> Result<PathBuf> {
        let key = self.folder.join(format!("{name}.key"));
        let public = process::output_of(self.bezant("key").arg("generate").arg(&key))?;
        let mut file = OpenOptions::new().append(true).open(self.file())?;
        writeln!(file, "\n[[identity]]\nid = 1\nname = \"{name}\"\npublic_key = \"{}\"", public.trim())?;
        Ok(key)
    }

    /// Lets a client misbehave for some seconds, and says what it did.
    pub(super) fn attack(&self, key: &Path, seconds: u64) -> Result<String> {
        let mut attack = self.bezant("attack");
        attack.arg("--cluster").arg(self.file()).arg("--key").arg(key);
        process::output_of(attack.args(["--seconds", &seconds.to_string()]))
    }

    /// The cluster's file.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.join("cluster.toml")
    }

    fn bezant(&self, sub_command: &str) -> Command {
        process::program(&self.binary.to_string_lossy(), &[sub_command])
    }

    pub(super) fn start_all(&mut self) -> Result {
        for id in 0..REPLICAS {
            self.start_replica(id)?;
        }
        self.gateway = Some(self.start_gateway(self.redis)?);
        Ok(())
    }

    /// A second client, in contention with the first.
    pub(super) fn second_gateway(&self) -> Result<(Running, Redis)> {
        let redis = Redis { port: self.redis.port - 1 };
        Ok((self.start_gateway(redis)?, redis))
    }

    fn start_gateway(&self, redis: Redis) -> Result<Running> {
        let mut gateway = self.bezant("gateway");
        gateway.arg("--cluster").arg(self.file());
        let (socket, folder) = (self.socket(redis), format!("{}:{}", self.folder.display(), redis.port));
        gateway.args(["--redis", &format!("127.0.0.1:{}", redis.port), "--redis", &socket, "--postgres", &folder]);
        let running = Running::start(self.log, &mut gateway)?;
        wait_until("the gateway answers", START_MAX, || redis.is_up())?;
        Ok(running)
    }

    /// Where a gateway serves Redis clients beside its port. PostgreSQL's have a socket in the same folder.
    fn socket(&self, redis: Redis) -> String {
        self.folder.join(format!("redis-{}.sock", redis.port)).to_string_lossy().into_owned()
    }

    /// The clients of both protocols on their sockets.
    fn check_sockets(&self) -> Result {
        let (socket, folder) = (self.socket(self.redis), self.folder.to_string_lossy());
        let pong = process::output_of(&mut process::program("redis-cli", &["-s", &socket, "PING"]))?;
        let port = self.redis.port.to_string();
        let question = ["-X", "-A", "-t", "-h", &folder, "-p", &port, "-U", "bezant", "-c", "select 6 * 7"];
        let answer = process::output_of(&mut process::program("psql", &question))?;
        ensure(pong.trim() == "PONG" && answer.trim() == "42", || format!("the sockets say {pong} and {answer}"))
    }

    /// A replica's own report; null if it does not answer.
    pub(super) fn report(&self, id: usize) -> Value {
        let ask = || -> Result<Value> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.base_port + ADMIN_PORT + PORT_STEP * id as u16))?;
            stream.set_read_timeout(Some(REPORT_MAX))?;
            stream.write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
            Ok(serde_json::from_str::<Value>(body).unwrap_or_default()["report"].take())
        };
        ask().unwrap_or_default()
    }

    pub(super) fn start_replica(&mut self, id: usize) -> Result {
        let mut command = self.bezant("replica");
        command.arg("--dir").arg(self.folder.join(format!("replica-{id}"))).arg("--obey-input");
        self.replicas[id] = Some(Running::start(self.log, &mut command)?);
        Ok(())
    }

    pub(super) fn order_replica(&mut self, id: usize, word: &str) -> Result {
        let replica = self.replicas[id].as_mut().ok_or_else(|| Failure::new(format!("replica {id} is down")))?;
        replica.send_line(word).map_err(|failure| failure.during(&format!("telling replica {id} to {word}")))
    }

    pub(super) fn kill_replica(&mut self, id: usize) -> Result {
        let mut replica = self.replicas[id].take().ok_or_else(|| Failure::new(format!("replica {id} is down")))?;
        ensure(!replica.has_ended()?, || format!("replica {id} had ended by itself"))?;
        replica.kill()
    }

    /// Kills everything at once in the middle of writing these pairs, and says how many were acknowledged.
    fn black_out(&mut self, pairs: &[Pair]) -> Result<usize> {
        let redis = self.redis;
        let acknowledged = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| redis.write_until_cut(pairs, &acknowledged));
            let enough = || acknowledged.load(Ordering::Relaxed) >= pairs.len() / 10 || writer.is_finished();
            wait_until("writes are acknowledged", LOAD_MAX, enough)?;
            for id in 0..REPLICAS {
                self.kill_replica(id)?;
            }
            self.gateway = None;
            writer.join().map_err(|_| Failure::new("the writer panicked"))?
        })?;
        Ok(acknowledged.into_inner())
    }

    /// Waits until the cluster holds so many keys: the load is that far.
    fn wait_for_keys(&self, count: usize) -> Result {
        wait_until(&format!("{count} keys are loaded"), LOAD_MAX, || self.redis.keys() >= count)?;
        Ok(())
    }

    /// Every pair must be there.
    fn check(&self, pairs: &[Pair]) -> Result {
        self.check_either(pairs, pairs)
    }

    /// Every key must have one of two values: for a write that nobody acknowledged, the old or the new one.
    fn check_either(&self, old: &[Pair], new: &[Pair]) -> Result {
        let folder = self.folder.parent().expect("the testnet is a folder in the scratch folder");
        let found = self.redis.read(old, folder, LOAD_MAX)?;
        for ((found, (key, old)), (_, new)) in found.iter().zip(old).zip(new) {
            ensure(found == old || found == new, || format!("`{key}` is `{found}`, but `{new}` was written last"))?;
        }
        Ok(())
    }

    /// Waits until all replicas report one root, and says how long that took.
    fn wait_for_one_root(&self) -> Result<Duration> {
        wait_until("all replicas reach one root", CATCH_UP_MAX, || {
            let status = self.status();
            let roots = roots(&status);
            roots.len() == REPLICAS && roots.windows(2).all(|pair| pair[0] == pair[1])
        })
    }

    /// Waits until the status names one replica, and no other, as being at fault.
    pub(super) fn wait_for_fault(&self, id: usize) -> Result {
        let what = format!("the status names replica {id}");
        wait_until(&what, CATCH_UP_MAX, || self.status()["at_fault"] == serde_json::json!([id]))?;
        Ok(())
    }

    /// What `bezant status` says; its exit code says once more whether all is well. Null if it says nothing.
    fn status(&self) -> Value {
        let mut command = self.bezant("status");
        command.arg("--cluster").arg(self.file()).arg("--json");
        let output = command.output().map(|output| output.stdout).unwrap_or_default();
        serde_json::from_slice(&output).unwrap_or(Value::Null)
    }
}

/// The roots that replicas report.
fn roots(status: &Value) -> Vec<&str> {
    let replicas = status["replicas"].as_array().into_iter().flatten();
    replicas.filter_map(|replica| replica["root"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replicas_that_answer_have_roots() {
        let status = serde_json::json!({"replicas": [{"root": "ab"}, {"error": "not running"}, {"root": "cd"}]});
        assert_eq!(roots(&status), ["ab", "cd"]);
        assert!(roots(&Value::Null).is_empty());
    }
}
