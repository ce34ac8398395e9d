//! One measurement: settings, figures, and how both are shown.

use crate::load::Measured;
use crate::network::Network;
use crate::rounding::rounded;
use crate::shares::Shares;
use bezant_core::cluster::Coin;
use bezant_node::config::Protocol;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One of a few words that the command line knows.
type Word = &'static str;

/// Reads a word again that was once written.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
    const WORDS: [Word; 15] = [
        "null",
        "null-mixed",
        "sql-insert",
        "sql-read",
        "sql-mixed",
        "memory",
        "sync",
        "plain",
        "tls",
        "mac",
        "hybrid",
        "signature",
        "none",
        "local",
        "common",
    ];
    let text = String::deserialize(deserializer)?;
    let protocols = Protocol::ALL.iter().map(|protocol| protocol.name()).chain(["schedule"]);
    let known = protocols.chain(WORDS).find(|word| *word == text);
    known.ok_or_else(|| D::Error::custom(format!("\"{text}\" is not a word of benchmarks")))
}

/// What RITAS tossed where a line does not say it: lines did not while there was nothing else to measure.
const fn only_coin() -> Word {
    Coin::Local.label()
}

/// What was measured: a row's left half.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The protocol's name.
    #[serde(deserialize_with = "word")]
    pub protocol: Word,
    /// What is asked: `null`, `null-mixed`, or `sql-insert`, `sql-read`, `sql-mixed`. Comes last in the JSON line, with
    /// what was added after it.
    #[serde(skip)]
    pub workload: Word,
    /// Replicas.
    pub n: usize,
    /// Faults tolerated.
    pub f: usize,
    /// Connections to each replica.
    pub clients: usize,
    /// Requests under way on each of them, at any time.
    pub outstanding: usize,
    /// Bytes of an operation.
    pub request_bytes: usize,
    /// Bytes of a result.
    pub reply_bytes: usize,
    /// `memory` or `sync`.
    #[serde(deserialize_with = "word")]
    pub durability: Word,
    /// `plain` or `tls`.
    #[serde(deserialize_with = "word")]
    pub channel: Word,
    /// `mac`, `hybrid` or `signature`.
    #[serde(deserialize_with = "word")]
    pub auth: Word,
    /// Whether the clients joined, instead of being named by the cluster file.
    #[serde(skip)]
    pub joined: bool,
    /// What replicas toss: `local` or `common`, or `none` if the protocol tosses nothing.
    #[serde(skip)]
    pub coin: Word,
}

impl Settings {
    /// Bytes of the requests that are under way, and of their results.
    pub const fn under_way_bytes(&self) -> usize {
        self.clients * self.outstanding * (self.request_bytes + self.reply_bytes)
    }
}

/// What a replica counts about itself, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    executed: u64,
    cpu_us: u64,
    peer_bytes_out: u64,
    client_bytes_out: u64,
    macs: u64,
    signatures: u64,
    fsyncs: u64,
    instance: u64,
}

impl Usage {
    /// From what the admin port answers to `/status`. `None` if it is another program's.
    pub fn from_status(status: &Value) -> Option<Self> {
        let count = |name: &str| status["runtime"][name].as_u64();
        Some(Self {
            executed: status["report"]["requests_executed"].as_u64()?,
            cpu_us: count("cpu_us")?,
            peer_bytes_out: count("peer_bytes_out")?,
            client_bytes_out: count("client_bytes_out")?,
            macs: count("macs_made")? + count("macs_checked")?,
            signatures: count("signatures_made")? + count("signatures_checked")?,
            fsyncs: count("fsyncs")?,
            instance: status["report"]["instance"].as_u64()?,
        })
    }
}

