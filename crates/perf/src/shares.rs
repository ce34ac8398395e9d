//! What the processor laboratory adds to the figures of a benchmark: the share of a core that each process had, and how
//! often it had to wait for the rest.

use crate::rounding::rounded;
use serde::{Deserialize, Serialize};

/// What a control group counts, and the machine, since they began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Periods in which the group had something to do.
    pub periods: u64,
    /// Those of them in which it had to wait, because its share was used up.
    pub throttled: u64,
    /// For how long it had to, in microseconds.
    pub waited_us: u64,
}

/// All groups at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// In the order of [`Shares::groups`].
    pub groups: Vec<Throttled>,
    /// What other machines of the same host took from this one, in microseconds, over all cores.
    pub stolen_us: u64,
}

/// A control group while it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// `replica-0`, …, or `clients`.
    pub node: String,
    /// The part of its periods in which its share was used up: near 1 for whoever decides how fast all are.
    pub throttled_share: f64,
    /// How long it waited for the next period, in all.
    pub waited_ms: f64,
}

/// What one measurement in the laboratory has beside its other figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// The part of a core that each replica has.
    pub cpu_share: f64,
    /// The cores that all clients have together.
    pub client_cpu_share: f64,
    /// How long a period is: a process whose share is used up waits for the next one.
    pub cpu_period_us: u64,
    /// What other machines of the same host took from this one.
    pub stolen_ms: f64,
    /// Each replica, and the clients.
    pub groups: Vec<Group>,
}

impl Shares {
    /// From what was counted at the beginning and at the end of a measurement.
    pub fn new(
        (cpu_share, client_cpu_share): (f64, f64),
        cpu_period_us: u64,
        nodes: impl IntoIterator<Item = String>,
        (before, after): (&Snapshot, &Snapshot),
    ) -> Self {
        let ms = |us: u64| rounded(us as f64 / 1000.0);
        let group = |(node, (before, after)): (String, (&Throttled, &Throttled))| {
            let periods = after.periods.saturating_sub(before.periods);
            let throttled = after.throttled.saturating_sub(before.throttled);
            Group {
                node,
                throttled_share: rounded(throttled as f64 / periods.max(1) as f64),
                waited_ms: ms(after.waited_us.saturating_sub(before.waited_us)),
            }
        };
        let groups = nodes.into_iter().zip(before.groups.iter().zip(&after.groups)).map(group).collect();
        let stolen_ms = ms(after.stolen_us.saturating_sub(before.stolen_us));
        Self { cpu_share, client_cpu_share, cpu_period_us, stolen_ms, groups }
    }

    /// What is above the table.
    pub fn summary(&self, protocol: &str) -> String {
        let Self { cpu_share, client_cpu_share, cpu_period_us, stolen_ms, .. } = self;
        format!(
            "{protocol}: {cpu_share} of a core for each replica, {client_cpu_share:.2} cores for the clients, \
             periods of {cpu_period_us} µs; stolen: {stolen_ms} ms\n"
        )
    }

    /// The table's head.
    pub const HEAD: [&'static str; 3] = ["node", "periods used up", "waited ms"];

    /// A row for each group.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let row = |group: &Group| {
            vec![group.node.clone(), format!("{:.3}", group.throttled_share), format!("{:.1}", group.waited_ms)]
        };
        self.groups.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_was_measured() {
        let at = |periods, throttled, waited_us| Throttled { periods, throttled, waited_us };
        let before = Snapshot { groups: vec![at(100, 10, 5_000), at(7, 7, 7)], stolen_us: 1_000 };
        let after = Snapshot { groups: vec![at(300, 160, 85_000), at(7, 7, 7)], stolen_us: 3_500 };
        let nodes = ["replica-0", "clients"].map(str::to_owned);
        let shares = Shares::new((0.2, 1.2), 5_000, nodes, (&before, &after));
        let found: Vec<_> = shares.groups.iter().map(|it| (&*it.node, it.throttled_share, it.waited_ms)).collect();
        assert_eq!(found, [("replica-0", 0.75, 80.0), ("clients", 0.0, 0.0)]);
        assert_eq!((shares.stolen_ms, shares.rows().len()), (2.5, 2));
    }
}
