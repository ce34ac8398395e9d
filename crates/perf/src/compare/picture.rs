//! What was measured as a [`Chart`].

use super::attacks::{self, Attacks};
use super::course::{self, BUCKET, Course, Event, Timeline};
use super::fault::Fault;
use super::groups::{self, Groups};
use super::summary::{HISTORY, panel_of};
use super::sweep::{self, Axis, Metric, Panel as Part, Sweep};
use super::switching::{self, Moment, Switching};
use super::{Experiment, Kind, claim::Measured};
use crate::chart::{Chart, Panel, Series};
use crate::spread::Spread;
use std::time::Duration;

/// Panels beside one another, at most.
const COLUMNS_MAX: usize = 3;

/// The picture of an experiment.
pub fn chart(experiment: &Experiment, measured: &Measured) -> Chart {
    let (columns, panels) = match (&experiment.kind, measured) {
        (Kind::Sweep(sweep), Measured::Sweep(results)) => sweep_panels(sweep, &experiment.protocols, results),
        (Kind::Course(course), Measured::Course(results)) => course_panels(course, &experiment.protocols, results),
        (Kind::Switching(switching), Measured::Switching(results)) => {
            switching_panels(switching, &experiment.protocols, results)
        }
        (Kind::Attacks(attacks), Measured::Attacks(results)) => attacks_panels(attacks, &experiment.protocols, results),
        (Kind::Groups(groups), Measured::Groups(results)) => groups_panels(groups, &experiment.protocols, results),
        _ => (1, Vec::new()),
    };
    Chart { title: experiment.title.clone(), columns, panels }
}

/// A row for each metric; beside one another if each has a single panel.
fn sweep_panels(sweep: &Sweep, protocols: &[String], results: &sweep::Results) -> (usize, Vec<Panel>) {
    let parts = sweep.panels();
    let panel = |metric: Metric, part: &Part| Panel {
        title: part.to_string(),
        x_label: sweep.axis.label().to_owned(),
        x_names: sweep.names(),
        x_doubles: matches!(sweep.axis, Axis::Clients | Axis::RequestBytes),
        y_label: metric.label().to_owned(),
        series: curves(sweep, part, protocols, metric, results),
        marks: Vec::new(),
        light_marks: Vec::new(),
    };
    let row = |metric: &Metric| parts.iter().map(|part| panel(*metric, part)).collect::<Vec<_>>();
    let mut panels: Vec<_> = sweep.metrics.iter().flat_map(row).collect();
    if let Some(over) = sweep.response_over {
        let response = |part: &Part| Panel {
            x_label: over.label().to_owned(),
            x_doubles: false,
            series: responses(sweep, part, protocols, over, results),
            ..panel(Metric::Latency, part)
        };
        panels.extend(parts.iter().map(response));
    }
    let columns = if parts.len() == 1 { panels.len().min(COLUMNS_MAX) } else { parts.len() };
    (columns, panels)
}

/// Latency over what is got, from few clients to many.
fn responses(sweep: &Sweep, part: &Part, protocols: &[String], over: Metric, results: &sweep::Results) -> Vec<Series> {
    let curve = |(colour, name): (usize, &String)| {
        let point = |place| {
            let got = results.spread(name, place, over)?.median;
            Some((got, results.spread(name, place, Metric::Latency)?))
        };
        let points = sweep.places(part).into_values().filter_map(point).collect();
        Series { name: name.clone(), colour, points }
    };
    protocols.iter().enumerate().map(curve).collect()
}

fn curves(sweep: &Sweep, part: &Part, protocols: &[String], metric: Metric, results: &sweep::Results) -> Vec<Series> {
    let curve = |(colour, name): (usize, &String)| {
        let places = sweep.places(part).into_iter();
        let points = places.filter_map(|(x, place)| Some((x as f64, results.spread(name, place, metric)?)));
        Series { name: name.clone(), colour, points: points.collect() }
    };
    protocols.iter().enumerate().map(curve).collect()
}

/// Clients that come and go are one panel for all; an outage is a panel for each protocol.
fn course_panels(course: &Course, protocols: &[String], results: &course::Results) -> (usize, Vec<Panel>) {
    let typical = |(colour, name): (usize, &String)| Some((colour, results.typical(name)?));
    let timelines: Vec<_> = protocols.iter().enumerate().filter_map(typical).collect();
    match course.event {
        Event::Bursts(_) => (1, vec![panel("", &timelines)]),
        Event::Outage { .. } => {
            let one = |one: &(usize, &Timeline)| Panel {
                marks: one.1.marks.iter().map(Duration::as_secs_f64).collect(),
                light_marks: switches(one.1),
                ..panel(&one.1.protocol, &[*one])
            };
            (timelines.len().clamp(1, COLUMNS_MAX), timelines.iter().map(one).collect())
        }
    }
}