/// Settings and figures: one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// What was measured.
    #[serde(flatten)]
    pub settings: Settings,
    /// How long.
    pub seconds: f64,
    /// Operations that ended in this time.
    pub ops: u64,
    /// The same per second.
    pub ops_per_s: f64,
    /// Mean latency.
    pub mean_us: f64,
    /// Median latency.
    pub p50_us: u64,
    /// 99 of 100 operations took no longer.
    pub p99_us: u64,
    /// Processor time of all replicas, user and system, per operation.
    pub replica_cpu_us_per_op: f64,
    /// Processor time of the clients.
    pub client_cpu_us_per_op: f64,
    /// Bytes that all replicas sent, to replicas and to clients.
    pub replica_bytes_out_per_op: f64,
    /// MACs that all replicas made or checked.
    pub macs_per_op: f64,
    /// Signatures that all replicas made or checked.
    pub signatures_per_op: f64,
    /// Calls of fsync of all replicas.
    pub fsyncs_per_op: f64,
    /// Processor time of the replica that needs the most.
    pub busiest_replica_cpu_us_per_op: f64,
    /// Bytes of the replica that sends the most.
    pub busiest_replica_bytes_out_per_op: f64,
    /// The instance at the end, of the replica that is furthest: which part of a composition was measured.
    pub instance: u64,
    /// How often that replica switched to another instance while it was measured.
    pub switches: u64,
    /// As in the settings.
    #[serde(deserialize_with = "word")]
    pub workload: Word,
    /// As in the settings.
    #[serde(default)]
    pub joined: bool,
    /// Operations in a request, on average: how long bundles were.
    #[serde(default)]
    pub operations_per_request: f64,
    /// As in the settings.
    #[serde(default = "only_coin", deserialize_with = "word")]
    pub coin: Word,
    /// Processor time of each replica, user and system, per operation.
    #[serde(skip)]
    pub each_replica_cpu_us_per_op: Vec<f64>,
    /// Bytes that each replica handed to TCP for other replicas, per operation.
    #[serde(skip)]
    pub each_replica_peer_bytes_per_op: Vec<f64>,
    /// What was counted besides, in the network laboratory. Its fields come last in the JSON line.
    #[serde(flatten)]
    pub network: Option<Network>,
    /// The same of the processor laboratory.
    #[serde(flatten)]
    pub shares: Option<Shares>,
    /// What an attacker did from the warm-up on, if there was one.
    #[serde(flatten)]
    pub attacked: Option<Attacked>,
}

/// An attack on the cluster that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attacked {
    /// Its name.
    pub attack: String,
    /// How often it did what it does.
    pub attacks: u64,
}

/// What the clients saw: operations that were answered, and how many of them a request had on average.
#[derive(Clone, Copy, Debug)]
struct Seen {
    answered: u64,
    per_request: f64,
}

/// The growth of a counter per executed operation, of each replica; it counts requests. Its counters are of one moment,
/// so that it does not matter when exactly each was asked. A replica that executed less than half of what others did
/// lags behind, or fetched the state: its cost counts by what the others executed. Where all of them count less than
/// half of what the clients saw answered, costs are divided by that: replicas do not count what they answer without
/// ordering it, and begin again after a switch.
fn per_operation(before: &[Usage], after: &[Usage], seen: Seen, counter: impl Fn(&Usage) -> u64) -> Vec<f64> {
    let Seen { answered, per_request } = seen;
    let executed = |(before, after): &(&Usage, &Usage)| {
        (after.executed.saturating_sub(before.executed) as f64 * per_request) as u64
    };
    let pairs = || before.iter().zip(after);
    let most = pairs().map(|pair| executed(&pair)).max().unwrap_or(0).max(answered);
    let of_one = |pair: (&Usage, &Usage)| {
        let own = executed(&pair);
        let executed = if own < most / 2 { most } else { own };
        counter(pair.1).saturating_sub(counter(pair.0)) as f64 / executed.max(1) as f64
    };
    pairs().map(of_one).collect()
}

fn sum(values: &[f64]) -> f64 {
    // The sum of no numbers is -0.
    rounded(values.iter().sum::<f64>() + 0.0)
}

fn most(values: &[f64]) -> f64 {
    rounded(values.iter().copied().fold(0.0, f64::max))
}

