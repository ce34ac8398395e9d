//! What the network laboratory builds and counts, and what that adds to the figures of a benchmark.

use crate::figures::Figures;
use crate::network::{Balance, Link, Network, is_replica};
use crate::rounding::rounded;

/// Bytes that passed an interface since it was made, with Ethernet headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// To the node.
    pub into: u64,
    /// From the node.
    pub out: u64,
}

/// Time of all processors since the machine started, in any unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processors {
    /// In which they worked.
    pub busy: u64,
    /// All of it.
    pub total: u64,
}

/// Everything that is counted outside of the processes that are measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Of each link, in the order of [`Setup::links`].
    pub traffic: Vec<Traffic>,
    /// Of this machine.
    pub processors: Processors,
}

/// A link: whose it is, and on which LAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// `replica-0`, …, or `clients`, which stands for the machines of all clients.
    pub node: String,
    /// `clients`, `replicas` or `shared`.
    pub lan: &'static str,
}

/// What was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// 2: one for clients and one for replicas. 1: one for all.
    pub lans: u8,
    /// What each link of a replica is limited to, in each direction.
    pub rate_bits_per_s: u64,
    /// What TCP carries over such a link in each direction, with both busy, as measured.
    pub link_goodput_bits_per_s: u64,
    /// How long clients wait for an answer, if that was chosen.
    pub client_retry_ms: Option<u64>,
    /// Those that are counted.
    pub links: Vec<Place>,
}

impl Setup {
    /// How long clients wait for an answer before they suspect somebody, at most, unless it was chosen: ten times what
    /// a leader needs to pass everything that is under way on to the n − 1 others, and half a second at least. Requests
    /// that wait for a slow link are no reason for suspicion; and a client that is used to quick answers waits for only
    /// a fifth of it.
    pub fn client_retry_ms(&self, n: usize, under_way_bytes: usize) -> u64 {
        const AT_LEAST_MS: u64 = 500;
        let bits = under_way_bytes as u64 * 8 * n.saturating_sub(1).max(1) as u64;
        let passed_on = bits * 1000 / self.rate_bits_per_s.max(1);
        self.client_retry_ms.unwrap_or_else(|| (10 * passed_on).max(AT_LEAST_MS))
    }

    /// From what was counted at the beginning and at the end of the measurement that gave these figures.
    pub fn network(&self, before: &Snapshot, after: &Snapshot, figures: &Figures) -> Network {
        let bits_per_s = |bytes: usize| (figures.ops * bytes as u64 * 8) as f64 / figures.seconds.max(f64::EPSILON);
        let requests = bits_per_s(figures.settings.request_bytes);
        let replies = bits_per_s(figures.settings.reply_bytes);
        let per_link = |bits: f64| rounded(bits / self.link_goodput_bits_per_s.max(1) as f64);
        let counts = before.traffic.iter().zip(&after.traffic).map(|(before, after)| Traffic {
            into: after.into.saturating_sub(before.into),
            out: after.out.saturating_sub(before.out),
        });
        let links: Vec<Link> =
            self.links.iter().zip(counts).map(|(place, traffic)| link(self, place, traffic, figures)).collect();
        let processors = |of: fn(&Processors) -> u64| of(&after.processors).saturating_sub(of(&before.processors));
        let busy = processors(|it| it.busy) as f64 / processors(|it| it.total).max(1) as f64;
        let settings = &figures.settings;
        let per_request_byte = |bytes: &f64| rounded(bytes / settings.request_bytes.max(1) as f64);
        let data = figures.each_replica_peer_bytes_per_op.iter().map(per_request_byte).collect();
        Network {
            lans: self.lans,
            rate_bits_per_s: self.rate_bits_per_s,
            link_goodput_bits_per_s: self.link_goodput_bits_per_s,
            client_retry_ms: self.client_retry_ms(settings.n, settings.under_way_bytes()),
            request_goodput_bits_per_s: requests as u64,
            request_goodput_per_link: per_link(requests),
            reply_goodput_bits_per_s: replies as u64,
            reply_goodput_per_link: per_link(replies),
            machine_busy_share: rounded(busy),
            each_replica_cpu_us_per_op: figures.each_replica_cpu_us_per_op.iter().copied().map(rounded).collect(),
            each_replica_data_per_request_byte: data,
            balance: balances(&links, &figures.each_replica_cpu_us_per_op),
            links,
        }
    }
}

fn link(setup: &Setup, place: &Place, traffic: Traffic, figures: &Figures) -> Link {
    let requested = figures.ops * figures.settings.request_bytes as u64;
    let per_byte = |bytes: u64| rounded(bytes as f64 / requested.max(1) as f64);
    let allowed = setup.rate_bits_per_s as f64 / 8.0 * figures.seconds;
    let share = |bytes: u64| rounded(bytes as f64 / allowed.max(1.0));
    Link {
        node: place.node.clone(),
        lan: place.lan.to_owned(),
        in_bytes: traffic.into,
        out_bytes: traffic.out,
        in_per_request_byte: per_byte(traffic.into),
        out_per_request_byte: per_byte(traffic.out),
        in_share_of_rate: share(traffic.into),
        out_share_of_rate: share(traffic.out),
    }
}

