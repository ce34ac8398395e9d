//! What came out, as lines: a value with its spread and what it is, divided by the first protocol's.

use super::attacks::{self, Attacks};
use super::claim::Measured;
use super::course::{self, Course, Quantity};
use super::fault::Fault;
use super::groups::{self, Groups};
use super::sweep::{self, Axis, Metric, Sweep};
use super::switching::{self, Moment, Switching};
use super::{Experiment, Kind};
use crate::spread::{Spread, ratios};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One number with its spread over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The experiment's name.
    pub experiment: String,
    /// What belongs together: sizes, and faults tolerated. Empty if all does.
    pub panel: String,
    /// What `at` counts. Empty without.
    pub axis: &'static str,
    /// Where on the axis.
    pub at: Option<At>,
    /// What the value is, with its unit.
    pub metric: &'static str,
    /// Whose it is.
    pub protocol: String,
    /// The value.
    pub value: Spread,
    /// Whose value it is divided by.
    pub divided_by: String,
    /// The ratio within one round; `None` if the other value was not measured.
    pub ratio: Option<Spread>,
    /// How many rounds have this value.
    pub rounds: usize,
}

/// A place on an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum At {
    /// How much of what the axis counts.
    Number(usize),
    /// What the place is called.
    Name(String),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// All lines of an experiment; of one metric those at one place follow one another, in the order of the protocols.
pub fn lines(experiment: &Experiment, measured: &Measured) -> Vec<Line> {
    match (&experiment.kind, measured) {
        (Kind::Sweep(sweep), Measured::Sweep(results)) => sweep_lines(experiment, sweep, results),
        (Kind::Course(course), Measured::Course(results)) => course_lines(experiment, course, results),
        (Kind::Switching(switching), Measured::Switching(results)) => switching_lines(experiment, switching, results),
        (Kind::Attacks(attacks), Measured::Attacks(results)) => attacks_lines(experiment, attacks, results),
        (Kind::Groups(groups), Measured::Groups(results)) => groups_lines(experiment, groups, results),
        _ => Vec::new(),
    }
}

/// Which metrics say something: the best cost over several loads does not.
fn metrics(sweep: &Sweep) -> Vec<Metric> {
    let all = [Metric::Throughput, Metric::Latency, Metric::ReplicaCpu, Metric::BusiestBytes];
    let others = all.into_iter().filter(|metric| !sweep.metrics.contains(metric) && sweep.axis != Axis::RequestBytes);
    sweep.metrics.iter().copied().chain(others).collect()
}