impl Figures {
    /// From what the clients saw and what the replicas counted before and after, in the same order.
    pub fn new(settings: Settings, measured: &Measured, before: &[Usage], after: &[Usage]) -> Self {
        let Measured { elapsed, latencies, client_cpu, .. } = measured;
        let ops = latencies.count();
        let operations_per_request = measured.operations_per_request();
        let seen = Seen { answered: ops, per_request: operations_per_request };
        let cpu = per_operation(before, after, seen, |usage| usage.cpu_us);
        let instance = |usages: &[Usage]| usages.iter().map(|usage| usage.instance).max().unwrap_or(0);
        let bytes_out = per_operation(before, after, seen, |usage| usage.peer_bytes_out + usage.client_bytes_out);
        Self {
            workload: settings.workload,
            joined: settings.joined,
            coin: settings.coin,
            settings,
            seconds: rounded(elapsed.as_secs_f64()),
            ops,
            ops_per_s: (ops as f64 / elapsed.as_secs_f64()).round(),
            mean_us: rounded(latencies.mean()),
            p50_us: latencies.quantile(0.5),
            p99_us: latencies.quantile(0.99),
            replica_cpu_us_per_op: sum(&cpu),
            client_cpu_us_per_op: rounded(client_cpu.as_secs_f64() * 1e6 / ops.max(1) as f64),
            each_replica_peer_bytes_per_op: per_operation(before, after, seen, |usage| usage.peer_bytes_out),
            replica_bytes_out_per_op: sum(&bytes_out),
            macs_per_op: sum(&per_operation(before, after, seen, |usage| usage.macs)),
            signatures_per_op: sum(&per_operation(before, after, seen, |usage| usage.signatures)),
            fsyncs_per_op: sum(&per_operation(before, after, seen, |usage| usage.fsyncs)),
            busiest_replica_cpu_us_per_op: most(&cpu),
            busiest_replica_bytes_out_per_op: most(&bytes_out),
            instance: instance(after),
            switches: instance(after).saturating_sub(instance(before)),
            operations_per_request: rounded(operations_per_request),
            each_replica_cpu_us_per_op: cpu,
            network: None,
            shares: None,
            attacked: None,
        }
    }

