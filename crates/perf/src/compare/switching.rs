//! How long it takes to switch, over lengths of the history, over what is missing of it, and under attacks.

use super::csv;
use super::fault::Fault;
use crate::spread::{Spread, ratios};
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
    /// How many of a hundred the last replicas lack.
    pub missing_percents: Vec<usize>,
    /// How many replicas these are.
    pub lacking: usize,
    /// Bytes of each request.
    pub request_bytes: usize,
    /// Requests between two checkpoints of an instance that may abort, a third of the longest history; `None`: as
    /// usual.
    pub history_interval: Option<u64>,
    /// Under which attacks, `None` among them for none.
    pub attacks: Vec<Option<Fault>>,
}

/// Where a switch is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Requests in the history.
    pub history: usize,
    /// How many of a hundred the last replicas lack.
    pub missing_percent: usize,
    /// What happens meanwhile.
    pub attack: Option<Fault>,
}

impl Switching {
    /// Every place, in the order in which they are measured.
    pub fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for &attack in &self.attacks {
            for &missing_percent in &self.missing_percents {
                places.extend(self.histories.iter().map(|&history| Place { history, missing_percent, attack }));
            }
        }
        places
    }
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
    /// Where.
    pub place: Place,
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
    pub(super) fn rounds(&self, protocol: &str, place: Place, moment: Moment) -> BTreeMap<usize, f64> {
        let chosen = self.measurements.iter().filter(|it| it.protocol == protocol && it.place == place);
        chosen.map(|it| (it.round, moment.of(&it.took))).collect()
    }

    /// Of a moment over the rounds.
    pub fn spread(&self, protocol: &str, place: Place, moment: Moment) -> Option<Spread> {
        Spread::of(self.rounds(protocol, place, moment).into_values())
    }

    /// The same in one place, divided by that of the same round in another one.
    pub fn ratio(&self, moment: Moment, subject: (&str, Place), base: (&str, Place)) -> Option<Spread> {
        Spread::of(ratios(&self.rounds(subject.0, subject.1, moment), &self.rounds(base.0, base.1, moment)))
    }

    /// Every switch as a line of comma-separated values, and a head that names the columns.
    pub fn to_csv(&self) -> String {
        let mut text = "round,protocol,history,missing_percent,told_us,all_us,attack\n".to_owned();
        for Measurement { round, protocol, place, took } in &self.measurements {
            let Place { history, missing_percent, attack } = place;
            let (protocol, attack) = (csv::cell(protocol), attack.map_or("", Fault::name));
            let (told, all) = (took.told.as_micros(), took.all.as_micros());
            let _ = writeln!(text, "{round},{protocol},{history},{missing_percent},{told},{all},{attack}");
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
        let place = |missing_percent, attack| Place { history: 50, missing_percent, attack };
        let one = |round, place, told| Measurement {
            round,
            protocol: "aliph".into(),
            place,
            took: Took { told: ms(told), all: ms(2 * told) },
        };
        let (none, some, flooded) = (place(0, None), place(30, None), place(30, Some(Fault::ReplicaFlood)));
        let measurements = vec![one(1, none, 1), one(2, none, 3), one(1, some, 9), one(1, flooded, 18)];
        let results = Results { measurements };
        let median = |place, moment| results.spread("aliph", place, moment).map(|spread| spread.median);
        assert_eq!([median(none, Moment::Told), median(none, Moment::All)], [Some(2.0), Some(4.0)]);
        assert_eq!([median(some, Moment::Told), median(place(10, None), Moment::Told)], [Some(9.0), None]);
        let ratio = results.ratio(Moment::All, ("aliph", flooded), ("aliph", some));
        assert_eq!(ratio.map(|spread| spread.median), Some(2.0));
        let csv = results.to_csv();
        assert_eq!(csv.lines().nth(3), Some("1,aliph,50,30,9000,18000,"));
        assert_eq!(csv.lines().last(), Some("1,aliph,50,30,18000,36000,replica-flood"));
    }

    #[test]
    fn every_history_is_measured_under_every_attack() {
        let switching = Switching {
            f: 1,
            histories: vec![0, 9],
            missing_percents: vec![0, 30],
            lacking: 1,
            request_bytes: 8,
            history_interval: None,
            attacks: vec![None, Some(Fault::Censor)],
        };
        let places = switching.places();
        assert_eq!(places.len(), 8);
        assert_eq!(places[1], Place { history: 9, missing_percent: 0, attack: None });
        assert_eq!(places[7], Place { history: 9, missing_percent: 30, attack: Some(Fault::Censor) });
    }
}
