//! One round of a comparison: everything that it compares is measured once, in turns.

use super::compare::{Comparison, subject};
use super::contender::Contender;
use super::measure::Subject;
use crate::failure::{Failure, Result};
use bezant_perf::compare::Kind;
use bezant_perf::compare::attacks::{Attacks, Run};
use bezant_perf::compare::claim::Measured;
use bezant_perf::compare::course::{Course, Event, Timeline};
use bezant_perf::compare::fault::Fault;
use bezant_perf::compare::groups::{self, Groups};
use bezant_perf::compare::sweep::{Measurement, Point, Sweep};
use bezant_perf::compare::switching::{self, Switching};
use bezant_perf::figures::Figures;
use bezant_perf::groups::Ran;
use bezant_perf::switching::{History, Took};
use std::time::Instant;

impl Comparison<'_> {
    /// Every point with every protocol, in turns: forwards in one round and backwards in the next, so that none is
    /// always measured after the same other one. A measurement that fails is missing; the others go on.
    pub(super) fn measure(&mut self, round: usize) {
        let experiment = self.experiment;
        match &experiment.kind {
            Kind::Sweep(sweep) => sweep.points.iter().for_each(|point| self.measure_point(round, sweep, point)),
            Kind::Course(course) => self.measure_course(round, course),
            Kind::Switching(switching) => self.measure_switching(round, switching),
            Kind::Attacks(attacks) => self.measure_attacks(round, attacks),
            Kind::Groups(groups) => self.measure_groups(round, groups),
        }
    }

    fn measure_point(&mut self, round: usize, sweep: &Sweep, point: &Point) {
        let contenders = self.in_turn(round);
        let together = if self.arguments.slices > 1 { contenders.len() } else { 1 };
        for group in contenders.chunks(together) {
            let names = group.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            if self.until.is_some_and(|until| Instant::now() >= until) {
                eprintln!("[{}] no time for {names}, {point}", self.experiment.name);
                continue;
            }
            let subject = |it: &Contender| Subject { asked: sweep.asked, ..subject(self.arguments, *it, point) };
            let outcome = match &*group.iter().map(subject).collect::<Vec<_>>() {
                [subject] => self.bench.measure_own(subject).map(|figures| vec![figures]),
                subjects => self.bench.measure_in_slices(subjects, self.arguments.slices),
            };
            let one = |it: &Figures| format!("{:.0} op/s, p50 {} µs", it.ops_per_s, it.p50_us);
            let told = |all: &Vec<Figures>| all.iter().map(one).collect::<Vec<_>>().join("; ");
            // All of a group come to nothing together.
            self.done += group.len() - 1;
            let Some(all) = self.report(&format!("{names}, {point}"), outcome, told) else {
                self.failed += group.len() - 1;
                continue;
            };
            if let Measured::Sweep(results) = &mut self.measured {
                let one = |(contender, figures): (&Contender, Figures)| Measurement {
                    round,
                    protocol: contender.to_string(),
                    point: *point,
                    figures,
                };
                results.measurements.extend(group.iter().zip(all).map(one));
            }
        }
    }

    fn measure_course(&mut self, round: usize, course: &Course) {
        for &contender in self.contenders {
            let Some(timeline) = self.follow(&contender.to_string(), contender, course) else { continue };
            if let Measured::Course(results) = &mut self.measured {
                results.timelines.push((round, timeline));
            }
        }
    }

    fn measure_attacks(&mut self, round: usize, attacks: &Attacks) {
        let measured = self.bench.seconds;
        for (attack, clients) in attacks.places() {
            let course = attacks.course(attack, clients, measured);
            for contender in self.in_turn(round).into_iter().filter(|it| attack.concerns(it.protocol)) {
                let what = format!("{contender}, {}, clients: {clients}", attack.name());
                let Some(timeline) = self.follow(&what, contender, &course) else { continue };
                if let Measured::Attacks(results) = &mut self.measured {
                    results.runs.push(Run { round, attack, clients, spans: attacks.spans(measured), timeline });
                }
            }
        }
    }

    /// What a protocol does over time, and says so.
    fn follow(&mut self, what: &str, contender: Contender, course: &Course) -> Option<Timeline> {
        let request_bytes = course.request_bytes.first().copied().unwrap_or_default();
        let point = Point {
            f: course.f,
            clients: course.clients(),
            request_bytes,
            reply_bytes: course.reply_bytes,
            variant: None,
        };
        let lets_join = matches!(course.event, Event::Outage { fault: Fault::JoinFlood, .. });
        let subject = Subject { lets_join, ..subject(self.arguments, contender, &point) };
        let outcome = self.bench.follow(&subject, course);
        let told = |timeline: &Timeline| {
            let ops: u64 = timeline.buckets.iter().sum();
            format!("{ops} operations in {:.1} s", timeline.total.as_secs_f64())
        };
        self.report(what, outcome, told)
    }

    fn measure_switching(&mut self, round: usize, switching: &Switching) {
        let Switching { f, lacking, request_bytes, history_interval, .. } = *switching;
        for place in switching.places() {
            let switching::Place { history: requests, missing_percent, attack } = place;
            for &contender in self.contenders {
                let clients = requests + bezant_perf::switching::OTHER_SESSIONS;
                let point = Point { f, clients, request_bytes, reply_bytes: 0, variant: None };
                let history = History { requests, missing_percent, lacking, request_bytes };
                let subject = Subject { history_interval, ..subject(self.arguments, contender, &point) };
                let outcome = self.bench.measure_switch(&subject, history, attack);
                let attack = attack.map_or_else(String::new, |attack| format!(", {}", attack.name()));
                let what = format!("{contender}, {requests} requests, {missing_percent} % missing{attack}");
                let told = |took: &Took| format!("{} µs, all after {} µs", took.told.as_micros(), took.all.as_micros());
                let Some(took) = self.report(&what, outcome, told) else { continue };
                if let Measured::Switching(results) = &mut self.measured {
                    let protocol = contender.to_string();
                    results.measurements.push(switching::Measurement { round, protocol, place, took });
                }
            }
        }
    }

    /// Forwards in one round and backwards in the next.
    fn measure_groups(&mut self, round: usize, groups: &Groups) {
        let mut cells = groups.cells.clone();
        if round.is_multiple_of(2) {
            cells.reverse();
        }
        for cell in cells {
            let outcome = self.bench.running.laboratory.measure_group(&cell.setting);
            let outcome = outcome.map_err(|error| Failure::failed(format!("the group came to no end: {error}.")));
            let told = |ran: &Ran| format!("{:.0} µs, {:.0}/s", ran.latency.as_secs_f64() * 1e6, ran.per_second);
            let Some(ran) = self.report(&format!("{}, {} {}", cell.name, cell.at, groups.axis), outcome, told) else {
                continue;
            };
            if let Measured::Groups(results) = &mut self.measured {
                results.measurements.push(groups::Measurement { round, cell, ran });
            }
        }
    }

    /// Forwards in one round and backwards in the next.
    fn in_turn(&self, round: usize) -> Vec<Contender> {
        let mut contenders = self.contenders.to_vec();
        if round.is_multiple_of(2) {
            contenders.reverse();
        }
        contenders
    }

    /// Says on standard error what came of it.
    fn report<T>(&mut self, what: &str, outcome: Result<T>, told: impl Fn(&T) -> String) -> Option<T> {
        self.done += 1;
        let of_one_round = match &self.experiment.kind {
            Kind::Sweep(sweep) => sweep.points.len() * self.contenders.len(),
            Kind::Course(_) => self.contenders.len(),
            Kind::Switching(it) => it.places().len() * self.contenders.len(),
            Kind::Attacks(attacks) => {
                let concerned = |attack: Fault| self.contenders.iter().filter(move |it| attack.concerns(it.protocol));
                attacks.places().flat_map(|(attack, _)| concerned(attack)).count()
            }
            Kind::Groups(groups) => groups.cells.len(),
        };
        let total = of_one_round * self.arguments.length.rounds as usize;
        let place = format!("[{} {}/{total}] {what}:", self.experiment.name, self.done);
        match outcome {
            Ok(value) => {
                eprintln!("{place} {}", told(&value));
                Some(value)
            }
            Err(failure) => {
                self.failed += 1;
                eprintln!("{place} failed");
                failure.report();
                None
            }
        }
    }
}