    /// One line of JSON.
    ///
    /// # Panics
    /// Never: the fields are numbers and words.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and words")
    }

    /// The names of the fields, in the order of the JSON line.
    pub const FIELDS: [&'static str; 30] = [
        "protocol",
        "n",
        "f",
        "clients",
        "outstanding",
        "request_bytes",
        "reply_bytes",
        "durability",
        "channel",
        "auth",
        "seconds",
        "ops",
        "ops_per_s",
        "mean_us",
        "p50_us",
        "p99_us",
        "replica_cpu_us_per_op",
        "client_cpu_us_per_op",
        "replica_bytes_out_per_op",
        "macs_per_op",
        "signatures_per_op",
        "fsyncs_per_op",
        "busiest_replica_cpu_us_per_op",
        "busiest_replica_bytes_out_per_op",
        "instance",
        "switches",
        "workload",
        "joined",
        "operations_per_request",
        "coin",
    ];

    /// The fields' values as text without quotes, in that order.
    ///
    /// # Panics
    /// Never: the fields are those of the JSON object.
    pub fn values(&self) -> Vec<String> {
        let object = serde_json::to_value(self).expect("numbers and words");
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Self::FIELDS.iter().map(|field| text(&object[*field])).collect()
    }

    /// The head of the table.
    pub const HEAD: [&'static str; 20] = [
        "protocol",
        "n",
        "f",
        "load",
        "bytes or workload",
        "durability",
        "channel",
        "auth",
        "coin",
        "op/s",
        "mean µs",
        "p50 µs",
        "p99 µs",
        "replica CPU µs/op",
        "client CPU µs/op",
        "B out/op",
        "MACs/op",
        "signatures/op",
        "fsyncs/op",
        "op/request",
    ];

    /// A row of the table.
    pub fn row(&self) -> Vec<String> {
        let s = &self.settings;
        vec![
            s.protocol.to_owned(),
            s.n.to_string(),
            s.f.to_string(),
            format!("{}×{}{}", s.clients, s.outstanding, if s.joined { " joined" } else { "" }),
            match s.workload {
                "null" => format!("{}/{}", s.request_bytes, s.reply_bytes),
                sql => sql.to_owned(),
            },
            s.durability.to_owned(),
            s.channel.to_owned(),
            s.auth.to_owned(),
            s.coin.to_owned(),
            format!("{:.0}", self.ops_per_s),
            format!("{:.0}", self.mean_us),
            self.p50_us.to_string(),
            self.p99_us.to_string(),
            format!("{:.1}", self.replica_cpu_us_per_op),
            format!("{:.1}", self.client_cpu_us_per_op),
            format!("{:.0}", self.replica_bytes_out_per_op),
            format!("{:.2}", self.macs_per_op),
            format!("{:.2}", self.signatures_per_op),
            format!("{:.3}", self.fsyncs_per_op),
            format!("{:.1}", self.operations_per_request),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn usage(executed: u64, cpu_us: u64) -> Usage {
        let runtime = json!({"cpu_us": cpu_us, "peer_bytes_out": 1, "client_bytes_out": 2, "macs_made": 3,
            "macs_checked": 4, "signatures_made": 5, "signatures_checked": 6, "fsyncs": 7});
        Usage::from_status(&json!({"report": {"requests_executed": executed, "instance": 1}, "runtime": runtime}))
            .unwrap()
    }

    #[test]
    fn costs_are_per_operation_of_each_replica() {
        let before = [usage(100, 1000), usage(0, 0)];
        let after = [usage(200, 2000), usage(50, 100)];
        // The second one lags behind: 3 of 100.
        let seen = |answered, per_request| Seen { answered, per_request };
        let lagging =
            per_operation(&[before[0], usage(0, 0)], &[after[0], usage(3, 500)], seen(0, 1.0), |usage| usage.cpu_us);
        assert_eq!(lagging, [10.0, 5.0]);
        assert_eq!(per_operation(&before, &after, seen(0, 1.0), |usage| usage.cpu_us), [10.0, 2.0]);
        assert_eq!(per_operation(&before, &before, seen(0, 1.0), |usage| usage.cpu_us), [0.0, 0.0]);
        assert_eq!(per_operation(&before, &after, seen(0, 2.0), |usage| usage.cpu_us), [5.0, 1.0], "bundles of two");
        assert_eq!(per_operation(&before, &after, seen(1000, 1.0), |usage| usage.cpu_us), [1.0, 0.1], "mostly reads");
        assert_eq!((sum(&[10.0, 2.0]), most(&[10.0, 2.0])), (12.0, 10.0));
        assert_eq!(Usage::from_status(&json!({"hello": 1})), None);
    }

    #[test]
    fn the_json_line_has_exactly_the_agreed_fields_in_order() {
        let settings = Settings {
            protocol: "pbft",
            workload: "null",
            n: 4,
            f: 1,
            clients: 20,
            outstanding: 10,
            request_bytes: 8,
            reply_bytes: 8,
            durability: "memory",
            channel: "plain",
            auth: "mac",
            joined: false,
            coin: "none",
        };
        let measured = Measured { elapsed: Duration::from_secs(1), ..Measured::default() };
        let figures = Figures::new(settings, &measured, &[], &[]);
        let text = figures.to_json();
        let names = text.split('"').skip(1).step_by(2);
        let names: Vec<_> =
            names.filter(|name| !["pbft", "memory", "plain", "mac", "null", "none"].contains(name)).collect();
        assert_eq!(names, Figures::FIELDS);
        assert_eq!(figures.values()[..4], ["pbft", "4", "1", "20"]);
        assert_eq!(figures.row().len(), Figures::HEAD.len());
    }
}