/// Of processor time, and of each LAN in both directions.
fn balances(links: &[Link], cpu: &[f64]) -> Vec<Balance> {
    let mut balances = vec![balance("cpu".to_owned(), cpu)];
    let mut lans: Vec<&str> = links.iter().map(|link| &*link.lan).collect();
    lans.dedup();
    for lan in lans {
        let of_replicas = || links.iter().filter(|link| link.lan == lan && is_replica(&link.node));
        let into: Vec<_> = of_replicas().map(|link| link.in_bytes as f64).collect();
        let out: Vec<_> = of_replicas().map(|link| link.out_bytes as f64).collect();
        balances.push(balance(format!("{lan}-in"), &into));
        balances.push(balance(format!("{lan}-out"), &out));
    }
    balances
}

fn balance(of: String, values: &[f64]) -> Balance {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let per_mean = |value: f64| if mean > 0.0 { rounded(value / mean) } else { 1.0 };
    let max_per_mean = per_mean(values.iter().copied().fold(0.0, f64::max));
    let min_per_mean = per_mean(values.iter().copied().reduce(f64::min).unwrap_or(0.0));
    Balance { of, max_per_mean, min_per_mean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::results;

    fn setup() -> Setup {
        let place = |node: &str, lan| Place { node: node.to_owned(), lan };
        let links = vec![
            place("replica-0", "clients"),
            place("replica-1", "clients"),
            place("clients", "clients"),
            place("replica-0", "replicas"),
            place("replica-1", "replicas"),
        ];
        Setup { lans: 2, rate_bits_per_s: 10_000_000, link_goodput_bits_per_s: 9_360_000, client_retry_ms: None, links }
    }

    /// 1,000 operations of 8 bytes in one second.
    fn figures() -> Figures {
        let figures = results(&[(1, "chain", 1, 1000.0)]).measurements.remove(0).figures;
        let (each_replica_cpu_us_per_op, each_replica_peer_bytes_per_op) = (vec![30.0, 10.0], vec![6.0, 8.0]);
        Figures { ops: 1000, each_replica_cpu_us_per_op, each_replica_peer_bytes_per_op, ..figures }
    }

    fn network() -> Network {
        let before = Snapshot { traffic: vec![Traffic { into: 50, out: 70 }; 5], processors: Processors::default() };
        let traffic = |into: u64, out: u64| Traffic { into: into + 50, out: out + 70 };
        let counted = [traffic(8_000, 0), traffic(0, 0), traffic(0, 8_000), traffic(0, 8_000), traffic(8_000, 24_000)];
        let after = Snapshot { traffic: counted.to_vec(), processors: Processors { busy: 30, total: 200 } };
        setup().network(&before, &after, &figures())
    }

    #[test]
    fn bytes_are_those_between_two_moments() {
        let network = network();
        assert_eq!((network.links[0].in_bytes, network.links[0].out_bytes), (8_000, 0));
        assert_eq!(network.links[0].in_per_request_byte, 1.0);
        assert_eq!(network.links[4].out_per_request_byte, 3.0);
        let row = ["replica-1", "replicas", "8000", "24000", "1.000", "3.000", "0.006", "0.019"];
        assert_eq!(network.rows()[4], row);
        assert_eq!(network.rows()[0].len(), Network::HEAD.len());
        assert!(network.summary("chain").starts_with("chain: requests 0.007 and results 0.007 of what"));
        assert_eq!(network.links[4].out_share_of_rate, 0.019);
        assert_eq!(network.request_goodput_bits_per_s, 64_000);
        assert_eq!(network.request_goodput_per_link, 0.007);
        assert_eq!(network.machine_busy_share, 0.15);
        assert_eq!(network.each_replica_data_per_request_byte, [0.75, 1.0]);
        assert_eq!(network.data_per_request_byte(), Some(0.875));
        assert_eq!(network.busiest_link_per_request_byte("replicas"), Some(3.0));
        assert_eq!(network.busiest_link_per_request_byte("clients"), Some(1.0), "not that of the clients");
        assert_eq!(network.busiest_link_per_request_byte("shared"), None);
    }

    #[test]
    fn clients_are_as_patient_as_links_are_slow() {
        let patience = |rate_bits_per_s| Setup { rate_bits_per_s, ..setup() }.client_retry_ms(4, 200 * 16_384);
        assert_eq!([patience(10_000_000), patience(100_000_000)], [78_640, 7_860]);
        assert_eq!(setup().client_retry_ms(4, 8), 500);
        assert_eq!(Setup { client_retry_ms: Some(7), ..setup() }.client_retry_ms(4, 200 * 16_384), 7);
    }

    #[test]
    fn balance_is_among_replicas() {
        let network = network();
        let of = |of: &str| network.balance.iter().find(|it| it.of == of).map(|it| (it.max_per_mean, it.min_per_mean));
        assert_eq!(network.max_per_mean(&["cpu", "clients-in"]), Some(2.0));
        assert_eq!((network.max_per_mean(&["shared-in"]), network.lan_of_replicas()), (None, "replicas"));
        assert_eq!(of("cpu"), Some((1.5, 0.5)));
        assert_eq!(of("clients-in"), Some((2.0, 0.0)));
        assert_eq!(of("clients-out"), Some((1.0, 1.0)), "nobody had any");
        assert_eq!(of("replicas-out"), Some((1.5, 0.5)));
        assert_eq!(network.balance.len(), 5);
    }
}