/// A row for each moment, and a column for each share that is missing and each attack.
fn switching_panels(switching: &Switching, protocols: &[String], results: &switching::Results) -> (usize, Vec<Panel>) {
    let mut parts: Vec<_> = switching.places().iter().map(|place| (place.missing_percent, place.attack)).collect();
    parts.dedup();
    let curve = |(colour, name): (usize, &String), (missing_percent, attack), moment| {
        let point = |&history: &usize| {
            let place = switching::Place { history, missing_percent, attack };
            Some((history as f64, results.spread(name, place, moment)?))
        };
        Series { name: name.clone(), colour, points: switching.histories.iter().filter_map(point).collect() }
    };
    let panel = |part: (usize, _), moment: Moment| Panel {
        title: panel_of(part.0, switching.lacking, part.1),
        x_label: HISTORY.to_owned(),
        x_names: Vec::new(),
        x_doubles: false,
        y_label: moment.label().to_owned(),
        series: protocols.iter().enumerate().map(|protocol| curve(protocol, part, moment)).collect(),
        marks: Vec::new(),
        light_marks: Vec::new(),
    };
    let row = |moment| parts.iter().map(move |part| (*part, moment));
    let places = Moment::BOTH.into_iter().flat_map(row);
    (parts.len(), places.map(|(part, moment)| panel(part, moment)).collect())
}

/// A panel for each attack, with all protocols.
fn attacks_panels(attacks: &Attacks, protocols: &[String], results: &attacks::Results) -> (usize, Vec<Panel>) {
    let one = |attack: &Fault| {
        let typical = |(colour, name): (usize, &String)| Some((colour, results.typical(name, *attack)?));
        let timelines: Vec<_> = protocols.iter().enumerate().filter_map(typical).collect();
        let first = timelines.first()?.1;
        let marks = first.marks.iter().map(Duration::as_secs_f64).collect();
        Some(Panel { marks, ..panel(attack.name(), &timelines) })
    };
    let panels: Vec<_> = attacks.attacks.iter().filter_map(one).collect();
    (panels.len().clamp(1, COLUMNS_MAX), panels)
}

/// A panel for each quantity, with all curves.
fn groups_panels(groups: &Groups, protocols: &[String], results: &groups::Results) -> (usize, Vec<Panel>) {
    let curve = |(colour, name): (usize, &String), quantity| {
        let points = groups.places().into_iter();
        let points = points.filter_map(|at| Some((at as f64, results.spread(name, at, quantity)?)));
        Series { name: name.clone(), colour, points: points.collect() }
    };
    let panel = |quantity: &groups::Quantity| Panel {
        title: String::new(),
        x_label: groups.axis.to_owned(),
        x_names: Vec::new(),
        x_doubles: groups.places().len() > 3,
        y_label: quantity.label().to_owned(),
        series: protocols.iter().enumerate().map(|protocol| curve(protocol, *quantity)).collect(),
        marks: Vec::new(),
        light_marks: Vec::new(),
    };
    (groups.quantities.len().min(COLUMNS_MAX), groups.quantities.iter().map(panel).collect())
}

/// When another instance was seen.
fn switches(timeline: &Timeline) -> Vec<f64> {
    let pairs = timeline.instances.windows(2).enumerate();
    pairs.filter(|(_, pair)| pair[0] != pair[1]).map(|(at, _)| (at + 1) as f64 * BUCKET.as_secs_f64()).collect()
}

fn panel(title: &str, timelines: &[(usize, &Timeline)]) -> Panel {
    let series = |(colour, timeline): &(usize, &Timeline)| {
        let point = |(number, ops): (usize, &u64)| {
            let rate = *ops as f64 / BUCKET.as_secs_f64();
            (number as f64 * BUCKET.as_secs_f64(), Spread { low: rate, median: rate, high: rate })
        };
        let points = timeline.buckets.iter().enumerate().map(point).collect();
        Series { name: timeline.protocol.clone(), colour: *colour, points }
    };
    Panel {
        title: title.to_owned(),
        x_label: "seconds".to_owned(),
        x_names: Vec::new(),
        x_doubles: false,
        y_label: Metric::Throughput.label().to_owned(),
        series: timelines.iter().map(series).collect(),
        marks: Vec::new(),
        light_marks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_where_the_instance_changes() {
        let timeline = Timeline { instances: vec![1, 1, 3, 3, 4], ..Timeline::default() };
        assert_eq!(switches(&timeline), [0.2, 0.4]);
    }
}
