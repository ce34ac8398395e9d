//! What the network laboratory adds to the figures of a benchmark: what a link carries, the bytes on each link, and how
//! evenly replicas share the work.

use serde::{Deserialize, Serialize};

/// One link while it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Whose.
    pub node: String,
    /// Where.
    pub lan: String,
    /// Bytes to the node.
    pub in_bytes: u64,
    /// Bytes from the node.
    pub out_bytes: u64,
    /// Bytes to the node for each byte of the operations that ended.
    pub in_per_request_byte: f64,
    /// Bytes from the node for each byte of the operations that ended.
    pub out_per_request_byte: f64,
    /// Bits to the node, divided by those that the rate allows.
    pub in_share_of_rate: f64,
    /// Bits from the node, divided by those that the rate allows.
    pub out_share_of_rate: f64,
}

/// How evenly replicas share something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    /// What: `cpu`, or a LAN and a direction, such as `replicas-in`.
    pub of: String,
    /// What the replica with the most has, divided by the mean. 1 if nobody has any.
    pub max_per_mean: f64,
    /// What the replica with the least has, divided by the mean.
    pub min_per_mean: f64,
}

/// What one measurement in the laboratory has beside its other figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// 2: one for clients and one for replicas. 1: one for all.
    pub lans: u8,
    /// What each link of a replica is limited to, in each direction.
    pub rate_bits_per_s: u64,
    /// What TCP carries over such a link in each direction, with both busy, as measured before.
    pub link_goodput_bits_per_s: u64,
    /// How long clients waited for an answer before they suspected somebody.
    pub client_retry_ms: u64,
    /// Bits of the operations that ended, per second.
    pub request_goodput_bits_per_s: u64,
    /// The same, divided by what a link carries.
    pub request_goodput_per_link: f64,
    /// Bits of their results, per second.
    pub reply_goodput_bits_per_s: u64,
    /// The same, divided by what a link carries.
    pub reply_goodput_per_link: f64,
    /// The part of this machine's processor time in which somebody worked: with much of it, rates say little.
    pub machine_busy_share: f64,
    /// Processor time of each replica, user and system, per operation.
    pub each_replica_cpu_us_per_op: Vec<f64>,
    /// Bytes that each replica handed to TCP for other replicas, for each byte of the operations: without the headers
    /// of packets, acknowledgements and repetitions that [`Network::links`] count.
    #[serde(default)]
    pub each_replica_data_per_request_byte: Vec<f64>,
    /// Of processor time and of bytes.
    pub balance: Vec<Balance>,
    /// Of each link.
    pub links: Vec<Link>,
}

impl Network {
    /// The most that a link of a replica on this LAN carries in one direction, for each byte of the operations. `None`
    /// if there is no such LAN.
    pub fn busiest_link_per_request_byte(&self, lan: &str) -> Option<f64> {
        let links = self.links.iter().filter(|link| link.lan == lan && is_replica(&link.node));
        links.map(|link| link.in_per_request_byte.max(link.out_per_request_byte)).reduce(f64::max)
    }

    /// The data that a replica sends to others, for each byte of the operations, on average. `None` if it was not
    /// counted.
    pub fn data_per_request_byte(&self) -> Option<f64> {
        let each = &self.each_replica_data_per_request_byte;
        (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
    }

    /// What stands above the table of links.
    pub fn summary(&self, protocol: &str) -> String {
        let megabits = self.link_goodput_bits_per_s as f64 / 1e6;
        format!(
            "{protocol}: requests {:.3} and results {:.3} of what a link carries ({megabits:.3} Mbit/s in each \
             direction); replica CPU max/mean {:.3}; data to replicas {:.3} for each byte of requests; machine busy \
             {:.0} %",
            self.request_goodput_per_link,
            self.reply_goodput_per_link,
            self.max_per_mean(&["cpu"]).unwrap_or(1.0),
            self.data_per_request_byte().unwrap_or(0.0),
            self.machine_busy_share * 100.0
        )
    }

    /// The head of the table of links.
    pub const HEAD: [&'static str; 8] =
        ["node", "LAN", "in B", "out B", "in/request B", "out/request B", "in/rate", "out/rate"];

    /// Its rows.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let row = |link: &Link| {
            vec![
                link.node.clone(),
                link.lan.clone(),
                link.in_bytes.to_string(),
                link.out_bytes.to_string(),
                format!("{:.3}", link.in_per_request_byte),
                format!("{:.3}", link.out_per_request_byte),
                format!("{:.3}", link.in_share_of_rate),
                format!("{:.3}", link.out_share_of_rate),
            ]
        };
        self.links.iter().map(row).collect()
    }

    /// The LAN over which replicas talk.
    pub const fn lan_of_replicas(&self) -> &'static str {
        if self.lans == 1 { "shared" } else { "replicas" }
    }

    /// How unevenly replicas share these: the worst of them. `None` if none of them was counted.
    pub fn max_per_mean(&self, of: &[&str]) -> Option<f64> {
        let chosen = self.balance.iter().filter(|balance| of.contains(&&*balance.of));
        chosen.map(|balance| balance.max_per_mean).reduce(f64::max)
    }
}

/// Whether a node is a replica, by its name.
pub(crate) fn is_replica(node: &str) -> bool {
    node.starts_with("replica-")
}