/// A line of each protocol that has a value of this metric there, divided by that of the first. `place`: the axis, and
/// where on it.
fn side_by_side(
    experiment: &Experiment,
    panel: &str,
    place: Option<(&'static str, At)>,
    metric: &'static str,
    rounds: impl Fn(&str) -> BTreeMap<usize, f64>,
) -> Vec<Line> {
    let Some(base) = experiment.protocols.first() else { return Vec::new() };
    let (axis, at) = place.unzip();
    let bases = rounds(base);
    let line = |protocol: &String| {
        let values = rounds(protocol);
        Some(Line {
            experiment: experiment.name.clone(),
            panel: panel.to_owned(),
            axis: axis.unwrap_or_default(),
            at: at.clone(),
            metric,
            protocol: protocol.clone(),
            value: Spread::of(values.values().copied())?,
            divided_by: base.clone(),
            ratio: Spread::of(ratios(&values, &bases)),
            rounds: values.len(),
        })
    };
    experiment.protocols.iter().filter_map(line).collect()
}

fn sweep_lines(experiment: &Experiment, sweep: &Sweep, results: &sweep::Results) -> Vec<Line> {
    let mut lines = Vec::new();
    let names = sweep.names();
    for metric in metrics(sweep) {
        for panel in sweep.panels() {
            for (at, place) in sweep.places(&panel) {
                let at = names.get(at).cloned().map_or(At::Number(at), At::Name);
                let rounds = |protocol: &str| results.rounds(protocol, place, metric);
                let at = Some((sweep.axis.label(), at));
                lines.extend(side_by_side(experiment, &panel.to_string(), at, metric.label(), rounds));
            }
        }
    }
    lines
}

fn course_lines(experiment: &Experiment, course: &Course, results: &course::Results) -> Vec<Line> {
    let of = |quantity: &Quantity| {
        side_by_side(experiment, "", None, quantity.label(), |protocol| results.rounds(protocol, *quantity))
    };
    Quantity::of_event(&course.event).iter().flat_map(of).collect()
}

fn switching_lines(experiment: &Experiment, switching: &Switching, results: &switching::Results) -> Vec<Line> {
    let mut lines = Vec::new();
    for moment in Moment::BOTH {
        for place in switching.places() {
            let panel = panel_of(place.missing_percent, switching.lacking, place.attack);
            let rounds = |protocol: &str| results.rounds(protocol, place, moment);
            let at = Some((HISTORY, At::Number(place.history)));
            lines.extend(side_by_side(experiment, &panel, at, moment.label(), rounds));
        }
    }
    lines
}

/// A part for each attack, in which each protocol has all numbers.
fn attacks_lines(experiment: &Experiment, attacks: &Attacks, results: &attacks::Results) -> Vec<Line> {
    let mut lines = Vec::new();
    for &attack in &attacks.attacks {
        for quantity in attacks::Quantity::ALL {
            let rounds = |protocol: &str| results.rounds(protocol, attack, quantity);
            lines.extend(side_by_side(experiment, attack.name(), None, quantity.label(), rounds));
        }
    }
    lines
}

fn groups_lines(experiment: &Experiment, groups: &Groups, results: &groups::Results) -> Vec<Line> {
    let mut lines = Vec::new();
    for &quantity in &groups.quantities {
        for at in groups.places() {
            let rounds = |name: &str| results.rounds(name, at, quantity);
            lines.extend(side_by_side(experiment, "", Some((groups.axis, At::Number(at))), quantity.label(), rounds));
        }
    }
    lines
}

/// What counts the requests of a history.
pub(super) const HISTORY: &str = "requests in the history";

/// The panel of so many of a hundred that so many replicas lack, and of an attack.
pub(super) fn panel_of(missing_percent: usize, lacking: usize, attack: Option<Fault>) -> String {
    let who = if lacking == 1 { "one replica lacks".to_owned() } else { format!("{lacking} replicas lack") };
    let attack = attack.map_or_else(String::new, |attack| format!(", under {}", attack.name()));
    format!("{who} {missing_percent} %{attack}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::presets::THROUGHPUT_AND_LATENCY;
    use crate::compare::sweep::Point;
    use crate::compare::testing::results;
    use crate::workload::Asked;

    #[test]
    fn every_protocol_is_divided_by_the_first() {
        let points =
            [1, 10].map(|clients| Point { f: 1, clients, request_bytes: 8, reply_bytes: 8, variant: None }).to_vec();
        let experiment = Experiment {
            name: "x".into(),
            title: String::new(),
            protocols: ["a", "b", "absent"].map(str::to_owned).to_vec(),
            kind: Kind::Sweep(Sweep {
                points,
                axis: Axis::Clients,
                metrics: THROUGHPUT_AND_LATENCY.to_vec(),
                asked: Asked::Alike,
                response_over: None,
            }),
            claims: Vec::new(),
            source: "",
            differences: String::new(),
        };
        let measured = [(1, "a", 1, 10.0), (1, "b", 1, 20.0), (1, "a", 10, 40.0), (1, "b", 10, 20.0)];
        let lines = lines(&experiment, &Measured::Sweep(results(&measured)));
        let throughput: Vec<_> = lines.iter().filter(|line| line.metric == "op/s").collect();
        let told: Vec<_> =
            throughput.iter().map(|it| (it.at.clone(), &*it.protocol, it.ratio.map(|it| it.median))).collect();
        let wanted = [(1, "a", 1.0), (1, "b", 2.0), (10, "a", 1.0), (10, "b", 0.5)];
        assert_eq!(told, wanted.map(|(at, name, ratio)| (Some(At::Number(at)), name, Some(ratio))));
        assert_eq!(lines.len(), 4 * 4);
    }
}
