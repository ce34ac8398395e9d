//! Groups without a service: layers beside one another, and bursts over numbers of messages, sizes and processes.

use super::csv;
use crate::groups::{Ran, Setting};
use crate::spread::{Spread, ratios};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is measured: cells of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// What `at` counts.
    pub axis: &'static str,
    /// Which numbers are shown, the most telling first.
    pub quantities: Vec<Quantity>,
    /// In the order in which they are measured.
    pub cells: Vec<Cell>,
}

/// A group at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Whose value it is: a column.
    pub name: &'static str,
    /// Where on the axis: a row.
    pub at: usize,
    /// Which group, and what it does.
    pub setting: Setting,
}

impl Groups {
    /// Processes of the greatest group.
    pub fn processes_max(&self) -> usize {
        self.cells.iter().map(|cell| cell.setting.n).max().unwrap_or(0)
    }

    /// Whether any of them is on links that have a rate.
    pub fn has_links(&self) -> bool {
        self.cells.iter().any(|cell| cell.setting.mbit.is_some())
    }

    /// The places on the axis.
    pub fn places(&self) -> Vec<usize> {
        let mut places: Vec<usize> = self.cells.iter().map(|cell| cell.at).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// A number of [`Ran`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Of a call, in µs.
    Latency,
    /// Of a burst, in ms.
    BurstLatency,
    /// Messages each second.
    Throughput,
    /// Processor time of all processes together, in µs.
    Cpu,
    /// Percent of all broadcasts that are for agreement.
    Agreement,
}

impl Quantity {
    /// With its unit.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Latency => "µs until the result",
            Self::BurstLatency => "ms until the last message",
            Self::Throughput => "messages/s",
            Self::Cpu => "CPU µs/message, all processes",
            Self::Agreement => "% of broadcasts for agreement",
        }
    }

    fn of(self, ran: &Ran) -> f64 {
        match self {
            Self::Latency => ran.latency.as_secs_f64() * 1e6,
            Self::BurstLatency => ran.latency.as_secs_f64() * 1e3,
            Self::Throughput => ran.per_second,
            Self::Cpu => ran.cpu.as_secs_f64() * 1e6,
            Self::Agreement => ran.agreement * 100.0,
        }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// From 1.
    pub round: usize,
    /// What was measured.
    pub cell: Cell,
    /// What came of it.
    pub ran: Ran,
}

/// Every measurement.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// In the order in which they were made.
    pub measurements: Vec<Measurement>,
}

impl Results {
    /// The value of each round that has one.
    pub(super) fn rounds(&self, name: &str, at: usize, quantity: Quantity) -> BTreeMap<usize, f64> {
        let chosen = self.measurements.iter().filter(|it| it.cell.name == name && it.cell.at == at);
        chosen.map(|it| (it.round, quantity.of(&it.ran))).collect()
    }

    /// Of a quantity over the rounds.
    pub fn spread(&self, name: &str, at: usize, quantity: Quantity) -> Option<Spread> {
        Spread::of(self.rounds(name, at, quantity).into_values())
    }

    /// One value divided by another one of the same round.
    pub fn ratio(&self, quantity: Quantity, subject: (&str, usize), base: (&str, usize)) -> Option<Spread> {
        Spread::of(ratios(&self.rounds(subject.0, subject.1, quantity), &self.rounds(base.0, base.1, quantity)))
    }

    /// Every measurement as a line of comma-separated values, and a head that names the columns.
    pub fn to_csv(&self) -> String {
        let mut text =
            "round,name,at,n,faultload,style,encrypted,mbit,latency_us,per_second,cpu_us,agreement\n".to_owned();
        for Measurement { round, cell: Cell { name, at, setting }, ran } in &self.measurements {
            let Setting { n, faultload, style, encrypted, mbit, .. } = setting;
            let mbit = mbit.map_or_else(String::new, |mbit| mbit.to_string());
            let name = csv::cell(name);
            let (latency, cpu) = (ran.latency.as_micros(), ran.cpu.as_nanos() as f64 / 1e3);
            let _ = writeln!(
                text,
                "{round},{name},{at},{n},{faultload:?},{style:?},{encrypted},{mbit},{latency},{:.1},{cpu:.3},{:.4}",
                ran.per_second, ran.agreement
            );
        }
        text
    }
}
