//! How long it takes to switch, over lengths of the history and over what is missing of it.

use super::csv;
use crate::spread::Spread;
use crate::switching::Took;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switching {
    /// Faults that are tolerated.
    pub f: u8,
    /// Requests in the history.
    pub histories: Vec<usize>,
    /// How many of a hundred the last replica lacks.
    pub missing_percents: Vec<usize>,
    /// Bytes of each request.
    pub request_bytes: usize,
}

/// One of the two moments of [`Took`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// f + 1 replicas run the next instance, so that a client goes there.
    Told,
    /// All replicas run it.
    All,
}

impl Moment {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Told, Self::All];

    /// With its unit.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Told => "ms until f + 1 replicas go on",
            Self::All => "ms until all replicas go on",
        }
    }

    fn of(self, took: &Took) -> f64 {
        let time = match self {
            Self::Told => took.told,
            Self::All => took.all,
        };
        time.as_secs_f64() * 1e3
    }
}

/// One switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// From 1.
    pub round: usize,
    /// The protocol's name.
    pub protocol: String,
    /// Requests in the history.
    pub history: usize,
    /// How many of a hundred the last replica lacked.
    pub missing_percent: usize,
    /// What came of it.
    pub took: Took,
}

/// Every switch that was measured.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// In the order in which they were measured.
    pub measurements: Vec<Measurement>,
}

impl Results {
    /// The value of each round that has one.
    pub(super) fn rounds(
        &self,
        protocol: &str,
        history: usize,
        missing_percent: usize,
        moment: Moment,
    ) -> BTreeMap<usize, f64> {
        let is_there = |it: &&Measurement| {
            it.protocol == protocol && it.history == history && it.missing_percent == missing_percent
        };
        self.measurements.iter().filter(is_there).map(|it| (it.round, moment.of(&it.took))).collect()
    }

    /// Of a moment over the rounds.
    pub fn spread(&self, protocol: &str, history: usize, missing_percent: usize, moment: Moment) -> Option<Spread> {
        Spread::of(self.rounds(protocol, history, missing_percent, moment).into_values())
    }

    /// Every switch as a line of comma-separated values, and a head that names the columns.
    pub fn to_csv(&self) -> String {
        let mut text = "round,protocol,history,missing_percent,told_us,all_us\n".to_owned();
        for Measurement { round, protocol, history, missing_percent, took } in &self.measurements {
            let protocol = csv::cell(protocol);
            let (told, all) = (took.told.as_micros(), took.all.as_micros());
            let _ = writeln!(text, "{round},{protocol},{history},{missing_percent},{told},{all}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn switches_are_told_apart_by_what_was_in_the_history() {
        let ms = Duration::from_millis;
        let one = |round, missing_percent, told| Measurement {
            round,
            protocol: "aliph".into(),
            history: 50,
            missing_percent,
            took: Took { told: ms(told), all: ms(2 * told) },
        };
        let results = Results { measurements: vec![one(1, 0, 1), one(2, 0, 3), one(1, 30, 9)] };
        let median = |missing, moment| results.spread("aliph", 50, missing, moment).map(|spread| spread.median);
        assert_eq!([median(0, Moment::Told), median(0, Moment::All)], [Some(2.0), Some(4.0)]);
        assert_eq!([median(30, Moment::Told), median(10, Moment::Told)], [Some(9.0), None]);
        assert_eq!(results.to_csv().lines().last(), Some("1,aliph,50,30,9000,18000"));
    }
}
